# SPDX-License-Identifier: GPL-2.0-only
"""Favoured units that wait for the writes of others, as databases do beside a flood.

A task that makes pages dirty sleeps while the pages of all are near the limit of the kernel
(balance_dirty_pages()).  Here a unit sends some requests, and waits then until others have
transferred a MiB.  If the disk idles for the unit meanwhile, neither goes on.  The unit has a
floor, or five times the weight.
"""

import statistics
from dataclasses import dataclass, replace

import pytest
from promises import CLOUD, FLASH, HDD, MIRROR, STRIPE, Scenario, disks

SEEDS = range(1, 6)
SETTLED_S = 5.0
FLOOR = 0.6
WEIGHT = 500
LOG = {"bytes": 16384, "iodepth": 1, "burst": 12, "random": 1, "write": 1, "think_us": 1000}
READS = {**LOG, "burst": 24, "write": 0}
DEEP = {**LOG, "iodepth": 4, "burst": 24, "think_us": 200}
FLOOD = {"bytes": 131072, "iodepth": 64, "write": 1, "async": 1, "random": 1}
LARGE = {**FLOOD, "bytes": 524288}
AWAITED_BYTES = 1 << 20


@dataclass(frozen=True)
class Case:
    """A unit beside a flood.

    floored, weighted    parts of its rate alone that the unit has, at least, with a floor, and
                         with a weight
    """

    name: str
    disk: dict[str, int]
    count: int
    layout: int
    unit: dict[str, int]
    flood: dict[str, int]
    floored: float
    weighted: float

    def build(self, weight: int) -> tuple[Scenario, float]:
        """The scenario without a floor, and the rate of the unit alone."""
        s = disks(self.count, self.disk)
        for part in range(2):
            place = {"leaves": (1 << self.count) - 1, "chunk": 1 << 19, "part": part, "parts": 2}
            s.add("volume", kind=self.layout, **place)
        s.unit(weight, volume=0, **self.unit, **{"await": AWAITED_BYTES})
        s.unit(100, volume=1, **self.flood)
        return s, s.alone(0)


CASES = [
    Case("log on a mirror", CLOUD, 2, MIRROR, LOG, FLOOD, 0.49, 0.44),
    Case("reads on a virtual disk", CLOUD, 1, STRIPE, READS, FLOOD, 0.52, 0.54),
    Case("deep writes on a virtual disk", CLOUD, 1, STRIPE, DEEP, FLOOD, 0.3, 0.28),
    Case("deep writes on a stripe", FLASH, 4, STRIPE, DEEP, LARGE, 0.23, 0.24),
    Case("log on an ssd", FLASH, 1, STRIPE, LOG, LARGE, 0.39, 0.27),
    Case("log on a stripe of hdd", HDD, 2, STRIPE, LOG, FLOOD, 0.3, 0.58),
    Case("reads on an hdd", HDD, 1, STRIPE, READS, LARGE, 0.6, 0.6),
]


def rate(s: Scenario, control: bool) -> float:
    """The median rate of the unit."""
    results = [replace(s, seed=seed).run(control=control) for seed in SEEDS]
    return statistics.median(one.mean(one.clients[0], SETTLED_S) for one in results)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_floor(case: Case) -> None:
    """The unit and the flood go on."""
    s, alone = case.build(100)
    kind = {"reads": 1 - case.unit["write"], "writes": case.unit["write"]}
    s.add("promise", cgroup=1, volume=0, floor=FLOOR * alone, importance=1, **kind)
    assert rate(s, control=True) >= case.floored * alone


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_weight(case: Case) -> None:
    """The unit and the flood go on."""
    s, alone = case.build(WEIGHT)
    assert rate(s, control=False) >= case.weighted * alone
