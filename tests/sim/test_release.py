# SPDX-License-Identifier: GPL-2.0-only
"""Reserved time that a unit cannot use: floors above the demand of their units.

A unit of weight 100 with a floor, a reader of weight 1000, and many requests of weight 100 share
an ssd. All rates are parts of those alone.
"""

from typing import Any

import pytest
from competing import SCAN, SSD, SYNC, WRITES
from promises import FLASH, MB, Scenario, disks

SECONDS, RELEASED_S = 30, 20
DISK = {**SSD, "size_mb": 2048, "nr_requests": 256}
RESTS = {**SYNC, "think_us": 2000}
RARE = {**SYNC, "think_us": 100_000}
UNIT, NEIGHBOUR, BULK = range(3)


def beside_others(
    floor: float, unit: dict[str, int], bulk: dict[str, int], **more: Any
) -> Scenario:
    """The unit, with its floor, the reader, and the bulk."""
    s = disks(1, DISK, seconds=SECONDS)
    for part in range(3):
        s.add("volume", leaves=1, part=part, parts=3)
    s.unit(100, volume=UNIT, **unit, **more)
    s.unit(1000, volume=NEIGHBOUR, **SYNC)
    s.unit(100, volume=BULK, **bulk)
    s.add("promise", cgroup=1, volume=UNIT, floor=floor)
    return s


@pytest.mark.parametrize(
    ("unit", "bulk", "floor"),
    [
        (SYNC, SCAN, 40),
        (SYNC, WRITES, 40),
        (RESTS, SCAN, 10),
        (RESTS, WRITES, 40),
        (RARE, SCAN, 80),
    ],
    ids=["sync-scan", "sync-writes", "rests-scan", "rests-writes", "rare-scan"],
)
def test_floor_above_the_demand(unit: dict[str, int], bulk: dict[str, int], floor: int) -> None:
    """The unit is served as fast as it can, and the others lose little by it."""
    s = beside_others(floor * MB, unit, bulk)
    result = s.run()
    unit_part, neighbour_part = (
        result.mean(result.clients[client], RELEASED_S) / s.alone(client)
        for client in (UNIT, NEIGHBOUR)
    )
    assert neighbour_part > 0.9
    assert unit_part > 0.9
    assert result.promises[0]["reserve"][-1] < 0.03
    assert result.promises[0]["weight"][0][-1] < 1000


def test_floor_of_a_unit_that_no_longer_rests() -> None:
    """It has its floor within a second."""
    s = beside_others(8 * MB, RESTS, SCAN, stop=RELEASED_S)
    s.add("client", cgroup=1, volume=UNIT, start=RELEASED_S, **SYNC)
    result = s.run()
    assert result.promises[0]["reserve"][result.ticks(RELEASED_S) - 1] < 0.03
    assert result.held(0, RELEASED_S + 1, RELEASED_S + 4) > 1


def test_reserve_that_is_not_enough_is_kept() -> None:
    """On a stripe, the rate of the unit follows its reserve: one trial costs it little."""
    s = disks(4, FLASH, seconds=SECONDS)
    for part in range(4):
        s.add("volume", leaves=15, chunk=1 << 19, part=part, parts=4)
    s.unit(100, volume=0, **SYNC)
    for volume in range(1, 4):
        s.unit(1000, volume=volume, write=1, bytes=1 << 19, iodepth=16)
    s.add("promise", cgroup=1, volume=0, floor=1.5 * s.alone(0))
    result = s.run()
    assert result.states(0, RELEASED_S) == ["limited"] * len(result.states(0, RELEASED_S))
    reserve = result.promises[0]["reserve"]
    assert sum(reserve) > 0.8 * 0.9 * len(reserve)
    assert 1.5 * result.held(0, 3) > 0.83


@pytest.mark.parametrize(
    ("unit", "part"),
    [
        ({"bytes": 16384, "iodepth": 4, "write": 1, "think_us": 20000}, 0.9),
        (RESTS, 0.9),
        ({**SYNC, "write": 1, "flush": 1}, 0.4),
    ],
    ids=["log", "rests", "fsync"],
)
def test_reserve_of_a_unit_that_rests_suffices(unit: dict[str, int], part: float) -> None:
    """After a trial that showed that the unit needs its reserve, its floor holds."""
    s = disks(1, {**DISK, "cache_kb": 16384}, seconds=SECONDS)
    for number in range(2):
        s.add("volume", leaves=1, part=number, parts=2)
    s.unit(100, volume=0, **unit)
    s.unit(1000, volume=1, write=1, bytes=1 << 19, iodepth=16)
    s.add("promise", cgroup=1, volume=0, reads=1, writes=1, floor=part * s.alone(0))
    assert s.run().held(0, SECONDS / 2) >= 0.97
