# SPDX-License-Identifier: LGPL-2.1-or-later
"""The oracle for flash of modeldisk: its times, and a copy of the hash that maps pages to
channels."""

import heapq
import random
import time

import pytest
from rig.modeldisk import ModelDisk
from rig.oracle import PAGE, Direct, Rate, loaded, ready


def time_us(disk: ModelDisk, write: bool, nbytes: int) -> float:
    """F: the reciprocal of the rate of a saturating stream."""
    latency = disk.number("write_us" if write else "read_us")
    pages = max(1, nbytes // PAGE)
    bus = nbytes / (disk.number("bus_kbps") * 1024 / 1e6)
    return max(pages * latency / disk.number("channels"), bus)


@pytest.mark.parametrize(("kind", "slower", "depth"), [("ssd", 100, 32), ("nvme", 400, 1024)])
def test_full_depth(kind: str, slower: int, depth: int) -> None:
    """Rate and charge of a slower drive are max(pages * L / N, bytes / B)."""
    with ready(kind) as disk:
        disk.set(
            read_us=disk.number("read_us") * slower,
            write_us=disk.number("write_us") * slower,
            bus_kbps=disk.number("bus_kbps") // slower,
        )
        for rw, size in (("randread", 4), ("randwrite", 4), ("randread", 32), ("write", 32)):
            want = time_us(disk, "write" in rw, size * 1024)
            # 32 large requests keep every stage busy; more only take longer to come round.
            with loaded(disk, rw, f"{size}k", depth if size == 4 else 32):
                time.sleep(0.6)
                rate = Rate(disk, 1.6)
            assert rate.charge_us == pytest.approx(want, rel=0.001), (rw, size)
            assert rate.us == pytest.approx(want, rel=0.03), (rw, size)


def mix(x: int) -> int:
    """splitmix64, as the module's map of pages to channels uses it."""
    mask = (1 << 64) - 1
    x = (x + 0x9E3779B97F4A7C15) & mask
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & mask
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & mask
    return x ^ (x >> 31)


def lone_read_ns(disk: ModelDisk, offset: int, nbytes: int) -> int:
    """The answer time of a read on an idle drive, by its channels and the bus."""
    channels, seed = disk.number("channels"), disk.number("seed")
    latency = disk.number("read_us") * 1000
    transfer = PAGE * 1953125 // (disk.number("bus_kbps") * 2)
    free = [0] * channels
    ready_ns: list[int] = []
    for page in range(offset // PAGE, (offset + nbytes) // PAGE):
        channel = ((mix(page ^ mix(seed)) & 0xFFFFFFFF) * channels) >> 32
        free[channel] += latency
        heapq.heappush(ready_ns, free[channel])
    bus = 0
    while ready_ns:
        bus = max(bus, heapq.heappop(ready_ns)) + transfer
    return bus


@pytest.mark.parametrize("seed", [1, 77])
def test_lone_reads(seed: int) -> None:
    """100 reads of 128 KiB at depth 1 take the time of channels and bus, to the nanosecond."""
    nbytes, rng = 131072, random.Random(seed)
    with ready("ssd", seed=seed) as disk, Direct(disk.node, nbytes) as io:
        for _ in range(100):
            offset = rng.randrange(1000) * nbytes
            disk.reset()
            io.read(offset)
            assert disk.model()["latency_ns"] == lone_read_ns(disk, offset, nbytes)


def test_noise() -> None:
    """Noise is the same for the same seed, differs for another one, and is evenly distributed."""

    def answers(seed: int) -> int:
        with ready("ssd", seed=seed, noise_percent=20, hiccup_us=1000) as disk:
            with Direct(disk.node, 4096) as io:
                disk.reset()
                for page in range(300):
                    io.write(page * PAGE)
                return disk.model()["latency_ns"]

    first, again, other = answers(5), answers(5), answers(6)
    assert first == again != other
    assert first / 3e5 == pytest.approx(200 + 7.4, rel=0.05)


def test_change_at_run_time() -> None:
    """read_us written under load is the latency from then on."""
    with ready("ssd", read_us=4000, bus_kbps=54000) as disk, loaded(disk, "randread", "4k"):
        disk.set(read_us=9000)
        time.sleep(0.2)
        disk.reset()
        time.sleep(1)
        model = disk.model()
    want = 9000 + 4096 / (54000 * 1024 / 1e6)
    assert model["latency_ns"] / model["requests"] / 1000 == pytest.approx(want, rel=0.001)
