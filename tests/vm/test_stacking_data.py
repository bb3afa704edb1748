# SPDX-License-Identifier: LGPL-2.1-or-later
"""The drivers of sutro-stacking-dkms keep data as they are, whoever writes and whatever fails.

Three cgroups of different weights write at random and read back what they wrote, each block with a
checksum (fio --verify), again and again while something happens to the layer. What a layer itself
knows is asked, too: mismatches that md or dm-integrity counts.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from rig.cgroup import Group, Subtree
from rig.modeldisk import ModelDisk
from rig.shell import run, run_again, wait_for
from rig.stack import Stack, snapshot

# Weight and size of a request of each writer.
WRITERS = {"light": (10, "4k"), "middle": (100, "16k"), "heavy": (1000, "64k")}
MIB = 6

MakeDisk = Callable[..., ModelDisk]
MakeStack = Callable[..., Stack]


def disks_of(disk: MakeDisk, count: int, **numbers: object) -> list[ModelDisk]:
    """Disks under sutro."""
    return [disk("ssd", f"d{n}", "sutro", seed=n + 1, **numbers) for n in range(count)]


def job(top: str, place: int, size: str) -> str:
    """Write each block of a place once, then read and check all of them."""
    words = [f"--filename={top}", f"--bs={size}", f"--offset={place * MIB}m", f"--size={MIB}m"]
    words += ["--rw=randwrite", "--verify=crc32c", "--verify_fatal=1"]
    words += ["--name=job", "--direct=1", "--ioengine=libaio", "--iodepth=16"]
    return " ".join(["fio >/dev/null", *words])


class Writers:
    """One in each of the cgroups, each in a place of its own, again and again until the end."""

    def __init__(self, tree: Subtree, top: str, folder: Path):
        self.enough = folder / "enough"
        self.groups: list[Group] = []
        self.jobs: list[str] = []
        # The pass that each was in last: another seed is other data.
        self.passes = [folder / f"pass{place}" for place in range(len(WRITERS))]
        for place, (name, (weight, size)) in enumerate(WRITERS.items()):
            group = tree.child(name)
            group.write("io.sutro.weight", weight)
            self.groups.append(group)
            self.jobs.append(job(top, place, size))
        self._running: list[subprocess.Popen] = []

    def begin(self) -> None:
        """They begin."""
        for group, one, number in zip(self.groups, self.jobs, self.passes, strict=True):
            more = f"n=$((n + 1)); {one} --randseed=$n || exit 1"
            again = f"n=0; while {more}; [ ! -e {self.enough} ]; do :; done; echo $n >{number}"
            self._running.append(group.run(again))

    def check(self) -> None:
        """What they wrote last is still there."""
        for group, one, number in zip(self.groups, self.jobs, self.passes, strict=True):
            self._running.append(group.run(f"{one} --verify_only --randseed=$(cat {number})"))
        self.end()

    def end(self) -> None:
        """They come to an end, and all that they have read was what they wrote."""
        self.enough.touch()
        for process in self._running:
            said = process.stdout.read()
            assert process.wait() == 0, said
        self._running = []


def begun(disk: ModelDisk, groups: list[Group]) -> bool:
    """Has each used the disk?"""
    truth = disk.truth()
    return all(truth.of(group.cgroup).wbytes for group in groups)


def contents(device: str) -> str:
    """What a device holds, from the device."""
    run("blockdev", "--flushbufs", device)
    with open(device, "rb", buffering=0) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# ---- md ----

SLOW = {"size_mb": 32, "bus_kbps": 6000}


def settled(md: Path) -> bool:
    """The array has all members, and nothing goes on in it."""
    return (md / "degraded").read_text() == "0\n" and (md / "sync_action").read_text() == "idle\n"


@pytest.mark.parametrize(("level", "count", "failing"), [("raid5", 3, 1), ("raid6", 4, 2)])
def test_raid(
    disk: MakeDisk,
    stack: MakeStack,
    tree: Subtree,
    tmp_path: Path,
    level: str,
    count: int,
    failing: int,
) -> None:
    """Members fail while three cgroups write, come back and are rebuilt; parity is right, too."""
    disks = disks_of(disk, count, **SLOW)
    layer = {"kind": "md", "name": "array", "level": level, "over": [one.name for one in disks]}
    top = stack(disks, layer).top
    md = Path("/sys/class/block") / Path(top).resolve().name / "md"
    (md / "sync_speed_min").write_text("1000000")
    failed, kept = disks[:failing], disks[failing:]
    writers = Writers(tree, top, tmp_path)
    writers.begin()
    wait_for(lambda: begun(kept[0], writers.groups), "writes of all", 60)
    for one in failed:
        run("mdadm", "--quiet", top, "--fail", one.node)
    for one in failed:
        run_again("mdadm", "--quiet", top, "--remove", one.node)
    for one in failed:
        run("mdadm", "--quiet", top, "--add", one.node)
    for one in disks:
        one.hurry()
    writers.end()
    wait_for(lambda: settled(md), "the array is whole", 60)
    (md / "sync_action").write_text("check")
    wait_for(lambda: settled(md), "the end of the check", 60)
    assert (md / "mismatch_cnt").read_text() == "0\n"
    # Now from what was rebuilt.
    for one in kept[:failing]:
        run("mdadm", "--quiet", top, "--fail", one.node)
    writers.check()


# ---- dm-integrity ----


def mismatches(name: str) -> int:
    """NAME: 0 SECTORS integrity MISMATCHES ..."""
    return int(run("dmsetup", "status", name).split()[3])


def readable(device: str) -> bool:
    """Can all of it be read?"""
    words = ["dd", f"if={device}", "of=/dev/null", "bs=64k", "iflag=direct"]
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("mode", ["journal", "bitmap", "direct"])
def test_integrity(disk: MakeDisk, tree: Subtree, tmp_path: Path, mode: str) -> None:
    """Every block has its tag, in every mode; one that is written over below is found."""
    (one,) = disks_of(disk, 1, size_mb=32)
    one.hurry()
    how = {"journal": [], "bitmap": ["--integrity-bitmap-mode"]}.get(
        mode, ["--integrity-no-journal"]
    )
    run("integritysetup", "format", "--batch-mode", "--sector-size=4096", one.node)
    run("integritysetup", "open", *how, one.node, "checked")
    try:
        top = "/dev/mapper/checked"
        writers = Writers(tree, top, tmp_path)
        writers.begin()
        writers.end()
        assert readable(top)
        assert mismatches("checked") == 0
    finally:
        run_again("integritysetup", "close", "checked")
    below = os.open(one.node, os.O_WRONLY)
    os.pwrite(below, b"other" * 8192, 16 << 20)
    os.close(below)
    run("integritysetup", "open", *how, one.node, "checked")
    try:
        assert not readable(top)
        assert mismatches("checked") > 0
    finally:
        run_again("integritysetup", "close", "checked")


# ---- snapshots ----


def filled(top: str) -> str:
    """The device holds what cannot be guessed; returns its digest."""
    run("dd", "if=/dev/urandom", f"of={top}", "bs=1M", "count=32", "oflag=direct")
    return contents(top)


@pytest.mark.parametrize("kind", ["thin", "snapshot"])
def test_snapshot(
    disk: MakeDisk, stack: MakeStack, tree: Subtree, tmp_path: Path, kind: str
) -> None:
    """A snapshot keeps the old data while three cgroups write new ones to its origin."""
    disks = disks_of(disk, 1, size_mb=160)
    (one,) = disks
    if kind == "thin":
        layers = [{"kind": "thin", "name": "o", "over": ["d0"], "size_mb": 32}]
        group = "rig_o"
    else:
        layers = [
            {"kind": "group", "name": "g", "over": ["d0"]},
            {"kind": "volume", "name": "o", "over": ["g"], "on": ["d0"], "size_mb": 32},
        ]
        group = "rig_g"
    top = stack(disks, *layers).top
    one.hurry()
    before = filled(top)
    how = ("--size=48m",) if kind == "snapshot" else ()
    snapshot(f"{group}/o", "--setactivationskip=n", *how)
    writers = Writers(tree, top, tmp_path)
    writers.begin()
    writers.end()
    assert contents(f"/dev/{group}/s") == before
    assert contents(top) != before
