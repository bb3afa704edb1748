# SPDX-License-Identifier: LGPL-2.1-or-later
"""Scenarios of `./lab bench harm`: a stack and the job on it. README.rst has the format."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from rig import result

from bench import book
from bench.read import Count, Has, NotEmpty, OneOf, Range, Table, known
from bench.stacks import FILL, standing

SHIPPED = book.HERE / "harm.toml"
METRIC = "instructions"
# The compared drivers; the second ones do the same as the first, and something more.
STOCK, PATCHED = DRIVERS = ("stock", "patched")
ROOT, OWN = CGROUPS = ("root", "own")
PAIRS = {"drivers": DRIVERS, "cgroups": CGROUPS}


@dataclass(frozen=True)
class Goal(result.Goal):
    """Bounds of the ratio to the kernel's own drivers."""

    metric: Annotated[str, OneOf(METRIC)]
    against: Annotated[str, OneOf(STOCK)] = STOCK


@dataclass(frozen=True, kw_only=True)
class Scenario(book.Scenario):
    """One stack and the job on it."""

    leaves: Annotated[Mapping[str, Count], NotEmpty()]
    layer: tuple[Table, ...] = ()
    job: Annotated[Table, Has("rw", "bs")]
    goal: tuple[Goal, ...] = ()
    top: str = ""
    between: Annotated[str, OneOf(*PAIRS)] = "drivers"
    owned: Annotated[float, Range(0)] = 0
    once: bool = False
    rounds: Count = 5
    settle_ms: Annotated[int, Range(0)] = 100
    window_ms: Count = 300

    def check(self) -> None:
        """The layers stand on each other, and the top is one of them."""
        if not (self.layer or self.top):
            raise ValueError("needs a layer or the top")
        there = standing(list(self.leaves), self.layer, FILL)
        known("top", {self.top} if self.top else (), there)

    @property
    def pair(self) -> tuple[str, str]:
        """The two that are compared."""
        return PAIRS[self.between]

    @property
    def judged(self) -> bool:
        """Only drivers are judged: the cost of a cgroup is that of the kernel."""
        return self.pair == DRIVERS


@dataclass(frozen=True, kw_only=True)
class Book(book.Book):
    """A file of harm."""

    scenario: tuple[Scenario, ...] = ()
