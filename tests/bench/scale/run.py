# SPDX-License-Identifier: LGPL-2.1-or-later
"""Run a case: cgroups that have used a disk, and some that use it without end.

The load is crowd.c, which the lab has built. The schedulers take turns under it as in
bench/overhead/run.py. When the window of one ends, and it is still on, memory is counted: objects
of all slab caches times their size, and memory for each CPU.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from rig import scheduler as elevators
from rig.cgroup import Group, Subtree
from rig.nullblk import NullBlk

from bench.judge import Say
from bench.overhead.run import Count, Meter, rounds
from bench.scale.scenario import Case

DISK = "scale0"
CROWD = Path("/mnt/build/crowd")
SLABS = Path("/proc/slabinfo")
MEMORY = Path("/proc/meminfo")
CPUS = Path("/sys/devices/system/cpu")


@dataclass
class Windows:
    """The counts under a scheduler."""

    counts: list[Count] = field(default_factory=list)
    bytes_: list[int] = field(default_factory=list)


def run(case: Case, schedulers: Sequence[str], say: Say) -> dict[str, Windows]:
    """The windows of each scheduler."""
    windows = {name: Windows() for name in schedulers}
    with ExitStack() as undo:
        elevators.stop_daemon()
        # A file in a folder of the host cannot be executed.
        folder = undo.enter_context(TemporaryDirectory())
        crowd = Path(shutil.copyfile(CROWD, f"{folder}/crowd"))
        crowd.chmod(0o755)
        if not case.of.is_counted():
            undo.enter_context(_cpus(case.queues))
        disk = NullBlk(DISK, {**case.of.disk, "submit_queues": case.queues})
        undo.enter_context(disk)
        subtree = undo.enter_context(Subtree("scale"))
        subtree.write("pids.max", "max")
        say(f"{case.name}: {case.idle} idle groups, {case.busy} busy ones")
        idle = _groups(subtree, "idle", case.idle)
        # Only an elevator that is on has memory for a group that uses the disk.
        if idle:
            _use_once(crowd, disk, idle)
        load = undo.enter_context(
            _load(crowd, disk, case.of.tasks, _groups(subtree, "busy", case.busy))
        )
        if (line := load.stdout.readline()) != "ready\n":
            raise RuntimeError(f"{case.name}: {line}")
        say(f"{case.name}: measuring")
        for name, count in rounds(case.of, schedulers, disk, Meter(disk.name, subtree.folder)):
            windows[name].counts.append(count)
            windows[name].bytes_.append(_kernel_bytes())
        if load.poll() is not None:
            raise RuntimeError(f"{case.name}: the load ended early: {load.stdout.read()}")
    return windows


def _groups(subtree: Subtree, name: str, number: int) -> list[Path]:
    """`number` siblings in a cgroup of their own, with only the io controller."""
    if not number:
        return []
    parent: Group = subtree.child(name)
    parent.write("cgroup.subtree_control", "+io")
    folders = [parent.folder / f"g{one}" for one in range(number)]
    for folder in folders:
        folder.mkdir()
    return folders


def _lines(folders: Sequence[Path]) -> str:
    return "".join(f"{folder}\n" for folder in folders)


def _use_once(crowd: Path, disk: NullBlk, folders: Sequence[Path]) -> None:
    """One read in each of these cgroups."""
    done = subprocess.run(
        [crowd, disk.node, "0"], input=_lines(folders), text=True, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, check=False,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"the disk cannot be used in all groups: {done.stdout}")


@contextmanager
def _load(
    crowd: Path, disk: NullBlk, tasks: int, folders: Sequence[Path]
) -> Iterator[subprocess.Popen]:
    """Processes that read in these cgroups until the end."""
    load = subprocess.Popen(
        [crowd, disk.node, str(tasks)], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )  # fmt: skip
    try:
        load.stdin.write(_lines(folders))
        load.stdin.close()
        yield load
    finally:
        load.kill()
        load.stdout.close()
        load.wait()


@contextmanager
def _cpus(number: int) -> Iterator[None]:
    """Only `number` CPUs are online."""
    switches = [CPUS / f"cpu{cpu}/online" for cpu in range(1, os.cpu_count() or 1)]
    if number > len(switches) + 1:
        raise RuntimeError(f"{number} CPUs: this guest has {len(switches) + 1}")
    try:
        for switch in switches[number - 1 :]:
            switch.write_text("0")
        yield
    finally:
        for switch in switches:
            if switch.read_text().strip() == "0":
                switch.write_text("1")


def _kernel_bytes() -> int:
    """Memory that the kernel has given to objects of its own."""
    return slab_bytes(SLABS.read_text()) + per_cpu_bytes(MEMORY.read_text())


def slab_bytes(slabinfo: str) -> int:
    """All objects in use: name, active objects, objects, bytes of one, ..."""
    rows = [line.split() for line in slabinfo.splitlines()[2:]]
    return sum(int(row[1]) * int(row[3]) for row in rows)


def per_cpu_bytes(meminfo: str) -> int:
    """All memory for each CPU, of all CPUs."""
    (kib,) = (line.split()[1] for line in meminfo.splitlines() if line.startswith("Percpu:"))
    return int(kib) * 1024
