# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a run delivered: measured values, the goals they are judged by, the table and the JSON.

A result is one number: what was measured, of what, under which scheduler. It carries a goal if the
scenario states one for that metric and scheduler; a result without a goal is shown, not judged.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Goal:
    """Bounds of a metric; either may be open."""

    metric: str
    min: float | None = None
    max: float | None = None

    def met(self, value: float) -> bool:
        """True if the value lies within the bounds; a value that is no number never does."""
        if math.isnan(value):
            return False
        low = self.min is None or value >= self.min
        high = self.max is None or value <= self.max
        return low and high

    def __str__(self) -> str:
        if self.min is not None and self.max is not None:
            return f"{self.min:g} to {self.max:g}"
        return f">= {self.min:g}" if self.min is not None else f"<= {self.max:g}"


@dataclass(frozen=True)
class Result:
    """One measured number, judged if it has a goal."""

    scenario: str
    scheduler: str
    metric: str
    value: float
    goal: Goal | None = None
    detail: dict[str, object] = field(default_factory=dict)

    @property
    def met(self) -> bool | None:
        """Whether the goal is met; None without a goal."""
        return None if self.goal is None else self.goal.met(self.value)

    def as_object(self) -> dict[str, object]:
        """The JSON object of this result. A value that never came about (infinity) is null."""
        value = round(self.value, 4) if math.isfinite(self.value) else None
        flat = {key: item for key, item in asdict(self).items() if key not in ("goal", "detail")}
        goal = str(self.goal) if self.goal else None
        return {**flat, "value": value, "goal": goal, "met": self.met, **self.detail}


def write_json(results: Iterable[Result], file: str | Path) -> None:
    """Write results as a JSON list, an object for each."""
    Path(file).write_text(json.dumps([result.as_object() for result in results], indent=1) + "\n")


def all_met(results: Iterable[Result]) -> bool:
    """True if there are goals at all and each is met."""
    judged = [result for result in results if result.goal]
    return bool(judged) and all(result.met for result in judged)


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table; an empty row is a line between sections."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, box=SIMPLE_HEAD, title_justify="left", pad_edge=False)
    for column in columns:
        # Words to the left, numbers to the right.
        left = column in ("scenario", "stack", "scheduler", "unit", "metric", "goal", "met", "of")
        table.add_column(column, justify="left" if left else "right", no_wrap=True)
    for row in rows:
        if row:
            table.add_row(*row)
        else:
            table.add_section()
    # The output may be a pipe, whose width nobody knows: as wide as the table needs.
    console = Console(width=200, highlight=False)
    console.print(table)
