#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Usage: bench_governor.py [UNITS LEAVES WIDTH USES ACTIVE FLOORS SECONDS]

What floors cost. The daemon keeps floors for FLOORS units on a fake machine with UNITS units and
LEAVES sutro leaves, which stripes over WIDTH of them share. Each unit uses USES of the stripes and
has a floor on each, and ACTIVE units read them now, so that io.sutro.active has ACTIVE * USES *
WIDTH lines, as the kernel writes it. Prints one line: CPU time of the daemon in parts of its
virtual time, its memory, its steps of control.

The numbers lack the cost of sysfs and cgroupfs (the files are in /tmp), and what a write of a
weight costs there. They include kernelfiles.c, which makes the weight files behave like the
kernel's, and virtualclock.c.
"""

from __future__ import annotations

import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from fakemachine import STEP_S, Bus, Machine, Sutrod, Systemd

WARM_UP_STEPS = 16
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass
class Setup:
    """What the command line sets."""

    units: int = 1000
    leaves: int = 16
    width: int = 4
    uses: int = 1
    active: int = 100
    floors: int = 50
    seconds: int = 10

    def volumes_of(self, unit: int) -> list[int]:
        """The stripes that a unit uses."""
        count = self.leaves // self.width
        return [(unit + n) % count for n in range(self.uses)]


class Load:
    """The counters of the units that read; all numbers keep their width, so no file shrinks."""

    def __init__(self, setup: Setup, machine: Machine, inodes: list[int]) -> None:
        self.setup = setup
        self.inodes = inodes
        self.usec = 0
        folder = machine.at("/sys/fs/cgroup")
        self.active = self.hidden(machine, folder / "io.sutro.active", "active")
        self.stats = [
            self.hidden(machine, folder / f"system.slice/u{unit:05}.service/io.stat", str(unit))
            for unit in range(min(setup.floors, setup.active))
        ]

    def hidden(self, machine: Machine, path: Path, name: str) -> Path:
        """Another name of a file, whose writes wake no watcher of the cgroup, as the kernel's."""
        machine.write(f"/counters/{name}", "")
        path.unlink(missing_ok=True)
        os.link(machine.at(f"/counters/{name}"), path)
        return machine.at(f"/counters/{name}")

    def noisy(self, number: int, unit: int) -> int:
        """A tenth up and down, so that weights have to follow."""
        return number + number // 10 * ((self.usec // 250000 * 7 + unit * 13) % 5) // 5

    def serve(self, seconds: float) -> None:
        """Count what was read in some time."""
        s = self.setup
        self.usec += round(seconds * 1e6)
        volumes = s.leaves // s.width
        share_ns, ios = self.usec * 1000 * volumes // s.uses // s.active, self.usec // 100
        rest = (
            f"wbytes=0 rios={ios:010} wios=0 wait_ns={self.usec * 8000:014} idle_ns=0 queued=8 "
            f"rlat=0,0,0,{ios // 2:07},{ios // 2:07},0,0,0,0,0,0,0\n"
        )
        self.active.write_text(
            "".join(
                f"8:{16 * leaf} {self.inodes[unit]} time_ns={self.noisy(share_ns, unit):014} "
                f"rbytes={self.noisy(self.usec * 20, unit):014} {rest}"
                for unit in range(s.active)
                for volume in s.volumes_of(unit)
                for leaf in range(volume * s.width, (volume + 1) * s.width)
            )
        )
        for unit, file in enumerate(self.stats):
            done = self.noisy(self.usec * 20, unit) * s.width
            file.write_text(
                "".join(
                    f"254:{volume} rbytes={done:014} wbytes=0 rios={ios:010} wios=0\n"
                    for volume in s.volumes_of(unit)
                )
            )


def make(setup: Setup, machine: Machine, systemd: Systemd) -> Load:
    """Leaves, stripes, units and their floors."""
    for leaf in range(setup.leaves):
        machine.disk(f"sd{leaf:02}", f"8:{16 * leaf}", "sutro")
    for volume in range(setup.leaves // setup.width):
        slaves = (f"sd{volume * setup.width + leaf:02}" for leaf in range(setup.width))
        machine.stripe(f"dm-{volume}", f"254:{volume}", " ".join(slaves), f"vg-v{volume}")
    inodes = []
    for unit in range(setup.units):
        name = f"u{unit:05}.service"
        inodes.append(machine.at("/sys/fs/cgroup" + systemd.start(name)).stat().st_ino)
        if unit < setup.floors:
            floors = [f"ReadBandwidthMin=/dev/mapper/vg-v{v} 10M" for v in setup.volumes_of(unit)]
            text = "\n".join(["[Match]", f"Unit={name}", "[X-Sutro]", *floors, ""])
            machine.write(f"/etc/sutro/policy.d/u{unit:05}.policy", text)
    return Load(setup, machine, inodes)


def cpu_s(pid: int) -> float:
    """CPU time of a process, in and out of the kernel."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def memory_mib(pid: int) -> float:
    """Resident memory of a process."""
    (line,) = (x for x in Path(f"/proc/{pid}/status").open() if x.startswith("VmRSS:"))
    return int(line.split()[1]) / 1024


def measure(setup: Setup, sutrod: Sutrod) -> str:
    """The line of results."""

    def step_ms() -> float:
        sutrod.clock.elapse(STEP_S)
        return float(sutrod.property("ControlStepUSec")) / 1e3

    # Until all units are known and there are samples.
    warm = [step_ms() for _ in range(WARM_UP_STEPS)]
    while not warm[-1]:
        warm.append(step_ms())
    assert sutrod.process
    began_s = cpu_s(sutrod.process.pid)
    steps = [step_ms() for _ in range(round(setup.seconds / STEP_S))]
    cpu = (cpu_s(sutrod.process.pid) - began_s) / setup.seconds
    lines = setup.active * setup.uses * setup.width
    return (
        f"units {setup.units} leaves {setup.leaves} lines {lines} "
        f"floors {setup.floors * setup.uses}: cpu {cpu:.2%}, "
        f"rss {memory_mib(sutrod.process.pid):.1f} MiB, "
        f"step mean {sum(steps) / len(steps):.2f} ms, most {max(steps):.2f} ms"
    )


def main(numbers: list[str]) -> None:
    """Make the machine, run the daemon, print what it cost."""
    setup = Setup(*map(int, numbers))
    assert setup.width <= setup.leaves and 0 < setup.active <= setup.units
    assert setup.uses <= setup.leaves // setup.width and setup.floors <= setup.units
    bus = Bus()
    try:
        with tempfile.TemporaryDirectory() as folder:
            machine = Machine(Path(folder).resolve() / "machine")
            machine.cgroup("/init.scope")
            machine.cgroup("/system.slice")
            sutrod = Sutrod(bus, machine, Path(folder))
            sutrod.clock.loads.append(make(setup, machine, Systemd(bus, machine)).serve)
            sutrod.start()
            print(measure(setup, sutrod))
            assert sutrod.stop() == 0
    finally:
        bus.stop()


if __name__ == "__main__":
    main(sys.argv[1:])
