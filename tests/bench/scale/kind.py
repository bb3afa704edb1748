# SPDX-License-Identifier: LGPL-2.1-or-later
"""The bench of scale: numbers of every size, then how they grew."""

from collections.abc import Iterator, Sequence

from rig.result import Result, failed

from bench.judge import TROUBLE, Say
from bench.overhead import kind as overhead
from bench.program import Kind, Options
from bench.scale.measure import GROWTH, case_numbers, verdicts
from bench.scale.plot import draw
from bench.scale.run import run
from bench.scale.scenario import SHIPPED, Book, Scenario
from bench.show import table


def results(book: Book, options: Options, say: Say) -> Iterator[list[Result]]:
    """Case by case, then growth. With a case that failed, no goal is met."""
    for scenario in book.on(options.machine).runs():
        yield from _sizes(scenario, say)


def _sizes(scenario: Scenario, say: Say) -> Iterator[list[Result]]:
    found: list[Result] = []
    for case in scenario.cases():
        try:
            numbers = list(case_numbers(case, run(case, scenario.schedulers, say)))
        except TROUBLE as error:
            yield [failed(case.name, "sutro", error)]
            return
        found += numbers
        yield numbers
    grown = list(verdicts(scenario, found))
    if grown:
        yield grown


def show(found: Sequence[Result]) -> None:
    """A line for each scheduler: of a size, or of growth."""
    overhead.show(found)
    cells = {(r.scheduler, r.metric): r.value for r in found if r.metric in GROWTH}
    names, metrics = (list(dict.fromkeys(key[part] for key in cells)) for part in (0, 1))
    if names:
        rows = [[name, *(f"{cells[name, metric]:.4f}" for metric in metrics)] for name in names]
        table(["growth", *metrics], rows)


KIND = Kind(Book, SHIPPED, results, show, draw, overhead.with_machine)
