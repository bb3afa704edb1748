# SPDX-License-Identifier: LGPL-2.1-or-later
"""Scenarios of `./lab bench applications`: a database on a stack. README.rst has the format."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from rig import result

from bench import book
from bench.read import Count, Named, NotEmpty, OneOf, Positive, Range, Table, known
from bench.stacks import StackSpec

SHIPPED = book.HERE / "applications.toml"
# The rate of the database alone is measured under this one.
BASELINE = "none"
FLOOR = "sutro-floor"
LATENCY = "sutro-latency"
SCHEDULERS = (BASELINE, "bfq", "iocost", FLOOR, LATENCY)
APPLICATIONS = ("pgbench", "db_bench")
COMPETITORS = ("dd", "tar", "flood", "bounded")
METRICS = ("kept", "retained", "p99_ratio")


@dataclass(frozen=True)
class Goal(result.Goal):
    """Bounds of a metric under one scheduler, beside some of the competitors (all)."""

    metric: Annotated[str, OneOf(*METRICS)]
    scheduler: Annotated[str, OneOf(*SCHEDULERS)] = FLOOR
    beside: tuple[Annotated[str, OneOf(*COMPETITORS)], ...] = ()

    def about(self, competitor: str) -> bool:
        """Whether it is about runs beside this competitor."""
        return not self.beside or competitor in self.beside


@dataclass(frozen=True, kw_only=True)
class Scenario(book.Scenario):
    """One database on ext4 on one stack."""

    application: Annotated[str, OneOf(*APPLICATIONS)]
    stack: Annotated[StackSpec, Named("stack")]
    beside: Annotated[tuple[Annotated[str, OneOf(*COMPETITORS)], ...], NotEmpty()]
    schedulers: tuple[Annotated[str, OneOf(*SCHEDULERS)], ...] = SCHEDULERS
    goal: tuple[Goal, ...] = ()
    clients: Count
    floor: Annotated[float, Range(0, 1, above=True)]
    latency_ms: Positive
    ramp_s: Count
    measure_s: Count
    rounds: Count = 1
    sysctl: Table = field(default_factory=dict)

    def check(self) -> None:
        """The top is a file system, and goals are about what is run."""
        if not self.stack.layer or self.stack.layer[-1]["kind"] != "ext4":
            raise ValueError(f"stack {self.stack.name}: its last layer is no ext4")
        for goal in self.goal:
            known("goal: beside", set(goal.beside), self.beside)


@dataclass(frozen=True, kw_only=True)
class Book(book.Book):
    """A file of applications."""

    stack: tuple[StackSpec, ...] = ()
    scenario: tuple[Scenario, ...] = ()

    SCHEDULERS: ClassVar = SCHEDULERS
