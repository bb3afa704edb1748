# SPDX-License-Identifier: LGPL-2.1-or-later
"""Scenarios of `./lab bench fairness`: reading a file, and saying exactly what is wrong with it.

tests/uml/README.rst documents the format. Everything a file may say ends up in the fields below,
under the same names.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.tables import ScenarioError, listed, made, read, tables, unique

SCHEDULERS = ("none", "mq-deadline", "kyber", "bfq", "iocost", "sutro")
KINDS = ("hdd", "ssd", "nvme")
CLASSES = ("rt", "be", "idle")
# Metrics that a goal may state; measure.py computes them.
METRICS = (
    "ratio", "share", "worst_share_error", "jain", "charge_error", "throughput_mbps", "iops",
    "work", "throughput_vs_best", "throughput_vs_none", "p50_us", "p99_us", "p999_us",
    "p99_vs_alone", "alone_or_entitled", "takeover_ms", "giveback_ms", "settle_s", "finish_s",
    "speedup_vs_none", "error_vs_best",
)  # fmt: skip


@dataclass(frozen=True)
class Job:
    """A load: fio with these keys, or a shell command. It starts at start_s and runs all the time,
    but for a pause from one moment to another.
    """

    fio: Mapping[str, object] = field(default_factory=dict)
    command: str = ""
    start_s: float = 0.0
    pause_s: tuple[float, ...] = ()


@dataclass(frozen=True)
class Group:
    """A cgroup; `name` with slashes lies inside another group."""

    name: str
    weight: int = 100
    class_: str | None = None
    job: tuple[Job, ...] = ()

    @property
    def path(self) -> str:
        """As the model disk names it."""
        return f"/{self.name}"


@dataclass(frozen=True)
class Event:
    """Something that changes at a moment."""

    at_s: float
    weight: Mapping[str, int] = field(default_factory=dict)
    disk: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Goal:
    """What a metric shall be, for these schedulers."""

    metric: str
    of: tuple[str, ...] = ()
    min: float | None = None
    max: float | None = None
    schedulers: tuple[str, ...] = ("sutro",)

    def met(self, value: float) -> bool:
        """A value that is no number never meets a goal."""
        low = self.min is None or value >= self.min
        high = self.max is None or value <= self.max
        return value == value and low and high

    def __str__(self) -> str:
        if self.min is not None and self.max is not None:
            return f"{self.min:g} to {self.max:g}"
        return f">= {self.min:g}" if self.min is not None else f"<= {self.max:g}"


@dataclass(frozen=True)
class Scenario:
    """One scenario."""

    name: str
    title: str
    disk: Mapping[str, object]
    nr_requests: int
    group: tuple[Group, ...]
    row: str = ""
    schedulers: tuple[str, ...] = ("none", "bfq", "iocost", "sutro")
    warmup_s: float = 3.0
    measure_s: float = 10.0
    sample_ms: float = 0.0
    until: str | None = None
    timeout_s: float = 600.0
    alone: str | None = None
    prepare: tuple[str, ...] = ()
    settings: Mapping[str, object] = field(default_factory=dict)
    knobs: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    event: tuple[Event, ...] = ()
    goal: tuple[Goal, ...] = ()

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
        """The share of the whole device that each group has a right to if all want more."""
        weights = self.weights(at_s)
        shares = {"": 1.0}
        for parent, groups in self.siblings():
            total = sum(weights[group.name] for group in groups)
            for group in groups:
                shares[group.name] = shares[parent] * weights[group.name] / total
        del shares[""]
        return shares


# ---- reading ----


def load(file: str | Path) -> list[Scenario]:
    """Read a scenario file."""
    document = read(file, ("scenario", "common"))
    found = tables(str(file), document, "scenario")
    if not found:
        raise ScenarioError(f"{file}: no [[scenario]] in it")
    common = document.get("common", {})
    scenarios = []
    for number, table in enumerate(found, start=1):
        name = table.get("name", f"number {number}")
        where = f"{file}: scenario {name}"
        goals = tables(where, table, "goal") + tables(f"{file}: common", common, "goal")
        scenarios.append(_scenario(where, {**common, **table, "goal": goals}))
    unique(f"{file}: scenario", [scenario.name for scenario in scenarios])
    return scenarios


def _scenario(where: str, table: Mapping[str, object]) -> Scenario:
    keys = dict(table)
    groups: list[Group] = []
    for part in tables(where, keys, "group"):
        groups += _groups(f"{where}: group {part.get('name', '')}", part)
    keys["group"] = tuple(groups)
    keys["event"] = tuple(
        made(f"{where}: event", Event, part) for part in tables(where, keys, "event")
    )
    keys["goal"] = tuple(_goal(f"{where}: goal", part) for part in tables(where, keys, "goal"))
    for key in ("schedulers", "prepare"):
        if key in keys:
            keys[key] = tuple(listed(where, keys, key))
    scenario = made(where, Scenario, keys)
    _check(where, scenario)
    return scenario


def _groups(where: str, table: Mapping[str, object]) -> list[Group]:
    """The group of a table, or the several that `weights` makes of it."""
    keys = dict(table)
    weights = keys.pop("weights", None)
    each = [_job(f"{where}: each", part) for part in tables(where, keys, "each")]
    keys.pop("each", None)
    keys["job"] = tuple(_job(f"{where}: job", part) for part in tables(where, keys, "job"))
    if "class" in keys:
        keys["class_"] = keys.pop("class")
    if weights is None:
        if each:
            raise ScenarioError(f"{where}: each: only with weights; use job")
        return [made(where, Group, keys)]
    if "weight" in keys:
        raise ScenarioError(f"{where}: weights: not together with weight")
    if "name" not in keys:
        raise ScenarioError(f"{where}: name is missing")
    groups = []
    for number, weight in enumerate(_weights(f"{where}: weights", weights)):
        mine = (each[number % len(each)],) if each else ()
        name = f"{keys['name']}{number}"
        groups.append(
            made(where, Group, {**keys, "name": name, "weight": weight, "job": keys["job"] + mine})
        )
    return groups


def _weights(where: str, said: object) -> Sequence[int]:
    """A list of weights, or {random = [LOW, HIGH], count = N, seed = S}."""
    if isinstance(said, list):
        return said
    if isinstance(said, dict) and set(said) == {"random", "count", "seed"}:
        low, high = said["random"]
        generator = random.Random(said["seed"])
        return [generator.randint(low, high) for _ in range(said["count"])]
    raise ScenarioError(f"{where}: a list, or {{ random = [1, 1000], count = 16, seed = 1 }}")


def _job(where: str, table: Mapping[str, object]) -> Job:
    keys = dict(table)
    if "pause_s" in keys:
        keys["pause_s"] = tuple(listed(where, keys, "pause_s"))
    job = made(where, Job, keys)
    if job.pause_s and (len(job.pause_s) != 2 or not 0 < job.pause_s[0] < job.pause_s[1]):
        raise ScenarioError(f"{where}: pause_s: must be [FROM, TO]")
    if bool(job.fio) == bool(job.command):
        raise ScenarioError(f"{where}: either fio or command")
    if job.fio and "rw" not in job.fio:
        raise ScenarioError(f"{where}: fio: rw is missing")
    return job


def _goal(where: str, table: Mapping[str, object]) -> Goal:
    keys = dict(table)
    for key in ("of", "schedulers"):
        if isinstance(keys.get(key), str):
            keys[key] = [keys[key]]
        if key in keys:
            keys[key] = tuple(listed(where, keys, key))
    goal = made(where, Goal, keys)
    if goal.metric not in METRICS:
        raise ScenarioError(
            f"{where}: metric: {goal.metric!r} is none of {', '.join(sorted(METRICS))}"
        )
    if goal.min is None and goal.max is None:
        raise ScenarioError(f"{where}: {goal.metric}: needs min or max")
    return goal


def _check(where: str, scenario: Scenario) -> None:
    """What is well formed and still makes no sense."""
    if scenario.disk.get("kind") not in KINDS:
        raise ScenarioError(f"{where}: disk: kind: must be one of {', '.join(KINDS)}")
    for name in scenario.schedulers:
        if name not in SCHEDULERS:
            raise ScenarioError(f"{where}: schedulers: {name!r} is none of {', '.join(SCHEDULERS)}")
    if not 2 <= scenario.nr_requests <= 100000:
        raise ScenarioError(f"{where}: nr_requests: {scenario.nr_requests} is not 2 to 100000")
    names = [group.name for group in scenario.group]
    jobs = [name for group in scenario.group for name in [group.name] if group.job]
    if not jobs:
        raise ScenarioError(f"{where}: group: no group has a job")
    for group in scenario.group:
        parent = group.name.rpartition("/")[0]
        if not group.name or group.name.startswith("/") or names.count(group.name) > 1:
            raise ScenarioError(f"{where}: group {group.name}: name: empty, absolute or used twice")
        if parent and parent not in names[: names.index(group.name)]:
            raise ScenarioError(f"{where}: group {group.name}: name: no group {parent} before it")
        if parent in jobs:
            raise ScenarioError(f"{where}: group {parent}: job: it has groups inside")
        if not 1 <= group.weight <= 10000:
            raise ScenarioError(f"{where}: group {group.name}: weight: {group.weight}: 1 to 10000")
        if group.class_ not in (None, *CLASSES):
            raise ScenarioError(f"{where}: group {group.name}: class: {', '.join(CLASSES)}")
    waited = [group for group in scenario.group if group.name == scenario.until]
    if waited and len(waited[0].job) != 1:
        raise ScenarioError(f"{where}: until: {scenario.until} must have one job")
    if scenario.warmup_s < 0 or scenario.measure_s <= 0:
        raise ScenarioError(f"{where}: warmup_s, measure_s: must not be negative or 0")
    used = {name for event in scenario.event for name in event.weight}
    used |= {name for goal in scenario.goal for name in goal.of}
    used |= {name for name in (scenario.until, scenario.alone) if name}
    for name in sorted(used - set(names)):
        raise ScenarioError(f"{where}: no group {name!r}; groups are {', '.join(names[:20])}")
