# SPDX-License-Identifier: LGPL-2.1-or-later
"""Scenarios that a seed draws, for `./lab bench fairness --random COUNT --seed N`.

The scenarios of fairness.toml are known while the elevator is changed. These are not: disk, groups,
weights, nesting, jobs and one change in the middle of the run are drawn. A number and a seed are
always the same scenario. Its one goal is the worst error of a share (bench.py). Parts of it
stand in the draws of protection, too (tests/sim/draws.py).

The changes: another weight of a group, a pause of a group, and a disk that becomes slower. A part
of the flash drives collects garbage. Flash drives are slower than real ones, for a run has as many
requests less. On an hdd a share of 1 % is a slice of 100 ms in 10 s, so runs there are longer.
"""

import random
from collections.abc import Iterable
from dataclasses import replace
from statistics import median

from bench.judge import OURS
from rig.result import Goal, Result

from .scenario import DEMAND, Book, Event, Group, Job, Scenario
from .scenario import Goal as FairGoal

SIZES = ("4k", "8k", "16k", "32k", "64k", "128k", "256k")
SLOWER = (2, 4, 8)
WARMUP_S = 3.0
FLASH_PHASE_S, HDD_PHASE_S = 5.0, 40.0
SAMPLE_MS = 500
# The part of the flash drives that collect garbage.
COLLECTING = 0.15
WORST = 0.1
MEDIAN = 0.02
# A slower hdd, in the numbers of the model's defaults.
SLOW_HDD = {"rpm": 3600, "bandwidth_kbps": 75000, "seek_min_us": 1000, "seek_max_us": 21000}


# ---- parts ----


def disk(rng: random.Random, slower: tuple[int, ...] = SLOWER) -> dict[str, object]:
    """A model disk; a flash drive is slower by one of these factors."""
    kind = rng.choice(("ssd", "ssd", "ssd", "nvme", "hdd"))
    if kind == "hdd":
        return {"kind": kind}
    factor = rng.choice(slower)
    nvme = kind == "nvme"
    numbers: dict[str, object] = {
        "kind": kind,
        "read_us": factor * rng.randint(50, 120),
        "write_us": factor * rng.randint(100, 400),
        "bus_kbps": rng.choice((200, 400, 540)) * (6 if nvme else 1) * 1000 // factor,
        "channels": rng.choice((32, 64, 128) if nvme else (4, 8, 16, 32)),
    }
    if rng.random() < 0.25:
        numbers["cache_kb"] = 16384
    return numbers


def deep(rng: random.Random) -> dict[str, object]:
    """Many random requests."""
    fio: dict[str, object] = {"rw": rng.choice(("randread", "randwrite", "randrw"))}
    return fio | {"bs": rng.choice(SIZES), "iodepth": rng.choice((32, 64, 200))}


def stream(rng: random.Random) -> dict[str, object]:
    """Large requests in order."""
    fio: dict[str, object] = {"rw": rng.choice(("read", "write"))}
    return fio | {"bs": rng.choice(("256k", "512k", "1m")), "iodepth": rng.choice((4, 16, 32))}


def few(rng: random.Random) -> dict[str, object]:
    """A few requests."""
    return {
        "rw": rng.choice(("randread", "randread", "randwrite", "randrw", "read", "write")),
        "bs": rng.choice(SIZES),
        "iodepth": rng.choice((1, 1, 2, 4, 8, 16)),
    }


# ---- a scenario of fairness ----


def _jobs(rng: random.Random) -> tuple[Job, ...]:
    """The jobs of a group: one with many requests or a stream, both, or one with few."""
    kinds = rng.choice(((deep,), (deep,), (stream,), (deep, stream), (few,)))
    fio = [kind(rng) for kind in kinds]
    if kinds == (few,) and fio[0]["iodepth"] == 1 and rng.random() < 0.5:
        fio[0]["thinktime"] = rng.choice((100, 300, 1000, 3000))
    return tuple(map(Job, fio))


def _weight(rng: random.Random) -> int:
    """From 50 to 1000, as often below 224 as above."""
    return round(50 * 20 ** rng.random())


def _groups(rng: random.Random) -> list[Group]:
    count = rng.choice((2, 2, 3, 4, 6, 8))
    if count < 4 or rng.random() < 0.7:
        return [Group(f"g{n}", _weight(rng), None, _jobs(rng)) for n in range(count)]
    parents = [Group(f"p{n}", _weight(rng)) for n in range(2)]
    inside = [Group(f"p{n % 2}/g{n}", _weight(rng), None, _jobs(rng)) for n in range(count)]
    return [*parents, *inside]


def _slowed(rng: random.Random, numbers: dict[str, object]) -> dict[str, object]:
    """Numbers of a disk whose reads, writes, or all of it become slower."""
    factor = rng.choice((2, 3, 5))
    what = rng.choice((("read_us",), ("write_us",), ("write_us",), ("read_us", "write_us")))
    if numbers["kind"] == "hdd":
        return dict(SLOW_HDD)
    return {key: factor * int(str(numbers[key])) for key in what}


def _disk_of_groups(rng: random.Random) -> dict[str, object]:
    numbers = disk(rng)
    if numbers["kind"] == "hdd":
        return numbers | {"size_mb": 8192}
    if rng.random() < COLLECTING:
        numbers |= {"size_mb": 256, "over_provision_percent": 15, "fill_percent": 100}
    return numbers


def _pausing(group: Group, begin_s: float, end_s: float) -> Group:
    jobs = (replace(job, pause_s=(begin_s, end_s)) for job in group.job)
    return replace(group, job=tuple(jobs))


def fairness(seed: int, number: int) -> Scenario:
    """The scenario of a seed and a number."""
    rng = random.Random(f"{seed}/{number}")
    numbers = _disk_of_groups(rng)
    groups = _groups(rng)
    phase_s = HDD_PHASE_S if numbers["kind"] == "hdd" else FLASH_PHASE_S
    change_s = WARMUP_S + phase_s
    events: tuple[Event, ...] = ()
    change = rng.choice(("", "", "weight", "pause", "disk"))
    changed = rng.choice([group for group in groups if group.job])
    if change == "weight":
        events = (Event(change_s, weight={changed.name: _weight(rng)}),)
    elif change == "disk":
        events = (Event(change_s, disk=_slowed(rng, numbers)),)
    elif change == "pause":
        paused = _pausing(changed, change_s, change_s + phase_s)
        groups[groups.index(changed)] = paused
    return Scenario(
        name=f"random-{seed}-{number}",
        title=describe(numbers, groups, events),
        disk=numbers,
        nr_requests=rng.choice((256, 1024)),
        group=tuple(groups),
        schedulers=("bfq", "iocost", "sutro"),
        warmup_s=WARMUP_S,
        measure_s={"": 1, "pause": 3}.get(change, 2) * phase_s,
        sample_ms=SAMPLE_MS,
        event=events,
        goal=(FairGoal(DEMAND, max=WORST),),
    )


def book(seed: int, count: int) -> Book:
    """The first scenarios of a seed."""
    return Book(scenario=tuple(fairness(seed, number) for number in range(count)))


def summary(seed: int, found: Iterable[Result]) -> list[Result]:
    """The worst and the median error of each scheduler over all scenarios."""
    errors: dict[str, list[float]] = {}
    for one in found:
        if one.metric == DEMAND:
            errors.setdefault(one.scheduler, []).append(one.value)
    goals = (
        (Goal(f"worst_{DEMAND}", max=WORST), max),
        (Goal(f"median_{DEMAND}", max=MEDIAN), median),
    )
    return [
        Result(f"random-{seed}", scheduler, goal.metric, value(of), goal, judged=scheduler == OURS)
        for goal, value in goals
        for scheduler, of in errors.items()
    ]


def text_of(job: Job) -> str:
    """A job in a few words."""
    fio = job.fio
    think = f" think {fio['thinktime']} us" if fio.get("thinktime") else ""
    kind = "buffered " if fio.get("direct") == 0 else ""
    sync = " fsync" if fio.get("fsync") else ""
    return f"{kind}{fio['rw']} {fio['bs']} x{fio['iodepth']}{think}{sync}"


def describe(numbers: dict[str, object], groups: list[Group], events: tuple[Event, ...]) -> str:
    """One line: disk, groups with weights and jobs, and the change."""

    def of(group: Group) -> str:
        jobs = ", ".join(map(text_of, group.job))
        pause = " (pauses)" if any(job.pause_s for job in group.job) else ""
        return f"{group.name} {group.weight} {jobs}{pause}".rstrip()

    about = " ".join(f"{key}={value}" for key, value in numbers.items() if key != "kind")
    changes = [f"{event.weight or event.disk}" for event in events]
    return " | ".join((f"{numbers['kind']} {about}".rstrip(), *map(of, groups), *changes))
