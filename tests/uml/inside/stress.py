# SPDX-License-Identifier: LGPL-2.1-or-later
"""Everything that may happen to an elevator at any moment, under load, in an order drawn by a seed.

Disks, one of them below device-mapper, are read and written by fio, directly and through the page
cache, with all I/O priorities, in cgroups that come and go. Meanwhile elevators are switched,
weights, classes, reserves, latency targets, knobs, nr_requests, block sizes and numbers of hardware
queues change, dm is suspended and resumed, bios fail on their way to a disk, and disks give
requests back, fail or lose some, and are pulled and put back. There is no memory for an elevator
that starts, for a new cgroup, or for dispatch and completion, which cannot wait for it.
The kernel checks itself: failures are in its log. In the end everything is removed, and the objects
that are left are counted.

plan.json: `seed`, `seconds` (virtual, if time is), and where there are CPUs for it, which a machine
in virtual time has not:

    disks    numbers by disk, other than those below
    hands    processes that change settings and read statistics beside the first one
    changes  least number of changes, however slow the machine is
    files    files of the kernel that are read in the end
    leaks    false: the kernel has no kmemleak

result.json: how often each change was done, and refused; how many allocations failed in each change
of STARVED; the counts of each disk; the objects that are left of it; the files.
"""

import contextlib
import fcntl
import math
import os
import random
import signal
import struct
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from machine import BLOCK, CGROUPS, CONFIGFS, CONTROLLERS, MNT, leave, plan, started, truth

# Slow enough that minutes of virtual time are few requests.
DISKS = {
    "d0": {"kind": "hdd", "size_mb": 256, "cache_kb": 1024, "fua": 0},
    "d1": {"kind": "ssd", "size_mb": 256, "read_us": 8000, "write_us": 20000, "bus_kbps": 5400,
           "hw_queues": 2},
    "d2": {"kind": "ssd", "size_mb": 256, "read_us": 8000, "write_us": 20000, "bus_kbps": 5400,
           "cache_kb": 1024},
}  # fmt: skip
# On the last one stands device-mapper, so it is not pulled.
STACKED = "d2"
# One of null_blk, whose hardware queues can change while it is used. Where there is but one CPU, it
# is the number of those for polled requests that does.
QUEUED = "d3"
NULLB = Path("/sys/kernel/config/nullb")
NULLB_DISK = {"memory_backed": 1, "discard": 1, "size": 64, "irqmode": 2, "hw_queue_depth": 16,
              "completion_nsec": 20000000, "submit_queues": 1, "poll_queues": 1}  # fmt: skip
ALL = (*DISKS, QUEUED)
NODES = {"d0": "/dev/d0", "d1": "/dev/d1", STACKED: "/dev/dm-0", QUEUED: f"/dev/{QUEUED}"}
DM = "stressed"
WEIGHTS = ("io.sutro.weight", "io.weight")
SCHEDULERS = ("sutro", "sutro", "sutro", "none", "bfq", "mq-deadline", "kyber")
# One request in this many is returned to the elevator; 0: none.
GIVE_BACK = (0, 0, 3, 7, 50)
# The same for those that fail, at once or after a timeout.
FAIL = (0, 0, 0, 20, 100)
LOSE = (0, 0, 0, 50, 300)
IO_TIMEOUT_MS = 300
BLOCK_SIZES = (512, 1024, 2048, 4096)
BLKBSZSET = 0x40081271
MAX_GROUPS = 8
# Of a machine whose time is virtual.
CLOCK = MNT / "fio-clock.so"
KMEMLEAK = Path("/sys/kernel/debug/kmemleak")
# Faults of the kernel, in percent. Allocations of objects fail during a change of STARVED, those
# of pages for tasks that state so in MAKE_IT_FAIL; bios fail on disks with make-it-fail, and
# completions of requests are lost on disks with io-timeout-fail.
FAULTS = {
    "failslab": {"probability": 0},
    "fail_page_alloc": {"task-filter": "Y", "ignore-gfp-wait": "N", "min-order": 0,
                        "probability": 10},
    "fail_make_request": {"probability": 2},
    "fail_io_timeout": {"probability": 2},
}  # fmt: skip
# Settings of failslab during a change, and percentages of which one is drawn. With cache-filter,
# only allocations from CACHE fail; with task-filter, only those of this task; with ignore-gfp-wait,
# only those that must not sleep.
STARVED = {
    "starve": ({"task-filter": "Y", "cache-filter": "Y", "ignore-gfp-wait": "N"}, (30,)),
    "starve_all": ({"task-filter": "Y", "cache-filter": "N", "ignore-gfp-wait": "N"}, (3, 10)),
    "starve_mkdir": ({"task-filter": "Y", "cache-filter": "N", "ignore-gfp-wait": "N"}, (1, 3, 10)),
    "starve_dispatch": ({"task-filter": "N", "cache-filter": "N", "ignore-gfp-wait": "Y"},
                        (5, 20, 60)),
}  # fmt: skip
# Failures that are left to failslab before a change: so many that they do not run out.
TIMES = 1000000
DEBUG = Path("/sys/kernel/debug")
FAILSLAB = DEBUG / "failslab"
CACHE = Path("/sys/kernel/slab/sutro_blkg/failslab")
MAKE_IT_FAIL = Path("/proc/self/make-it-fail")
# Five minutes, in which any request is done that is going to be: a disk that loses every 50th does
# a hundred a second, and who is killed in an fsync may have 16,000 pages to wait for.
WAIT_STEPS = 30000
WAIT_STEP_S = 0.01
# How long others go on as they are when one was killed.
KILL_STEPS = 100
# A load that never waits would stop the clock: jobs without disk time pause.
LOADS = (
    "--rw=randread --bs=4k --iodepth=16 --direct=1",
    "--rw=randrw --bs=16k --iodepth=8 --direct=1",
    "--rw=write --bs=64k --iodepth=4 --direct=1",
    "--rw=read --bs=128k --ioengine=psync --direct=0 --thinktime=2000",
    "--rw=randwrite --bs=4k --ioengine=psync --direct=0 --fsync=32 --thinktime=500",
    "--rw=randwrite --bs=4k --ioengine=psync --direct=1 --sync=dsync --thinktime=500",
    "--rw=randtrim --bs=64k --iodepth=4 --direct=1 --thinktime=2000",
)


class Stress:
    """The state of the disks and cgroups, and all that may be done to it."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.done: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        # Allocations, by change.
        self.failed: Counter[str] = Counter()
        self.groups: dict[str, subprocess.Popen] = {}
        # Those that wait for requests, which may be long: of weight 1, in a class below another.
        self.killed: dict[str, subprocess.Popen] = {}
        self.on: dict[str, str] = {}
        self.made = 0
        self.queues: set[int] = set()

    def write(self, file: Path, value: object) -> None:
        """Write a file, and count a refusal: the disk may be gone, or use another elevator."""
        try:
            file.write_text(f"{value}\n")
        except OSError as error:
            self.refused[f"{file.name}: {error.strerror}"] += 1

    def disk(self) -> str:
        return self.random.choice(ALL)

    def model(self) -> Path:
        return CONFIGFS / self.random.choice(sorted(DISKS))

    def queue(self) -> Path:
        return BLOCK / self.disk() / "queue"

    def group(self) -> Path:
        return CGROUPS / self.random.choice(sorted(self.groups) or ["."])

    def devno(self) -> str:
        with contextlib.suppress(OSError):
            return (BLOCK / self.disk() / "dev").read_text().strip()
        return "259:0"

    # ---- what happens ----

    def make_group(self) -> None:
        """A cgroup with a load; every third has a parent of its own."""
        if len(self.groups) + len(self.killed) >= MAX_GROUPS:
            return
        self.made += 1
        name = f"g{self.made}"
        if self.made % 3 == 0:
            (CGROUPS / f"p{self.made}").mkdir()
            (CGROUPS / f"p{self.made}" / "cgroup.subtree_control").write_text(f"{CONTROLLERS}\n")
            name = f"p{self.made}/{name}"
        folder = CGROUPS / name
        folder.mkdir()
        load, disk = self.random.choice(LOADS), self.disk()
        kind = self.random.randrange(4)
        if kind:
            # Realtime, best effort or idle; the last has no levels.
            load += f" --prioclass={kind}"
            load += f" --prio={self.random.randrange(8)}" if kind < 3 else ""
        command = (
            f"fio --name=x --filename={NODES[disk]} --ioengine=libaio --time_based "
            f"--runtime=100000 --clocksource=clock_gettime --randseed={self.made} "
            f"--output=/dev/null --allow_file_create=0 --size=64m {load}"
        )
        if disk in (STACKED, QUEUED):
            # Their requests fail. On the others, which are pulled, it would try again for ever,
            # without any time.
            command += " --continue_on_error=all"
        if CLOCK.exists():
            command = f"env LD_PRELOAD={CLOCK} {command}"
        self.on[name] = disk
        self.groups[name] = started(folder, f"exec {command}")

    def kill_group(self) -> None:
        """End a cgroup in the middle of its requests, and remove it at once if that is possible."""
        if not self.groups:
            return
        name = self.random.choice(sorted(self.groups))
        self.kill_load(name)
        self.killed[name] = self.groups.pop(name)
        self.remove_killed(KILL_STEPS)

    def remove_killed(self, steps: int) -> None:
        """Remove the killed cgroups; their processes are gone after at most this many steps."""
        for _ in range(steps):
            for name in [name for name, load in self.killed.items() if load.poll() is not None]:
                folder = CGROUPS / name
                try:
                    folder.rmdir()
                except OSError:
                    continue
                if folder.parent != CGROUPS:
                    folder.parent.rmdir()
                del self.killed[name]
            if not self.killed:
                break
            time.sleep(WAIT_STEP_S)

    def end(self) -> None:
        """Kill and remove all."""
        for name in sorted(self.groups):
            self.kill_load(name)
        self.killed |= self.groups
        self.groups = {}
        self.remove_killed(WAIT_STEPS)
        if self.killed:
            raise SystemExit(f"{', '.join(self.killed)}: killed, but there is something left")

    def kill_load(self, name: str) -> None:
        """End the processes of a cgroup, without waiting for its removal."""
        (CGROUPS / name / "cgroup.kill").write_text("1\n")

    def switch(self) -> None:
        self.write(self.queue() / "scheduler", self.random.choice(SCHEDULERS))

    @contextlib.contextmanager
    def starved(self, change: str) -> Iterator[None]:
        """Allocations fail as STARVED states for a change; the failed ones are counted."""
        settings, percent = STARVED[change]
        for key, value in (settings | {"times": TIMES}).items():
            (FAILSLAB / key).write_text(f"{value}\n")
        # To open a file takes memory.
        of_task = os.open(MAKE_IT_FAIL, os.O_WRONLY)
        times = os.open(FAILSLAB / "times", os.O_RDONLY)
        probability = os.open(FAILSLAB / "probability", os.O_WRONLY)
        try:
            os.write(probability, b"%d\n" % self.random.choice(percent))
            if settings["task-filter"] == "Y":
                os.write(of_task, b"1\n")
            yield
        finally:
            os.write(of_task, b"0\n")
            os.write(probability, b"0\n")
            self.failed[change] += TIMES - int(os.read(times, 20))
            for file in (of_task, times, probability):
                os.close(file)

    def starve(self) -> None:
        """Switch to sutro while there may be no memory for one of the cgroups."""
        scheduler = self.queue() / "scheduler"
        self.write(scheduler, "none")
        with self.starved("starve"):
            self.write(scheduler, "sutro")

    def starve_all(self) -> None:
        """Switch to sutro while there may be no memory for anything."""
        scheduler = self.queue() / "scheduler"
        self.write(scheduler, "none")
        with self.starved("starve_all"):
            self.write(scheduler, "sutro")

    def starve_mkdir(self) -> None:
        """Make a cgroup and one below it, then delegate, while there may be no memory for them."""
        self.made += 1
        folders = CGROUPS / f"s{self.made}", CGROUPS / f"s{self.made}/s"
        with self.starved("starve_mkdir"):
            try:
                for folder in folders:
                    os.mkdir(folder)
                    self.write(folder / "cgroup.subtree_control", CONTROLLERS)
            except OSError as error:
                self.refused[f"mkdir: {error.strerror}"] += 1
        for folder in reversed(folders):
            with contextlib.suppress(FileNotFoundError):
                folder.rmdir()

    def starve_dispatch(self) -> None:
        """For a while there may be no memory for dispatch and completion, which must not sleep."""
        with self.starved("starve_dispatch"):
            time.sleep(self.random.choice((0.01, 0.1, 0.3)))

    def weight(self) -> None:
        value = str(self.random.choice((1, 10, 100, 333, 10000, 0, 10001, "default")))
        where = self.random.choice(("", f"{self.devno()} "))
        self.write(self.group() / self.random.choice(WEIGHTS), where + value)

    def set_class(self) -> None:
        where = self.random.choice(("", f"{self.devno()} "))
        value = self.random.choice(("rt", "be", "idle", "default", "best"))
        self.write(self.group() / "io.sutro.class", where + value)

    def reserve(self) -> None:
        """Reserved time for a cgroup that may be busy, or none any more."""
        value = str(self.random.choice((0, 0, 1, 250, 600, 1000, 1001, "default")))
        where = self.random.choice(("", f"{self.devno()} "))
        self.write(self.group() / "io.sutro.reserve", where + value)

    def latency(self) -> None:
        """A latency target: one that is met, one that no disk meets, or none."""
        value = str(self.random.choice((0, "max", 1, 2000, 20000, 10000000, 10000001, "default")))
        where = self.random.choice(("", f"{self.devno()} "))
        self.write(self.group() / "io.sutro.latency", where + value)

    def knob(self) -> None:
        folder = self.queue() / "iosched"
        with contextlib.suppress(OSError):
            # While another process switches the scheduler, the folder may be empty.
            if not (names := sorted(path.name for path in folder.iterdir())):
                return
            name = self.random.choice(names)
            words = (folder / name).read_text().replace("[", "").replace("]", "").split()
            if words and not words[0].isdigit():
                self.write(folder / name, self.random.choice(words))
            else:
                self.write(folder / name, self.random.choice((0, 1, 2, 8, 500, 20000)))

    def slots(self) -> None:
        self.write(self.queue() / "nr_requests", self.random.choice((4, 32, 64, 256, 1000)))

    def hw_queues(self) -> None:
        """Another number of hardware queues: the elevator goes and comes, all under load."""
        kinds = {"poll_queues": (0, 1)}
        if os.cpu_count() > 1:
            kinds["submit_queues"] = (1, 2)
        kind = self.random.choice(sorted(kinds))
        file, queues = NULLB / QUEUED / kind, BLOCK / QUEUED / "mq"
        self.queues.add(len(list(queues.iterdir())))
        # The other one of the two.
        self.write(file, sum(kinds[kind]) - int(file.read_text()))
        self.queues.add(len(list(queues.iterdir())))

    def read_stat(self) -> None:
        """Statistics of one and all, and whatever debugfs shows of the queue."""
        (CGROUPS / "io.sutro.active").read_text()
        with contextlib.suppress(OSError):
            (self.group() / "io.sutro.stat").read_text()
            for file in sorted(Path("/sys/kernel/debug/block", self.disk()).rglob("*")):
                with contextlib.suppress(OSError):
                    if file.is_file() and os.access(file, os.R_OK):
                        file.read_text(errors="replace")

    def give_back(self) -> None:
        self.write(self.model() / "give_back", self.random.choice(GIVE_BACK))

    def fail(self) -> None:
        self.write(CONFIGFS / STACKED / "fail", self.random.choice(FAIL))

    def lose(self) -> None:
        self.write(self.model() / "lose", self.random.choice(LOSE))

    def fail_bios(self) -> None:
        """Bios fail between dm and the disk, or no longer."""
        self.write(BLOCK / STACKED / "make-it-fail", self.random.choice((0, 0, 1)))

    def time_out(self) -> None:
        """Completions are lost, so that requests time out, or no longer."""
        self.write(BLOCK / QUEUED / "io-timeout-fail", self.random.choice((0, 0, 1)))

    def block_size(self) -> None:
        """Of a device that is being read; the page cache is thrown away."""
        size, node = self.random.choice(BLOCK_SIZES), NODES[self.disk()]
        try:
            file = os.open(node, os.O_RDONLY)
        except OSError as error:
            self.refused[f"{node}: {error.strerror}"] += 1
            return
        try:
            fcntl.ioctl(file, BLKBSZSET, struct.pack("L", size))
        except OSError as error:
            self.refused[f"block size: {error.strerror}"] += 1
        finally:
            os.close(file)

    def suspend(self) -> None:
        """Requests wait for a while, in dm or before it; not if dirty pages can't be written."""
        flags = self.random.choice(([], ["--nolockfs", "--noflush"]))
        try:
            dmsetup("suspend", *flags, DM)
        except subprocess.CalledProcessError:
            self.refused["suspend"] += 1
            return
        time.sleep(self.random.choice((0.0, 0.01, 0.2)))
        dmsetup("resume", DM)

    def pull(self) -> None:
        """Take a disk away under load, and put it back. fio would read nothing from it for ever."""
        disk = self.random.choice([name for name in sorted(DISKS) if name != STACKED])
        self.write(CONFIGFS / disk / "online", 0)
        for name in [name for name in self.groups if self.on[name] == disk]:
            self.kill_load(name)
        time.sleep(self.random.choice((0.0, 0.05)))
        self.write(CONFIGFS / disk / "online", 1)
        set_up(disk)

    def actions(self) -> dict[Callable[[], None], int]:
        """The changes that may happen, and how often: most of them often, pulling disks seldom."""
        return {
            self.make_group: 6, self.kill_group: 4, self.switch: 3, self.weight: 6,
            self.set_class: 3, self.reserve: 4, self.latency: 4, self.knob: 4, self.slots: 2,
            self.read_stat: 2, self.pull: 1, self.give_back: 2, self.fail: 2, self.lose: 2,
            self.block_size: 2, self.suspend: 2, self.hw_queues: 2, self.starve: 2,
            self.starve_all: 2, self.starve_mkdir: 2, self.starve_dispatch: 4, self.fail_bios: 2,
            self.time_out: 2,
        }  # fmt: skip

    def run(self, seconds: float, changes: int = 0) -> None:
        """Do random changes for a time, at least `changes` of them, and each kind once at least."""
        actions = self.actions()
        begin_s = time.monotonic()
        while time.monotonic() < begin_s + seconds or self.done.total() < changes:
            (action,) = self.random.choices(list(actions), list(actions.values()))
            self.do(action)
        for action in actions:
            if not self.done[action.__name__]:
                self.do(action)

    def do(self, action: Callable[[], None]) -> None:
        """One change. If the machine hangs, the last line of the output has the last one."""
        print(f"{time.monotonic():.3f} {action.__name__}")
        action()
        self.done[action.__name__] += 1
        time.sleep(self.random.choice((0.0, 0.001, 0.02, 0.1, 0.3)))


class Hand(Stress):
    """One of several processes whose changes need no record of earlier ones."""

    def group(self) -> Path:
        found = sorted(file.parent for file in CGROUPS.rglob("io.sutro.weight"))
        return self.random.choice(found or [CGROUPS])

    def actions(self) -> dict[Callable[[], None], int]:
        return {
            self.weight: 3, self.set_class: 2, self.reserve: 2, self.latency: 2, self.knob: 2,
            self.read_stat: 4, self.switch: 1,
        }  # fmt: skip


@contextlib.contextmanager
def hands(seed: int, count: int) -> Iterator[None]:
    """`count` further processes change settings while the body runs."""
    running = []
    for number in range(count):
        if not (child := os.fork()):
            Hand(1000 * seed + number).run(math.inf)
        running.append(child)
    yield
    for child in running:
        os.kill(child, signal.SIGTERM)
        if os.waitpid(child, 0)[1] != signal.SIGTERM:
            raise SystemExit("a hand broke down")


def dmsetup(*words: str, stdin: str = "") -> None:
    """There is no udev to wait for."""
    subprocess.run(
        ["dmsetup", "--noudevsync", "--noudevrules", *words], input=stdin, text=True, check=True
    )


def set_up(disk: str) -> None:
    """The settings of a new disk."""
    queue = BLOCK / disk / "queue"
    (queue / "scheduler").write_text("sutro\n")
    (queue / "io_timeout").write_text(f"{IO_TIMEOUT_MS}\n")


def make(folder: Path, numbers: dict[str, object], switch: str) -> None:
    """A disk that is configured in configfs, switched on."""
    folder.mkdir()
    for key, value in numbers.items():
        (folder / key).write_text(f"{value}\n")
    (folder / switch).write_text("1\n")
    set_up(folder.name)


def counted(disk: str) -> str:
    """The kernel's counts of a disk that keeps no account, in the form of the model disk."""
    words = (BLOCK / disk / "stat").read_text().split()
    return f"total rios={words[0]} wios={words[4]} \n"


def in_flight() -> int:
    """Requests that a disk has not answered."""
    counts = (BLOCK / name / "inflight" for name in ALL)
    return sum(int(word) for file in counts for word in file.read_text().split())


def dying() -> int:
    """Cgroups that were removed and are still held by something."""
    words = (CGROUPS / "cgroup.stat").read_text().split()
    return int(words[words.index("nr_dying_descendants") + 1])


def settled(count: Callable[[], int], most: int) -> int:
    """Wait until a count falls to at most a number; returns the count."""
    for _ in range(WAIT_STEPS):
        if count() <= most:
            break
        # A page that is cached belongs to the cgroup that read it first.
        Path("/proc/sys/vm/drop_caches").write_text("3\n")
        time.sleep(WAIT_STEP_S)
    return count()


def leaks() -> list[str]:
    """Objects without a pointer to them, since the last call, as kmemleak reports them."""
    # kmemleak skips younger objects, and an object that is found once may have been moving.
    time.sleep(6)
    for _ in range(2):
        KMEMLEAK.write_text("scan\n")
    found = KMEMLEAK.read_text(errors="replace").split("unreferenced object ")[1:]
    KMEMLEAK.write_text("clear\n")
    return found


def main() -> None:
    """Set up, stress, take everything down again, look what is left."""
    todo = plan()
    (CGROUPS / "cgroup.subtree_control").write_text(f"{CONTROLLERS}\n")
    numbers = todo.get("disks", {})
    for name in DISKS:
        make(CONFIGFS / name, numbers.get(name, DISKS[name]), "online")
    make(NULLB / QUEUED, NULLB_DISK | numbers.get(QUEUED, {}), "power")
    sectors = DISKS[STACKED]["size_mb"] * 2048
    dmsetup("create", DM, stdin=f"0 {sectors} linear /dev/{STACKED} 0\n")
    for kind, settings in FAULTS.items():
        for key, value in ({"verbose": 0, "times": -1} | settings).items():
            (DEBUG / kind / key).write_text(f"{value}\n")
    # Refused where the cache is one with others of its size.
    with contextlib.suppress(OSError):
        CACHE.write_text("1\n")
    if todo.get("leaks", True):
        # Leaks of the boot are not counted.
        leaks()
    before = dying()
    stress = Stress(todo["seed"])
    with hands(todo["seed"], todo.get("hands", 0)):
        stress.run(todo["seconds"], todo.get("changes", 0))
    served = {name: truth(name) for name in DISKS} | {QUEUED: counted(QUEUED)}
    stress.end()
    left = {"in_flight": settled(in_flight, 0)}
    dmsetup("remove", DM)
    for name in DISKS:
        (CONFIGFS / name / "online").write_text("0\n")
        (CONFIGFS / name).rmdir()
    (NULLB / QUEUED).rmdir()
    left["dying"] = settled(dying, before) - before
    result = {
        "done": stress.done, "refused": stress.refused, "failed": stress.failed,
        "truth": served, "left": left,
        "queues": sorted(stress.queues),
        "files": {name: Path(name).read_text() for name in todo.get("files", ())},
    }  # fmt: skip
    if todo.get("leaks", True):
        found = leaks()
        left["leaks"] = len(found)
        result["leaks"] = found[:20]
    leave(result)


if __name__ == "__main__":
    main()
