# SPDX-License-Identifier: LGPL-2.1-or-later
"""The table of databases in Documentation/results.md: bench/report.py has the other ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from bench.applications.scenario import FLOOR, LATENCY, SCHEDULERS, Scenario
from bench.show import number

TITLES = {FLOOR: "Sutro, floor", LATENCY: "Sutro, latency target"}
ROWS = {
    "kept": "transactions or operations per second, against the promised ones",
    "retained": "... against alone",
    "p99_ratio": "P99, times its value alone",
    "competitor_mbps": "competitor, MB/s",
}
COMPETITORS = {
    "dd": "backup of the volume, `dd iflag=direct`",
    "tar": "backup of files, `tar`",
    "flood": "buffered writer, `dd`",
    "bounded": "buffered writer, `dd`, with `MemoryHigh=48M`",
}
Object = Mapping[str, object]


def table(objects: Sequence[Object], specs: Sequence[Scenario]) -> str:
    """The table of all scenarios that were run."""
    heads = ["database, and what it has alone", "beside", "figure"]
    heads += [TITLES.get(name, name) for name in SCHEDULERS]
    lines = [heads, ["---"] * len(heads)]
    for spec in specs:
        lines += _rows([one for one in objects if one["scenario"] == spec.name], spec)
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def _rows(mine: Sequence[Object], spec: Scenario) -> Iterator[list[str]]:
    """Rows of a scenario: some for each competitor."""
    alone = {str(one["metric"]): one["value"] for one in mine if one["beside"] == ""}
    if not alone:
        return
    about = f"{spec.title}: {_number(alone['per_s'])}/s, P99 {_number(alone['p99_ms'])} ms"
    for beside in spec.beside:
        here = [one for one in mine if one["beside"] == beside]
        competitor = COMPETITORS[beside]
        for metric, title in ROWS.items():
            cells = [_cell(here, metric, name) for name in SCHEDULERS]
            if any(cells):
                yield [about, competitor, title, *cells]
                about = competitor = ""


def _cell(here: Sequence[Object], metric: str, scheduler: str) -> str:
    """The value under a scheduler; bold if it misses a goal, `failed` if the run did."""
    for one in here:
        if one["scheduler"] == scheduler and "why" in one:
            return "**failed**"
        if (one["scheduler"], one["metric"]) == (scheduler, metric):
            text = _number(one["value"])
            return f"**{text}**" if one["judged"] and not one["met"] else text
    return ""


def _number(value: object) -> str:
    """A number with three digits; `never` for an event that did not happen."""
    if not isinstance(value, int | float):
        return "never"
    return number(float(f"{value:.3g}"))
