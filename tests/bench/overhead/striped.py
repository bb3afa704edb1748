# SPDX-License-Identifier: LGPL-2.1-or-later
"""dd on a stripe set: is it as fast as its members together, with the elevator and the daemon on?

    dd bs=1024k count=2048      on raid0 over model disks, through the page cache and past it
    none                        the members have no scheduler, sutrod is stopped
    sutro                       sutrod runs and has given them the elevator (`sutroctl use`)

They take turns, there and back. A run of dd is measured from its start to its end:

    mbps    10^6 bytes a second
    busy    the part of it for which the member that was least busy had requests; a member that
            idles while dd waits for the others makes it smaller

A number is the median of its runs.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from rig import scheduler as elevators
from rig.modeldisk import ModelDisk
from rig.result import Result
from rig.shell import run
from rig.stack import Stack

from bench.judge import Say, summed_up
from bench.overhead.run import abba
from bench.overhead.scenario import STRIPED_METRICS, Striped, StripedCase

SCHEDULERS = ("none", "sutro")
BS_KIB = 1024
WORDS = {
    "read": ("if={}", "of=/dev/null"),
    "write": ("if=/dev/zero", "of={}", "conv=fsync"),
    "read-direct": ("if={}", "of=/dev/null", "iflag=direct"),
    "write-direct": ("if=/dev/zero", "of={}", "oflag=direct"),
}
CACHES = Path("/proc/sys/vm/drop_caches")
# The part of a member that md uses for itself.
SPARE_MIB = 16


def measured(of: Striped, say: Say) -> Iterator[tuple[StripedCase, list[Result]]]:
    """The numbers of every case, from one stripe set."""
    names = [f"member{number}" for number in range(of.members)]
    size_mb = of.count * BS_KIB // 1024 // of.members + SPARE_MIB
    with ExitStack() as undo:
        elevators.stop_daemon()
        disks = [
            undo.enter_context(
                ModelDisk(name, str(of.disk["kind"]), {"size_mb": size_mb, **of.disk})
            )
            for name in names
        ]
        stack = undo.enter_context(Stack({disk.name: disk.node for disk in disks}))
        top = stack.add("md", "striped", names, level="raid0")
        for case in of.cases():
            runs: dict[str, list[tuple[float, float]]] = {name: [] for name in SCHEDULERS}
            for name in abba(SCHEDULERS, of.rounds):
                with elevators.chosen(name, names, top):
                    say(f"{case.name}: {name}")
                    runs[name].append(_dd(case, of.count, top, disks))
            yield case, list(_numbers(case, runs))


def _dd(case: StripedCase, count: int, top: str, disks: Sequence[ModelDisk]) -> tuple[float, float]:
    """Throughput of a run, and how busy the least busy member was."""
    CACHES.write_text("3")
    for disk in disks:
        disk.reset()
    began = time.monotonic_ns()
    run("dd", f"bs={BS_KIB}k", f"count={count}", *(word.format(top) for word in WORDS[case.dd]))
    took_ns = time.monotonic_ns() - began
    least_ns = min(disk.truth().total.busy_ns for disk in disks)
    return count * BS_KIB * 1024 * 1e3 / took_ns, least_ns / took_ns


def _numbers(
    case: StripedCase, runs: Mapping[str, Sequence[tuple[float, float]]]
) -> Iterator[Result]:
    for name, values in runs.items():
        for metric, column in zip(STRIPED_METRICS, zip(*values, strict=True), strict=True):
            yield summed_up(case.name, name, metric, column)
