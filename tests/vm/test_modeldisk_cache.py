# SPDX-License-Identifier: LGPL-2.1-or-later
"""The write cache of a drive of modeldisk."""

import os
import time

import pytest
from rig import scheduler
from rig.cgroup import Subtree, ended
from rig.oracle import Direct, Rate, loaded, ready
from rig.unit import fio

BURST = 256  # writes that fit into the cache
# Far from each other.
PLACES = [n * 7919 % 60000 * 4096 for n in range(30)]


def announced(name: str) -> str:
    """The write cache as the block layer shows it."""
    return (scheduler.queue(name) / "write_cache").read_text().strip()


def test_burst(tree: Subtree) -> None:
    """hdd: a burst is answered by the interface, its writer pays for the actuator."""
    writer = tree.child("w")
    with ready("hdd", cache_kb=4 * BURST) as disk:
        assert announced(disk.name) == "write back"
        disk.reset()
        keys = {"number_ios": BURST, "time_based": 0}
        ended(writer.run(fio(disk.node, "randwrite", "4k", **keys)))
        answered = disk.model()
        start_s = time.monotonic()
        with Direct(disk.node, 4096) as io:
            os.fsync(io.fd)
        flush_s = time.monotonic() - start_s
        clean, charged = disk.model(), disk.truth().of(writer.cgroup)
    want_us = 30 + 4096 / (540000 * 1024 / 1e6)
    assert answered["latency_ns"] / answered["requests"] / 1000 == pytest.approx(want_us, rel=0.01)
    assert charged.wios == BURST
    assert clean["cache_kb"] == 0
    per_write_us = charged.time_ns / BURST / 1000
    assert per_write_us > 20 * want_us
    left_s = answered["cache_kb"] / 4 * per_write_us / 1e6
    assert flush_s == pytest.approx(left_s, abs=0.15 + 0.3 * left_s)


def test_fua() -> None:
    """hdd: a FUA write takes the time of the medium."""
    with ready("hdd", cache_kb=1024) as disk:
        with Direct(disk.node, 4096, os.O_RDWR | os.O_DSYNC) as io:
            disk.reset()
            for place in PLACES:
                io.write(place)
        assert disk.model()["latency_ns"] > len(PLACES) * 1e6
        assert (scheduler.queue(disk.name) / "fua").read_text() == "1\n"


@pytest.mark.parametrize("kind", ["hdd", "ssd"])
def test_drain_rate(kind: str) -> None:
    """With a full cache, writes run at drain_kbps; on the ssd it is their charge too."""
    with ready(kind, cache_kb=2048, drain_kbps=20000) as disk, loaded(disk, "write", "64k", 32):
        time.sleep(0.3)
        rate = Rate(disk, 1.2)
    if kind == "ssd":
        assert rate.busy == pytest.approx(1, rel=0.03)
    assert rate.kbps == pytest.approx(20000, rel=0.03)


def test_ssd_reads_first() -> None:
    """A read does not wait behind what is destaged in the background."""
    with ready("ssd", cache_kb=65536, write_us=20000, read_us=1000) as disk:
        with Direct(disk.node, 1 << 20) as io:
            for place in range(32):
                io.write(place << 20)
        disk.reset()
        with Direct(disk.node, 4096) as io:
            for place in range(20):
                io.read(place * 8 << 20)
        model = disk.model()
    assert model["cache_kb"] > 0, "destaged before the reads were done"
    assert model["latency_ns"] / 20 < 22e6


def test_on_and_off() -> None:
    """cache_kb written at run time turns the cache on and off, also for the block layer."""
    with ready("hdd") as disk, Direct(disk.node, 4096) as io:
        for cache_kb, kind in ((0, "write through"), (1024, "write back"), (0, "write through")):
            disk.set(cache_kb=cache_kb)
            disk.reset()
            for place in PLACES[:10]:
                io.write(place)
            assert announced(disk.name) == kind
            assert (disk.model()["latency_ns"] < 10e6) == bool(cache_kb)
