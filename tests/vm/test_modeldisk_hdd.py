# SPDX-License-Identifier: LGPL-2.1-or-later
"""The oracle for an hdd of modeldisk: closed formulas, and a simulation of shortest positioning
first, computed from its numbers independently of the module."""

import math
import random
import time
from collections.abc import Callable

import pytest
from rig.modeldisk import ModelDisk
from rig.oracle import Direct, Rate, loaded, ready

# Four times a 7200 rpm drive: enough requests for a mean within 3 % in seconds.
QUICK_HDD = {
    "rpm": 28800, "seek_min_us": 125, "seek_max_us": 2625, "overhead_us": 8,
    "bandwidth_kbps": 600000,
}  # fmt: skip


class Hdd:
    """The mechanism by its numbers, in microseconds and bytes."""

    def __init__(self, disk: ModelDisk) -> None:
        self.revolution = 60e6 / disk.number("rpm")
        self.seek_min = disk.number("seek_min_us")
        self.seek_max = disk.number("seek_max_us")
        self.rate = disk.number("bandwidth_kbps") * 1024 / 1e6  # bytes per us
        self.overhead = disk.number("overhead_us")
        self.size = disk.number("size_mb") << 20
        self.track = self.rate * self.revolution

    def seek(self, start: int, end: int) -> float:
        tracks = abs(int(start / self.track) - int(end / self.track))
        share = tracks / (int(self.size / self.track) + 1)
        return self.seek_min + (self.seek_max - self.seek_min) * math.sqrt(share) if tracks else 0.0

    def random_place(self, rng: random.Random, nbytes: int) -> int:
        return rng.randrange(self.size // nbytes) * nbytes

    def seek_mean(self, places: list[int], nbytes: int) -> float:
        """Of requests at these places, one after the other."""
        steps = zip(places, places[1:], strict=False)
        return sum(self.seek(a + nbytes, b) for a, b in steps) / (len(places) - 1)

    def fifo_service(self, nbytes: int) -> float:
        """Mean service time of random requests in order of arrival, the queue never empty."""
        rng = random.Random(1)
        seek = self.seek_mean([self.random_place(rng, nbytes) for _ in range(50000)], nbytes)
        return seek + self.revolution / 2 + nbytes / self.rate

    def sptf_service(self, nbytes: int, depth: int, n: int = 5000) -> float:
        """The same with the nearest of depth requests first."""
        rng = random.Random(2)
        now = position = start = 0.0
        head = 0
        waiting = [self.random_place(rng, nbytes) for _ in range(depth)]

        def positioning(index: int) -> float:
            seek = self.seek(head, waiting[index])
            return seek + (waiting[index] / self.rate - position - (now + seek)) % self.revolution

        for done in range(n):
            if done == n // 10:
                start = now
            best = min(range(depth), key=positioning)
            now += positioning(best) + nbytes / self.rate
            head = waiting[best] + nbytes
            position = head / self.rate - now
            waiting[best] = self.random_place(rng, nbytes)
        return (now - start) / (n - n // 10)


@pytest.mark.parametrize(
    ("rw", "depth", "numbers"),
    # The read-ahead is one of 109 ms.
    [("read", 1, {"readahead_kb": 16384}), ("read", 32, {}), ("write", 32, {})],
)
def test_sequential(rw: str, depth: int, numbers: dict[str, int]) -> None:
    """512 KiB sequential requests run at the media rate."""
    with ready("hdd", **numbers) as disk, loaded(disk, rw, "512k", depth):
        rate = Rate(disk, 1.5)
        assert rate.kbps == pytest.approx(disk.number("bandwidth_kbps"), rel=0.03)


def test_random_read_depth_1() -> None:
    """A random 4 KiB read at depth 1 takes overhead, seek, half a turn, and transfer."""
    count = 600  # mean rotation +- 3 sigma = 3 %
    with ready("hdd") as disk, Direct(disk.node, 4096) as io:
        hdd = Hdd(disk)
        rng = random.Random(3)
        places = [hdd.random_place(rng, 4096) for _ in range(count + 1)]
        io.read(places[0])
        disk.reset()
        for place in places[1:]:
            io.read(place)
        total, model = disk.truth().total, disk.model()
    want = hdd.overhead + hdd.seek_mean(places, 4096) + hdd.revolution / 2 + 4096 / hdd.rate
    assert total.rios == count
    # A few find their data in the read-ahead: answered sooner than the head needed for them.
    assert model["latency_ns"] == pytest.approx(total.time_ns, rel=0.01)
    assert total.time_ns / count / 1000 == pytest.approx(want, rel=0.03)


@pytest.mark.parametrize(
    ("order", "want_us"),
    [
        ("sptf", lambda hdd: hdd.sptf_service(4096, 32)),
        ("fifo", lambda hdd: hdd.fifo_service(4096)),
    ],
    ids=["sptf", "fifo"],
)
def test_random_full_depth(order: str, want_us: Callable[[Hdd], float]) -> None:
    """Random 4 KiB reads at depth 32; the true times add up to the wall clock."""
    with ready("hdd", order=order, age_limit_ms=10000, **QUICK_HDD) as disk:
        want = want_us(Hdd(disk))
        with loaded(disk, "randread", "4k", 32):
            rate = Rate(disk, 4)
    assert rate.busy == pytest.approx(1, rel=0.01)
    assert rate.us == pytest.approx(want, rel=0.03)


def test_age_limit() -> None:
    """sptf leaves no read waiting longer than age_limit_ms and a little."""
    with (
        ready("hdd", age_limit_ms=200) as disk,
        loaded(disk, "read", "64k", 16, size="32m"),
        Direct(disk.node, 4096) as io,
    ):
        worst_s = 0.0
        for _ in range(3):
            start_s = time.monotonic()
            io.read(1000 << 20)
            worst_s = max(worst_s, time.monotonic() - start_s)
    # One that waited for less was served in another order.
    assert 0.05 < worst_s < 0.4


def test_change_at_run_time() -> None:
    """bandwidth_kbps written under load is the rate from then on."""
    with ready("hdd") as disk, loaded(disk, "read", "128k", 32):
        disk.set(bandwidth_kbps=40000)
        time.sleep(0.3)
        assert Rate(disk, 1).kbps == pytest.approx(40000, rel=0.03)
