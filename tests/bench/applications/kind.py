# SPDX-License-Identifier: LGPL-2.1-or-later
"""The bench of applications: a row for each scheduler beside each competitor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rig.result import Result, failed

from bench.applications import measure
from bench.applications.run import Run, runs
from bench.applications.scenario import FLOOR, SHIPPED, Book, Scenario
from bench.judge import TROUBLE, Say
from bench.program import Kind, Options
from bench.show import number, table

HEADS = ("beside", "scheduler", "per s", "retained", "kept", "P99 ms", "P99 ratio", "its MB/s",
         "other MB/s", "disk busy", "cpu idle")  # fmt: skip
COLUMNS = ("per_s", "retained", "kept", "p99_ms", "p99_ratio", "database_mbps", "competitor_mbps",
           "disk_busy", "cpu_idle")  # fmt: skip


def results(book: Book, options: Options, say: Say) -> Iterator[list[Result]]:
    """The results of each scenario: alone, then beside each competitor when its rounds are over."""
    for scenario in book.runs():
        try:
            yield from _judged(scenario, runs(scenario, say))
        except TROUBLE as error:
            yield [failed(scenario.name, FLOOR, error)]


def _judged(scenario: Scenario, seen: Iterator[Run]) -> Iterator[list[Result]]:
    alone = next(seen)
    yield list(measure.alone_results(scenario, alone))
    mine: list[Run] = []
    for run in seen:
        mine.append(run)
        if len(mine) == scenario.rounds * len(scenario.schedulers):
            yield list(measure.results(scenario, run.beside, mine, alone))
            mine = []


def show(found: Sequence[Result]) -> None:
    """A row for each scheduler."""
    rows: dict[tuple[object, str], dict[str, str]] = {}
    for one in found:
        if "beside" in one.detail and "why" not in one.detail:
            row = rows.setdefault((one.detail["beside"] or "alone", one.scheduler), {})
            row[one.metric] = number(one.value)
    if rows:
        cells = [
            [str(beside), scheduler, *(row.get(column, "") for column in COLUMNS)]
            for (beside, scheduler), row in rows.items()
        ]
        table(HEADS, cells)
    missed = {(r.scheduler, r.detail.get("beside")) for r in found if r.counts and not r.met}
    for one in found:
        if one.detail.get("explanation") and (one.scheduler, one.detail["beside"]) in missed:
            print(f"  sutrod beside {one.detail['beside']}, {one.scheduler}:")
            for line in str(one.detail["explanation"]).splitlines():
                print(f"    {line}")


KIND = Kind(Book, SHIPPED, results, show)
