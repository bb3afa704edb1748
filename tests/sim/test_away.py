# SPDX-License-Identifier: GPL-2.0-only
"""Units with floors that wait for the writes of others, as databases do beside a flood.

A task that makes pages dirty sleeps while the pages of all are near the limit of the kernel
(balance_dirty_pages()).  Here a unit sends some requests, and waits then until others have
transferred a MiB.  If the disk idles for the unit meanwhile, neither goes on.
"""

import statistics
from dataclasses import dataclass, replace

import pytest
from promises import CLOUD, FLASH, HDD, MIRROR, STRIPE, Scenario, disks

SEEDS = range(1, 6)
SETTLED_S = 5.0
FLOOR = 0.6
LOG = {"bytes": 16384, "iodepth": 1, "burst": 12, "random": 1, "write": 1, "think_us": 1000}
READS = {**LOG, "burst": 24, "write": 0}
DEEP = {**LOG, "iodepth": 4, "burst": 24, "think_us": 200}
FLOOD = {"bytes": 131072, "iodepth": 64, "write": 1, "async": 1, "random": 1}
LARGE = {**FLOOD, "bytes": 524288}
AWAITED_BYTES = 1 << 20


@dataclass(frozen=True)
class Case:
    """A unit beside a flood.

    rate        the part of its rate alone that the unit has, at least
    """

    name: str
    disk: dict[str, int]
    count: int
    layout: int
    unit: dict[str, int]
    flood: dict[str, int]
    rate: float

    def build(self) -> tuple[Scenario, float]:
        """The scenario, and the rate of the unit alone."""
        s = disks(self.count, self.disk)
        for part in range(2):
            place = {"leaves": (1 << self.count) - 1, "chunk": 1 << 19, "part": part, "parts": 2}
            s.add("volume", kind=self.layout, **place)
        cgroup = s.unit(100, volume=0, **self.unit, **{"await": AWAITED_BYTES})
        s.unit(100, volume=1, **self.flood)
        alone = s.alone(0)
        write = self.unit["write"]
        kind = {"reads": 1 - write, "writes": write}
        s.add("promise", cgroup=cgroup, volume=0, floor=FLOOR * alone, importance=1, **kind)
        return s, alone


CASES = [
    Case("log on a mirror", CLOUD, 2, MIRROR, LOG, FLOOD, 0.5),
    Case("reads on a virtual disk", CLOUD, 1, STRIPE, READS, FLOOD, 0.52),
    Case("deep writes on a virtual disk", CLOUD, 1, STRIPE, DEEP, FLOOD, 0.3),
    Case("deep writes on a stripe", FLASH, 4, STRIPE, DEEP, LARGE, 0.23),
    Case("log on an ssd", FLASH, 1, STRIPE, LOG, LARGE, 0.41),
    Case("log on a stripe of hdd", HDD, 2, STRIPE, LOG, FLOOD, 0.3),
    Case("reads on an hdd", HDD, 1, STRIPE, READS, LARGE, 0.6),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_neither_idles(case: Case) -> None:
    """The unit and the flood go on."""
    s, alone = case.build()
    results = [replace(s, seed=seed).run() for seed in SEEDS]
    rate = statistics.median(one.mean(one.clients[0], SETTLED_S) for one in results)
    assert rate >= case.rate * alone, rate / alone
