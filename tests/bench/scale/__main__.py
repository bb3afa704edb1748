# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measure inside the guest how what schedulers cost grows, and judge sutro."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from rig.result import Result

from bench.counted import TROUBLE, arguments, failed, program, show
from bench.overhead.run import Say
from bench.scale.measure import case_numbers, verdicts
from bench.scale.plot import draw
from bench.scale.run import run
from bench.scale.scenario import SHIPPED, Scenario, load


def judged(scenario: Scenario, schedulers: Sequence[str], say: Say) -> Iterator[list[Result]]:
    """Numbers case by case, then how they grew. With a case that failed, no goal is met."""
    found: list[Result] = []
    for case in scenario.cases():
        try:
            results = list(case_numbers(case, run(case, schedulers, say)))
        except TROUBLE as error:
            yield failed(case.name, error, scenario.goal)
            return
        show(case.name, results)
        found += results
        yield results
    grown = list(verdicts(scenario, found))
    _show_growth(scenario, grown)
    yield grown


def _show_growth(scenario: Scenario, results: Sequence[Result]) -> None:
    print(f"\n{scenario.name}, from {scenario.sizes[0]} to {scenario.sizes[-1]}")
    for result in results:
        verdict = ""
        if result.goal:
            verdict = f"{'met' if result.met else 'MISSED'}, goal {result.goal}"
        print(f"  {result.scheduler:12}{result.metric:18}{result.value:12.4f}  {verdict}")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(program(arguments("bench.scale", __doc__, SHIPPED), load, judged, draw))
