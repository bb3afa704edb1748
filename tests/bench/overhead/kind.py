# SPDX-License-Identifier: LGPL-2.1-or-later
"""The bench of overhead: numbers of every case as fio tables, judged against other schedulers."""

from argparse import ArgumentParser
from collections.abc import Iterator, Sequence

from rig.result import Result, failed

from bench.judge import TROUBLE, Say, verdicts
from bench.overhead.measure import numbers
from bench.overhead.plot import draw
from bench.overhead.run import run
from bench.overhead.scenario import MACHINES, SHIPPED, Book, Scenario, Striped
from bench.overhead.striped import measured
from bench.program import Kind, Options
from bench.show import table

# A column: its heading, the metric, a factor, and how it is written.
COLUMNS = (
    ("MB/s read", "mbps_read", 1, ".0f"), ("write", "mbps_write", 1, ".0f"),
    ("IOPS", "iops", 1, ".0f"), ("us/IO", "time_us", 1, ".2f"), ("usr%", "usr", 100, ".0f"),
    ("sys%", "sys", 100, ".0f"), ("csw/1000", "switches", 1, ".1f"),
    ("merged%", "merged", 100, ".0f"), ("idle%", "idle", 100, ".0f"),
    ("instr/IO", "instructions", 1, ".0f"), ("bytes", "bytes", 1, ".0f"),
    ("MB/s", "mbps", 1, ".1f"), ("busy%", "busy", 100, ".1f"),
)  # fmt: skip
# The one whose spread is shown, and the difference to none: the first that there is.
LEADING = ("instructions", "iops", "mbps")


def results(book: Book, options: Options, say: Say) -> Iterator[list[Result]]:
    """Numbers and verdicts, case by case."""
    for scenario in book.on(options.machine).runs():
        if isinstance(scenario, Striped):
            yield from _stripes(scenario, say)
        else:
            yield from _cases(scenario, say)


def _cases(scenario: Scenario, say: Say) -> Iterator[list[Result]]:
    for case in scenario.cases():
        try:
            found = list(numbers(case, run(case, scenario.schedulers, say)))
        except TROUBLE as error:
            yield [failed(case.name, "sutro", error)]
        else:
            yield [*found, *verdicts(case.name, case.goal, found)]


def _stripes(scenario: Striped, say: Say) -> Iterator[list[Result]]:
    try:
        for case, found in measured(scenario, say):
            yield [*found, *verdicts(case.name, case.goal, found)]
    except TROUBLE as error:
        yield [failed(scenario.name, "sutro", error)]


def show(found: Sequence[Result]) -> None:
    """A line for each scheduler."""
    cells = {(r.scheduler, r.metric): r for r in found if r.goal is None}
    columns = [column for column in COLUMNS if any(key[1] == column[1] for key in cells)]
    leading = [metric for metric in LEADING if any(key[1] == metric for key in cells)]
    if not leading:
        return
    zero = cells.get(("none", leading[0]))
    rows = []
    for name in dict.fromkeys(key[0] for key in cells):
        row = cells[name, leading[0]]
        texts = [
            f"{cells[name, metric].value * times:{form}}" for _, metric, times, form in columns
        ]
        more = f"{row.value / zero.value - 1:+.1%}" if zero else ""
        rows.append([name, *texts, str(row.detail["stdev_percent"]), more])
    print(f"  {found[0].scenario}")
    table(["", *(column[0] for column in columns), "+- %", "vs none"], rows)


def with_machine(parser: ArgumentParser) -> None:
    """The guest is one of several machines."""
    parser.add_argument("--machine", choices=MACHINES, required=True, help="what this guest is")


KIND = Kind(Book, SHIPPED, results, show, draw, with_machine)
