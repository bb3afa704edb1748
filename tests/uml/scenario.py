# SPDX-License-Identifier: LGPL-2.1-or-later
"""Scenarios of `./lab bench fairness`: cgroups on a model disk. README.rst has the format."""

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, ClassVar, Self

from bench import book
from bench.read import Count, Has, Name, OneOf, OrOne, Positive, Range, Table, Weight, known
from bench.stacks import Model
from rig import result

SHIPPED = Path(__file__).with_name("fairness.toml")
SCHEDULERS = ("none", "mq-deadline", "kyber", "bfq", "iocost", "sutro")
# Metrics of one run; measure.py computes them. After these, those that compare runs (bench.py).
METRICS = (
    "ratio", "bandwidth_ratio", "share", "worst_share_error", "jain", "charge_error",
    "throughput_mbps", "iops", "work", "p99_us", "takeover_ms", "giveback_ms", "settle_s",
    "weight_ms", "finish_s", "locks", "all_locks", "least_busy", "owned", "reading",
)  # fmt: skip
# A number that a command of `readings` printed.
READING = "reading"
# Those of the kernel that counts lock acquisitions.
LOCKS = ("locks", "all_locks")
ALONE = (
    "p99_vs_alone", "finish_vs_alone", "alone_or_entitled", "entitled_speed", "kept",
    "kept_vs_best", "throughput_vs_protecting",
)  # fmt: skip
NEIGHBOUR = "p99_vs_neighbour"
# Of a goal `against`: the run of the same scheduler after the commands of `baseline`.
BASELINE = "baseline"
# The seed of a model disk that has none.
SEED = 1
BEST = ("throughput_vs_best", "error_vs_best", "kept_vs_best", "throughput_vs_protecting")
DEMAND = "fair_share_error"
COMPARED = (*dict.fromkeys((*ALONE, *BEST)), NEIGHBOUR, DEMAND, "fair_mbps")

Scheduler = Annotated[str, OneOf(*SCHEDULERS)]
Moment = Annotated[float, Range(0)]


@dataclass(frozen=True)
class Job:
    """A load: fio with these keys, or a shell command. It starts at start_s and runs all the time,
    but for a pause from one moment to another.
    """

    fio: Annotated[Table, Has("rw")] = field(default_factory=dict)
    command: str = ""
    start_s: Moment = 0.0
    pause_s: tuple[Moment, ...] = ()

    def check(self) -> None:
        """It has one thing to do, and pauses once at most."""
        if self.pause_s and (len(self.pause_s) != 2 or not 0 < self.pause_s[0] < self.pause_s[1]):
            raise ValueError("pause_s: must be [FROM, TO]")
        if bool(self.fio) == bool(self.command):
            raise ValueError("either fio or command")

    def runs(self, at_s: float) -> bool:
        """Whether it sends requests at a moment."""
        begin_s, end_s = self.pause_s or (math.inf, math.inf)
        return self.start_s <= at_s and not begin_s <= at_s < end_s


@dataclass(frozen=True)
class Draw:
    """Weights that are drawn at random."""

    random: tuple[Weight, ...]
    count: Count
    seed: int

    def check(self) -> None:
        """There are two bounds."""
        if len(self.random) != 2 or self.random[0] > self.random[1]:
            raise ValueError("random: must be [LOW, HIGH]")

    def drawn(self) -> list[int]:
        """The same ones each time."""
        generator = random.Random(self.seed)
        return [generator.randint(*self.random) for _ in range(self.count)]


@dataclass(frozen=True)
class Group:
    """A cgroup; `name` with slashes lies inside another group. `weights` makes NAME0, NAME1, ...
    of it, which take the jobs of `each` in turn, besides `job`.
    """

    name: Name
    weight: Weight = 100
    class_: Annotated[str, OneOf("rt", "be", "idle")] | None = None
    job: tuple[Job, ...] = ()
    weights: tuple[Weight, ...] | Draw = ()
    each: tuple[Job, ...] = ()

    def expand(self) -> Iterator[Self]:
        """The groups that this stands for."""
        weights = self.weights.drawn() if isinstance(self.weights, Draw) else self.weights
        if self.each and not weights:
            raise ValueError("each: only with weights; use job")
        if weights and self.weight != 100:
            raise ValueError("weights: not together with weight")
        if self.name.startswith("/"):
            raise ValueError("name: must not be absolute")
        if not weights:
            yield self
        for number, weight in enumerate(weights):
            mine = (self.each[number % len(self.each)],) if self.each else ()
            yield Group(f"{self.name}{number}", weight, self.class_, self.job + mine)

    @property
    def path(self) -> str:
        """As the model disk names it."""
        return f"/{self.name}"


@dataclass(frozen=True)
class Event:
    """Something that changes at a moment."""

    at_s: Moment
    weight: Mapping[str, Weight] = field(default_factory=dict)
    disk: Table = field(default_factory=dict)


@dataclass(frozen=True)
class Goal(result.Goal):
    """Bounds of a metric, of a group or two, for these schedulers."""

    metric: Annotated[str, OneOf(*METRICS, *COMPARED)]
    against: Annotated[str, OneOf(*SCHEDULERS, BASELINE)] | None = None
    of: Annotated[tuple[str, ...], OrOne()] = ()
    schedulers: Annotated[tuple[Scheduler, ...], OrOne()] = ("sutro",)


@dataclass(frozen=True, kw_only=True)
class Scenario(book.Scenario):
    """One scenario. Its keys describe it; a title has facts that they do not state."""

    title: str = ""
    disk: Annotated[Table, Model()]
    disks: Count = 1
    runs: Count = 1
    median: bool = False
    nr_requests: Annotated[int, Range(2, 100000)]
    group: tuple[Group, ...]
    neighbour: tuple[Job, ...] = ()
    row: str = ""
    schedulers: tuple[Scheduler, ...] = ("none", "bfq", "iocost", "sutro")
    warmup_s: Moment = 3.0
    measure_s: Positive = 10.0
    sample_ms: Moment = 0.0
    until: str | None = None
    timeout_s: Positive = 600.0
    prepare: tuple[str, ...] = ()
    baseline: tuple[str, ...] = ()
    readings: Mapping[str, str] = field(default_factory=dict)
    knobs: Mapping[str, Table] = field(default_factory=dict)
    event: tuple[Event, ...] = ()
    series: bool = False
    document: Mapping[str, float] = field(default_factory=dict)
    goal: tuple[Goal, ...] = ()

    def check(self) -> None:
        """ValueError unless parents precede their groups, and only groups without children work."""
        names = [group.name for group in self.group]
        leaves = [group.name for group in self.leaves()]
        if not leaves:
            raise ValueError("group: no group has a job")
        for number, name in enumerate(names):
            parent = name.rpartition("/")[0]
            if parent and parent not in names[:number]:
                raise ValueError(f"group {name}: name: no group {parent} before it")
            if parent in leaves:
                raise ValueError(f"group {parent}: job: it has groups inside")
        if not self.neighbour and any(goal.metric == NEIGHBOUR for goal in self.goal):
            raise ValueError(f"neighbour: {NEIGHBOUR} needs it")
        if not self.baseline and any(goal.against == BASELINE for goal in self.goal):
            raise ValueError(f"baseline: goals x {BASELINE} need it")
        if any(group.name == self.until and len(group.job) != 1 for group in self.group):
            raise ValueError(f"until: {self.until} must have one job")
        known("event: weight", {name for event in self.event for name in event.weight}, names)
        for goal in self.goal:
            known("goal: of", set(goal.of), self.readings if goal.metric == READING else names)
            if goal.metric == READING and len(goal.of) != 1:
                raise ValueError(f"goal: of: {READING} needs the name of one reading")
        known("until", {self.until} if self.until else (), names)

    def under(self, schedulers: Sequence[str]) -> Self:
        """Under these schedulers only, without the goals that need others."""
        goals = tuple(
            goal
            for goal in self.goal
            if goal.metric not in BEST and goal.against in (None, BASELINE)
        )
        return replace(self, schedulers=tuple(schedulers), goal=goals)

    def beside_neighbour(self) -> Self:
        """All groups have the job `neighbour` but those that are compared with it."""
        judged = {name for goal in self.goal if goal.metric == NEIGHBOUR for name in goal.of}
        groups = [
            replace(group, job=self.neighbour) if group.job and group.name not in judged else group
            for group in self.group
        ]
        return replace(self, group=tuple(groups))

    def numbered(self, number: int) -> Self:
        """The run of a number: its disks and its kernel have seeds of their own."""
        if not number:
            return self
        return replace(self, disk={**self.disk, "seed": self.seed + number * self.disks})

    @property
    def seed(self) -> int:
        """That of the first disk, and of the kernel's random numbers."""
        return int(str(self.disk.get("seed", SEED)))

    @property
    def counts_locks(self) -> bool:
        """Whether a goal needs the kernel that counts lock acquisitions."""
        return any(goal.metric in LOCKS for goal in self.goal)

    @property
    def end_s(self) -> float:
        """When the measurement ends, unless a job ends it."""
        return self.warmup_s + self.measure_s

    def leaves(self) -> list[Group]:
        """Groups with jobs."""
        return [group for group in self.group if group.job]

    def siblings(self) -> Iterator[tuple[str, list[Group]]]:
        """The groups of each parent, the root's first."""
        parents: dict[str, list[Group]] = {}
        for group in self.group:
            parents.setdefault(group.name.rpartition("/")[0], []).append(group)
        yield from parents.items()

    def weights(self, at_s: float) -> dict[str, int]:
        """Weights in force at a moment."""
        now = {group.name: group.weight for group in self.group}
        for event in self.event:
            if event.at_s <= at_s:
                now |= event.weight
        return now

    def entitled(self, at_s: float) -> dict[str, float]:
        """The share of the whole device that each group is entitled to if all are backlogged."""
        weights = self.weights(at_s)
        shares = {"": 1.0}
        for parent, groups in self.siblings():
            total = sum(weights[group.name] for group in groups)
            for group in groups:
                shares[group.name] = shares[parent] * weights[group.name] / total
        del shares[""]
        return shares


@dataclass(frozen=True, kw_only=True)
class Book(book.Book):
    """A file of fairness."""

    scenario: tuple[Scenario, ...] = ()

    SCHEDULERS: ClassVar = SCHEDULERS
