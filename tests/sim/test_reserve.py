# SPDX-License-Identifier: GPL-2.0-only
"""Time that is reserved for floors of units with few requests, as reserve.toml has them.

disk, disks     kind and number of the disks; one of flash
layout          of the volume over them, a stripe
units           each has a floor: a part of the rate of its clients alone, or of the time of
                its disks; with children, each client has a cgroup of its own; with both, one
                floor is of its reads and one of its writes
others          clients of units of ten times the weight
left            the rate of all together, as a part of that without the daemon
missed          figures that are measured where a goal is missed; then it must be missed
seeds           how many, if other than SEEDS

The worst 2 s of a scene differ by 0.05 from seed to seed, so each figure is the median of seeds.
"""

import statistics
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from promises import CLOUD, FLASH, HDD, MIRROR, SLOW, STRIPE, Scenario, disks

# From when on a floor has to hold, and the goals.
SETTLED_S = 3.0
GOALS = {"held": 1.0, "worst": 0.95}
SEEDS = 7
DISKS = {"flash": FLASH, "cloud": CLOUD, "slow": SLOW, "hdd": HDD}
LAYOUTS = {"stripe": STRIPE, "mirror": MIRROR}
FILE = tomllib.loads((Path(__file__).parent / "reserve.toml").read_text())
CLIENTS = FILE["clients"]


def build(scene: dict[str, Any]) -> Scenario:
    """Disks, a volume for each unit, the units, and their floors."""
    count, units, others = scene.get("disks", 1), scene["units"], scene["others"]
    s = disks(count, DISKS[scene.get("disk", "flash")])
    parts = len(units) + len(others)
    for part in range(parts):
        place = {"leaves": (1 << count) - 1, "chunk": 1 << 19, "part": part, "parts": parts}
        s.add("volume", kind=LAYOUTS[scene.get("layout", "stripe")], **place)
    floors = []
    for volume, unit in enumerate(units):
        cgroup = s.add("cgroup", weight=100)
        clients = []
        for name in unit["clients"]:
            own = s.add("cgroup", parent=cgroup) if unit.get("children") else cgroup
            clients.append(s.add("client", cgroup=own, volume=volume, **CLIENTS[name]))
        floors.append((cgroup, volume, unit, clients))
    for number, name in enumerate(others):
        s.unit(1000, volume=len(units) + number, **CLIENTS[name])
    for cgroup, volume, unit, clients in floors:
        keys = {"cgroup": cgroup, "volume": volume, "importance": 1}
        if unit.get("both"):
            rates = s.rates_alone(*clients)
            for write in range(2):
                mine = sum(
                    rates[client]
                    for client, name in zip(clients, unit["clients"], strict=True)
                    if CLIENTS[name].get("write", 0) == write
                )
                s.add("promise", reads=1 - write, writes=write, floor=unit["part"] * mine, **keys)
            continue
        key = "part" if "time" in unit else "floor"
        worth = unit["time"] if "time" in unit else unit["part"] * s.alone(*clients)
        s.add("promise", writes=1, **{key: worth}, **keys)
    return s


@pytest.mark.parametrize("scene", FILE["scene"], ids=lambda scene: scene["name"])
def test_floors_hold(scene: dict[str, Any]) -> None:
    """From 3 s on, in the mean and in the worst 2 s; none of them holds without the daemon."""
    s = build(scene)
    free = s.run(control=False)
    seeds = scene.get("seeds", SEEDS)
    results = [replace(s, seed=seed).run() for seed in range(1, seeds + 1)]
    promises = range(len(free.promises))
    got = {
        "held": statistics.median(
            min(one.held(number, SETTLED_S) for number in promises) for one in results
        ),
        "worst": statistics.median(
            min(one.worst(number, SETTLED_S) for number in promises) for one in results
        ),
    }
    missed = scene.get("missed", {})
    assert max(free.held(number, SETTLED_S) for number in promises) < GOALS["held"]
    for name, goal in GOALS.items():
        assert got[name] >= missed.get(name, goal), got
    if missed:
        assert any(got[name] < GOALS[name] for name in missed), "all goals are met: remove `missed`"
    left = statistics.median(one.total(SETTLED_S) for one in results)
    assert left >= scene["left"] * free.total(SETTLED_S)


def shallow(victim: str, other: str, **times: float) -> Scenario:
    """One disk, and a unit with a floor beside one of ten times the weight."""
    s = disks(1, FLASH)
    for part in range(2):
        s.add("volume", leaves=1, part=part, parts=2)
    cgroup = s.unit(100, volume=0, **CLIENTS[victim])
    s.unit(1000, volume=1, **CLIENTS[other], **times)
    s.add("promise", cgroup=cgroup, volume=0, floor=0.5 * s.alone(0), importance=1)
    return s


def test_nothing_is_reserved_for_a_backlog() -> None:
    """A unit that can use its share is helped by its weight."""
    result = shallow("deep", "deep").run()
    assert result.held(0, SETTLED_S) >= 1
    assert max(result.promises[0]["reserve"]) == 0


@pytest.mark.parametrize("seed", range(1, 6))
def test_nothing_is_reserved_before_a_weight_is_in_force(seed: int) -> None:
    """A unit that begins beside two of ten times its weight, on a mirror, is short until then."""
    s = disks(2, {"kind": 1, "read_us": 80, "bus_kbps": 20000, "size_mb": 2048}, seconds=5)
    for part in range(3):
        s.add("volume", kind=MIRROR, leaves=3, chunk=1 << 19, part=part, parts=3)
    cgroup = s.unit(100, volume=0, **CLIENTS["deep"])
    for volume in range(1, 3):
        s.unit(1000, volume=volume, **CLIENTS["deep"])
    s.add("promise", cgroup=cgroup, volume=0, floor=0.3 * 2 * 20e6, importance=1)
    result = replace(s, seed=seed).run()
    assert max(result.promises[0]["reserve"]) == 0
    assert result.held(0, SETTLED_S) >= 1


@pytest.mark.parametrize("seed", range(1, 7))
def test_reserve_follows_a_competitor_that_returns(seed: int) -> None:
    """The stream of writes pays for probes of its requests first, and has no service for 2 s."""
    bus = {"kind": 1, "bus_kbps": 24000, "queue_depth": 8, "size_mb": 1024}
    s = disks(1, bus, seconds=12, seed=seed)
    s.add("volume", leaves=1)
    cgroup = s.unit(100, **CLIENTS["sync-4k-write"])
    for name in ("deep", "deep", "writes-1m"):
        s.unit(1000, **CLIENTS[name])
    floor = 0.5 * s.alone(0)
    s.add("promise", cgroup=cgroup, reads=0, writes=1, floor=floor, importance=1)
    assert s.run().worst(0, SETTLED_S) >= 0.95


@pytest.mark.parametrize("other", ["deep", "chunks"])
def test_reserve_stays_for_competitors_that_come_and_go(other: str) -> None:
    """They are there for 2 s of four."""
    s = disks(1, FLASH, seconds=16)
    s.add("volume", leaves=1)
    cgroup = s.unit(100, **CLIENTS["sync-4k"])
    for _ in range(3):
        competitor = s.add("cgroup", weight=1000)
        for begin in range(1, 16, 4):
            times = {"start": begin, "stop": begin + 2}
            s.add("client", cgroup=competitor, **CLIENTS[other], **times)
    s.add("promise", cgroup=cgroup, floor=0.6 * s.alone(0), importance=1)
    assert s.run().worst(0, SETTLED_S) >= 0.95


def test_reserve_ends_with_the_competition() -> None:
    """When the others stop, reserved time is released."""
    result = shallow("sync-4k", "chunks", stop=8).run()
    reserve = result.promises[0]["reserve"]
    assert reserve[result.ticks(7)] > 0.2
    assert reserve[-1] == 0
