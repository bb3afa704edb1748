# SPDX-License-Identifier: LGPL-2.1-or-later
"""Numbers of runs, and whether they meet the requirements of a scenario.

| metric | meaning |
| --- | --- |
| per_s | transactions or operations per second of the database |
| p99_ms | 99th percentile of their latency |
| retained | per_s over that alone |
| p99_ratio | p99_ms over that alone |
| kept | per_s over the smaller of that alone and the part of it that the floor promises |
| database_mbps, competitor_mbps | bytes that they read and write on the device |
| disk_busy | part of the time that the busiest leaf worked |
| cpu_idle | idle part of the CPU: if it is small, the run has measured the CPU, not the disks |

Alone is under `none`. Each number is the median of the rounds, with their standard deviation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rig.result import Result, failed

from bench.applications.run import Run
from bench.applications.scenario import BASELINE, LATENCY, Scenario
from bench.judge import ratio, summed_up

COMPARED = ("retained", "p99_ratio", "kept")
# The metric whose result has what sutrod reported in the last round.
EXPLAINED = "per_s"


def numbers(run: Run, alone: Run, floor: float) -> dict[str, float]:
    """All metrics of a run."""
    per_s, p99_ms = run.served.per_s, run.served.p99_ms
    promised = floor * alone.served.per_s
    return {
        "per_s": per_s,
        "p99_ms": p99_ms,
        "retained": ratio(per_s, alone.served.per_s),
        "p99_ratio": ratio(p99_ms, alone.served.p99_ms),
        "kept": ratio(per_s, min(alone.served.per_s, promised)),
        "database_mbps": (run.database.read + run.database.written) / 1e6,
        "competitor_mbps": (run.competitor.read + run.competitor.written) / 1e6,
        "disk_busy": run.disk_busy,
        "cpu_idle": run.cpu_idle,
    }


def alone_results(scenario: Scenario, alone: Run) -> Iterator[Result]:
    """The result of the database alone."""
    for metric, value in numbers(alone, alone, scenario.floor).items():
        if metric not in COMPARED and metric != "competitor_mbps":
            yield Result(scenario.name, BASELINE, metric, value, detail={"beside": ""})


def results(scenario: Scenario, beside: str, runs: Sequence[Run], alone: Run) -> Iterator[Result]:
    """The results of all rounds beside a competitor."""
    for name in dict.fromkeys(run.scheduler for run in runs):
        mine = [run for run in runs if run.scheduler == name]
        about: dict[str, object] = {"beside": beside}
        broken = [run.why for run in mine if run.why]
        if broken:
            judged = any(goal.scheduler == name for goal in scenario.goal if goal.about(beside))
            one = failed(scenario.name, name, broken[0], judged)
            yield replace(one, detail={**one.detail, **about})
            continue
        rounds = [numbers(run, alone, scenario.floor) for run in mine]
        for metric in rounds[0]:
            if metric == "kept" and name == LATENCY:
                # Nothing is promised to it that could be kept.
                continue
            one = summed_up(scenario.name, name, metric, [each[metric] for each in rounds])
            explanation = mine[-1].explanation if metric == EXPLAINED else ""
            why = {"explanation": explanation} if explanation else {}
            one = replace(one, detail={**about, **one.detail, **why})
            goals = [g for g in scenario.goal if g.metric == metric and g.about(beside)]
            for goal in goals:
                yield replace(one, goal=goal, judged=goal.scheduler == name)
            if not goals:
                yield one
