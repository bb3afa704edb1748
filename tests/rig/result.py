# SPDX-License-Identifier: LGPL-2.1-or-later
"""Results of a run: measured values, the goals they are judged by, and the JSON.

A result is one number, with its metric, its group or unit, and its scheduler. It carries a goal if
the scenario states one for that metric; a result without a goal is shown, not judged. A goal that
is stated for sutro may be shown for other schedulers, too; then it is not judged.
"""

import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

# METRIC [of NAME] BOUNDS [x SCHEDULER]
GOAL = re.compile(
    r"(?P<metric>\w+)(?: of (?P<of>\S+))? "
    r"(?:>= (?P<least>\S+)|<= (?P<most>\S+)|(?P<low>\S+) to (?P<high>\S+))"
    r"(?: x (?P<against>\S+))?"
)


@dataclass(frozen=True)
class Goal:
    """Bounds of a metric, or of its ratio to that of the scheduler `against`; one may be open."""

    metric: str
    min: float | None = None
    max: float | None = None
    against: str | None = None

    @staticmethod
    def parse(text: str) -> dict[str, object]:
        """The keys of a goal that is written as it is printed: `ratio 1.9 to 2.1`, `mbps >= 2`."""
        found = GOAL.fullmatch(text)
        if not found:
            raise ValueError(f"{text!r} is no goal such as 'ratio 1.9 to 2.1' or 'mbps >= 2 x bfq'")
        bounds = {"min": found["least"] or found["low"], "max": found["most"] or found["high"]}
        numbers = {key: float(word) for key, word in bounds.items() if word}
        return numbers | {key: found[key] for key in ("metric", "of", "against") if found[key]}

    def check(self) -> None:
        """Raise ValueError for a goal that bounds nothing."""
        if self.min is None and self.max is None:
            raise ValueError("needs min or max")

    def met(self, value: float) -> bool:
        """True if the value lies within the bounds; a value that is no number never does."""
        if math.isnan(value):
            return False
        low = self.min is None or value >= self.min
        high = self.max is None or value <= self.max
        return low and high

    def __str__(self) -> str:
        of = f" x {self.against}" if self.against else ""
        if self.min is not None and self.max is not None:
            return f"{self.min:g} to {self.max:g}{of}"
        return (f">= {self.min:g}" if self.min is not None else f"<= {self.max:g}") + of


@dataclass(frozen=True)
class Result:
    """One measured number, judged if it has a goal; `judged`: that goal is for its scheduler."""

    scenario: str
    scheduler: str
    metric: str
    value: float
    goal: Goal | None = None
    detail: dict[str, object] = field(default_factory=dict)
    judged: bool = True

    @property
    def met(self) -> bool | None:
        """Whether the goal is met; None without a goal."""
        return None if self.goal is None else self.goal.met(self.value)

    @property
    def counts(self) -> bool:
        """Whether the outcome of the bench depends on it."""
        return self.goal is not None and self.judged

    def as_object(self) -> dict[str, object]:
        """The JSON object of this result. A value that never came about (infinity) is null."""
        return {
            "scenario": self.scenario, "scheduler": self.scheduler, "metric": self.metric,
            "value": round(self.value, 6) if math.isfinite(self.value) else None,
            "goal": str(self.goal) if self.goal else None, "met": self.met,
            "judged": self.counts, **self.detail,
        }  # fmt: skip


def failed(scenario: str, scheduler: str, why: object, judged: bool = True) -> Result:
    """A scenario that could not be run to its end is a goal that is not met."""
    return Result(scenario, scheduler, "run", 0, Goal("run", min=1), {"why": str(why)}, judged)


def write_objects(objects: Iterable[dict], file: str | Path) -> None:
    """Write a JSON list, an object in each line."""
    lines = ",\n".join(json.dumps(one) for one in objects)
    Path(file).write_text(f"[\n{lines}\n]\n")


def write_json(results: Iterable[Result], file: str | Path) -> None:
    """Write results as a JSON list."""
    write_objects((result.as_object() for result in results), file)


def summary(objects: Iterable[dict]) -> tuple[str, int]:
    """The last line of a bench, and its exit status: 0 if there are goals and each is met."""
    judged = [one for one in objects if one["judged"]]
    met = sum(bool(one["met"]) for one in judged)
    return f"{met} of {len(judged)} goals met", 0 if judged and met == len(judged) else 1


def all_met(results: Iterable[Result]) -> bool:
    """True if there are goals at all and each is met."""
    return not summary([result.as_object() for result in results])[1]
