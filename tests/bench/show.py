# SPDX-License-Identifier: LGPL-2.1-or-later
"""The output of all kinds of bench: tables of numbers, and a line for each goal."""

import math
from collections.abc import Iterable, Sequence

from rig.result import Result

# Details that distinguish goals of one metric.
ABOUT = ("of", "beside", "at", "part", "state", "document")


def number(value: float) -> str:
    """A number with four digits; `never` if the event did not happen, `none` without a value."""
    if math.isnan(value):
        return "none"
    return f"{value:.4g}" if math.isfinite(value) else "never"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Columns: words to the left, numbers to the right; an empty row is an empty line."""
    rows = list(rows)
    columns = list(zip(heads, *(row for row in rows if row), strict=True))
    widths = [max(map(len, column)) for column in columns]
    left = [not any(cell[:1].isdigit() for cell in column[1:]) for column in columns]
    for row in (heads, *rows):
        cells = (
            cell.ljust(width) if words else cell.rjust(width)
            for cell, width, words in zip(row, widths, left, strict=False)
        )
        print(f"  {'  '.join(cells)}".rstrip())


def goals(results: Iterable[Result]) -> None:
    """A line for each goal with the values of all schedulers; then what could not be run."""
    results = list(results)
    lines: dict[str, list[Result]] = {}
    for result in results:
        if result.goal and "why" not in result.detail:
            about = (_text(key, result.detail[key]) for key in ABOUT if key in result.detail)
            what = " ".join([result.metric, *filter(None, about)])
            lines.setdefault(f"{what} {result.goal}", []).append(result)
    for what, mine in lines.items():
        judged = [result for result in mine if result.counts]
        verdict = "" if not judged else "met" if all(r.met for r in judged) else "MISSED"
        values = "  ".join(f"{result.scheduler} {number(result.value)}" for result in mine)
        print(f"  {verdict:7} {what}: {values}")
    for result in results:
        if "why" in result.detail:
            print(f"  FAILED  {result.scheduler}: {result.detail['why']}")
    print(end="", flush=True)


def _text(key: str, about: object) -> str:
    if key in ("part", "document"):
        return f"{key} {about}"
    return " ".join(map(str, about)) if isinstance(about, list | tuple) else str(about)
