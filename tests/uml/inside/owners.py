# SPDX-License-Identifier: LGPL-2.1-or-later
"""The cgroups that are charged for I/O of file systems: shared files, own files, copies, stripes.

ext4 and xfs, each with split_owners 0 and 1 (/sys/class/bdi, a patch of the series), in steps that
end with a sync:

    shared      cgroups a and b take turns at the blocks of one file
    private     each writes a file of its own
    removed     c and d do so, and are removed before the sync

btrfs, with two copies of all data on two disks, then with data in raid5 on three:

    copies      a writes a file
    stripes     a writes a file, most of it in whole stripes
    parts       a and b take turns at writing small files, with a sync after each
    degraded    a disk is gone, and a reads all these files
    compressed  a writes a file that is compressed

In the end all files are read back from the disks, and btrfs is scrubbed. plan.json is empty.
result.json: `steps`, each with `step`, `fs`, `split` and `disks`, the truth of each; `damaged`, the
files that hold something else than was written.
"""

import os
import random
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from machine import CGROUPS, CONFIGFS, CONTROLLERS, DEBUGFS, leave, make_disk, run, truth, write
from rig.shell import in_process

AT = Path("/tmp/fs")
DISKS = ("d0", "d1", "d2")
# The least that xfs and two copies of btrfs fit on.
SIZE_MB = 512
BLOCK = 4096
# 8 MiB for each file of the steps, 64 for those of btrfs; its small ones are less than a stripe.
BLOCKS, BLOCKS_OF_BTRFS, BLOCKS_OF_PART, PARTS = 2048, 16384, 3, 32


def block(name: str, number: int) -> bytes:
    """The contents of a block of a file; they can be compressed to half of the size."""
    return random.Random(f"{name} {number}").randbytes(BLOCK // 2) * 2


class Owners:
    """The disks and cgroups, and the results."""

    def __init__(self) -> None:
        self.steps: list[dict] = []
        self.damaged: list[str] = []
        self.files: dict[str, int] = {}

    def make(self) -> None:
        for name in DISKS:
            make_disk(name, {"kind": "ssd", "size_mb": SIZE_MB})
        write(CGROUPS / "cgroup.subtree_control", CONTROLLERS)
        for group in ("a", "b"):
            (CGROUPS / group).mkdir()
        AT.mkdir()

    def mount(self, fs: str, split: bool) -> None:
        node = f"/dev/{DISKS[0]}"
        # No lazy initialisation, which would write later on.
        options = ["-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"] if fs == "ext4" else ["-f"]
        run(f"mkfs.{fs}", "-q", *options, node)
        run("mount", "-t", fs, node, str(AT))
        number = AT.stat().st_dev
        bdi = Path("/sys/class/bdi") / f"{os.major(number)}:{os.minor(number)}"
        # It is the disk's, and outlives file systems.
        write(bdi / "split_owners", int(split))

    def mount_btrfs(self, disks: Sequence[str], *options: str) -> None:
        nodes = [f"/dev/{name}" for name in disks]
        words = ",".join([*(f"device={node}" for node in nodes[1:]), *options])
        run("mount", "-t", "btrfs", "-o", words, nodes[0], str(AT))

    # ---- a step ----

    def out_of(self, group: str, what: Callable[[], None]) -> None:
        """Do something in a process of a cgroup."""

        def work() -> None:
            write(CGROUPS / group / "cgroup.procs", 0)
            what()

        in_process(work)

    def changes(self, group: str, name: str, numbers: Iterable[int]) -> None:
        """Write these blocks of a file out of a cgroup, without a sync."""

        def put() -> None:
            file = os.open(AT / name, os.O_WRONLY | os.O_CREAT, 0o600)
            for number in numbers:
                os.pwrite(file, block(name, number), number * BLOCK)

        self.out_of(group, put)
        self.files[name] = max(self.files.get(name, 0), *(number + 1 for number in numbers))

    def step(
        self, step: Callable[[], None], fs: str, split: bool, used: Sequence[str] = DISKS[:1]
    ) -> None:
        """The bytes that the disks served for each cgroup in this step."""
        os.sync()
        for name in used:
            write(DEBUGFS / name / "reset", 1)
        step()
        os.sync()
        disks = {name: truth(name) for name in used}
        self.steps.append({"step": step.__name__, "fs": fs, "split": split, "disks": disks})

    def shared(self) -> None:
        # In two rounds, so that neither is the first everywhere.
        half = BLOCKS // 2
        for begin in (0, half):
            self.changes("a", "shared", range(begin, begin + half, 2))
            self.changes("b", "shared", range(begin + 1, begin + half, 2))

    def private(self) -> None:
        for group in ("a", "b"):
            self.changes(group, f"of-{group}", range(BLOCKS))

    def removed(self) -> None:
        for group in ("c", "d"):
            (CGROUPS / group).mkdir()
            self.changes(group, f"of-{group}", range(BLOCKS))
            (CGROUPS / group).rmdir()

    # ---- the whole ----

    def damage(self) -> list[str]:
        """Files that hold something else on the disks than was written."""
        os.sync()
        write(Path("/proc/sys/vm/drop_caches"), 3)
        found = []
        for name, blocks in self.files.items():
            with (AT / name).open("rb") as file:
                if any(file.read(BLOCK) != block(name, number) for number in range(blocks)):
                    found.append(name)
        return found

    def check(self) -> None:
        self.damaged += self.damage()
        run("umount", str(AT))

    def filesystem(self, fs: str, split: bool) -> None:
        self.mount(fs, split)
        for step in (self.shared, self.private, self.removed):
            self.step(step, fs, split)
        self.check()
        self.files.clear()

    def copies(self) -> None:
        self.changes("a", "copied", range(BLOCKS_OF_BTRFS))

    def stripes(self) -> None:
        self.changes("a", "striped", range(BLOCKS_OF_BTRFS))

    def parts(self) -> None:
        for number in range(PARTS):
            self.changes("ab"[number % 2], f"part{number}", range(BLOCKS_OF_PART))
            os.sync()

    def compressed(self) -> None:
        self.changes("a", "packed", range(BLOCKS_OF_BTRFS))

    def degraded(self) -> None:
        def read() -> None:
            if found := self.damage():
                raise SystemExit(f"{', '.join(found)}: damaged where a disk is gone")

        self.out_of("a", read)

    def btrfs(
        self,
        profile: str,
        disks: Sequence[str],
        *steps: Callable[[], None],
        options: Sequence[str] = (),
    ) -> None:
        run("mkfs.btrfs", "-q", "-f", "-d", profile, "-m", "raid1", *(f"/dev/{d}" for d in disks))
        self.files.clear()
        self.mount_btrfs(disks, *options)
        for step in steps:
            self.step(step, "btrfs", False, disks)
        run("btrfs", "scrub", "start", "-B", "-r", str(AT))
        self.check()

    def without(self, gone: str, disks: Sequence[str], step: Callable[[], None]) -> None:
        """A step on the file system of btrfs(), less a disk."""
        write(CONFIGFS / gone / "online", 0)
        left = [name for name in disks if name != gone]
        self.mount_btrfs(left, "degraded", "ro")
        self.step(step, "btrfs", False, left)
        run("umount", str(AT))
        write(CONFIGFS / gone / "online", 1)


def main() -> None:
    """Take all steps and leave the result."""
    owners = Owners()
    owners.make()
    for fs in ("ext4", "xfs"):
        for split in (False, True):
            owners.filesystem(fs, split)
    owners.btrfs("raid1", DISKS[:2], owners.copies)
    owners.btrfs("raid5", DISKS, owners.stripes, owners.parts)
    owners.without(DISKS[2], DISKS, owners.degraded)
    owners.btrfs("raid5", DISKS, owners.compressed, options=["compress-force=zstd"])
    leave({"steps": owners.steps, "damaged": owners.damaged})


if __name__ == "__main__":
    main()
