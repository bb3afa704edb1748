# SPDX-License-Identifier: LGPL-2.1-or-later
"""Let the units of scenarios run on their stack: alone, without floors, and with them.

Nothing is judged here; the measurements are returned as a `Contest` for each scenario, with a `Run`
for each setup that keeps floors. A run:

    the leaves get their scheduler, and floors are set
    the units without floors start, and use their device before those with floors start
    from_s: the last of these has come; the times of events count from it
    to_s: measure_s after it

The rate of a unit alone, its capacity C, is measured first, and once for all scenarios of a stack
in which it has the same job.
"""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from rig import bus, unit
from rig.modeldisk import ModelDisk, Truth
from rig.sampler import Sampler
from rig.shell import TIMEOUT_S, wait_for
from rig.shell import run as command
from rig.stack import Stack, devno, fill
from rig.unit import Unit

from bench.judge import TROUBLE, Say
from bench.promises.scenario import Event, Scenario, UnitSpec
from bench.promises.setups import SETUPS, Place, Setup
from bench.stacks import StackSpec, built

# Nothing controls it, so nothing has to settle before its bandwidth counts.
WITHOUT_S = 4.0
# From the start of units to the measured time: queues are full then.
QUEUES_S = 0.5
WEIGHTS = "io.sutro.weight"


@dataclass(frozen=True)
class Happened:
    """An event, and when it was begun and done."""

    event: Event
    begin_s: float
    end_s: float


@dataclass(frozen=True)
class Run:
    """Measurements; the promised units were there from from_s on."""

    scenario: Scenario
    scheduler: str
    capacity: Mapping[str, float]
    sampler: Sampler
    truth: Mapping[str, Truth]
    from_s: float
    to_s: float
    happened: tuple[Happened, ...]
    signals: tuple[bus.Signal, ...]
    rewritten: int


@dataclass(frozen=True)
class Contest:
    """All runs of a scenario; `failed` has the setups that did not come to an end, and why."""

    scenario: Scenario
    runs: Mapping[str, Run]
    without: Run | None
    failed: Mapping[str, str]


def contests(scenarios: Sequence[Scenario], say: Say) -> Iterator[Contest]:
    """Run scenarios that stand on one stack."""
    spec = scenarios[0].stack
    left = list(scenarios)
    try:
        say(f"stack {spec.name}: making it")
        with built(spec.disk, spec.layer, partial(_fill, spec)) as (disks, stack):
            ground = Ground(spec, disks, stack, say)
            while left:
                yield ground.contest(left[0])
                left.pop(0)
    except TROUBLE as error:
        # The stack could not be made, or not be taken down again.
        for scenario in left or scenarios[-1:]:
            yield Contest(scenario, {}, None, {"sutro": str(error)})


def _fill(spec: StackSpec, stack: Stack) -> None:
    for name in spec.fill:
        fill(stack.nodes[name])


class Ground:
    """A stack that was built, and its properties."""

    def __init__(self, spec: StackSpec, disks: Sequence[ModelDisk], stack: Stack, say: Say):
        self._spec = spec
        self._disks = {disk.name: disk for disk in disks}
        self._stack = stack
        self._say = say
        self._seen: dict[object, Run] = {}

    def contest(self, scenario: Scenario) -> Contest:
        """Run a scenario with each of its setups."""
        runs: dict[str, Run] = {}
        failed: dict[str, str] = {}
        without = None
        try:
            capacity, truth = self._capacity(scenario)
            if any(goal.metric == "aggregate_vs_without" for goal in scenario.goal):
                without = self._without(scenario)
        except TROUBLE as error:
            return Contest(scenario, runs, None, dict.fromkeys(scenario.schedulers, str(error)))
        for name in scenario.schedulers:
            try:
                runs[name] = self._observe(scenario, name, capacity, truth)
            except TROUBLE as error:
                failed[name] = str(error)
        return Contest(scenario, runs, without, failed)

    def _capacity(self, scenario: Scenario) -> tuple[dict[str, float], Mapping[str, Truth]]:
        """Bytes/s of each promised unit alone, and the account of the disks for the last one."""
        capacity: dict[str, float] = {}
        for spec in scenario.promised():
            job = {key: value for key, value in spec.job.items() if key != "seed"}
            key = ("alone", spec.on, str(sorted(job.items())))
            if key not in self._seen:
                self._seen[key] = self._observe(scenario.alone(spec.name), "elevator", {}, {})
            run = self._seen[key]
            name, from_s = run.scenario.unit[0].name, run.from_s + QUEUES_S
            sent = run.sampler.used(("sent", name), from_s, run.to_s)
            capacity[spec.name] = sent / (run.to_s - from_s)
            self._say(f"{scenario.name}: C of {spec.name} is {capacity[spec.name] / 1e6:.2f} MB/s")
        return capacity, run.truth

    def _without(self, scenario: Scenario) -> Run:
        alike = scenario.without()
        if not alike.event:
            alike = replace(alike, measure_s=WITHOUT_S)
        key = ("without", str(alike.unit), str(alike.event))
        if key not in self._seen:
            self._seen[key] = self._observe(alike, "elevator", {}, {})
        return self._seen[key]

    def _node(self, spec: UnitSpec) -> str:
        return self._stack.nodes[spec.on or self._spec.top]

    def _observe(
        self,
        scenario: Scenario,
        name: str,
        capacity: Mapping[str, float],
        truth: Mapping[str, Truth],
    ) -> Run:
        nodes = {spec.name: self._node(spec) for spec in scenario.unit}
        numbers = {disk: table for table in self._spec.disk for disk in table["names"]}
        place = Place(list(self._disks.values()), numbers, nodes)
        setup = SETUPS[name](place, scenario, capacity, truth)
        who = name if scenario.promised() else f"{len(scenario.unit)} without floors"
        self._say(f"{scenario.name}: {who}")
        with setup.chosen():
            for disk in place.disks:
                disk.reset()
            return _Play(scenario, setup, self._disks, nodes).run()


@dataclass
class _Play:
    """One run, being done."""

    scenario: Scenario
    setup: Setup
    disks: Mapping[str, ModelDisk]
    nodes: Mapping[str, str]

    def __post_init__(self) -> None:
        self._floors = {spec.name: spec.floor for spec in self.scenario.promised()}
        self._units = {spec.name: self._unit(spec) for spec in self.scenario.unit}
        self._running: set[str] = set()
        self._gates: dict[str, int] = {}

    def _unit(self, spec: UnitSpec) -> Unit:
        move = self.scenario.moves(spec.name)
        line = spec.command(self.nodes[spec.name], move, str(gate(spec.name)))
        return Unit(spec.name, line, spec.weight)

    def run(self) -> Run:
        units = list(self._units.values())
        devnos = {name: devno(node) for name, node in self.nodes.items()}
        with ExitStack() as undo:
            for name in {name for event in self.scenario.event for name in event.move}:
                self._gates[name] = undo.enter_context(_fifo(gate(name)))
            for name in {name for event in self.scenario.event for name in event.disk}:
                undo.enter_context(_numbers_kept(self.disks[name], self.scenario))
            undo.callback(unit.stop, units)
            heard = undo.enter_context(bus.Listener()).heard if self.setup.daemon else []
            sampler = undo.enter_context(Sampler(list(self.disks.values()), units, devnos))
            self.setup.state(self._units, self._floors)
            self._start([spec.name for spec in self.scenario.others()], sampler)
            promised = [spec.name for spec in self.scenario.promised()]
            if promised:
                time.sleep(QUEUES_S)
                self._start(promised, sampler)
            from_s = max(sampler.came_s(name) for name in promised or self._units)
            before = self._weights()
            happened = tuple(self._happen(event, from_s) for event in self.scenario.event)
            time.sleep(max(0.0, from_s + self.scenario.measure_s - time.monotonic()))
            to_s = time.monotonic()
            after = self._weights()
            self._all_alive()
        truth = {name: disk.truth() for name, disk in self.disks.items()}
        rewritten = sum(before[name] != after[name] for name in before.keys() & after.keys())
        return Run(
            self.scenario, self.setup.name, self.setup.capacity, sampler, truth, from_s, to_s,
            happened, tuple(heard), rewritten,
        )  # fmt: skip

    def _start(self, names: Sequence[str], sampler: Sampler) -> None:
        units = [self._units[name] for name in names]
        unit.start(units)
        self.setup.started(units, self._floors)
        self._running.update(names)
        for name in names:
            what = f"{self._units[name].unit} uses {self.nodes[name]}"
            wait_for(partial(sampler.came, name), what, TIMEOUT_S)

    def _happen(self, event: Event, from_s: float) -> Happened:
        time.sleep(max(0.0, from_s + event.at_s - time.monotonic()))
        begin_s = time.monotonic()
        if event.stop:
            unit.stop([self._units[name] for name in event.stop])
            self._running.difference_update(event.stop)
        if event.start:
            units = [self._units[name] for name in event.start]
            unit.start(units)
            self.setup.started(units, self._floors)
            self._running.update(event.start)
        for verb, names in (("freeze", event.freeze), ("thaw", event.thaw)):
            if names:
                command("systemctl", verb, *(self._units[name].unit for name in names))
        for name, numbers in event.disk.items():
            self.disks[name].set(**numbers)
        for name in event.move:
            # A line for the job that ends and one for the job that begins, whoever comes first.
            os.write(self._gates[name], b"\n\n")
        if event.floor:
            self._floors.update(event.floor)
            self.setup.state(self._units, dict(event.floor))
            self.setup.started([self._units[name] for name in self._running], self._floors)
        return Happened(event, begin_s, time.monotonic())

    def _weights(self) -> dict[str, str]:
        """The contents of the elevator's files for each unit that is there."""
        found = {}
        for name, one in self._units.items():
            try:
                found[name] = one.read(WEIGHTS)
            except OSError:
                continue
        return found

    def _all_alive(self) -> None:
        for name in sorted(self._running):
            one = self._units[name]
            if not one.busy():
                raise RuntimeError(f"{one.unit} ended early:\n{one.journal()}")


def gate(name: str) -> Path:
    """The fifo that a unit with a move waits for."""
    return Path(f"/run/rig-{name}.gate")


@contextmanager
def _fifo(path: Path) -> Iterator[int]:
    """A fifo that is open for writing, also while no task reads it."""
    os.mkfifo(path)
    file = os.open(path, os.O_RDWR)
    try:
        yield file
    finally:
        os.close(file)
        path.unlink()


@contextmanager
def _numbers_kept(disk: ModelDisk, scenario: Scenario) -> Iterator[None]:
    """A disk has its numbers again afterwards, whatever events set."""
    keys = {key for event in scenario.event for key in event.disk.get(disk.name, {})}
    before = {key: disk.read(key) for key in keys}
    try:
        yield
    finally:
        disk.set(**before)
