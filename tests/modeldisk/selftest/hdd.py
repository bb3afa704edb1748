# SPDX-License-Identifier: GPL-2.0-only
"""What an hdd should do: closed formulas, and a small simulation of shortest positioning first."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable

from .bench import Direct, Disk, Rate, demand, disk, expect, load, wait_busy


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
