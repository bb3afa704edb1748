# SPDX-License-Identifier: LGPL-2.1-or-later
"""Containers of the tests of engines: their volume, their root file system, and their state.

The volume is an LVM stripe over two model disks, mounted at DATA. A container has the programs of
the guest in its mount /usr, and reads /data/file of the volume:

    /busybox  /sbin/init          of its own
    /bin -> usr/bin  /lib, ...    /usr is the guest's, read-only
"""

from __future__ import annotations

import io
import json
import os
import shlex
import tarfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from rig import bus
from rig.modeldisk import ModelDisk, Usage
from rig.shell import run, wait_for
from rig.stack import standing
from rig.unit import CGROUP_ROOT, fio

# An emulated CPU with work of its own keeps such disks busy.
KBPS = 5000
STRIPE = {"kind": "striped", "name": "lv", "over": ["ssd0", "ssd1"]}
DATA = Path("/srv/data")
POLICY_D = Path("/etc/sutro/policy.d")
# Installed in /usr/share/doc, which the guest does not have.
EXAMPLES = Path(__file__).resolve().parents[2] / "policies"
# Engines on an emulated CPU that containers keep busy.
SLOW_S = 240.0
# A disk takes 13 ms for its half of a request, and many are in flight at the begin and at the end.
RAMP_S, MEASURE_S = 4.0, 20.0

INIT = "#!/busybox sh\nexport PATH=/usr/bin:/bin\neval exec $JOB\n"


@dataclass(frozen=True)
class Volume:
    """The volume of all containers, used by sutro."""

    disks: Sequence[ModelDisk]
    node: str

    def device_time_ns(self, cgroups: Sequence[str]) -> list[int]:
        """Wait until each cgroup has used both disks; true device time in MEASURE_S, after a ramp.

        The time of a cgroup has that of the cgroups below it.
        """
        for disk in self.disks:
            disk.reset()
        busy = [f"no reads of {cgroup}" for cgroup in cgroups]
        for cgroup, what in zip(cgroups, busy, strict=True):
            wait_for(lambda c=cgroup: all(self.used(c)), what, SLOW_S)
        time.sleep(RAMP_S)
        before = [sum(self.used(cgroup)) for cgroup in cgroups]
        time.sleep(MEASURE_S)
        after = [sum(self.used(cgroup)) for cgroup in cgroups]
        return [late - early for early, late in zip(before, after, strict=True)]

    def used(self, cgroup: str) -> list[int]:
        """True device time of a cgroup and those below it on each disk, since the last reset."""
        return [sum(use.time_ns for use in uses) for uses in self._uses(cgroup)]

    def read_bytes(self, cgroup: str) -> int:
        """Bytes that a cgroup and those below it have read, since the last reset."""
        return sum(use.rbytes for uses in self._uses(cgroup) for use in uses)

    def _uses(self, cgroup: str) -> list[list[Usage]]:
        owners = [disk.truth().owners for disk in self.disks]
        return [
            [use for path, use in one.items() if f"{path}/".startswith(f"{cgroup}/")]
            for one in owners
        ]

    def ratio(self, heavy: str, light: str) -> float:
        """Device time of one cgroup over that of another."""
        one, other = self.device_time_ns([heavy, light])
        return one / other


class Engine:
    """An engine of containers, and those of a test."""

    # The words that run the program, and those that remove containers at once.
    PROGRAM: ClassVar[tuple[str, ...]]
    REMOVE: ClassVar[tuple[str, ...]] = ("rm", "--force")

    def __init__(self, volume: Volume):
        self.volume = volume
        self.names: list[str] = []

    def __call__(self, *words: str, stdin: str = "") -> str:
        """Run the program."""
        return run(*self.PROGRAM, *words, stdin=stdin, timeout_s=SLOW_S).strip()

    def clear(self) -> None:
        """Remove all containers; nothing of them is left."""
        ids = self("ps", "--all", "--quiet", "--no-trunc").split()
        self.names.clear()
        if ids:
            self(*self.REMOVE, *ids)
            forgotten(*ids)


@contextmanager
def volume(kbps: int = KBPS) -> Iterator[Volume]:
    """The volume with its file, on disks of this speed; sutrod runs and uses it."""
    with ExitStack() as undo:
        disks = [
            ModelDisk(f"ssd{n}", "ssd", {"size_mb": 64, "bus_kbps": kbps, "seed": n + 1})
            for n in range(2)
        ]
        for one in disks:
            undo.enter_context(one)
        top = undo.enter_context(standing(disks, [STRIPE], filled)).top
        DATA.mkdir(exist_ok=True)
        run("mount", top, DATA)
        undo.callback(run, "umount", DATA)
        run("systemctl", "start", "sutrod")
        undo.callback(run, "systemctl", "stop", "sutrod")
        undo.callback(bus.release)
        bus.use(top)
        yield Volume(disks, top)


def filled(stack: Any) -> None:
    """Make the file system, and its file with all blocks written."""
    run("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0", stack.top)
    DATA.mkdir(exist_ok=True)
    run("mount", stack.top, DATA)
    run("dd", "if=/dev/urandom", f"of={DATA}/file", "bs=1M", "count=48", "oflag=direct")
    run("umount", DATA)


def root_tar(file: Path) -> Path:
    """Write the root file system of a container as an archive."""
    with tarfile.open(file, "w") as tar:
        tar.add("/bin/busybox", "busybox")
        for name in ("data", "dev", "etc", "proc", "run", "sbin", "sys", "tmp", "usr", "var"):
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(folder)
        for name in ("bin", "lib", "lib64"):
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.SYMTYPE, f"usr/{name}"
            tar.addfile(link)
        init = tarfile.TarInfo("sbin/init")
        init.size, init.mode = len(INIT), 0o755
        tar.addfile(init, io.BytesIO(INIT.encode()))
    return file


def job(file: str, seed: int) -> str:
    """A job that reads the file of the volume as fast as it may.

    Each request covers a chunk of both disks. With requests of one chunk, all those of a group are
    at times on one disk, and the other group receives its time on the other one.
    """
    return fio(file, "randread", "128k", 32, seed=seed)


def reads(seed: int = 1) -> list[str]:
    """The words of that job in a container."""
    return shlex.split(job("/data/file", seed).removeprefix("exec "))


def weight(cgroup: str, file: str = "io.sutro.weight") -> int:
    """The default weight in a file of a cgroup; 0 without the file."""
    try:
        text = (CGROUP_ROOT / cgroup[1:] / file).read_text()
    except FileNotFoundError:
        return 0
    return int(text.splitlines()[0].split()[-1])


def becomes(cgroup: str, wanted: int) -> None:
    """The leaves get this weight of a cgroup, which the elevator reads."""
    wait_for(lambda: weight(cgroup) == wanted, f"weight {wanted} of {cgroup}", SLOW_S, 0.2)


def explained(subject: str) -> tuple[str, set[int], set[str]]:
    """sutroctl explain: the cgroup, the weights in force on both leaves, and their reasons."""
    found = json.loads(run("sutroctl", "--json", "explain", subject, str(DATA)))
    leaves = found["leaves"]
    assert {leaf["leaf"] for leaf in leaves} == {"/dev/ssd0", "/dev/ssd1"}
    assert all(leaf["backend"] == "sutro" and leaf["settled"] for leaf in leaves), leaves
    return found["cgroup"], {leaf["asked"] for leaf in leaves}, {leaf["reason"] for leaf in leaves}


def promises(cgroup: str) -> dict[str, tuple[float, str]]:
    """Promises of a cgroup on the volume by key: the value, or the percentage, and the state."""
    mine = [one for one in bus.promises() if one["cgroup"] == cgroup and one["device"]]
    return {one["key"]: (one["percent"] or one["value"], one["state"]) for one in mine}


def promised(cgroup: str, wanted: dict[str, tuple[float, str]]) -> None:
    """The promises of a cgroup become these."""
    wait_for(lambda: promises(cgroup) == wanted, f"{cgroup}: {wanted}", SLOW_S, 1)


def reached(cgroup: str, key: str, state: str) -> dict[str, tuple[float, str]]:
    """The promises of a cgroup, once that of a key has a state."""

    def found() -> dict[str, tuple[float, str]]:
        there = promises(cgroup)
        return there if there.get(key, (0, ""))[1] == state else {}

    return wait_for(found, f"{cgroup}: {key} is {state}", SLOW_S, 1)


def stated(subject: str) -> list[dict[str, Any]]:
    """Settings of policies for a unit or a cgroup that are in force."""
    return [one for one in bus.call("GetPolicy", "s", subject) if one["in_force"]]


def limits(cgroup: str) -> dict[str, str]:
    """io.max of a cgroup by device."""
    lines = (CGROUP_ROOT / cgroup[1:] / "io.max").read_text().splitlines()
    return dict(line.split(" ", 1) for line in lines)


def known() -> list[str]:
    """Subjects of sutrod: units, cgroups with promises, policies that were set at run time."""
    files = Path("/run/sutro/policy.control").glob("*")
    return [*bus.units(), *(one["cgroup"] for one in bus.promises()), *map(str, files)]


def forgotten(*parts: str) -> None:
    """Nothing of ended containers is left: no cgroup, unit, promise, or policy has these names."""

    def left() -> list[str]:
        cgroups = [folder for folder, _, _ in os.walk(CGROUP_ROOT)]
        found = [name for name in cgroups if any(part in name for part in parts)]
        return found or [name for name in known() if any(part in name for part in parts)]

    wait_for(lambda: not left(), f"nothing of {parts}", SLOW_S, 2)


@contextmanager
def policies(*names: str, **texts: str) -> Iterator[None]:
    """Shipped examples, and further policies by their names, are in force."""
    files = {POLICY_D / name: (EXAMPLES / name).read_text() for name in names}
    files |= {POLICY_D / f"{name}.policy": text for name, text in texts.items()}
    try:
        for file, text in files.items():
            file.write_text(text)
        run("sutroctl", "policy", "reload")
        assert bus.get("PolicyErrors") == []
        yield
    finally:
        for file in files:
            file.unlink()
        bus.call("ReloadPolicies")
