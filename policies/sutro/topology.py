# SPDX-License-Identifier: LGPL-2.1-or-later
"""The stacks of block devices, as a graph from the named devices down to the leaves.

The daemon sends a flat list in which each device names the devices below it (`slaves`).
A leaf under two stacks appears in both trees: it is the same device, and is shown twice.
"""

import difflib
import os
from typing import Any

from .errors import NoSuchPath, UsageError

Dict = dict[str, Any]


class Topology:
    """All devices, found by any of their names. They are those of `host`, "": of this machine."""

    def __init__(self, devices: list[Dict], host: str = "") -> None:
        self._host = host
        self.by_name = {device["name"]: device for device in devices}
        self._stands_on = {name for device in devices for name in device["slaves"]}
        self._by_alias = {
            alias: device for device in devices for alias in (device["node"], *device["aliases"])
        }

    def find(self, name: str) -> Dict | None:
        """The device of a kernel name (dm-0), a node, or an alias; None when there is none."""
        return self.by_name.get(name) or self._by_alias.get(name)

    def path(self, name: str) -> str:
        """The absolute path of an argument: a short name of a device, or any path.

        A short name is that of the kernel, or a path below /dev without it (vg/lv). Its path is the
        one that is the same after the next boot, if there is one.
        NoSuchPath with similar names if there is neither a device nor a file, UsageError for a
        relative path with another machine, where it leads nowhere.
        """
        is_path = "/" in name or name in (".", "..")
        # Names of volumes that are no files here, as lvs prints them.
        below_dev = not name.startswith(("/", "./", "../")) and "/" in name
        if below_dev and (self._host or not os.path.lexists(name)):
            device = self.find("/dev/" + name)
            if device:
                return label(device)
            is_path = bool(self._host)
        if is_path and self._host and not name.startswith("/"):
            raise UsageError(
                f"'{name}' is relative to a directory of this machine, not of {self._host}",
                "name the path from the root: /...",
            )
        if is_path:
            return "/" + os.path.abspath(name).lstrip("/")  # abspath keeps two leading slashes
        device = self.find(name) or self.find("/dev/mapper/" + name)
        if device:
            return label(device)
        if not self._host and os.path.exists(name):
            return os.path.abspath(name)
        short = list(self.by_name) + [os.path.basename(alias) for alias in self._by_alias]
        if below_dev:
            short = [alias.removeprefix("/dev/") for alias in self._by_alias]
        meant = list(dict.fromkeys(difflib.get_close_matches(name, short, n=3)))
        hint = "did you mean " + ", ".join(meant) + "?" if meant else "see: sutroctl tree"
        what = "device" if self._host else "device and no file"
        raise NoSuchPath(f"there is no {what} named '{name}'", hint)

    def tops(self) -> list[Dict]:
        """Devices without another one above, without empty ones (an unused loop device)."""
        return [
            device
            for device in self.by_name.values()
            if device["name"] not in self._stands_on and device["size_bytes"] > 0
        ]

    def slaves(self, device: Dict) -> list[Dict]:
        """The devices directly below; one that has just gone is left out.

        Of the leaves only a loop device has anything below.
        """
        if device["leaf"] and device["kind"] != "loop":
            return []
        return [self.by_name[name] for name in device["slaves"] if name in self.by_name]

    def leaves(self, device: Dict) -> list[Dict]:
        """The leaves of a device, each once, in the order of the stack."""
        below = (leaf for slave in self.slaves(device) for leaf in self.leaves(slave))
        found = {leaf["name"]: leaf for leaf in ([device] if device["leaf"] else [])}
        return list((found | {leaf["name"]: leaf for leaf in below}).values())

    def stacks_on(self, leaf: Dict) -> list[Dict]:
        """The top devices above a leaf."""
        return [top for top in self.tops() if top != leaf and leaf in self.leaves(top)]


def label(device: Dict) -> str:
    """The name that people use for a device: /dev/VG/LV, then /dev/mapper/x, then the node."""
    aliases = [alias for alias in device["aliases"] if not alias.startswith("/dev/mapper/")]
    return (aliases or device["aliases"] or [device["node"]])[0]
