# SPDX-License-Identifier: GPL-2.0-only
"""Random pairs of a favoured group and others. The number of a draw is its seed.

The pairs of tests/uml/protect.toml are known while the elevator is changed. These are not: disk,
weights, sizes, depths, think times and directions are drawn. A victim is one process, or several
with sizes and depths of their own, or a burst; the others are one to eight groups. In a third of
the draws the victim or the others send something else after each PHASE_S. From SYNC_FROM on, each
write of a victim is followed by a flush, as with fsync().

A victim shall receive the lesser of its rate alone and of its share, in each phase without its
first SETTLE_S. A synchronous reader of class rt or of ten times the weight shall have twice its
99th percentile alone at most.

    python3 draws.py FIRST COUNT    figures of the draws that miss their goals, the worst one last
"""

import math
import random
import statistics
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import scenes
from uml import drawn, protect
from uml.scenario import Group, Job, Scenario

# A group of class rt leaves the rest to others: sutro-tree.c.
RT_SHARE = 32 / 33
PHASE_S = 5.0
SETTLE_S = 1.0
WARMUP_S = 3.0
# Later than the end of any run.
NEVER_S = 1000.0
OTHERS_WEIGHT = 100
SYNC_FROM = 1000
SYNCHRONOUS = ("4k", "8k", "16k", "32k", "64k")


@dataclass(frozen=True)
class Received:
    """The service of a victim over the lesser of alone and entitled in the worst phase, its P99
    against alone (NaN where it is not judged), and the bytes of the others."""

    part: float
    p99: float
    others: int

    def is_met(self) -> bool:
        """Whether both goals are."""
        return self.part >= protect.ENTITLED and not self.p99 > protect.P99


def _process(rng: random.Random) -> dict[str, object]:
    """A process with few requests."""
    fio = drawn.few(rng)
    if rng.random() < 0.4:
        fio["thinktime"] = rng.choice((100, 300, 1000, 2000, 5000, 10000))
    return fio


def _victim(rng: random.Random) -> list[dict[str, object]]:
    shape = rng.choice(("synchronous", "one", "several", "burst"))
    if shape == "synchronous":
        one = {"rw": "randread", "bs": rng.choice(SYNCHRONOUS), "iodepth": 1}
        return [{**one, "thinktime": rng.choice((0, 0, 100, 500, 2000, 7000))}]
    if shape == "burst":
        think = rng.choice((5000, 10000, 20000, 50000))
        rw = rng.choice(("randread", "randwrite", "randrw"))
        depth = rng.choice((4, 16, 64))
        return [{"rw": rw, "bs": rng.choice(drawn.SIZES), "iodepth": depth, "thinktime": think}]
    return [_process(rng) for _ in range(1 if shape == "one" else rng.randint(2, 3))]


def other(rng: random.Random) -> list[dict[str, object]]:
    """The processes of a group with many requests."""
    deep, stream = drawn.deep(rng), drawn.stream(rng)
    flood = {"rw": "write", "bs": rng.choice(("64k", "512k")), "iodepth": 64, "direct": 0}
    return rng.choice(([deep], [deep], [stream], [flood], [deep, stream], [_process(rng), flood]))


def _synced(processes: Sequence[dict[str, object]]) -> list[dict[str, object]]:
    """The same processes with fsync() after each write."""
    return [{**fio, "fsync": 1} for fio in processes]


def _jobs(rng: random.Random, one: Sequence[dict], two: Sequence[dict] | None) -> tuple[Job, ...]:
    """The first set of processes, and in turns with it the second one."""
    if two is None:
        return tuple(Job(fio) for fio in one)
    first = tuple(Job(fio, pause_s=(PHASE_S, 2 * PHASE_S)) for fio in one)
    second = (Job(fio, start_s=PHASE_S, pause_s=(PHASE_S, NEVER_S)) for fio in two)
    return (*first, *second)


def draw(number: int) -> Scenario:
    """A pair."""
    rng = random.Random(number)
    disk = drawn.disk(rng)
    rank = rng.choice((150, 200, 300, 500, 1000, 2000, 0))
    changes = rng.choice(("", "", "", "", "victim", "others"))
    first, second = _victim(rng), _victim(rng) if changes == "victim" else None
    if number >= SYNC_FROM:
        first, second = _synced(first), second and _synced(second)
    victim = _jobs(rng, first, second)
    others = [
        _jobs(rng, other(rng), other(rng) if changes == "others" else None)
        for _ in range(rng.choice((1, 1, 2, 3, 8)))
    ]
    return Scenario(
        name=f"draw-{number}",
        disk=disk,
        nr_requests=256,
        group=(
            Group("victim", rank or OTHERS_WEIGHT, None if rank else "rt", victim),
            *(Group(f"other-{n}", OTHERS_WEIGHT, None, jobs) for n, jobs in enumerate(others)),
        ),
        schedulers=("sutro",),
        warmup_s=WARMUP_S,
        measure_s=(3 * PHASE_S if changes else 2 * PHASE_S) - WARMUP_S,
        sample_ms=500,
    )


def is_sensitive(scene: Scenario) -> bool:
    """Whether the latency of the victim is judged, too."""
    victim = scene.group[0]
    return (victim.class_ == "rt" or victim.weight >= protect.SENSITIVE_WEIGHT) and all(
        job.fio["rw"] == "randread"
        and job.fio["bs"] in SYNCHRONOUS
        and job.fio["iodepth"] == 1
        and not job.pause_s
        for job in victim.job
    )


def _share(scene: Scenario) -> float:
    if scene.group[0].class_ == "rt":
        return RT_SHARE
    return scene.entitled(scene.end_s)["victim"]


def receive(scene: Scenario) -> Received:
    """Run a draw, and its victim alone."""
    (run,) = scenes.simulate(scene, "sutro")
    (alone,) = scenes.simulate(scene, "sutro", only="victim")
    share = _share(scene)
    parts = []
    for begin, end in run.phases(SETTLE_S):
        had = alone.used("victim", begin, end).bytes
        if not had:
            continue
        part = run.used("victim", begin, end).bytes / had / min(1.0, protect.PRICE * share)
        parts.append(max(part, run.shares(begin, end)["victim"] / share))
    p99 = run.p99_us(("victim",)) / alone.p99_us(("victim",)) if is_sensitive(scene) else math.nan
    return Received(min(parts), p99, sum(run.bytes(group.name) for group in scene.group[1:]))


def describe(scene: Scenario) -> str:
    """One line: disk, rank, the processes of the victim and of the others."""

    def of(job: Job) -> str:
        return drawn.text_of(job) + (" later" if job.start_s else "")

    disk = " ".join(f"{key}={value}" for key, value in scene.disk.items() if key != "kind")
    victim = scene.group[0]
    rank = victim.class_ or f"{victim.weight}:{OTHERS_WEIGHT}"
    groups = [", ".join(of(job) for job in group.job) for group in scene.group]
    return f"{scene.disk['kind']} {disk} | {rank} | {groups[0]} | " + " + ".join(groups[1:])


def main(first: int, count: int) -> None:
    """Print figures of draws, the worst ones last, and of all together."""
    drawn = [draw(number) for number in range(first, first + count)]
    with ThreadPoolExecutor(2) as pool:
        found = list(zip(drawn, pool.map(receive, drawn), strict=True))
    found.sort(key=lambda one: -one[1].part)
    for scene, got in found:
        if not got.is_met():
            print(f"{scene.name} {got.part:.3f} {got.p99:.2f} {describe(scene)}")
    parts = [got.part for _, got in found]
    slow = [got.p99 for _, got in found if not math.isnan(got.p99)]
    met = sum(got.is_met() for _, got in found)
    print(
        f"{met} of {count} meet their goals; part: worst {min(parts):.3f},"
        f" tenth {sorted(parts)[count // 10]:.3f}, median {statistics.median(parts):.3f};"
        f" P99: worst {max(slow, default=math.nan):.2f}"
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
