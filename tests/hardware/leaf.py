# SPDX-License-Identifier: LGPL-2.1-or-later
"""The queue of a leaf: its scheduler, and the settings that a switch of the scheduler loses.

`settings` reads them, `restore` writes back each that differs. iocost is no scheduler: it counts as
one here, on leaves where an administrator has enabled it, and is disabled while others run.
"""

from dataclasses import dataclass
from typing import Any

from . import files

Dict = dict[str, Any]

# As in the benches: with few request slots no scheduler has anything to order, and the heuristics
# of bfq for interactive tasks override weights.
NR_REQUESTS = 256
SETTINGS = {"bfq": {"low_latency": "0"}}
IOCOST, ABOVE = "iocost", "mq-deadline"
QOS = "/sys/fs/cgroup/io.cost.qos"
KEPT = ("nr_requests", "wbt_lat_usec")


class LeafError(RuntimeError):
    """A setting of a leaf cannot be changed; the text names leaf, setting and reason."""


@dataclass(frozen=True)
class Leaf:
    """A leaf by its kernel name."""

    name: str
    node: str
    devno: str

    @property
    def folder(self) -> str:
        """Its folder in sysfs."""
        return f"/sys/class/block/{self.name}"

    @property
    def queue(self) -> str:
        """The folder of its queue."""
        return f"{self.folder}/queue"

    def _set(self, key: str, value: str) -> None:
        try:
            files.write(f"{self.queue}/{key}", value)
        except OSError as error:
            raise LeafError(f"{self.node}: queue/{key} = {value}: {error.strerror}") from None

    # Schedulers

    def schedulers(self) -> list[str]:
        """Those that the kernel has loaded; it may load others."""
        words = (files.text(f"{self.queue}/scheduler") or "").split()
        return [word.strip("[]") for word in words]

    def scheduler(self) -> str:
        """The one in use."""
        words = (files.text(f"{self.queue}/scheduler") or "").split()
        return next((word[1:-1] for word in words if word.startswith("[")), "none")

    def select(self, name: str, knobs: Dict) -> None:
        """Switch to a scheduler that has learnt nothing yet, with the settings of a comparison."""
        wanted = ABOVE if name == IOCOST else name
        self._set("scheduler", "none")
        if wanted != "none":
            self._set("scheduler", wanted)
            if self.scheduler() != wanted:
                raise LeafError(f"{self.node}: the scheduler is not {wanted}")
            # Without a scheduler the slots are those of the device.
            self._set("nr_requests", str(NR_REQUESTS))
        for key, value in (SETTINGS.get(name, {}) | knobs).items():
            self._set(f"iosched/{key}", str(value))

    def restart(self, name: str) -> None:
        """Switch to a scheduler that was used before."""
        if self.scheduler() != name:
            self._set("scheduler", name)

    # iocost

    def has_iocost(self) -> bool:
        """An administrator has enabled iocost on it."""
        lines = map(str.split, (files.text(QOS) or "").splitlines())
        return any(words[0] == self.devno and "enable=1" in words for words in lines if words)

    def enable_iocost(self, enabled: bool) -> None:
        """Enable it, or disable it; the kernel keeps its model."""
        try:
            files.write(QOS, f"{self.devno} enable={int(enabled)}")
        except OSError as error:
            raise LeafError(f"{self.node}: io.cost.qos: {error.strerror}") from None

    # Settings that a switch of the scheduler loses

    def settings(self) -> dict[str, str]:
        """The scheduler and the settings that can be written, by their names below queue/."""
        found = {"scheduler": self.scheduler()}
        folder = files.at(f"{self.queue}/iosched")
        own = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
        for key in (*KEPT, *(f"iosched/{name}" for name in own)):
            path = files.at(f"{self.queue}/{key}")
            value = files.text(f"{self.queue}/{key}")
            if value is not None and path.stat().st_mode & 0o200:
                found[key] = value
        return found

    def restore(self, before: dict[str, str], iocost: bool) -> list[str]:
        """Write back settings; return what could not be restored. A leaf that has gone has none.

        iocost: it was enabled. The kernel sets wbt_lat_usec when iocost or bfq begins or ends, so
        the other settings come last, and twice: one may set another, as slice_idle of bfq does.
        """
        failures: dict[str, str] = {}
        if not files.at(self.queue).exists():
            return []
        if before["scheduler"] != self.scheduler():
            self._attempt(failures, "scheduler", before["scheduler"])
        if iocost and not self.has_iocost():
            try:
                self.enable_iocost(True)
            except LeafError as error:
                failures["iocost"] = str(error)
        for key, value in [item for item in before.items() if item[0] != "scheduler"] * 2:
            if files.text(f"{self.queue}/{key}") != value:
                self._attempt(failures, key, value)
        return list(failures.values())

    def _attempt(self, failures: dict[str, str], key: str, value: str) -> None:
        failures.pop(key, None)
        try:
            self._set(key, value)
        except LeafError as error:
            failures[key] = str(error)

    # For people

    def about(self, device: Dict) -> Dict:
        """The disk without its serial number."""
        words = (files.text(f"{self.folder}/device/{key}") for key in ("vendor", "model"))
        return {
            "leaf": self.node,
            "kind": device["kind"],
            "model": " ".join(word for word in words if word),
            "rotational": files.text(f"{self.queue}/rotational") == "1",
            "size_bytes": device["size_bytes"],
            "scheduler": self.scheduler(),
            "nr_requests": int(files.text(f"{self.queue}/nr_requests") or 0),
        }


def is_loadable(name: str, modules: str) -> bool:
    """The kernel has a module for a scheduler, by the text of modules()."""
    return any(f"{name}{dash}iosched" in modules for dash in "-_") or f"/{name}.ko" in modules


def modules() -> str:
    """The names of all modules of the running kernel, and their other names."""
    release = files.text("/proc/sys/kernel/osrelease") or ""
    names = ("alias", "builtin", "dep")
    return "\n".join(files.text(f"/lib/modules/{release}/modules.{name}") or "" for name in names)
