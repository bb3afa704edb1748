# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measure what schedulers cost inside the guest, print it as fio tables, and judge sutro."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from rig.result import Result

from bench.counted import TROUBLE, arguments, failed, program, show
from bench.overhead.measure import numbers, verdicts
from bench.overhead.plot import draw
from bench.overhead.run import Say, run
from bench.overhead.scenario import SHIPPED, Case, Scenario, Striped, load
from bench.overhead.striped import measured


def judged(
    scenario: Scenario | Striped, schedulers: Sequence[str], say: Say
) -> Iterator[list[Result]]:
    """Numbers and verdicts, case by case."""
    if isinstance(scenario, Striped):
        yield from _judged_stripes(scenario, say)
        return
    for case in scenario.cases():
        results = _judged_case(case, schedulers, say)
        show(case.name, results)
        yield results


def _judged_case(case: Case, schedulers: Sequence[str], say: Say) -> list[Result]:
    try:
        found = list(numbers(case, run(case, schedulers, say)))
    except TROUBLE as error:
        return failed(case.name, error, case.goal)
    return [*found, *verdicts(case.name, case.goal, found)]


def _judged_stripes(scenario: Striped, say: Say) -> Iterator[list[Result]]:
    try:
        for case, found in measured(scenario, say):
            results = [*found, *verdicts(case.name, case.goal, found)]
            show(case.name, results)
            yield results
    except TROUBLE as error:
        yield failed(scenario.name, error, scenario.goal)


if __name__ == "__main__":
    sys.exit(program(arguments("bench.overhead", __doc__, SHIPPED), load, judged, draw))
