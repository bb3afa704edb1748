# SPDX-License-Identifier: LGPL-2.1-or-later
"""Experiments of `sutroctl test`: units that use a device at the same time. The file is TOML.

    [scenario.two-to-one]           its name; like = "NAME" takes the keys of one before it
    title = "weights 2:1"
    source = "fairness"             the bench that it is from
    group = { name = "g", weights = [200, 100], job = { rw = "randread", bs = "64k" } }
    goal = ["ratio 1.9 to 2.1"]     judge.py has the metrics
    ramp_s = 3                      from the first I/O of all units to the measurement
    knobs = { sutro = { fairness = 1 } }    settings of queue/iosched, by scheduler

`weights` makes units NAME0, NAME1, ... of one. `floor` is a part of the rate that the unit has
alone. A job that writes uses the file of --write, all others read the device. bench/read.py reads
the file, and its messages name table and key.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, ClassVar, Self

from bench import book
from bench.read import Count, Name, OneOf, Positive, Range, Table, Weight, known
from rig import result

SHIPPED = Path(__file__).with_name("experiments.toml")
OURS = "sutro"
SCHEDULERS = ("none", "mq-deadline", "kyber", "bfq", "iocost", OURS)
METRICS = (
    "ratio", "worst_share_error", "share", "mbps", "p99_vs_alone", "alone_or_entitled", "worst_2s",
)  # fmt: skip
# Those that compare with a run of the unit alone.
ALONE = ("p99_vs_alone", "alone_or_entitled", "worst_2s")
SIZES = {"k": 1 << 10, "m": 1 << 20}


@dataclass(frozen=True)
class Job:
    """The load of a unit; `think_us` is a pause after each request."""

    rw: Annotated[str, OneOf("read", "randread", "write", "randwrite")]
    bs: str
    iodepth: Count = 1
    think_us: Annotated[int, Range(0)] = 0
    tool: Annotated[str, OneOf("fio", "dd")] = "fio"

    def check(self) -> None:
        """Raise ValueError for a malformed size, or a job that dd cannot run."""
        if not (self.bs[:-1].isdecimal() and self.bs[-1:] in SIZES):
            raise ValueError(f"bs: {self.bs!r} is no size such as 64k or 1m")
        if self.tool == "dd" and (self.rw != "read" or self.iodepth != 1 or self.think_us):
            raise ValueError("tool: dd only reads sequentially, one request at a time")

    @property
    def bs_bytes(self) -> int:
        """The size of a request."""
        return int(self.bs[:-1]) * SIZES[self.bs[-1]]

    @property
    def writes(self) -> bool:
        """It needs a file that may be written."""
        return "write" in self.rw

    @property
    def is_sequential(self) -> bool:
        """It needs a part of the device for itself."""
        return not self.rw.startswith("rand")


@dataclass(frozen=True)
class Group:
    """A unit, or several with the same job."""

    name: Name
    job: Job
    weight: Weight = 100
    weights: tuple[Weight, ...] = ()
    floor: Annotated[float, Range(0, 1, above=True)] | None = None

    def expand(self) -> Iterator[Self]:
        """The units that this stands for."""
        if not self.weights:
            yield self
        for number, weight in enumerate(self.weights):
            yield replace(self, name=f"{self.name}{number}", weight=weight, weights=())


@dataclass(frozen=True)
class Goal(result.Goal):
    """Bounds of a metric, of a unit if the metric is about one."""

    metric: Annotated[str, OneOf(*METRICS)]
    of: str = ""


@dataclass(frozen=True, kw_only=True)
class Experiment(book.Scenario):
    """Units that use the device at the same time, and goals for sutro."""

    source: Annotated[str, OneOf("fairness", "protect", "v7", "promises")]
    group: tuple[Group, ...]
    goal: tuple[Goal, ...] = ()
    ramp_s: Positive = 3.0
    knobs: Mapping[str, Table] = field(default_factory=dict)

    def check(self) -> None:
        """Goals are about units of it; bytes are compared for equal jobs only."""
        names = [group.name for group in self.group]
        known("goal", {goal.of for goal in self.goal if goal.of}, names)
        known("knobs", set(self.knobs), SCHEDULERS)
        by_bytes = {"ratio", "worst_share_error"} & {goal.metric for goal in self.goal}
        if by_bytes and not self.has_equal_jobs:
            raise ValueError(f"goal: {by_bytes.pop()} is for equal jobs only; use share")

    @property
    def has_equal_jobs(self) -> bool:
        """Bytes are in the ratio of device time then."""
        return len({group.job for group in self.group}) == 1

    @property
    def writes(self) -> bool:
        """A unit writes."""
        return any(group.job.writes for group in self.group)

    @property
    def entitled(self) -> dict[str, float]:
        """The share of each unit by its weight."""
        whole = sum(group.weight for group in self.group)
        return {group.name: group.weight / whole for group in self.group}

    @property
    def alone(self) -> list[str]:
        """Units that are run alone, too: unlike jobs are compared by their progress."""
        compared = {goal.of for goal in self.goal if goal.metric in ALONE}
        compared |= {group.name for group in self.group if group.floor}
        return [
            group.name for group in self.group if group.name in compared or not self.has_equal_jobs
        ]

    def find(self, name: str) -> Group:
        """The unit of this name."""
        return next(group for group in self.group if group.name == name)


@dataclass(frozen=True, kw_only=True)
class Book(book.Book):
    """A file of experiments."""

    scenario: tuple[Experiment, ...] = ()

    SCHEDULERS: ClassVar = SCHEDULERS
