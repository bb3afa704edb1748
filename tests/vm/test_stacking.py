# SPDX-License-Identifier: LGPL-2.1-or-later
"""The package sutro-stacking-dkms: owners of I/O survive md and device-mapper, on a stock kernel.

Runs in guests that have it (the stages stacking*). The judge is the truth of the model disks below.
"""

import mmap
import os
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from rig import scheduler
from rig.cgroup import Group, Subtree
from rig.dkms import kernel, out_of_tree
from rig.modeldisk import ModelDisk
from rig.shell import in_process, run, wait_for
from rig.stack import Stack, devno
from rig.unit import fio
from test_attribution import OWNED, rows

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
# Stacks of the bench whose owners only patches keep, with changes to them. Before small writes,
# raid5 and raid6 read old data and parity.
SMALL = {"ops": ("write",), "bs_kib": 4, "stride_kib": 64}
STACKS = (
    ("raid5", {}), ("raid6", {}), ("raid5", SMALL), ("raid6", SMALL), ("raid5-degraded", {}),
    ("raid1-behind", {}), ("mirror", {}), ("integrity-direct", {}), ("integrity-bitmap", {}),
    ("thin-zero", {}), ("thin-cow", {}), ("snapshot-origin", {}), ("vdo", {}),
)  # fmt: skip
# Debian's 6.12 has no dm-clone.
if not kernel().startswith("6.12."):
    MODULES, STACKS = (*MODULES, "dm-clone"), (*STACKS, ("clone-copy", {}))
# Stock modules that stand on the patched dm-mod, or beside the patched raid456.
STOCK = ("dm-crypt", "dm-cache", "dm-mirror", "dm-raid", "dm-verity", "raid10")

MakeDisk = Callable[..., ModelDisk]
MakeStack = Callable[..., Stack]


# ---- the modules ----


@pytest.mark.parametrize("module", MODULES)
def test_patched_module(module: str) -> None:
    """The patched one is found and loads; DKMS keeps the stock one."""
    assert "/updates/dkms/" in run("modinfo", "--filename", module)
    kept = Path("/var/lib/dkms/sutro-stacking/original_module", kernel())
    assert list(kept.rglob(f"{module}.ko*"))
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


# ---- owners ----


@pytest.mark.parametrize(("name", "changes"), STACKS)
def test_the_owner_is_charged(name: str, changes: dict[str, object]) -> None:
    """Data, parity, pre-reads, copies and late writes of workers are charged to the owner."""
    for row in rows(name, **changes):
        assert row.share is not None and row.share >= OWNED, row


# ---- references ----


def fast(disk: MakeDisk, count: int, size_mb: int) -> list[ModelDisk]:
    """Disks without delays: these tests count references."""
    made = [disk("nvme", f"d{n}", size_mb=size_mb, seed=n + 1) for n in range(count)]
    for one in made:
        one.hurry()
    return made


def md(level: str, disks: list[ModelDisk]) -> dict[str, object]:
    return {"kind": "md", "name": "array", "level": level, "over": [one.name for one in disks]}


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
    in_process(lambda: write_from_many(tree, top))

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


@pytest.mark.parametrize("iodepth", [32, 128])
def test_light_writer_slows_no_other(
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
    """A cgroup has reached its limit at the members: the others write on.

    Writes of raid5d for it are a debt of it, so each of two writers has the half.
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
