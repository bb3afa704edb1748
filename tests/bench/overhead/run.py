# SPDX-License-Identifier: LGPL-2.1-or-later
"""Run a case: its jobs without end, and under them one scheduler after the other.

    none mq-deadline ... sutro  sutro ... mq-deadline none  none mq-deadline ...

Slow changes affect all schedulers alike. README.rst describes the two guests.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path

from rig import scheduler as elevators
from rig.cgroup import Group, Subtree
from rig.nullblk import NullBlk
from rig.shell import wait_for
from rig.unit import CGROUP_ROOT, fio

from bench.judge import Say
from bench.overhead.scenario import Case, Pace

DISK = "ovh0"
COME_S = 600.0
# iocost shall count, and hold back no request: a model of a disk that is faster than any.
FAST = "rbps=100000000000 rseqiops=100000000 rrandiops=100000000"
IOCOST_MODEL = f"ctrl=user model=linear {FAST} {FAST.replace('r', 'w', 1).replace(' r', ' w')}"
IOCOST_QOS = "enable=1 ctrl=user rpct=0 wpct=0 min=100.00 max=100.00"
SECTOR_BYTES = 512


@dataclass(frozen=True)
class Count:
    """Counters since the boot of the guest; the difference of two is a window."""

    at_ns: int
    busy_ns: int
    others_ns: int
    user_us: int
    system_us: int
    switches: int
    reads: int
    writes: int
    read_sectors: int
    write_sectors: int

    def __sub__(self, before: Count) -> Count:
        names = [part.name for part in fields(Count)]
        return Count(**{name: getattr(self, name) - getattr(before, name) for name in names})


class Meter:
    """Reads all counters."""

    def __init__(self, disk: str, ours: Path):
        self._disk = Path("/sys/block") / disk / "stat"
        self._ours = ours / "cpu.stat"
        self._system = CGROUP_ROOT / "system.slice/cpu.stat"

    def read(self) -> Count:
        """Now."""
        disk = [int(word) for word in self._disk.read_text().split()]
        at_ns = time.monotonic_ns()
        busy_ns = sum(
            int(line.split()[7])
            for line in Path("/proc/schedstat").read_text().splitlines()
            if line.startswith("cpu")
        )
        system, ours = _table(self._system), _table(self._ours)
        stat = Path("/proc/stat").read_text()
        return Count(
            at_ns=at_ns,
            busy_ns=busy_ns,
            others_ns=1000 * (system["usage_usec"] - ours["usage_usec"]),
            user_us=ours["user_usec"],
            system_us=ours["system_usec"],
            switches=int(stat[stat.index("ctxt") :].split()[1]),
            reads=disk[0],
            read_sectors=disk[2],
            writes=disk[4],
            write_sectors=disk[6],
        )


def _table(file: Path) -> dict[str, int]:
    lines = (line.split() for line in file.read_text().splitlines())
    return {line[0]: int(line[1]) for line in lines}


def run(case: Case, schedulers: Sequence[str], say: Say) -> dict[str, list[Count]]:
    """The windows of each scheduler."""
    windows: dict[str, list[Count]] = {name: [] for name in schedulers}
    with ExitStack() as undo:
        elevators.stop_daemon()
        disk = undo.enter_context(NullBlk(DISK, case.of.disk))
        subtree = undo.enter_context(Subtree("overhead"))
        groups = [subtree.child(f"g{number}") for number in range(case.groups)]
        jobs = [group.run(fio(disk.node, **case.group_job())) for group in groups]
        for group in groups:
            came = partial(_came, group, disk.devno)
            wait_for(came, f"{case.name}: {group.folder.name} uses {disk.node}", COME_S)
        say(f"{case.name}: measuring")
        meter = Meter(disk.name, subtree.folder)
        for name, count in rounds(case.of, schedulers, disk, meter):
            windows[name].append(count)
        for job in jobs:
            if job.poll() is not None:
                raise RuntimeError(f"{case.name}: fio ended early:\n{job.communicate()[0]}")
    return windows


def rounds(
    of: Pace, schedulers: Sequence[str], disk: NullBlk, meter: Meter
) -> Iterator[tuple[str, Count]]:
    """A window of each scheduler in turn, there and back; a started scheduler stays on."""
    for name in abba(schedulers, of.rounds):
        with _chosen(name, disk, of.slots):
            time.sleep(of.settle_ms / 1e3)
            before = meter.read()
            time.sleep(of.window_ms / 1e3)
            yield name, meter.read() - before


def abba(schedulers: Sequence[str], count: int) -> Iterator[str]:
    """All schedulers `count` times, there and back."""
    for number in range(count):
        yield from reversed(schedulers) if number % 2 else schedulers


def _came(group: Group, devno: str) -> bool:
    return any(line.startswith(f"{devno} ") for line in group.read("io.stat").splitlines())


@contextmanager
def _chosen(name: str, disk: NullBlk, slots: int) -> Iterator[None]:
    elevators.select(disk.name, "none" if name == "iocost" else name, slots)
    if name != "iocost":
        yield
        return
    qos = CGROUP_ROOT / "io.cost.qos"
    (CGROUP_ROOT / "io.cost.model").write_text(f"{disk.devno} {IOCOST_MODEL}\n")
    qos.write_text(f"{disk.devno} {IOCOST_QOS}\n")
    try:
        yield
    finally:
        qos.write_text(f"{disk.devno} enable=0\n")
