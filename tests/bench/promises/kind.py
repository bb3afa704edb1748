# SPDX-License-Identifier: LGPL-2.1-or-later
"""The bench of promises: stack by stack, and the cost of the daemon."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from rig.result import Result, failed

from bench.judge import TROUBLE, Say
from bench.program import Kind, Options
from bench.promises.measure import judge
from bench.promises.overhead import overhead
from bench.promises.run import contests
from bench.promises.scenario import SHIPPED, Book, Scenario


def results(book: Book, options: Options, say: Say) -> Iterator[list[Result]]:
    """The results of each scenario, as it ends."""
    scenarios = [one for one in book.runs() if isinstance(one, Scenario)]
    for _, group in groupby(scenarios, key=lambda scenario: scenario.stack):
        for contest in contests(list(group), say):
            yield list(judge(contest))
    for spec in book.overhead:
        try:
            yield list(overhead(spec, say))
        except TROUBLE as error:
            yield [failed(spec.name, "sutro", error)]


def show(found: Sequence[Result]) -> None:
    """The rates of units, and whether disks and CPU were fit for the measurement."""
    for name in dict.fromkeys(result.scheduler for result in found):
        mine = [result for result in found if result.scheduler == name]
        got = [f"{r.detail['of']} {r.value:.2f}{_floor(r)}" for r in mine if r.metric == "mbps"]
        fit = [f"{r.metric} {r.value:.0%}" for r in mine if r.metric in ("cpu_idle", "disk_busy")]
        if got:
            print(f"  {name:8} MB/s {', '.join(got)}; {', '.join(fit)}")


def _floor(result: Result) -> str:
    """Its floor in brackets."""
    return f" (floor {result.detail['floor_mbps']:.2f})" if "floor_mbps" in result.detail else ""


KIND = Kind(Book, SHIPPED, results, show)
