# SPDX-License-Identifier: GPL-2.0-only
"""A group with few requests and a higher weight or class has what it is entitled to.

The pairs of `./lab bench protect` in the simulation: a victim with few requests beside a group with
many. It receives the lesser of its rate alone and its share of the device, and if it has one
request at a time, its 99th percentile of latency is at most twice that alone. The rate of a group
alone is measured in the same simulation, its device time by the model of the disk.
"""

from __future__ import annotations

import functools

import pytest
import scenes
from bench.read import load
from uml import protect
from uml.measure import Run
from uml.scenario import Scenario

PAIRS = {one.name: one for one in load(protect.Book, protect.SHIPPED).runs()}
RANKS = ("200:100", "1000:100", "rt")
# Pairs that miss their goals. hdd: a reader that thinks for 5 ms is not always waited for, and its
# shortage is less than a trial finds; one that thinks for 100 ms has 0.89 or more of its rate, as a
# trial takes 10 of its 55 requests; between two bursts a stream begins a slice. ssd-cache: a write
# that ends in the cache makes the device look too fast. The causes of the others are not known.
MISSED = {
    "nvme-oltp-8-deep-200:100",
    "nvme-oltp-8-processes-200:100",
    "ssd-cache-oltp-2-processes-200:100",
    "hdd-think-5ms-deep-200:100",
    *(f"hdd-bursts-{other}-{rank}" for other in ("writes", "flood") for rank in RANKS),
    "hdd-think-100ms-deep-200:100",
    "hdd-think-100ms-writes-200:100",
    "hdd-think-100ms-flood-200:100",
    "hdd-think-100ms-processes-200:100",
}
# A group of class rt leaves the rest to others: sutro-tree.c.
RT_SHARE = 32 / 33


def _is_sensitive(scene: Scenario) -> bool:
    return any(goal.metric == "p99_vs_alone" for goal in scene.goal)


@functools.cache
def _alone(disk: str, job: str) -> Run:
    """The run of a victim with its disk to itself, the same for all of its pairs there."""
    scene = next(
        one for one in PAIRS.values() if (str(one.disk), str(one.group[0].job)) == (disk, job)
    )
    (run,) = scenes.simulate(scene, "sutro", only="victim")
    return run


@pytest.mark.parametrize("name", PAIRS)
def test_entitled(name: str) -> None:
    """The lesser of its rate alone and its share; and its latency alone."""
    scene = PAIRS[name]
    (run,) = scenes.simulate(scene, "sutro")
    alone = _alone(str(scene.disk), str(scene.group[0].job))
    is_rt = scene.group[0].class_ == "rt"
    share = RT_SHARE if is_rt else scene.entitled(run.samples[-1].at_s)["victim"]
    # A group receives the part of its rate alone that PRICE times its share pays for.
    part = run.bytes("victim") / alone.bytes("victim") / min(1.0, protect.PRICE * share)
    received = max(part, run.shares()["victim"] / share)
    latency = run.p99_us(("victim",)) / alone.p99_us(("victim",))
    met = received >= protect.ENTITLED and (latency <= protect.P99 or not _is_sensitive(scene))
    assert met == (name not in MISSED), f"{received:.3f} received, {latency:.2f} x the latency"
    # Others are not shut out.
    assert all(run.bytes(other.name) > 0 for other in scene.group[1:])
