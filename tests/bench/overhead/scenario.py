# SPDX-License-Identifier: LGPL-2.1-or-later
"""Scenarios of `./lab bench overhead`: reading a file, and saying exactly what is wrong with it.

tests/bench/README.rst documents the format. A scenario times one of its jobs times one of its
numbers of groups is a case; each is run once, under all schedulers in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, TypeVar

from rig import result
from rig.scheduler import NR_REQUESTS

from bench.tables import ScenarioError, listed, made, read, tables, unique

SHIPPED = Path(__file__).resolve().parents[1] / "overhead.toml"
SCHEDULERS = ("none", "mq-deadline", "kyber", "bfq", "iocost", "sutro")
# What is asked, and which machine can tell: one whose clock counts instructions, or two CPUs.
MACHINES = ("count", "speed")
METRICS = ("instructions", "added", "time_us", "iops")
# Of dd on a stripe set, and what is done there.
STRIPED_METRICS = ("mbps", "busy")
DDS = ("read", "write", "read-direct", "write-direct")
BLOCK_BYTES = 4096

Kind = TypeVar("Kind", bound="Pace")
Bounds = TypeVar("Bounds", bound=result.Goal)


@dataclass(frozen=True)
class Goal(result.Goal):
    """Bounds of sutro's metric over that of another scheduler; with so many groups, or any."""

    against: str = "mq-deadline"
    groups: int | None = None

    def __str__(self) -> str:
        return f"{super().__str__()} x {self.against}"


@dataclass(frozen=True, kw_only=True)
class Pace:
    """What every scenario has: a disk, and how it is measured on which machine."""

    name: str
    title: str
    machine: str
    disk: Mapping[str, object]
    slots: int = NR_REQUESTS
    rounds: int = 5
    settle_ms: int = 10
    window_ms: int = 60


@dataclass(frozen=True, kw_only=True)
class Scenario(Pace):
    """Jobs on a disk, by numbers of groups."""

    jobs: Mapping[str, Mapping[str, object]]
    groups: tuple[int, ...] = (1,)
    goal: tuple[Goal, ...] = ()

    def cases(self) -> Iterator[Case]:
        """Every job with every number of groups."""
        for name, job in self.jobs.items():
            for groups in self.groups:
                goals = tuple(g for g in self.goal if g.groups in (None, groups))
                yield Case(f"{self.name}/{name}/{groups}", self, job, groups, goals)


@dataclass(frozen=True)
class Case:
    """A job, run by so many groups at once; its processes are divided among them."""

    name: str
    of: Scenario
    job: Mapping[str, object]
    groups: int
    goal: tuple[Goal, ...]

    def group_job(self) -> dict[str, object]:
        """What each group runs, as rig.unit.fio() wants it."""
        jobs = max(int(str(self.job.get("jobs", 1))) // self.groups, 1)
        return {"bs": str(BLOCK_BYTES), "gtod_reduce": 1, **self.job, "jobs": jobs}


@dataclass(frozen=True, kw_only=True)
class Striped(Pace):
    """A stripe set that dd uses, see striped.py; `disk` has numbers of a model disk."""

    members: int = 4
    count: int = 2048
    goal: tuple[Goal, ...] = ()

    def cases(self) -> Iterator[StripedCase]:
        """Every way to use it."""
        for dd in DDS:
            yield StripedCase(f"{self.name}/{dd}", dd, self.goal)


@dataclass(frozen=True)
class StripedCase:
    """A way to use a stripe set."""

    name: str
    dd: str
    goal: tuple[Goal, ...]


@dataclass(frozen=True)
class Book(Generic[Kind]):
    """All that a file holds."""

    scenarios: tuple[Kind, ...]
    schedulers: tuple[str, ...]

    def only(self, names: Sequence[str], schedulers: Sequence[str]) -> Book[Kind]:
        """A part of it; nothing chosen is everything."""
        known = [scenario.name for scenario in self.scenarios]
        for name in names:
            if name not in known:
                raise ScenarioError(f"no scenario {name}; there are {', '.join(known)}")
        known_schedulers("", schedulers)
        wanted = tuple(s for s in self.scenarios if s.name in names or not names)
        return Book(wanted, tuple(schedulers) or self.schedulers)

    def on(self, machine: str) -> Book[Kind]:
        """What is for one machine."""
        return replace(self, scenarios=tuple(s for s in self.scenarios if s.machine == machine))


def load(file: str | Path) -> Book[Scenario | Striped]:
    """Read a scenario file."""
    document = read(file, ("schedulers", "disk", "job", "scenario", "striped"))
    named_tables(file, document, "job")
    for name, job in document.get("job", {}).items():
        if "rw" not in job:
            raise ScenarioError(f"{file}: job {name}: rw: is missing")
    stripes = tuple(
        _striped(f"{file}: striped {table.get('name', '?')}", table)
        for table in tables(str(file), document, "striped")
    )
    book = bound(file, document, _scenario)
    unique(f"{file}: scenario", [one.name for one in (*book.scenarios, *stripes)])
    return replace(book, scenarios=(*book.scenarios, *stripes))


def named_tables(file: str | Path, document: Mapping, key: str) -> None:
    """Every part of [KEY.NAME] is a table."""
    parts = document.get(key, {})
    if not isinstance(parts, dict) or not all(isinstance(p, dict) for p in parts.values()):
        raise ScenarioError(f"{file}: {key}: must be tables by name")


def bound(
    file: str | Path, document: Mapping, scenario: Callable[[str, dict, Mapping], Kind]
) -> Book[Kind]:
    """A book: scenario makes one of where it stands, its table and the document."""
    named_tables(file, document, "disk")
    schedulers = document.get("schedulers", list(SCHEDULERS))
    schedulers = listed(str(file), {"schedulers": schedulers}, "schedulers")
    known_schedulers(f"{file}: ", schedulers)
    found = tables(str(file), document, "scenario")
    if not found:
        raise ScenarioError(f"{file}: no [[scenario]] in it")
    where = [f"{file}: scenario {table.get('name', '?')}" for table in found]
    scenarios = tuple(scenario(w, t, document) for w, t in zip(where, found, strict=True))
    unique(f"{file}: scenario", [scenario.name for scenario in scenarios])
    return Book(scenarios, tuple(schedulers))


def chosen_disk(where: str, keys: Mapping[str, object], document: Mapping) -> Mapping[str, object]:
    """The table of the disk that a scenario names."""
    disks = document.get("disk", {})
    if keys["disk"] not in disks:
        raise ScenarioError(f"{where}: disk: no {keys['disk']!r}; there are {', '.join(disks)}")
    return disks[keys["disk"]]


def numbers_to(where: str, keys: Mapping[str, object], key: str, most: int) -> tuple[int, ...]:
    """A list of numbers from 1 to most."""
    for number in listed(where, keys, key):
        if not isinstance(number, int) or not 1 <= number <= most:
            raise ScenarioError(f"{where}: {key}: {number!r} is not 1 to {most}")
    return tuple(keys[key])


def paced(where: str, scenario: Pace) -> None:
    """Its machine is one, and there is a window."""
    if scenario.machine not in MACHINES:
        there = ", ".join(MACHINES)
        raise ScenarioError(f"{where}: machine: {scenario.machine!r} is none of {there}")
    for key in ("rounds", "window_ms"):
        if getattr(scenario, key) < 1:
            raise ScenarioError(f"{where}: {key}: must be at least 1")


def known_schedulers(where: str, names: Sequence[object]) -> None:
    """All are schedulers that can be compared."""
    for name in names:
        if name not in SCHEDULERS:
            there = ", ".join(SCHEDULERS)
            raise ScenarioError(f"{where}no scheduler {name}; there are {there}")


def _scenario(where: str, table: dict, document: Mapping) -> Scenario:
    keys = {"disk": "", "jobs": [], "groups": [1], **table}
    jobs = document.get("job", {})
    keys["disk"] = chosen_disk(where, keys, document)
    for name in listed(where, keys, "jobs"):
        if name not in jobs:
            raise ScenarioError(f"{where}: jobs: no {name!r}; there are {', '.join(jobs)}")
    keys["groups"] = numbers_to(where, keys, "groups", 1000)
    keys["jobs"] = {name: jobs[name] for name in keys["jobs"]}
    keys["goal"] = tuple(_goals(where, keys))
    scenario = made(where, Scenario, keys)
    paced(where, scenario)
    return scenario


def _striped(where: str, table: dict) -> Striped:
    keys = {"machine": "count", "disk": {}, "rounds": 2, **table}
    keys["goal"] = tuple(goals(where, keys, Goal, STRIPED_METRICS))
    striped = made(where, Striped, keys)
    paced(where, striped)
    for key in ("members", "count"):
        if getattr(striped, key) < 1:
            raise ScenarioError(f"{where}: {key}: must be at least 1")
    return replace(striped, disk={"kind": "hdd", **striped.disk})


def _goals(where: str, keys: Mapping[str, object]) -> Iterator[Goal]:
    for goal in goals(where, keys, Goal, METRICS):
        known_schedulers(f"{where}: goal: against: ", [goal.against])
        yield goal


def goals(
    where: str, keys: Mapping[str, object], kind: type[Bounds], metrics: Sequence[str]
) -> Iterator[Bounds]:
    """The goals of a scenario, each on one of these metrics."""
    for part in tables(where, keys, "goal"):
        goal = made(f"{where}: goal", kind, part)
        if goal.metric not in metrics:
            there = ", ".join(metrics)
            raise ScenarioError(f"{where}: goal: metric: {goal.metric!r} is none of {there}")
        if goal.min is None and goal.max is None:
            raise ScenarioError(f"{where}: goal: {goal.metric}: needs min or max")
        yield goal
