# SPDX-License-Identifier: LGPL-2.1-or-later
"""The device of a test with its leaves, and the file of --write."""

import os
import re
import stat
from dataclasses import dataclass
from typing import Any

from sutro.client import Client
from sutro.errors import NoQueue, SutroError, UsageError
from sutro.topology import Topology, label

from . import files
from .leaf import Leaf

Dict = dict[str, Any]

# A smaller device has no room for the streams of an experiment.
SMALLEST_BYTES = 64 << 20
FILE_BYTES = 1 << 30
FILE_PART = 0.5  # of the free space
# fio has several files with a colon between them.
ALLOWED = r"[\w./@+-]+"


@dataclass(frozen=True)
class Medium:
    """A device or file that jobs use; `devno` has its counters in io.stat."""

    path: str
    devno: str
    size_bytes: int


@dataclass(frozen=True)
class Target:
    """The tested device. `others`: volumes on the same leaves; `about`: the leaves for people."""

    path: str
    kind: str
    device: Medium
    leaves: tuple[Leaf, ...]
    others: tuple[str, ...]
    about: tuple[Dict, ...]
    file: Medium | None = None


def _counted(topology: Topology, device: Dict) -> str:
    """The device whose line of io.stat has the requests: that of a partition is its disk."""
    if device["kind"] == "partition":
        above = topology.slaves(device)
        return above[0]["devno"] if above else device["devno"]
    return device["devno"]


async def find(client: Client, name: str, write: str) -> Target:
    """Resolve a device, mount point or path, and the file of --write."""
    topology = Topology(await client.devices())
    resolved = await client.resolve(topology.path(name))
    device = topology.find(resolved["device"])
    found = [topology.find(leaf) for leaf in resolved["leaves"]]
    leaves = [leaf for leaf in found if leaf and leaf["size_bytes"]]
    if not device or not leaves:
        raise SutroError(
            f"'{name}' has no leaf: there is no disk with a scheduler under it",
            "sutroctl tree shows the devices and their leaves",
        )
    if device["size_bytes"] < SMALLEST_BYTES:
        raise SutroError(
            f"{device['node']} has {device['size_bytes'] >> 20} MiB: the test needs "
            f"{SMALLEST_BYTES >> 20} MiB",
            "name a larger device, see: sutroctl tree",
        )
    others = {label(top) for leaf in leaves for top in topology.stacks_on(leaf)}
    of_leaves = tuple(Leaf(leaf["name"], leaf["node"], leaf["devno"]) for leaf in leaves)
    return Target(
        path=label(device),
        kind=device["kind"],
        device=Medium(device["node"], _counted(topology, device), device["size_bytes"]),
        leaves=of_leaves,
        others=tuple(sorted(others - {label(device)})),
        about=tuple(one.about(leaf) for one, leaf in zip(of_leaves, leaves, strict=True)),
        file=await _file(client, topology, device["node"], write) if write else None,
    )


def check_file(name: str) -> str:
    """The absolute path of a file that may be made; UsageError if that would destroy a file."""
    path = os.path.realpath(name)
    new = "name a new file on a file system of the device"
    if not re.fullmatch(ALLOWED, path):
        raise UsageError(f"--write={name}: fio allows letters, digits and ./_@+- in a name", new)
    try:
        found = files.at(path).lstat()
    except FileNotFoundError:
        found = None
    except OSError as error:
        raise SutroError(f"--write={name}: {error.strerror}", new) from None
    if found and (stat.S_ISBLK(found.st_mode) or stat.S_ISCHR(found.st_mode)):
        raise UsageError(f"--write={name} is a device: writes would destroy its data", new)
    if found and stat.S_ISDIR(found.st_mode):
        raise UsageError(f"--write={name} is a directory", f"{new}: {name}/sutro-test")
    if found and not stat.S_ISREG(found.st_mode):
        raise UsageError(f"--write={name} is no regular file", new)
    if found and found.st_size:
        raise UsageError(f"--write={name} has data, which the test would destroy", new)
    if not files.at(os.path.dirname(path)).is_dir():
        raise SutroError(f"--write={name}: there is no directory {os.path.dirname(path)}", new)
    return path


async def _file(client: Client, topology: Topology, node: str, name: str) -> Medium:
    path = check_file(name)
    folder = os.path.dirname(path)
    try:
        resolved = await client.resolve(folder)
    except NoQueue as error:
        raise SutroError(
            f"--write={name}: its file system is on no block device: {error.message}",
            f"name a file on a file system of {node}",
        ) from None
    if node not in [step["device"] for step in resolved["steps"]] + [resolved["device"]]:
        raise SutroError(
            f"--write={name}: its file system is on {resolved['device']}, not on {node}",
            f"name a file on a file system of {node}; findmnt {node} lists its mount points",
        )
    device = topology.find(resolved["device"])
    free = os.statvfs(files.at(folder))
    size = min(FILE_BYTES, int(free.f_bavail * free.f_frsize * FILE_PART))
    if size < SMALLEST_BYTES:
        raise SutroError(
            f"--write={name}: half of the free space of {folder} is {size >> 20} MiB; the test "
            f"needs {SMALLEST_BYTES >> 20} MiB",
            "make room, or name a file on another file system of the device",
        )
    devno = _counted(topology, device) if device else ""
    return Medium(path, devno, size >> 20 << 20)
