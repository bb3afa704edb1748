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
# More of them are there in a long pause.
LONG_PAUSE = 0.5


def received(reads: int, pause_ms: int, other: str, weight: int) -> tuple[float, float]:
    """The rates of the group that pauses and of the others, over those alone."""
    job = {
        "rw": "randread", "bs": "16k", "thinktime": 1000 * pause_ms, "thinktime_blocks": reads,
    }  # fmt: skip
    scene = Scenario(
        name=f"pauses-{reads}-{pause_ms}-{other}-{weight}",
        disk={"kind": "hdd"},
        nr_requests=64,
        group=(
            Group("pauses", weight, None, (Job(job),)),
            Group("others", 100, None, (Job(OTHERS[other]),)),
        ),
        schedulers=("sutro",),
        warmup_s=3.0,
        measure_s=12.0,
        goal=(),
    )
    (together,) = scenes.simulate(scene, "sutro")
    parts = []
    for name in ("pauses", "others"):
        (alone,) = scenes.simulate(scene, "sutro", only=name)
        parts.append(together.bytes(name) / alone.bytes(name))
    return parts[0], parts[1]


@pytest.mark.parametrize("weight", [200, 500, 1000])
@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize(("reads", "pause_ms"), [(1, 300), (4, 150), (8, 300)])
def test_rate_is_kept(reads: int, pause_ms: int, other: str, weight: int) -> None:
    """The first read after a pause waits for few requests of others."""
    mine, others = received(reads, pause_ms, other, weight)
    assert mine >= RECEIVED
    assert others >= ANYWAY


def test_long_pauses_cost_others_less() -> None:
    """The longer a pause, the more requests of others may be at the disk for the same loss."""
    mine, others = received(30, 700, "writes", 500)
    assert mine >= RECEIVED
    assert others >= LONG_PAUSE
