# SPDX-License-Identifier: GPL-2.0-only
"""Disks that take fewer requests than their host has tags: SCSI disks behind a host adapter.

blk-mq takes a place of the disk before the elevator selects a request. A probe of a class that
waited for more in flight than there are places would send no other requests meanwhile.
"""

import pytest
from program import line, run

FLASH = {"kind": 1, "channels": 64, "bus_kbps": 4_000_000, "nr_requests": 256, "size_mb": 2048}
READER = {"random": 1, "bytes": 4096, "iodepth": 100}
WRITER = {"write": 1, "random": 1, "bytes": 65536, "iodepth": 100}
TICK_MS, SECONDS = 100, 8


def rates(**leaf: int) -> list[list[int]]:
    """The bytes of a reader and of a writer of the same weight in each tick."""
    lines = [
        line("run", seconds=SECONDS, tick_ms=TICK_MS, control=0),
        line("leaf", **FLASH, **leaf),
        line("volume", leaves=1),
        line("cgroup"),
        line("cgroup"),
        line("client", cgroup=1, **READER),
        line("client", cgroup=2, **WRITER),
    ]
    return [client["rate"] for client in run(lines)["clients"]]


@pytest.mark.parametrize("depth", [1, 2, 3, 30, 32, 64])
@pytest.mark.parametrize("tags", [0, 128])
def test_nobody_waits_for_a_probe(depth: int, tags: int) -> None:
    """From half a second on each group is served in each tick, also with an unknown depth."""
    for found in rates(queue_depth=depth, budget=1, tags=tags):
        assert min(found[5:]) > 0, [number for number, rate in enumerate(found) if not rate]


def test_throughput() -> None:
    """An unknown depth costs nearly nothing: the probe finds it."""
    known, unknown = (sum(map(sum, rates(queue_depth=30, budget=1, tags=n))) for n in (0, 128))
    assert unknown > 0.95 * known
