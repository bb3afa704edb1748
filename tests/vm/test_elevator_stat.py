# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the elevator tells of each group: latencies of reads."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from rig import scheduler
from rig.cgroup import Group, Subtree
from rig.modeldisk import ModelDisk
from rig.sampler import parse_io_stat
from rig.shell import wait_for
from rig.sutro import RLAT_FROM_NS, knob, rlat, rlat_percentile
from rig.unit import fio

STAT = "io.sutro.stat"
# fio's clock is read before a read is submitted and after its end has been reaped: it sees more,
# and its own buckets are 1.6 % wide.
FIO_SLACK = 1.12
FIO_LATENCIES = {"lat_percentiles": 1, "percentile_list": "50:95:99", "output-format": "json"}


@pytest.fixture
def group(tree: Subtree) -> Group:
    """A cgroup with the io controller."""
    return tree.child("a")


@pytest.fixture
def slow_disk(disk: Callable[..., ModelDisk]) -> ModelDisk:
    """An ssd whose latencies are large against what a slow machine adds to them."""
    made = disk("ssd", "slow0", channels=4, read_us=8000, noise_percent=40, bus_kbps=20000)
    scheduler.select(made.name, "sutro")
    return made


def fio_percentiles(said: str) -> dict[float, int]:
    """What fio saw, in ns from before the submission to the end."""
    report = json.loads(said[said.index("{") :])
    found = report["jobs"][0]["read"]["lat_ns"]["percentile"]
    return {float(percent): ns for percent, ns in found.items()}


def agrees(counts: list[int], seen: dict[float, int]) -> None:
    """Each percentile that fio saw lies in the bucket that has it."""
    assert sorted(seen) == [50, 95, 99]
    for percent, ns in seen.items():
        low, high = rlat_percentile(counts, percent)
        assert low <= ns <= high * FIO_SLACK, (percent, ns, low, high, counts)


@pytest.mark.parametrize("iodepth", [1, 24])
def test_latencies_are_those_that_fio_sees(
    group: Group, slow_disk: ModelDisk, iodepth: int
) -> None:
    """Percentiles of rlat and of fio agree, and each read is counted once."""
    job = group.run(fio(slow_disk.node, "randread", "16k", iodepth, runtime=6, **FIO_LATENCIES))
    said, _ = job.communicate(timeout=120)
    assert job.returncode == 0, said
    counts = rlat(group.read(STAT), slow_disk.devno)
    assert sum(counts) == parse_io_stat(group.read(STAT), slow_disk.devno)["rios"] > 100
    agrees(counts, fio_percentiles(said))


def test_latencies_include_the_wait_for_a_slot(tree: Subtree, slow_disk: ModelDisk) -> None:
    """16 readers share 2 slots: each waits for the others, though not with a request."""
    group, other = tree.child("a"), tree.child("b")
    scheduler.tune(slow_disk.name, "sutro", 64)
    knob(slow_disk, "group_requests").write_text("2")
    # Whoever is alone may have all slots: the other one is never without a request.
    other.run(fio(slow_disk.node, "randread", "16k", 8, seed=2))
    wait_for(lambda: slow_disk.truth().of(other.cgroup).rios > 10, "the other's reads")
    # Who has just had a slot is not to have the next one before those who wait have looked.
    keys = {"ioengine": "psync", "jobs": 16, "thinktime": 2000, "runtime": 8, **FIO_LATENCIES}
    job = group.run(fio(slow_disk.node, "randread", "16k", seed=3, **keys))
    said, _ = job.communicate(timeout=120)
    assert job.returncode == 0, said
    counts = rlat(group.read(STAT), slow_disk.devno)
    agrees(counts, fio_percentiles(said))
    # Eight turns of 8 ms; once they have a slot they wait for two at most.
    assert rlat_percentile(counts, 50)[0] > 30e6


def test_only_reads_have_latencies(group: Group, slow_disk: ModelDisk) -> None:
    """Writes, flushes and discards are not among them."""
    for rw, keys in (("randwrite", {"fsync": 4}), ("randtrim", {})):
        job = group.run(fio(slow_disk.node, rw, "16k", 4, runtime=1, **keys))
        said, _ = job.communicate(timeout=60)
        assert job.returncode == 0, said
    stat = parse_io_stat(group.read(STAT), slow_disk.devno)
    counts = rlat(group.read(STAT), slow_disk.devno)
    assert len(counts) == len(RLAT_FROM_NS)
    # fio looks at the device before it begins.
    assert sum(counts) == stat["rios"] < stat["wios"]


def test_merged_reads_are_one(group: Group, sutro_disk: ModelDisk) -> None:
    """What has been merged is one request here as it is in rios."""
    job = group.run(fio(sutro_disk.node, "read", "4k", 64, iodepth_batch=16, runtime=3))
    said, _ = job.communicate(timeout=60)
    assert job.returncode == 0, said
    stat = parse_io_stat(group.read(STAT), sutro_disk.devno)
    assert stat["rios"] < stat["rbytes"] // 4096
    assert sum(rlat(group.read(STAT), sutro_disk.devno)) == stat["rios"]
