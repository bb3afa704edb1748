# SPDX-License-Identifier: LGPL-2.1-or-later
"""Scenarios of `./lab bench scale`: one thing that grows. README.rst has the format.

`axis` grows: the groups that have used the disk and are idle, those that are busy, or the hardware
queues and CPUs. Each size is a case, which is run once, under all schedulers in turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from rig import result

from bench import book
from bench.overhead.scenario import Pace, PaceBook
from bench.read import Count, OneOf, Range

SHIPPED = book.HERE / "scale.toml"
AXES = {"idle": 100_000, "busy": 10_000, "queues": 64}
METRICS = ("cost_ratio", "per_doubling", "bytes_per_group")


@dataclass(frozen=True)
class Goal(result.Goal):
    """Bounds of growth."""

    metric: Annotated[str, OneOf(*METRICS)]


@dataclass(frozen=True, kw_only=True)
class Scenario(Pace):
    """The quantity that grows, and the rest of the machine."""

    axis: Annotated[str, OneOf(*AXES)]
    sizes: tuple[Count, ...]
    idle: Annotated[int, Range(0)] = 0
    busy: Count = 1
    tasks: Count = 64
    goal: tuple[Goal, ...] = ()

    def check(self) -> None:
        """There are several sizes, within what the axis allows."""
        if len(self.sizes) < 2 or list(self.sizes) != sorted(set(self.sizes)):
            raise ValueError("sizes: must be two or more, each larger than the one before")
        if self.sizes[-1] > AXES[self.axis]:
            raise ValueError(f"sizes: {self.sizes[-1]} is not 1 to {AXES[self.axis]}")

    def cases(self) -> Iterator[Case]:
        """Every size."""
        for size in self.sizes:
            counts = {"idle": self.idle, "busy": self.busy, "queues": 1, self.axis: size}
            yield Case(f"{self.name}/{size}", self, size, **counts)


@dataclass(frozen=True)
class Case:
    """One size: groups that are idle and busy, hardware queues, each with a CPU."""

    name: str
    of: Scenario
    size: int
    idle: int
    busy: int
    queues: int


@dataclass(frozen=True, kw_only=True)
class Book(PaceBook):
    """A file of scale."""

    scenario: tuple[Scenario, ...] = ()
