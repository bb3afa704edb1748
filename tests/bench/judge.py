# SPDX-License-Identifier: LGPL-2.1-or-later
"""From measured numbers to verdicts, for all kinds of bench."""

import math
from collections.abc import Callable, Iterator, Sequence
from statistics import median, stdev

from rig.result import Goal, Result
from rig.shell import CommandError

OURS = "sutro"
# Errors that fail a case and are no mistake of the bench.
TROUBLE = (CommandError, OSError, RuntimeError, TimeoutError, ValueError)

Say = Callable[[str], None]


def summed_up(case: str, scheduler: str, metric: str, values: Sequence[float]) -> Result:
    """The median of a metric's windows; `stdev_percent` is their standard deviation."""
    value = median(values)
    spread = stdev(values) / abs(value) * 100 if len(values) > 1 and value else 0.0
    return Result(case, scheduler, metric, value, None, {"stdev_percent": round(spread, 2)})


def ratio(first: float, second: float) -> float:
    """first over second; infinite if the second is nothing."""
    return first / second if second else math.inf


def verdicts(case: str, goals: Sequence[Goal], found: Sequence[Result]) -> Iterator[Result]:
    """Goals of sutro against another scheduler, where both were run."""
    values = {(result.metric, result.scheduler): result.value for result in found}
    for goal in goals:
        ours = values.get((goal.metric, OURS))
        theirs = values.get((goal.metric, goal.against or OURS))
        if goal.against is None or ours is None or theirs is None:
            continue
        detail = {"ours": round(ours, 3), "theirs": round(theirs, 3)}
        metric = f"{goal.metric}_vs_{goal.against}"
        yield Result(case, OURS, metric, ratio(ours, theirs), goal, detail)


def bounds(goals: Sequence[Goal], scheduler: str) -> dict[str, Goal]:
    """Goals that are no comparison, by metric, if they are for this scheduler."""
    return {goal.metric: goal for goal in goals if not goal.against and scheduler == OURS}
