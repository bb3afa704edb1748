# SPDX-License-Identifier: LGPL-2.1-or-later
"""sutro-latency-guard: raises a unit until its P99 read latency target holds, and eases it later.

    unit = "db.service"
    path = "/dev/vg0/db"
    target = "10ms"
    raise = "Weight"          or ReadBandwidthMin, ReadIOPSMin
    min = "100"
    max = "5000"

Once a second step() reads the P99 of the unit's reads on the leaves of the device in that second,
and moves the level between min and max. It reads the files of the unit's cgroup and those below it,
so the daemon does not sample for the guard. The level goes up in proportion to the excess, because
requests are late, and down in small equal steps: the reverse of the window of TCP.

            p99/target
     raise   ------ 1.0   two samples in a row: level x p99/target, at least 1.25, at most 2
     hold
             ------ 0.8
     ease                 for `patience` seconds on end: level - (max - min) / 20

One sample over the target is an outlier: a second with few reads has no good P99. After a change
the next SETTLE_S samples are ignored, because the queues of the disks hold earlier requests.
Between 0.8 and 1.0 the level stays. A level that was eased and had to be raised again was too low,
and trying it again as soon would oscillate: each time the patience doubles, up to four minutes;
each step down that lasts halves it. A second without reads changes nothing: the weight or floor of
an idle unit costs other units nothing.

Example: target 10 ms, Weight 100..5000. Samples 24, 26 ms: 100 -> 200 (26/10 is more than 2). 3 s
later 15, 15 ms: -> 300. 9.1 ms: stays. When the other units end, 3 ms for 15 s: 300 -> 100, min.
"""

from dataclasses import dataclass, replace
from typing import Any, Self

from . import counters, fields, settings, values
from .errors import NoQueue, NoSuchPath
from .program import Program, console, log

# Two in a row are no outlier; a third would be a second more of waiting.
OVER_SAMPLES = 2
# The daemon's own loop and the requests on their way settle in less.
SETTLE_S = 3
# Factors of a step: the largest that does no harm if it is wrong, the least with an effect.
RAISE_MOST, RAISE_LEAST = 2.0, 1.25
# The width of the band in which nothing moves: more than P99 varies by itself.
EASE_BELOW = 0.8
EASE_STEPS = 20
PATIENCE_LEAST_S, PATIENCE_MOST_S = 15, 240

NOT_COUNTED = (
    "its cgroup has no io.sutro.stat, so no latency is known; load the module sutro and select it "
    "for the disks (sutroctl use)"
)
NOT_RUNNING = "it does not run, so no latency is known"
NO_PERCENTILE = "; the percentile is always P99: leave it out"
RAISED = ("Weight", "ReadBandwidthMin", "ReadIOPSMin")


@dataclass(frozen=True)
class Goal:
    """The target in us, and the bounds of the setting, in the unit of its key."""

    target_us: int
    least: int
    most: int


@dataclass(frozen=True)
class State:
    """The present level, in the unit of the key, and the samples that led to it.

    `over` and `calm_s` count samples in a row above the target and below the band; `settle_s` those
    still to be ignored; `eased`: the last move was down; `spent`: `most` is reached and was logged;
    `why` is the reason of the last step for the log, "" for none.
    """

    level: int
    over: int = 0
    calm_s: int = 0
    settle_s: int = 0
    patience_s: int = PATIENCE_LEAST_S
    eased: bool = False
    spent: bool = False
    why: str = ""


def step(goal: Goal, state: State, p99_us: int) -> State:
    """The state after one more sample of P99 in us; 0 is a second without reads."""
    state = replace(state, why="")
    if not p99_us:
        return replace(state, over=0, calm_s=0, settle_s=max(state.settle_s - 1, 0))
    if state.settle_s:
        return replace(state, settle_s=state.settle_s - 1)
    if p99_us > goal.target_us:
        state = replace(state, over=state.over + 1, calm_s=0)
        return _raise(goal, state, p99_us) if state.over >= OVER_SAMPLES else state
    state = replace(state, over=0, spent=False)
    if p99_us >= EASE_BELOW * goal.target_us:
        return replace(state, calm_s=0)
    state = replace(state, calm_s=state.calm_s + 1)
    return _ease(goal, state) if state.calm_s >= state.patience_s else state


def _ms(time_us: int) -> str:
    """A time in us as text."""
    return values.short("LatencyTarget", time_us)


def _raise(goal: Goal, state: State, p99_us: int) -> State:
    """The state after the target was missed: a higher level, up to the most."""
    is_over = f"P99 {_ms(p99_us)} is over {_ms(goal.target_us)}"
    if state.level == goal.most:
        why = "" if state.spent else f"{is_over}, and max is reached: no more can be done"
        return replace(state, spent=True, why=why)
    factor = min(max(p99_us / goal.target_us, RAISE_LEAST), RAISE_MOST)
    level = min(max(round(state.level * factor), state.level + 1), goal.most)
    patience_s = min(state.patience_s * 2, PATIENCE_MOST_S) if state.eased else state.patience_s
    return State(level, settle_s=SETTLE_S, patience_s=patience_s, why=is_over)


def _ease(goal: Goal, state: State) -> State:
    """The state after a time below the band: a lower level, down to the least."""
    if state.level == goal.least:
        return replace(state, calm_s=0, patience_s=PATIENCE_LEAST_S)
    level = max(state.level - max((goal.most - goal.least) // EASE_STEPS, 1), goal.least)
    patience_s = max(state.patience_s // 2, PATIENCE_LEAST_S) if state.eased else state.patience_s
    why = f"P99 below {_ms(round(EASE_BELOW * goal.target_us))} for {state.calm_s} s"
    return State(level, settle_s=SETTLE_S, patience_s=patience_s, eased=True, why=why)


class LatencyGuard(Program):
    """Takes a sample each second, and moves one number of one unit."""

    name = "sutro-latency-guard"
    about = "Raise a unit until its P99 read latency target holds, then give back."

    def __init__(self, unit: str, key: str, path: str, goal: Goal, dry_run: bool = False) -> None:
        super().__init__(dry_run)
        self.unit, self.key, self.path, self.goal = unit, key, path, goal
        self.guard = State(goal.least, why="min, to begin with")
        self._began = False
        self._blind = ""
        self._cgroup = ""
        self._reads: counters.Latencies | None = None

    @classmethod
    def load(cls, file: str, dry_run: bool) -> Self:
        """The program of a file; UsageError for a mistake in it."""
        return cls(*read(file), dry_run=dry_run)

    async def step(self) -> float:
        """Take a sample, and set the level that follows; return 1 s."""
        state = step(self.goal, self.guard, await self._sample()) if self._began else self.guard
        value = values.text(self.key, state.level)
        await self.state(self.unit, {(self.key, self.path): (value, state.why)})
        if state.why and state.level == self.guard.level and self._began:
            log(f"{self.unit}: {state.why}")
        self.guard, self._began = state, True
        return 1.0

    async def _sample(self) -> int:
        """P99 in us of the unit's reads on the leaves since the last sample, 0 without reads."""
        try:
            leaves = (await self.client.resolve(self.path))["leaves"]
        except (NoSuchPath, NoQueue) as error:
            self._complain(error.message)
            return 0
        before, self._reads = self._reads, await self._latencies(leaves)
        if before is None or self._reads is None:
            return 0
        return counters.p99_us(self._reads, before)

    async def _latencies(self, leaves: list[str]) -> counters.Latencies | None:
        """The counters of the unit; None while it does not run, or is not counted."""
        try:
            # A unit in another slice than before has left its old cgroup, which is removed.
            self._cgroup = self._cgroup or await self.client.control_group(self.unit)
            if not self._cgroup:
                self._complain(NOT_RUNNING)
                return None
            counted = counters.has_counters(self._cgroup)
            self._complain("" if counted else NOT_COUNTED)
            return counters.latencies(self._cgroup, leaves) if counted else None
        except FileNotFoundError:
            self._cgroup = ""
            self._complain(NOT_RUNNING)
            return None

    def _complain(self, what: str) -> None:
        """Log a reason once; "" ends it."""
        if what and what != self._blind:
            log(f"{self.unit}: {what}")
        self._blind = what


def read(file: str) -> tuple[str, str, str, Goal]:
    """Unit, key, path and goal of a file; UsageError for a mistake in it."""
    top = settings.load(file)
    unit, path = fields.unit(top), fields.path(top)
    if not path:
        raise top.wrong(
            "", "'path' is missing here: name the device whose reads the target is about"
        )
    key = fields.key(top, RAISED, "raise")
    text: dict[str, Any] = {name: top.take(name, str) for name in ("target", "min", "max")}
    target_us = fields.number(top, "target", "LatencyTarget", text["target"], NO_PERCENTILE)
    least, most = (fields.number(top, name, key, text[name]) for name in ("min", "max"))
    top.finish()
    if least >= most:
        raise top.wrong(
            "max",
            f"max = '{text['max']}' is not above min = '{text['min']}'; raise it, or lower min",
        )
    return unit, key, path, Goal(target_us, least, most)


main = console(LatencyGuard)
