# SPDX-License-Identifier: LGPL-2.1-or-later
"""Promises in the whole daemon, on a fake machine whose disks serve by weight.

The clock of the daemon is virtual: between two of its timers the disks divide their time among
the units that want it, by the weights in their files, and move the counters that it samples.
"""

import itertools
from dataclasses import dataclass, field
from typing import Any

import dbus
import pytest
from fakemachine import Machine, Sutrod, Systemd

STRIPE = "/dev/mapper/vg-db"
LEAVES = {"sda": "8:0", "sdb": "8:16"}
LOGICAL = "254:0"
MB = 1_000_000
# Of the daemon's clock, in which floors and targets are in force or reported as infeasible.
SETTLES_S = 4.0
RESERVES_S = 8.0
TICK_S = 0.25
# A floor is steered to this many times its value; by time that is reserved for it to a little more.
SETPOINT = 1.04
SETPOINT_RESERVED = 1.06
RESERVE = "io.sutro.reserve"
# Part of the device time that a shallow reader uses when it is alone.
SHALLOW = 0.5


@dataclass
class Reader:
    """A unit that reads the stripe as fast as it may; if shallow, one request at a time."""

    cgroup: str
    running: bool = True
    shallow: bool = False
    bytes: float = 0
    on: dict[str, float] = field(default_factory=lambda: dict.fromkeys(LEAVES, 0.0))
    time_ns: dict[str, float] = field(default_factory=lambda: dict.fromkeys(LEAVES, 0.0))
    wait_ns: float = 0
    pending_ns: float = 0


class Plant:
    """Two disks of 50 MB/s each under a stripe."""

    def __init__(self, machine: Machine, sutrod: Sutrod) -> None:
        self.machine = machine
        self.sutrod = sutrod
        self.readers: dict[str, Reader] = {}
        self.speed = 50 * MB
        self.logical = LOGICAL
        sutrod.clock.loads.append(self.serve)

    def add(self, name: str, cgroup: str, running: bool = True) -> Reader:
        """A reader, whose cgroup exists."""
        self.readers[name] = Reader(cgroup, running)
        return self.readers[name]

    def weight(self, reader: Reader, leaf: str) -> float:
        """The weight of a reader on a leaf, by its file."""
        lines = dict(line.split() for line in self.machine.weights(reader.cgroup))
        return float(lines.get(LEAVES[leaf], lines["default"]))

    def mbps(self, name: str, seconds: float) -> float:
        """The rate of the readers whose names begin so in the next seconds."""
        readers = [r for n, r in self.readers.items() if n.startswith(name)]
        before = sum(r.bytes for r in readers)
        self.sutrod.elapse(seconds)
        return (sum(r.bytes for r in readers) - before) / seconds / MB

    def reserve(self, reader: Reader) -> float:
        """The part of the time that is reserved for a reader on all leaves."""
        lines = dict(line.split() for line in self.machine.weights(reader.cgroup, RESERVE))
        return min(float(lines.get(devno, lines["default"])) for devno in LEAVES.values()) / 1000

    def serve(self, seconds: float) -> None:
        """Serve for some time and count it."""
        active = [reader for reader in self.readers.values() if reader.running]
        for reader in active:
            reader.pending_ns += seconds * 1e9
        for reader in [reader for reader in active if reader.shallow]:
            for leaf in LEAVES:
                share = SHALLOW * (self.reserve(reader) + 0.01)
                reader.time_ns[leaf] += share * seconds * 1e9
                reader.bytes += share * seconds * self.speed
                reader.on[leaf] += share * seconds * self.speed
        deep = [reader for reader in active if not reader.shallow]
        for leaf in LEAVES:
            weights = [self.weight(reader, leaf) for reader in deep]
            for reader, weight in zip(deep, weights, strict=True):
                share = weight / sum(weights)
                reader.time_ns[leaf] += share * seconds * 1e9
                reader.bytes += share * seconds * self.speed
                reader.on[leaf] += share * seconds * self.speed
                reader.wait_ns += seconds * 1e9
        for reader in active:
            lines = [
                f"{devno} time_ns={int(reader.time_ns[leaf])} rbytes={int(reader.on[leaf])} "
                f"wbytes=0 rios={int(reader.on[leaf]) // 65536} wios=0 "
                f"wait_ns={int(reader.wait_ns)} pending_ns={int(reader.pending_ns)} "
                f"idle_ns=0 queued={0 if reader.shallow else 8}\n"
                for leaf, devno in LEAVES.items()
            ]
            whole = f"rbytes={int(reader.bytes)} wbytes=0 rios={int(reader.bytes) // 65536} wios=0"
            folder = f"/sys/fs/cgroup{reader.cgroup}"
            self.machine.write(f"{folder}/io.sutro.stat", "".join(lines))
            self.machine.write(f"{folder}/io.stat", f"{self.logical} {whole}\n")


@pytest.fixture
def plant(machine: Machine, sutrod: Sutrod) -> Plant:
    """The disks, and no reader yet."""
    return Plant(machine, sutrod)


def say(sutrod: Sutrod, unit: str, lifetime: str = "runtime", **assignments: str) -> None:
    """SetPolicy."""
    pairs = dbus.Array(list(assignments.items()), signature="(ss)")
    sutrod.call("SetPolicy", unit, pairs, lifetime)


def promise(sutrod: Sutrod, unit: str) -> dict[str, Any]:
    """The one promise of a unit."""
    (one,) = [p for p in sutrod.call("ListPromises") if p["unit"] == unit]
    return dict(one)


def state(sutrod: Sutrod, unit: str) -> str:
    """The state of that promise; a little after SetPolicy it is there."""
    return "".join(p["state"] for p in sutrod.call("ListPromises") if p["unit"] == unit)


def hold(sutrod: Sutrod, path: str = STRIPE) -> None:
    """A floor of 60 MB/s for db.service, until it is held."""
    say(sutrod, "db.service", ReadBandwidthMin=f"{path} 60M")
    sutrod.until(lambda: state(sutrod, "db.service") == "held", SETTLES_S)


def crowd(systemd: Systemd, plant: Plant, running: bool = True) -> str:
    """db.service of weight 100 and four of weight 1000, all of them on the stripe."""
    db = systemd.start("db.service", 100)
    plant.add("db", db, running)
    for n in range(4):
        plant.add(f"big{n}", systemd.start(f"big{n}.service", 1000))
    return db


def test_floor_holds(machine: Machine, systemd: Systemd, sutrod: Sutrod, plant: Plant) -> None:
    db = crowd(systemd, plant)
    sutrod.start()
    assert plant.mbps("db", 1) < 4  # 100 of 4100 of 100 MB/s
    hold(sutrod)
    sutrod.elapse(1)
    assert plant.mbps("db", 1) == pytest.approx(SETPOINT * 60, rel=0.01)
    seen = promise(sutrod, "db.service")
    assert (seen["value"], seen["device"], seen["cause"]) == (60 * MB, "/dev/dm-0", "")
    assert "/run/sutro/policy.control/db.service.policy:" in seen["source"]
    for leaf in seen["leaves"]:
        assert leaf["share_needed"] == pytest.approx(0.6, abs=0.05)
    # Those under no policy have what systemd gave them.
    assert machine.weights("/system.slice/big0.service") == ["default 1000"]
    assert sutrod.property("ControlStepUSec") > 0
    assert "floors and targets kept: 1, last step of control: " in sutrod.call("Dump")
    # Gone with the promise.
    sutrod.call("ResetPolicy", "db.service", "runtime")
    sutrod.until(lambda: machine.weights(db) == ["default 100"])
    assert sutrod.call("ListPromises") == []
    assert sutrod.property("ControlStepUSec") == 0


def test_time_is_reserved_for_a_shallow_unit(
    machine: Machine, systemd: Systemd, sutrod: Sutrod, plant: Plant
) -> None:
    """No weight helps it. What is reserved follows its floor, and is gone with it."""
    db = crowd(systemd, plant)
    plant.readers["db"].shallow = True
    sutrod.start()
    say(sutrod, "db.service", ReadBandwidthMin=f"{STRIPE} 30M")
    sutrod.until(lambda: state(sutrod, "db.service") == "held", RESERVES_S)
    sutrod.elapse(15)
    assert plant.mbps("db", 2) == pytest.approx(SETPOINT_RESERVED * 30, rel=0.05)
    seen = promise(sutrod, "db.service")
    assert seen["reserve"] == pytest.approx(SETPOINT_RESERVED * 0.3 / SHALLOW, rel=0.1)
    for leaf in seen["leaves"]:
        # Half of it is not used.
        assert leaf["price"] == pytest.approx(seen["reserve"] * SHALLOW, rel=0.1)
    assert len(machine.weights(db, RESERVE)) == 3
    say(sutrod, "db.service", ReadBandwidthMin=f"{STRIPE} 60M")
    sutrod.until(lambda: state(sutrod, "db.service") == "limited", 4 * SETTLES_S)
    sutrod.call("ResetPolicy", "db.service", "runtime")
    sutrod.until(lambda: machine.weights(db, RESERVE) == ["8:0 0", "8:16 0", "default 0"])


def test_floor_raises_each_level_above_it(systemd: Systemd, sutrod: Sutrod, plant: Plant) -> None:
    """The levels fall back when the daemon stops."""
    slice_ = systemd.start("app.slice", 100)
    db = systemd.start("db.service", 100, slice=slice_)
    plant.add("slice", slice_)
    plant.add("db", db)
    plant.add("near", systemd.start("near.service", 1000, slice=slice_))
    plant.add("big", systemd.start("big.service", 1000))
    sutrod.start()
    say(sutrod, "db.service", ReadBandwidthMin=f"{STRIPE} 70M")
    for cgroup in (slice_, db):
        sutrod.until(lambda c=cgroup: any(w.startswith("8:0 ") for w in plant.machine.weights(c)))
    assert sutrod.stop() == 0
    assert plant.machine.weights(slice_) == plant.machine.weights(db) == ["default 100"]


def test_infeasible_is_told(systemd: Systemd, sutrod: Sutrod, plant: Plant) -> None:
    crowd(systemd, plant)
    sutrod.start()
    say(sutrod, "db.service", ReadBandwidthMin=f"{STRIPE} 90M", Importance="200")
    say(sutrod, "big0.service", ReadBandwidthMin=f"{STRIPE} 60M", Importance="100")
    sutrod.until(lambda: state(sutrod, "big0.service") == "infeasible", SETTLES_S)
    low = promise(sutrod, "big0.service")
    assert "need 1" in low["cause"] and "/dev/sd" in low["cause"]
    assert low["granted"] < 0.2
    sutrod.until(lambda: state(sutrod, "db.service") == "held", SETTLES_S)
    say(sutrod, "db.service", ReadBandwidthMin=f"{STRIPE} 20M")
    sutrod.until(lambda: state(sutrod, "big0.service") == "held", SETTLES_S)


def test_part_of_the_device(systemd: Systemd, sutrod: Sutrod, plant: Plant) -> None:
    """No rate until something is known of the device, then one that follows the device."""
    crowd(systemd, plant, running=False)
    sutrod.start()
    say(sutrod, "db.service", ReadBandwidthMin=f"{STRIPE} 12.5%")
    sutrod.until(lambda: state(sutrod, "db.service") == "unknown-capacity", SETTLES_S)
    seen = promise(sutrod, "db.service")
    assert (seen["value"], seen["percent"]) == (0, 12.5)
    assert "the capacity of /dev/dm-0 for requests of this unit is unknown" in seen["cause"]
    say(sutrod, "db.service", ReadBandwidthMin=f"{STRIPE} 30%")
    plant.readers["db"].running = True
    sutrod.until(lambda: state(sutrod, "db.service") == "held", SETTLES_S)
    sutrod.elapse(1)
    assert plant.mbps("db", 1) == pytest.approx(SETPOINT * 30, rel=0.02)

    for speed, falls in ((25 * MB, True), (50 * MB, False)):
        plant.speed, rates = speed, []
        for _ in range(int(SETTLES_S / TICK_S)):
            sutrod.elapse(TICK_S)
            rates.append(promise(sutrod, "db.service")["value"])
        assert rates == sorted(rates, reverse=falls)
        assert rates[-1] == pytest.approx(0.3 * 2 * speed, rel=0.01)
    # A new daemon knows it, and so does a changed floor.
    assert sutrod.stop() == 0
    plant.readers["db"].running = False
    sutrod.start()
    sutrod.elapse(1)
    assert promise(sutrod, "db.service")["value"] == pytest.approx(30 * MB, rel=0.01)
    say(sutrod, "db.service", ReadBandwidthMin=f"{STRIPE} 40%")
    sutrod.until(lambda: promise(sutrod, "db.service")["percent"] == 40)
    sutrod.elapse(1)
    assert promise(sutrod, "db.service")["value"] == pytest.approx(40 * MB, rel=0.01)


def test_floor_on_any_volume(systemd: Systemd, sutrod: Sutrod, plant: Plant) -> None:
    """It is about the volumes that the unit has used, except those that are named."""
    crowd(systemd, plant, running=False)
    sutrod.start()
    say(sutrod, "db.service", ReadBandwidthMin="any 60M")
    sutrod.until(lambda: state(sutrod, "db.service") == "idle")
    assert promise(sutrod, "db.service")["path"] == "any"
    plant.readers["db"].running = True
    sutrod.until(lambda: state(sutrod, "db.service") == "held", SETTLES_S)
    seen = promise(sutrod, "db.service")
    assert (seen["value"], seen["device"], seen["path"]) == (60 * MB, "/dev/dm-0", STRIPE)
    sutrod.elapse(1)
    assert plant.mbps("db", 1) == pytest.approx(SETPOINT * 60, rel=0.01)
    say(sutrod, "db.service", ReadBandwidthMin=f"{STRIPE} 20%")
    sutrod.until(lambda: promise(sutrod, "db.service")["value"] == 20 * MB, SETTLES_S)


def test_ceiling_target_and_weight_on_any_volume(
    machine: Machine, systemd: Systemd, sutrod: Sutrod
) -> None:
    a = systemd.start("a.service")
    most = "rbps=5000000 wbps=max riops=max wiops=max"
    lines = {devno: f"{devno} {most}" for devno in (LOGICAL, "8:32")}
    stat = f"{LOGICAL} rbytes=1 wbytes=0\n8:0 rbytes=1 wbytes=0\n8:48 rbytes=0 wbytes=0\n"
    machine.write(f"/sys/fs/cgroup{a}/io.stat", stat)
    sutrod.start()
    say(sutrod, "a.service", ReadBandwidthMax="any 5M", LatencyTarget="any 5ms", Weight="any 700")
    sutrod.until(lambda: machine.weights(a, "io.max") == [lines[LOGICAL]])
    sutrod.until(lambda: machine.weights(a) == ["default 700"])
    machine.write(f"/sys/fs/cgroup{a}/io.stat", stat + "8:32 rbytes=0 wbytes=7\n")
    sutrod.until(lambda: machine.weights(a, "io.max") == list(lines.values()))
    found = [(p["key"], p["device"]) for p in sutrod.call("ListPromises")]
    keys, devices = ("ReadBandwidthMax", "LatencyTarget"), ("/dev/dm-0", "/dev/sdc")
    assert found == [(key, device) for key in keys for device in devices]
    say(sutrod, "a.service", ReadBandwidthMax=f"{STRIPE} infinity")
    sutrod.until(lambda: machine.weights(a, "io.max") == [lines["8:32"]])
    said = [e["value"] for e in sutrod.call("GetPolicy", "a.service")]
    assert said == ["any 5M", "any 5ms", "700", f"{STRIPE} infinity"]


def test_killed_and_started_again(systemd: Systemd, sutrod: Sutrod, plant: Plant) -> None:
    db = crowd(systemd, plant)
    sutrod.start()
    say(sutrod, "db.service", "persistent", ReadBandwidthMin=f"{STRIPE} 60M")
    sutrod.until(lambda: state(sutrod, "db.service") == "held", SETTLES_S)
    sutrod.elapse(6)  # The daemon saves costs now and then.
    sutrod.stop(9)
    before = plant.readers["db"].bytes
    plant.serve(1)
    assert plant.readers["db"].bytes - before > 0.97 * 60 * MB
    sutrod.start()
    assert plant.mbps("db", 2) > 0.97 * 60
    assert any(line.startswith("8:0 ") for line in plant.machine.weights(db))


def needed(sutrod: Sutrod, unit: str) -> float:
    """The share of a disk that the one promise of a unit needs; nothing before the next tick."""
    sutrod.elapse(2 * TICK_S)
    return max(leaf["share_needed"] for leaf in promise(sutrod, unit)["leaves"])


def test_new_unit_begins_with_what_one_like_it_cost(
    machine: Machine, systemd: Systemd, sutrod: Sutrod, plant: Plant
) -> None:
    """The same unit, another instance of its template, another unit of the same statement."""
    policy = "[Match]\nUnit={}\n[X-Sutro]\nReadBandwidthMin={}\n"
    machine.write(
        "/etc/sutro/policy.d/a.policy", policy.format("job@*.service run-*.service", f"{STRIPE} 5M")
    )
    machine.write("/etc/sutro/policy.d/b.policy", policy.format("other.service", f"{STRIPE} 5M"))
    crowd(systemd, plant)
    # It lives for less time than the daemon takes from one save to the next.
    plant.add("job", systemd.start("job@1.service", 100))
    sutrod.start()
    sutrod.until(lambda: state(sutrod, "job@1.service") == "held", SETTLES_S)
    plant.readers.pop("job")
    systemd.vanish("job@1.service")
    systemd.start("other.service", 100)
    sutrod.until(lambda: state(sutrod, "other.service") == "idle")
    # Nothing is known of it, and nothing is set aside.
    assert needed(sutrod, "other.service") == 0
    for unit in ("job@1.service", "job@2.service", "run-u7.service"):
        cgroup = systemd.start(unit, 100)
        sutrod.until(lambda u=unit: state(sutrod, u) == "idle")
        assert needed(sutrod, unit) == pytest.approx(0.05, rel=0.05)
        assert any(line.startswith("8:0 ") for line in machine.weights(cgroup))
    # A new daemon knows it, too; a file with lines of another version is no harm.
    assert sutrod.stop() == 0
    with machine.at("/run/sutro/learnt").open("a") as file:
        file.write("ReadBandwidthMin 8:0 1e-9 /system.slice/db.service\t/srv\nnonsense\n")
    sutrod.start()
    assert needed(sutrod, "job@2.service") == pytest.approx(0.05, rel=0.05)


def test_costs_are_forgotten(
    machine: Machine, systemd: Systemd, sutrod: Sutrod, plant: Plant
) -> None:
    """After a week without a measurement, and with the disk that had the number."""
    now_us = 10**9
    seq = int(machine.at("/sys/class/block/sda/diskseq").read_text())

    def line(unit: str, age_days: float, seq: int = seq) -> str:
        usec = int(now_us - age_days * 86400e6) + 7 * 86400 * 10**6
        return f"ReadBandwidthMin {LOGICAL} 8:0/{seq} 1e-8 {usec} {unit}\t/a:1\n"

    sutrod.clock.now_ns += 7 * 86400 * 10**9
    swapped = line("swapped.service", 1, seq + 1000)
    lines = line("old.service", 7.1) + line("new.service", 6.9) + swapped
    machine.write("/run/sutro/learnt", lines)
    for unit in ("old.service", "new.service", "swapped.service"):
        systemd.start(unit, 100)
    plant.add("big", systemd.start("big.service", 1000))
    sutrod.start()
    for unit, share in (("old.service", 0), ("new.service", 0.05), ("swapped.service", 0)):
        say(sutrod, unit, ReadBandwidthMin=f"{STRIPE} 5M")
        sutrod.until(lambda u=unit: state(sutrod, u) == "idle")
        assert needed(sutrod, unit) == pytest.approx(share)


def test_section_of_a_unit_file(systemd: Systemd, sutrod: Sutrod, plant: Plant) -> None:
    file = "/etc/systemd/system/db.service"
    plant.machine.write(
        file,
        f"[Service]\nExecStart=/bin/db\n[X-Sutro]\nReadBandwidthMin={STRIPE} 60M\nImportance=7\n",
    )
    systemd.start("db.service", 100, fragment=file)
    sutrod.start()
    seen = promise(sutrod, "db.service")
    assert (seen["value"], seen["importance"]) == (60 * MB, 7)
    assert seen["source"].endswith(f"{file}:4")


def test_weight_and_class_of_a_policy(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    a = systemd.start("a.service", 200, [(STRIPE, 300)])
    sutrod.start()
    say(sutrod, "a.service", Weight="700", Class="idle")
    sutrod.until(lambda: machine.weights(a) == ["8:0 300", "8:16 300", "default 700"])
    sutrod.until(lambda: machine.weights(a, "io.sutro.class") == ["default idle"])
    say(sutrod, "a.service", Weight=f"{STRIPE} 50", Class="")
    sutrod.until(lambda: machine.weights(a) == ["8:0 50", "8:16 50", "default 700"])
    sutrod.until(lambda: machine.weights(a, "io.sutro.class") == ["default be"])
    explained = sutrod.call("Explain", "a.service", STRIPE)
    assert "Weight=" in explained["leaves"][0]["reason"]


def test_ceiling(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    a = systemd.start("a.service", 200)
    machine.write(f"/sys/fs/cgroup{a}/io.max", f"{LOGICAL} rbps=max wbps=9 riops=max wiops=max\n")
    before = machine.weights(a, "io.max")
    sutrod.start()
    say(sutrod, "a.service", ReadBandwidthMax=f"{STRIPE} 5M", WriteIOPSMax=f"{STRIPE} 200")
    line = f"{LOGICAL} rbps=5000000 wbps=max riops=max wiops=200"
    sutrod.until(lambda: machine.weights(a, "io.max") == [line])
    say(sutrod, "a.service", WriteBandwidthMax=f"{STRIPE} 6M", ReadIOPSMax=f"{STRIPE} 100")
    line = f"{LOGICAL} rbps=5000000 wbps=6000000 riops=100 wiops=200"
    sutrod.until(lambda: machine.weights(a, "io.max") == [line])
    sutrod.call("ResetPolicy", "a.service", "runtime")
    sutrod.until(lambda: machine.weights(a, "io.max") == before)
    # A stop gives everything back, too.
    say(sutrod, "a.service", ReadBandwidthMax=f"{STRIPE} 5M")
    sutrod.until(lambda: machine.weights(a, "io.max") != before)
    assert sutrod.stop() == 0
    assert machine.weights(a, "io.max") == before


def test_each_floor_has_its_counter(systemd: Systemd, sutrod: Sutrod, plant: Plant) -> None:
    crowd(systemd, plant)
    rates = {"rbytes": 7 * MB, "wbytes": 5 * MB, "rios": 300, "wios": 200}
    sutrod.start()
    keys = ("ReadBandwidthMin", "WriteBandwidthMin", "ReadIOPSMin", "WriteIOPSMin")
    say(sutrod, "db.service", **dict.fromkeys(keys, f"{STRIPE} 100"))

    def count(_seconds: float) -> None:
        seconds = sutrod.clock.now_ns / 1e9 - 1000
        line = " ".join(f"{name}={int(rate * seconds)}" for name, rate in rates.items())
        plant.machine.write("/sys/fs/cgroup/system.slice/db.service/io.stat", f"{LOGICAL} {line}\n")

    sutrod.clock.loads.append(count)
    sutrod.elapse(SETTLES_S)
    got = {p["key"]: int(p["got"]) for p in sutrod.call("ListPromises")}
    wanted = dict(zip(keys, rates.values(), strict=True))
    assert got == pytest.approx(wanted, rel=0.01)


def test_history_and_usage(systemd: Systemd, sutrod: Sutrod, plant: Plant) -> None:
    crowd(systemd, plant)
    sutrod.start()
    hold(sutrod)

    def rows() -> list[Any]:
        return list(sutrod.call("History", "db.service", "ReadBandwidthMin", STRIPE))

    sutrod.until(lambda: len(rows()) >= 3)
    sutrod.until(lambda: rows()[-1][1] == pytest.approx(SETPOINT * 60 * MB, rel=0.001), SETTLES_S)
    assert rows()[-1][2] == 60 * MB

    def usage() -> dict[str, Any]:
        return {row["unit"]: row for row in sutrod.call("ListUsage") if row["unit"]}["db.service"]

    assert usage()["device"] == "/dev/dm-0"
    sutrod.until(
        lambda: usage()["rbytes_per_s"] == pytest.approx(SETPOINT * 60 * MB, rel=0.001), SETTLES_S
    )
    assert sutrod.error("History", "db.service", "ReadIOPSMin", STRIPE)[0] == "NoSuchPromise"
    assert sutrod.error("History", "no.service", "ReadIOPSMin", STRIPE)[0] == "NoSuchUnit"


def test_full_queue_on_the_way(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    """A loop device with all slots taken: no leaf sees that the unit waits, and yet it is said."""
    machine.mount("/srv", "8:0", "ext4", "/dev/sda")
    machine.write("/srv/image", "")
    machine.disk("loop0", "7:0")
    block = "/sys/devices/virtual/block/loop0"
    machine.write(f"{block}/loop/backing_file", "/srv/image\n")
    machine.write(f"{block}/queue/nr_requests", "128\n")
    machine.write(f"{block}/inflight", "      120        8\n")
    db = systemd.start("db.service", 100)
    sutrod.start()
    say(sutrod, "db.service", ReadBandwidthMin="/dev/loop0 60M")

    sums = itertools.count(MB, MB)

    def read(_seconds: float) -> None:
        done = next(sums)
        stat = f"time_ns={done * 10} rbytes={done} wbytes=0 rios=1 wios=0 wait_ns=0 queued=0\n"
        machine.write(f"/sys/fs/cgroup{db}/io.sutro.stat", f"8:0 {stat}")
        machine.write(f"/sys/fs/cgroup{db}/io.stat", f"7:0 rbytes={done} wbytes=0 rios=1 wios=0\n")

    sutrod.clock.loads.append(read)
    sutrod.until(lambda: state(sutrod, "db.service") == "unweighted", SETTLES_S)
    assert promise(sutrod, "db.service")["cause"] == (
        'the scheduler none of /dev/loop0 has no weights; run "sutroctl use /dev/loop0"'
    )
    machine.write(f"{block}/inflight", "        3        0\n")
    sutrod.until(lambda: state(sutrod, "db.service") != "unweighted", SETTLES_S)


def test_targets_without_bpf(systemd: Systemd, sutrod: Sutrod, plant: Plant) -> None:
    """Reads are measured at the leaves; what cannot be measured is reported, with the reason."""
    crowd(systemd, plant)
    sutrod.start()
    say(sutrod, "db.service", LatencyTarget=f"{STRIPE} 5ms P99")
    sutrod.until(lambda: state(sutrod, "db.service") == "settling", SETTLES_S)
    told = promise(sutrod, "db.service")
    assert (told["value"], told["percentile"], told["measured_at"]) == (5000, 99, "leaves")
    for key, op in (("WriteLatencyTarget", "writes"), ("FsyncLatencyTarget", "fsyncs")):
        sutrod.call("ResetPolicy", "db.service", "runtime")
        say(sutrod, "db.service", **{key: f"{STRIPE} 5ms"})
        sutrod.until(lambda: state(sutrod, "db.service") == "unobserved", SETTLES_S)
        cause = promise(sutrod, "db.service")["cause"]
        assert cause.startswith(f"latencies of {op} are measured by BPF only")
        assert "sutrod(8)" in cause
    assert sutrod.log().count("BPF is not available") == 1


def test_target_on_a_leaf_without_sutro(
    machine: Machine, systemd: Systemd, sutrod: Sutrod, plant: Plant
) -> None:
    """The cause has the leaf and the command that changes its scheduler."""
    crowd(systemd, plant)
    machine.set_scheduler("sdb", "none")
    sutrod.start()
    say(sutrod, "db.service", LatencyTarget=f"{STRIPE} 5ms")
    sutrod.until(lambda: state(sutrod, "db.service") == "unweighted", SETTLES_S)
    assert promise(sutrod, "db.service")["cause"] == (
        "the scheduler none of /dev/sdb counts no device time, so the target is not kept; "
        f'run "sutroctl use {STRIPE}"'
    )


def test_mount_point(machine: Machine, systemd: Systemd, sutrod: Sutrod, plant: Plant) -> None:
    machine.mount("/srv", LOGICAL, "ext4", "/dev/mapper/vg-db")
    machine.write("/srv/data/file", "")
    crowd(systemd, plant)
    sutrod.start()
    hold(sutrod, "/srv/data")
    seen = promise(sutrod, "db.service")
    assert (seen["path"], seen["device"]) == ("/srv/data", "/dev/dm-0")


def test_loop_on_a_file_system(systemd: Systemd, sutrod: Sutrod, plant: Plant) -> None:
    plant.machine.mount("/srv", LOGICAL, "ext4", "/dev/mapper/vg-db")
    plant.machine.write("/srv/image", "")
    plant.machine.disk("loop0", "7:0")
    plant.machine.write("/sys/devices/virtual/block/loop0/loop/backing_file", "/srv/image\n")
    plant.logical = "7:0"
    crowd(systemd, plant)
    sutrod.start()
    hold(sutrod, "/dev/loop0")
    assert {leaf["leaf"] for leaf in promise(sutrod, "db.service")["leaves"]} == {
        "/dev/loop0",
        "/dev/sda",
        "/dev/sdb",
    }


def test_partition(machine: Machine, systemd: Systemd, sutrod: Sutrod, plant: Plant) -> None:
    """It has no line in io.stat, and is its disk there."""
    machine.partition("sda", "sda1", "8:1")
    db = crowd(systemd, plant)
    sutrod.start()
    say(sutrod, "db.service", ReadBandwidthMin="/dev/sda1 30M")
    sutrod.until(lambda: state(sutrod, "db.service") == "held", SETTLES_S)

    def needed() -> float:
        (leaf,) = promise(sutrod, "db.service")["leaves"]
        return leaf["share_needed"]

    sutrod.until(lambda: needed() == pytest.approx(0.6, abs=0.05), SETTLES_S)
    # The other disk is nobody's promise.
    assert [line.split()[0] for line in machine.weights(db)] == ["8:0", "default"]


def test_path_that_appears_later(systemd: Systemd, sutrod: Sutrod, plant: Plant) -> None:
    crowd(systemd, plant)
    sutrod.start()
    say(sutrod, "db.service", ReadBandwidthMin="/dev/mapper/vg-late 60M")
    sutrod.until(lambda: state(sutrod, "db.service") == "unresolved")
    assert promise(sutrod, "db.service")["leaves"] == []
    plant.logical = "254:7"
    plant.machine.stripe("dm-7", "254:7", "sda sdb", "vg-late")
    sutrod.call("Reload")
    sutrod.until(lambda: state(sutrod, "db.service") == "held", SETTLES_S)
    # And gone again: with it goes what was asked for it.
    plant.machine.at("/dev/mapper/vg-late").unlink()
    plant.machine.at("/sys/class/block/dm-7").unlink()
    sutrod.call("Reload")
    sutrod.until(lambda: state(sutrod, "db.service") == "unresolved")
    sutrod.until(
        lambda: plant.machine.weights("/system.slice/db.service") == ["default 100"], SETTLES_S
    )


def test_weight_written_by_hand(systemd: Systemd, sutrod: Sutrod, plant: Plant) -> None:
    db = crowd(systemd, plant)
    sutrod.start()
    hold(sutrod)
    plant.machine.write(f"/sys/fs/cgroup{db}/io.sutro.weight", "default 100\n8:0 1\n8:16 1\n")
    sutrod.until(lambda: "8:0 1" not in plant.machine.weights(db))
    sutrod.until(lambda: "8:16 1" not in plant.machine.weights(db))


def test_own_writes_ask_nothing(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    """Weights of iocost are written to io.weight, which systemd writes, too, and is asked about."""
    machine.set_scheduler("sda", "none")
    machine.write("/sys/fs/cgroup/io.cost.qos", "8:0 enable=1 ctrl=auto\n")
    db = systemd.start("db.service", 100)
    big = systemd.start("big.service", 1000)
    sutrod.start()
    say(sutrod, "db.service", ReadBandwidthMin="/dev/sda 60M")
    done = 0.0

    def serve(seconds: float) -> None:
        """The unit db reads a tenth, big the rest."""
        nonlocal done
        done += seconds * 50 * MB
        for cgroup, part in (("", 1.0), ("/system.slice", 1.0), (db, 0.1), (big, 0.9)):
            text = f"8:0 rbytes={int(done * part)} wbytes=0 rios={int(done) // MB} wios=0\n"
            machine.write(f"/sys/fs/cgroup{cgroup}/io.stat", text)
        busy_ms = 1000 + int(done / 50 / MB * 1000)
        machine.write("/sys/class/block/sda/stat", f"0 0 0 0 0 0 0 0 0 {busy_ms} 0\n")

    def lines() -> list[str]:
        """The weights that the daemon makes of it."""
        return [line for line in machine.weights(db, "io.weight") if line.startswith("8:0 ")]

    sutrod.clock.loads.append(serve)
    sutrod.until(lambda: bool(lines()), SETTLES_S)
    first = lines()
    sutrod.until(lambda: lines() != first, SETTLES_S)
    sutrod.settle()
    question = f"{db}: io.weight was written, asking about it."
    assert question not in sutrod.log()
    systemd.change("db.service", 300)
    sutrod.until(lambda: question in sutrod.log())
    explained = sutrod.call("Explain", "db.service", "")
    assert explained["weight"] == 300


def test_unit_goes_and_comes(systemd: Systemd, sutrod: Sutrod, plant: Plant) -> None:
    crowd(systemd, plant)
    sutrod.start()
    for _ in range(3):
        hold(sutrod)
        reader = plant.readers.pop("db")
        systemd.vanish("db.service")
        sutrod.until(lambda: sutrod.call("ListPromises") == [])
        assert sutrod.error("History", "db.service", "ReadBandwidthMin", STRIPE)[0] == "NoSuchUnit"
        assert systemd.start("db.service", 100) == reader.cgroup
        plant.add("db", reader.cgroup)


def test_killed_with_a_ceiling(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    """The next daemon finds it in force and leaves it so, also before systemd answers."""
    a = systemd.start("a.service", 200)
    sutrod.start()
    say(sutrod, "a.service", "persistent", ReadBandwidthMax=f"{STRIPE} 5M", Class="idle")
    line = f"{LOGICAL} rbps=5000000 wbps=max riops=max wiops=max"
    sutrod.until(lambda: machine.weights(a, "io.max") == [line])
    sutrod.until(lambda: machine.weights(a, "io.sutro.class") == ["default idle"])
    sutrod.stop(9)
    before = machine.writes()
    sutrod.start()
    assert machine.writes() == before
    sutrod.call("ResetPolicy", "a.service", "persistent")
    sutrod.until(lambda: machine.weights(a, "io.max") == [])
    sutrod.until(lambda: machine.weights(a, "io.sutro.class") == ["default be"])


def test_refusal_counts_for_one_file(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    """A refused io.max hides no failure of io.sutro.class and stops no repair of a weight."""
    a = systemd.start("a.service", 200)
    sutrod.start()
    machine.write("/faults", "io.max fail io.sutro.class fail\n")
    say(sutrod, "a.service", ReadBandwidthMax=f"{STRIPE} 5M", Class="idle")
    sutrod.until(lambda: "to io.max: Input/output error" in sutrod.log())
    sutrod.settle()
    assert "to io.sutro.class: Input/output error" in sutrod.log()
    assert promise(sutrod, "a.service")["cause"].endswith("for io.max: Input/output error")
    machine.write(f"/sys/fs/cgroup{a}/io.sutro.weight", "default 5\n")
    sutrod.until(lambda: machine.weights(a) == ["default 200"])


def test_ceiling_that_the_kernel_refuses(
    machine: Machine, systemd: Systemd, sutrod: Sutrod
) -> None:
    """What was not written is not given back, and what is too large for io.max is no limit."""
    a = systemd.start("a.service", 200)
    sutrod.start()
    machine.fault("io.max", "fail")
    say(sutrod, "a.service", ReadBandwidthMax=f"{STRIPE} 5M")
    sutrod.until(lambda: "io.max" in sutrod.log())
    sutrod.call("ResetPolicy", "a.service", "runtime")
    sutrod.until(lambda: sutrod.call("GetPolicy", "a.service") == [])
    machine.write("/faults", "")
    # More IOPS than the kernel can count are no limit, and nothing to complain about.
    say(sutrod, "a.service", WriteIOPSMax=f"{STRIPE} 5G")
    sutrod.until(lambda: len(sutrod.call("ListPromises")) == 1)
    sutrod.elapse(1)
    assert machine.at("/run/sutro/ceilings").read_text() == ""
    assert len([line for line in machine.writes() if "io.max" in line]) == 1
    assert machine.weights(a, "io.max") == []
