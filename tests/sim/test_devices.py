# SPDX-License-Identifier: GPL-2.0-only
"""Devices unlike a local ssd: shares by true device time, and the throughput without a scheduler.

Volumes of a network are far away and work on many requests at once; some drives have few channels;
a card takes a quarter of a second for a write of 1 MiB.
"""

from statistics import median

import pytest
from competing import SYNC, WRITES, Client, Group, compete, tree
from program import line, run

Job = dict[str, int]

FAR_1MS = {"read_us": 1000, "write_us": 1000, "channels": 16, "bus_kbps": 250_000}
FAR_5MS = {"read_us": 5000, "write_us": 5000, "channels": 64, "bus_kbps": 1_000_000}
FAR_10MS = {"read_us": 10_000, "write_us": 10_000, "channels": 64, "bus_kbps": 250_000}
FAR_20MS = {"read_us": 20_000, "write_us": 20_000, "channels": 64, "bus_kbps": 400_000}
FEW_CHANNELS = {"read_us": 80, "write_us": 320, "channels": 4, "bus_kbps": 540_000}
SLOW_BUS = {"read_us": 236, "write_us": 246, "channels": 32, "bus_kbps": 270_000}
SLOW = {"read_us": 408, "write_us": 1184, "channels": 4, "bus_kbps": 67_500}
SLOW_READS = {"read_us": 336, "write_us": 868, "channels": 16, "bus_kbps": 100_000}
SLOW_WRITES = {"read_us": 552, "write_us": 2312, "channels": 32, "bus_kbps": 67_500}
NEAR = {"kind": 2, "channels": 16}
NORMAL = {"read_us": 70, "write_us": 200, "bus_kbps": 1_000_000}
FAST = {"read_us": 17, "write_us": 50, "bus_kbps": 4_000_000}
QUARTER = {"read_us": 280, "write_us": 800, "bus_kbps": 250_000}
SLOW_PAGES = {"read_us": 584, "write_us": 2768, "channels": 4, "bus_kbps": 50_000}
FULL = {"read_us": 1200, "write_us": 12_000, "bus_kbps": 50_000}
CARD = {"read_us": 500, "write_us": 4000, "channels": 1, "bus_kbps": 20_000, "queue_depth": 1}

READS = {"random": 1, "bytes": 1 << 16, "iodepth": 64}
LARGE_READS = {"random": 1, "bytes": 1 << 17, "iodepth": 64}
HUGE_READS = {"random": 1, "bytes": 1 << 20, "iodepth": 16}
SMALL_WRITES = {"random": 1, "bytes": 1 << 14, "iodepth": 64, "write": 1}
READS_64K = {**READS, "iodepth": 32}
WRITES_64K = {**READS_64K, "write": 1}
MIXED = {"random": 1, "bytes": 1 << 16, "iodepth": 32, "mixed": 50}


def simulate(
    disk: dict[str, int], *groups: Group, none: bool = False, seed: int = 1
) -> list[Client]:
    """The clients of groups, with a scheduler or without."""
    leaf = {"kind": 1, "nr_requests": 256, "none": none, "queue_depth": 128, **disk}
    return compete([leaf], *tree(groups), seconds=16, warmup_s=6, seed=seed)


def rate(*clients: Client) -> float:
    return sum(client["mean"] for client in clients)


@pytest.mark.parametrize(
    ("disk", "job", "least"),
    [(FAR_1MS, READS, 0.95), (FAR_5MS, LARGE_READS, 0.9), (FAR_20MS, READS, 0.8)],
    ids=["1ms", "5ms", "20ms"],
)
def test_far_devices_are_kept_busy(disk: dict[str, int], job: Job, least: float) -> None:
    """As many requests are in flight as saturate the device, not only those of a few latencies."""
    groups = ((100, job), (100, job))
    one, other = simulate(disk, *groups)
    assert rate(one, other) > least * rate(*simulate(disk, *groups, none=True))
    assert one["part"] == pytest.approx(0.5, abs=0.02)


def test_large_reads_on_a_far_device() -> None:
    """A scan and 16 processes that think have at least what they have without a scheduler.

    Four reads of 1 MiB are needed to keep the device busy, not four of 256 KiB.
    """
    reader = {**SYNC, "cgroup": 1, "bytes": 8192, "think_us": 5000, "poisson": 1}
    clients = [reader] * 16 + [{"cgroup": 2, "bytes": 1 << 20, "iodepth": 8}]
    kept, lost = [], []
    for seed in (1, 2, 3):
        with_it, without = (
            compete(
                [{"kind": 1, "nr_requests": 256, "none": none, **FAR_10MS}],
                [{}, {}],
                clients,
                seconds=14,
                warmup_s=4,
                seed=seed,
            )
            for none in (False, True)
        )
        kept.append(rate(*with_it[:-1]) / rate(*without[:-1]))
        lost.append(rate(*with_it) / rate(*without))
    assert median(kept) > 1.3
    assert median(lost) > 0.65


def many(job: Job) -> Job:
    """More than the device needs, so that a group has a backlog."""
    return {**job, "iodepth": 200}


@pytest.mark.parametrize(
    ("disk", "groups"),
    [
        (FAR_1MS, ((300, many(READS)), (100, many(READS)))),
        (FAR_5MS, ((300, many(LARGE_READS)), (100, many(LARGE_READS)))),
        (SLOW_WRITES, ((262, many(SMALL_WRITES)), (112, many(MIXED)))),
    ],
    ids=["1ms", "5ms", "slow-writes"],
)
def test_backlogs_of_unequal_weights_keep_devices_busy(
    disk: dict[str, int], groups: tuple[Group, ...]
) -> None:
    """No group waits for requests in flight, so that there may be as many as probes show."""
    found = simulate(disk, *groups)
    weights = [weight for weight, _ in groups]
    assert rate(*found) > 0.9 * rate(*simulate(disk, *groups, none=True))
    assert [one["part"] for one in found] == pytest.approx(
        [weight / sum(weights) for weight in weights], rel=0.03
    )


def test_favoured_group_with_few_requests_beside_backlogs() -> None:
    """It does not wait for as much in flight as would keep all channels busy with writes."""
    think = {**SYNC, "think_us": 50_000}
    groups = ((400, think), (262, many(SMALL_WRITES)), (112, many(MIXED)))
    alone = rate(*simulate(SLOW_WRITES, groups[0], none=True))
    assert simulate(SLOW_WRITES, *groups)[0]["mean"] > 0.95 * alone


@pytest.mark.parametrize("job", [READS, LARGE_READS, HUGE_READS], ids=["64k", "128k", "1m"])
@pytest.mark.parametrize("disk", [FAR_5MS, FAR_20MS], ids=["5ms", "20ms"])
def test_group_alone_on_a_far_device(disk: dict[str, int], job: Job) -> None:
    """It has the throughput without a scheduler: some channels have a queue while others have none,
    so that a window of requests is not enough to keep all of them busy.
    """
    assert rate(*simulate(disk, (100, job))) > 0.97 * rate(*simulate(disk, (100, job), none=True))


@pytest.mark.parametrize(("disk", "depth"), [(FAR_1MS, 64), (FEW_CHANNELS, 16)], ids=["far", "few"])
def test_small_reads_that_occupy_a_channel(disk: dict[str, int], depth: int) -> None:
    """Reads of 4 KiB cost a page of flash, not a sixteenth of a read of 64 KiB.

    There are never enough of them for a doubling that changes nothing, except by chance: the median
    of three seeds counts.
    """
    groups = ((300, READS), (200, WRITES), (100, {**SYNC, "iodepth": depth}))
    runs = [[one["part"] for one in simulate(disk, *groups, seed=seed)] for seed in (1, 2, 3)]
    parts = [median(part) for part in zip(*runs, strict=True)]
    assert parts == pytest.approx([1 / 2, 1 / 3, 1 / 6], rel=0.1)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_large_writes_among_small_requests(seed: int) -> None:
    """Four writes of 64 KiB of a stream are merged, so that there is never enough for a probe.

    A page of 4 KiB costs 0.7 ms, and 256 KiB cost 5 ms, not 64 pages.
    """
    stream = {"cgroup": 1, "write": 1, "bytes": 1 << 16, "iodepth": 4}
    few = {"cgroup": 1, "random": 1, "mixed": 50, "bytes": 1 << 15, "iodepth": 2}
    reads = {**SYNC, "cgroup": 1, "iodepth": 16}
    deep = {**SYNC, "cgroup": 2, "mixed": 50, "iodepth": 200}
    client, *_ = compete(
        [{"kind": 1, "nr_requests": 256, **SLOW_PAGES}],
        [{"weight": 200}, {"weight": 100}],
        [stream, few, reads, deep],
        seconds=12,
        warmup_s=4,
        seed=seed,
    )
    assert client["part"] == pytest.approx(2 / 3, rel=0.05)


def test_few_large_reads_that_fill_the_bus() -> None:
    """Four reads of 1 MiB are enough for a probe, if two take as long for each."""
    reads = {"bytes": 1 << 20, "iodepth": 4}
    small = {"random": 1, "write": 1, "bytes": 1 << 14, "iodepth": 128}
    scan, writer = simulate(SLOW_BUS, (465, reads), (619, small))
    assert scan["part"] == pytest.approx(465 / 1084, rel=0.03)
    assert writer["part"] == pytest.approx(619 / 1084, rel=0.03)


def test_service_beside_probes() -> None:
    """A light group with large requests is not without service for seconds after a probe of them.

    A probe of 256 KiB takes 0.29 s, and the group is entitled to 0.05 of the device.
    """
    light = {"bytes": 1 << 20, "iodepth": 32}
    heavy = ((825, {**READS, "bytes": 1 << 14, "iodepth": 32}), (998, READS))
    (*_, client) = simulate(SLOW_READS, *heavy, (113, light))
    assert min(client["rate"][1:]) > 0


@pytest.mark.parametrize("think_us", [1000, 2000, 10_000])
def test_thinker_beside_one_write_at_a_time(think_us: int) -> None:
    """Its trial counts the write it waits for, although none completes while it has a request."""
    disk = {"read_us": 320, "write_us": 800, "bus_kbps": 135_000}
    thinks = {**SYNC, "think_us": think_us}
    reader, _ = simulate(disk, (500, thinks), (100, {**WRITES, "iodepth": 1}))
    (alone,) = simulate(disk, (100, thinks))
    assert reader["mean"] > 0.95 * alone["mean"]


def test_rare_reads_beside_slow_writes() -> None:
    """A write that takes a quarter of a second is no guess of 2 ms that fits into each pause."""
    thinks = {**SYNC, "think_us": 5000}
    reader, _ = simulate(CARD, (1000, thinks), (100, WRITES))
    (alone,) = simulate(CARD, (1000, thinks))
    assert rate(reader) > 0.85 * rate(alone)


@pytest.mark.parametrize(
    ("disk", "others"),
    [(SLOW, ((250, WRITES),)), (FEW_CHANNELS, ((362, WRITES), (100, MIXED)))],
    ids=["slow", "few"],
)
def test_merged_writes_of_a_protected_group(
    disk: dict[str, int], others: tuple[Group, ...]
) -> None:
    """Writes that merge while they wait are fewer, not less: their group has no more for that."""
    groups = ((638, {"write": 1, "bytes": 1 << 18, "iodepth": 4}), *others)
    heavy, *_ = simulate(disk, *groups)
    assert heavy["part"] == pytest.approx(638 / sum(weight for weight, _ in groups), rel=0.1)


def test_ramp_without_a_known_latency() -> None:
    """Large requests hide the latency of the disk: a probe of small ones ends all the same."""
    disk = {"read_us": 712, "write_us": 2968, "bus_kbps": 50_000, "channels": 16}
    groups = (
        (857, {"bytes": 1 << 19, "iodepth": 4}),
        (130, {"random": 1, "bytes": 1 << 15, "iodepth": 200}),
        (130, {"random": 1, "write": 1, "bytes": 1 << 12, "iodepth": 32}),
        (461, {"random": 1, "write": 1, "bytes": 1 << 17, "iodepth": 64}),
    )
    (_, light, *_) = simulate(disk, *groups)
    assert light["rate"][0] < 20e6
    assert light["mean"] > 0.5 * 130 / 1578 * 50e6


@pytest.mark.parametrize("at_s", [3.002, 3.004, 3.006])
def test_bus_that_becomes_faster(at_s: float) -> None:
    """Reads that are on their way to the bus arrive by its new bandwidth."""
    lines = [
        line("run", seconds=6, tick_ms=1000, control=0),
        line("leaf", kind=1, read_us=3000, bus_kbps=20_000),
        line("volume", leaves=1),
        line("cgroup", parent=0, weight=100),
        line("client", cgroup=1, random=1, bytes=1 << 16, iodepth=1),
        line("disk", at=at_s, leaf=0, bus_kbps=540_000),
    ]
    *_, slow, _, _, fast = run(lines)["clients"][0]["rate"]
    assert fast > 1.5 * slow


@pytest.mark.parametrize(
    ("usual", "other", "heavy", "light"),
    [
        (QUARTER, NORMAL, {**SMALL_WRITES, "write": 0}, WRITES_64K),
        (QUARTER, FULL, WRITES_64K, READS_64K),
        (NORMAL, FAST, WRITES_64K, READS_64K),
    ],
    ids=["faster", "slower", "all-sent"],
)
def test_device_that_changes_and_changes_back(
    usual: dict[str, int], other: dict[str, int], heavy: Job, light: Job
) -> None:
    """Shares are right again a few seconds after the device has its former speed.

    Charges were wrong meanwhile, and may have been right for one of two classes only: all requests
    of a group that is charged too little are at the device, and none waits.
    """
    (one, _) = compete(
        [{"nr_requests": 256, **NEAR, **usual}],
        *tree([(300, heavy), (100, light)]),
        seconds=14,
        warmup_s=9,
        disks=[{"at": 4, "leaf": 0, **other}, {"at": 7, "leaf": 0, **usual}],
    )
    assert one["part"] == pytest.approx(0.75, abs=0.05)
