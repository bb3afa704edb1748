# SPDX-License-Identifier: LGPL-2.1-or-later
"""The drivers that the patches of the series change, under load, while their layer changes.

One layer after another stands on disks that sutro has. Cgroups write to it, each in a place of its
own, directly or through the page cache, and read it back from the disks (fio --verify).
A cgroup is removed when its job ends, and some are killed in the middle of it. Meanwhile:

    raid5, raid6, raid1  members are failed, fail themselves, are pulled, come back and are rebuilt;
                         raid6 lacks up to two, raid1 writes behind. In the end md compares the
                                                  contents of the members
    dm-raid5, dm-raid1   the same, with members that fail themselves and come back with a resume
    mirror               copies one disk to the other with kcopyd, while it is written
    thin, snapshot       snapshots come and go; the contents of one are compared before it goes
    integrity-J, -B, -D  reads are checked by dm-integrity, too; it writes a journal, or a bitmap,
                         or data and tags only. In the end a block is changed below it, which it
                         must find
    bcache               goes through its modes, and the cache is taken away and given back

and all of dm is suspended and resumed. plan.json: `seed`, `seconds` of each layer (virtual).
result.json, `layers` by name: `done`, how often each thing was done; `jobs`, how many were right or
killed; `wrong`, those that failed, with their status; `mismatches` of md, of dm-integrity and of
snapshots; `owned`, the bytes that the disks served for cgroups; `dying`, cgroups that were removed
and are still held when the layer is gone. For all: `leaks`.
"""

import mmap
import os
import random
import time
from abc import abstractmethod
from collections import Counter
from pathlib import Path

from layer import STEP_S, Layer, sectors, wait_for
from machine import BLOCK, CGROUPS, CONTROLLERS, leave, plan, run, started, write
from raid import DmRaid1, DmRaid5, Raid1, Raid5, Raid6
from stress import dmsetup, dying, leaks, settled

BCACHE = Path("/sys/fs/bcache")
MIB, PAGE = 1 << 20, 4096
SNAP = "/dev/mapper/snap"
# All that a writer uses lies in its own place.
PLACES, PLACE_KIB = 4, 256
SIZES = ("4k", "16k", "64k")


def contents(node: str, count: int = 0) -> bytes:
    """The contents of a device, read from it: a number of bytes at its beginning, or all."""
    file = os.open(node, os.O_RDONLY | os.O_DIRECT)
    try:
        buffer = mmap.mmap(-1, count or os.lseek(file, 0, os.SEEK_END))
        if os.preadv(file, [buffer], 0) != len(buffer):
            raise OSError(f"{node} cannot be read to its end")
    finally:
        os.close(file)
    return bytes(buffer)


class Mirror(Layer):
    disks = (4, 4)

    def make(self) -> None:
        (one, other), size = self.nodes, sectors(self.nodes[0])
        dmsetup("create", "top", stdin=f"0 {size} mirror core 1 64 2 {one} 0 {other} 0\n")


class Snapped(Layer):
    """A layer with snapshots: one at a time, as SNAP."""

    def __init__(self) -> None:
        super().__init__()
        self.changes.append(self.renew)
        self.held = b""

    @abstractmethod
    def take(self) -> None:
        """Make the snapshot."""

    @abstractmethod
    def drop(self) -> None:
        """Remove it."""

    def renew(self) -> None:
        self.check()
        self.take()
        self.held = contents(SNAP)

    def check(self) -> None:
        if self.held:
            self.mismatches += contents(SNAP) != self.held
            self.drop()
            self.held = b""


class Snapshot(Snapped):
    disks = (4, 16)

    def make(self) -> None:
        size = sectors(self.nodes[0])
        dmsetup("create", "top", stdin=f"0 {size} snapshot-origin {self.nodes[0]}\n")

    def take(self) -> None:
        run("dd", "if=/dev/zero", f"of={self.nodes[1]}", "bs=4k", "count=1", "oflag=direct")
        table = f"0 {sectors(self.nodes[0])} snapshot {' '.join(self.nodes)} P 8\n"
        dmsetup("suspend", "top")
        dmsetup("create", "snap", stdin=table)
        dmsetup("resume", "top")

    def drop(self) -> None:
        dmsetup("suspend", "top")
        dmsetup("remove", "snap")
        dmsetup("resume", "top")


class Thin(Snapped):
    disks = (16, 4)
    size = 4 * MIB >> 9

    def make(self) -> None:
        data, meta = self.nodes
        table = f"0 {sectors(data)} thin-pool {meta} {data} 128 0\n"
        dmsetup("create", "pool", stdin=table)
        self.message("create_thin 0")
        dmsetup("create", "top", stdin=f"0 {self.size} thin /dev/mapper/pool 0\n")

    def message(self, text: str) -> None:
        dmsetup("message", "/dev/mapper/pool", "0", text)

    def take(self) -> None:
        dmsetup("suspend", "top")
        self.message("create_snap 1 0")
        dmsetup("resume", "top")
        dmsetup("create", "snap", stdin=f"0 {self.size} thin /dev/mapper/pool 1\n")

    def drop(self) -> None:
        dmsetup("remove", "snap")
        self.message("delete 1")

    def remove(self) -> None:
        super().remove()
        dmsetup("remove", "pool")


class Integrity(Layer):
    mode = "J"
    words: tuple[str, ...] = ()

    def make(self) -> None:
        # The kernel formats a device of zeros, and reports its room then.
        self.create(8)
        _, self.room = self.status()
        dmsetup("remove", "top")
        self.create(self.room)

    def create(self, room: int) -> None:
        words = ("internal_hash:crc32c", "block_size:4096", *self.words)
        how = f"integrity {self.nodes[0]} 0 - {self.mode} {len(words)} {' '.join(words)}"
        dmsetup("create", "top", stdin=f"0 {room} {how}\n")

    def status(self) -> tuple[int, int]:
        """Blocks that did not have their tag, and the room there is, in sectors."""
        words = run("dmsetup", "status", "top").split()
        return int(words[3]), int(words[4])

    def check(self) -> None:
        differ, _ = self.status()
        self.mismatches += differ
        block = contents(self.top, PAGE)
        dmsetup("remove", "top")
        # The journal, which may have a copy, lies before the data.
        place = contents(self.nodes[0]).rindex(block)
        seek = f"seek={place // PAGE}"
        run("dd", "if=/dev/zero", f"of={self.nodes[0]}", "bs=4k", "count=1", seek, "oflag=direct")
        self.create(self.room)
        try:
            contents(self.top, PAGE)
            found = 0
        except OSError:
            found, _ = self.status()
        if not found:
            raise SystemExit(f"integrity {self.mode}: a block that was changed below is not found")


class IntegrityB(Integrity):
    mode = "B"
    # A bit would be for the whole disk, and stay for ten seconds.
    words = ("sectors_per_bit:128", "bitmap_flush_interval:50")


class IntegrityD(Integrity):
    mode = "D"


class Bcache(Layer):
    disks = (4, 40)
    top = "/dev/bcache0"
    modes = ("writearound", "writethrough", "writeback", "none")

    def __init__(self) -> None:
        super().__init__()
        self.changes = [self.mode, self.cache]
        self.part = BLOCK / "bcache0/bcache"

    def make(self) -> None:
        backing, cache = self.nodes
        printed = run("make-bcache", "--bucket=64k", "--bdev", backing, "--cache", cache)
        self.set = next(line.split()[-1] for line in printed.splitlines() if "Set UUID" in line)
        for node in self.nodes:
            write(BCACHE / "register", node)
        wait_for((self.part / "cache").exists, "bcache with its cache")
        write(self.part / "sequential_cutoff", 0)

    def mode(self) -> None:
        write(self.part / "cache_mode", random.choice(self.modes))

    def cache(self) -> None:
        """Dirty data are written back first."""
        if not (self.part / "cache").exists():
            write(self.part / "attach", self.set)
        elif "detaching" not in (self.part / "state").read_text():
            write(self.part / "detach", 1)

    def remove(self) -> None:
        write(self.part / "stop", 1)
        write(BCACHE / self.set / "stop", 1)
        wait_for(lambda: not (BCACHE / self.set).exists(), "the end of bcache")
        wait_for(lambda: not self.part.exists(), "the end of its device")


LAYERS = {
    "raid5": Raid5, "raid6": Raid6, "raid1": Raid1, "dm-raid5": DmRaid5, "dm-raid1": DmRaid1,
    "mirror": Mirror, "snapshot": Snapshot, "thin": Thin,
    "integrity-J": Integrity, "integrity-B": IntegrityB, "integrity-D": IntegrityD,
    "bcache": Bcache,
}  # fmt: skip


class Writer:
    """A cgroup with a job in a place of the layer; it ends with the job."""

    made = 0

    def __init__(self, top: str, place: int):
        Writer.made += 1
        self.killed = False
        self.folder = CGROUPS / f"w{Writer.made}"
        self.folder.mkdir()
        write(self.folder / "io.sutro.weight", random.choice((1, 100, 1000)))
        words = (
            f"exec fio --name=x --filename={top} --ioengine=libaio --iodepth=16 "
            "--clocksource=clock_gettime --output=/dev/null --allow_file_create=0 "
            f"--rw=randwrite --bs={random.choice(SIZES)} --offset={place * PLACE_KIB}k "
            f"--size={PLACE_KIB}k --randseed={Writer.made} --verify=crc32c --verify_fatal=1 "
            # Such a file would hold the cgroup that wrote it.
            "--verify_state_save=0"
        )
        command = f"{words} --direct=1"
        if random.randrange(2):
            cached = words.replace("exec ", "")
            command = f"{cached} --direct=0 --end_fsync=1 --do_verify=0 && {command} --verify_only"
        self.process = started(self.folder, f"export LD_PRELOAD=/mnt/fio-clock.so; {command}")

    def kill(self) -> None:
        if self.process.poll() is None:
            write(self.folder / "cgroup.kill", 1)
            self.killed = True

    def end(self) -> int:
        """Wait for it and remove the cgroup, at once; the status."""
        status = self.process.wait()
        wait_for(self.empty, f"{self.folder.name} empty")
        self.folder.rmdir()
        return status

    def empty(self) -> bool:
        return "populated 0" in (self.folder / "cgroup.events").read_text()


def drive(layer: Layer, seconds: float) -> dict:
    """Run writers and changes for a time; returns the result."""
    done: Counter[str] = Counter()
    jobs: Counter[str] = Counter()
    wrong = []
    writers: dict[int, Writer] = {}

    def ended(place: int) -> None:
        writer = writers.pop(place)
        status = writer.end()
        if writer.killed:
            jobs["killed"] += 1
        elif status:
            wrong.append(f"{writer.folder.name}: {status}")
        else:
            jobs["right"] += 1

    end_s = time.monotonic() + seconds
    next_s = time.monotonic()
    while time.monotonic() < end_s:
        for place in range(PLACES):
            if place in writers and writers[place].process.poll() is not None:
                ended(place)
            if place not in writers:
                writers[place] = Writer(layer.top, place)
        if time.monotonic() >= next_s:
            change = random.choice(layer.changes)
            # If the machine hangs, the last line of the output has the last change.
            print(f"{end_s - time.monotonic():.3f} {type(layer).__name__} {change.__name__}")
            change()
            done[change.__name__] += 1
            if not random.randrange(3):
                writers[random.randrange(PLACES)].kill()
            next_s = time.monotonic() + random.uniform(0.0, 0.3)
        time.sleep(STEP_S)
    for place in sorted(writers):
        ended(place)
    layer.check()
    return {"done": done, "jobs": jobs, "wrong": wrong, "mismatches": layer.mismatches}


def main() -> None:
    """Drive all layers, look what is left."""
    todo = plan()
    # Nodes in /dev are made by the tools.
    os.environ |= {"DM_DISABLE_UDEV": "1", "MDADM_NO_UDEV": "1"}
    random.seed(todo["seed"])
    write(CGROUPS / "cgroup.subtree_control", CONTROLLERS)
    # Leaks of the boot are not counted.
    leaks()
    before = dying()
    result = {}
    for name, kind in LAYERS.items():
        layer = kind()
        layer.plug()
        layer.make()
        result[name] = drive(layer, todo["seconds"])
        layer.remove()
        result[name]["owned"] = layer.unplug()
        result[name]["dying"] = settled(dying, before) - before
        before += result[name]["dying"]
    leave({"layers": result, "leaks": leaks()})


if __name__ == "__main__":
    main()
