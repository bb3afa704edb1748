# SPDX-License-Identifier: LGPL-2.1-or-later
"""Numbers of a run, and whether they meet the goals of a scenario.

| metric | of | meaning |
| --- | --- | --- |
| hold_s | promised | from when all are there to the first half second with 97 % of the floor |
| worst_2s | promised | the worst two seconds over the floor, while it should hold |
| return_s | one that returns | from its first request to the first half second with 97 % |
| again_s | promised | the same from when the disks' numbers changed |
| reported_s | promised | from there, or when all are there, to a PromiseChanged with `state` |
| reports | promised | how many PromiseChanged with `state` there were |
| rest_share | promised | its rate over the part of C that more important floors leave |
| others_while_idle | one that pauses | the rate of the others meanwhile over C |
| aggregate_vs_without | | the rate of all units over that without floors and daemon |
| writes | | weights that the daemon wrote while the run was measured |

A floor should hold GRACE_S after it began: 3 s after all are there or the floor changed, 5 s after
a disk changed, 1 s after its unit returned. A moved hot spot is no excuse.

Completed requests count, not submitted ones. `io.stat` counts a request when it is sent, and a fio
job has iodepth requests in flight while it runs. So the completed bytes are the sent bytes less
these, and at least 0. Example: 32 requests of 256 KiB are 8 MiB; a unit that begins has sent 8 MiB
at once, and then sends one request for each completion.
"""

import math
from collections.abc import Iterator, Mapping

from rig.result import Result, failed
from rig.unit import PREFIX

from bench.promises.run import Contest, Happened, Run
from bench.promises.scenario import Goal

HOLDS = 0.97
HOLD_WINDOW_S = 0.5
WORST_WINDOW_S = 2.0
STEP_S = 0.05
GRACE_S = {"begin": 3.0, "floor": 3.0, "disk": 5.0, "return": 1.0}
# After a pause began, until the others can have filled the gap.
TAKEN_OVER_S = 0.5
CHANGED, WRITTEN = "PromiseChanged", "WeightChanged"


class Seen:
    """The measurements of a run, by unit and time."""

    def __init__(self, run: Run):
        self.run = run

    def _sent(self, unit: str, at_s: float) -> float:
        return self.run.sampler.total(("sent", unit), at_s)

    def done(self, unit: str, at_s: float) -> float:
        """Bytes that a unit has got so far."""
        began = [h.begin_s for h in self.returns(unit) if h.begin_s <= at_s]
        base = self._sent(unit, began[-1]) if began else 0.0
        in_flight = self.run.scenario.find(unit).in_flight
        return base + max(0.0, self._sent(unit, at_s) - base - in_flight)

    def rate(self, unit: str, from_s: float, to_s: float) -> float:
        """Bytes/s that a unit got in a window."""
        return (self.done(unit, to_s) - self.done(unit, from_s)) / (to_s - from_s)

    def aggregate(self, from_s: float, to_s: float) -> float:
        """Bytes/s that all units got in a window."""
        return sum(self.rate(spec.name, from_s, to_s) for spec in self.run.scenario.unit)

    # ---- what happened to a unit ----

    def returns(self, unit: str) -> list[Happened]:
        """When it was started again."""
        return [h for h in self.run.happened if unit in (*h.event.start, *h.event.thaw)]

    def pauses(self, unit: str) -> list[tuple[float, float]]:
        """The time from the stop of the unit to the request to return."""
        away = [h for h in self.run.happened if unit in (*h.event.stop, *h.event.freeze)]
        back = self.returns(unit)
        ends = [next((r.begin_s for r in back if r.begin_s > h.end_s), None) for h in away]
        return [(h.end_s, e or self.run.to_s) for h, e in zip(away, ends, strict=True)]

    def came_s(self, unit: str) -> float:
        """When it began, or last returned."""
        back = self.returns(unit)
        return self.run.sampler.came_s(unit, back[-1].begin_s if back else 0.0)

    def disk_changed_s(self) -> float | None:
        """When a disk's numbers last changed."""
        return max((h.end_s for h in self.run.happened if h.event.disk), default=None)

    def floor(self, unit: str, at_s: float) -> float:
        """The floor in force, in bytes/s."""
        part = self.run.scenario.find(unit).floor
        for one in self.run.happened:
            if unit in one.event.floor and one.end_s <= at_s:
                part = one.event.floor[unit]
        return (part or 0.0) * self.run.capacity[unit]

    # ---- does a floor hold ----

    def first_hold_s(self, unit: str, from_s: float) -> float:
        """From a moment to the first short window that has the floor; infinite if none has."""
        steps = math.floor((self.run.to_s - HOLD_WINDOW_S - from_s) / STEP_S) + 1
        for step in range(max(0, steps)):
            at_s = from_s + step * STEP_S
            if self.rate(unit, at_s, at_s + HOLD_WINDOW_S) >= HOLDS * self.floor(unit, at_s):
                return step * STEP_S
        return math.inf

    def should_hold(self, unit: str) -> Iterator[tuple[float, float]]:
        """The times at which it should: from some time after each change to the next one."""
        marks = [(self.run.from_s, self.run.from_s + GRACE_S["begin"])]
        for one in self.run.happened:
            event = one.event
            if unit in event.floor:
                marks.append((one.begin_s, one.end_s + GRACE_S["floor"]))
            if event.disk:
                marks.append((one.begin_s, one.end_s + GRACE_S["disk"]))
            if unit in (*event.stop, *event.freeze):
                marks.append((one.begin_s, math.inf))
            if unit in (*event.start, *event.thaw):
                came_s = self.run.sampler.came_s(unit, one.begin_s)
                marks.append((one.begin_s, came_s + GRACE_S["return"]))
        ends = [*(begin_s for begin_s, _ in marks[1:]), self.run.to_s]
        for (_, from_s), to_s in zip(marks, ends, strict=True):
            if from_s + WORST_WINDOW_S <= to_s:
                yield from_s, to_s

    def worst(self, unit: str) -> float:
        """The worst window over the floor; no number if there is none."""
        worst = math.inf
        for from_s, to_s in self.should_hold(unit):
            steps = math.floor((to_s - from_s - WORST_WINDOW_S) / STEP_S) + 1
            for step in range(steps):
                at_s = from_s + step * STEP_S
                got = self.rate(unit, at_s, at_s + WORST_WINDOW_S)
                worst = min(worst, got / self.floor(unit, at_s))
        return math.nan if worst == math.inf else worst

    # ---- the metrics that are more than one of these ----

    def rest_share(self, unit: str) -> float:
        """Its rate over the part that more important floors leave."""
        scenario, from_s = self.run.scenario, self.run.from_s + GRACE_S["begin"]
        mine = scenario.find(unit).importance or 0
        before = sum(s.floor or 0 for s in scenario.promised() if (s.importance or 0) > mine)
        rest = (1 - before) * self.run.capacity[unit]
        return self.rate(unit, from_s, self.run.to_s) / rest if rest > 0 else math.nan

    def others_while_idle(self, unit: str) -> float:
        """The rate of the others over C, in the worst of its pauses."""
        others = [spec.name for spec in self.run.scenario.unit if spec.name != unit]
        found = math.nan
        for from_s, to_s in self.pauses(unit):
            begin_s = from_s + TAKEN_OVER_S
            got = sum(self.rate(name, begin_s, to_s) for name in others)
            found = min(got / self.run.capacity[unit], found if found == found else math.inf)
        return found

    def reports(self, unit: str, state: str) -> list[float]:
        """The times at which a state of a unit's promise was reported."""
        name = f"{PREFIX}{unit}.service"
        signals = [s for s in self.run.signals if s.member == CHANGED and len(s.arguments) > 3]
        return [s.at_s for s in signals if s.arguments[0] == name and s.arguments[3] == state]

    def reported_s(self, unit: str, state: str) -> float:
        """The time until the state was reported; 0 if that was before all units were there."""
        changed_s = self.disk_changed_s()
        begin_s = self.came_s(unit) if changed_s is None else changed_s
        asked_s = max(begin_s, self.run.from_s)
        times = [at_s for at_s in self.reports(unit, state) if at_s >= begin_s]
        return max(0.0, times[0] - asked_s) if times else math.inf

    def writes(self) -> float:
        """Weights written, by the signals of the daemon; at least the files with other contents."""
        run = self.run
        signals = [
            s for s in run.signals if s.member == WRITTEN and run.from_s <= s.at_s <= run.to_s
        ]
        return max(len(signals), run.rewritten)


def vs_without(run: Run, without: Run | None) -> float:
    """Aggregate bandwidth over that without floors, when both have settled."""
    if without is None:
        return math.nan
    settled_s = GRACE_S["begin"] if run.happened else 1.0
    base = Seen(without).aggregate(without.from_s + settled_s, without.to_s)
    got = Seen(run).aggregate(run.from_s + GRACE_S["begin"], run.to_s)
    return got / base if base else math.nan


def _values(goal: Goal, contest: Contest, run: Run) -> Iterator[tuple[str, float]]:
    """A goal's metric for the unit it is about, or for each unit that has it; "": for all."""
    seen = Seen(run)
    if goal.metric == "aggregate_vs_without":
        yield "", vs_without(run, contest.without)
    elif goal.metric == "writes":
        yield "", seen.writes()
    else:
        for spec in contest.scenario.promised():
            unit = spec.name
            if goal.of not in ("", unit):
                continue
            if goal.metric == "hold_s":
                yield unit, seen.first_hold_s(unit, run.from_s)
            elif goal.metric == "worst_2s":
                yield unit, seen.worst(unit)
            elif goal.metric == "return_s" and (goal.of or seen.returns(unit)):
                back = seen.returns(unit)
                yield unit, seen.first_hold_s(unit, seen.came_s(unit)) if back else math.nan
            elif goal.metric == "again_s":
                changed_s = seen.disk_changed_s()
                yield unit, math.nan if changed_s is None else seen.first_hold_s(unit, changed_s)
            elif goal.metric == "reported_s":
                yield unit, seen.reported_s(unit, goal.state)
            elif goal.metric == "reports":
                yield unit, len(seen.reports(unit, goal.state))
            elif goal.metric == "rest_share":
                yield unit, seen.rest_share(unit)
            elif goal.metric == "others_while_idle" and (goal.of or seen.pauses(unit)):
                yield unit, seen.others_while_idle(unit)


def judge(contest: Contest) -> Iterator[Result]:
    """All results of a scenario: the rate of each unit, then a row for each goal of each setup."""
    scenario = contest.scenario
    for name in scenario.schedulers:
        if name in contest.failed:
            yield failed(scenario.name, name, contest.failed[name], name == "sutro")
            continue
        run = contest.runs[name]
        yield from _summary(run)
        for goal in scenario.goal:
            for unit, value in _values(goal, contest, run):
                of = {"of": unit} if unit else {}
                goal_state = (
                    {"state": goal.state} if goal.metric in ("reported_s", "reports") else {}
                )
                about = {**of, **goal_state}
                judged = name == "sutro"
                yield Result(scenario.name, name, goal.metric, value, goal, about, judged)


def _summary(run: Run) -> Iterator[Result]:
    """The rates, and whether disks and CPU were fit for the measurement."""
    scenario, seen = run.scenario, Seen(run)
    from_s, to_s = run.from_s, run.to_s

    def result(metric: str, value: float, **detail: object) -> Result:
        return Result(scenario.name, run.scheduler, metric, value, None, detail)

    for spec in scenario.unit:
        about: Mapping[str, object] = {"of": spec.name, "weight": spec.weight}
        if spec.floor is not None:
            floor, capacity = seen.floor(spec.name, from_s), run.capacity[spec.name]
            about |= {"floor_mbps": round(floor / 1e6, 3)}
            about |= {"capacity_mbps": round(capacity / 1e6, 3)}
        yield result("mbps", seen.rate(spec.name, from_s, to_s) / 1e6, **about)
    busy = [run.sampler.disk_busy(leaf, from_s, to_s) for leaf in run.truth]
    yield result("disk_busy", max(busy))
    yield result("cpu_idle", run.sampler.cpu_idle(from_s, to_s))
