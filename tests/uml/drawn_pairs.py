# SPDX-License-Identifier: LGPL-2.1-or-later
"""Pairs that a seed draws, for `./lab bench protect --random COUNT --seed N`.

The pairs of protect.toml are known while the elevator is changed. These are not: disk, weights,
sizes, depths, think times and directions are drawn. A victim is one process, or several with sizes
and depths of their own, or a burst; the others are one to eight groups. In a third of the pairs the
victim or the others send something else after each PHASE_S. Each write of every third victim is
followed by a flush, as with fsync().

The simulation runs the same pairs with other seeds (tests/sim/draws.py).
"""

import random
from collections.abc import Iterable, Sequence
from statistics import median

from bench.judge import OURS
from rig.result import Goal, Result

from . import protect
from .drawn import SIZES, deep, disk, few, stream, text_of
from .protect import LATENCY, PROTECTING, SERVICE
from .scenario import SCHEDULERS, Book, Group, Job, Scenario

PHASE_S = 5.0
WARMUP_S = 3.0
# Later than the end of any run.
NEVER_S = 1000.0
OTHERS_WEIGHT = 100
SYNCED = 3
SYNCHRONOUS = ("4k", "8k", "16k", "32k", "64k")
# The part of the pairs that have their service and latency, and their median throughput.
MET = 0.95


def _process(rng: random.Random) -> dict[str, object]:
    """A process with few requests."""
    fio = few(rng)
    if rng.random() < 0.4:
        fio["thinktime"] = rng.choice((100, 300, 1000, 2000, 5000, 10000))
    return fio


def favoured(rng: random.Random) -> list[dict[str, object]]:
    """The processes of a group with few requests."""
    shape = rng.choice(("synchronous", "one", "several", "burst"))
    if shape == "synchronous":
        one = {"rw": "randread", "bs": rng.choice(SYNCHRONOUS), "iodepth": 1}
        return [{**one, "thinktime": rng.choice((0, 0, 100, 500, 2000, 7000))}]
    if shape == "burst":
        think = rng.choice((5000, 10000, 20000, 50000))
        rw = rng.choice(("randread", "randwrite", "randrw"))
        depth = rng.choice((4, 16, 64))
        return [{"rw": rw, "bs": rng.choice(SIZES), "iodepth": depth, "thinktime": think}]
    return [_process(rng) for _ in range(1 if shape == "one" else rng.randint(2, 3))]


def other(rng: random.Random) -> list[dict[str, object]]:
    """The processes of a group with many requests."""
    many, large = deep(rng), stream(rng)
    flood = {"rw": "write", "bs": rng.choice(("64k", "512k")), "iodepth": 64, "direct": 0}
    return rng.choice(([many], [many], [large], [flood], [many, large], [_process(rng), flood]))


def _synced(processes: Sequence[dict[str, object]]) -> list[dict[str, object]]:
    """The same processes with fsync() after each write."""
    return [{**fio, "fsync": 1} for fio in processes]


def _jobs(one: Sequence[dict], two: Sequence[dict] | None) -> tuple[Job, ...]:
    """The first set of processes, and in turns with it the second one."""
    if two is None:
        return tuple(Job(fio) for fio in one)
    first = tuple(Job(fio, pause_s=(PHASE_S, 2 * PHASE_S)) for fio in one)
    second = (Job(fio, start_s=PHASE_S, pause_s=(2 * PHASE_S, NEVER_S)) for fio in two)
    return (*first, *second)


def pair(rng: random.Random, name: str, is_synced: bool) -> Scenario:
    """A pair; with is_synced each write of the victim is followed by a flush."""
    on = disk(rng)
    rank = rng.choice((150, 200, 300, 500, 1000, 2000, 0))
    changes = rng.choice(("", "", "", "", "victim", "others"))
    first, second = favoured(rng), favoured(rng) if changes == "victim" else None
    if is_synced:
        first, second = _synced(first), second and _synced(second)
    victim = _jobs(first, second)
    others = [
        _jobs(other(rng), other(rng) if changes == "others" else None)
        for _ in range(rng.choice((1, 1, 2, 3, 8)))
    ]
    groups = (
        Group("victim", rank or OTHERS_WEIGHT, None if rank else "rt", victim),
        *(Group(f"other-{n}", OTHERS_WEIGHT, None, jobs) for n, jobs in enumerate(others)),
    )
    return Scenario(
        name=name,
        title=describe(on, groups),
        disk=on,
        nr_requests=256,
        group=groups,
        schedulers=SCHEDULERS,
        warmup_s=WARMUP_S,
        measure_s=(3 * PHASE_S if changes else 2 * PHASE_S) - WARMUP_S,
        goal=protect.goals(groups, is_sensitive(groups[0])),
    )


def is_sensitive(victim: Group) -> bool:
    """Whether the latency of a victim is judged, too."""
    return (victim.class_ == "rt" or victim.weight >= protect.SENSITIVE_WEIGHT) and all(
        job.fio["rw"] == "randread"
        and job.fio["bs"] in SYNCHRONOUS
        and job.fio["iodepth"] == 1
        and not job.pause_s
        for job in victim.job
    )


def book(seed: int, count: int) -> Book:
    """The first pairs of a seed."""
    return Book(
        scenario=tuple(
            pair(random.Random(f"{seed}/{n}"), f"random-{seed}-{n}", n % SYNCED == 0)
            for n in range(count)
        )
    )


def summary(seed: int, found: Iterable[Result]) -> list[Result]:
    """For each scheduler: the parts of the pairs that meet the goals, and the median throughput."""
    values: dict[tuple[str, str], list[Result]] = {}
    for one in found:
        if one.metric in (SERVICE, LATENCY, PROTECTING) and one.goal:
            values.setdefault((one.scheduler, one.metric), []).append(one)
    rows = []
    for (scheduler, metric), of in values.items():
        if metric == PROTECTING:
            goal, value = Goal(f"median_{metric}", min=MET), median(one.value for one in of)
        else:
            met = sum(one.met for one in of)
            goal, value = Goal(f"pairs_with_{metric}", min=MET), met / len(of)
        about = {"pairs": len(of)}
        judged = scheduler == OURS
        rows.append(Result(f"random-{seed}", scheduler, goal.metric, value, goal, about, judged))
    return rows


def describe(on: dict[str, object], groups: Sequence[Group]) -> str:
    """One line: disk, rank, the processes of the victim and of the others."""

    def of(job: Job) -> str:
        return text_of(job) + (" later" if job.start_s else "")

    numbers = " ".join(f"{key}={value}" for key, value in on.items() if key != "kind")
    rank = groups[0].class_ or f"{groups[0].weight}:{OTHERS_WEIGHT}"
    processes = [", ".join(of(job) for job in group.job) for group in groups]
    return f"{on['kind']} {numbers} | {rank} | {processes[0]} | " + " + ".join(processes[1:])
