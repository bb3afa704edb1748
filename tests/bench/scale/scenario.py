# SPDX-License-Identifier: LGPL-2.1-or-later
"""Scenarios of `./lab bench scale`: reading a file, and saying exactly what is wrong with it.

tests/bench/README.rst documents the format. One thing of a scenario grows, `axis`: the groups that
have used the disk and are idle, those that are busy, or the hardware queues and CPUs. Each size is
a case, which is run once, under all schedulers in turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from rig.result import Goal

from bench.overhead.scenario import Book, Pace, bound, chosen_disk, goals, numbers_to, paced
from bench.tables import ScenarioError, made, read

SHIPPED = Path(__file__).resolve().parents[1] / "scale.toml"
AXES = {"idle": 100_000, "busy": 10_000, "queues": 64}
METRICS = ("cost_ratio", "per_doubling", "bytes_per_group")


@dataclass(frozen=True, kw_only=True)
class Scenario(Pace):
    """What grows, and what is there besides."""

    axis: str
    sizes: tuple[int, ...]
    idle: int = 0
    busy: int = 1
    tasks: int = 64
    goal: tuple[Goal, ...] = ()

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


def load(file: str | Path) -> Book[Scenario]:
    """Read a scenario file."""
    return bound(file, read(file, ("schedulers", "disk", "scenario")), _scenario)


def _scenario(where: str, table: dict, document: Mapping) -> Scenario:
    keys = {"disk": "", "axis": "", "sizes": [], **table}
    keys["disk"] = chosen_disk(where, keys, document)
    if keys["axis"] not in AXES:
        raise ScenarioError(f"{where}: axis: {keys['axis']!r} is none of {', '.join(AXES)}")
    keys["sizes"] = numbers_to(where, keys, "sizes", AXES[keys["axis"]])
    if len(keys["sizes"]) < 2 or list(keys["sizes"]) != sorted(set(keys["sizes"])):
        raise ScenarioError(f"{where}: sizes: must be two or more, each larger than the one before")
    keys["goal"] = tuple(goals(where, keys, Goal, METRICS))
    scenario = made(where, Scenario, keys)
    paced(where, scenario)
    for key, least in (("idle", 0), ("busy", 1), ("tasks", 1)):
        if getattr(scenario, key) < least:
            raise ScenarioError(f"{where}: {key}: must be at least {least}")
    return scenario
