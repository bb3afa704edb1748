# SPDX-License-Identifier: GPL-2.0-only
"""A service with a request now and then keeps its rate beside bulk I/O, and others keep the gaps.

Its think time is the same after each request, or exponential: then no gap can be predicted. The
rate and the latency of the service alone, and the rate of the others alone, are measured in the
same simulation.
"""

from __future__ import annotations

import itertools

import pytest
import scenes
from uml.scenario import Group, Job, Scenario

# Of the service's rate alone; the rest is lost to the others' requests that it meets.
REGULAR, RANDOM = 0.88, 0.85
# With this mean think time, the gaps of a regular service hold a request of the others.
GAP_MS = 20
# Of the others' rate alone: a disk serves few of their requests at once here.
OTHERS = 0.07
OTHERS_ANYWAY = 0.001
OTHER_JOBS = {
    "deep": {"rw": "randread", "bs": "64k", "iodepth": 64},
    "writes": {"rw": "write", "bs": "1m", "iodepth": 32},
    "stream": {"rw": "read", "bs": "256k", "iodepth": 8},
}
WEIGHTS = (200, 1000)
REGULAR_MS = {"hdd": (10, 20, 50, 100, 200), "nvme": (50,)}
# On a disk of 8 ms for a request.
RANDOM_MS = (10, 20, 50, 100)


def scene(disk: str, think_ms: int, poisson: bool, other: str, weight: int) -> Scenario:
    """A service of some weight, and bulk I/O of weight 100."""
    service = {"rw": "randread", "bs": "16k", "thinktime": 1000 * think_ms, "poisson": poisson}
    return Scenario(
        name="sporadic",
        disk={"kind": disk},
        nr_requests=256,
        group=(
            Group("service", weight, None, (Job(service),)),
            Group("other", 100, None, (Job(OTHER_JOBS[other]),)),
        ),
        schedulers=("sutro",),
        warmup_s=3.0,
        measure_s=12.0,
        goal=(),
    )


def received(one: Scenario) -> tuple[float, float]:
    """The bytes of the service and of the others, over those alone."""
    (together,) = scenes.simulate(one, "sutro")
    parts = []
    for group in one.group:
        (alone,) = scenes.simulate(one, "sutro", only=group.name)
        parts.append(together.bytes(group.name) / alone.bytes(group.name))
    service, others = parts
    return service, others


@pytest.mark.parametrize(
    ("disk", "think_ms", "other", "weight"),
    [
        (disk, think_ms, other, weight)
        for disk, times_ms in REGULAR_MS.items()
        for think_ms, other, weight in itertools.product(times_ms, OTHER_JOBS, WEIGHTS)
    ],
)
def test_regular(disk: str, think_ms: int, other: str, weight: int) -> None:
    """A request after the same time each: others use the gaps if a request of theirs fits in."""
    service, others = received(scene(disk, think_ms, False, other, weight))
    assert service >= REGULAR
    assert others >= (OTHERS if think_ms >= GAP_MS else OTHERS_ANYWAY)


@pytest.mark.parametrize(
    ("think_ms", "other", "weight"), [*itertools.product(RANDOM_MS, OTHER_JOBS, WEIGHTS)]
)
def test_random(think_ms: int, other: str, weight: int) -> None:
    """A request at any time, on a disk that serves one after another."""
    service, others = received(scene("hdd", think_ms, True, other, weight))
    assert service >= RANDOM
    assert others >= OTHERS_ANYWAY
