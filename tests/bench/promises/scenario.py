# SPDX-License-Identifier: LGPL-2.1-or-later
"""Scenarios of `./lab bench promises`: units with floors on a stack. README.rst has the format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar, Self
from zlib import crc32

from rig import result
from rig.unit import fio

from bench import book
from bench.read import Count, Name, Named, OneOf, Positive, Range, Table, Weight, known, unique
from bench.stacks import StackSpec

SHIPPED = book.HERE / "promises.toml"
# The schedulers that keep floors; the last three are set up by hand (setups.py).
SCHEDULERS = ("sutro", "sutrod on bfq", "sutrod on iocost", "bfq", "iocost", "io.max")
# Metrics that a goal may state, which measure.py and overhead.py compute.
METRICS = (
    "hold_s", "worst_2s", "return_s", "again_s", "reported_s", "reports", "rest_share",
    "others_while_idle", "aggregate_vs_without", "writes",
)  # fmt: skip
OVERHEADS = ("cpu_percent", "rss_mib", "step_ms")
STATES = (
    "unknown", "idle", "held", "settling", "infeasible", "limited", "crowded", "unattributed",
    "unweighted", "unresolved", "capped",
)  # fmt: skip
# What fio does, by the option `rw`, and the keys of the floors that are about it.
DIRECTIONS = {"read": "Read", "randread": "Read", "write": "Write", "randwrite": "Write"}
SIZES = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}

Floor = Annotated[float, Range(0, 1, above=True)]
UnitCount = Annotated[int, Range(0, 10000)]


def size_bytes(text: str) -> int:
    """A size as fio has it: 64k, 1m, 4096."""
    digits = text.lower().rstrip("b")
    factor = SIZES.get(digits[-1:], 1)
    return int(digits.rstrip("kmg")) * factor


@dataclass(frozen=True)
class UnitSpec:
    """A unit; one with a floor is promised that part of its capacity C, `on` its device."""

    name: Name
    job: Annotated[Table, Named("job")]
    weight: Weight = 100
    floor: Floor | None = None
    importance: Annotated[int, Range(0, 1000)] | None = None
    on: str = ""
    count: Count | None = None

    def expand(self) -> Iterator[Self]:
        """The units that `count` makes of one: NAME0, NAME1, ..."""
        if self.job.get("rw") not in DIRECTIONS:
            raise ValueError(f"job: rw: must be one of {', '.join(DIRECTIONS)}")
        try:
            whole = size_bytes(str(self.job["bs"])) > 0 and self.in_flight > 0
        except (KeyError, ValueError):
            whole = False
        if not whole:
            raise ValueError('job: needs bs and iodepth, as bs = "64k", iodepth = 32')
        if self.count is None:
            yield self
        for number in range(self.count or 0):
            yield replace(self, name=f"{self.name}{number}", count=None)

    @property
    def direction(self) -> str:
        """Read or Write."""
        return DIRECTIONS[str(self.job["rw"])]

    @property
    def in_flight(self) -> int:
        """Bytes that its job has on their way while it runs."""
        depth = int(str(self.job.get("iodepth", 1))) * int(str(self.job.get("jobs", 1)))
        return depth * size_bytes(str(self.job["bs"]))

    def command(self, device: str, move: Table | None, gate: str) -> str:
        """The job of the unit; with a move, another one after two lines from the fifo `gate`."""
        # Each unit draws random numbers of its own.
        job = {"seed": crc32(self.name.encode()), **self.job}
        if move is None:
            return fio(device, **job)
        # Both are loaded and ready, so that it goes on at once elsewhere. fio leaves a file.
        wait = f"read go <{gate}"
        before, after = fio(device, **job), fio(device, **job | move, exec_prerun=wait)
        return f"cd /run; ({before}) & old=$!; ({after}) & {wait}; kill -KILL $old; wait"


@dataclass(frozen=True)
class Event:
    """An event at a moment after the promised units have begun."""

    at_s: Annotated[float, Range(0)]
    stop: tuple[str, ...] = ()
    start: tuple[str, ...] = ()
    freeze: tuple[str, ...] = ()
    thaw: tuple[str, ...] = ()
    disk: Mapping[str, Table] = field(default_factory=dict)
    floor: Mapping[str, Floor] = field(default_factory=dict)
    move: Mapping[str, Table] = field(default_factory=dict)

    def units(self) -> set[str]:
        """Names of the units it is about."""
        return {*self.stop, *self.start, *self.freeze, *self.thaw, *self.floor, *self.move}


@dataclass(frozen=True)
class Goal(result.Goal):
    """Bounds of a metric of one unit, or of each that has it; `state` is for the reports."""

    metric: Annotated[str, OneOf(*METRICS)]
    of: str = ""
    state: Annotated[str, OneOf(*STATES)] = "infeasible"


@dataclass(frozen=True)
class OverheadGoal(result.Goal):
    """Bounds of the cost of the daemon."""

    metric: Annotated[str, OneOf(*OVERHEADS)]


@dataclass(frozen=True, kw_only=True)
class Scenario(book.Scenario):
    """One scenario."""

    stack: Annotated[StackSpec, Named("stack")]
    unit: tuple[UnitSpec, ...]
    schedulers: tuple[Annotated[str, OneOf(*SCHEDULERS)], ...] = ("sutro",)
    measure_s: Positive = 8.0
    capacity_s: Positive = 3.0
    event: tuple[Event, ...] = ()
    goal: tuple[Goal, ...] = ()

    def check(self) -> None:
        """Units, goals and events are about what is there."""
        names = [unit.name for unit in self.unit]
        promised = [unit.name for unit in self.promised()]
        if not promised:
            raise ValueError("unit: none has a floor")
        for unit in self.unit:
            known(f"unit {unit.name}: on", {unit.on} if unit.on else (), self.stack.devices())
        known("goal: of", {goal.of for goal in self.goal if goal.of}, promised)
        moments = [event.at_s for event in self.event]
        if moments != sorted(moments) or any(at_s > self.measure_s for at_s in moments):
            raise ValueError("event: at_s: not in order, or not within measure_s")
        for event in self.event:
            here = f"event with at_s = {event.at_s:g}"
            known(here, event.units(), names)
            known(f"{here}: floor", set(event.floor), promised)
            known(f"{here}: disk", set(event.disk), self.stack.disks())
        unique([name for event in self.event for name in event.move])

    def promised(self) -> list[UnitSpec]:
        """Units with floors."""
        return [unit for unit in self.unit if unit.floor is not None]

    def others(self) -> list[UnitSpec]:
        """Units without."""
        return [unit for unit in self.unit if unit.floor is None]

    def find(self, name: str) -> UnitSpec:
        """A unit by its name."""
        return next(unit for unit in self.unit if unit.name == name)

    def moves(self, name: str) -> Table | None:
        """Where a unit's job goes to during the run."""
        return next((event.move[name] for event in self.event if name in event.move), None)

    def alone(self, name: str) -> Scenario:
        """The unit alone, for the measurement of its capacity."""
        one = replace(self.find(name), floor=None)
        return replace(self, unit=(one,), event=(), goal=(), measure_s=self.capacity_s)

    def without(self) -> Scenario:
        """The same without floors, neither in the units nor in the events."""
        units = tuple(replace(unit, floor=None, importance=None) for unit in self.unit)
        events = tuple(replace(event, floor={}) for event in self.event)
        return replace(self, unit=units, event=events, goal=())


@dataclass(frozen=True, kw_only=True)
class Overhead(book.Scenario):
    """The cost of the daemon with many units; no share is judged."""

    units: Annotated[int, Range(1, 10000)]
    leaves: Annotated[int, Range(1, 10000)]
    promised: UnitCount
    active: UnitCount
    measure_s: Positive = 20.0
    goal: tuple[OverheadGoal, ...] = ()

    def check(self) -> None:
        """There are as many units as are promised something or active."""
        if max(self.promised, self.active) > self.units:
            raise ValueError("promised, active: more than units")

    def under(self, schedulers: Sequence[str]) -> Self | None:
        return self if "sutro" in schedulers else None


@dataclass(frozen=True, kw_only=True)
class Book(book.Book):
    """A file of promises. Scenarios on one stack are run together, for it is built once."""

    job: Mapping[str, Table] = field(default_factory=dict)
    stack: tuple[StackSpec, ...] = ()
    scenario: tuple[Scenario, ...] = ()
    overhead: tuple[Overhead, ...] = ()

    RUN: ClassVar = ("scenario", "overhead")
    SCHEDULERS: ClassVar = SCHEDULERS

    def runs(self) -> list[book.Scenario]:
        order = {stack.name: number for number, stack in enumerate(self.stack)}
        together = sorted(self.scenario, key=lambda one: order.get(one.stack.name, len(order)))
        return [*together, *self.overhead]
