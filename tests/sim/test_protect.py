# SPDX-License-Identifier: GPL-2.0-only
"""A group with few requests and a higher weight or class has what it is entitled to.

Each case is a group with few requests (VICTIMS) beside one with many (AGGRESSORS). It receives the
lesser of what it receives alone and its share of the device, and if it has one request at a time,
its 99th percentile of latency is at most twice what it is alone. What a group receives alone is
measured in the same simulation, its device time by the model of the disk.
"""

from __future__ import annotations

import functools

import pytest
import scenes
from uml.measure import Run
from uml.scenario import Group, Job, Scenario

DISK = {"kind": "ssd", "read_us": 320, "write_us": 800, "bus_kbps": 135000}
VICTIMS = {
    "sync-4k": {"rw": "randread", "bs": "4k"},
    "sync-64k": {"rw": "randread", "bs": "64k"},
    "sync-4k-x8": {"rw": "randread", "bs": "4k", "iodepth": 8},
    "think-0.1ms": {"rw": "randread", "bs": "4k", "thinktime": 100},
    "think-1ms": {"rw": "randread", "bs": "16k", "thinktime": 1000},
    "think-5ms": {"rw": "randread", "bs": "4k", "thinktime": 5000},
    "oltp-2": {"rw": "randrw", "bs": "16k", "iodepth": 2},
    "oltp-8": {"rw": "randrw", "bs": "16k", "iodepth": 8},
    "bursts": {"rw": "randread", "bs": "16k", "iodepth": 64, "thinktime": 20000},
    "scan": {"rw": "read", "bs": "128k", "iodepth": 4},
}
AGGRESSORS = {
    "deep": {"rw": "randread", "bs": "64k", "iodepth": 64},
    "writes": {"rw": "write", "bs": "1m", "iodepth": 32},
    "flood": {"rw": "write", "bs": "512k", "iodepth": 64, "direct": 0},
    "processes": {"rw": "randread", "bs": "4k", "iodepth": 200},
}
RANKS = {"1000:100": {"weight": 1000}, "rt": {"class_": "rt"}}
# A group of class rt leaves the rest to others: sutro-tree.c.
RT_SHARE = 32 / 33
ENTITLED = 0.95
SYNC = ("sync", "think")


def _scene(victim: str, aggressor: str, rank: str) -> Scenario:
    groups = (
        Group("victim", job=(Job(fio=VICTIMS[victim]),), **RANKS[rank]),
        Group("other", job=(Job(fio=AGGRESSORS[aggressor]),)),
    )
    return Scenario(
        name=f"{victim}-{aggressor}-{rank}", title="", disk=DISK, nr_requests=256,
        group=groups, warmup_s=3, measure_s=6, knobs={"sutro": {"protect": 98}},
    )  # fmt: skip


@functools.cache
def _alone(victim: str) -> Run:
    (run,) = scenes.simulate(_scene(victim, "deep", "rt"), "sutro", only="victim")
    return run


@pytest.mark.parametrize("rank", RANKS)
@pytest.mark.parametrize("aggressor", AGGRESSORS)
@pytest.mark.parametrize("victim", VICTIMS)
def test_entitled(victim: str, aggressor: str, rank: str) -> None:
    """The lesser of what it receives alone and its share; and the latency that it has alone."""
    scene = _scene(victim, aggressor, rank)
    (run,) = scenes.simulate(scene, "sutro")
    alone = _alone(victim)
    share = RT_SHARE if rank == "rt" else scene.entitled(run.samples[-1].at_s)["victim"]
    received = max(run.bytes("victim") / alone.bytes("victim"), run.shares()["victim"] / share)
    assert received >= ENTITLED
    if victim.startswith(SYNC):
        assert run.p99_us(("victim",)) <= 2 * alone.p99_us(("victim",))
    # Others are not shut out.
    assert run.bytes("other") > 0
