# SPDX-License-Identifier: GPL-2.0-only
"""Groups beside favoured ones, and favoured groups with rare requests.

All of the device is in demand. The rate of a group is compared with its rate alone.
"""

import statistics

import pytest
from competing import COMMITS, FLOOD, NVME, SCAN, SSD, SYNC, WRITES, Client, Group, compete, tree

Job = dict[str, int]

FAST = {"kind": 2}
FAST_SSD = {"kind": 1}
# The bus is the limit.
BUS = {"kind": 1, "read_us": 80, "write_us": 200, "bus_kbps": 200_000}
# A few requests in a second.
RARE = {**SYNC, "think_us": 100_000, "poisson": 1}
CACHE = {**SSD, "cache_kb": 16384}
EMMC = {
    "kind": 1,
    "read_us": 250,
    "write_us": 1500,
    "bus_kbps": 100_000,
    "channels": 2,
    "queue_depth": 16,
}
READERS = {**SYNC, "iodepth": 8, "think_us": 2000}
OLTP = {"random": 1, "bytes": 16384, "iodepth": 8, "mixed": 70}


def simulate(disk: dict[str, int], *groups: Group, seed: int = 1) -> list[Client]:
    """The clients of groups."""
    leaf = {**disk, "nr_requests": 256, "seed": seed}
    return compete([leaf], *tree(groups), seconds=12, warmup_s=2, seed=seed)


@pytest.mark.parametrize("disk", [SSD, NVME], ids=["ssd", "nvme"])
def test_rare_requests_beside_a_database(disk: dict[str, int]) -> None:
    """They do not wait for the shared window of a long cycle, and cost the database nothing."""
    database, _, shell = simulate(disk, (1000, SYNC), (100, WRITES), (100, RARE))
    (alone,) = simulate(disk, (1000, SYNC))
    assert shell["p99_ns"] < 30e6
    assert database["mean"] > 0.95 * alone["mean"]


@pytest.mark.parametrize("disk", [SSD, NVME], ids=["ssd", "nvme"])
@pytest.mark.parametrize("weights", [(1000, 300), (1000, 500, 200), (1000, 200, 200, 200)], ids=str)
def test_middle_weights(disk: dict[str, int], weights: tuple[int, ...]) -> None:
    """A service of more weight than the bulk is protected, also beside one of still more weight."""
    *services, _ = simulate(disk, *((weight, SYNC) for weight in weights), (100, SCAN))
    (alone,) = simulate(disk, (100, SYNC))
    for service in services:
        assert service["mean"] > 0.85 * alone["mean"]


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("bytes_", [1 << 15, 1 << 16])
def test_large_requests_in_a_probe(depth: int, bytes_: int) -> None:
    """A probe ends with a result although few large requests of others are let through."""
    scan = {"bytes": 1 << 20, "iodepth": depth}
    one, other = simulate(FAST, (100, scan), (100, {"random": 1, "bytes": bytes_, "iodepth": 32}))
    assert one["part"] == pytest.approx(0.5, abs=0.05) == other["part"]


@pytest.mark.parametrize("think_us", [300_000, 1_000_000])
def test_favoured_rare_requests_beside_a_flood(think_us: int) -> None:
    """A group alone sends no more than the device needs if a favoured one may come back."""
    rare, flood = simulate(SSD, (1000, {**SYNC, "think_us": think_us}), (100, FLOOD))
    (alone,) = simulate(SSD, (100, FLOOD))
    assert rare["p99_ns"] < 40e6
    assert flood["mean"] > 0.9 * alone["mean"]


# A slice with a database and a backup, beside another one of the same weight.
SLICE = (100, ((1000, SYNC), (100, WRITES)))


@pytest.mark.parametrize("disk", [SSD, NVME], ids=["ssd", "nvme"])
@pytest.mark.parametrize("services", [1, 4])
def test_services_of_slices(disk: dict[str, int], services: int) -> None:
    """A database makes the backup of its own slice wait, and no service of another slice."""
    others = (100, tuple((100, SYNC) for _ in range(services)))
    database, backup, *shells = simulate(disk, SLICE, others)
    (alone,) = simulate(disk, (100, SYNC))
    for service in (database, *shells):
        assert service["mean"] > 0.8 * alone["mean"]
    assert backup["part"] > 0.05


@pytest.mark.parametrize("weights", [(1000, 100), (10000, 1)], ids=str)
@pytest.mark.parametrize("service", [SYNC, COMMITS], ids=["reads", "commits"])
@pytest.mark.parametrize(
    "bulk", [WRITES, SCAN, {**SYNC, "iodepth": 32}], ids=["writes", "scan", "deep"]
)
@pytest.mark.parametrize(
    ("disk", "size", "depth"),
    [(SSD, 65536, 32), (FAST_SSD, 65536, 32), (NVME, 65536, 32), (SSD, 16384, 8)],
    ids=["ssd", "fast-ssd", "nvme", "ssd-16k"],
)
def test_latency_beside_a_slice(
    disk: Job, size: int, depth: int, bulk: Job, service: Job, weights: tuple[int, int]
) -> None:
    """The weights in a slice do not decide how long requests of another slice wait."""
    reads = {"random": 1, "bytes": size, "iodepth": depth}
    slice_ = (100, tuple(zip(weights, (service, bulk), strict=True)))
    (fair, _), (alone,) = (simulate(disk, *((100, reads),) * number) for number in (2, 1))
    reader, *_ = simulate(disk, (100, reads), slice_)
    assert reader["p99_ns"] < 3 * fair["p99_ns"]
    assert reader["mean"] > 0.45 * alone["mean"]


@pytest.mark.parametrize("disk", [SSD, NVME], ids=["ssd", "nvme"])
def test_rare_requests_of_another_slice(disk: dict[str, int]) -> None:
    """They do not wait for the database, also while the backup pauses."""
    backup = {**WRITES, "burst": 64, "think_us": 700_000}
    with_pauses = (100, ((1000, SYNC), (100, backup)))
    _, _, *shells = simulate(disk, with_pauses, (100, ((100, RARE), (100, RARE))))
    assert max(shell["p99_ns"] for shell in shells) < 30e6


@pytest.mark.parametrize("disk", [SSD, NVME], ids=["ssd", "nvme"])
def test_many_rare_requests_of_another_slice(disk: dict[str, int]) -> None:
    """Each is protected for a moment, and the rates of the database stay known: median of seeds."""
    (alone,) = simulate(disk, (100, SYNC))
    parts = []
    for seed in range(1, 9):
        database, *_ = simulate(disk, SLICE, (100, ((100, RARE),) * 30), seed=seed)
        parts.append(database["mean"] / alone["mean"])
    assert statistics.median(parts) > 0.9
    assert min(parts) > 0.85


@pytest.mark.parametrize("think_us", [10_000, 20_000])
def test_stream_of_another_slice_on_hdd(think_us: int) -> None:
    """Slices of time divide an hdd among the slices, whatever the weights in one of them."""
    database = {**SYNC, "think_us": think_us}
    *_, stream = simulate({"kind": 0}, (100, ((1000, database), (100, SCAN))), (100, SCAN))
    assert stream["part"] > 0.45


@pytest.mark.parametrize("disk", [SSD, NVME, CACHE], ids=["ssd", "nvme", "cache"])
@pytest.mark.parametrize("database", [SYNC, COMMITS], ids=["reads", "commits"])
@pytest.mark.parametrize("shell", [SYNC, COMMITS], ids=["reads", "commits"])
def test_commits_beside_a_flood(disk: dict[str, int], database: Job, shell: Job) -> None:
    """Services that read, or write with fsync(), beside a buffered writer in one of the slices."""
    slices = ((100, ((1000, database), (100, FLOOD))), (100, ((100, shell),) * 4))
    first, _, *shells = simulate(disk, *slices)
    (database_alone,), (shell_alone,) = (simulate(disk, (100, job)) for job in (database, shell))
    assert first["mean"] > 0.7 * database_alone["mean"]
    for service in shells:
        assert service["mean"] > 0.8 * shell_alone["mean"]


@pytest.mark.parametrize("disk", [SSD, NVME], ids=["ssd", "nvme"])
def test_databases_of_slices(disk: dict[str, int]) -> None:
    """Each slice has a database, and something that reads or writes all the time."""
    one, _, other, _ = simulate(disk, SLICE, (100, ((1000, SYNC), (100, SCAN))))
    (alone,) = simulate(disk, (100, SYNC))
    assert min(one["mean"], other["mean"]) > 0.8 * alone["mean"]


@pytest.mark.parametrize("disk", [SSD, NVME], ids=["ssd", "nvme"])
@pytest.mark.parametrize("scans", [1, 4])
def test_weights_in_a_slice_gain_nothing_outside(disk: dict[str, int], scans: int) -> None:
    """The other slice reads all the time: it keeps its half of the device."""
    _, _, *others = simulate(disk, SLICE, (100, tuple((100, SCAN) for _ in range(scans))))
    (alone,) = simulate(disk, (100, SCAN))
    assert sum(scan["mean"] for scan in others) > 0.42 * alone["mean"]
    assert sum(scan["part"] for scan in others) > 0.5


@pytest.mark.parametrize("disk", [SSD, NVME], ids=["ssd", "nvme"])
@pytest.mark.parametrize("jobs", [(WRITES,), (WRITES, SCAN)], ids=["writes", "writes and scan"])
def test_light_groups_beside_heavy_ones(disk: dict[str, int], jobs: tuple[Job, ...]) -> None:
    """Beside a heavy group with a backlog and one without, light ones have most of their shares."""
    light = tuple((100, job) for job in jobs)
    scan, service, *others = simulate(disk, (1000, SCAN), (1000, SYNC), *light)
    (alone,) = simulate(disk, (100, SYNC))
    share = 1000 / (2000 + 100 * len(jobs))
    assert service["mean"] > 0.9 * share * alone["mean"]
    assert scan["part"] > share
    for other in others:
        assert other["part"] > 0.6 * share / 10


@pytest.mark.parametrize("disk", [BUS, SSD, NVME], ids=["bus", "ssd", "nvme"])
@pytest.mark.parametrize(
    ("stream", "light"),
    [(WRITES, {**SYNC, "bytes": 65536, "iodepth": 64}), (SCAN, WRITES)],
    ids=["writes", "scan"],
)
def test_light_group_beside_a_service_and_a_stream(
    disk: dict[str, int], stream: Job, light: Job
) -> None:
    """It has three quarters of its share or more, and both heavy ones theirs."""
    jobs = (SYNC, stream, light)
    found = simulate(disk, *zip((1000, 1000, 100), jobs, strict=True))
    parts = []
    for client, job, weight in zip(found, jobs, (1000, 1000, 100), strict=True):
        (alone,) = simulate(disk, (100, job))
        parts.append(max(client["mean"] / alone["mean"], client["part"]) / (weight / 2100))
    assert parts[0] > 0.95
    assert parts[1] > 0.95
    assert parts[2] > 0.75


@pytest.mark.parametrize(
    "service",
    [
        SYNC,
        {**OLTP, "iodepth": 4},
        COMMITS,
        {**SYNC, "iodepth": 8, "think_us": 500},
        {**FLOOD, "bytes": 16384, "iodepth": 4, "think_us": 2000},
    ],
    ids=["reads", "oltp", "fsync", "eight", "buffered"],
)
def test_light_groups_of_many_requests(service: Job) -> None:
    """Beside a service and a deep group on nvme, each light group has 0.4 of its share in each run.

    One of them reads and writes, with too few requests of each direction for a probe. Writes take
    longer than reads.
    """
    light = ({**SYNC, "iodepth": 32, "mixed": 50}, {"bytes": 1 << 18, "iodepth": 8})
    jobs = (service, {**SYNC, "bytes": 65536, "iodepth": 64}, *light)
    received, least = [], []
    for seed in range(1, 6):
        groups = zip((1000, 1000, 100, 100), jobs, strict=True)
        first, _, *others = simulate(NVME, *groups, seed=seed)
        (alone,) = simulate(NVME, (100, service), seed=seed)
        received.append(first["mean"] / alone["mean"])
        least.append(min(other["part"] for other in others))
    assert statistics.median(received) > 0.95 * 1000 / 2200
    assert min(least) > 0.4 * 100 / 2200


@pytest.mark.parametrize("seed", range(1, 6))
@pytest.mark.parametrize(
    ("disk", "light", "heavy"),
    [
        (SSD, SYNC, SYNC),
        (NVME, SYNC, SYNC),
        (EMMC, SYNC, SYNC),
        (SSD, OLTP, SYNC),
        (NVME, OLTP, SYNC),
        (SSD, SYNC, OLTP),
        (NVME, SYNC, OLTP),
    ],
)
def test_lightest_group_of_a_heavy_slice(
    disk: dict[str, int], light: Job, heavy: Job, seed: int
) -> None:
    """It is protected from another slice that weighs less than its part of its own one."""
    share = 1000 / 1100 / 3
    slice_ = (1000, ((100, light), (200, heavy)))
    lightest, other, _ = simulate(disk, slice_, (100, ((100, WRITES),)), seed=seed)
    (alone,), (other_alone,) = (simulate(disk, (100, job)) for job in (light, heavy))
    assert lightest["mean"] > 0.95 * share * alone["mean"]
    assert other["mean"] > 0.95 * 2 * share * other_alone["mean"]


@pytest.mark.parametrize("seed", range(1, 4))
@pytest.mark.parametrize("backup", [WRITES, SCAN], ids=["writes", "scan"])
@pytest.mark.parametrize("size", [16384, 65536], ids=["16k", "64k"])
@pytest.mark.parametrize("disk", [SSD, NVME], ids=["ssd", "nvme"])
def test_deep_group_beside_a_protected_one(
    disk: dict[str, int], size: int, backup: Job, seed: int
) -> None:
    """It weighs less than the protected group, and more than the backup of another slice."""
    share = 1000 / 1100 / 3
    deep = {"random": 1, "bytes": size, "iodepth": 32 if size < 65536 else 16}
    slice_ = (1000, ((100, deep), (200, SYNC)))
    reader, database, _ = simulate(disk, slice_, (100, ((100, backup),)), seed=seed)
    (alone,), (database_alone,) = (simulate(disk, (100, job)) for job in (deep, SYNC))
    assert reader["mean"] > 0.85 * share * alone["mean"]
    assert database["mean"] > 2 * share * database_alone["mean"]


@pytest.mark.parametrize("weights", [(600, 300, 100), (1000, 150, 100)])
@pytest.mark.parametrize(
    ("disk", "few", "deep", "bulk"),
    [
        (EMMC, READERS, {**SYNC, "bytes": 8192, "iodepth": 16}, WRITES),
        (SSD, COMMITS, {**SYNC, "bytes": 65536, "iodepth": 8}, FLOOD),
        (SSD, SYNC, {**SYNC, "bytes": 16384, "iodepth": 32, "write": 1}, SCAN),
        (NVME, COMMITS, {**SYNC, "bytes": 65536, "iodepth": 64}, WRITES),
    ],
    ids=["emmc", "ssd-commits", "ssd-writes", "nvme"],
)
def test_deep_group_between_two(
    disk: dict[str, int], few: Job, deep: Job, bulk: Job, weights: tuple[int, int, int]
) -> None:
    """Beside a heavier group, which is protected, and a lighter one, it receives its share."""
    found = simulate(disk, *zip(weights, (few, deep, bulk), strict=True))
    alone = [simulate(disk, (100, job))[0]["mean"] for job in (few, deep, bulk)]
    parts = [
        client["mean"] / whole / (weight / sum(weights))
        for client, whole, weight in zip(found, alone, weights, strict=True)
    ]
    assert parts[0] > 0.95
    assert parts[1] > 0.9
    assert parts[2] > 0.3


@pytest.mark.parametrize("disk", [SSD, NVME], ids=["ssd", "nvme"])
def test_backup_of_a_slice(disk: dict[str, int]) -> None:
    """A backup whose part of its slice is no more than the other slice weighs is not protected."""
    slice_ = (1000, ((1000, SYNC), (100, {**SCAN, "iodepth": 1})))
    database, *_ = simulate(disk, slice_, (100, ((100, WRITES),)))
    (alone,) = simulate(disk, (100, SYNC))
    assert database["mean"] > 0.95 * alone["mean"]
    assert database["p99_ns"] < 2 * alone["p99_ns"]


@pytest.mark.parametrize("seed", range(1, 4))
def test_backup_beside_other_slices(seed: int) -> None:
    """The time of a database counts for its slice: the backup has no more than its own share."""
    slice_ = (1000, ((1000, SYNC), (100, WRITES)))
    bulk = (100, ((100, {**SYNC, "bytes": 16384, "iodepth": 32}),))
    database, _, *others = simulate(SSD, (1000, (slice_, bulk)), bulk, seed=seed)
    (alone,) = simulate(SSD, (100, SYNC))
    assert database["mean"] > 0.95 * alone["mean"]
    for other in others:
        assert other["part"] > 0.9 / 11


@pytest.mark.parametrize("seed", range(1, 4))
@pytest.mark.parametrize(
    ("disk", "size", "depth"),
    [(NVME, 16384, 32), (NVME, 1 << 20, 16), (SSD, 1 << 20, 16)],
    ids=["nvme-16k", "nvme-1m", "ssd-1m"],
)
def test_payback_beside_a_database(disk: dict[str, int], size: int, depth: int, seed: int) -> None:
    """Others have a few percent of the time, and do not pay back a probe for 10 s."""
    slice_ = (1000, ((1000, SYNC), (100, WRITES)))
    bulk = (100, ((100, {**SYNC, "bytes": size, "iodepth": depth}),))
    _, _, *others = simulate(disk, (1000, (slice_, bulk)), bulk, seed=seed)
    for other in others:
        assert other["part"] > 0.05
