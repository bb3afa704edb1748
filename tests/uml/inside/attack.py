# SPDX-License-Identifier: LGPL-2.1-or-later
"""An unprivileged user with a delegated cgroup attacks other users of the disk.

    python3 attack.py NAME

It is started by root in the cgroup of the tenant. It delegates this cgroup as systemd does with
Delegate=yes, gives the partition of the tenant to the user `nobody`, and becomes this user for
good. Then it runs the attack, one function below, until a signal ends it.

The clock stands still while a task runs, so each loop sleeps: PAUSE_S allows 5,000 calls a second.
"""

import contextlib
import ctypes
import itertools
import mmap
import os
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
TENANT = CGROUPS / "tenant"
# The files of a cgroup that systemd gives to the user of Delegate=yes.
DELEGATED = ("", "cgroup.procs", "cgroup.subtree_control", "cgroup.threads")
NOBODY = 65534
# A partition of its own, or a file system on it.
DEVICE, FILES = "/dev/d0p2", Path("/tmp/fs")
# The partition of the victim: files that both may read, as layers of container images.
COMMON = "/dev/d0p1"
KIB = 1024
MIB = 1024 * KIB
SPAN = 256 * MIB
PAUSE_S = 0.0002
# Making a cgroup and moving a process take more real time, so fewer are made.
CGROUP_PAUSE_S = 0.001
LEVELS = 1000
# system calls of x86-64
IO_SETUP, IO_GETEVENTS, IO_SUBMIT = 206, 208, 209
PREAD = 0
RWF_NOWAIT = 8
IOPRIO_SET, IOPRIO_PROCESS, IOPRIO_BE = 251, 1, 2 << 13

libc = ctypes.CDLL(None, use_errno=True)


# ---- cgroups ----


def delegate() -> None:
    """Give the cgroup to the user, and become it."""
    for name in DELEGATED:
        os.chown(TENANT / name, NOBODY, NOBODY)
    for node in (DEVICE, COMMON):
        os.chmod(node, 0o666)
    if FILES.exists():
        os.chown(FILES, NOBODY, NOBODY)
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    # A cgroup with controllers for its children has no processes itself.
    enter(made(TENANT / "self"))
    write(TENANT / "cgroup.subtree_control", "+io +memory")


def made(folder: Path, **settings: object) -> Path:
    """A cgroup; weight=1 sets the weight of each scheduler that has one."""
    folder.mkdir(exist_ok=True)
    for key, value in settings.items():
        setting(folder, key, value)
    return folder


def setting(folder: Path, key: str, value: object) -> None:
    """Write what the scheduler in use has: weight, class, reserve, latency."""
    for prefix in ("io.sutro.", "io.bfq.", "io."):
        file = folder / f"{prefix}{key}"
        if file.exists():
            limit = 1000 if prefix == "io.bfq." else 10000
            write(file, min(value, limit) if isinstance(value, int) else value)


def write(file: Path, text: object) -> bool:
    """Write a kernel file; false if the kernel refuses."""
    try:
        file.write_text(f"{text}\n")
    except OSError:
        return False
    return True


def enter(folder: Path) -> None:
    """Move this process."""
    (folder / "cgroup.procs").write_text("0\n")


def spawn(folder: Path, work: Callable[[], object]) -> int:
    """A process in a cgroup."""
    if not (pid := os.fork()):
        with contextlib.suppress(KeyboardInterrupt):
            enter(folder)
            work()
        os._exit(0)
    return pid


# ---- I/O ----


def opened(device: str = DEVICE, flags: int = os.O_RDWR) -> int:
    return os.open(device, flags | os.O_DIRECT)


def buffer(size: int) -> mmap.mmap:
    return mmap.mmap(-1, size)


def places(size: int, seed: int = 1, span: int = SPAN) -> "itertools.Iterator[int]":
    """Random offsets."""
    draw = random.Random(seed)
    while True:
        yield draw.randrange(span // size) * size


def reader(size: int = 64 * KIB, seed: int = 1) -> None:
    """One read after the other."""
    fd, into = opened(), [buffer(size)]
    for at in places(size, seed):
        os.preadv(fd, into, at)


def fio(folder: Path, **keys: object) -> None:
    """fio on the partition, without end."""
    options = {"name": "attack", "filename": DEVICE, "direct": 1, "ioengine": "libaio",
               "clocksource": "clock_gettime", "time_based": 1, "runtime": 100000,
               "output": "/dev/null", "size": "256m"} | keys  # fmt: skip
    if "directory" in keys:
        del options["filename"]
    words = [f"--{key}={value}" for key, value in options.items()]
    environ = os.environ | {"LD_PRELOAD": "/mnt/fio-clock.so"}
    os.chdir("/dev/shm")
    spawn(folder, lambda: os.execvpe("fio", ["fio", *words, "--thread"], environ))


class Iocb(ctypes.Structure):
    """struct iocb of linux/aio_abi.h."""

    _fields_ = [
        # key and aio_rw_flags
        ("data", ctypes.c_uint64), ("key", ctypes.c_uint32), ("flags", ctypes.c_uint32),
        ("opcode", ctypes.c_uint16), ("prio", ctypes.c_int16), ("fd", ctypes.c_uint32),
        ("buf", ctypes.c_uint64), ("nbytes", ctypes.c_uint64), ("offset", ctypes.c_int64),
        ("rest", ctypes.c_uint64 * 2),
    ]  # fmt: skip


class Aio:
    """Requests in flight of one process, whatever cgroup it is in meanwhile."""

    def __init__(self, depth: int, size: int, device: str = DEVICE):
        self.context = ctypes.c_ulong()
        if libc.syscall(IO_SETUP, depth, ctypes.byref(self.context)):
            raise OSError(ctypes.get_errno(), "io_setup")
        self.fd, self.size, self.in_flight, self.depth = opened(device), size, 0, depth
        # All requests read into the same pages, which must stay mapped.
        self.pages = buffer(size)
        self.memory = ctypes.addressof(ctypes.c_char.from_buffer(self.pages))
        self.events = (ctypes.c_uint64 * (4 * depth))()

    def submit(self, at: int, opcode: int = PREAD, flags: int = 0) -> bool:
        """Send one request; false if the kernel refuses it now."""
        one = Iocb(flags=flags, opcode=opcode, fd=self.fd, buf=self.memory, nbytes=self.size,
                   offset=at)  # fmt: skip
        sent = libc.syscall(IO_SUBMIT, self.context, 1, ctypes.byref(ctypes.pointer(one)))
        self.in_flight += sent == 1
        return sent == 1

    def send(self, at: int) -> None:
        """Send one request; wait for others if there are enough."""
        while self.in_flight == self.depth or not self.submit(at):
            self.reap()

    def fill(self, offsets: "itertools.Iterator[int]") -> None:
        """Send as many requests as there may be, and wait for one."""
        while self.in_flight < self.depth:
            self.send(next(offsets))
        self.reap()

    def reap(self, least: int = 1) -> None:
        """Wait for completions; a kernel that refuses all requests is a mistake of the attack."""
        if not self.in_flight:
            raise OSError(ctypes.get_errno(), "io_submit")
        events = ctypes.byref(self.events)
        got = libc.syscall(IO_GETEVENTS, self.context, least, self.depth, events, None)
        self.in_flight -= max(got, 0)


# ---- attacks: cgroups ----


def children() -> None:
    """200 cgroups with a reader each."""
    for number in range(200):
        folder = made(TENANT / f"c{number}", weight=10000)
        spawn(folder, lambda seed=number: reader(seed=seed))


def flood() -> None:
    """One process has a request in flight in each of 1,000 cgroups."""
    folders = [made(TENANT / f"c{number}", weight=10000) for number in range(LEVELS)]
    aio, offsets = Aio(LEVELS, 64 * KIB), places(64 * KIB)
    for folder in itertools.cycle(folders):
        enter(folder)
        aio.send(next(offsets))


def chain() -> None:
    """A chain of 1,000 cgroups; readers in the deepest one and on the way."""
    folder, readers = TENANT, []
    for level in range(LEVELS):
        write(folder / "cgroup.subtree_control", "+io")
        try:
            folder = made(folder / "c", weight=10000)
            if level % 8 == 0:
                readers.append(made(folder / "r", weight=10000))
        except OSError:
            # The path is as long as the kernel allows, or the tree as deep.
            break
    for number, inner in enumerate([*readers, folder]):
        spawn(inner, lambda seed=number: reader(seed=seed))


def churn() -> None:
    """1,000 times a second: make a cgroup, send a request in it, leave it, and remove it."""
    aio, offsets, old = Aio(256, 64 * KIB), places(64 * KIB), None
    for number in itertools.count():
        folder = made(TENANT / f"c{number}")
        enter(folder)
        aio.send(next(offsets))
        if old:
            old.rmdir()
        old = folder
        time.sleep(CGROUP_PAUSE_S)


def move() -> None:
    """A process with 256 requests in flight moves between two cgroups 1,000 times a second."""
    folders = [made(TENANT / name) for name in "ab"]
    setting(folders[1], "weight", 1)
    aio, offsets = Aio(256, 64 * KIB), places(64 * KIB)
    for folder in itertools.cycle(folders):
        enter(folder)
        aio.fill(offsets)
        time.sleep(CGROUP_PAUSE_S)


# ---- attacks: settings ----


def _toggled(key: str, values: tuple[object, ...]) -> None:
    folders = [made(TENANT / f"c{number}") for number in range(8)]
    for folder in folders:
        fio(folder, rw="randread", bs="64k", iodepth=16)
    for value in itertools.cycle(values):
        for folder in folders:
            setting(folder, key, value)
            time.sleep(PAUSE_S)


def classes() -> None:
    """8 readers in cgroups whose class changes 5,000 times a second."""
    _toggled("class", ("rt", "idle", "be"))


def weights() -> None:
    """8 readers in cgroups whose weight changes 5,000 times a second."""
    _toggled("weight", (1, 10000))


def promises() -> None:
    """A cgroup of class rt and weight 10000 that attempts to reserve time and a latency."""
    folder = made(TENANT / "c", weight=10000, **{"class": "rt"})
    fio(folder, rw="randread", bs="64k", iodepth=32)
    while True:
        setting(folder, "reserve", 1000)
        setting(folder, "latency", 1)
        write(TENANT / "io.sutro.weight", 10000)
        write(TENANT / "io.bfq.weight", 1000)
        write(TENANT / "io.weight", 10000)
        time.sleep(0.1)


def priorities() -> None:
    """32 readers whose I/O priority changes 5,000 times a second."""
    folder, pids = made(TENANT / "c"), []
    for number in range(32):
        pids.append(spawn(folder, lambda seed=number: reader(seed=seed)))
    for level in itertools.cycle((0, 7)):
        for pid in pids:
            libc.syscall(IOPRIO_SET, IOPRIO_PROCESS, pid, IOPRIO_BE + level)
            time.sleep(PAUSE_S)


# ---- attacks: requests ----


def slots() -> None:
    """16 threads with 256 reads in flight each."""
    fio(TENANT / "self", rw="randread", bs="64k", iodepth=256, numjobs=16)


def batches() -> None:
    """AIO in batches of 256, which take slots in reserve."""
    keys = {"iodepth": 256, "iodepth_batch": 256, "iodepth_batch_complete_min": 128}
    fio(TENANT / "self", rw="randread", bs="16k", numjobs=8, **keys)


def uring() -> None:
    """io_uring with kernel worker threads for each of 256 requests."""
    fio(TENANT / "self", rw="randread", bs="64k", ioengine="io_uring", iodepth=256, force_async=1,
        numjobs=4)  # fmt: skip


def nowait() -> None:
    """Requests that never wait for a slot (RWF_NOWAIT), sent again at once if refused."""
    aio, offsets = Aio(512, 64 * KIB), places(64 * KIB)
    while True:
        while aio.in_flight < aio.depth and aio.submit(next(offsets), flags=RWF_NOWAIT):
            pass
        if aio.in_flight:
            aio.reap()
        time.sleep(PAUSE_S)


def writes() -> None:
    """Writes of 1 MiB, 64 in flight."""
    fio(TENANT / "self", rw="write", bs="1m", iodepth=64)


def sizes() -> None:
    """Requests of 512 bytes and of 1 MiB in turns of half a second, as costs are learnt."""
    small = Aio(256, 512)
    large = Aio(256, MIB)
    few, many = places(MIB), places(512)
    while True:
        for aio, offsets in ((small, many), (large, few)):
            end_s = time.monotonic() + 0.5
            while time.monotonic() < end_s:
                aio.fill(offsets)


def mixed() -> None:
    """Reads of 4 KiB and writes of 1 MiB beside one another, in one cgroup."""
    fio(TENANT / "self", rw="randread", bs="4k", iodepth=64)
    fio(TENANT / "self", rw="randwrite", bs="1m", iodepth=64)


def favoured() -> None:
    """One reader is favoured in its slice: the victim waits for it as it waits for the victim."""
    few, many = made(TENANT / "few", weight=10000), made(TENANT / "many", weight=1)
    fio(few, rw="randread", bs="4k", ioengine="psync")
    fio(many, rw="randread", bs="4k", iodepth=32)


def bursts() -> None:
    """Silence for 450 ms, then 512 requests at once, to use credit that was saved while asleep."""
    aio, offsets = Aio(512, 64 * KIB), places(64 * KIB)
    while True:
        aio.fill(offsets)
        aio.reap(aio.in_flight)
        time.sleep(0.45)


def merges() -> None:
    """Requests that border on the requests of the victim, before and behind them."""
    aio = Aio(256, 4 * KIB, COMMON)
    for at in places(64 * KIB, span=128 * MIB):
        # Reads of the victim are aligned to 64 KiB.
        for place in (at - 4 * KIB, at + 64 * KIB):
            aio.send(max(place, 0))


def discards() -> None:
    """Discards of 1 MiB, 64 in flight."""
    fio(TENANT / "self", rw="randtrim", bs="1m", iodepth=64, numjobs=4)


def trimmed() -> None:
    """Reads of discarded blocks, which the drive need not read from flash, before real ones."""
    fio(TENANT / "self", rw="trim", bs="1m", iodepth=16, size="64m")
    fio(TENANT / "self", rw="randread", bs="16k", iodepth=64, size="64m")
    fio(TENANT / "self", rw="randread", bs="16k", iodepth=64, offset="64m", size="192m")


def overwrites() -> None:
    """Random writes of 4 KiB to a full drive, which collects garbage."""
    fio(TENANT / "self", rw="randwrite", bs="4k", iodepth=64, numjobs=4)


def fsyncs() -> None:
    """64 threads that write 4 KiB and flush the drive."""
    fio(TENANT / "self", rw="randwrite", bs="4k", ioengine="psync", fsync=1, numjobs=64)


# ---- attacks: files ----


def commits() -> None:
    """32 threads that write 4 KiB to files and call fsync()."""
    fio(TENANT / "self", rw="write", bs="4k", direct=0, ioengine="psync", fsync=1, numjobs=32,
        size="4m", filename_format="f.$jobnum", directory=FILES)  # fmt: skip


def writeback() -> None:
    """Four writers through the page cache."""
    fio(TENANT / "self", rw="write", bs="1m", direct=0, ioengine="psync", numjobs=4, size="64m",
        filename_format="f.$jobnum", directory=FILES)  # fmt: skip


def mapped() -> None:
    """32 threads that read a mapped file in small memory: page faults, and reclaim of their own."""
    folder = made(TENANT / "c")
    write(folder / "memory.max", 48 * MIB)
    fio(folder, rw="randread", bs="4k", direct=0, ioengine="mmap", numjobs=32, invalidate=0)


def pressure() -> None:
    """Writers of mapped files in memory of 48 MiB: dirty pages, reclaimed all the time."""
    folder = made(TENANT / "c")
    write(folder / "memory.high", 40 * MIB)
    write(folder / "memory.max", 48 * MIB)
    fio(folder, rw="randwrite", bs="64k", direct=0, ioengine="psync", numjobs=16, size="32m",
        filename_format="f.$jobnum", directory=FILES)  # fmt: skip


def metadata() -> None:
    """Directories are read again and again in small memory: requests marked as metadata."""
    folder = made(TENANT / "c")
    for number in range(2000):
        (FILES / f"d{number}").mkdir()
    write(folder / "memory.max", 32 * MIB)

    def walk(seed: int) -> None:
        draw = random.Random(seed)
        fill = os.open(DEVICE, os.O_RDONLY)
        while True:
            with contextlib.suppress(OSError):
                os.listdir(FILES / f"d{draw.randrange(2000)}")
                # Pages of the device in the page cache displace those of directories.
                os.pread(fill, 128 * KIB, draw.randrange(2048) * 128 * KIB)
            time.sleep(PAUSE_S)

    for seed in range(32):
        spawn(folder, lambda seed=seed: walk(seed))


ATTACKS = (
    children, flood, chain, churn, move, classes, weights, promises, priorities, slots, batches,
    uring, nowait, writes, sizes, favoured, mixed, bursts, merges, discards, trimmed, overwrites,
    fsyncs, commits, writeback, mapped, pressure, metadata,
)  # fmt: skip


def main() -> None:
    """Attack until a signal comes."""
    attack = {one.__name__: one for one in ATTACKS}[sys.argv[1]]
    delegate()
    attack()
    while True:
        time.sleep(1000)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
