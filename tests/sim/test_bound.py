# SPDX-License-Identifier: GPL-2.0-only
"""The bound of protection in kernel/sutro-protect.c, section 4, for random groups.

While a group is protected, it receives at least R * (t - 2 * D0) in any interval of length t, with

    D0 = p * T + D
    R = X * (1 - p) * (1 - D / T)

X is its rate alone, D the longest time that requests of other groups took to complete after a
shared window, in this run. p and T are those of the elevator; where they change within an interval,
the largest p, and the T that gives less. The service is exact device time by the model of the
disk. A group has no service between two of its requests, even alone: the bound is later by the
latency of its service curve alone. Intervals begin and end at ticks.

The groups of SEEDS are drawn: a victim with or without think time, and one to four others.

    python3 test_bound.py FIRST COUNT    the worst interval of each of these draws
"""

from __future__ import annotations

import math
import os
import random
import sys
from dataclasses import dataclass

import pytest
import scenes
from program import run
from uml import drawn, drawn_pairs
from uml.scenario import Group, Job, Scenario

TICK_MS = 2
SETTLED_S = 3.0
MEASURE_S = 5.0
# Of each draw so many intervals without service are the beginning of intervals that are judged.
BEGINNINGS = 400
WHOLE = 1024
SIZES = ("4k", "16k", "64k")
RANKS = (200, 300, 500, 1000, 2000, 0)
# Random scenarios, as in test_promises.py.
SEEDS = range(int(os.environ.get("SUTRO_SIM_EXAMPLES", "20")))
# Of SEEDS, this part is of groups that need protection and have a bound above half of their rate.
BOUNDED = 35 / 60


@dataclass(frozen=True)
class Lack:
    """The interval that is the most behind the bound: when it begins, its length, by how much time
    the service is late there (negative: early), how late it may be, and R / X."""

    at_s: float
    length_s: float
    late_s: float
    allowed_s: float
    part: float


def draw(number: int) -> Scenario:
    """A victim and others on flash; a hdd waits for groups in another way."""
    rng = random.Random(f"bound/{number}")
    disk = drawn.disk(rng)
    while disk["kind"] == "hdd":
        disk = drawn.disk(rng)
    rank = rng.choice(RANKS)
    if rng.random() < 0.6:
        rw = rng.choice(("randread", "randread", "randwrite", "read"))
        fio = {"rw": rw, "bs": rng.choice(SIZES), "iodepth": rng.choice((1, 1, 2, 4, 8, 16, 32))}
    else:
        think = rng.choice((100, 300, 1000, 3000, 7000, 20000))
        fio = {"rw": "randread", "bs": rng.choice(SIZES), "iodepth": 1, "thinktime": think}
    others = [drawn_pairs.other(rng) for _ in range(rng.choice((1, 1, 2, 4)))]
    weight = drawn_pairs.OTHERS_WEIGHT
    groups = (
        Group("victim", rank or weight, None if rank else "rt", (Job(fio),)),
        *(
            Group(f"other-{n}", weight, None, tuple(map(Job, jobs)))
            for n, jobs in enumerate(others)
        ),
    )
    return Scenario(
        name=f"bound-{number}",
        title=drawn_pairs.describe(disk, groups),
        disk=disk,
        nr_requests=256,
        group=groups,
        schedulers=("sutro",),
        warmup_s=SETTLED_S,
        measure_s=MEASURE_S,
        sample_ms=TICK_MS,
    )


def _record(scene: Scenario, groups: list[Group]) -> tuple[list[float], list[list[int]]]:
    """The service of the victim until each tick from SETTLED_S on, and the windows."""
    found = run(scenes.lines(scene, "sutro", groups, windows=1))
    width, first = len(scene.group) + 1, round(SETTLED_S * 1000 / TICK_MS)
    served = [row[0] / 1e9 for row in found["truth"][1::width]]
    return served[first:], found["windows"][first:]


def _rate(served: list[float]) -> float:
    return (served[-1] - served[0]) * 1000 / TICK_MS / (len(served) - 1)


def _latency_s(served: list[float], rate: float) -> float:
    """The least L with which the service of each interval is at least rate * (t - L)."""
    least, latency_s = math.inf, 0.0
    for tick, got in enumerate(served):
        ahead_s = tick * TICK_MS / 1000 - got / rate
        least = min(least, ahead_s)
        latency_s = max(latency_s, ahead_s - least)
    return latency_s


def lack(scene: Scenario) -> Lack | None:
    """The worst interval of a draw; None where no interval has a bound."""
    alone, _ = _record(scene, list(scene.group[:1]))
    served, windows = _record(scene, scene.leaves())
    rate, late_s = _rate(alone), windows[-1][2] / 1e9
    allowed_s = _latency_s(alone, rate) + 2 * TICK_MS / 1000
    quiet = [n for n in range(len(served) - 1) if served[n] == served[n + 1]] or [0]
    worst = None
    for begin in quiet[:: len(quiet) // BEGINNINGS + 1]:
        part, most_s, least_s = 0.0, 0.0, math.inf
        for end in range(begin + 1, len(served)):
            shared, cycle_ns, _ = windows[end]
            part = max(part, shared / WHOLE)
            most_s, least_s = max(most_s, cycle_ns / 1e9), min(least_s, cycle_ns / 1e9)
            assured = (1 - part) * (1 - late_s / least_s)
            if assured <= 0:
                break
            length_s = (end - begin) * TICK_MS / 1000
            due_s = length_s - 2 * (part * most_s + late_s)
            behind_s = due_s - (served[end] - served[begin]) / rate / assured
            if worst is None or behind_s > worst.late_s:
                at_s = SETTLED_S + begin * TICK_MS / 1000
                worst = Lack(at_s, length_s, behind_s, allowed_s, assured)
    return worst


@pytest.fixture(scope="module")
def lacks() -> dict[int, Lack]:
    """The worst intervals of all draws that have a bound."""
    found = {number: lack(draw(number)) for number in SEEDS}
    return {number: one for number, one in found.items() if one}


@pytest.mark.parametrize("number", SEEDS)
def test_service_is_at_least_the_bound(lacks: dict[int, Lack], number: int) -> None:
    """In each interval."""
    one = lacks.get(number)
    assert one is None or one.late_s <= one.allowed_s, (one, draw(number).title)


def test_most_draws_have_a_bound(lacks: dict[int, Lack]) -> None:
    """The test judges something."""
    assert sum(one.part > 0.5 for one in lacks.values()) >= BOUNDED * len(SEEDS)


def main(first: int, count: int) -> None:
    """Print the worst intervals."""
    for number in range(first, first + count):
        scene = draw(number)
        print(number, lack(scene), scene.title, flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
