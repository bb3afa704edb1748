# SPDX-License-Identifier: LGPL-2.1-or-later
"""The table of databases in Documentation/results.md, out of the JSON of one or several runs.

    python3 -m bench.applications.page ../Documentation/results.md COMMIT DATE FILE.json...

in tests/ writes it between the two marks in the page and leaves the rest as it is. COMMIT and DATE
are those of the runs. A goal that is missed is bold.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from bench.applications.scenario import FLOOR, LATENCY, SCHEDULERS, SHIPPED, Book, Scenario
from bench.read import load
from bench.show import number

BEGIN, END = "<!-- begin of applications -->", "<!-- end of applications -->"
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
}
Object = Mapping[str, object]


def read(files: Iterable[Path]) -> list[Object]:
    """The objects of JSON files; of those about the same thing the last one counts."""
    found: dict[tuple, Object] = {}
    for file in files:
        for one in json.loads(file.read_text()):
            if "beside" in one:
                keys = ("scenario", "scheduler", "metric", "beside")
                found[tuple(one[key] for key in keys)] = one
    return list(found.values())


def replaced(page: str, text: str) -> str:
    """The page with this text between its marks."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no {BEGIN!r} and {END!r}")
    return f"{before}{begin}\n{text}{end}{after}"


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
    """Three digits are enough; `never` for what did not come about."""
    if not isinstance(value, int | float):
        return "never"
    return number(float(f"{value:.3g}"))


def main(words: Sequence[str]) -> int:
    """Put the table of JSON files into a page."""
    if len(words) < 4:
        print("usage: bench.applications.page PAGE COMMIT DATE JSON...", file=sys.stderr)
        return 2
    page, commit, date, *files = words
    text = table(read(map(Path, files)), load(Book, SHIPPED).scenario)
    text = f"Commit {commit}, {date}:\n\n{text}"
    Path(page).write_text(replaced(Path(page).read_text(), text))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
