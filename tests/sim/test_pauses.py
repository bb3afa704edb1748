# SPDX-License-Identifier: GPL-2.0-only
"""On a rotational disk, a favoured group that pauses keeps its rate beside many requests of others.

It reads some blocks one after another, and pauses for longer than the disk is kept for it. The
rates of both groups alone are measured in the same simulation.
"""

from __future__ import annotations

import pytest
import scenes
from uml.scenario import Group, Job, Scenario

OTHERS = {
    "deep": {"rw": "randread", "bs": "64k", "iodepth": 32},
    "writes": {"rw": "write", "bs": "1m", "iodepth": 32},
}
# Of the rate alone. Few requests of the others are at the disk in a pause, which orders them badly.
RECEIVED = 0.88
ANYWAY = 0.25
# Beside two groups.
BESIDE_TWO = 0.1
# More of them are there in a long pause.
LONG_PAUSE = 0.5


def pausing(reads: int, pause_ms: int) -> Job:
    """Reads one after another, and then a pause."""
    return Job(
        {"rw": "randread", "bs": "16k", "thinktime": 1000 * pause_ms, "thinktime_blocks": reads}
    )


def received(*groups: Group) -> list[float]:
    """The rates of groups over those alone."""
    scene = Scenario(
        name="pauses",
        disk={"kind": "hdd"},
        nr_requests=64,
        group=groups,
        schedulers=("sutro",),
        warmup_s=3.0,
        measure_s=12.0,
        goal=(),
    )
    (together,) = scenes.simulate(scene, "sutro")
    parts = []
    for group in groups:
        (alone,) = scenes.simulate(scene, "sutro", only=group.name)
        parts.append(together.bytes(group.name) / alone.bytes(group.name))
    return parts


def beside(other: str) -> Group:
    """The group that keeps the disk busy."""
    return Group("others", 100, None, (Job(OTHERS[other]),))


@pytest.mark.parametrize("weight", [200, 500, 1000])
@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize(("reads", "pause_ms"), [(1, 300), (4, 150), (8, 300)])
def test_rate_is_kept(reads: int, pause_ms: int, other: str, weight: int) -> None:
    """The first read after a pause waits for few requests of others."""
    job = pausing(reads, pause_ms)
    mine, others = received(Group("pauses", weight, None, (job,)), beside(other))
    assert mine >= RECEIVED
    assert others >= ANYWAY


def test_long_pauses_cost_others_less() -> None:
    """The longer a pause, the more requests of others may be at the disk for the same loss."""
    job = pausing(30, 700)
    mine, others = received(Group("pauses", 500, None, (job,)), beside("writes"))
    assert mine >= RECEIVED
    assert others >= LONG_PAUSE


def test_two_that_pause() -> None:
    """Neither is held back for the other one, the lighter of which is protected.

    The heavier one comes back soon after most of its reads, so that slices would serve it.
    """
    heavier = Group("heavier", 500, None, (pausing(8, 300),))
    lighter = Group("lighter", 400, None, (pausing(2, 170),))
    *both, others = received(heavier, lighter, beside("deep"))
    assert min(both) >= RECEIVED
    assert others >= BESIDE_TWO
