# SPDX-License-Identifier: LGPL-2.1-or-later
"""Disks of a fake machine that serve by weight, and units that read them.

The clock of the daemon is virtual: between two of its timers the disks divide their time among the
backlogged units, by the weights in their files, and move the counters that it samples.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import dbus
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
LATENCY = "io.sutro.latency"
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
        """The rate, in the next seconds, of the readers whose names begin with a prefix."""
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
        left = 1 - sum(self.reserve(reader) for reader in active if reader.shallow)
        for leaf in LEAVES:
            weights = [self.weight(reader, leaf) for reader in deep]
            for reader, weight in zip(deep, weights, strict=True):
                share = left * weight / sum(weights)
                reader.time_ns[leaf] += share * seconds * 1e9
                reader.bytes += share * seconds * self.speed
                reader.on[leaf] += share * seconds * self.speed
                reader.wait_ns += seconds * 1e9
        for reader in active:
            lines = [
                f"{devno} time_ns={int(reader.time_ns[leaf])} rbytes={int(reader.on[leaf])} "
                f"wbytes=0 rios={int(reader.on[leaf]) // 65536} wios=0 "
                f"wait_ns={int(reader.wait_ns)} pending_ns={int(reader.pending_ns)} "
                f"busy_ns={int(reader.pending_ns)} backlog_ns={int(reader.wait_ns)} "
                f"queued={0 if reader.shallow else 8}\n"
                for leaf, devno in LEAVES.items()
            ]
            whole = f"rbytes={int(reader.bytes)} wbytes=0 rios={int(reader.bytes) // 65536} wios=0"
            folder = f"/sys/fs/cgroup{reader.cgroup}"
            self.machine.write(f"{folder}/io.sutro.stat", "".join(lines))
            self.machine.write(f"{folder}/io.stat", f"{self.logical} {whole}\n")


def set_policy(sutrod: Sutrod, unit: str, lifetime: str = "runtime", **assignments: str) -> None:
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


def hold(
    sutrod: Sutrod,
    path: str = STRIPE,
    floor: str = "60M",
    lifetime: str = "runtime",
    seconds: float = SETTLES_S,
) -> None:
    """A floor of reads for db.service, until it is held."""
    set_policy(sutrod, "db.service", lifetime, ReadBandwidthMin=f"{path} {floor}")
    sutrod.until(lambda: state(sutrod, "db.service") == "held", seconds)


def crowd(systemd: Systemd, plant: Plant, running: bool = True) -> str:
    """db.service of weight 100 and four of weight 1000, all of them on the stripe."""
    db = systemd.start("db.service", 100)
    plant.add("db", db, running)
    for n in range(4):
        plant.add(f"big{n}", systemd.start(f"big{n}.service", 1000))
    return db


def divide(
    machine: Machine, sutrod: Sutrod, disks: Mapping[str, str], parts: Mapping[str, float]
) -> None:
    """Let each disk (name: number) serve 50 MB/s of reads, and each cgroup have a part of that."""
    done = 0.0

    def serve(seconds: float) -> None:
        nonlocal done
        done += seconds * 50 * MB
        for cgroup, part in {"": 1.0, "/system.slice": 1.0, **parts}.items():
            counts = f"rbytes={int(done * part)} wbytes=0 rios={int(done * part) // 65536} wios=0"
            text = "".join(f"{devno} {counts}\n" for devno in disks.values())
            machine.write(f"/sys/fs/cgroup{cgroup}/io.stat", text)
        busy_ms = 1000 + int(done / 50 / MB * 1000)
        for disk in disks:
            machine.write(f"/sys/class/block/{disk}/stat", f"0 0 0 0 0 0 0 0 0 {busy_ms} 0\n")
            machine.write(f"/sys/class/block/{disk}/inflight", "       64        0\n")

    sutrod.clock.loads.append(serve)
