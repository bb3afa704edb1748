# SPDX-License-Identifier: LGPL-2.1-or-later
"""sutrod on a fake machine while a user attacks it (user.py), by the clock of the host.

victim.service is a unit of the administrator on two leaves. Meanwhile its IOWeight= is changed
every PERIOD_S, as systemctl does. Metrics:

    setpoint_ms   from a write of io.weight to that of the weight in force, the longest of all
    kept          weight in force in the end, over that which the administrator set
    cpu_percent   CPU time of sutrod, of one CPU; its child processes included
    rss_mib       its largest memory
    steps_per_s   calls or changes of the user
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from fakemachine import Bus, Machine, Sutrod, Systemd
from rig.result import Goal, Result

from bench.attacks import user
from bench.judge import OURS, Say

# The machine: units, and the leaves of a stripe.
UNITS = 300
VICTIM = "victim.service"
BOX = "user-nobody.service"
PERIOD_S = 0.5
# Longer than any goal.
PATIENCE_S = 20.0
FIRST_WEIGHT = 200
TICKS = os.sysconf("SC_CLK_TCK")


@contextmanager
def daemon() -> Iterator[tuple[Machine, Systemd, Sutrod, str]]:
    """A running daemon with units, and the cgroup of the victim."""
    with tempfile.TemporaryDirectory(prefix="sutro-attacks-") as folder:
        Path(folder).chmod(0o755)
        machine, bus = Machine(Path(folder).resolve() / "machine"), Bus()
        machine.disk("sda", "8:0", "sutro")
        machine.disk("sdb", "8:16", "sutro")
        machine.stripe("dm-0", "254:0", "sda sdb", "vg-db")
        machine.cgroup("/init.scope")
        machine.cgroup("/system.slice")
        systemd = Systemd(bus, machine)
        sutrod = Sutrod(bus, machine, Path(folder))
        try:
            # polkit refuses the user.
            bus.allow(False)
            for number in range(UNITS):
                systemd.start(f"u{number}.service")
            victim = systemd.start(VICTIM, FIRST_WEIGHT)
            sutrod.start(SUTRO_CLOCK="")
            yield machine, systemd, sutrod, victim
        finally:
            sutrod.end()
            bus.stop()


def box_of(machine: Machine, systemd: Systemd, is_unit: bool) -> Path:
    """The directory of a cgroup that belongs to the user: of a unit, or below that of a unit."""
    cgroup = systemd.start(BOX, 100)
    if not is_unit:
        cgroup += "/box"
        machine.cgroup(cgroup)
    folder = machine.at(f"/sys/fs/cgroup{cgroup}")
    # The daemon has seen the cgroup before the user owns it.
    time.sleep(PERIOD_S)
    for path in (folder, *folder.iterdir()):
        os.chown(path, user.NOBODY, user.NOBODY)
    return folder


def cpu_s(sutrod: Sutrod) -> float:
    """CPU time of the daemon and of those of its children that have ended."""
    assert sutrod.process
    words = Path(f"/proc/{sutrod.process.pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, words[11:15])) / TICKS


def rss_mib(sutrod: Sutrod) -> float:
    assert sutrod.process
    text = Path(f"/proc/{sutrod.process.pid}/status").read_text()
    return int(text.partition("VmHWM:")[2].split()[0]) / 2**10


def passed_s(condition: Callable[[], bool]) -> float:
    """Wait for a condition; the seconds until it is true."""
    begin_s = time.monotonic()
    while not condition() and time.monotonic() < begin_s + PATIENCE_S:
        time.sleep(0.001)
    return time.monotonic() - begin_s


def is_in_force(machine: Machine, cgroup: str, weight: int) -> bool:
    """Does the elevator have this weight?"""
    return machine.weights(cgroup) == [f"default {weight}"]


def setpoints_s(
    machine: Machine, systemd: Systemd, cgroup: str, seconds: float
) -> tuple[list[float], int]:
    """How long each change of a weight takes; and the last weight."""
    found, weight = [], FIRST_WEIGHT
    end_s = time.monotonic() + seconds
    while time.monotonic() < end_s:
        weight = weight % 1000 + 37
        due_s = time.monotonic() + PERIOD_S
        systemd.change(VICTIM, weight)
        found.append(passed_s(partial(is_in_force, machine, cgroup, weight)))
        time.sleep(max(0.0, due_s - time.monotonic()))
    return found, weight


def attacked(name: str, seconds: float, goals: tuple[Goal, ...], say: Say) -> list[Result]:
    """The results of an attack."""
    with daemon() as (machine, systemd, sutrod, victim):
        folder = box_of(machine, systemd, name in user.BY_UNIT)
        command = [sys.executable, "-m", "bench.attacks.user", name, str(folder)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout
            if process.stdout.readline() != "ready\n":
                raise RuntimeError(f"{name}: the attack does not begin")
            say(f"{name}: attack for {seconds:g} s")
            begin_s, before_s = time.monotonic(), cpu_s(sutrod)
            delays_s, weight = setpoints_s(machine, systemd, victim, seconds)
            elapsed_s, used_s = time.monotonic() - begin_s, cpu_s(sutrod) - before_s
            process.terminate()
            steps = int(process.stdout.read() or 0)
        in_force = int(machine.weights(victim)[0].removeprefix("default "))
        values = {
            "setpoint_ms": 1e3 * max(delays_s), "kept": in_force / weight,
            "cpu_percent": 100 * used_s / elapsed_s, "rss_mib": rss_mib(sutrod),
            "steps_per_s": steps / elapsed_s,
        }  # fmt: skip
    bounds = {goal.metric: goal for goal in goals}
    return [Result(name, OURS, key, value, bounds.get(key)) for key, value in values.items()]
