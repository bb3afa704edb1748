# SPDX-License-Identifier: GPL-2.0-only
"""A group with few requests and a higher weight or class has what it is entitled to.

The pairs of `./lab bench protect` in the simulation: a victim with few requests beside a group with
many. It receives the lesser of what it receives alone and its share of the device, and if it has
one request at a time, its 99th percentile of latency is at most twice what it is alone. What a
group receives alone is measured in the same simulation, its device time by the model of the disk.
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
# A group of class rt leaves the rest to others: sutro-tree.c.
RT_SHARE = 32 / 33


def _is_prompt(scene: Scenario) -> bool:
    return any(goal.metric == "p99_vs_alone" for goal in scene.goal)


@functools.cache
def _alone(victim: str) -> Run:
    scene = next(one for one in PAIRS.values() if str(one.group[0].job) == victim)
    (run,) = scenes.simulate(scene, "sutro", only="victim")
    return run


@pytest.mark.parametrize("name", PAIRS)
def test_entitled(name: str) -> None:
    """The lesser of what it receives alone and its share; and the latency that it has alone."""
    scene = PAIRS[name]
    (run,) = scenes.simulate(scene, "sutro")
    alone = _alone(str(scene.group[0].job))
    is_rt = scene.group[0].class_ == "rt"
    share = RT_SHARE if is_rt else scene.entitled(run.samples[-1].at_s)["victim"]
    received = max(run.bytes("victim") / alone.bytes("victim"), run.shares()["victim"] / share)
    assert received >= protect.ENTITLED
    if _is_prompt(scene):
        assert run.p99_us(("victim",)) <= protect.P99 * alone.p99_us(("victim",))
    # Others are not shut out.
    assert run.bytes("other") > 0
