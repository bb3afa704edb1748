# SPDX-License-Identifier: LGPL-2.1-or-later
"""Scenarios of `./lab bench protect`: a group with few requests beside one with many.

Each table of the file stands for all pairs of its victims and aggressors, with each rank of the
victim: [scenario.ssd] with a victim sync-4k, an aggressor writes and a rank rt becomes the scenario
ssd-sync-4k-writes-rt of two groups, `victim` and `other`. The rest is as for fairness.

A victim of the rank 100:100 is not favoured, and so not protected: its figures are shown, not
judged.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from bench import book
from bench.read import Has, Name, OneOf, Positive, Range, Table, Weight
from bench.stacks import Model

from uml.scenario import SCHEDULERS, Goal, Group, Job, Scenario, Scheduler

SHIPPED = Path(__file__).with_name("protect.toml")
# The least part of its entitlement that a victim receives, and its largest P99 over that alone.
ENTITLED = 0.95
P99 = 2.0
# A victim receives at most this many times its share of its rate alone (kernel/sutro-window.c).
PRICE = 4
# Of the throughput with the best scheduler that protects the victim.
THROUGHPUT = 0.9
# The metrics of these goals.
SERVICE, LATENCY, PROTECTING = "alone_or_entitled", "p99_vs_alone", "throughput_vs_protecting"
# With at least this weight, latency is judged, too: ten times that of the aggressor.
SENSITIVE_WEIGHT = 1000
# An aggressor with `cgroups` = N is N groups with this job each.
OTHER = "other"


@dataclass(frozen=True)
class Rank:
    """The advantage of a victim over its aggressor, of weight 100: its weight or class."""

    weight: Weight = 100
    class_: Annotated[str, OneOf("rt", "be", "idle")] | None = None

    def is_favoured(self) -> bool:
        """Whether the elevator protects it."""
        return self.class_ == "rt" or self.weight > Group(OTHER).weight

    def is_sensitive(self) -> bool:
        """Whether its latency is judged, too."""
        return self.class_ == "rt" or self.weight >= SENSITIVE_WEIGHT


def _others(aggressor: Table) -> tuple[Group, ...]:
    """The aggressor's groups, each with the whole job."""
    fio = {key: value for key, value in aggressor.items() if key != "cgroups"}
    count = int(aggressor.get("cgroups", 1))
    names = [OTHER] if count == 1 else [f"{OTHER}-{number}" for number in range(1, count + 1)]
    return tuple(Group(name, job=(Job(fio),)) for name in names)


def goals(groups: Sequence[Group], is_sensitive: bool, is_judged: bool = True) -> tuple[Goal, ...]:
    """Those of a pair, whose first group is the victim; is_sensitive: its latency has one, too."""
    victim = groups[0]
    share = victim.weight / sum(group.weight for group in groups)
    priced = 1.0 if victim.class_ else min(1.0, PRICE * share)
    judged: dict = {} if is_judged else {"schedulers": ()}
    found = [Goal(SERVICE, of=("victim",), min=ENTITLED * priced, **judged)]
    if is_sensitive:
        found.append(Goal(LATENCY, of=("victim",), max=P99))
    return (*found, Goal(PROTECTING, of=("victim",), min=THROUGHPUT, **judged))


@dataclass(frozen=True, kw_only=True)
class Pairs:
    """Scenarios of one disk. sensitive: the victims that are judged by latency, too,
    where their rank is far above the aggressor's."""

    name: Name
    disk: Annotated[Table, Model()]
    victim: Mapping[str, Annotated[Table, Has("rw")]]
    aggressor: Mapping[str, Annotated[Table, Has("rw")]]
    rank: Mapping[str, Rank]
    sensitive: tuple[str, ...] = ()
    prepare: tuple[str, ...] = ()
    nr_requests: Annotated[int, Range(2, 100000)] = 256
    schedulers: tuple[Scheduler, ...] = SCHEDULERS
    warmup_s: Positive = 3.0
    measure_s: Positive = 6.0

    def expand(self) -> Iterator[Scenario]:
        """All pairs."""
        for victim, mine in self.victim.items():
            for aggressor, theirs in self.aggressor.items():
                for rank, more in self.rank.items():
                    yield self._pair((victim, mine), (aggressor, theirs), (rank, more))

    def _pair(
        self, victim: tuple[str, Table], aggressor: tuple[str, Table], rank: tuple[str, Rank]
    ) -> Scenario:
        names = (victim[0], aggressor[0], rank[0])
        groups = (
            Group("victim", rank[1].weight, rank[1].class_, (Job(victim[1]),)),
            *_others(aggressor[1]),
        )
        is_sensitive = victim[0] in self.sensitive and rank[1].is_sensitive()
        return Scenario(
            name="-".join((self.name, *names)),
            disk=self.disk,
            nr_requests=self.nr_requests,
            group=groups,
            schedulers=self.schedulers,
            warmup_s=self.warmup_s,
            measure_s=self.measure_s,
            prepare=self.prepare,
            goal=goals(groups, is_sensitive, rank[1].is_favoured()),
        )


@dataclass(frozen=True, kw_only=True)
class Book(book.Book):
    """A file of pairs."""

    scenario: tuple[Pairs, ...] = ()

    SCHEDULERS: ClassVar = SCHEDULERS
