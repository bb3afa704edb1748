# SPDX-License-Identifier: LGPL-2.1-or-later
"""Floors on stacks whose disks come, go and fail while they are in use."""

from pathlib import Path

import pytest
from rig import bus
from rig.crowd import DB, FLOOR, KBPS, SOON_S, Crowd, built
from rig.modeldisk import ModelDisk
from rig.shell import run, run_again, wait_for


@pytest.mark.first
def test_crypt_over_raid1() -> None:
    """The same where each layer sends bios of its own."""
    mirror = {"kind": "md", "name": "mir", "level": "raid1", "over": ["ssd0", "ssd1"]}
    crypt = {"kind": "crypt", "name": "sec", "over": ["mir"]}
    # Half as fast: the cipher is emulated, too. And less than one disk has: md decides which of
    # the two a read goes to, and may send most of them to one for a while.
    with (
        built(2, mirror, crypt, size_mb=64, bus_kbps=KBPS // 2) as made,
        Crowd(made.top, made.disks) as crowd,
    ):
        crowd.held(FLOOR / 3)
        (promise,) = bus.promises(DB)
        assert promise["amplification"] == pytest.approx(1, abs=0.1)


def test_loop() -> None:
    """A loop device serves its slots first come, first served, until its queue has weights, too."""
    files = {"kind": "ext4", "name": "files", "over": ["ssd0"]}
    image = {"kind": "loop", "name": "image", "over": ["files"], "size_mb": 48}
    with built(1, files, image, size_mb=96) as made:
        bus.release(made.top)
        bus.use(made.disks[0].node)
        with Crowd(made.top, made.disks, iodepth=64) as crowd:
            crowd.promise(FLOOR / 2)
            wait_for(lambda: crowd.reported()[0][0] == "unweighted", "unweighted", 2 * SOON_S)
            assert made.top in crowd.reported()[0][1]
            bus.use(made.top)
            crowd.settles(FLOOR / 2)
            assert leaves() == [made.top, "/dev/ssd0"]


def leaves() -> list[str]:
    """The leaves of db's promise."""
    return sorted(leaf["leaf"] for one in bus.promises(DB) for leaf in one["leaves"])


def linear(over: str) -> dict[str, object]:
    """A linear volume on one disk."""
    return {"kind": "linear", "name": "lv", "over": [over]}


def test_leaf_added() -> None:
    """lvextend to a disk that sutro does not use yet: that is the cause, until it does."""
    with built(1, linear("ssd0"), size_mb=96) as made:
        more = {"size_mb": 96, "bus_kbps": KBPS, "seed": 7}
        with ModelDisk("ssd1", "ssd", more) as added:
            try:
                with Crowd(made.top, made.disks) as crowd:
                    crowd.held(FLOOR / 2)
                    run_again("vgextend", "--yes", "--quiet", "rig_lv", added.node)
                    run("lvextend", "--quiet", "--extents=+100%FREE", made.top)
                    wait_for(lambda: leaves() == ["/dev/ssd0", "/dev/ssd1"], "two leaves", SOON_S)
                    crowd.holds(FLOOR / 2)
                # All of it on the new disk.
                with Crowd(made.top, [*made.disks, added], offset="100m") as crowd:
                    crowd.promise(FLOOR / 2)
                    wait_for(lambda: crowd.reported()[0][0] == "unweighted", "unweighted", SOON_S)
                    assert "/dev/ssd1" in crowd.reported()[0][1]
                    bus.use(made.top)
                    crowd.settles(FLOOR / 2)
            finally:
                run("lvreduce", "--yes", "--quiet", "--extents=50%LV", made.top)
                run("vgreduce", "--quiet", "rig_lv", added.node)


def test_pvmove_and_leaf_removed() -> None:
    """The volume moves to another disk under load; the old one leaves its group."""
    group = {"kind": "group", "name": "vg", "over": ["ssd0", "ssd1"]}
    volume = {"kind": "volume", "name": "lv", "over": ["vg"], "on": ["ssd0"], "size_mb": 32}
    with built(2, group, volume, size_mb=64) as made:
        bus.use("/dev/ssd1")
        with Crowd(made.top, made.disks) as crowd:
            crowd.held(FLOOR / 2)
            run("pvmove", "--quiet", "--interval=1", "/dev/ssd0", "/dev/ssd1")
            wait_for(lambda: leaves() == ["/dev/ssd1"], "the other leaf", SOON_S)
            crowd.settles(FLOOR / 2)
            run("vgreduce", "--quiet", "rig_vg", "/dev/ssd0")
            crowd.holds(FLOOR / 2)


def test_raid_member_fails() -> None:
    """A mirror loses a disk and gets it back; the floor holds beside one leaf and beside two."""
    mirror = {"kind": "md", "name": "mir", "level": "raid1", "over": ["ssd0", "ssd1"]}
    with built(2, mirror, size_mb=32) as made:
        with Crowd(made.top, made.disks) as crowd:
            crowd.held(FLOOR / 2)
            run("mdadm", "--quiet", made.top, "--fail", "/dev/ssd1")
            crowd.settles(FLOOR / 2)
            run_again("mdadm", "--quiet", made.top, "--remove", "/dev/ssd1")
            wait_for(lambda: leaves() == ["/dev/ssd0"], "one leaf", SOON_S)
            crowd.holds(FLOOR / 2)
        # While a unit reads without a pause, md does not go on, with any scheduler.
        md = Path("/sys/class/block") / Path(made.top).resolve().name / "md"
        run("mdadm", "--quiet", made.top, "--add", "/dev/ssd1")
        wait_for(lambda: (md / "degraded").read_text() == "0\n", "the mirror is whole", 60)
        with Crowd(made.top, made.disks) as crowd:
            crowd.held(FLOOR / 2)
            assert leaves() == ["/dev/ssd0", "/dev/ssd1"]
