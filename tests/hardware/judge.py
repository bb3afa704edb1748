# SPDX-License-Identifier: LGPL-2.1-or-later
"""Results from the runs of an experiment: a record for each number, as tests/bench has them.

    mbps               10^6 bytes per second of all units; with `of`, of one
    share              part of a unit; `by` has its source, see below; `due` is that of the weights
    ratio              bytes of the first unit over those of the second; for equal jobs
    worst_share_error  largest |share / due - 1|, by bytes; for equal jobs
    account_error      largest |share by account / share by bytes - 1|; for equal jobs
    p99_us             P99 of the completion latency of a unit, by fio
    p99_vs_alone       P99 over that of the unit alone
    alone_or_entitled  the larger of: rate over that alone; share over due
    worst_2s           lowest rate in two seconds over the floor

A disk reports no device time of a cgroup. So a share comes from the best source that there is:

    account    device time that the elevator has charged: sutro and iocost
    bytes      equal jobs need equal device time for each byte
    progress   rate over the rate alone: the part of its work that a unit gets done
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from rig.result import Result, failed

from .experiment import OURS, Experiment, Goal
from .run import Run

Dict = dict[str, Any]

ACCOUNT, BYTES, PROGRESS = "account", "bytes", "progress"


class Comparison:
    """The runs of an experiment, which are added as they end.

    runs, failures: by scheduler; alone: runs of a unit alone; broken: why one of those failed.
    """

    def __init__(self, experiment: Experiment) -> None:
        self.experiment = experiment
        self.runs: dict[str, Run] = {}
        self.alone: dict[str, Run] = {}
        self.failures: dict[str, str] = {}
        self.broken = ""
        self._names = [group.name for group in experiment.group]

    # Shares

    def shares(self, run: Run, by: str) -> dict[str, float]:
        """Shares of all units by a source; empty where it has none."""
        if by == ACCOUNT:
            amounts = {name: float(run.account_ns(name) or 0) for name in self._names}
        elif by == BYTES:
            equal = self.experiment.has_equal_jobs
            amounts = {name: float(run.bytes(name)) if equal else 0.0 for name in self._names}
        else:
            amounts = {name: self._progress(run, name) for name in self._names}
        whole = sum(amounts.values())
        # An account is one of all units; a unit without bytes has the share 0.
        if not whole or (by == ACCOUNT and not all(amounts.values())):
            return {}
        return {name: amount / whole for name, amount in amounts.items()}

    def _progress(self, run: Run, name: str) -> float:
        alone = self.alone.get(name)
        return ratio(run.rate(name), alone.rate(name)) if alone and alone.rate(name) else 0.0

    def best_shares(self, run: Run) -> tuple[str, dict[str, float]]:
        """The best source, and its shares."""
        for by in (ACCOUNT, BYTES, PROGRESS):
            if shares := self.shares(run, by):
                return by, shares
        return "", {}

    # Metrics of goals

    def value(self, goal: Goal, run: Run) -> float:
        """A metric of a run; no number where there cannot be one."""
        found: float = getattr(self, goal.metric)(run, goal.of)
        if goal.against:
            other = self.runs.get(goal.against)
            found = ratio(found, getattr(self, goal.metric)(other, goal.of)) if other else math.nan
        return found

    def ratio(self, run: Run, of: str) -> float:
        """Of the first two units."""
        return ratio(run.bytes(self._names[0]), run.bytes(self._names[1]))

    def worst_share_error(self, run: Run, of: str) -> float:
        """Against the weights."""
        return _worst(self.shares(run, BYTES), self.experiment.entitled)

    def share(self, run: Run, of: str) -> float:
        """By the best source."""
        return self.best_shares(run)[1].get(of, math.nan)

    def mbps(self, run: Run, of: str) -> float:
        """Of all units, or of one."""
        return (run.rate(of) if of else run.total()) / 1e6

    def p99_vs_alone(self, run: Run, of: str) -> float:
        """No number if one of the two is none."""
        alone = self.alone.get(of)
        return run.p99_us[of] / alone.p99_us[of] if alone and alone.p99_us[of] else math.nan

    def alone_or_entitled(self, run: Run, of: str) -> float:
        """A unit gets all that it can use, or its share."""
        share = self.share(run, of) / self.experiment.entitled[of]
        speed = self._progress(run, of)
        return speed if math.isnan(share) else max(speed, share)

    def worst_2s(self, run: Run, of: str) -> float:
        """Against the floor, a part of the rate alone."""
        floor = floors(self.experiment, self.alone).get(of)
        return run.worst_rate(of) / floor if floor else math.nan

    # Results

    def results(self) -> Iterator[Result]:
        """All numbers of each scheduler, then the goals, then failures."""
        name = self.experiment.name
        for scheduler, run in self.runs.items():
            for metric, value, detail in self._numbers(run):
                yield Result(name, scheduler, metric, value, None, detail)
        for goal in self.experiment.goal:
            metric = f"{goal.metric}_vs_{goal.against}" if goal.against else goal.metric
            for scheduler, run in self.runs.items():
                if scheduler == goal.against or (goal.against and goal.against not in self.runs):
                    continue
                detail = {"of": goal.of} if goal.of else {}
                if goal.metric == "share":
                    detail["by"] = self.best_shares(run)[0]
                value = self.value(goal, run)
                yield Result(name, scheduler, metric, value, goal, detail, scheduler == OURS)
        for scheduler, why in self.failures.items():
            yield failed(name, scheduler, why, scheduler == OURS)

    def _numbers(self, run: Run) -> Iterator[tuple[str, float, Dict]]:
        """Metric, value and details."""
        window = {"from_s": run.samples[0].at_s, "to_s": run.samples[-1].at_s}
        yield "mbps", self.mbps(run, ""), {name: round(at, 3) for name, at in window.items()}
        by, shares = self.best_shares(run)
        for name in self._names:
            yield "mbps", self.mbps(run, name), {"of": name}
            if shares:
                due = round(self.experiment.entitled[name], 6)
                yield "share", shares[name], {"of": name, "by": by, "due": due}
            if not math.isnan(run.p99_us[name]):
                yield "p99_us", run.p99_us[name], {"of": name}
        account, bytes_ = self.shares(run, ACCOUNT), self.shares(run, BYTES)
        if account and bytes_ and all(bytes_.values()):
            yield "account_error", _worst(account, bytes_), {}


def floors(experiment: Experiment, alone: Mapping[str, Run]) -> dict[str, float]:
    """Bytes per second of the floor of each unit that has one."""
    return {
        group.name: group.floor * alone[group.name].rate(group.name)
        for group in experiment.group
        if group.floor and group.name in alone
    }


def ratio(first: float, second: float) -> float:
    """first over second; infinite if the second is nothing."""
    return first / second if second else math.inf


def _worst(shares: Mapping[str, float], due: Mapping[str, float]) -> float:
    return max((abs(shares[name] / due[name] - 1) for name in shares), default=math.nan)
