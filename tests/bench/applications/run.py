# SPDX-License-Identifier: LGPL-2.1-or-later
"""Run a database alone, then beside each competitor under each scheduler.

Nothing is judged here; each run returns its measurements as a `Run`. The data are made once for
each scenario. A run:

    the disks are fast: the database gets into the same state as before each other run
    the leaves get their scheduler, and sutrod its policies
    the competitor starts, and uses the device before the load of the database starts
    the ramp of the load ends: counters are read
    most of the load's time is over: counters are read again, with the competitor still there
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rig import bus
from rig.modeldisk import ModelDisk, Truth
from rig.sampler import cpu_jiffies, parse_io_stat
from rig.shell import TIMEOUT_S, wait_for
from rig.shell import run as command
from rig.stack import Stack, devno
from rig.unit import Unit, fio

from bench.applications.application import APPLICATIONS, COUNTED, Served
from bench.applications.competitor import Competitor
from bench.applications.scenario import BASELINE, FLOOR, LATENCY, Scenario
from bench.applications.setups import Rates, Setups
from bench.judge import TROUBLE, Say
from bench.stacks import built, sysctl

# The load of db_bench ends by itself and takes its cgroup with it, counters and all.
WINDOW = 0.9
CALIBRATION_S = 2.0


@dataclass(frozen=True)
class Run:
    """Measurements; `beside` is empty for the database alone, `why` is set if the run failed."""

    scheduler: str
    beside: str
    number: int
    served: Served = Served(0.0, 0.0)
    database: Rates = Rates(0.0, 0.0)
    competitor: Rates = Rates(0.0, 0.0)
    disk_busy: float = 0.0
    cpu_idle: float = 0.0
    explanation: str = ""
    why: str = ""


@dataclass(frozen=True)
class Moment:
    """Counters of a moment: bytes of units by name, busy time of disks, jiffies of the CPU."""

    at_s: float
    read: dict[str, int]
    written: dict[str, int]
    busy_ns: list[int]
    idle: int
    jiffies: int

    def total(self, unit: str) -> int:
        """Bytes of a unit so far."""
        return self.read[unit] + self.written[unit]


def runs(scenario: Scenario, say: Say) -> Iterator[Run]:
    """The database alone, then round by round each competitor under each scheduler."""
    with sysctl(scenario.sysctl), ExitStack() as undo:
        say(f"{scenario.name}: making stack {scenario.stack.name}")
        keep = built(scenario.stack.disk, scenario.stack.layer, lambda stack: None)
        disks, stack = undo.enter_context(keep)
        ground = Ground(scenario, disks, stack, say)
        undo.callback(ground.database.close)
        ground.prepare()
        alone = ground.alone()
        yield alone
        for beside in scenario.beside:
            for number in range(scenario.rounds):
                for name in scenario.schedulers:
                    yield ground.beside(name, beside, number, alone.database)


class Ground:
    """A stack with a database on it."""

    def __init__(self, scenario: Scenario, disks: Sequence[ModelDisk], stack: Stack, say: Say):
        self._scenario = scenario
        self._disks = disks
        self._folder = Path(stack.top)
        self._device = command("findmnt", "--noheadings", "--output=SOURCE", stack.top).strip()
        self._devno = devno(self._device)
        self._say = say
        self._setups = Setups(scenario, disks, self._device, {})
        self.database = APPLICATIONS[scenario.application](scenario, self._folder)

    def prepare(self) -> None:
        """Make the data of the database and of its competitors."""
        scenario = self._scenario
        self._say(f"{scenario.name}: making the data")
        with self._fast():
            self.database.prepare()
            for name in scenario.beside:
                Competitor(name, self._folder, self._device).prepare()
        if "iocost" in scenario.schedulers:
            self._say(f"{scenario.name}: random reads, for the model of iocost")
            self._setups = Setups(scenario, self._disks, self._device, self._calibrated())

    @contextmanager
    def _fast(self) -> Iterator[None]:
        for disk in self._disks:
            disk.hurry()
        yield
        command("sync")
        for disk in self._disks:
            disk.slow()

    def _calibrated(self) -> dict[str, Truth]:
        """Rates of the disks for random reads of 4 KiB with a full queue."""
        reads = fio(self._device, "randread", "4k", iodepth=64)
        unit = Unit("calibration", reads, properties=COUNTED)
        with ExitStack() as undo:
            undo.callback(unit.stop)
            unit.start()
            wait_for(lambda: self._bytes(unit)[0], f"{unit.unit} reads", TIMEOUT_S)
            for disk in self._disks:
                disk.reset()
            time.sleep(CALIBRATION_S)
            return {disk.name: disk.truth() for disk in self._disks}

    def alone(self) -> Run:
        """The database without a competitor."""
        return self._run(BASELINE, None, 0, None)

    def beside(self, name: str, beside: str, number: int, alone: Rates) -> Run:
        """The database beside a competitor."""
        competitor = Competitor(beside, self._folder, self._device)
        try:
            return self._run(name, competitor, number, alone)
        except TROUBLE as error:
            return Run(name, beside, number, why=str(error))

    def _run(
        self, name: str, competitor: Competitor | None, number: int, alone: Rates | None
    ) -> Run:
        database, load = self.database.unit, self.database
        with self._fast():
            load.rest()
        with ExitStack() as undo:
            undo.enter_context(self._setups.chosen(name, database, alone))
            units = [database]
            if competitor:
                other = competitor.unit()
                units.append(other)
                undo.callback(competitor.clean)
                undo.callback(other.stop)
                other.start()
                wait_for(lambda: any(self._bytes(other)), f"{other.unit} runs", TIMEOUT_S)
            load.begin()
            if competitor:
                undo.enter_context(self._setups.weighted(name, database, other))
            load.ramped()
            begin = self._moment(units)
            time.sleep(WINDOW * self._scenario.measure_s)
            end = self._moment(units)
            explanation = self._explanation(name)
            served = load.served()
            if competitor and not other.busy():
                raise RuntimeError(f"{other.unit} ended early:\n{other.journal()}")
            if competitor and begin.total(other.name) == end.total(other.name):
                raise RuntimeError(f"{other.unit} did not use {self._device}")
        beside = competitor.name if competitor else ""
        run = seen(name, beside, number, served, begin, end, explanation)
        self._say(f"{self._scenario.name}: {text(run)}")
        return run

    def _explanation(self, name: str) -> str:
        """The state of the policies of the database by sutrod, a line each.

        Over the bus: sutroctl takes most of a second of an emulated CPU.
        """
        if name not in (FLOOR, LATENCY):
            return ""
        return "\n".join(explained(one) for one in bus.promises(self.database.unit.unit))

    def _bytes(self, unit: Unit) -> tuple[int, int]:
        """Bytes that a unit has read and written on the device."""
        numbers = parse_io_stat(unit.read("io.stat"), self._devno)
        return numbers.get("rbytes", 0), numbers.get("wbytes", 0)

    def _moment(self, units: Sequence[Unit]) -> Moment:
        counted = {unit.name: self._bytes(unit) for unit in units}
        idle, jiffies = cpu_jiffies()
        return Moment(
            time.monotonic(),
            {name: read for name, (read, _) in counted.items()},
            {name: written for name, (_, written) in counted.items()},
            [disk.truth().total.busy_ns for disk in self._disks],
            idle,
            jiffies,
        )


def seen(
    scheduler: str,
    beside: str,
    number: int,
    served: Served,
    begin: Moment,
    end: Moment,
    explanation: str,
) -> Run:
    """A run, from the result of its load and counters at both ends of the measured time."""
    seconds = end.at_s - begin.at_s
    rates = [
        Rates(
            (end.read[name] - begin.read[name]) / seconds,
            (end.written[name] - begin.written[name]) / seconds,
        )
        for name in begin.read
    ]
    busy = zip(begin.busy_ns, end.busy_ns, strict=True)
    return Run(
        scheduler,
        beside,
        number,
        served,
        rates[0],
        rates[1] if beside else Rates(0.0, 0.0),
        max(after - before for before, after in busy) / 1e9 / seconds,
        (end.idle - begin.idle) / max(1, end.jiffies - begin.jiffies),
        explanation,
    )


def explained(promise: Mapping[str, Any]) -> str:
    """One entry of ListPromises."""
    leaves = ", ".join(
        f"{leaf['leaf']} needs {leaf['share_needed']:.0%}, has {leaf['share_allotted']:.0%}, "
        f"got {leaf['share_got']:.0%} with weight {leaf['weight']}"
        for leaf in promise["leaves"]
    )
    cause = f" ({promise['cause']})" if promise["cause"] else ""
    what = f"{promise['key']} {promise['value']}: {promise['state']}{cause}"
    return f"{what}, got {promise['got']}, gain {promise['gain']:.2f}; {leaves}"


def text(run: Run) -> str:
    """A run in a line."""
    beside = f"{run.scheduler} beside {run.beside}" if run.beside else "alone"
    return (
        f"{beside}: {run.served.per_s:.1f}/s, P99 {run.served.p99_ms:.1f} ms, "
        f"reads {run.database.read / 1e6:.2f} and writes {run.database.written / 1e6:.2f} MB/s; "
        f"competitor {(run.competitor.read + run.competitor.written) / 1e6:.2f} MB/s; "
        f"disk busy {run.disk_busy:.0%}, CPU idle {run.cpu_idle:.0%}"
    )
