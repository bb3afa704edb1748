# SPDX-License-Identifier: LGPL-2.1-or-later
"""Shares of two units of weights 200 and 100, equally busy on a stack, at the disks below.

With the drivers of sutro-stacking-dkms the true device time is 2 : 1. Without them its owner is
lost; this file then prints the rates of the units, and only requires that they are above 0:

    ./lab test --stage measure -- -s tests/vm/test_stacking_shares.py
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from rig.crowd import built, zeroed
from rig.dkms import kernel, out_of_tree
from rig.sampler import Sampler
from rig.shell import run, wait_for
from rig.stack import Stack, devno, snapshot
from rig.unit import Unit, fio, start, stop

MODULES = ("dm-mod", "dm-thin-pool", "raid456")
WEIGHTS = {"heavy": 200, "light": 100}
# Much slower than the requests of an emulated CPU.
DISK = {"size_mb": 128, "bus_kbps": 6000}
# Each takes 16 entries of the cache of stripes, all of them 512.
STRIPES = {"rw": "randwrite", "bs": "128k", "iodepth": 16}
CACHED = 2048
RAID5 = {"kind": "md", "name": "r5", "level": "raid5", "over": ["ssd0", "ssd1", "ssd2"]}
RANDOM = {"rw": "randwrite", "bs": "4k", "iodepth": 32}
RAMP_S, MEASURE_S = 2.0, 5.0
# Of the device times of the units. An emulated CPU of a busy host is late at times, and a unit has
# no request then: the measurement goes on until this is made up for.
LEAST, MOST = 1.9, 2.1
PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def patched() -> bool:
    """Are the drivers those of the package?"""
    for module in MODULES:
        run("modprobe", module)
    found = {out_of_tree(module) for module in MODULES}
    assert len(found) == 1
    return found.pop()


@contextmanager
def pair(made: Stack, job: dict[str, object]) -> Iterator[list[Unit]]:
    """The units, each on its half of the device; they use it."""
    half = int(run("blockdev", "--getsize64", made.top)) // 2 >> 20
    units = [
        Unit(name, fio(made.top, seed=n + 1, offset=f"{n * half}m", size=f"{half}m", **job), weight)
        for n, (name, weight) in enumerate(WEIGHTS.items())
    ]
    try:
        start(units)
        yield units
    finally:
        stop(units)


def is_as_weights(used: list[int]) -> bool:
    """Device time of the units, that with the higher weight first."""
    return used[1] > 0 and LEAST <= used[0] / used[1] <= MOST


def judge(made: Stack, patched: bool, what: str, job: dict[str, object]) -> None:
    """Device time of the units is as their weights are, and together it is all there is."""
    with pair(made, job) as (heavy, light):
        with Sampler(made.disks, [heavy, light], devno(made.top)) as watch:
            wait_for(lambda: watch.came("heavy") and watch.came("light"), "I/O of both", 60)
            time.sleep(RAMP_S)
            began = ended = time.monotonic()
            used = [0, 0]
            longest_s = PATIENCE_S if patched else MEASURE_S
            while ended < began + longest_s and not is_as_weights(used):
                time.sleep(MEASURE_S)
                ended = time.monotonic()
                used = [watch.time_ns(unit.name, began, ended) for unit in (heavy, light)]
        sent = watch.mbps("heavy", began, ended), watch.mbps("light", began, ended)
        whole = sum(watch.used(("time", d.name), began, ended) for d in made.disks)
        busy = min(watch.disk_busy(d.name, began, ended) for d in made.disks)
    assert all(sent)
    drivers = "patched" if patched else "stock"
    ratio = f"{used[0] / used[1]:.2f}" if used[1] else "none is theirs"
    print(
        f"\nshares {kernel()} {drivers} {what}: device time {ratio}, of all "
        f"{sum(used) / whole:.1%}, bytes {sent[0] / sent[1]:.2f} ({sum(sent):.2f} MB/s), "
        f"disks busy {busy:.0%}, CPU idle {watch.cpu_idle(began, ended):.0%}"
    )
    if patched:
        assert is_as_weights(used), f"{ratio} after {ended - began:.0f} s"
        assert sum(used) >= 0.9 * whole


def test_parity(patched: bool) -> None:
    """Random writes of 4 KiB to raid5: pre-reads, data and parity."""
    with built(3, RAID5, **DISK) as made:
        judge(made, patched, "raid5 4k", RANDOM)


def test_whole_stripes(patched: bool) -> None:
    """Writes of whole stripes to raid5, whose cache of stripes has room for all of them."""
    with built(3, RAID5, **{**DISK, "bus_kbps": 20000}) as made:
        array = Path("/sys/class/block") / Path(made.top).resolve().name
        (array / "md/stripe_cache_size").write_text(str(CACHED))
        judge(made, patched, "raid5 stripes", STRIPES)


def test_copy_on_write(patched: bool) -> None:
    """Each write of 4 KiB copies a block of 64 KiB that a snapshot shares.

    Merged copies are of many sizes. The cost of each size is known after some hundred copies, and
    until then shares are wrong: so the disk is fast enough for these copies.
    """
    layer = {"kind": "thin", "name": "t", "over": ["ssd0"], "size_mb": 240}
    with built(1, layer, **{**DISK, "size_mb": 600, "bus_kbps": 40000}) as made:
        zeroed(made)
        snapshot("rig_t/t")
        judge(made, patched, "thin copy-on-write", {**RANDOM, "rw": "write:60k"})


@pytest.mark.parametrize("mode", ["direct", "bitmap"])
def test_integrity_writes(patched: bool, mode: str) -> None:
    """Writes of data and tags, without a journal, which would have no owner."""
    table = f"0 65536 integrity {{0}} 0 - {mode[0].upper()} 2 internal_hash:crc32c block_size:4096"
    layer = {"kind": "dm", "name": "checked", "over": ["ssd0"], "table": table}
    with built(1, layer, **{**DISK, "size_mb": 64, "queue_depth": 4}) as made:
        zeroed(made)
        judge(made, patched, f"integrity {mode} randwrite", RANDOM)
