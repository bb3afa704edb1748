# SPDX-License-Identifier: GPL-2.0-only
"""Random pairs of draws.py: how many of them meet their goals.

The pairs of DRAWS are judged, some with fsync(). MISSED has those that miss their goals. `draws.py
FIRST COUNT` prints more of them. Of the TRIOS, TRIOS_MISSED miss their goals, and UNLIKE_MISSED
with a lighter peer.
"""

from dataclasses import replace

import draws
import pytest
import scenes

DRAWS = (*range(24), *range(draws.SYNC_FROM, draws.SYNC_FROM + 12))
MISSED: set[int] = set()
TRIOS = (*range(60), *range(draws.SYNC_FROM, draws.SYNC_FROM + 20))
TRIOS_MISSED = {5, 21, 37, 1007}
UNLIKE_MISSED = {7, 10, 47, 51}


@pytest.mark.parametrize("number", DRAWS)
def test_received(number: int) -> None:
    """The lesser of alone and entitled, and the latency; the others are not shut out."""
    scene = draws.draw(number)
    got = draws.receive(scene)
    assert got.is_met() == (number not in MISSED), (got, scene.title)
    assert got.others > 0


@pytest.mark.parametrize("seed", [5, 6, 7, 8])
def test_other_work(seed: int) -> None:
    """A victim that goes on with smaller requests is protected for these.

    One read of 32 KiB at a time, then four of 128 KiB for 5 s, then one of 32 KiB.
    """
    got = draws.receive(draws.draw(3), seed=seed)
    assert got.is_met(), got


@pytest.mark.parametrize("number", TRIOS)
def test_trio(number: int) -> None:
    """Two favoured groups of one weight: neither takes the share of the other."""
    scene = draws.trio(number)
    got = draws.receive_trio(scene)
    assert got.is_met() == (number not in TRIOS_MISSED), (got, scene.title)


@pytest.mark.parametrize("number", TRIOS)
def test_unlike_trio(number: int) -> None:
    """Two groups of unlike weight beside others that weigh less: neither of them is short."""
    scene = draws.trio(number, unlike=True)
    got = draws.receive_trio(scene)
    assert got.is_met() == (number not in UNLIKE_MISSED), (got, scene.title)


@pytest.mark.parametrize("number", [3, 7])
def test_round_robin(number: int) -> None:
    """A drive whose bus alternates between requests delivers each one when it is done: disk.c."""
    scene = draws.draw(number)
    disk = {**scene.disk, "bus_order": "round-robin"}
    (run,) = scenes.simulate(replace(scene, disk=disk, warmup_s=1.0, measure_s=1.0), "sutro")
    assert run.bytes("victim") > 0
