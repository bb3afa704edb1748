# SPDX-License-Identifier: LGPL-2.1-or-later
"""Run fairness scenarios under their schedulers, compare, and print a line for each run and goal.

Metrics that compare runs of one scenario, besides goals `against` another scheduler:

    fair_mbps            work * sum of entitlement * bytes per device time, over all groups: the
                         throughput with which the device would serve exact shares at the efficiency
                         seen. With equal jobs it is throughput_mbps; with unlike ones it does not
                         grow when a scheduler serves the cheap ones first
    throughput_vs_best   fair_mbps over that of the best scheduler that shares at all: one that was
                         given the weights and has at most half the worst share error of `none`
    error_vs_best        worst share error over the smallest one of bfq and iocost
    p99_vs_alone         P99 of a group over its P99 when only the group's jobs run
    finish_vs_alone      finish_s over its value when only the group's jobs run
    alone_or_entitled    the larger of: bytes/s over those of the group alone; share / entitlement
    throughput_vs_protecting  throughput_mbps over that of the best scheduler with which
                         alone_or_entitled of the group is at least PROTECTING
    kept                 device time a second, before the last event, over the lesser of the group's
                         entitlement and its device time alone
    kept_vs_best         kept over the larger one of bfq and iocost; each counts as 1 at most,
                         because more belongs to others
    p99_vs_neighbour     P99 of a group over its P99 when other groups have the job `neighbour`
    fair_share_error     largest error of a group's device time in any phase against its entitlement
                         with the demand that it has alone under `none` (entitlement.py); a phase
                         is judged SETTLE_S after the change that begins it
    entitled_speed       bytes/s over entitlement * bytes/s of the group alone; for a group that
                         alone keeps the disk busy, by its I/O or by a journal's on its behalf

A goal `x baseline` compares with the run of the same scheduler after the commands of `baseline`.
With `runs`, the value is the worst one of the runs: the least for a goal with a lower bound, the
largest for one with an upper bound; with both, the one that is farthest from the middle. With
`median`, it is the one of which as many are worse as are better.
"""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from threading import Lock

from bench import show
from bench.judge import Say, ratio
from lab.namespace import end_all
from lab.progress import LabError
from rig.result import Result, failed

from . import entitlement, locks, plan
from .measure import NAN, Run
from .scenario import ALONE, BASELINE, DEMAND, NEIGHBOUR, Goal, Scenario

# Runs a plan on a machine: name of the run, plan, its result.
Machine = Callable[[str, dict], dict]
SHARING = ("bfq", "iocost", "sutro")
SHOWN_GROUPS = 6
SHOWN_LOCKS = 12
PERCENTILES = (50, 99, 99.9)
SETTLE_S = 2.0
# A scheduler protects a group that has at least this part of min(alone, entitled).
PROTECTING = 0.9
# A run: scheduler, and the one group whose jobs run, NEIGHBOUR, BASELINE, or None for all groups.
Key = tuple[str, str | None]


class Comparison:
    """All runs of one scenario."""

    def __init__(self, scenario: Scenario, runs: Mapping[Key, Run]):
        self.scenario = scenario
        self.runs = {scheduler: run for (scheduler, how), run in runs.items() if how is None}
        self.fair = {scheduler: run for (scheduler, how), run in runs.items() if how == NEIGHBOUR}
        self.plain = {scheduler: run for (scheduler, how), run in runs.items() if how == BASELINE}
        others = (None, NEIGHBOUR, BASELINE)
        self.alone = {key: run for key, run in runs.items() if key[1] not in others}

    def value(self, goal: Goal, scheduler: str) -> float:
        """The value of a goal's metric for a scheduler, or its ratio to that of another run."""
        value = self._value(goal, self.runs[scheduler])
        if not goal.against:
            return value
        plain = goal.against == BASELINE
        other = self.plain[scheduler] if plain else self.runs[goal.against]
        return ratio(value, self._value(goal, other))

    def _value(self, goal: Goal, run: Run) -> float:
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

    def error_vs_best(self, run: Run, of: tuple[str, ...]) -> float:
        others = [self.runs[name] for name in ("bfq", "iocost") if name in self.runs]
        return run.worst_share_error() / min(other.worst_share_error() for other in others)

    def p99_vs_alone(self, run: Run, of: tuple[str, ...]) -> float:
        return run.p99_us(of) / self.alone[run.scheduler, of[0]].p99_us(of)

    def finish_vs_alone(self, run: Run, of: tuple[str, ...]) -> float:
        return run.finish_s() / self.alone[run.scheduler, of[0]].finish_s()

    def alone_or_entitled(self, run: Run, of: tuple[str, ...]) -> float:
        alone = self.alone[run.scheduler, of[0]]
        # Without a request alone there is nothing to compare with, and the goal is missed.
        rate = alone.bytes(of[0]) / alone.elapsed_s or math.nan
        speed = run.bytes(of[0]) / run.elapsed_s / rate
        entitled = self.scenario.entitled(run.samples[-1].at_s)[of[0]]
        return max(speed, run.shares()[of[0]] / entitled)

    def throughput_vs_protecting(self, run: Run, of: tuple[str, ...]) -> float:
        protecting = (one for one in self.runs.values() if self._protects(one, of))
        return run.throughput_mbps() / max(one.throughput_mbps() for one in [*protecting, run])

    def _protects(self, run: Run, of: tuple[str, ...]) -> bool:
        return self.alone_or_entitled(run, of) >= PROTECTING

    def kept(self, run: Run, of: tuple[str, ...]) -> float:
        alone = self.alone[run.scheduler, of[0]].time_per_s(of[0])
        return ratio(run.time_per_s(of[0]), min(alone, self.scenario.entitled(0)[of[0]]))

    def kept_vs_best(self, run: Run, of: tuple[str, ...]) -> float:
        others = [self.runs[name] for name in ("bfq", "iocost") if name in self.runs]
        best = max(self.kept(other, of) for other in others)
        return ratio(min(self.kept(run, of), 1), min(best, 1))

    def p99_vs_neighbour(self, run: Run, of: tuple[str, ...]) -> float:
        return run.p99_us(of) / self.fair[run.scheduler].p99_us(of)

    def fair_share_errors(self, run: Run) -> dict[str, float]:
        """The largest error of each group in any phase."""
        found: dict[str, float] = {}
        for begin, end in run.phases(SETTLE_S):
            loads, elsewhere = self._loads(run, begin, end)
            length_s = run.samples[end].at_s - run.samples[begin].at_s
            due = entitlement.bounds(self.scenario, run.samples[begin].at_s, loads, elsewhere)
            for name, load in loads.items():
                error = entitlement.error(load.used, *due[name], load.request_s / length_s)
                found[name] = max(found.get(name, 0.0), error)
        return found

    def _loads(self, run: Run, begin: int, end: int) -> tuple[dict[str, entitlement.Load], float]:
        """Loads of the groups whose jobs run in a phase, and the device time of other groups: of
        requests that a group sent before it paused. How long these last depends on the others."""
        begin_s = run.samples[begin].at_s
        length_s = run.samples[end].at_s - begin_s
        loads, elsewhere = {}, 0.0
        for group in self.scenario.leaves():
            used = run.used(group.name, begin, end)
            alone = self.alone["none", group.name].used(group.name, begin, end)
            if not any(job.runs(begin_s) for job in group.job) or not alone.requests:
                elsewhere += used.time_ns / 1e9 / length_s
                continue
            depth = sum(int(job.fio.get("iodepth", 1)) for job in group.job)
            one = used if used.requests else alone
            loads[group.name] = entitlement.Load(
                alone=alone.time_ns / 1e9 / length_s,
                cycle_s=depth * length_s / alone.requests,
                used=used.time_ns / 1e9 / length_s,
                request_s=one.time_ns / 1e9 / one.requests,
            )
        return loads, elsewhere

    def fair_share_error(self, run: Run, of: tuple[str, ...] = ()) -> float:
        return max(self.fair_share_errors(run).values())

    def entitled_speed(self, run: Run, of: tuple[str, ...]) -> float:
        alone = self.alone[run.scheduler, of[0]]
        speed = run.bytes(of[0]) / run.elapsed_s / (alone.bytes(of[0]) / alone.elapsed_s)
        return speed / self.scenario.entitled(run.samples[-1].at_s)[of[0]]

    # ---- output ----

    def print(self) -> None:
        """A line for each run, and its further lines."""
        for run in self.runs.values():
            print(self.summary(run))
            if self.scenario.counts_locks:
                print(lock_classes(run))
            if self.scenario.series:
                rows = run.series()
                cells = [[show.number(value) for value in row.values()] for row in rows]
                show.table(list(rows[0]), cells)
        for run in self.plain.values():
            print(f"{self.summary(run)}  {BASELINE}")

    def summary(self, run: Run) -> str:
        """One line about a run."""
        shares = run.shares()
        names = list(shares)[:SHOWN_GROUPS]
        shown = " ".join(f"{name}={shares[name]:.4f}" for name in names)
        shown += " ..." if len(shares) > len(names) else ""
        latencies = "; ".join(
            "/".join(_short(run.latency_us(name, p)) for p in PERCENTILES) for name in names[:2]
        )
        charge = run.charge_error()
        finish = f"ended {run.finish_s():.2f} s " if self.scenario.until else ""
        charged = "" if math.isnan(charge) else f" charged {charge:.2%} off"
        return (
            f"  {run.scheduler:7} share error {run.worst_share_error():8.2%} "
            f"Jain {run.jain():.4f} {run.throughput_mbps():8.2f} MB/s {run.iops():8.0f} IOPS "
            f"{finish}P50/99/99.9 us {latencies}{charged}  {shown}"
        )

    def results(self) -> Iterator[Result]:
        """A summary of each run, then each goal with the values of all schedulers."""
        name = self.scenario.name
        for scheduler, run in self.runs.items():
            yield Result(name, scheduler, "worst_share_error", run.worst_share_error(), None, {
                "summary": True, "shares": run.shares(), "jain": number(run.jain()),
                "share_errors": numbers(run.share_errors()),
                "charge_errors": numbers(run.charge_errors()), "work": number(run.work()),
                "throughput_mbps": number(run.throughput_mbps()), "iops": number(run.iops()),
                "fair_mbps": number(self.fair_mbps(run)),
                "finish_s": number(run.finish_s()) if self.scenario.until else None,
                "series": run.series() if self.scenario.series else [],
                "locks": numbers(run.locks_per_request()),
                "latency_us": {
                    group: numbers({f"p{p:g}": run.latency_us(group, p) for p in PERCENTILES})
                    for group in run.shares()
                },
            })  # fmt: skip
        about = {"row": self.scenario.row, "nr_requests": self.scenario.nr_requests}
        for goal in self.scenario.goal:
            metric = f"{goal.metric}_vs_{goal.against}" if goal.against else goal.metric
            detail = {"of": list(goal.of), **about}
            for named in (goal.metric, metric):
                if named in self.scenario.document:
                    detail["document"] = self.scenario.document[named]
            for scheduler in self.runs:
                value, judged = self.value(goal, scheduler), scheduler in goal.schedulers
                yield Result(name, scheduler, metric, value, goal, detail, judged)


def run_all(
    scenarios: Iterable[Scenario], machine: Machine, say: Say, workers: int
) -> list[Result]:
    """Run scenarios, and print each when all its runs are there."""
    scenarios, machine = list(scenarios), once(machine)
    found: list[Result] = []
    with ThreadPoolExecutor(workers) as pool:
        futures = [
            [_started(pool, scenario, n, machine) for n in range(scenario.runs)]
            for scenario in scenarios
        ]
        try:
            for number, (scenario, waiting) in enumerate(zip(scenarios, futures, strict=True), 1):
                runs = sum(map(len, waiting))
                say(f"bench: {number} of {len(scenarios)}: {scenario.name}: {runs} runs")
                head = ": ".join(filter(None, (scenario.name, scenario.title)))
                print(f"{head} (nr_requests {scenario.nr_requests})")
                try:
                    comparisons = [
                        Comparison(scenario, {key: future.result() for key, future in one.items()})
                        for one in waiting
                    ]
                except LabError as error:
                    results = [failed(scenario.name, "sutro", error)]
                else:
                    for comparison in comparisons:
                        comparison.print()
                    results = of_runs(comparisons, median=scenario.median)
                show.goals(results)
                found += results
        except BaseException:
            # After a failure, nothing waits for the machines that run.
            pool.shutdown(wait=False, cancel_futures=True)
            end_all()
            raise
    return found


def of_runs(comparisons: Sequence[Comparison], *, median: bool) -> list[Result]:
    """The results of a scenario; of several runs, the worst for each goal or the one in the middle,
    and all values."""
    found = []
    for results in zip(*(comparison.results() for comparison in comparisons), strict=True):
        chosen = sorted(results, key=_distance)[len(results) // 2 if median else -1]
        if chosen.goal and len(results) > 1:
            values = [number(one.value) for one in results]
            chosen = replace(chosen, detail=chosen.detail | {"values": values})
        found.append(chosen)
    return found


def _distance(one: Result) -> float:
    """How bad a value is, for its goal."""
    goal = one.goal
    if goal is None:
        return 0.0
    if math.isnan(one.value):
        return math.inf
    if goal.min is None or goal.max is None:
        return one.value if goal.min is None else -one.value
    return abs(one.value - (goal.min + goal.max) / 2)


def once(machine: Machine) -> Machine:
    """A machine that runs each plan once: several scenarios compare with the same run."""
    done: dict[str, Future] = {}
    lock = Lock()

    def one(name: str, made: dict) -> dict:
        key = json.dumps(made)
        with lock:
            is_new = key not in done
            result = done.setdefault(key, Future())
        if is_new:
            try:
                result.set_result(machine(name, made))
            except BaseException as error:
                result.set_exception(error)
        return result.result()

    return one


def needed(scenario: Scenario) -> list[Key]:
    """The runs of a scenario."""
    metrics = {goal.metric for goal in scenario.goal}
    against = [goal.against for goal in scenario.goal if goal.against]
    others = [name for name in against if name != BASELINE]
    others += ["none"] * ("throughput_vs_best" in metrics)
    missing = [name for name in dict.fromkeys(others) if name not in scenario.schedulers]
    schedulers = [*missing, *scenario.schedulers]
    runs: list[Key] = [(scheduler, None) for scheduler in schedulers]
    for group in dict.fromkeys(goal.of[0] for goal in scenario.goal if goal.metric in ALONE):
        runs += [(scheduler, group) for scheduler in schedulers]
    if DEMAND in metrics:
        runs += [("none", group.name) for group in scenario.leaves()]
    if NEIGHBOUR in metrics:
        runs += [(scheduler, NEIGHBOUR) for scheduler in schedulers]
    if BASELINE in against:
        runs += [(scheduler, BASELINE) for scheduler in scenario.schedulers]
    return runs


def _started(
    pool: ThreadPoolExecutor, scenario: Scenario, number: int, machine: Machine
) -> dict[Key, Future]:
    """Start the runs of a number; each is compared with those of the same number."""
    numbered = scenario.numbered(number)
    first = f"{scenario.name}-{number}" if number else scenario.name

    def measured(only: str | None) -> float:
        calibration = plan.calibration(scenario)
        if not calibration:
            return 0.0
        found = machine(f"{first}-{only or 'all'}-calibration", plan.make(calibration, "none"))
        return Run(calibration, "none", found).iops()

    def one(scheduler: str, how: str | None) -> Run:
        name = "-".join(filter(None, (first, scheduler, how, "alone" if how else "")))
        run, only = numbered, how
        if how in (NEIGHBOUR, BASELINE):
            only, name = None, name.removesuffix("-alone")
        if how == NEIGHBOUR:
            run = numbered.beside_neighbour()
        iops = measured(only) if scheduler == "iocost" else 0.0
        made = plan.make(run, scheduler, only, iops, how == BASELINE)
        return Run(run, scheduler, machine(name, made))

    return {key: pool.submit(one, *key) for key in needed(scenario)}


def number(value: float) -> float | None:
    """JSON has no infinity and no NaN."""
    return round(value, 6) if math.isfinite(value) else None


def numbers(values: dict[str, float]) -> dict[str, float | None]:
    """The same of several."""
    return {name: number(value) for name, value in values.items()}


def lock_classes(run: Run) -> str:
    """One line about the locks of a run for a request: the scheduler's own, and the most taken."""
    counted = run.locks_per_request()
    mine = locks.own(run.scheduler, counted)
    rest = sorted((n, name) for name, n in counted.items() if name not in mine)
    first = [(name, n) for n, name in reversed(rest[-SHOWN_LOCKS:])]
    mine_shown, rest_shown = (
        " ".join(f"{name} {n:.4f}" for name, n in some) or "none"
        for some in (sorted(mine.items()), first)
    )
    return f"    own locks for a request: {mine_shown}; of others, the most: {rest_shown}"


def _short(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.0f}"
