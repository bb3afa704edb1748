# SPDX-License-Identifier: LGPL-2.1-or-later
"""Scenarios of `./lab demo`: a stack, units with weights, and events. README.rst has the format."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from rig import result
from rig import unit as jobs

from bench import book
from bench.read import Has, Name, Named, NotEmpty, OneOf, Positive, Range, Table, Weight, known
from bench.stacks import StackSpec

SHIPPED = book.HERE / "demo.toml"
SCHEDULERS = ("none", "mq-deadline", "bfq", "sutro")
METRICS = (
    "bandwidth_ratio", "device_time_ratio", "worst_share_error", "aggregate_mbps", "follow_s",
    "completion_s", "disk_busy", "cpu_idle",
)  # fmt: skip
JOBS = ("fio", "dd-readers", "dd-writer", "dd-reader")


@dataclass(frozen=True)
class Goal(result.Goal):
    """Bounds of a metric, or of its ratio to that of another scheduler."""

    metric: Annotated[str, OneOf(*METRICS)]
    against: Annotated[str, OneOf(*SCHEDULERS)] | None = None


@dataclass(frozen=True, kw_only=True)
class UnitSpec:
    """A unit, with IOWeight= or, on the top device, IODeviceWeight=."""

    name: Name
    job: Annotated[Table, Has("run")]
    weight: Weight | None = None
    device_weight: Weight | None = None

    def check(self) -> None:
        """Its job is one."""
        if self.job["run"] not in JOBS:
            raise ValueError(f"job: run: {self.job['run']!r} is none of {', '.join(JOBS)}")

    @property
    def asked(self) -> int:
        """The weight that counts."""
        return self.device_weight or self.weight or 100

    def command(self, top: str) -> str:
        """The shell command of its job on the device or mount point `top`."""
        keys = dict(self.job)
        kind = keys.pop("run")
        if kind == "fio":
            return jobs.fio(top, **keys)
        if kind == "dd-readers":
            return jobs.dd_readers(top, **keys)
        keys["file"] = f"{top}/{keys['file']}"
        return jobs.dd_writer(**keys) if kind == "dd-writer" else jobs.dd_reader(**keys)


@dataclass(frozen=True, kw_only=True)
class Event:
    """New weights at a moment of the measured time."""

    at_s: Positive
    weight: Mapping[str, Weight]


@dataclass(frozen=True, kw_only=True)
class File:
    """A file that is written before, if the top is a file system."""

    name: Name
    size_mb: Annotated[int, Range(1)]


@dataclass(frozen=True, kw_only=True)
class Scenario(book.Scenario):
    """One scenario."""

    schedulers: tuple[Annotated[str, OneOf(*SCHEDULERS)], ...] = ("bfq", "sutro")
    stack: Annotated[StackSpec, Named("stack")]
    unit: Annotated[tuple[UnitSpec, ...], NotEmpty()]
    file: tuple[File, ...] = ()
    event: tuple[Event, ...] = ()
    goal: tuple[Goal, ...] = ()
    sysctl: Table = field(default_factory=dict)
    ramp_s: Annotated[float, Range(0)] = 2
    measure_s: Positive = 8
    until: str | None = None
    timeout_s: Positive = 120

    def check(self) -> None:
        """Events, and the unit that is waited for, are about units of this scenario."""
        names = [unit.name for unit in self.unit]
        known("event", {name for event in self.event for name in event.weight}, names)
        known("until", {self.until} if self.until else (), names)

    def weights(self, at_s: float) -> dict[str, int]:
        """Weights in force at a moment of the measured time."""
        now = {unit.name: unit.asked for unit in self.unit}
        for event in self.event:
            if event.at_s <= at_s:
                now.update(event.weight)
        return now

    def entitled(self, at_s: float) -> dict[str, float]:
        """Shares by the weights in force at a moment, if all units are backlogged."""
        weights = self.weights(at_s)
        return {name: weight / sum(weights.values()) for name, weight in weights.items()}


@dataclass(frozen=True, kw_only=True)
class Book(book.Book):
    """A file of the demo."""

    stack: tuple[StackSpec, ...] = ()
    scenario: tuple[Scenario, ...] = ()

    SCHEDULERS: ClassVar = SCHEDULERS
