# SPDX-License-Identifier: LGPL-2.1-or-later
"""Scenarios of `./lab bench overhead`: jobs on a fast disk. README.rst has the format.

A scenario times one of its jobs times one of its numbers of groups is a case; each is run once,
under all schedulers in turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar, Self

from rig import result
from rig.scheduler import NR_REQUESTS

from bench import book
from bench.read import Count, Has, Named, OneOf, Range, Table
from bench.stacks import Model

SHIPPED = book.HERE / "overhead.toml"
SCHEDULERS = ("none", "mq-deadline", "kyber", "bfq", "iocost", "sutro")
# The machine that can measure it: one whose clock counts instructions, or two CPUs; with the stock
# kernel, or with one that has the patch series.
MACHINES = ("count", "speed", "count-series", "speed-series")
METRICS = ("instructions", "added", "time_us", "iops")
# Metrics of dd on a stripe set, and the runs of dd.
STRIPED_METRICS = ("mbps", "busy")
DDS = ("read", "write", "read-direct", "write-direct")
BLOCK_BYTES = 4096

Scheduler = Annotated[str, OneOf(*SCHEDULERS)]


@dataclass(frozen=True)
class Goal(result.Goal):
    """Bounds of a ratio to another scheduler; with this number of groups, or with any."""

    metric: Annotated[str, OneOf(*METRICS)]
    against: Scheduler = "mq-deadline"
    groups: int | None = None


@dataclass(frozen=True)
class StripedGoal(result.Goal):
    """The same of dd on a stripe set, whose members have no scheduler in the comparison."""

    metric: Annotated[str, OneOf(*STRIPED_METRICS)]
    against: Annotated[str, OneOf("none")] = "none"


@dataclass(frozen=True, kw_only=True)
class Pace(book.Scenario):
    """The common part of scenarios on a fast disk: the disk, the machine, and the measurement."""

    machine: Annotated[str, OneOf(*MACHINES)]
    schedulers: tuple[Scheduler, ...] = SCHEDULERS
    disk: Annotated[Table, Named("disk")]
    slots: Count = NR_REQUESTS
    rounds: Count = 5
    settle_ms: Annotated[int, Range(0)] = 10
    window_ms: Count = 60

    def is_counted(self) -> bool:
        """Does the clock of its machine count instructions?"""
        return self.machine.startswith("count")


@dataclass(frozen=True, kw_only=True)
class Scenario(Pace):
    """Jobs on a disk, by numbers of groups."""

    jobs: Annotated[Mapping[str, Mapping[str, object]], Named("job")]
    groups: tuple[Annotated[int, Range(1, 1000)], ...] = (1,)
    goal: tuple[Goal, ...] = ()

    def cases(self) -> Iterator[Case]:
        """Every job with every number of groups."""
        for name, job in self.jobs.items():
            for groups in self.groups:
                goals = tuple(g for g in self.goal if g.groups in (None, groups))
                yield Case(f"{self.name}/{name}/{groups}", self, job, groups, goals)


@dataclass(frozen=True)
class Case:
    """A job, run by a number of groups at once; its processes are divided among them."""

    name: str
    of: Scenario
    job: Table
    groups: int
    goal: tuple[Goal, ...]

    def group_job(self) -> dict[str, object]:
        """The job of each group, as keys of rig.unit.fio()."""
        jobs = max(int(str(self.job.get("jobs", 1))) // self.groups, 1)
        return {"bs": str(BLOCK_BYTES), "gtod_reduce": 1, **self.job, "jobs": jobs}


@dataclass(frozen=True, kw_only=True)
class Striped(book.Scenario):
    """A stripe set that dd uses, see striped.py; `disk` has numbers of a model disk."""

    disk: Annotated[Table, Model()] = field(default_factory=lambda: {"kind": "hdd"})
    members: Count = 4
    count: Count = 2048
    rounds: Count = 2
    goal: tuple[StripedGoal, ...] = ()
    machine: ClassVar = "count"

    def under(self, schedulers: Sequence[str]) -> Self | None:
        """It always compares sutro and none."""
        return self if "sutro" in schedulers else None

    def cases(self) -> Iterator[StripedCase]:
        """Every way to use it."""
        for dd in DDS:
            yield StripedCase(f"{self.name}/{dd}", dd, self.goal)


@dataclass(frozen=True)
class StripedCase:
    """A way to use a stripe set."""

    name: str
    dd: str
    goal: tuple[StripedGoal, ...]


@dataclass(frozen=True, kw_only=True)
class PaceBook(book.Book):
    """A file with scenarios for several machines."""

    disk: Mapping[str, Table] = field(default_factory=dict)

    SCHEDULERS: ClassVar = SCHEDULERS

    def on(self, machine: str) -> Self:
        """The part for one machine."""
        mine = {
            key: tuple(one for one in getattr(self, key) if one.machine == machine)
            for key in self.RUN
        }
        return replace(self, **mine)


@dataclass(frozen=True, kw_only=True)
class Book(PaceBook):
    """A file of overhead."""

    job: Mapping[str, Annotated[Table, Has("rw")]] = field(default_factory=dict)
    scenario: tuple[Scenario, ...] = ()
    striped: tuple[Striped, ...] = ()

    RUN: ClassVar = ("scenario", "striped")
