# SPDX-License-Identifier: LGPL-2.1-or-later
"""Numbers of the windows of a case, and verdicts.

    instructions  of all programs, kernel threads and interrupts, for an I/O of 4 KiB. The guest
                  that counts advances its clock by 2 ns for each; idle time is left out
    added         those that none does not need
    time_us       elapsed for an I/O, less the time in which the rest of the system had the one CPU
    iops, mbps    I/Os of 4 KiB a second, and 10^6 bytes, also by direction
    usr, sys      of the jobs' CPU time, for the elapsed time
    switches      context switches for 1000 I/Os, of the whole system
    merged        I/Os that went into the request of another one
    idle          of the elapsed time

A number is the median of its windows.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import median

from rig.result import Result

from bench.judge import summed_up
from bench.overhead.run import SECTOR_BYTES, Count
from bench.overhead.scenario import BLOCK_BYTES, Case

# The clock of the guest that counts: `-icount shift=1`.
NS_PER_INSTRUCTION = 2


def ios(count: Count) -> float:
    """I/Os as the program made them, however they were merged."""
    return (count.read_sectors + count.write_sectors) * SECTOR_BYTES / BLOCK_BYTES


def elapsed_ns(count: Count) -> int:
    """Time that the jobs had."""
    return count.at_ns - count.others_ns


def mbps(sectors: int, count: Count) -> float:
    """10^6 bytes a second."""
    return sectors * SECTOR_BYTES * 1e3 / elapsed_ns(count)


METRICS: Mapping[str, Callable[[Count], float]] = {
    "instructions": lambda c: (c.busy_ns - c.others_ns) / NS_PER_INSTRUCTION / ios(c),
    "time_us": lambda c: elapsed_ns(c) / 1e3 / ios(c),
    "iops": lambda c: ios(c) * 1e9 / elapsed_ns(c),
    "mbps_read": lambda c: mbps(c.read_sectors, c),
    "mbps_write": lambda c: mbps(c.write_sectors, c),
    "usr": lambda c: c.user_us * 1e3 / elapsed_ns(c),
    "sys": lambda c: c.system_us * 1e3 / elapsed_ns(c),
    "switches": lambda c: 1000 * c.switches / ios(c),
    "merged": lambda c: 1 - (c.reads + c.writes) / ios(c),
    "idle": lambda c: max(1 - c.busy_ns / c.at_ns, 0),
}
# Two CPUs that the host emulates by its own clock have no instructions that could be counted.
COUNTED = ("instructions", "idle")


def numbers(case: Case, windows: Mapping[str, Sequence[Count]]) -> Iterator[Result]:
    """All metrics of all schedulers."""
    for name, counts in windows.items():
        if not all(ios(count) for count in counts):
            raise RuntimeError(f"{case.name}: {name}: no I/O within {case.of.window_ms} ms")
        if not case.of.is_counted():
            # Other tasks may have run on the other CPU.
            counts = [replace(count, others_ns=0) for count in counts]
        for metric, of in METRICS.items():
            if metric in COUNTED and not case.of.is_counted():
                continue
            yield summed_up(case.name, name, metric, [of(count) for count in counts])
        if case.of.is_counted() and name != "none" and "none" in windows:
            instructions = METRICS["instructions"]
            zero = median(instructions(count) for count in windows["none"])
            yield summed_up(case.name, name, "added", [instructions(c) - zero for c in counts])
