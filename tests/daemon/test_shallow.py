# SPDX-License-Identifier: LGPL-2.1-or-later
"""Floors of units with few requests in flight, whose demand the disks do not show."""

import itertools
import signal

import pytest
from fakemachine import Machine, Sutrod, Systemd
from plant import (
    MB,
    RESERVE,
    RESERVES_S,
    SETPOINT_RESERVED,
    SETTLES_S,
    SHALLOW,
    STRIPE,
    Plant,
    crowd,
    hold,
    promise,
    set_policy,
    state,
)


def test_time_is_reserved_for_a_shallow_unit(
    machine: Machine, systemd: Systemd, sutrod: Sutrod, plant: Plant
) -> None:
    """No weight helps the unit. Its reserved time follows its floor, and ends with it."""
    db = crowd(systemd, plant)
    plant.readers["db"].shallow = True
    sutrod.start()
    hold(sutrod, floor="30M", seconds=RESERVES_S)
    sutrod.elapse(15)
    assert plant.mbps("db", 2) == pytest.approx(SETPOINT_RESERVED * 30, rel=0.05)
    seen = promise(sutrod, "db.service")
    assert seen["reserve"] == pytest.approx(SETPOINT_RESERVED * 0.3 / SHALLOW, rel=0.1)
    lines = machine.weights(db, RESERVE)
    sutrod.stop(signal.SIGKILL)
    sutrod.start()
    assert machine.weights(db, RESERVE) == lines
    for leaf in seen["leaves"]:
        # Half of it is not used.
        assert leaf["price"] == pytest.approx(seen["reserve"] * SHALLOW, rel=0.1)
    assert len(machine.weights(db, RESERVE)) == 3
    set_policy(sutrod, "db.service", ReadBandwidthMin=f"{STRIPE} 60M")
    sutrod.until(lambda: state(sutrod, "db.service") == "limited", 4 * SETTLES_S)
    # The cause names the rate of its shallow queue, rounded down.
    sutrod.elapse(6)
    got = int(promise(sutrod, "db.service")["got"])
    held = f"ReadBandwidthMin={STRIPE} {got // MB}M can be held"
    assert promise(sutrod, "db.service")["cause"].endswith(held), got
    sutrod.call("ResetPolicy", "db.service", "runtime")
    sutrod.until(lambda: machine.weights(db, RESERVE) == ["8:0 0", "8:16 0", "default 0"])


def test_full_queue_on_the_way(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    """A loop device with all slots taken: the unit waits on no leaf, and this is reported."""
    machine.mount("/srv", "8:0", "ext4", "/dev/sda")
    machine.write("/srv/image", "")
    machine.disk("loop0", "7:0")
    block = "/sys/devices/virtual/block/loop0"
    machine.write(f"{block}/loop/backing_file", "/srv/image\n")
    machine.write(f"{block}/queue/nr_requests", "128\n")
    machine.write(f"{block}/inflight", "      120        8\n")
    db = systemd.start("db.service", 100)
    sutrod.start()
    set_policy(sutrod, "db.service", ReadBandwidthMin="/dev/loop0 60M")

    sums = itertools.count(MB, MB)

    def read(_seconds: float) -> None:
        done = next(sums)
        stat = f"time_ns={done * 10} rbytes={done} wbytes=0 rios=1 wios=0 wait_ns=0 queued=0\n"
        machine.write(f"/sys/fs/cgroup{db}/io.sutro.stat", f"8:0 {stat}")
        machine.write(f"/sys/fs/cgroup{db}/io.stat", f"7:0 rbytes={done} wbytes=0 rios=1 wios=0\n")

    sutrod.clock.loads.append(read)
    sutrod.until(lambda: state(sutrod, "db.service") == "unweighted", SETTLES_S)
    assert promise(sutrod, "db.service")["cause"] == (
        'the scheduler of /dev/loop0 (none) has no weights; run "sutroctl use /dev/loop0"'
    )
    machine.write(f"{block}/inflight", "        3        0\n")
    sutrod.until(lambda: state(sutrod, "db.service") != "unweighted", SETTLES_S)


def test_writes_that_wait_in_dm_crypt(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    """None of them reaches a disk: the floor is not idle, until they have reached it."""
    machine.mapped("dm-7", "254:7", "sda", "secret", "CRYPT-LUKS2-" + 32 * "b" + "-secret")
    cgroups = {
        name: machine.at(f"/sys/fs/cgroup{systemd.start(name, 100)}/io.stat")
        for name in ("db.service", "flood.service")
    }
    slice_stat = cgroups["db.service"].parent.parent / "io.stat"
    sutrod.start()
    set_policy(sutrod, "db.service", WriteBandwidthMin="/dev/mapper/secret 10M")

    def wrote(above: int, below: int) -> str:
        return "".join(
            f"{devno} rbytes=0 wbytes={sent} rios=0 wios={sent // 65536}\n"
            for devno, sent in (("254:7", above), ("8:0", below))
        )

    cgroups["db.service"].write_text(wrote(MB, 0))
    slice_stat.write_text(wrote(200 * MB, 20 * MB))
    sutrod.until(lambda: state(sutrod, "db.service") == "unweighted", SETTLES_S)
    assert promise(sutrod, "db.service")["cause"].startswith(
        "976 KiB of its writes wait above the disks, in dm-crypt at /dev/dm-7"
    )
    cgroups["db.service"].write_text(wrote(MB, MB))
    sutrod.until(lambda: state(sutrod, "db.service") == "idle", 10)
