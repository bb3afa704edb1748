# SPDX-License-Identifier: LGPL-2.1-or-later
"""Attacks on the daemon: a table of the times of setpoints and the daemon, judged by goals.

It runs in the build root, as root, with sutrod of this tree; ./lab bench attacks does that.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rig.result import Result, failed
from uml.attacks import SHIPPED, Book

from bench.attacks.run import attacked
from bench.judge import OURS, TROUBLE, Say
from bench.program import Kind, Options
from bench.show import number, table

COLUMNS = ("setpoint_ms", "kept", "cpu_percent", "rss_mib", "steps_per_s")


def results(book: Book, options: Options, say: Say) -> Iterator[list[Result]]:
    """Each attack on the daemon."""
    for one in book.bus:
        try:
            found = attacked(one.attack, one.measure_s, one.goal, say)
        except (*TROUBLE, AssertionError) as error:
            yield [failed(one.name, OURS, error)]
        else:
            yield [replace(result, scenario=one.name) for result in found]


def show(found: Sequence[Result]) -> None:
    """A line of numbers."""
    values = {result.metric: number(result.value) for result in found if "why" not in result.detail}
    if values:
        table(COLUMNS, [[values[name] for name in COLUMNS]])


KIND = Kind(Book, SHIPPED, results, show)
