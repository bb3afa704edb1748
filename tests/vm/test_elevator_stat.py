# SPDX-License-Identifier: LGPL-2.1-or-later
"""The elevator's statistics of each group: latencies of reads, and groups in use."""

import os
import time
from collections.abc import Callable

import pytest
from rig import scheduler
from rig.cgroup import Group, Subtree, ended
from rig.modeldisk import ModelDisk
from rig.sampler import parse_io_stat
from rig.shell import wait_for
from rig.sutro import ACTIVE, RLAT_FROM_NS, active, knob, rlat, rlat_percentile
from rig.unit import fio, fio_report

STAT = "io.sutro.stat"
# After this time without a request, a group is no longer in use.
ACTIVE_S = 5
# fio's clock is read before a read is submitted and after its end has been reaped: it sees more,
# and its own buckets are 1.6 % wide.
FIO_SLACK = 1.12
FIO_LATENCIES = {"lat_percentiles": 1, "percentile_list": "50:95:99", "output-format": "json"}


@pytest.fixture
def slow_disk(disk: Callable[..., ModelDisk]) -> ModelDisk:
    """An ssd whose latencies are large compared with the delays of a slow machine."""
    made = disk("ssd", "slow0", "sutro", channels=4, read_us=8000, noise_percent=40, bus_kbps=20000)
    return made


def read_once(group: Group, disk: ModelDisk, seed: int = 1) -> None:
    """Four reads, in this group."""
    job = fio(disk.node, "randread", "4k", seed=seed, number_ios=4, time_based=0, size="1m")
    ended(group.run(job))


def fio_percentiles(printed: str) -> dict[float, int]:
    """The latencies of fio, in ns from before the submission to the end."""
    found = fio_report(printed)["read"]["lat_ns"]["percentile"]
    return {float(percent): ns for percent, ns in found.items()}


def agrees(counts: list[int], seen: dict[float, int]) -> None:
    """Each percentile that fio saw lies in the bucket that has it."""
    assert sorted(seen) == [50, 95, 99]
    for percent, ns in seen.items():
        low, high = rlat_percentile(counts, percent)
        assert low <= ns <= high * FIO_SLACK, (percent, ns, low, high, counts)


def test_time_of_one_request(group: Group, slow_disk: ModelDisk) -> None:
    """The time of a request is reported when it is done, though no other request follows."""
    read = f"exec dd if={slow_disk.node} of=/dev/null bs=16k count=1 iflag=direct"
    for count in (1, 2):
        ended(group.run(read))
        stat = parse_io_stat(group.read(STAT), slow_disk.devno)
        assert stat["rios"] == count
        assert stat["time_ns"] > 0


@pytest.mark.parametrize("iodepth", [1, 24])
def test_latencies_are_those_that_fio_sees(
    group: Group, slow_disk: ModelDisk, iodepth: int
) -> None:
    """Percentiles of rlat and of fio agree, and each read is counted once."""
    job = group.run(fio(slow_disk.node, "randread", "16k", iodepth, runtime=6, **FIO_LATENCIES))
    printed = ended(job)
    counts = rlat(group.read(STAT), slow_disk.devno)
    assert sum(counts) == parse_io_stat(group.read(STAT), slow_disk.devno)["rios"] > 100
    agrees(counts, fio_percentiles(printed))


def test_latencies_include_the_wait_for_a_slot(tree: Subtree, slow_disk: ModelDisk) -> None:
    """16 readers share 2 slots: each waits for the others, though not with a request."""
    group, other = tree.child("a"), tree.child("b")
    scheduler.tune(slow_disk.name, "sutro", 64)
    knob(slow_disk, "group_requests").write_text("2")
    # A group that is alone may have all slots: the other one is never without a request.
    other.run(fio(slow_disk.node, "randread", "16k", 8, seed=2))
    wait_for(lambda: slow_disk.truth().of(other.cgroup).rios > 10, "the other's reads")
    # A task that has just had a slot pauses, so that waiting tasks get the next one.
    keys = {"ioengine": "psync", "jobs": 16, "thinktime": 2000, "runtime": 8, **FIO_LATENCIES}
    job = group.run(fio(slow_disk.node, "randread", "16k", seed=3, **keys))
    printed = ended(job)
    counts = rlat(group.read(STAT), slow_disk.devno)
    agrees(counts, fio_percentiles(printed))
    # Eight turns of 8 ms; once they have a slot they wait for two at most.
    assert rlat_percentile(counts, 50)[0] > 30e6


def test_only_reads_have_latencies(group: Group, slow_disk: ModelDisk) -> None:
    """Writes, flushes and discards are not among them."""
    for rw, keys in (("randwrite", {"fsync": 4}), ("randtrim", {})):
        ended(group.run(fio(slow_disk.node, rw, "16k", 4, runtime=1, **keys)))
    stat = parse_io_stat(group.read(STAT), slow_disk.devno)
    counts = rlat(group.read(STAT), slow_disk.devno)
    assert len(counts) == len(RLAT_FROM_NS)
    # fio looks at the device before it begins.
    assert sum(counts) == stat["rios"] < stat["wios"]


def test_merged_reads_are_one(group: Group, sutro_disk: ModelDisk) -> None:
    """Merged requests count as one request here, as in rios."""
    knob(sutro_disk, "direct").write_text("0")
    ended(group.run(fio(sutro_disk.node, "read", "4k", 64, iodepth_batch=16, runtime=3)))
    stat = parse_io_stat(group.read(STAT), sutro_disk.devno)
    assert stat["rios"] < stat["rbytes"] // 4096
    assert sum(rlat(group.read(STAT), sutro_disk.devno)) == stat["rios"]


def test_active_is_of_the_root(group: Group) -> None:
    """The file is in the root cgroup and nowhere else; it cannot be written."""
    assert not (group.folder / ACTIVE.name).exists()
    with pytest.raises(OSError):
        ACTIVE.write_text("1\n")


def test_active_has_the_values_of_stat(tree: Subtree, sutro_disk: ModelDisk, disk) -> None:
    """Only a group that has used a disk has a line for it, with the words of io.sutro.stat."""
    second = disk("ssd", "second0", "sutro")
    one, both, never = (tree.child(name) for name in ("one", "both", "never"))
    read_once(one, sutro_disk)
    read_once(both, sutro_disk, 2)
    read_once(both, second, 3)
    for leaf, users in ((sutro_disk, {one, both}), (second, {both})):
        seen = active(leaf)
        assert {group.id for group in users} <= set(seen)
        assert not {group.id for group in {one, both, never} - users} & set(seen)
        for group in users:
            assert f"{leaf.devno} {seen[group.id]}" in group.read(STAT).splitlines()


def test_active_while_a_request_is_on_its_way(group: Group, disk) -> None:
    """A read that takes longer than idle groups are kept: its group is in use all the time."""
    stuck = disk("ssd", "stuck0", "sutro")
    stuck.set(read_us=(ACTIVE_S + 4) * 1_000_000)
    group.run(f"exec dd if={stuck.node} of=/dev/null bs=4k count=1 iflag=direct status=none")
    wait_for(lambda: group.id in active(stuck), "the group")
    time.sleep(ACTIVE_S + 1)
    assert group.id in active(stuck)
    assert parse_io_stat(group.read(STAT), stuck.devno)["rios"] == 0


def test_idle_groups_leave_and_come_back(tree: Subtree, sutro_disk: ModelDisk) -> None:
    """Five seconds after its last request a group has no line; its next one counts on."""
    busy, idle = tree.child("busy"), tree.child("idle")
    busy.run(fio(sutro_disk.node, "randread", "16k", 4, seed=2))
    read_once(idle, sutro_disk)
    ended_s = time.monotonic()
    before = active(sutro_disk)[idle.id]
    wait_for(lambda: idle.id not in active(sutro_disk), "the idle group to leave", 60)
    assert time.monotonic() - ended_s > ACTIVE_S - 0.5
    assert busy.id in active(sutro_disk)
    read_once(idle, sutro_disk, 4)
    after = active(sutro_disk)[idle.id]
    count = [parse_io_stat(f"x {text}", "x")["rios"] for text in (before, after)]
    assert count[1] >= count[0] + 4


def test_active_page_by_page(tree: Subtree, sutro_disk: ModelDisk) -> None:
    """Many groups are read in small pieces: each line comes once, in whatever pieces."""
    groups = [tree.child(f"g{n}") for n in range(40)]
    for n, group in enumerate(groups):
        job = f"exec dd if={sutro_disk.node} of=/dev/null bs=4k count=1 iflag=direct skip={n}"
        ended(group.run(job))
    wanted = [group.id for group in groups]
    for piece in (100, 4096, 1 << 20):
        file = os.open(ACTIVE, os.O_RDONLY)
        text = b"".join(iter(lambda: os.read(file, piece), b""))  # noqa: B023 - used at once
        again = os.pread(file, 100, 0)
        os.close(file)
        lines = [line.split() for line in text.decode().splitlines()]
        seen = [line[1] for line in lines if line[0] == sutro_disk.devno]
        assert [cgroup for cgroup in seen if cgroup in wanted] == wanted
        assert text.startswith(again[:5])


def test_active_forgets_what_is_gone(tree: Subtree, sutro_disk: ModelDisk, disk) -> None:
    """Removed cgroups, other elevators and unplugged disks have no lines."""
    stays, goes = tree.child("stays"), tree.child("goes")
    for seed, group in enumerate((stays, goes)):
        read_once(group, sutro_disk, seed)
    number = goes.id
    assert {stays.id, number} <= set(active(sutro_disk))
    goes.remove()
    wait_for(lambda: number not in active(sutro_disk), "the removed group to leave", 60)
    assert stays.id in active(sutro_disk)

    scheduler.select(sutro_disk.name, "none")
    assert not active(sutro_disk)
    scheduler.select(sutro_disk.name, "sutro")
    assert stays.id not in active(sutro_disk)
    read_once(stays, sutro_disk, 5)
    assert parse_io_stat(f"x {active(sutro_disk)[stays.id]}", "x")["rios"] < 20

    gone = disk("ssd", "gone0", "sutro")
    read_once(stays, gone, 6)
    devno = gone.devno
    gone.unplug()
    assert devno not in [line.split()[0] for line in ACTIVE.read_text().splitlines()]
