# SPDX-License-Identifier: LGPL-2.1-or-later
"""How each scheduler is set up for a database beside a competitor.

    none           nothing
    bfq            io.bfq.weight in the ratio of the parts: a floor of 0.6 is 600 : 400
    iocost         the same in io.weight, above mq-deadline; the model is that of iocost.py
    sutro-floor    sutroctl policy set UNIT ReadBandwidthMin="DEVICE BYTES" WriteBandwidthMin=...;
                   a floor is a part of the rates of the database alone
    sutro-latency  sutroctl policy set UNIT LatencyTarget="DEVICE TIME"

Weights for Sutro are those that units have by themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from rig import scheduler as elevators
from rig.modeldisk import ModelDisk, Truth
from rig.shell import run
from rig.unit import Unit

from bench import iocost
from bench.applications.scenario import FLOOR, LATENCY, Scenario

ELEVATORS = {"iocost": "mq-deadline", FLOOR: "sutro", LATENCY: "sutro"}
# File, line, and the weight of a cgroup that has none.
WEIGHTS = {"bfq": ("io.bfq.weight", "{}"), "iocost": ("io.weight", "default {}")}
WEIGHT = 100


@dataclass(frozen=True)
class Rates:
    """Bytes per second of a unit on the device."""

    read: float
    written: float


@dataclass(frozen=True)
class Setups:
    """The place where databases run; truth: of random requests that kept the disks busy."""

    scenario: Scenario
    disks: Sequence[ModelDisk]
    device: str
    truth: Mapping[str, Truth]

    @contextmanager
    def chosen(self, name: str, database: Unit, alone: Rates | None) -> Iterator[None]:
        """Set up a scheduler for a while; without rates of the database alone, no policy."""
        leaves = [disk.name for disk in self.disks]
        with ExitStack() as undo:
            elevator = ELEVATORS.get(name, name)
            undo.enter_context(elevators.chosen(elevator, leaves, self.device))
            if name == "iocost":
                tables = self.scenario.stack.disk
                numbers = {leaf: table for table in tables for leaf in table["names"]}
                undo.enter_context(iocost.enabled(self.disks, numbers, self.truth))
            words = policy(self.scenario, name, self.device, alone) if alone else []
            if words:
                run("sutroctl", "policy", "set", database.unit, *words, "--runtime")
                undo.callback(run, "sutroctl", "policy", "reset", database.unit, "--runtime")
            yield

    @contextmanager
    def weighted(self, name: str, database: Unit, competitor: Unit) -> Iterator[None]:
        """Set the weights of running units for a while."""
        if name not in WEIGHTS:
            yield
            return
        file, line = WEIGHTS[name]
        part = round(1000 * self.scenario.floor)
        (database.folder / file).write_text(line.format(max(1, part)))
        (competitor.folder / file).write_text(line.format(max(1, 1000 - part)))
        yield
        # The service of a database goes on, its competitor and other databases do not.
        if database.busy():
            (database.folder / file).write_text(line.format(WEIGHT))


def policy(scenario: Scenario, name: str, device: str, alone: Rates) -> list[str]:
    """The assignments that a user makes with sutroctl; none for other schedulers."""
    if name == FLOOR:
        keys = {"ReadBandwidthMin": alone.read, "WriteBandwidthMin": alone.written}
        floors = {key: round(rate * scenario.floor) for key, rate in keys.items()}
        return [f"{key}={device} {floor}" for key, floor in floors.items() if floor]
    if name == LATENCY:
        return [f"LatencyTarget={device} {scenario.latency_ms:g}ms"]
    return []
