# SPDX-License-Identifier: GPL-2.0-only
"""The write cache of a drive."""

from __future__ import annotations

import os
import time

from .bench import BURST, Direct, Rate, demand, disk, expect, fio_command, load, wait_busy
from .truth import cgroups, owner, run_in


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
