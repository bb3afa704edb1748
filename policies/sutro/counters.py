# SPDX-License-Identifier: LGPL-2.1-or-later
"""Reads by latency of one unit: the word `rlat=` of io.sutro.stat.

The counters are read from the files, not over the bus: every user may read them, they cost the
daemon nothing, and they are there while no daemon runs. Documentation/ABI has their format. The
counters of a cgroup are its own, without those of the cgroups below it.
"""

import os
from collections.abc import Container, Iterator
from functools import cache
from itertools import accumulate
from pathlib import Path

# Of the machine; tests have one of their own.
ROOT = Path("/")

# The histogram of the kernel has half octaves, from 2^14 ns.
COUNTS = 40

# Reads by latency, in COUNTS half octaves, by folder of a cgroup and node of a leaf.
Latencies = dict[tuple[str, str], list[int]]


def _cgroups(folder: str) -> Iterator[str]:
    """The folders of a cgroup and of all below it, without those that are removed meanwhile.

    FileNotFoundError without the cgroup itself.
    """
    os.stat(folder)
    left = [folder]
    while left:
        yield (folder := left.pop())
        try:
            with os.scandir(folder) as entries:
                left += [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
        except FileNotFoundError:
            pass  # removed meanwhile


def _text(path: str) -> str:
    """The text of a kernel file; "" where there is none, as in a cgroup without the controller."""
    try:
        return Path(path).read_text("ascii", "replace")
    except OSError:
        return ""


def _latencies(line: str) -> list[int]:
    """The counts of the word `rlat=` in a line; [] without that word."""
    _, found, text = line.partition(" rlat=")
    numbers = text.partition(" ")[0].split(",")
    counts = [int(number) for number in numbers if number.isdecimal()]
    return (counts + [0] * COUNTS)[:COUNTS] if found else []


def _node(devno: str) -> str:
    """The node of a device number, from sysfs; of a device that has gone, its number."""
    try:
        target = os.readlink(ROOT / "sys/dev/block" / devno)
    except OSError:
        target = devno  # the device has gone, and its last line is still there
    return "/dev/" + os.path.basename(target).replace("!", "/")


def has_counters(cgroup: str) -> bool:
    """Whether the elevator counts for a cgroup; FileNotFoundError without the cgroup."""
    folder = f"{ROOT}/sys/fs/cgroup{cgroup}"
    os.stat(folder)
    return os.path.exists(folder + "/io.sutro.stat")


def latencies(cgroup: str, nodes: Container[str]) -> Latencies:
    """Reads by latency of a cgroup and of those below it, on some leaves.

    FileNotFoundError without the cgroup.
    """
    node_of = cache(_node)
    found: Latencies = {}
    for folder in _cgroups(f"{ROOT}/sys/fs/cgroup{cgroup}"):
        lines = _text(folder + "/io.sutro.stat").splitlines()
        for line in filter(None, lines):
            node, counts = node_of(line.partition(" ")[0]), _latencies(line)
            if node in nodes and counts:
                found[folder, node] = counts
    return found


def p99_us(now: Latencies, before: Latencies) -> int:
    """P99 of the reads between two readings: the end of its half octave; 0 without reads."""
    counts = [0] * COUNTS
    for where, mine in now.items():
        for number, count in enumerate(mine):
            old = before[where][number] if where in before else 0
            # A counter that fell began anew, with the scheduler of the leaf or after 2^32 reads.
            counts[number] += count - old if count >= old else count
    sums = list(accumulate(counts))
    if not sums[-1]:
        return 0
    number = next(n for n, count in enumerate(sums) if count >= 0.99 * sums[-1])
    return (1 << (14 + number // 2)) * (3 if number % 2 else 2) // 2000
