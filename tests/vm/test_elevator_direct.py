# SPDX-License-Identifier: LGPL-2.1-or-later
"""Direct mode: while a disk takes all requests, they go past the elevator, and are counted."""

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from rig import scheduler
from rig.cgroup import Group, Subtree, ended
from rig.nullblk import NullBlk
from rig.sampler import parse_io_stat
from rig.shell import wait_for
from rig.sutro import active, knob, state
from rig.unit import fio, fio_report

STAT = "io.sutro.stat"
# Answers within the call that gives it a request: it takes all of them.
INSTANT = {
    "irqmode": 0, "queue_mode": 2, "submit_queues": 1, "hw_queue_depth": 128, "size": 1000,
}  # fmt: skip
# Works on all requests at once, and the CPU waits for it.
LATE = {
    "irqmode": 2, "completion_nsec": 1000000, "queue_mode": 2, "submit_queues": 1,
    "hw_queue_depth": 128, "size": 1000,
}  # fmt: skip
# The last tick, and those of the lease that ends then.
LATE_S = 5.0
# A fio needs some seconds until it reads, while another one has the emulated CPU.
START_S = 60.0
# How often a state is looked at that has to stay. A fio may get no CPU for longer than one pause.
LOOKS = 10
LOOK_S = 0.05
# The largest error of a group's part of the requests in direct mode.
SPLIT = 0.02
SECTOR_BYTES = 512
# Of one disk in /sys/block/DISK/stat: completed reads and writes, and their sectors.
DISK_READS, DISK_READ_SECTORS, DISK_WRITES, DISK_WRITE_SECTORS = 0, 2, 4, 6
COUNTED = ("rios", "rbytes", "wios", "wbytes")


@pytest.fixture
def disk_with_room() -> Iterator[NullBlk]:
    """A null_blk that answers late, but works on more requests than a few processes have."""
    with NullBlk("direct1", LATE) as disk:
        scheduler.select(disk.name, "sutro")
        yield disk


@pytest.fixture
def instant_disk() -> Iterator[NullBlk]:
    """A null_blk under a fresh sutro elevator."""
    with NullBlk("direct0", INSTANT) as disk:
        scheduler.select(disk.name, "sutro")
        yield disk


def is_direct(disk: NullBlk, value: str = "1") -> bool:
    return state(disk)["direct"] == value


def reads_of(group: Group, disk: NullBlk) -> int:
    return parse_io_stat(group.read(STAT), disk.devno).get("rios", 0)


def are_ordered(disk: NullBlk, groups: list[Group]) -> bool:
    """All groups send requests, and none goes past the elevator meanwhile."""
    before = [reads_of(group, disk) for group in groups]
    for _ in range(LOOKS):
        if is_direct(disk):
            return False
        time.sleep(LOOK_S)
    return all(reads_of(group, disk) > reads for group, reads in zip(groups, before, strict=True))


def are_direct(disk: NullBlk, groups: list[Group]) -> bool:
    """All groups complete requests, and these go past the elevator."""
    before = [reads_of(group, disk) for group in groups]
    for _ in range(LOOKS):
        if not is_direct(disk):
            return False
        time.sleep(LOOK_S)
    return all(reads_of(group, disk) > reads for group, reads in zip(groups, before, strict=True))


def completed(disk: NullBlk) -> dict[str, int]:
    """The counts of the block layer for the disk."""
    words = (Path("/sys/block") / disk.name / "stat").read_text().split()
    return {
        "rios": int(words[DISK_READS]), "rbytes": int(words[DISK_READ_SECTORS]) * SECTOR_BYTES,
        "wios": int(words[DISK_WRITES]), "wbytes": int(words[DISK_WRITE_SECTORS]) * SECTOR_BYTES,
    }  # fmt: skip


def accounted(disk: NullBlk) -> dict[str, int]:
    """The counts of the elevator for all cgroups, the root among them, in one sum."""
    lines = [dict(pair.split("=") for pair in rest.split()) for rest in active(disk).values()]
    return {key: sum(int(line[key]) for line in lines) for key in COUNTED}


def load(disk: NullBlk, **keys: object) -> str:
    """Enough requests for direct mode."""
    return fio(disk.node, "randread", "4k", 32, iodepth_batch=16, **keys)


def few(disk: NullBlk, **keys: object) -> str:
    """Enough for it on a disk that answers late, and not so many that others would wait."""
    return fio(disk.node, "randread", "4k", 16, **keys)


def counts_all(group: Group, disk: NullBlk, reads: int) -> bool:
    return parse_io_stat(group.read(STAT), disk.devno)["rios"] == reads


@pytest.mark.first
def test_requests_are_accounted(group: Group, instant_disk: NullBlk) -> None:
    """All reads are in io.sutro.stat, those past the elevator, too, with device time."""
    keys = {"runtime": 2, "output-format": "json"}
    job = group.run(load(instant_disk, **keys))
    wait_for(partial(is_direct, instant_disk), "direct mode")
    reads = int(fio_report(ended(job))["read"]["total_ios"])
    wait_for(partial(counts_all, group, instant_disk, reads), f"{reads} reads in {STAT}", LATE_S)
    stat = parse_io_stat(group.read(STAT), instant_disk.devno)
    assert stat["rbytes"] == 4096 * reads
    assert stat["time_ns"] > 0
    # It is over when there are no requests.
    assert is_direct(instant_disk, "0")


def test_equal_groups_share_it(tree: Subtree, instant_disk: NullBlk) -> None:
    """All reads of both are in io.sutro.stat, and each group has its own."""
    keys = {"runtime": 4, "output-format": "json"}
    groups = [tree.child(name) for name in "ab"]
    jobs = [group.run(load(instant_disk, **keys)) for group in groups]
    wait_for(partial(are_direct, instant_disk, groups), "direct mode for both", START_S)
    reads = [int(fio_report(ended(job))["read"]["total_ios"]) for job in jobs]

    def counted() -> list[int]:
        return [reads_of(group, instant_disk) for group in groups]

    wait_for(lambda: sum(counted()) == sum(reads), f"{sum(reads)} reads in {STAT}", LATE_S)
    # A part is off by requests at the device when direct mode begins and ends.
    assert all(abs(of / mine - 1) < SPLIT for of, mine in zip(counted(), reads, strict=True))


@pytest.mark.first
def test_favoured_group_ends_it(tree: Subtree, disk_with_room: NullBlk) -> None:
    """While groups of unlike weights have requests at the disk, both are ordered."""
    disk = disk_with_room
    alone, other = tree.child("a"), tree.child("b")
    alone.run(few(disk))
    wait_for(partial(is_direct, disk), "direct mode")
    other.write("io.sutro.weight", 300)
    other.run(few(disk, seed=2))
    wait_for(partial(are_ordered, disk, [alone, other]), "ordered reads of both", START_S)
    other.write("io.sutro.weight", 100)
    wait_for(partial(are_direct, disk, [alone, other]), "direct mode for both", START_S)
    other.write("io.sutro.weight", 300)
    wait_for(partial(are_ordered, disk, [alone, other]), "ordered reads again", START_S)
    other.kill()
    wait_for(partial(is_direct, disk), "direct mode again")


def test_favoured_member_with_few_requests(tree: Subtree, disk_with_room: NullBlk) -> None:
    """A group that was a member alone is no longer one beside a group of less weight."""
    disk = disk_with_room
    favoured, other = tree.child("a"), tree.child("b")
    favoured.write("io.sutro.weight", 1000)
    deep = favoured.run(few(disk, runtime=8))
    wait_for(partial(is_direct, disk), "direct mode")
    favoured.run(fio(disk.node, "randread", "4k", 1, seed=2))
    ended(deep)
    other.run(few(disk, seed=3))
    wait_for(partial(are_ordered, disk, [favoured, other]), "ordered reads of both", START_S)


def test_weights_without_protection(tree: Subtree, disk_with_room: NullBlk) -> None:
    """With 0 in `protect`, too, groups of unlike weights are ordered."""
    disk = disk_with_room
    knob(disk, "protect").write_text("0")
    groups = [tree.child(name) for name in "ab"]
    groups[0].write("io.sutro.weight", 300)
    for seed, group in enumerate(groups):
        group.run(few(disk, seed=seed))
    wait_for(partial(are_ordered, disk, groups), "ordered reads of both", START_S)


def test_target_of_a_writer(group: Group, instant_disk: NullBlk) -> None:
    """A group with a latency target is ordered, although it has sent no read yet."""
    disk = instant_disk
    group.write("io.sutro.latency", f"{disk.devno} 5000")
    group.run(fio(disk.node, "randwrite", "4k", 32, iodepth_batch=16))

    def writes() -> int:
        return parse_io_stat(group.read(STAT), disk.devno).get("wios", 0)

    wait_for(writes, "a write", START_S)
    before = writes()
    for _ in range(LOOKS):
        assert not is_direct(disk)
        time.sleep(LOOK_S)
    assert writes() > before


@pytest.mark.first
def test_knob_ends_it(group: Group, instant_disk: NullBlk) -> None:
    """0 in `direct`, and in `fairness` 1, end it under load; it comes back."""
    group.run(load(instant_disk))
    for name, off in (("direct", "0"), ("fairness", "1")):
        wait_for(partial(is_direct, instant_disk), "direct mode")
        file = knob(instant_disk, name)
        on = file.read_text()
        file.write_text(off)
        wait_for(partial(is_direct, instant_disk, "0"), f"the end by {name}")
        file.write_text(on)


@pytest.mark.first
def test_unlike_work_is_accounted(tree: Subtree, instant_disk: NullBlk) -> None:
    """Reads, plugged reads, writes with fsync, writeback and the root cgroup: no request is lost.

    The sum over all cgroups is the count of the block layer for the disk.
    """
    disk = instant_disk
    before = completed(disk)
    end = {"runtime": 2, "output-format": "json"}
    half = {"size": "400m", "offset": "500m"}
    commands = {
        "large": fio(disk.node, "randread", "64k", 8, **end),
        "plugged": fio(disk.node, "read", "4k", 32, iodepth_batch=32, **end),
        "commits": fio(disk.node, "randwrite", "4k", 1, fsync=8, seed=2, **end),
        "buffered": fio(disk.node, "write", "256k", ioengine="psync", direct=0, fsync=64,
                        **half, **end),
    }  # fmt: skip
    jobs = [tree.child(name).run(command) for name, command in commands.items()]
    jobs.append(Group.root().run(load(disk, **end)))
    members = 0
    while any(job.poll() is None for job in jobs):
        now = state(disk)
        if now["direct"] == "1":
            members = max(members, int(now["direct_members"]))
        time.sleep(LOOK_S)
    for job in jobs:
        ended(job)
    assert members > 1

    def counts_all() -> bool:
        wanted = {key: count - before[key] for key, count in completed(disk).items()}
        return accounted(disk) == wanted

    wait_for(counts_all, "the counts of the disk", LATE_S)


def test_parts_beside_writeback(tree: Subtree, instant_disk: NullBlk) -> None:
    """The bytes of a member's writeback do not count as bytes of its direct writes."""
    disk = instant_disk
    end = {"runtime": 6, "output-format": "json"}
    half = {"size": "400m", "offset": "500m"}
    direct, mixed = tree.child("direct"), tree.child("mixed")
    job = direct.run(fio(disk.node, "randwrite", "64k", 16, **end))
    also = mixed.run(
        fio(disk.node, "randwrite", "4k", 16, seed=2, **end)
        + " & "
        + fio(
            disk.node,
            "write",
            "1m",
            ioengine="psync",
            direct=0,
            sync_file_range="write:1",
            **half,
            **end,
        )
    )
    written = int(fio_report(ended(job))["write"]["io_bytes"])
    ended(also)
    wait_for(partial(is_direct, disk, "0"), "the end of direct mode", LATE_S)

    def stat() -> dict[str, int]:
        return parse_io_stat(direct.read(STAT), disk.devno)

    wait_for(lambda: abs(stat()["wbytes"] / written - 1) < SPLIT, f"{written} bytes", LATE_S)


def test_members_come_and_go(tree: Subtree, instant_disk: NullBlk) -> None:
    """A member is removed under load, again and again; the others' counts stay exact."""
    disk = instant_disk
    stays = [tree.child(name) for name in "ab"]
    keys = {"runtime": 20, "output-format": "json"}
    jobs = [group.run(load(disk, seed=n, **keys)) for n, group in enumerate(stays)]
    wait_for(partial(are_direct, disk, stays), "direct mode for both", START_S)
    for n in range(5):
        goes = tree.child(f"c{n}")
        goes.run(load(disk, seed=n + 3))
        wait_for(partial(are_direct, disk, [*stays, goes]), "direct mode for three", START_S)
        goes.remove()
        wait_for(partial(are_direct, disk, stays), "direct mode for both", START_S)
    reads = [int(fio_report(ended(job))["read"]["total_ios"]) for job in jobs]

    def is_split() -> bool:
        counted = [reads_of(group, disk) for group in stays]
        return all(abs(of / mine - 1) < SPLIT for of, mine in zip(counted, reads, strict=True))

    wait_for(is_split, f"{reads} reads in {STAT}", LATE_S)
