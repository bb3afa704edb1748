# SPDX-License-Identifier: LGPL-2.1-or-later
"""The elevator's files of one disk: knobs in sysfs, state in debugfs, counts of the block layer."""

import itertools
from pathlib import Path

from rig import scheduler
from rig.modeldisk import ModelDisk
from rig.nullblk import NullBlk


def knob(disk: ModelDisk | NullBlk, name: str) -> Path:
    """A file in queue/iosched/."""
    return scheduler.queue(disk.name) / "iosched" / name


def debug(disk: ModelDisk | NullBlk, file: str) -> str:
    """Text of one of the debugfs files."""
    return Path(f"/sys/kernel/debug/block/{disk.name}/sched/{file}").read_text()


def state(disk: ModelDisk | NullBlk) -> dict[str, str]:
    """The leaf's state by name."""
    return dict(line.split() for line in debug(disk, "state").splitlines())


def groups(disk: ModelDisk) -> dict[str, dict[str, str]]:
    """The leaf's groups by path, in the order of the file."""
    found = {}
    for line in debug(disk, "groups").splitlines():
        path, *pairs = line.split()
        found[path] = dict(pair.split("=") for pair in pairs)
    return found


def reads(disk: ModelDisk) -> tuple[int, int]:
    """Read requests and read merges so far."""
    words = (scheduler.queue(disk.name).parent / "stat").read_text().split()
    return int(words[0]), int(words[1])


# Of io.sutro.stat's rlat, as the ABI has them: where the buckets of reads begin.
RLAT_FROM_NS = [0, *(half << n - 1 for n in range(14, 33) for half in (2, 3)), 1 << 33]
ACTIVE = Path("/sys/fs/cgroup/io.sutro.active")


def rlat(text: str, devno: str) -> list[int]:
    """How many reads fell into each bucket, of one disk in an io.sutro.stat."""
    for line in text.splitlines():
        number, *pairs = line.split()
        if number == devno:
            (found,) = (pair for pair in pairs if pair.startswith("rlat="))
            return [int(count) for count in found.removeprefix("rlat=").split(",")]
    return [0] * len(RLAT_FROM_NS)


def rlat_percentile(counts: list[int], percent: float) -> tuple[float, float]:
    """The bounds, in ns, of the bucket with a percentile of the reads."""
    below = list(itertools.accumulate(counts))
    bucket = next(n for n, nr in enumerate(below) if nr and nr >= percent / 100 * below[-1])
    return RLAT_FROM_NS[bucket], (*RLAT_FROM_NS, float("inf"))[bucket + 1]


def active(disk: ModelDisk) -> dict[str, str]:
    """io.sutro.active of one disk: the line of each cgroup, by id."""
    lines = [line.split(" ", 2) for line in ACTIVE.read_text().splitlines()]
    found = [(cgroup, rest) for number, cgroup, rest in lines if number == disk.devno]
    assert len(dict(found)) == len(found), f"a cgroup came twice: {found}"
    return dict(found)
