# SPDX-License-Identifier: GPL-2.0-only
"""Services on a hard disk, beside groups of the same weight and light ones.

A group is entitled to its share of the device time, or of its rate alone.
"""

from statistics import median

import pytest
from competing import COMMITS, FLOOD, SYNC, Client, Group, compete, tree

Job = dict[str, int]

HDD = {"kind": 0, "nr_requests": 256}
SHARE = 1000 / 2200
THINKER = {**SYNC, "bytes": 32768, "think_us": 2000}
DEEP = {**SYNC, "bytes": 65536, "iodepth": 64, "mixed": 50}
SCAN = {"bytes": 1 << 19, "iodepth": 16}
READS = {**SYNC, "bytes": 65536, "iodepth": 64}


def simulate(*groups: Group, seed: int = 1) -> list[Client]:
    """The clients of groups, each with its weight."""
    return compete([HDD], *tree(groups), seconds=15, warmup_s=3, seed=seed)


def part_of(client: Client, job: Job, seed: int = 1) -> float:
    """Of the device time, or of the rate alone if that is more."""
    (alone,) = simulate((100, job), seed=seed)
    return max(client["part"], client["mean"] / alone["mean"])


def test_late_services() -> None:
    """A light group that came first has most slots, and the services have their shares."""
    writes = {**SYNC, "bytes": 16384, "iodepth": 200, "write": 1}
    light = (READS, writes, FLOOD, {**READS, "bytes": 32768, "iodepth": 200}, FLOOD, READS)
    *_, service, other = simulate(*((100, job) for job in light), (1000, THINKER), (1000, DEEP))
    assert part_of(service, THINKER) > 0.9 * 1000 / 2600
    assert part_of(other, DEEP) > 0.9 * 1000 / 2600


@pytest.mark.parametrize("peer", [DEEP, SCAN, FLOOD], ids=["deep", "scan", "flood"])
@pytest.mark.parametrize(
    "service",
    [
        {**THINKER, "think_us": 5000},
        {**THINKER, "think_us": 20_000},
        {**THINKER, "think_us": 50_000, "iodepth": 4},
        {"bytes": 65536, "iodepth": 1, "think_us": 10_000},
        {**SYNC, "write": 1, "think_us": 20_000},
        {**COMMITS, "think_us": 10_000},
        {**FLOOD, "bytes": 16384, "iodepth": 4, "think_us": 10_000},
    ],
    ids=["5ms", "20ms", "50ms", "stream", "writes", "fsync", "buffered"],
)
def test_service_beside_one_of_its_weight(service: Job, peer: Job) -> None:
    """One that thinks has its share, so has one with a backlog, and light groups half of theirs.

    The disk orders requests by their places, so seeds differ: the median of five is judged."""
    services, peers, lights = [], [], []
    for seed in range(1, 6):
        groups = ((1000, service), (1000, peer), (100, READS), (100, FLOOD))
        first, second, *light = simulate(*groups, seed=seed)
        services.append(part_of(first, service, seed))
        peers.append(part_of(second, peer, seed))
        lights.append(min(client["part"] for client in light))
    goal = 0.9 if peer is SCAN and "random" not in service else 0.95
    assert median(services) > goal * SHARE
    assert median(peers) > 0.85 * SHARE
    assert median(lights) > 0.5 * SHARE / 10
