# SPDX-License-Identifier: LGPL-2.1-or-later
"""Model disks: block devices whose speed is a formula, and which report exact device time.

A model disk is made through configfs (tests/modeldisk) and reports in debugfs how much device
time, how many bytes and requests each cgroup really used. That report is the oracle of all tests.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, field
from pathlib import Path

from rig.shell import run, wait_for

CONFIGFS = Path("/sys/kernel/config/modeldisk")
DEBUGFS = Path("/sys/kernel/debug/modeldisk")

# Where the module may lie when it is not installed: the lab's build folder.
MODULE_DIRS = ("/mnt/build", "/mnt/build/modeldisk")

# Numbers of a disk without delays, while a stack or a file system is being made.
FAST = {
    "hdd": {
        "seek_min_us": 0,
        "seek_max_us": 0,
        "rpm": 1000000,
        "overhead_us": 0,
        "bandwidth_kbps": 4000000,
    },
    "ssd": {"read_us": 1, "write_us": 1, "erase_us": 0, "bus_kbps": 4000000},
    "nvme": {"read_us": 1, "write_us": 1, "erase_us": 0, "bus_kbps": 4000000},
}


@dataclass(frozen=True)
class Usage:
    """The use of a device by one cgroup, or by all, since the last reset."""

    time_ns: int = 0
    rbytes: int = 0
    wbytes: int = 0
    rios: int = 0
    wios: int = 0
    busy_ns: int = 0
    meta_rbytes: int = 0
    meta_wbytes: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(*map(sum, zip(astuple(self), astuple(other), strict=True)))

    def __sub__(self, other: Usage) -> Usage:
        pairs = zip(astuple(self), astuple(other), strict=True)
        return Usage(*(mine - theirs for mine, theirs in pairs))

    @property
    def bytes(self) -> int:
        """Read and written bytes together."""
        return self.rbytes + self.wbytes

    @property
    def requests(self) -> int:
        """Reads and writes together."""
        return self.rios + self.wios

    @property
    def meta_bytes(self) -> int:
        """Those of them that were marked as metadata (REQ_META)."""
        return self.meta_rbytes + self.meta_wbytes


@dataclass(frozen=True)
class Truth:
    """The model's own account: the whole device, and each owner by its path in the cgroup tree."""

    total: Usage = field(default_factory=Usage)
    owners: Mapping[str, Usage] = field(default_factory=dict)

    def __add__(self, other: Truth) -> Truth:
        both = {**self.owners, **other.owners}
        owners = {cgroup: self.of(cgroup) + other.of(cgroup) for cgroup in both}
        return Truth(self.total + other.total, owners)

    def of(self, cgroup: str) -> Usage:
        """Usage of one cgroup, all zero if it never used the device."""
        return self.owners.get(cgroup, Usage())


def parse_truth(text: str) -> Truth:
    """Read the debugfs file `truth`: a line for the device, then one per owner."""
    total, owners = Usage(), {}
    for line in text.splitlines():
        name, *pairs = line.rsplit(" ", maxsplit=line.count("="))
        known = Usage.__dataclass_fields__
        values = {key: int(value) for key, _, value in (pair.partition("=") for pair in pairs)}
        usage = Usage(**{key: value for key, value in values.items() if key in known})
        if name == "total":
            total = usage
        else:
            # A cgroup that went and came again under the same name is two owners with one path.
            owners[name] = owners.get(name, Usage()) + usage
    return Truth(total, owners)


def load_module() -> None:
    """Make sure that the modeldisk module is there."""
    if not CONFIGFS.exists():
        files = [Path(folder) / "modeldisk.ko" for folder in MODULE_DIRS]
        found = [file for file in files if file.exists()]
        run("modprobe", "configfs")
        if found:
            run("insmod", found[0])
        else:
            run("modprobe", "modeldisk")
    wait_for(CONFIGFS.exists, f"{CONFIGFS}")


class ModelDisk:
    """One model disk; use it in a `with` statement.

    `numbers` are attributes of the model by their configfs names (`bandwidth_kbps=150000`), and
    override the defaults of `kind`.
    """

    def __init__(self, name: str, kind: str, numbers: Mapping[str, object] | None = None):
        self.name = name
        self.kind = kind
        self.numbers = {key: value for key, value in (numbers or {}).items() if key != "kind"}
        self.node = f"/dev/{name}"
        self._config = CONFIGFS / name
        self._slow: dict[str, str] = {}

    def __enter__(self) -> ModelDisk:
        load_module()
        self._config.mkdir()
        try:
            self._write("kind", self.kind)
            for key, value in self.numbers.items():
                self._write(key, value)
            self._write("online", 1)
            wait_for(lambda: os.path.exists(self.node), self.node)
            run("udevadm", "settle", "--timeout=10")
        except BaseException:
            self._config.rmdir()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._config.exists():
            self._write("online", 0)
            self._config.rmdir()

    def _write(self, key: str, value: object) -> None:
        try:
            (self._config / key).write_text(f"{value}\n")
        except OSError as error:
            what = f"model disk {self.name}: {key}={value}: {error.strerror}"
            raise OSError(error.errno, what) from error

    def read(self, key: str) -> str:
        """One number of the model as it stands."""
        return (self._config / key).read_text().strip()

    def number(self, key: str) -> int:
        """The same as an integer."""
        return int(self.read(key))

    def set(self, **numbers: object) -> None:
        """Change numbers of the model while it runs."""
        for key, value in numbers.items():
            self._write(key, value)

    def hurry(self) -> None:
        """Make the disk fast until slow() is called: preparing needs no realism."""
        if not self._slow:
            # Undone in reverse: at no moment may a minimum exceed its maximum.
            self._slow = {key: self.read(key) for key in reversed(FAST[self.kind])}
            self.set(**FAST[self.kind])

    def slow(self) -> None:
        """Undo hurry()."""
        self.set(**self._slow)
        self._slow = {}

    def unplug(self) -> None:
        """Take the device away at once, as a pulled cable does."""
        self._write("online", 0)

    @property
    def devno(self) -> str:
        """`MAJ:MIN` of the device."""
        number = os.stat(self.node).st_rdev
        return f"{os.major(number)}:{os.minor(number)}"

    def truth(self) -> Truth:
        """The use of the device since the last reset, in all."""
        return parse_truth((DEBUGFS / self.name / "truth").read_text())

    def model(self) -> dict[str, int]:
        """Statistics of the model about its completions since then."""
        text = (DEBUGFS / self.name / "model").read_text()
        pairs = (word.partition("=") for word in text.split())
        return {key: int(value) for key, _, value in pairs if value}

    def reset(self) -> None:
        """Zero the truth."""
        (DEBUGFS / self.name / "reset").write_text("1\n")


@contextmanager
def hurried(disks: Sequence[ModelDisk]) -> Iterator[None]:
    """Disks are fast while the body runs."""
    for disk in disks:
        disk.hurry()
    yield
    for disk in disks:
        disk.slow()
