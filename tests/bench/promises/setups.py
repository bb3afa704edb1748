# SPDX-License-Identifier: LGPL-2.1-or-later
"""Ways to keep floors: Sutro, which gets them as policies, and three that are set up by hand.

Sutro works with its elevator, and with bfq or iocost in its place, as
Documentation/guides/without-module.rst describes it.

By hand means: as well as possible, with facts that only this bench has: the capacity, the
competitors, and the numbers of the disks.

    sutro     sutroctl policy set UNIT ReadBandwidthMin="DEVICE BYTES" --runtime
    sutrod on bfq, sutrod on iocost
              the same policies, with bfq or iocost on the leaves as the next two have them
    bfq       io.bfq.weight in the ratio of the parts: 0.6 against four others is 600 : 100
    iocost    the same in io.weight, above mq-deadline; io.cost.model and io.cost.qos are computed
              from the numbers of the model disks (uml/plan.py)
    io.max    the others have limits at the part that the floors leave, in equal parts, by systemd's
              IOReadBandwidthMax= on the logical device, above mq-deadline
    elevator  no floors: the sutro elevator with its default weights, without the daemon. So the
              capacity is measured, and the rates without floors
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import ClassVar

from rig import scheduler as elevators
from rig.modeldisk import ModelDisk, Truth
from rig.shell import run
from rig.unit import Unit

from bench import iocost
from bench.promises.scenario import Scenario, UnitSpec

# The least part for all other units together: no unit gets a weight of 0.
LEAST_REST = 0.02


@dataclass(frozen=True)
class Place:
    """Where a setup works: the disks with their numbers, and the logical device of each unit."""

    disks: Sequence[ModelDisk]
    numbers: Mapping[str, Mapping[str, object]]
    device: Mapping[str, str]

    @property
    def leaves(self) -> list[str]:
        """Names of the disks."""
        return [disk.name for disk in self.disks]

    @property
    def devices(self) -> list[str]:
        """All logical devices in use."""
        return list(dict.fromkeys(self.device.values()))


@dataclass
class Setup:
    """How floors are kept. `floors` are parts of the capacity, by unit."""

    place: Place
    scenario: Scenario
    # Bytes/s of each promised unit alone, and the account of the disks for the last of them.
    capacity: Mapping[str, float]
    truth: Mapping[str, Truth]

    name: ClassVar = "elevator"
    scheduler: ClassVar = "sutro"
    daemon: ClassVar = False

    @contextmanager
    def chosen(self) -> Iterator[None]:
        """The leaves are set up, and afterwards as they were."""
        elevators.stop_daemon()
        with ExitStack() as undo:
            for leaf in self.place.leaves:
                undo.callback(elevators.select, leaf, elevators.current(leaf), None)
                elevators.select(leaf, self.scheduler)
            yield

    def state(self, units: Mapping[str, Unit], floors: Mapping[str, float]) -> None:
        """Set floors, whether the units run already or not."""

    def started(self, units: Sequence[Unit], floors: Mapping[str, float]) -> None:
        """Do what can only be done to units that run."""

    def parts(self, floors: Mapping[str, float]) -> dict[str, float]:
        """The part of each unit: its floor, or its share by weight of the part that is left."""
        others = [spec for spec in self.scenario.unit if spec.name not in floors]
        rest = max(LEAST_REST, 1 - sum(floors.values()))
        whole = sum(spec.weight for spec in others)
        return {**floors, **{spec.name: rest * spec.weight / whole for spec in others}}


class Sutro(Setup):
    """Sutro as a user has it: the daemon runs, and promises are set as policies."""

    name = "sutro"
    daemon = True

    @contextmanager
    def chosen(self) -> Iterator[None]:
        with self._leaves():
            self._told: set[str] = set()
            try:
                yield
            finally:
                for unit in self._told:
                    run("sutroctl", "policy", "reset", unit, "--runtime")

    @contextmanager
    def _leaves(self) -> Iterator[None]:
        """The leaves are set up, and sutrod runs."""
        with elevators.chosen("sutro", self.place.leaves, *self.place.devices):
            yield

    def state(self, units: Mapping[str, Unit], floors: Mapping[str, float]) -> None:
        for name, part in floors.items():
            unit, words = units[name].unit, self._words(self.scenario.find(name), part)
            run("sutroctl", "policy", "set", unit, *words, "--runtime")
            self._told.add(unit)

    def _words(self, spec: UnitSpec, part: float) -> list[str]:
        floor = round(part * self.capacity[spec.name])
        words = [f"{spec.direction}BandwidthMin={self.place.device[spec.name]} {floor}"]
        return words + ([] if spec.importance is None else [f"Importance={spec.importance}"])


class ByWeight(Setup):
    """A cgroup file of each unit gets its part."""

    file = ""
    line = "{}"

    def started(self, units: Sequence[Unit], floors: Mapping[str, float]) -> None:
        for unit in units:
            weight = max(1, round(1000 * self.parts(floors)[unit.name]))
            (unit.folder / self.file).write_text(self.line.format(weight))


class Bfq(ByWeight):
    """BFQ."""

    name = scheduler = "bfq"
    file = "io.bfq.weight"


class Iocost(ByWeight):
    """iocost, which is no elevator: above none it has the device's own tags only."""

    name = "iocost"
    scheduler = "mq-deadline"
    file = "io.weight"
    line = "default {}"

    @contextmanager
    def chosen(self) -> Iterator[None]:
        with super().chosen(), iocost.enabled(self.place.disks, self.place.numbers, self.truth):
            yield


class Others(Sutro):
    """sutrod on leaves that have another scheduler, set up as by hand."""

    leaves: ClassVar[type[Setup]]

    @contextmanager
    def _leaves(self) -> Iterator[None]:
        others = self.leaves(self.place, self.scenario, self.capacity, self.truth)
        with others.chosen():
            run("systemctl", "start", "sutrod.service")
            try:
                yield
            finally:
                elevators.stop_daemon()


class OnBfq(Others):
    """sutrod on bfq."""

    name = "sutrod on bfq"
    leaves = Bfq


class OnIocost(Others):
    """sutrod on iocost."""

    name = "sutrod on iocost"
    leaves = Iocost


class IoMax(Setup):
    """Limits for all who are promised nothing."""

    name = "io.max"
    scheduler = "mq-deadline"

    def started(self, units: Sequence[Unit], floors: Mapping[str, float]) -> None:
        capacity = max(self.capacity.values())
        for unit in [unit for unit in units if unit.name not in floors]:
            spec, device = self.scenario.find(unit.name), self.place.device[unit.name]
            limit = round(self.parts(floors)[unit.name] * capacity)
            unit.set(**{f"IO{spec.direction}BandwidthMax": f"{device} {limit}"})


SETUPS: dict[str, Callable[..., Setup]] = {
    setup.name: setup for setup in (Sutro, OnBfq, OnIocost, Bfq, Iocost, IoMax, Setup)
}
