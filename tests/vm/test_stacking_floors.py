# SPDX-License-Identifier: LGPL-2.1-or-later
"""Floors on devices that amplify writes: the cost of a byte is measured.

Runs in guests with sutro-stacking-dkms, where those bytes are charged to the writer. The oracle is
the truth of the disks below, beside io.stat of the logical device.
"""

import time

from rig import bus
from rig.crowd import DB, Crowd, built, zeroed
from rig.shell import wait_for
from rig.stack import snapshot

WRITES = {"rw": "randwrite", "bs": "16k"}
# Slow enough for an emulated CPU: a tenth of the rate of other tests.
NUMBERS = {"size_mb": 320, "bus_kbps": 10000}


def cost(crowd: Crowd, seconds: float = 3) -> tuple[float, float]:
    """Bytes at the disks for each that db writes: as the daemon has it, and in truth."""
    measured = []
    began = time.monotonic()
    while time.monotonic() < began + seconds:
        measured += [one["amplification"] for one in bus.promises(DB)]
        time.sleep(0.25)
    ended = time.monotonic()
    below = sum(crowd.watch.used(("bytes", d.name, "db"), began, ended) for d in crowd.disks)
    written = crowd.watch.used(("logical", "db"), began, ended)
    return sum(measured) / len(measured), below / written


def holds_at_its_cost(crowd: Crowd, by: str) -> float:
    """A floor of half of the device holds, and its cost is measured and reported; returns that."""
    together = sum(crowd.mbps(2, unit.name) for unit in crowd.units)
    floor = round(together / 2, 2)
    crowd.held(floor)
    measured, truth = cost(crowd)
    # The daemon's mean goes further back than the truth looked at here.
    assert truth / 1.5 <= measured <= truth * 1.5
    crowd.holds(floor)
    crowd.promise(together * 3)
    wait_for(lambda: crowd.reported()[0][0] == "infeasible", "infeasible", 60)
    assert by in crowd.reported()[0][1]
    return truth


def test_parity() -> None:
    """A random write to raid5 reads data or parity and writes both."""
    layer = {"kind": "md", "name": "r5", "level": "raid5", "over": ["ssd0", "ssd1", "ssd2"]}
    with (
        built(3, layer, **NUMBERS) as made,
        Crowd(made.top, made.disks, **WRITES) as crowd,
    ):
        assert 2.5 <= holds_at_its_cost(crowd, "bytes at the leaves (parity of the raid)") <= 4.5


def test_copy_on_write() -> None:
    """The first write to a block of 64 KiB that a snapshot shares copies it."""
    layer = {"kind": "thin", "name": "t", "over": ["ssd0"], "size_mb": 144}
    with built(1, layer, **NUMBERS) as made:
        zeroed(made)
        snapshot("rig_t/t")
        with Crowd(made.top, made.disks, **WRITES) as crowd:
            assert 3 <= holds_at_its_cost(crowd, "bytes at the leaves (copy-on-write)") <= 9
