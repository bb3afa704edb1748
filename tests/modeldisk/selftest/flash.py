# SPDX-License-Identifier: GPL-2.0-only
"""What flash should do: its times, and a copy of the hash that maps pages to channels."""

from __future__ import annotations

import heapq
import random
import time

from .bench import PAGE, Direct, Disk, Rate, demand, disk, expect, load, wait_busy


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
