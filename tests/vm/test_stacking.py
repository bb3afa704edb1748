# SPDX-License-Identifier: LGPL-2.1-or-later
"""The package sutro-stacking-dkms: owners of I/O survive md and device-mapper, on a stock kernel.

Runs in guests that have it (the stages stacking*). The judge is the truth of the model disks below.
"""

from __future__ import annotations

import mmap
import os
import re
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from bench.attribution.run import measure
from bench.attribution.scenario import SHIPPED, Book
from bench.read import load
from rig import scheduler
from rig.cgroup import Group, Subtree
from rig.dkms import kernel, out_of_tree
from rig.modeldisk import ModelDisk, Usage
from rig.shell import run, run_again, wait_for
from rig.stack import Stack, devno
from rig.unit import fio

MODULES = (
    "dm-mod",
    "dm-integrity",
    "dm-thin-pool",
    "dm-snapshot",
    "dm-vdo",
    "raid456",
    "raid1",
    "bcache",
)
# Stacks of the bench.
BENCH = ("vdo",)
# Debian's 6.12 has no dm-clone.
if not kernel().startswith("6.12."):
    MODULES, BENCH = (*MODULES, "dm-clone"), (*BENCH, "clone-copy")
# Stock modules that stand on the patched dm-mod, or beside the patched raid456.
STOCK = ("dm-crypt", "dm-cache", "dm-mirror", "dm-raid", "dm-verity", "raid10")
# It reads a device that has changed, when it likes.
UDEV = "/system.slice/systemd-udevd.service"
# What every write of a cgroup has to reach; superblocks and pool metadata are nobody's.
WHOLE = 0.99

WRITES = {
    "direct": "dd if=/dev/zero of={top} bs=1M count=8 oflag=direct conv=notrunc",
    "buffered": "dd if=/dev/zero of={top} bs=1M count=8 conv=notrunc,fsync",
    "random": "fio --name=job --filename={top} --rw=randwrite --bs=4k --size=4M --direct=1 "
    "--ioengine=libaio --iodepth=16",
}
READ = "dd if={top} of=/dev/null bs=1M count=8 iflag=direct"

MakeDisk = Callable[..., ModelDisk]
MakeStack = Callable[..., Stack]


# ---- the modules ----


@pytest.mark.parametrize("module", MODULES)
def test_patched_module(module: str) -> None:
    """The patched one is found and loads; DKMS keeps the stock one."""
    assert "/updates/dkms/" in run("modinfo", "--filename", module)
    kept = Path("/var/lib/dkms/sutro-stacking/original_module", kernel())
    assert list(kept.rglob(f"{module}.ko.xz"))
    run("modprobe", module)
    assert out_of_tree(module)


@pytest.mark.parametrize("module", STOCK)
def test_stock_module_fits(module: str) -> None:
    """A module that is not patched loads beside those that are."""
    assert "/kernel/drivers/md/" in run("modinfo", "--filename", module)
    run("modprobe", module)


def test_initramfs() -> None:
    """An initramfs that Debian makes has the patched dm-mod, and not the stock one."""
    listed = run("lsinitramfs", "/boot/stacking-initrd.img").split()
    found = [path for path in listed if re.search(r"/dm-mod\.ko", path)]
    assert found
    assert all("/updates/dkms/" in path for path in found)


# ---- whose I/O it is ----


@contextmanager
def no_probing() -> Iterator[None]:
    """udev reads each device that somebody has written to; not now."""
    run("udevadm", "settle", "--timeout=30")
    run("udevadm", "control", "--stop-exec-queue")
    try:
        yield
    finally:
        run("udevadm", "control", "--start-exec-queue")


def charged(command: str, group: Group, disks: list[ModelDisk], least: float = WHOLE) -> None:
    """So much of all bytes at the disks is charged to the group which runs the command."""
    with no_probing():
        run("sync")
        Path("/proc/sys/vm/drop_caches").write_text("3\n")
        for disk in disks:
            disk.reset()
        process = group.run(command)
        said = process.stdout.read()
        assert process.wait() == 0, said
        run("sync")
        # What is written behind, and what a stripe cache holds back.
        time.sleep(1)
    truths = [disk.truth() for disk in disks]
    owners = {owner for truth in truths for owner in truth.owners} - {UDEV}
    used = {owner: sum((t.of(owner) for t in truths), Usage()) for owner in owners}
    mine = used.get(group.cgroup, Usage()).bytes
    assert mine >= least * sum(usage.bytes for usage in used.values()), used


def fast(disk: MakeDisk, count: int, size_mb: int = 64) -> list[ModelDisk]:
    """Disks that nobody has to wait for: these tests count bytes."""
    made = [disk("nvme", f"d{n}", size_mb=size_mb, seed=n + 1) for n in range(count)]
    for one in made:
        one.hurry()
    return made


def md(level: str, disks: list[ModelDisk]) -> dict[str, object]:
    return {"kind": "md", "name": "array", "level": level, "over": [one.name for one in disks]}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize(("level", "count"), [("raid5", 3), ("raid6", 4), ("raid1", 2)])
def test_md(
    disk: MakeDisk, stack: MakeStack, tree: Subtree, level: str, count: int, write: str
) -> None:
    """Data, parity and pre-reads are charged to who writes."""
    disks = fast(disk, count)
    top = stack(disks, md(level, disks)).top
    charged(WRITES[write].format(top=top), tree.child("writer"), disks)


def test_degraded_raid5(disk: MakeDisk, stack: MakeStack, tree: Subtree) -> None:
    """What is read to compute a lost block is charged to who wants that."""
    disks = fast(disk, 3)
    top = stack(disks, md("raid5", disks)).top
    run("mdadm", "--quiet", top, "--fail", disks[1].node)
    # Superblocks tell of it at once, and when it is gone.
    run_again("mdadm", "--quiet", top, "--remove", disks[1].node)
    time.sleep(2)
    group, left = tree.child("user"), [disks[0], disks[2]]
    charged(READ.format(top=top), group, left)
    charged(WRITES["random"].format(top=top), group, left)


@pytest.mark.parametrize("mode", ["D", "B"])
def test_integrity(disk: MakeDisk, stack: MakeStack, tree: Subtree, mode: str) -> None:
    """Reads, which a worker of dm-integrity sends, and writes. A journal (mode J) is nobody's."""
    (one,) = disks = fast(disk, 1)
    table = f"integrity {{0}} 0 - {mode} 1 internal_hash:crc32c"
    with Stack({one.name: one.node}) as formatted:
        formatted.add("dm", "format", [one.name], table=f"0 1 {table}")
    layer = {"kind": "dm", "name": "checked", "over": [one.name], "table": f"0 32768 {table}"}
    top = stack(disks, layer).top
    group = tree.child("user")
    # dm-bufio writes tags, and the bitmap of mode B, for whoever wrote: by 64 KiB, of 8 MiB.
    charged(WRITES["direct"].format(top=top), group, disks, WHOLE - 2 / 128)
    charged(READ.format(top=top), group, disks)


def test_mirror(disk: MakeDisk, stack: MakeStack, tree: Subtree) -> None:
    """dm-mirror writes both legs for who writes."""
    disks = fast(disk, 2)
    table = "0 65536 mirror core 2 1024 nosync 2 {0} 0 {1} 0"
    layer = {"kind": "dm", "name": "both", "over": ["d0", "d1"], "table": table}
    top = stack(disks, layer).top
    charged(WRITES["buffered"].format(top=top), tree.child("writer"), disks)


def test_thin(disk: MakeDisk, stack: MakeStack, tree: Subtree) -> None:
    """Zeroing of new blocks, and copies of shared ones, are charged to who writes 4 KiB."""
    disks = fast(disk, 1, 160)
    top = stack(disks, {"kind": "thin", "name": "t", "over": ["d0"], "size_mb": 32}).top
    group = tree.child("writer")
    charged(WRITES["random"].format(top=top), group, disks)
    config = 'global/thin_check_executable=""'
    run("lvcreate", "--quiet", "--snapshot", "--name", "s", "--config", config, "rig_t/t")
    charged(WRITES["random"].format(top=top), group, disks)


def test_snapshot(disk: MakeDisk, stack: MakeStack, tree: Subtree) -> None:
    """Copies to an LVM snapshot are charged to who writes to the origin; its table is nobody's."""
    disks = fast(disk, 1, 160)
    group = {"kind": "group", "name": "g", "over": ["d0"]}
    origin = {"kind": "volume", "name": "o", "over": ["g"], "on": ["d0"], "size_mb": 32}
    top = stack(disks, group, origin).top
    run("lvcreate", "--quiet", "--yes", "--snapshot", "--size=48m", "--name", "s", "rig_g/o")
    # Each chunk of 4 KiB is read and written and then written over; the table has an entry for it.
    charged(WRITES["random"].format(top=top), tree.child("writer"), disks, WHOLE - 0.04)


@pytest.mark.parametrize("name", BENCH)
def test_what_a_worker_writes(name: str) -> None:
    """What dm-vdo writes after it said that it was done, and what dm-clone copies first."""
    (spec,) = load(Book, SHIPPED).only([name]).scenario
    (row,) = measure(replace(spec, ops=("write",), modes=("direct",)), print)
    assert row.share is not None and row.share >= WHOLE, row


# ---- references ----

MANY = 1000


def dying() -> int:
    """Removed cgroups that something still holds."""
    text = Path("/sys/fs/cgroup/cgroup.stat").read_text()
    return int(re.search(r"^nr_dying_descendants (\d+)$", text, re.MULTILINE)[1])


def write_from_many(tree: Subtree, node: str) -> None:
    """A process wanders through new cgroups, writes 4 KiB in each, and they are removed."""
    disk = os.open(node, os.O_WRONLY | os.O_DIRECT)
    page = mmap.mmap(-1, 4096)
    for number in range(MANY):
        folder = tree.folder / f"c{number}"
        folder.mkdir()
        (folder / "cgroup.procs").write_text("0\n")
        os.pwrite(disk, page, 4096 * number)
        (tree.folder / "main/cgroup.procs").write_text("0\n")
        folder.rmdir()


@pytest.mark.parametrize("kind", ["raid5", "thin", "vdo"])
def test_no_cgroup_is_pinned(disk: MakeDisk, stack: MakeStack, tree: Subtree, kind: str) -> None:
    """A cgroup that is removed goes, although its stripes are cached and its blocks were copied."""
    disks = fast(disk, 3 if kind == "raid5" else 1, 5120 if kind == "vdo" else 160)
    layer = {
        "raid5": md("raid5", disks),
        "thin": {"kind": "thin", "name": "t", "over": ["d0"], "size_mb": 96},
        "vdo": {"kind": "vdo", "name": "v", "over": ["d0"], "size_mb": 96},
    }[kind]
    top = stack(disks, layer).top
    # The subtree has its controllers from the first child on.
    tree.child("first").remove()
    before = dying()
    pid = os.fork()
    if not pid:
        try:
            write_from_many(tree, top)
            os._exit(0)
        finally:
            traceback.print_exc()
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0

    def gone() -> bool:
        Path("/proc/sys/vm/drop_caches").write_text("3\n")
        return dying() <= before

    wait_for(gone, f"{dying() - before} of {MANY} cgroups are still held", 60, 1)


# ---- what others have to wait for ----

SSD = {"size_mb": 128, "bus_kbps": 20000, "read_us": 800, "write_us": 2000}


def slow(disk: MakeDisk, stack: MakeStack) -> tuple[str, list[ModelDisk]]:
    """A raid5 of three disks that are slower than an emulated CPU."""
    disks = [disk("ssd", f"d{n}", seed=n + 1, **SSD) for n in range(3)]
    return stack(disks, md("raid5", disks)).top, disks


def halves(top: str, **job: object) -> list[str]:
    """The same endless job on each half of a device."""
    half = int(run("blockdev", "--getsize64", top)) // 2 >> 20
    job = {"rw": "randwrite", "bs": "4k", "iodepth": 32, "size": f"{half}m", **job}
    return [fio(top, seed=n + 1, offset=f"{n * half}m", **job) for n in range(2)]


def rates(groups: list[Group], top: str, seconds: float = 6) -> list[float]:
    """Bytes a second that each group writes to a device, after a ramp."""

    def written(group: Group) -> int:
        found = re.search(rf"^{devno(top)} .*\bwbytes=(\d+)", group.read("io.stat"), re.MULTILINE)
        return int(found[1]) if found else 0

    # fio takes its time to start on a busy CPU.
    wait_for(lambda: all(written(group) for group in groups), "a first write of each group", 60)
    time.sleep(4)
    began, before = time.monotonic(), [written(group) for group in groups]
    time.sleep(seconds)
    took = time.monotonic() - began
    return [(written(group) - old) / took for group, old in zip(groups, before, strict=True)]


def device_time(groups: list[Group], disks: list[ModelDisk], seconds: float = 8) -> list[int]:
    """True device time of each group at all disks together, after a ramp."""
    time.sleep(3)
    for one in disks:
        one.reset()
    time.sleep(seconds)
    truths = [one.truth() for one in disks]
    return [sum(truth.of(group.cgroup).time_ns for truth in truths) for group in groups]


def test_raid5_two_to_one(disk: MakeDisk, stack: MakeStack, tree: Subtree) -> None:
    """Weights hold at the members, for data, parity and pre-reads together."""
    top, disks = slow(disk, stack)
    for one in disks:
        scheduler.select(one.name, "sutro")
    groups = [tree.child("heavy"), tree.child("light")]
    groups[0].write("io.sutro.weight", 200)
    for group, job in zip(groups, halves(top), strict=True):
        group.run(job)
    heavy, light = device_time(groups, disks)
    assert 1.9 <= heavy / light <= 2.1


@pytest.mark.parametrize("iodepth", [32, 128])
def test_light_writer_slows_nobody(
    disk: MakeDisk, stack: MakeStack, tree: Subtree, iodepth: int
) -> None:
    """With weights 1000 and 1 the heavy writer of a raid5 is not held up by the other's stripes.

    Although both have as many of them: with 128 each, all that the array has.
    """
    top, disks = slow(disk, stack)
    for one in disks:
        scheduler.select(one.name, "sutro")
    groups = [tree.child("heavy"), tree.child("light")]
    groups[0].write("io.sutro.weight", 1000)
    groups[1].write("io.sutro.weight", 1)
    jobs = halves(top, iodepth=iodepth)
    groups[0].run(jobs[0])
    (alone,) = rates(groups[:1], top)
    groups[1].run(jobs[1])
    heavy, light = rates(groups, top)
    assert heavy >= 0.95 * alone, f"alone {alone:.0f} bytes/s, now {heavy:.0f} and {light:.0f}"


@pytest.mark.parametrize("controller", ["io.max", "io.cost"])
def test_no_cgroup_stops_the_array(
    disk: MakeDisk, stack: MakeStack, tree: Subtree, controller: str
) -> None:
    """A cgroup that has used up what it may have at the members: the others write on.

    What raid5d writes for it is a debt of it, so each of two writers has the half.
    """
    top, disks = slow(disk, stack)
    groups = [tree.child("free"), tree.child("bound")]
    for one in disks:
        scheduler.select(one.name, "none")
        if controller == "io.max":
            groups[1].write("io.max", f"{one.devno} wbps=65536 rbps=65536")
        else:
            Group.root().write("io.cost.qos", f"{one.devno} enable=1 min=10 max=10")
    try:
        if controller == "io.cost":
            groups[1].write("io.weight", "1")
            groups[0].write("io.weight", "1000")
        jobs = halves(top)
        groups[0].run(jobs[0])
        (alone,) = rates(groups[:1], top)
        groups[1].run(jobs[1])
        free, _ = rates(groups, top)
        assert free >= 0.4 * alone
    finally:
        if controller == "io.cost":
            for one in disks:
                Group.root().write("io.cost.qos", f"{one.devno} enable=0")
