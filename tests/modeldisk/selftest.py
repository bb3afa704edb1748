#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Is the oracle right? Checks of modeldisk against its own parameters.

Run as root where modeldisk.ko is loaded; needs fio, lvm2 and blkdiscard. What a disk should do is
computed here from its numbers, independently of the module: closed formulas, a small simulation
for shortest-positioning-first, a copy of the hash that maps flash pages to channels.

Times in a model do not depend on the guest, but the guest must keep a disk busy. So the fast
drives are slowed by a factor (all their times alike), and rates are taken while the guest runs
smoothly (class Rate).

Prints one line per check; the exit status is 0 only if all passed.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import heapq
import json
import math
import mmap
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.etree import ElementTree

CONFIG = Path("/sys/kernel/config/modeldisk")
DEBUG = Path("/sys/kernel/debug/modeldisk")
CGROUPS = Path("/sys/fs/cgroup")
TOLERANCE = 0.03
PAGE = 16384  # of flash
SECTOR = 512
BURST = 256  # writes that fit into the cache of the cache checks


class Failed(Exception):
    """A check found something else than it should."""


def expect(what: str, got: float, want: float, tolerance: float = TOLERANCE) -> str:
    """Fails unless got is within tolerance of want; returns a sentence with both."""
    error = got / want - 1
    text = f"{what} {got:.5g}, by the numbers {want:.5g} ({100 * error:+.2f} %)"
    if not abs(error) <= tolerance:
        raise Failed(text)
    return text


def demand(condition: bool, text: str) -> None:
    """Fails with text unless the condition holds."""
    if not condition:
        raise Failed(text)


# ---- disks ----


class Disk:
    """A model disk: configfs, debugfs and the block device of one name."""

    def __init__(self, name: str, kind: str, **numbers: object) -> None:
        self.config = CONFIG / name
        self.debug = DEBUG / name
        self.node = f"/dev/{name}"
        self.queue = Path(f"/sys/block/{name}/queue")
        self.config.mkdir()
        self.set(kind=kind)
        self.set(**numbers)

    def set(self, **numbers: object) -> None:
        """Writes attributes in the order given."""
        for name, value in numbers.items():
            (self.config / name).write_text(str(value))

    def get(self, name: str) -> str:
        """Reads an attribute."""
        return (self.config / name).read_text().strip()

    def number(self, name: str) -> int:
        """Reads a numeric attribute."""
        return int(self.get(name))

    def online(self, scheduler: str = "none") -> None:
        """Creates the block device."""
        self.set(online=1)
        deadline = time.monotonic() + 10
        while not os.path.exists(self.node) and time.monotonic() < deadline:
            time.sleep(0.01)
        (self.queue / "scheduler").write_text(scheduler)

    def slow(self, factor: int) -> None:
        """Makes a flash drive slower in all respects."""
        for name in ("read_us", "write_us"):
            self.set(**{name: self.number(name) * factor})
        self.set(bus_kbps=self.number("bus_kbps") // factor)

    def reset(self) -> None:
        """Zeroes the truth."""
        (self.debug / "reset").write_text("1")

    def truth(self) -> dict[str, dict[str, int]]:
        """Counts by cgroup path, and "total"."""
        return {
            line.split(" time_ns=")[0]: pairs(line)
            for line in (self.debug / "truth").read_text().splitlines()
        }

    def total(self) -> dict[str, int]:
        """Counts of the whole disk."""
        return self.truth()["total"]

    def model(self) -> dict[str, int]:
        """What the model says of its answers."""
        return pairs((self.debug / "model").read_text())

    def remove(self) -> None:
        """Removes it, online or not."""
        self.config.rmdir()


def pairs(line: str) -> dict[str, int]:
    """a=1 b=2 as a dictionary."""
    return {key: int(value) for key, _, value in (w.partition("=") for w in line.split()) if value}


@contextlib.contextmanager
def disk(kind: str, **numbers: object) -> Iterator[Disk]:
    """A disk for one check, online."""
    it = Disk("mdself", kind, **numbers)
    try:
        it.online()
        yield it
    finally:
        it.remove()


@contextlib.contextmanager
def quiet_udev() -> Iterator[None]:
    """Keeps udev from reading the disks (blkid) while requests are counted."""
    running = os.path.exists("/run/udev/control")
    if running:
        subprocess.run(["udevadm", "settle"], check=True)
        subprocess.run(["udevadm", "control", "--stop-exec-queue"], check=True)
    try:
        yield
    finally:
        if running:
            subprocess.run(["udevadm", "control", "--start-exec-queue"], check=True)


# ---- load ----


def fio_command(node: str, **options: object) -> list[str]:
    """A fio command line: direct asynchronous I/O on node."""
    defaults: dict[str, object] = {
        "name": "selftest",
        "filename": node,
        "direct": 1,
        "ioengine": "libaio",
        "output-format": "json",
        "norandommap": 1,
        "allow_mounted_write": 1,
    }
    return ["fio"] + [f"--{key}={value}" for key, value in (defaults | options).items()]


@contextlib.contextmanager
def load(node: str, seconds: float = 60, cgroup: Path | None = None, **options: object):
    """fio in the background, in a cgroup if given; stopped at the end."""
    command = fio_command(node, time_based=1, runtime=seconds, **options)
    if cgroup is not None:
        script = 'echo $$ > "$0/cgroup.procs" && exec "$@"'
        command = ["bash", "-c", script, str(cgroup), *command]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.terminate()
        process.communicate()


def wait_busy(it: Disk) -> None:
    """Waits until the disk answers requests, and a little more."""
    deadline = time.monotonic() + 20
    before = it.model()["requests"]
    while it.model()["requests"] - before < 20:
        demand(time.monotonic() < deadline, "no I/O after 20 s")
        time.sleep(0.02)
    time.sleep(0.15)


class Rate:
    """What a disk did under load while the guest kept it busy.

    A guest that is stopped by a busy host takes answers late and stops asking. So the time is cut
    into windows, and those are left out in which answers were later than slack_ms (less than the
    queue holds of work), the disk had no request (with depth 1: for longer than slack_ms), or
    a look at the clock took long. Whether the disk looks fast or slow plays no part.
    """

    WINDOW_S = 0.2
    LOOK_NS = 1_000_000

    def __init__(self, it: Disk, seconds: float, slack_ms: float, depth: int = 32) -> None:
        self.late_ns = slack_ms * 1e6
        self.idle_ns = self.late_ns if depth == 1 else 0
        self.elapsed = self.kib = self.ios = self.time = 0.0
        deadline = time.monotonic() + 20 * seconds
        while self.elapsed < seconds:
            demand(
                time.monotonic() < deadline,
                f"only {self.elapsed:.1f} s of the last {20 * seconds:.0f} s were smooth: "
                "the host is too busy to measure, run this alone",
            )
            self._window(it)
        self.kbps = self.kib / self.elapsed
        self.us = 1e6 * self.elapsed / self.ios
        self.busy = self.time / self.elapsed
        self.charge_us = 1e6 * self.time / self.ios

    def _window(self, it: Disk) -> None:
        before = time.monotonic_ns()
        it.reset()
        started = time.monotonic_ns()
        time.sleep(self.WINDOW_S)
        looked = time.monotonic_ns()
        total = it.total()
        ended = time.monotonic_ns()
        model = it.model()
        if model["late_max_ns"] > self.late_ns or model["idle_max_ns"] > self.idle_ns:
            return
        if max(started - before, ended - looked) > self.LOOK_NS:
            return
        self.elapsed += (looked + ended - before - started) / 2e9
        self.kib += (total["rbytes"] + total["wbytes"]) / 1024
        self.ios += total["rios"] + total["wios"]
        self.time += total["time_ns"] / 1e9


class Direct:
    """One request at a time, from Python, with O_DIRECT."""

    def __init__(self, node: str, nbytes: int, flags: int = os.O_RDWR) -> None:
        self.fd = os.open(node, flags | os.O_DIRECT)
        self.buffer = mmap.mmap(-1, nbytes)

    def read(self, offset: int) -> None:
        os.preadv(self.fd, [self.buffer], offset)

    def write(self, offset: int) -> None:
        os.pwritev(self.fd, [self.buffer], offset)

    def __enter__(self) -> Direct:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.fd)


# ---- what an hdd should do ----


class Hdd:
    """The mechanism by its numbers, in microseconds and bytes."""

    def __init__(self, it: Disk) -> None:
        self.revolution = 60e6 / it.number("rpm")
        self.seek_min = it.number("seek_min_us")
        self.seek_max = it.number("seek_max_us")
        self.rate = it.number("bandwidth_kbps") * 1024 / 1e6  # bytes per us
        self.overhead = it.number("overhead_us")
        self.size = it.number("size_mb") << 20
        self.track = self.rate * self.revolution

    def seek(self, start: int, end: int) -> float:
        tracks = abs(int(start / self.track) - int(end / self.track))
        share = tracks / (int(self.size / self.track) + 1)
        return self.seek_min + (self.seek_max - self.seek_min) * math.sqrt(share) if tracks else 0.0

    def random_place(self, rng: random.Random, nbytes: int) -> int:
        return rng.randrange(self.size // nbytes) * nbytes

    def fifo_service(self, nbytes: int, n: int = 50000) -> float:
        """Mean service time of random requests in order of arrival, the queue never empty."""
        rng = random.Random(1)
        places = [self.random_place(rng, nbytes) for _ in range(n)]
        steps = zip(places, places[1:], strict=False)
        seek = sum(self.seek(a + nbytes, b) for a, b in steps) / (n - 1)
        return seek + self.revolution / 2 + nbytes / self.rate

    def sptf_service(self, nbytes: int, depth: int, n: int = 5000) -> float:
        """The same with the nearest of depth requests first."""
        rng = random.Random(2)
        now = position = 0.0
        head = 0
        waiting = [self.random_place(rng, nbytes) for _ in range(depth)]
        start = 0.0
        for done in range(n):
            if done == n // 10:
                start = now
            best = None
            for index, place in enumerate(waiting):
                seek = self.seek(head, place)
                angle = place / self.rate
                wait = (angle - position - (now + seek)) % self.revolution
                if best is None or seek + wait < best[0]:
                    best = (seek + wait, index)
            assert best is not None
            head = waiting[best[1]] + nbytes
            now += best[0] + nbytes / self.rate
            position = head / self.rate - now
            waiting[best[1]] = self.random_place(rng, nbytes)
        return (now - start) / (n - n // 10)


def hdd_sequential(rw: str, depth: int, slack_ms: float, **numbers: int) -> str:
    with disk("hdd", **numbers) as it, load(it.node, rw=rw, bs="512k", iodepth=depth):
        wait_busy(it)
        return expect("KiB/s", Rate(it, 1.5, slack_ms, depth).kbps, it.number("bandwidth_kbps"))


def hdd_sequential_read_depth_1() -> str:
    """hdd: 512 KiB sequential reads at depth 1 run at the media rate (a read-ahead of 109 ms)"""
    return hdd_sequential("read", 1, 40, readahead_kb=16384)


def hdd_sequential_read_depth_32() -> str:
    """hdd: 512 KiB sequential reads at depth 32 run at the media rate"""
    return hdd_sequential("read", 32, 50)


def hdd_sequential_write() -> str:
    """hdd: 512 KiB sequential writes at depth 32 run at the media rate"""
    return hdd_sequential("write", 32, 50)


def hdd_random_read_depth_1() -> str:
    """hdd: a random 4 KiB read at depth 1 takes overhead + seek + half a turn + transfer"""
    count = 600  # mean rotation +- 3 sigma = 3 %
    with disk("hdd") as it, Direct(it.node, 4096) as io:
        hdd = Hdd(it)
        rng = random.Random(3)
        places = [hdd.random_place(rng, 4096) for _ in range(count + 1)]
        io.read(places[0])
        it.reset()
        for place in places[1:]:
            io.read(place)
        total, model = it.total(), it.model()
    seek = sum(hdd.seek(a + 4096, b) for a, b in zip(places, places[1:], strict=False)) / count
    want = hdd.overhead + seek + hdd.revolution / 2 + 4096 / hdd.rate
    demand(total["rios"] == count, f"{total['rios']} reads counted, {count} done")
    # a few find their data in the read-ahead: answered sooner than the head needed for them
    expect("ns of answers", model["latency_ns"], total["time_ns"], 0.01)
    return expect("us per read", total["time_ns"] / count / 1000, want)


# Four times a 7200 rpm drive: enough requests for a mean within 3 % in seconds.
QUICK_HDD = {
    "rpm": 28800,
    "seek_min_us": 125,
    "seek_max_us": 2625,
    "overhead_us": 8,
    "bandwidth_kbps": 600000,
}


def hdd_random_full_depth(order: str, want_us: Callable[[Hdd], float], slack_ms: float) -> str:
    with disk("hdd", order=order, age_limit_ms=10000, **QUICK_HDD) as it:
        want = want_us(Hdd(it))
        with load(it.node, rw="randread", bs="4k", iodepth=32):
            wait_busy(it)
            rate = Rate(it, 4, slack_ms)
    busy = expect("device time per second", rate.busy, 1, 0.01)
    return expect("us per read", rate.us, want) + "; " + busy


def hdd_random_sptf() -> str:
    """hdd: random 4 KiB reads at depth 32, sptf; the true times add up to the wall clock"""
    return hdd_random_full_depth("sptf", lambda hdd: hdd.sptf_service(4096, 32), 10)


def hdd_random_fifo() -> str:
    """hdd: random 4 KiB reads at depth 32, fifo; the true times add up to the wall clock"""
    return hdd_random_full_depth("fifo", lambda hdd: hdd.fifo_service(4096), 40)


def hdd_age_limit() -> str:
    """hdd: sptf leaves no read waiting longer than age_limit_ms and a little"""
    limit_ms = 200
    with disk("hdd", age_limit_ms=limit_ms) as it:
        near = load(it.node, rw="read", bs="64k", iodepth=16, size="32m")
        with near, Direct(it.node, 4096) as io:
            wait_busy(it)
            worst = 0.0
            for _ in range(3):
                start = time.monotonic()
                io.read(1000 << 20)
                worst = max(worst, time.monotonic() - start)
    demand(worst < limit_ms / 1000 + 0.2, f"a far read waited {worst:.3f} s")
    demand(worst > 0.05, f"a far read waited only {worst:.3f} s: the order is not sptf")
    return f"a far read beside a sequential stream waited at most {1000 * worst:.0f} ms"


def hdd_change_at_run_time() -> str:
    """hdd: bandwidth_kbps written under load is the rate from then on"""
    with disk("hdd") as it, load(it.node, rw="read", bs="128k", iodepth=32):
        wait_busy(it)
        it.set(bandwidth_kbps=40000)
        time.sleep(0.3)
        return expect("KiB/s", Rate(it, 1, 50).kbps, 40000)


# ---- what flash should do ----


def flash_time_us(it: Disk, write: bool, nbytes: int) -> float:
    """F: the reciprocal of the rate of a saturating stream."""
    latency = it.number("write_us" if write else "read_us")
    pages = max(1, nbytes // PAGE)
    bus = nbytes / (it.number("bus_kbps") * 1024 / 1e6)
    return max(pages * latency / it.number("channels"), bus)


def flash_full_depth(kind: str, slower: int, depth: int, slack_ms: float) -> str:
    """Measured rate and charged time against the formula, for the corner cases."""
    texts = []
    with disk(kind) as it:
        it.slow(slower)
        for rw, size in (("randread", 4), ("randwrite", 4), ("randread", 32), ("write", 32)):
            want = flash_time_us(it, "write" in rw, size * 1024)
            # 32 large requests keep every stage busy; more only take longer to come round
            iodepth = depth if size == 4 else 32
            with load(it.node, rw=rw, bs=f"{size}k", iodepth=iodepth):
                wait_busy(it)
                time.sleep(0.6)
                rate = Rate(it, 1.6, slack_ms)
            expect(f"{rw} {size}k charged us", rate.charge_us, want, 0.001)
            texts.append(expect(f"{rw} {size}k us", rate.us, want))
    return "; ".join(texts)


def ssd_full_depth() -> str:
    """ssd (100 times slower): rate and charge at depth 32 are max(pages * L / N, bytes / B)"""
    return flash_full_depth("ssd", 100, 32, 12)


def nvme_full_depth() -> str:
    """nvme (400 times slower): rate and charge at depth 1024 are max(pages * L / N, bytes / B)"""
    return flash_full_depth("nvme", 400, 1024, 50)


def mix(x: int) -> int:
    """splitmix64, as the module's map of pages to channels uses it."""
    mask = (1 << 64) - 1
    x = (x + 0x9E3779B97F4A7C15) & mask
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & mask
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & mask
    return x ^ (x >> 31)


def flash_lone_read_ns(it: Disk, offset: int, nbytes: int) -> int:
    """The answer time of a read on an idle drive, by its channels and the bus."""
    channels, seed = it.number("channels"), it.number("seed")
    latency = it.number("read_us") * 1000
    transfer = PAGE * 1953125 // (it.number("bus_kbps") * 2)
    free = [0] * channels
    ready: list[int] = []
    for page in range(offset // PAGE, (offset + nbytes) // PAGE):
        channel = ((mix(page ^ mix(seed)) & 0xFFFFFFFF) * channels) >> 32
        free[channel] += latency
        heapq.heappush(ready, free[channel])
    bus = 0
    while ready:
        bus = max(bus, heapq.heappop(ready)) + transfer
    return bus


def flash_lone_reads() -> str:
    """ssd: each 128 KiB read at depth 1 takes what its pages' channels and the bus give"""
    nbytes = 131072
    for seed in (1, 77):
        with disk("ssd", seed=seed) as it, Direct(it.node, nbytes) as io:
            rng = random.Random(seed)
            got = want = 0
            for _ in range(100):
                offset = rng.randrange(1000) * nbytes
                it.reset()
                io.read(offset)
                got += it.model()["latency_ns"]
                want += flash_lone_read_ns(it, offset, nbytes)
            demand(got == want, f"seed {seed}: {got} ns for 100 reads, by the numbers {want} ns")
    return f"to the nanosecond, 100 reads, seeds 1 and 77; the last {got / 1e5:.1f} us in the mean"


def flash_noise() -> str:
    """ssd: noise is the same for the same seed, another for another, and even"""

    def answers(seed: int) -> int:
        with disk("ssd", seed=seed, noise_percent=20, hiccup_us=1000) as it:
            with Direct(it.node, 4096) as io:
                it.reset()
                for page in range(300):
                    io.write(page * PAGE)
                return it.model()["latency_ns"]

    first, again, other = answers(5), answers(5), answers(6)
    demand(first == again, f"seed 5 took {first} ns, then {again} ns")
    demand(first != other, f"seeds 5 and 6 both took {first} ns")
    return expect("us per write", first / 3e5, 200 + 7.4, 0.05)


def ssd_change_at_run_time() -> str:
    """ssd: read_us written under load is the latency from then on"""
    with disk("ssd", read_us=4000, bus_kbps=54000) as it:
        with load(it.node, rw="randread", bs="4k", iodepth=1):
            wait_busy(it)
            it.set(read_us=9000)
            time.sleep(0.2)
            it.reset()
            time.sleep(1)
            model = it.model()
        want = 9000 + 4096 / (54000 * 1024 / 1e6)
        return expect("us per read", model["latency_ns"] / model["requests"] / 1000, want, 0.001)


# ---- truth by cgroup ----


@contextlib.contextmanager
def cgroups(*names: str) -> Iterator[list[Path]]:
    """cgroups with the io controller, removed at the end."""
    top = CGROUPS / "mdself.test"
    (CGROUPS / "cgroup.subtree_control").write_text("+io")
    top.mkdir()
    (top / "cgroup.subtree_control").write_text("+io")
    paths = [top / name for name in names]
    try:
        for path in paths:
            path.mkdir()
        yield paths
    finally:
        for path in [*paths, top]:
            with contextlib.suppress(FileNotFoundError):
                path.rmdir()


def owner(path: Path) -> str:
    """The name of a cgroup in the truth."""
    return "/" + str(path.relative_to(CGROUPS))


def run_in(cgroup: Path, command: list[str]) -> subprocess.Popen[str]:
    """Starts a command in a cgroup."""
    script = 'echo $$ > "$0/cgroup.procs" && exec "$@"'
    command = ["bash", "-c", script, str(cgroup), *command]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def truth_by_cgroup() -> str:
    """each cgroup is charged its own requests, bytes and time; the sum is the total"""
    with disk("hdd", order="fifo") as it, cgroups("a", "b") as (a, b):
        it.reset()
        reader = fio_command(it.node, rw="randread", bs="4k", iodepth=8, number_ios=200)
        writer = fio_command(it.node, rw="randwrite", bs="64k", iodepth=8, number_ios=100)
        processes = [run_in(a, reader), run_in(b, writer)]
        outputs = [process.communicate() for process in processes]
        for process, (_, errors) in zip(processes, outputs, strict=True):
            demand(process.returncode == 0, f"fio: {errors}")
        done = [json.loads(output)["jobs"][0] for output, _ in outputs]
        truth = it.truth()
    total, of_a, of_b = truth["total"], truth[owner(a)], truth[owner(b)]
    demand(of_a["rios"] == done[0]["read"]["total_ios"], f"reader {of_a}")
    demand(of_a["rbytes"] == done[0]["read"]["io_bytes"], f"reader {of_a}")
    demand(of_b["wios"] == done[1]["write"]["total_ios"], f"writer {of_b}")
    demand(of_b["wbytes"] == done[1]["write"]["io_bytes"], f"writer {of_b}")
    demand(of_a["wios"] == 0 and of_b["rios"] == 0, f"mixed up: {of_a} {of_b}")
    for key in ("time_ns", "rbytes", "wbytes", "rios", "wios"):
        summed = sum(counts[key] for path, counts in truth.items() if path != "total")
        demand(summed == total[key], f"{key}: owners {summed}, total {total[key]}")
    per_read, per_write = of_a["time_ns"] / of_a["rios"], of_b["time_ns"] / of_b["wios"]
    demand(per_read > 5e6 and per_write > 5e6, f"{per_read} ns a read, {per_write} ns a write")
    return f"reader {of_a['time_ns'] / 1e9:.3f} s, writer {of_b['time_ns'] / 1e9:.3f} s of time"


def truth_outlives_cgroup() -> str:
    """a removed cgroup keeps its line, the next of that path continues it, reset forgets it"""
    command = fio_command("/dev/mdself", rw="randread", bs="4k", number_ios=10)
    with disk("ssd") as it:
        for wanted in (10, 20):
            with cgroups("gone") as (gone,):
                process = run_in(gone, command)
                _, errors = process.communicate()
                demand(process.returncode == 0, f"fio: {errors}")
            got = it.truth().get(owner(gone), {}).get("rios")
            demand(got == wanted, f"{got} reads of the removed cgroup, {wanted} done")
        it.reset()
        demand(owner(gone) not in it.truth(), "still there after reset")
        demand(it.total()["rios"] == 0, "total is not zero after reset")
    return "10, then 20 reads, then nothing"


# ---- the write cache ----


def cached_burst() -> str:
    """hdd with a cache: a burst is answered by the interface, its writer pays for the actuator"""
    with disk("hdd", cache_kb=4 * BURST) as it, cgroups("w") as (w,):
        demand((it.queue / "write_cache").read_text() == "write back\n", "not a write back cache")
        command = fio_command(it.node, rw="randwrite", bs="4k", number_ios=BURST, iodepth=1)
        it.reset()
        process = run_in(w, command)
        _, errors = process.communicate()
        demand(process.returncode == 0, f"fio: {errors}")
        answered = it.model()
        start = time.monotonic()
        with Direct(it.node, 4096) as io:
            os.fsync(io.fd)
        flush = time.monotonic() - start
        clean, charged = it.model(), it.truth()[owner(w)]
    want = it_answer_us = 30 + 4096 / (540000 * 1024 / 1e6)
    text = expect("us per write", answered["latency_ns"] / answered["requests"] / 1000, want, 0.01)
    demand(charged["wios"] == BURST, f"{charged['wios']} writes charged")
    demand(clean["cache_kb"] == 0, f"{clean['cache_kb']} KiB left after a flush")
    per_write = charged["time_ns"] / BURST / 1000
    demand(per_write > 20 * it_answer_us, f"only {per_write:.0f} us of device time per write")
    left = answered["cache_kb"] / 4 * per_write / 1e6
    demand(abs(flush - left) < 0.15 + 0.3 * left, f"flush took {flush:.2f} s for {left:.2f} s")
    return f"{text}; device time {per_write:.0f} us each; flush {flush:.2f} s"


def cached_fua() -> str:
    """hdd with a cache: a FUA write takes the time of the medium"""
    with disk("hdd", cache_kb=1024) as it:
        with Direct(it.node, 4096, os.O_RDWR | os.O_DSYNC) as io:
            it.reset()
            for place in range(30):
                io.write((place * 7919 % 60000) * 4096)
            model = it.model()
        demand((it.queue / "fua").read_text() == "1\n", "the block layer does not know of FUA")
    each = model["latency_ns"] / 30 / 1000
    demand(each > 1000, f"a FUA write took {each:.0f} us")
    return f"{each:.0f} us per FUA write"


def cached_drain(kind: str) -> str:
    with disk(kind, cache_kb=2048, drain_kbps=20000) as it:
        with load(it.node, rw="write", bs="64k", iodepth=32):
            wait_busy(it)
            time.sleep(0.3)
            rate = Rate(it, 1.2, 50)
    if kind == "ssd":
        expect("device time per second", rate.busy, 1)
    return expect(f"{kind} KiB/s", rate.kbps, 20000)


def cached_drain_rate() -> str:
    """with a full cache, writes run at drain_kbps; on the ssd it is their charge too"""
    return cached_drain("hdd") + "; " + cached_drain("ssd")


def cached_ssd_reads_first() -> str:
    """ssd with a cache: a read does not wait behind what is destaged in the background"""
    with disk("ssd", cache_kb=65536, write_us=20000, read_us=1000) as it:
        with Direct(it.node, 1 << 20) as io:
            for place in range(32):
                io.write(place << 20)
        it.reset()
        with Direct(it.node, 4096) as io:
            for place in range(20):
                io.read(place * 8 << 20)
        reads, dirty = it.model()["latency_ns"] / 20 / 1e6, it.model()["cache_kb"]
    demand(dirty > 0, "destaged before the reads were done")
    demand(reads < 22, f"a read took {reads:.1f} ms beside pages of 20 ms")
    return f"a read took {reads:.1f} ms with {dirty} KiB to destage"


def cache_on_and_off() -> str:
    """cache_kb written at run time turns the cache on and off, also for the block layer"""
    with disk("hdd") as it, Direct(it.node, 4096) as io:
        seen = []
        for cache_kb in (0, 1024, 0):
            it.set(cache_kb=cache_kb)
            it.reset()
            for place in range(10):
                io.write((place * 7919 % 60000) * 4096)
            fast = it.model()["latency_ns"] < 10 * 1e6
            announced = (it.queue / "write_cache").read_text().strip()
            seen.append((fast, announced))
    want = [(False, "write through"), (True, "write back"), (False, "write through")]
    demand(seen == want, f"(fast, announced): {seen}")
    return "write through, write back, write through"


# ---- data ----


def integrity() -> str:
    """what is written is read back, on each kind, with and without a cache (fio verify)"""
    for kind, cache_kb in (("hdd", 0), ("ssd", 512), ("nvme", 0)):
        with disk(kind, cache_kb=cache_kb, **(QUICK_HDD if kind == "hdd" else {})) as it:
            command = fio_command(
                it.node,
                rw="randrw",
                bsrange="512-300k",
                iodepth=16,
                size="8m",
                verify="crc32c",
                randseed=11,
                fsync=37,
            )
            command.remove("--norandommap=1")
            run = subprocess.run(command, capture_output=True, text=True)
            demand(run.returncode == 0, f"{kind} cache_kb={cache_kb}: {run.stderr}{run.stdout}")
            job = json.loads(run.stdout)["jobs"][0]
            demand(job["error"] == 0 and job["read"]["total_ios"] > 20, f"{kind}: {job['error']}")
    return "3 disks, 8 MiB of 512 B to 300 KiB"


def discard() -> str:
    """discard and write-zeroes read as zeros, and only where they were"""
    with disk("ssd") as it:
        ones = b"\xff" * (1 << 20)
        with open(it.node, "r+b", buffering=0) as f:
            f.write(ones)
            os.fsync(f.fileno())
        for option, offset, length in (("-f", 8192, 65536), ("-z", 200 * 512, 777 * 512)):
            command = ["blkdiscard", option, "-o", str(offset), "-l", str(length), it.node]
            run = subprocess.run(command, capture_output=True, text=True)
            demand(run.returncode == 0, f"{' '.join(command)}: {run.stderr}")
            ones = ones[:offset] + bytes(length) + ones[offset + length :]
        with open(it.node, "rb", buffering=0) as f:
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            demand(f.read(1 << 20) == ones, "other bytes than expected")
    return "64 KiB discarded, 777 sectors zeroed"


# ---- attributes and life ----

BAD = [
    ("hdd", "kind", "tape", errno.EINVAL),
    ("hdd", "order", "lifo", errno.EINVAL),
    ("hdd", "order", "", errno.EINVAL),
    ("hdd", "rpm", "fast", errno.EINVAL),
    ("hdd", "rpm", "0", errno.ERANGE),
    ("hdd", "rpm", "-1", errno.EINVAL),
    ("hdd", "rpm", "7200 rpm", errno.EINVAL),
    ("hdd", "rpm", "99999999999999999999", errno.ERANGE),
    ("hdd", "seek_min_us", "10501", errno.ERANGE),
    ("hdd", "seek_max_us", "499", errno.ERANGE),
    ("hdd", "bandwidth_kbps", "0", errno.ERANGE),
    ("hdd", "channels", "8", errno.EINVAL),
    ("hdd", "read_us", "8", errno.EINVAL),
    ("hdd", "queue_depth", "0", errno.ERANGE),
    ("hdd", "queue_depth", "4097", errno.ERANGE),
    ("hdd", "hw_queues", "0", errno.ERANGE),
    ("hdd", "size_mb", "0", errno.ERANGE),
    ("hdd", "size_mb", "1048577", errno.ERANGE),
    ("hdd", "seed", "x", errno.EINVAL),
    ("hdd", "online", "maybe", errno.EINVAL),
    ("ssd", "rpm", "7200", errno.EINVAL),
    ("ssd", "order", "fifo", errno.EINVAL),
    ("ssd", "channels", "257", errno.ERANGE),
    ("ssd", "noise_percent", "101", errno.ERANGE),
    ("nvme", "bus_kbps", "0", errno.ERANGE),
    ("nvme", "cache_kb", "-4", errno.EINVAL),
]
BUSY = {"kind": "ssd", "size_mb": "1", "queue_depth": "4", "hw_queues": "2", "seed": "9"}


def refused(it: Disk, name: str, value: str) -> int:
    """The errno of writing an attribute, 0 when it was taken; fails if it changed anything."""
    before = it.get(name)
    try:
        fd = os.open(it.config / name, os.O_WRONLY)
        try:
            os.write(fd, value.encode() or b"\n")
        finally:
            os.close(fd)
    except OSError as error:
        demand(it.get(name) == before, f"{name}={value} changed it to {it.get(name)}")
        return error.errno or 0
    return 0


def bad_input() -> str:
    """bad attribute values are refused with the right error and change nothing"""
    count = 0
    for is_online in (False, True):
        for kind in ("hdd", "ssd", "nvme"):
            it = Disk("mdself", kind)
            try:
                if is_online:
                    it.online()
                for _, name, value, want in (bad for bad in BAD if bad[0] == kind):
                    got = refused(it, name, value)
                    text = f"{kind} {name}={value!r}: {errno.errorcode.get(got, got)}"
                    demand(got == want, f"{text}, expected {errno.errorcode[want]}")
                    count += 1
                for name, value in BUSY.items() if is_online else ():
                    got = refused(it, name, value)
                    demand(got == errno.EBUSY, f"{name} while online: errno {got}")
                    count += 1
                demand(refused_reset(it) == errno.EINVAL, "reset took 2")
            finally:
                it.remove()
    try:
        Disk("x" * 32, "hdd").remove()
        raise Failed("a name of 32 characters was taken")
    except OSError as error:
        demand(error.errno == errno.ENAMETOOLONG, f"a name of 32 characters: {error}")
    subprocess.run(["modprobe", "loop"], check=True)
    it = Disk("loop0", "hdd")
    try:
        got = refused(it, "online", "1")
        demand(got == errno.EEXIST, f"a second loop0: errno {got}")
    finally:
        it.remove()
    return f"{count} values refused"


def refused_reset(it: Disk) -> int:
    """The errno of writing 2 to reset."""
    try:
        (it.debug / "reset").write_text("2")
    except OSError as error:
        return error.errno or 0
    return 0


def defaults_and_kind() -> str:
    """kind loads its defaults and sets rotational; writing it again restores them"""
    seen = []
    for kind, name, value in (
        ("hdd", "rpm", 7200),
        ("ssd", "channels", 16),
        ("nvme", "channels", 128),
    ):
        with disk(kind) as it:
            rotational = (it.queue / "rotational").read_text().strip()
            demand(rotational == str(int(kind == "hdd")), f"{kind}: rotational {rotational}")
            it.set(online=0, **{name: value // 2})
            it.set(kind=kind)
            demand(it.number(name) == value, f"{kind}: {name} is {it.get(name)}")
            seen.append(f"{kind} {it.get('hw_queues')} x {it.get('queue_depth')}")
    return ", ".join(seen)


def offline_under_load() -> str:
    """offline, online and rmdir under I/O: requests end, data stay, the module cannot go"""
    it = Disk("mdself", "hdd")
    try:
        for cycle in range(3):
            it.online("mq-deadline" if cycle == 1 else "none")
            marker = f"cycle {cycle}".ljust(SECTOR).encode()
            with open(it.node, "r+b", buffering=0) as f:
                if cycle:
                    f.seek(0)
                    old = f.read(SECTOR)
                    demand(
                        old.startswith(f"cycle {cycle - 1}".encode()), f"lost data: {old[:16]!r}"
                    )
                f.seek(0)
                f.write(marker)
                os.fsync(f.fileno())
            with load(it.node, rw="randrw", bs="16k", iodepth=32, offset="1m"):
                wait_busy(it)
                run = subprocess.run(["rmmod", "modeldisk"], capture_output=True, text=True)
                demand(run.returncode != 0, "the module went while a disk was there")
                start = time.monotonic()
                if cycle < 2:
                    it.set(online=0)
                else:
                    it.remove()
                took = time.monotonic() - start
                demand(not it.queue.exists(), "the disk is still there")
                demand(took < 10, f"took {took:.1f} s")
    finally:
        if it.config.exists():
            it.remove()
    return "2 times offline, 1 time rmdir"


def lvm() -> str:
    """LVM accepts model disks: a striped volume over two of them holds data"""
    options = ["--config", "activation{udev_sync=0 udev_rules=0} devices{use_devicesfile=0}"]

    def run(*command: str) -> None:
        run = subprocess.run(command, capture_output=True, text=True)
        demand(run.returncode == 0, f"{' '.join(command)}: {run.stderr}")

    disks = [Disk(f"mdself{i}", "ssd", size_mb=64) for i in (1, 2)]
    nodes = [it.node for it in disks]
    try:
        for it in disks:
            it.online()
        run("vgcreate", *options, "-y", "mdselfvg", *nodes)
        try:
            run("lvcreate", *options, "-y", "-Wn", "-Zn", "-i2", "-L64m", "-n", "lv", "mdselfvg")
            for it in disks:
                it.reset()
            node = "/dev/mapper/mdselfvg-lv"
            command = fio_command(node, rw="write", bs="256k", size="16m", verify="crc32c")
            run(*command)
            halves = [it.total()["wbytes"] for it in disks]
            demand(halves == [8 << 20, 8 << 20], f"bytes written to the disks: {halves}")
        finally:
            run("vgremove", *options, "-f", "mdselfvg")
    finally:
        for it in disks:
            it.remove()
    return "8 MiB on each"


CHECKS: list[Callable[[], str]] = [
    defaults_and_kind,
    bad_input,
    integrity,
    discard,
    hdd_sequential_read_depth_1,
    hdd_sequential_read_depth_32,
    hdd_sequential_write,
    hdd_random_read_depth_1,
    hdd_random_sptf,
    hdd_random_fifo,
    hdd_age_limit,
    hdd_change_at_run_time,
    ssd_full_depth,
    nvme_full_depth,
    flash_lone_reads,
    flash_noise,
    ssd_change_at_run_time,
    truth_by_cgroup,
    truth_outlives_cgroup,
    cached_burst,
    cached_fua,
    cached_drain_rate,
    cached_ssd_reads_first,
    cache_on_and_off,
    offline_under_load,
    lvm,
]


def run_check(check: Callable[[], str], suite: ElementTree.Element) -> bool:
    """Runs a check, prints its line and adds it to the suite; true when it passed."""
    start = time.monotonic()
    error = None
    try:
        text = check()
    except (Failed, OSError, subprocess.SubprocessError, KeyError) as failure:
        error = text = f"{type(failure).__name__}: {failure}"
    seconds = time.monotonic() - start
    title = (check.__doc__ or check.__name__).strip()
    print(f"{'FAIL' if error else 'ok  '} {seconds:5.1f} s  {title}: {text}", flush=True)
    case = ElementTree.SubElement(
        suite, "testcase", classname="modeldisk", name=check.__name__, time=f"{seconds:.3f}"
    )
    if error:
        ElementTree.SubElement(case, "failure", message=error)
    else:
        ElementTree.SubElement(case, "system-out").text = text
    return error is None


def main() -> int:
    """Runs the checks."""
    parser = argparse.ArgumentParser(description="Checks modeldisk against its parameters.")
    parser.add_argument("--junit", type=Path, metavar="FILE", help="write JUnit XML")
    parser.add_argument("check", nargs="*", help="names of checks (default: all)")
    args = parser.parse_args()
    unknown = set(args.check) - {check.__name__ for check in CHECKS}
    if unknown:
        parser.error(f"no such check: {', '.join(sorted(unknown))}")
    if not CONFIG.is_dir():
        sys.exit(f"selftest.py: {CONFIG} is missing: load modeldisk.ko, mount configfs and debugfs")

    suite = ElementTree.Element("testsuite", name="modeldisk")
    failures = 0
    began = time.monotonic()
    with quiet_udev():
        for check in CHECKS:
            if not args.check or check.__name__ in args.check:
                failures += not run_check(check, suite)
    suite.set("tests", str(len(suite)))
    suite.set("failures", str(failures))
    if args.junit:
        ElementTree.ElementTree(suite).write(args.junit, encoding="utf-8", xml_declaration=True)
    took = time.monotonic() - began
    print(f"{len(suite) - failures} passed, {failures} failed, {took:.0f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
