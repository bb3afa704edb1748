# SPDX-License-Identifier: LGPL-2.1-or-later
"""Run scenarios under their schedulers, compare, print, and say whether the goals are met.

Metrics that compare runs of one scenario:

    fair_mbps            work * sum of entitlement * bytes per device time, over all groups: the
                         throughput with which the device would serve exact shares at the efficiency
                         seen. With equal jobs it is throughput_mbps; with unlike ones it does not
                         grow when a scheduler serves the cheap ones first
    throughput_vs_best   fair_mbps over that of the best scheduler that shares at all: one that was
                         given the weights and has at most half the worst share error of `none`
    throughput_vs_none   fair_mbps over that of `none`
    error_vs_best        worst share error over the smallest one of bfq and iocost
    p99_vs_alone         P99 of a group over what it is when only the group's jobs run
    alone_or_entitled    the larger of: bytes/s over what the group alone gets; share / entitlement
    speedup_vs_none      finish_s of `none` over this one's
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from lab.namespace import end_all
from lab.progress import LabError

from . import plan
from .measure import NAN, Run
from .scenario import Goal, Scenario

# Runs a plan on a machine: name of the run, plan, its result.
Machine = Callable[[str, dict], dict]
SHARING = ("bfq", "iocost", "sutro")
ALONE = ("p99_vs_alone", "alone_or_entitled")
BASED_ON_NONE = ("throughput_vs_none", "throughput_vs_best", "speedup_vs_none")
BETWEEN_SCHEDULERS = (*BASED_ON_NONE, "error_vs_best")
SHOWN_GROUPS = 6


class Comparison:
    """All runs of one scenario."""

    def __init__(self, scenario: Scenario, runs: dict[str, Run], alone: dict[str, Run]):
        self.scenario = scenario
        self.runs = runs
        self.alone = alone

    def value(self, goal: Goal, scheduler: str) -> float:
        """What a goal's metric is for a scheduler."""
        run = self.runs[scheduler]
        own = getattr(self, goal.metric, None)
        if own:
            return own(run, goal.of)
        metric = getattr(run, goal.metric)
        return metric(goal.of) if metric.__code__.co_argcount > 1 else metric()

    def fair_mbps(self, run: Run, of: tuple[str, ...] = ()) -> float:
        entitled = self.scenario.entitled(run.samples[-1].at_s)
        used = {group.name: run.used(group.name) for group in self.scenario.leaves()}
        served = [name for name, usage in used.items() if usage.time_ns]
        weight = sum(entitled[name] for name in served)
        if not weight:
            return NAN
        efficiency = sum(entitled[n] / weight * used[n].bytes / used[n].time_ns for n in served)
        return run.work() * efficiency * 1e3

    def throughput_vs_best(self, run: Run, of: tuple[str, ...]) -> float:
        others = [self.runs[name] for name in SHARING if name in self.runs]
        if "none" in self.runs:
            limit = self.runs["none"].worst_share_error() / 2
            others = [r for r in others if r is run or r.worst_share_error() <= limit]
        return self.fair_mbps(run) / max(self.fair_mbps(other) for other in [*others, run])

    def throughput_vs_none(self, run: Run, of: tuple[str, ...]) -> float:
        return self.fair_mbps(run) / self.fair_mbps(self.runs["none"])

    def error_vs_best(self, run: Run, of: tuple[str, ...]) -> float:
        others = [self.runs[name] for name in ("bfq", "iocost") if name in self.runs]
        return run.worst_share_error() / min(other.worst_share_error() for other in others)

    def p99_vs_alone(self, run: Run, of: tuple[str, ...]) -> float:
        return run.p99_us(of) / self.alone[run.scheduler].p99_us(of)

    def alone_or_entitled(self, run: Run, of: tuple[str, ...]) -> float:
        alone = self.alone[run.scheduler]
        speed = run.bytes(of[0]) / run.elapsed_s / (alone.bytes(of[0]) / alone.elapsed_s)
        entitled = self.scenario.entitled(run.samples[-1].at_s)[of[0]]
        return max(speed, run.shares()[of[0]] / entitled)

    def speedup_vs_none(self, run: Run, of: tuple[str, ...]) -> float:
        return self.runs["none"].finish_s() / run.finish_s()

    # ---- output ----

    def summary(self, run: Run) -> str:
        """One line about a run."""
        shares = run.shares()
        names = list(shares)[:SHOWN_GROUPS]
        told = " ".join(f"{name}={shares[name]:.4f}" for name in names)
        told += " ..." if len(shares) > len(names) else ""
        latencies = "; ".join(
            "/".join(_short(run.latency_us(name, p)) for p in (50, 99, 99.9)) for name in names[:2]
        )
        charge = run.charge_error()
        charged = "" if math.isnan(charge) else f" charged {charge:.2%} off"
        return (
            f"  {run.scheduler:7} share error {run.worst_share_error():8.2%} "
            f"Jain {run.jain():.4f} {run.throughput_mbps():8.2f} MB/s {run.iops():8.0f} IOPS "
            f"P50/99/99.9 us {latencies}{charged}  {told}"
        )

    def objects(self) -> list[dict]:
        """Everything as JSON objects: a summary of each run, then a goal of each scheduler."""
        found = []
        for name, run in self.runs.items():
            groups = list(run.shares())
            found.append(
                {
                    **self._head(name), "metric": "worst_share_error",
                    "value": _number(run.worst_share_error()), "goal": None, "met": None,
                    "summary": True, "jain": _number(run.jain()), "shares": run.shares(),
                    "share_errors": {k: _number(v) for k, v in run.share_errors().items()},
                    "charge_errors": {k: _number(v) for k, v in run.charge_errors().items()},
                    "throughput_mbps": _number(run.throughput_mbps()),
                    "fair_mbps": _number(self.fair_mbps(run)), "iops": _number(run.iops()),
                    "work": _number(run.work()),
                    "latency_us": {
                        g: {f"p{p:g}": _number(run.latency_us(g, p)) for p in (50, 99, 99.9)}
                        for g in groups
                    },
                }
            )  # fmt: skip
        for goal in self.scenario.goal:
            for name in self.runs:
                value = self.value(goal, name)
                judged = name in goal.schedulers
                found.append(
                    {
                        **self._head(name), "metric": goal.metric, "of": list(goal.of),
                        "value": _number(value), "goal": str(goal), "met": goal.met(value),
                        "judged": judged, "row": self.scenario.row,
                        "nr_requests": self.scenario.nr_requests,
                    }
                )  # fmt: skip
        return found

    def _head(self, scheduler: str) -> dict:
        return {"scenario": self.scenario.name, "scheduler": scheduler}


def run_all(
    scenarios: Iterable[Scenario], machine: Machine, say: Callable[[str], None], workers: int
) -> list[dict]:
    """Run scenarios, print each when all its runs are there; the JSON objects."""
    scenarios = list(scenarios)
    found: list[dict] = []
    with ThreadPoolExecutor(workers) as pool:
        futures = [_started(pool, scenario, machine) for scenario in scenarios]
        try:
            for number, (scenario, waiting) in enumerate(zip(scenarios, futures, strict=True), 1):
                say(f"bench: {number} of {len(scenarios)}: {scenario.name}: {len(waiting)} runs")
                try:
                    comparison = _gathered(scenario, waiting)
                except LabError as error:
                    print(f"{scenario.name}: {scenario.title}\n  FAILED  {error}", flush=True)
                    found.append(_failed(scenario, str(error)))
                    continue
                show(comparison)
                found += comparison.objects()
        except BaseException:
            # Who gave up does not wait for the machines that run.
            pool.shutdown(wait=False, cancel_futures=True)
            end_all()
            raise
    return found


def limited(scenario: Scenario, schedulers: tuple[str, ...]) -> Scenario:
    """A scenario under these schedulers only, without the goals that need others."""
    goals = tuple(goal for goal in scenario.goal if goal.metric not in BETWEEN_SCHEDULERS)
    return replace(scenario, schedulers=schedulers, goal=goals)


def needed(scenario: Scenario) -> list[tuple[str, str | None]]:
    """The runs of a scenario: scheduler, and the one group that runs alone."""
    metrics = {goal.metric for goal in scenario.goal}
    schedulers = list(scenario.schedulers)
    if metrics & set(BASED_ON_NONE) and "none" not in schedulers:
        schedulers.insert(0, "none")
    runs: list[tuple[str, str | None]] = [(scheduler, None) for scheduler in schedulers]
    if metrics & set(ALONE):
        group = scenario.alone or next(g.of[0] for g in scenario.goal if g.metric in ALONE)
        runs += [(scheduler, group) for scheduler in schedulers]
    return runs


def show(comparison: Comparison) -> None:
    """Print a scenario: a line for each run, a line for each goal."""
    scenario = comparison.scenario
    print(f"{scenario.name}: {scenario.title} (nr_requests {scenario.nr_requests})")
    for run in comparison.runs.values():
        print(comparison.summary(run))
    for goal in scenario.goal:
        values = {name: comparison.value(goal, name) for name in comparison.runs}
        judged = [name for name in values if name in goal.schedulers]
        met = all(goal.met(values[name]) for name in judged)
        told = "  ".join(f"{name} {value:.4g}" for name, value in values.items())
        what = " ".join([goal.metric, *goal.of])
        print(f"  {'met   ' if met else 'MISSED'}  {what} {goal}:  {told}", flush=True)


def all_met(objects: Iterable[dict]) -> bool:
    """True if there are goals and each is met by those it judges."""
    judged = [item for item in objects if item.get("judged")]
    return bool(judged) and all(item["met"] for item in judged)


def write_json(objects: list[dict], file: Path) -> None:
    """A list of objects, one per line."""
    lines = ",\n".join(json.dumps(item) for item in objects)
    file.write_text(f"[\n{lines}\n]\n")


def _started(
    pool: ThreadPoolExecutor, scenario: Scenario, machine: Machine
) -> dict[tuple[str, str | None], Future]:
    def measured(only: str | None) -> float:
        calibration = plan.calibration(scenario)
        if not calibration:
            return 0.0
        result = machine(
            f"{scenario.name}-{only or 'all'}-calibration", plan.make(calibration, "none")
        )
        return Run(calibration, "none", result).iops()

    def one(scheduler: str, only: str | None) -> Run:
        name = f"{scenario.name}-{scheduler}" + (f"-{only}-alone" if only else "")
        iops = measured(only) if scheduler == "iocost" else 0.0
        return Run(scenario, scheduler, machine(name, plan.make(scenario, scheduler, only, iops)))

    return {key: pool.submit(one, *key) for key in needed(scenario)}


def _gathered(scenario: Scenario, waiting: dict[tuple[str, str | None], Future]) -> Comparison:
    runs, alone = {}, {}
    for (scheduler, only), future in waiting.items():
        (alone if only else runs)[scheduler] = future.result()
    return Comparison(scenario, runs, alone)


def _failed(scenario: Scenario, why: str) -> dict:
    """A scenario that could not be run is a goal that is not met."""
    return {
        "scenario": scenario.name, "scheduler": "sutro", "metric": "run", "value": None,
        "goal": "to end well", "met": False, "judged": True, "row": scenario.row, "error": why,
    }  # fmt: skip


def _number(value: float) -> float | None:
    """JSON knows no infinity and no NaN."""
    return round(value, 6) if math.isfinite(value) else None


def _short(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.0f}"
