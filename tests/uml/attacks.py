# SPDX-License-Identifier: LGPL-2.1-or-later
"""Scenarios of `./lab bench attacks`: a victim beside a tenant who attacks (inside/attack.py).

Each table of the file stands for all pairs of its victims and attacks: [scenario.ssd] with a victim
deep and an attack children becomes the scenario ssd-deep-children of two groups, `victim` and
`tenant`. Both have a partition of the disk; an attack with `files` has a file system on its own.
The rest is as for fairness.

Each table [bus.NAME] is an attack on sutrod instead (tests/bench/attacks), on a fake machine.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar, Self

from bench import book
from bench.read import Has, Name, Positive, Range, Table, Weight
from bench.stacks import Model

from uml.scenario import SCHEDULERS, Event, Goal, Group, Job, Scenario, Scheduler

SHIPPED = Path(__file__).with_name("attacks.toml")
VICTIM, TENANT = "victim", "tenant"
# The part of its entitlement that a victim keeps. Its P99, over that which fair sharing gives:
# beside a tenant with ordinary I/O, and alone over the share. How late a new weight is in force.
KEPT, P99, WEIGHT_MS = 0.9, 3.0, 1000.0
# An attack that uses less of the disk has not taken place.
ATTACKED = 0.001
# Two runs of a scheduler may differ by this, and it is no less than another one.
AS_GOOD = 0.97
PARTITIONS = (
    "parted -s /dev/d0 mklabel gpt mkpart victim 1MiB 50% mkpart tenant 50% 100%",
    "until [ -b /dev/d0p2 ]; do sleep 0.01; done",
)
FILES = (
    "mkfs.ext4 $EXT4 /dev/d0p2",
    "mkdir /tmp/fs; mount /dev/d0p2 /tmp/fs",
)


@dataclass(frozen=True)
class Victim:
    """Its load and its weight, that of the tenant being 100; `then`: its weight from event_s on."""

    fio: Annotated[Table, Has("rw")]
    weight: Weight = 100
    then: Weight | None = None


@dataclass(frozen=True)
class Attack:
    """A function of inside/attack.py, by its name; `disk` changes numbers of the disk."""

    title: Name
    files: bool = False
    disk: Table = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Pairs:
    """Scenarios of one disk. neighbour: the harmless job of the tenant, for comparison."""

    name: Name
    disk: Annotated[Table, Model()]
    victim: Mapping[str, Victim]
    attack: Mapping[str, Attack]
    neighbour: Annotated[Table, Has("rw")]
    nr_requests: Annotated[int, Range(2, 100000)] = 256
    schedulers: tuple[Scheduler, ...] = ("bfq", "iocost", "sutro")
    warmup_s: Positive = 1.5
    measure_s: Positive = 4.0
    event_s: Positive = 4.0

    def expand(self) -> Iterator[Scenario]:
        """All pairs."""
        for victim, mine in self.victim.items():
            for attack, theirs in self.attack.items():
                yield self._pair((victim, mine), (attack, theirs))

    def _pair(self, victim: tuple[str, Victim], attack: tuple[str, Attack]) -> Scenario:
        mine, theirs = victim[1], attack[1]
        of = (VICTIM,)
        share = mine.weight / (mine.weight + Group(TENANT).weight)
        goals = [
            Goal("kept", of=of, min=KEPT),
            Goal("p99_vs_neighbour", of=of, max=P99),
            Goal("p99_vs_alone", of=of, max=round(P99 / share, 2)),
            Goal("kept_vs_best", of=of, min=AS_GOOD),
            Goal("share", of=(TENANT,), min=ATTACKED),
        ]
        events: tuple[Event, ...] = ()
        if mine.then:
            goals.append(Goal("weight_ms", of=of, max=WEIGHT_MS))
            events = (Event(self.event_s, {VICTIM: mine.then}),)
        command = f"exec python3 /mnt/inside/attack.py {attack[0]}"
        return Scenario(
            name="-".join((self.name, victim[0], attack[0])),
            title=theirs.title,
            row=attack[0],
            disk={**self.disk, **theirs.disk},
            nr_requests=self.nr_requests,
            group=(
                Group(VICTIM, mine.weight, job=(Job({"filename": "/dev/d0p1", **mine.fio}),)),
                Group(TENANT, job=(Job(command=command),)),
            ),
            neighbour=(Job({"filename": "/dev/d0p2", **self.neighbour}),),
            prepare=(*PARTITIONS, *(FILES if theirs.files else ())),
            schedulers=self.schedulers,
            warmup_s=self.warmup_s,
            measure_s=self.measure_s,
            sample_ms=20 if mine.then else 0,
            event=events,
            goal=tuple(goals),
        )


@dataclass(frozen=True, kw_only=True)
class OnDaemon(book.Scenario):
    """An attack on the daemon: a function of tests/bench/attacks/user.py, by its name."""

    attack: Name
    measure_s: Positive = 5.0

    def under(self, schedulers: Sequence[str]) -> Self | None:
        """It is about the daemon, which no other scheduler has."""
        return self if "sutro" in schedulers else None


@dataclass(frozen=True, kw_only=True)
class Book(book.Book):
    """A file of attacks."""

    scenario: tuple[Pairs, ...] = ()
    bus: tuple[OnDaemon, ...] = ()

    RUN: ClassVar = ("scenario", "bus")
    SCHEDULERS: ClassVar = SCHEDULERS
