# SPDX-License-Identifier: GPL-2.0-only
"""Groups with few requests beside bulk I/O of the same weight, which units have by default.

One that alone keeps the drive nearly busy receives its share of the time: all groups have slices.
Where these would cost much, the others keep what they have without them.
"""

import pytest
from competing import SSD, WRITES, Client, compete, tree

FAST_SSD: Client = {"kind": 1}
CACHE: Client = {**SSD, "cache_kb": 16384}
NVME: Client = {"kind": 2}
SCAN: Client = {"bytes": 1048576, "iodepth": 8}
READS: Client = {"random": 1, "bytes": 4096}
MIXED: Client = {"random": 1, "bytes": 8192, "mixed": 70}
LOG: Client = {"bytes": 8192, "iodepth": 1, "write": 1, "flush": 1}
# Disk, the groups with their weights.  The first one has few requests.
BUSY = {
    "reads-16k-writes": (SSD, [(100, {**READS, "bytes": 16384, "iodepth": 4}), (100, WRITES)]),
    "reads-16k-scan": (SSD, [(100, {**READS, "bytes": 16384, "iodepth": 4}), (100, SCAN)]),
    "reads-4k-writes": (SSD, [(100, {**READS, "iodepth": 16}), (100, WRITES)]),
    "mixed-8k-writes": (SSD, [(100, {**MIXED, "iodepth": 16}), (100, WRITES)]),
    "lighter-reads-4k-writes": (SSD, [(100, {**READS, "iodepth": 16}), (200, WRITES)]),
    "reads-4k-writes-scan": (
        SSD,
        [(100, {**READS, "iodepth": 16}), (100, WRITES), (100, SCAN)],
    ),
    "thinking-reads-16k-writes": (
        SSD,
        [(100, {**READS, "bytes": 16384, "iodepth": 8, "think_us": 300}), (100, WRITES)],
    ),
    "reads-16k-one-large-read": (
        SSD,
        [(100, {**READS, "bytes": 16384, "iodepth": 4}), (100, {**SCAN, "iodepth": 1})],
    ),
    "reads-8k-one-large-write": (
        SSD,
        [(100, {**READS, "bytes": 8192, "iodepth": 8}), (100, {**WRITES, "iodepth": 1})],
    ),
    "reads-8k-one-large-write-cache": (
        CACHE,
        [(100, {**READS, "bytes": 8192, "iodepth": 8}), (100, {**WRITES, "iodepth": 1})],
    ),
    "writes-16k-one-large-read": (
        SSD,
        [
            (100, {**READS, "bytes": 16384, "write": 1, "iodepth": 8}),
            (100, {**SCAN, "iodepth": 1}),
        ],
    ),
    "reads-8k-two-large-writes": (
        SSD,
        [(100, {**READS, "bytes": 8192, "iodepth": 8}), (100, {**WRITES, "iodepth": 2})],
    ),
    "writes-16k-two-large-writes": (
        SSD,
        [
            (100, {**READS, "bytes": 16384, "write": 1, "iodepth": 8}),
            (100, {**WRITES, "iodepth": 2}),
        ],
    ),
    "fast-reads-16k-writes": (
        FAST_SSD,
        [(100, {**READS, "bytes": 16384, "iodepth": 4}), (100, WRITES)],
    ),
    "fast-reads-4k-scan": (FAST_SSD, [(100, {**READS, "iodepth": 16}), (100, SCAN)]),
    "nvme-reads-16k-scan": (
        NVME,
        [(100, {**READS, "bytes": 16384, "iodepth": 16}), (100, SCAN)],
    ),
}
IDLE = {
    "one-read-writes": (SSD, [(100, {**READS, "iodepth": 1}), (100, WRITES)]),
    "one-read-scan": (SSD, [(100, {**READS, "iodepth": 1}), (100, SCAN)]),
    "four-reads-writes": (SSD, [(100, {**READS, "iodepth": 4}), (100, WRITES)]),
    "eight-reads-scan": (SSD, [(100, {**READS, "iodepth": 8}), (100, SCAN)]),
    "fast-one-read-writes": (FAST_SSD, [(100, {**READS, "iodepth": 1}), (100, WRITES)]),
    "nvme-eight-reads-two-large-writes": (
        NVME,
        [(100, {**READS, "bytes": 8192, "iodepth": 8}), (100, {**WRITES, "iodepth": 2})],
    ),
    "fast-eight-reads-scan": (FAST_SSD, [(100, {**READS, "iodepth": 8}), (100, SCAN)]),
    "nvme-eight-reads-scan": (NVME, [(100, {**READS, "iodepth": 8}), (100, SCAN)]),
    "eight-databases": (
        SSD,
        [(100, {**READS, "bytes": 65536, "iodepth": 1})] * 8 + [(100, WRITES)],
    ),
}


def rates(disk: Client, groups: list[tuple[int, Client]], **knobs: int) -> list[float]:
    """Bytes in a second of groups with their weights, after the first two tries of slices."""
    leaf = {**disk, "nr_requests": 256, **knobs}
    return [one["mean"] for one in compete([leaf], *tree(groups), seconds=19, warmup_s=9)]


@pytest.mark.parametrize("case", BUSY)
def test_share(case: str) -> None:
    """Each group receives nearly its share of its rate alone."""
    disk, groups = BUSY[case]
    weights = sum(weight for weight, _ in groups)
    for rate, (weight, client) in zip(rates(disk, groups), groups, strict=True):
        (alone,) = rates(disk, [(weight, client)])
        assert rate >= 0.85 * weight / weights * alone


@pytest.mark.parametrize("weight", [200, 400])
@pytest.mark.parametrize("case", ["reads-16k-writes", "reads-4k-writes", "reads-16k-scan"])
def test_share_beside_a_protected_group(case: str, weight: int) -> None:
    """Groups divide the time that a heavier one leaves, although few requests depend on latency."""
    disk, groups = BUSY[case]
    favoured = {**READS, "bytes": 16384, "iodepth": 4}
    clients = tree([*groups, (weight, favoured)])
    found = compete([{**disk, "nr_requests": 256}], *clients, seconds=17, warmup_s=9)
    due = [part / (weight + 200) for part in (100, 100, weight)]
    assert [one["part"] for one in found] == pytest.approx(due, rel=0.1)


@pytest.mark.parametrize("case", ["reads-4k-writes", "reads-4k-writes-scan"])
def test_kept(case: str) -> None:
    """It receives that for a minute: one short measurement below the bound does not end slices."""
    disk, groups = BUSY[case]
    leaf = {**disk, "nr_requests": 256}
    found = compete([leaf], *tree(groups), seconds=69, warmup_s=9, seed=2)
    (alone,) = rates(disk, groups[:1])
    assert found[0]["mean"] >= 0.95 / len(groups) * alone


@pytest.mark.parametrize("case", IDLE)
def test_price(case: str) -> None:
    """Where slices would cost too much, the others lose little.

    They lose it to the tries, and as a read without others shows the true latency of the drive:
    less waits there afterwards, and each read for fewer of them.
    """
    disk, groups = IDLE[case]
    found, without = rates(disk, groups), rates(disk, groups, protect=0)
    assert found[-1] >= 0.85 * without[-1]
    assert found[0] >= 0.98 * without[0]


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("disk", [SSD, FAST_SSD], ids=["135-mbps", "540-mbps"])
def test_after_large_requests(disk: Client, seed: int) -> None:
    """A buffered scan was alone, and its requests did not show the latency of the drive.

    Two of 1 MiB are at the device.  The reads begin a second later.
    """
    scan, reads = {**SCAN, "iodepth": 2}, {**READS, "bytes": 8192, "iodepth": 8, "start": 1}
    leaf = {**disk, "nr_requests": 256}
    clients = tree([(100, scan), (100, reads)])
    found = compete([leaf], *clients, seconds=19, warmup_s=9, seed=seed)
    assert [one["part"] for one in found] == pytest.approx([0.5, 0.5], rel=0.1)


@pytest.mark.parametrize("iodepth", [8, 16])
def test_try(iodepth: int) -> None:
    """Slices that cost too much end at once, although the group had nearly its share with them."""
    few = {**READS, "write": 1, "iodepth": iodepth, "think_us": 1000}
    groups: list[tuple[int, Client]] = [(100, few), (100, SCAN)]
    found, without = rates(SSD, groups), rates(SSD, groups, protect=0)
    assert found[-1] >= 0.98 * without[-1]


def test_sensitive() -> None:
    """A latency-sensitive group that comes while others have slices is protected all the same."""
    disk, groups = BUSY["reads-16k-writes"]
    found = []
    for start in (0, 9):
        sensitive = {**READS, "bytes": 16384, "iodepth": 4, "start": start}
        clients = tree([*groups, (1000, sensitive)])
        found += compete([{**disk, "nr_requests": 256}], *clients, seconds=21, warmup_s=11)[-1:]
    first, late = found
    assert late["mean"] >= 0.97 * first["mean"]
    assert late["p99_ns"] <= 1.5 * first["p99_ns"]


SLOWER = {"read_us": 1600, "write_us": 4000, "bus_kbps": 27000}
AS_BEFORE = {"read_us": 320, "write_us": 800, "bus_kbps": 135000}


@pytest.mark.parametrize("length_s", [0.5, 2, 7])
@pytest.mark.parametrize("case", ["reads-16k-writes", "reads-4k-writes", "mixed-8k-writes"])
def test_changing_disk(case: str, length_s: float) -> None:
    """Two seconds after the drive has its former speed again, the group has its share."""
    disk, groups = BUSY[case]
    end = 9 + length_s
    disks = [{"at": 9, "leaf": 0, **SLOWER}, {"at": end, "leaf": 0, **AS_BEFORE}]
    found = compete(
        [{**disk, "nr_requests": 256}], *tree(groups), seconds=29, warmup_s=8, disks=disks
    )
    (alone,) = rates(disk, groups[:1])
    after = found[0]["rate"][int(end) + 2 : int(end) + 12]
    assert sum(after) / len(after) >= 0.8 * alone / 2
