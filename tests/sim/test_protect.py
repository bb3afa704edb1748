# SPDX-License-Identifier: GPL-2.0-only
"""A group with few requests and a higher weight or class has what it is entitled to.

The pairs of `./lab bench protect` in the simulation: a victim with few requests beside a group with
many. It receives the lesser of its rate alone and its share of the device, and if it has one
request at a time, its 99th percentile of latency is at most twice that alone. The rate of a group
alone is measured in the same simulation, its device time by the model of the disk. Victims with
readahead, and those of the same weight, are in the bench only.
"""

from __future__ import annotations

import functools

import pytest
import scenes
from bench.read import load
from uml import protect
from uml.measure import Run
from uml.scenario import Scenario


def _is_simulated(scene: Scenario) -> bool:
    """Whether its victim is judged, and needs no readahead."""
    fio = scene.group[0].job[0].fio
    is_read_ahead = fio["rw"] == "read" and fio.get("direct") == 0
    return any(goal.schedulers for goal in scene.goal) and not is_read_ahead


PAIRS = {one.name: one for one in load(protect.Book, protect.SHIPPED).runs() if _is_simulated(one)}
RANKS = ("200:100", "1000:100", "rt")
OTHERS = ("deep", "writes", "flood", "processes")
# Pairs that miss their goals. hdd: between two bursts a stream begins a slice. The causes of the
# others are not known; on nvme beside discards, eight reads of 4 KiB have 0.78 of their rate.
# Beside one large request at a time (one-...) they have 0.73 or more. On flash, a reader that
# thinks for 5 ms has its rate there, and 7.4 times its latency in one case of 100. A scan of weight
# 1000 has 0.84 of its share beside 64 reads: it could have a backlog, so that is no reason to
# protect it.
MISSED = {
    "nvme-oltp-8-processes-200:100",
    "nvme-oltp-16-deep-200:100",
    "nvme-oltp-16-processes-200:100",
    "nvme-sync-64k-discards-200:100",
    "nvme-sync-4k-x8-discards-200:100",
    "nvme-sync-4k-x8-discards-1000:100",
    "nvme-oltp-2-discards-200:100",
    *(f"{disk}-think-1ms-discards-{rank}" for disk in ("ssd", "ssd-cache") for rank in RANKS[1:]),
    "ssd-cache-crowd-sync-64k-writers-200:100",
    *(f"hdd-bursts-{other}-{rank}" for other in ("writes", "flood") for rank in RANKS),
    *(f"ssd-cache-sync-4k-x8-one-write-{rank}" for rank in RANKS[:2]),
    "nvme-oltp-8-discards-200:100",
    "ssd-fast-bursts-one-read-200:100",
    "ssd-sync-4k-x8-one-pauses-200:100",
    *(f"{disk}-scan-deep-1000:100" for disk in ("ssd", "ssd-cache")),
    *(f"{disk}-think-5ms-one-write-{rank}" for disk in ("ssd", "ssd-cache") for rank in RANKS[1:]),
    "ssd-think-20ms-one-pauses-200:100",
    "hdd-think-20ms-one-read-200:100",
}
# A group of class rt leaves the rest to others: sutro-tree.c.
RT_SHARE = 32 / 33


def _is_sensitive(scene: Scenario) -> bool:
    return any(goal.metric == "p99_vs_alone" for goal in scene.goal)


def _key(scene: Scenario) -> str:
    return f"{scene.disk} {scene.group[0].job} {scene.warmup_s} {scene.measure_s}"


@functools.cache
def _alone(key: str) -> Run:
    """The run of a victim with its disk to itself, the same for all of its pairs there."""
    scene = next(one for one in PAIRS.values() if _key(one) == key)
    (run,) = scenes.simulate(scene, "sutro", only="victim")
    return run


@pytest.mark.parametrize("name", PAIRS)
def test_entitled(name: str) -> None:
    """The lesser of its rate alone and its share; and its latency alone."""
    scene = PAIRS[name]
    (run,) = scenes.simulate(scene, "sutro")
    alone = _alone(_key(scene))
    is_rt = scene.group[0].class_ == "rt"
    share = RT_SHARE if is_rt else scene.entitled(run.samples[-1].at_s)["victim"]
    # A group receives the part of its rate alone that PRICE times its share pays for.
    part = run.bytes("victim") / alone.bytes("victim") / min(1.0, protect.PRICE * share)
    received = max(part, run.shares()["victim"] / share)
    latency = run.p99_us(("victim",)) / alone.p99_us(("victim",))
    met = received >= protect.ENTITLED and (latency <= protect.P99 or not _is_sensitive(scene))
    assert met == (name not in MISSED), f"{received:.3f} received, {latency:.2f} x the latency"
    # Others are not shut out.
    assert all(run.used(other.name).time_ns > 0 for other in scene.group[1:])
