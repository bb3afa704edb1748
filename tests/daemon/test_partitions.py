# SPDX-License-Identifier: LGPL-2.1-or-later
"""Floors on partitions: the floor is about the partition, the competition about its disk.

The kernel counts the bytes of a cgroup on the disk, and the bytes of a partition for all cgroups.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from fakemachine import Machine, Sutrod, Systemd
from plant import MB, SETPOINT, SETTLES_S, STRIPE, hold, promise, set_policy, state

SPEED = 50 * MB
DISK = "8:0"
REQUEST = 65536


@dataclass
class Reader:
    """A unit that reads as fast as it may, a part of its requests from each place."""

    cgroup: str
    parts: dict[str, float]
    stacked: str = ""
    bytes: float = 0


class Disk:
    """A disk of 50 MB/s with two partitions, which divides its time by weight."""

    def __init__(self, machine: Machine, sutrod: Sutrod) -> None:
        self.machine = machine
        self.readers: dict[str, Reader] = {}
        self.partitions: defaultdict[str, float] = defaultdict(float)
        self.waited_ns = 0
        for number in (1, 2):
            machine.partition("sda", f"sda{number}", f"8:{number}")
        sutrod.clock.loads.append(self.serve)

    def weight(self, reader: Reader) -> float:
        lines = dict(line.split() for line in self.machine.weights(reader.cgroup))
        return float(lines.get(DISK, lines["default"]))

    def serve(self, seconds: float) -> None:
        """Serve for some time and count it, as the kernel does."""
        weights = {name: self.weight(reader) for name, reader in self.readers.items()}
        for name, reader in self.readers.items():
            done = seconds * SPEED * weights[name] / sum(weights.values())
            reader.bytes += done
            for place, part in reader.parts.items():
                self.partitions[place] += done * part
        self.waited_ns += int(1e9 * seconds)
        for reader in self.readers.values():
            done = int(reader.bytes)
            count = f"rbytes={done} wbytes=0 rios={done // REQUEST} wios=0"
            time_ns = int(done / SPEED * 1e9)
            folder = f"/sys/fs/cgroup{reader.cgroup}"
            rest = f"wait_ns={self.waited_ns} backlog_ns={self.waited_ns} queued=8"
            line = f"{DISK} time_ns={time_ns} {count} {rest}\n"
            self.machine.write(f"{folder}/io.sutro.stat", line)
            if reader.stacked:
                self.machine.write(f"{folder}/io.stat", f"{reader.stacked} {count}\n")
        for place, done in self.partitions.items():
            ios, sectors = int(done) // REQUEST, int(done) // 512
            self.machine.write(f"/sys/class/block/{place}/stat", f"{ios} 7 {sectors} 0 0 0 0 0\n")

    def mbps(self, place: str, sutrod: Sutrod, seconds: float) -> float:
        """The rate of all units on a partition in the next seconds."""
        before = self.partitions[place]
        sutrod.elapse(seconds)
        return (self.partitions[place] - before) / seconds / MB


@pytest.fixture
def disk(machine: Machine, sutrod: Sutrod) -> Disk:
    """The disk, and no reader yet."""
    return Disk(machine, sutrod)


@pytest.fixture
def start(systemd: Systemd, disk: Disk) -> Callable[..., Reader]:
    """Start a unit that reads."""

    def start(name: str, weight: int, **parts: float) -> Reader:
        disk.readers[name] = Reader(systemd.start(f"{name}.service", weight), parts)
        return disk.readers[name]

    return start


def test_other_partition_of_the_unit_does_not_count(
    start: Callable[..., Reader], sutrod: Sutrod, disk: Disk
) -> None:
    """Half of the unit's requests go elsewhere, so it needs twice the share."""
    start("db", 100, sda1=0.5, sda2=0.5)
    start("big", 4000, sda2=1)
    sutrod.start()
    hold(sutrod, "/dev/sda1", floor="15M")
    sutrod.elapse(1)
    assert disk.mbps("sda1", sutrod, 2) >= 0.97 * 15
    got = promise(sutrod, "db.service")["got"]
    assert got == pytest.approx(disk.mbps("sda1", sutrod, 1) * MB, rel=0.03)


def test_unit_that_uses_another_partition_only_is_idle(
    start: Callable[..., Reader], sutrod: Sutrod, disk: Disk
) -> None:
    """A unit that uses nothing of its promise leaves the disk to others."""
    start("db", 100, sda2=1)
    start("big", 900, sda2=1)
    disk.partitions["sda1"] = 100 * MB
    sutrod.start()
    set_policy(sutrod, "db.service", ReadBandwidthMin="/dev/sda1 30M")
    sutrod.until(lambda: state(sutrod, "db.service") == "idle")
    assert promise(sutrod, "db.service")["got"] < 0.01 * MB
    before = disk.readers["db"].bytes
    sutrod.elapse(1)
    assert disk.readers["db"].bytes - before == pytest.approx(0.1 * SPEED, rel=0.05)


def test_others_on_the_partition_do_not_count(
    start: Callable[..., Reader], sutrod: Sutrod, disk: Disk
) -> None:
    """The unit has all that it reads on the partition, to which another unit adds."""
    start("db", 100, sda1=1)
    start("big", 4000, sda1=1)
    sutrod.start()
    set_policy(sutrod, "db.service", ReadBandwidthMin="/dev/sda1 30M", ReadIOPSMin="/dev/sda1 100")
    sutrod.elapse(SETTLES_S)
    got = {p["key"]: p["got"] for p in sutrod.call("ListPromises")}
    assert got["ReadBandwidthMin"] == pytest.approx(SETPOINT * 30 * MB, rel=0.03)
    assert got["ReadIOPSMin"] == pytest.approx(SETPOINT * 30 * MB / REQUEST, rel=0.03)


def test_volume_on_another_partition_does_not_count(
    machine: Machine, start: Callable[..., Reader], sutrod: Sutrod, disk: Disk
) -> None:
    """Reads of a unit from a volume are measured exactly, also where others use its partition."""
    machine.stripe("dm-7", "254:7", "sda2", "vg-data")
    start("db", 100, sda2=1).stacked = "254:7"
    start("big", 900, sda1=1)
    sutrod.start()
    set_policy(sutrod, "db.service", ReadBandwidthMin="/dev/sda1 30M")
    sutrod.elapse(SETTLES_S)
    assert promise(sutrod, "db.service")["got"] < 0.01 * MB


def test_limit_is_that_of_the_whole_disk(
    machine: Machine, systemd: Systemd, sutrod: Sutrod, disk: Disk
) -> None:
    """io.max has no lines for partitions: the lower limit holds, and each has this as its cause."""
    machine.mount("/", "8:2", "ext4", "/dev/sda2")
    machine.mount("/boot", "8:1", "ext4", "/dev/sda1")
    db = systemd.start("db.service")
    sutrod.start()
    for limit in ("/boot 1M", "/ 500M", f"{STRIPE} 3M"):
        set_policy(sutrod, "db.service", WriteBandwidthMax=limit)
    line = f"{DISK} rbps=max wbps=1000000 riops=max wiops=max"
    sutrod.until(lambda: line in machine.weights(db, "io.max"))
    found = {p["path"]: p for p in sutrod.call("ListPromises")}
    assert {p["state"] for p in found.values()} == {"stated"}
    for path in ("/boot", "/"):
        assert found[path]["cause"] == (
            f"{found[path]['device']} is a partition, so the limit applies to all of /dev/sda; of "
            "several limits for its partitions the lowest holds"
        )
    assert found[STRIPE]["cause"] == ""


def test_disk_without_statistics_counts_as_a_whole(
    machine: Machine, start: Callable[..., Reader], sutrod: Sutrod, disk: Disk
) -> None:
    """queue/iostats is 0: the counters of partitions stand still."""
    machine.write("/sys/class/block/sda/queue/iostats", "0\n")
    start("db", 100, sda1=0)
    start("big", 900, sda1=0)
    sutrod.start()
    hold(sutrod, "/dev/sda1", floor="30M")


def test_partition_of_an_array_is_counted_at_the_array(
    machine: Machine, systemd: Systemd, sutrod: Sutrod
) -> None:
    """Not at the first of its disks."""
    machine.raid("md0", "9:0", "sda sdb", "raid0")
    machine.partition("md0", "md0p1", "259:1")
    db = systemd.start("db.service", 100)
    done = 0.0

    def read(seconds: float) -> None:
        nonlocal done
        done += seconds * 40 * MB
        count = "rbytes={} wbytes=0 rios=1 wios=0"
        lines = [
            f"{devno} time_ns={int(done * 10)} {count.format(int(done / 2))} wait_ns=0 queued=0\n"
            for devno in (DISK, "8:16")
        ]
        machine.write(f"/sys/fs/cgroup{db}/io.sutro.stat", "".join(lines))
        machine.write(f"/sys/fs/cgroup{db}/io.stat", f"9:0 {count.format(int(done))}\n")
        machine.write("/sys/class/block/md0p1/stat", f"1 0 {int(done) // 512} 0 0 0 0 0\n")

    sutrod.clock.loads.append(read)
    sutrod.start()
    hold(sutrod, "/dev/md0p1", floor="30M")
    sutrod.elapse(SETTLES_S)
    assert promise(sutrod, "db.service")["got"] == pytest.approx(40 * MB, rel=0.05)
