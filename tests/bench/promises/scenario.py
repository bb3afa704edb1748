# SPDX-License-Identifier: LGPL-2.1-or-later
"""Scenarios of `./lab bench promises`: reading a file, and saying exactly what is wrong with it.

tests/bench/README.rst documents the format. Everything a file may say ends up in the fields below,
under the same names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from rig import result, stack
from rig.unit import fio

from bench.tables import ScenarioError, listed, made, read, tables, unique

SHIPPED = Path(__file__).resolve().parents[1] / "promises.toml"
KINDS = ("hdd", "ssd", "nvme")
# Who keeps the floors; the last three are set up by hand (ways.py).
SCHEDULERS = ("sutro", "bfq", "iocost", "io.max")
# Metrics that a goal may state, and what measure.py and overhead.py compute.
METRICS = (
    "hold_s", "worst_2s", "return_s", "again_s", "reported_s", "reports", "rest_share",
    "others_while_idle", "aggregate_vs_without", "writes",
)  # fmt: skip
OVERHEADS = ("cpu_percent", "rss_mib", "step_ms")
STATES = (
    "unknown", "idle", "held", "settling", "infeasible", "limited", "crowded", "unattributed",
    "unweighted", "unresolved", "capped",
)  # fmt: skip
# What fio does, by the option `rw`, and the keys of the floors that are about it.
WAYS = {"read": "Read", "randread": "Read", "write": "Write", "randwrite": "Write"}
SIZES = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


@dataclass(frozen=True)
class StackSpec:
    """Disks, and what stands on them; devices in `fill` are written over once."""

    name: str
    disk: tuple[Mapping[str, object], ...]
    layer: tuple[Mapping[str, object], ...] = ()
    fill: tuple[str, ...] = ()

    def disks(self) -> list[str]:
        """Names of the disks."""
        return [str(name) for table in self.disk for name in table["names"]]

    def devices(self) -> list[str]:
        """Names of all that a unit may use: what is a block device."""
        layers = [layer for layer in self.layer if layer["kind"] not in ("ext4", "group")]
        return [*self.disks(), *(str(layer["name"]) for layer in layers)]

    @property
    def top(self) -> str:
        """What units use that do not say on what."""
        return self.devices()[-1]


@dataclass(frozen=True)
class UnitSpec:
    """A unit; one with a floor is promised that part of its capacity C, `on` its device."""

    name: str
    job: Mapping[str, object]
    weight: int = 100
    floor: float | None = None
    importance: int | None = None
    on: str = ""

    @property
    def way(self) -> str:
        """Read or Write."""
        return WAYS[str(self.job["rw"])]

    @property
    def in_flight(self) -> int:
        """Bytes that its job has on their way while it runs."""
        depth = int(str(self.job.get("iodepth", 1))) * int(str(self.job.get("jobs", 1)))
        return depth * size_bytes(str(self.job["bs"]))

    def command(self, device: str, move: Mapping[str, object] | None, gate: str) -> str:
        """What it runs; with a move, until there are two lines to read from `gate`, then that."""
        if move is None:
            return fio(device, **self.job)
        # Both are loaded and ready, so that it goes on at once elsewhere. fio leaves a file.
        wait = f"read go <{gate}"
        before, after = fio(device, **self.job), fio(device, **self.job | move, exec_prerun=wait)
        return f"cd /run; ({before}) & old=$!; ({after}) & {wait}; kill -KILL $old; wait"


@dataclass(frozen=True)
class Event:
    """What happens at a moment after the promised units have begun."""

    at_s: float
    stop: tuple[str, ...] = ()
    start: tuple[str, ...] = ()
    freeze: tuple[str, ...] = ()
    thaw: tuple[str, ...] = ()
    disk: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    floor: Mapping[str, float] = field(default_factory=dict)
    move: Mapping[str, Mapping[str, object]] = field(default_factory=dict)

    def units(self) -> set[str]:
        """Names of the units it is about."""
        return {*self.stop, *self.start, *self.freeze, *self.thaw, *self.floor, *self.move}


@dataclass(frozen=True)
class Goal(result.Goal):
    """What a metric shall be; of one unit, or of each that has it; `state` is for the reports."""

    of: str = ""
    state: str = "infeasible"


@dataclass(frozen=True)
class Scenario:
    """One scenario."""

    name: str
    title: str
    stack: StackSpec
    unit: tuple[UnitSpec, ...]
    schedulers: tuple[str, ...] = ("sutro",)
    measure_s: float = 8.0
    capacity_s: float = 3.0
    event: tuple[Event, ...] = ()
    goal: tuple[Goal, ...] = ()

    def promised(self) -> list[UnitSpec]:
        """Units with floors."""
        return [unit for unit in self.unit if unit.floor is not None]

    def others(self) -> list[UnitSpec]:
        """Units without."""
        return [unit for unit in self.unit if unit.floor is None]

    def find(self, name: str) -> UnitSpec:
        """A unit by its name."""
        return next(unit for unit in self.unit if unit.name == name)

    def moves(self, name: str) -> Mapping[str, object] | None:
        """Where a unit's job goes to during the run."""
        return next((event.move[name] for event in self.event if name in event.move), None)

    def alone(self, name: str) -> Scenario:
        """The unit by itself: what its capacity is measured with."""
        one = replace(self.find(name), floor=None)
        return replace(self, unit=(one,), event=(), goal=(), measure_s=self.capacity_s)

    def without(self) -> Scenario:
        """Nobody is promised anything, and nobody hears of it."""
        units = tuple(replace(unit, floor=None, importance=None) for unit in self.unit)
        events = tuple(replace(event, floor={}) for event in self.event)
        return replace(self, unit=units, event=events, goal=())


@dataclass(frozen=True)
class Overhead:
    """What the daemon costs with many units; nobody's share is judged."""

    name: str
    title: str
    units: int
    leaves: int
    promised: int
    active: int
    measure_s: float = 20.0
    goal: tuple[Goal, ...] = ()


@dataclass(frozen=True)
class Book:
    """All that a file holds."""

    scenarios: tuple[Scenario, ...]
    overheads: tuple[Overhead, ...]

    def names(self) -> list[str]:
        """Names in the order in which they are run."""
        return [each.name for each in (*self.scenarios, *self.overheads)]

    def only(self, names: Sequence[str], schedulers: Sequence[str]) -> Book:
        """A part of it; nothing chosen is everything."""
        for name in names:
            if name not in self.names():
                raise ScenarioError(f"no scenario {name}; there are {', '.join(self.names())}")
        for name in schedulers:
            if name not in SCHEDULERS:
                raise ScenarioError(f"no scheduler {name}; there are {', '.join(SCHEDULERS)}")
        under = {"schedulers": tuple(schedulers)} if schedulers else {}
        wanted = tuple(replace(s, **under) for s in self.scenarios if s.name in names or not names)
        costs = tuple(o for o in self.overheads if o.name in names or not names)
        return Book(wanted, costs if "sutro" in schedulers or not schedulers else ())


# ---- reading ----


def size_bytes(text: str) -> int:
    """A size as fio has it: 64k, 1m, 4096."""
    digits = text.lower().rstrip("b")
    factor = SIZES.get(digits[-1:], 1)
    return int(digits.rstrip("kmg")) * factor


def load(file: str | Path) -> Book:
    """Read a scenario file."""
    document = read(file, ("common", "job", "stack", "scenario", "overhead"))
    common, jobs = document.get("common", {}), document.get("job", {})
    for key, table in (("common", common), ("job", jobs)):
        if not isinstance(table, dict):
            raise ScenarioError(f"{file}: {key}: must be a table")
    stacks: dict[str, StackSpec] = {}
    for where, table in _named(file, document, "stack"):
        stacks[table["name"]] = _stack(where, table)
    scenarios = [
        _scenario(where, {**common, **table}, stacks, jobs)
        for where, table in _named(file, document, "scenario")
    ]
    overheads = [_overhead(where, table) for where, table in _named(file, document, "overhead")]
    if not scenarios and not overheads:
        raise ScenarioError(f"{file}: no [[scenario]] in it")
    # What stands on one stack is run together: it is made once.
    order = list(stacks)
    scenarios.sort(key=lambda scenario: order.index(scenario.stack.name))
    book = Book(tuple(scenarios), tuple(overheads))
    unique(f"{file}: scenario", book.names())
    return book


def _named(file: str | Path, document: Mapping, key: str) -> Iterator[tuple[str, dict]]:
    found = tables(str(file), document, key)
    for number, table in enumerate(found, start=1):
        if not isinstance(table.get("name"), str) or not table["name"]:
            raise ScenarioError(f"{file}: {key} number {number}: name: is missing")
        yield f"{file}: {key} {table['name']}", table
    unique(f"{file}: {key}", [table["name"] for table in found])


def _stack(where: str, table: Mapping[str, object]) -> StackSpec:
    keys = dict(table)
    for key in ("disk", "layer"):
        keys[key] = tuple(tables(where, keys, key))
    if "fill" in keys:
        keys["fill"] = tuple(listed(where, keys, "fill"))
    made_of = made(where, StackSpec, keys)
    if not made_of.disk:
        raise ScenarioError(f"{where}: disk: is missing")
    for disk in made_of.disk:
        if disk.get("kind") not in KINDS:
            raise ScenarioError(f"{where}: disk: kind: must be one of {', '.join(KINDS)}")
        if not isinstance(disk.get("names"), list) or not disk["names"]:
            raise ScenarioError(f"{where}: disk: names: must be a list of names")
    there = made_of.disks()
    for layer in made_of.layer:
        name = f"{where}: layer {layer.get('name', '')}"
        if layer.get("kind") not in stack.KINDS:
            raise ScenarioError(f"{name}: kind: must be one of {', '.join(stack.KINDS)}")
        if not layer.get("name") or not isinstance(layer.get("over"), list):
            raise ScenarioError(f"{name}: needs name, and over, a list of what it lies on")
        for below in layer["over"]:
            if below not in there:
                raise ScenarioError(f"{name}: over: no {below!r} below; there are {there}")
        there.append(str(layer["name"]))
    unique(f"{where}: disk or layer", there)
    _known(where, "fill", set(made_of.fill), made_of.devices())
    return made_of


def _scenario(
    where: str,
    table: Mapping[str, object],
    stacks: Mapping[str, StackSpec],
    jobs: Mapping[str, object],
) -> Scenario:
    keys = dict(table)
    if keys.get("stack") not in stacks:
        raise ScenarioError(f"{where}: stack: {keys.get('stack')!r} is none of {list(stacks)}")
    keys["stack"] = stacks[str(keys["stack"])]
    keys["unit"] = tuple(_units(where, tables(where, keys, "unit"), jobs))
    keys["event"] = tuple(_event(where, part) for part in tables(where, keys, "event"))
    keys["goal"] = _goals(where, keys, METRICS)
    if "schedulers" in keys:
        keys["schedulers"] = tuple(listed(where, keys, "schedulers"))
    scenario = made(where, Scenario, keys)
    _check(where, scenario)
    return scenario


def _units(
    where: str, parts: Sequence[Mapping[str, object]], jobs: Mapping[str, object]
) -> Iterator[UnitSpec]:
    """Units; `count` makes NAME0, NAME1, ... of one. Each draws random numbers of its own."""
    seed = 0
    for part in parts:
        keys = dict(part)
        here = f"{where}: unit {keys.get('name', '')}"
        count = keys.pop("count", None)
        if count is not None and (not isinstance(count, int) or count < 1):
            raise ScenarioError(f"{here}: count: {count!r} is no number of units")
        if isinstance(keys.get("job"), str):
            _known(here, "job", {str(keys["job"])}, list(jobs))
            keys["job"] = jobs[str(keys["job"])]
        unit = made(here, UnitSpec, keys)
        _check_unit(here, unit)
        for number in range(count or 1):
            seed += 1
            name = unit.name if count is None else f"{unit.name}{number}"
            yield replace(unit, name=name, job={"seed": seed, **unit.job})


def _check_unit(where: str, unit: UnitSpec) -> None:
    if unit.job.get("rw") not in WAYS:
        raise ScenarioError(f"{where}: job: rw: must be one of {', '.join(WAYS)}")
    try:
        whole = size_bytes(str(unit.job["bs"])) > 0 and unit.in_flight > 0
    except (KeyError, ValueError):
        whole = False
    if not whole:
        raise ScenarioError(f'{where}: job: needs bs and iodepth, as bs = "64k", iodepth = 32')
    if not 1 <= unit.weight <= 10000:
        raise ScenarioError(f"{where}: weight: {unit.weight} is not 1 to 10000")
    _check_floor(f"{where}: floor", unit.floor)
    if unit.importance is not None and not 0 <= unit.importance <= 1000:
        raise ScenarioError(f"{where}: importance: {unit.importance} is not 0 to 1000")


def _check_floor(where: str, floor: object) -> None:
    if floor is not None and not (isinstance(floor, (int, float)) and 0 < floor <= 1):
        raise ScenarioError(f"{where}: {floor!r} is no part of the capacity, above 0 and at most 1")


def _event(where: str, table: Mapping[str, object]) -> Event:
    keys = dict(table)
    here = f"{where}: event at {keys.get('at_s', '')} s"
    for key in ("stop", "start", "freeze", "thaw"):
        if key in keys:
            keys[key] = tuple(listed(here, keys, key))
    event = made(here, Event, keys)
    for key, of in (("disk", event.disk), ("move", event.move)):
        for name, value in of.items():
            if not isinstance(value, dict):
                raise ScenarioError(f"{here}: {key}: {name}: must be a table")
    for name, floor in event.floor.items():
        _check_floor(f"{here}: floor: {name}", floor)
    return event


def _goals(where: str, keys: Mapping[str, object], metrics: Sequence[str]) -> tuple[Goal, ...]:
    goals = []
    for part in tables(where, keys, "goal"):
        goal = made(f"{where}: goal", Goal, part)
        if goal.metric not in metrics:
            raise ScenarioError(
                f"{where}: goal: metric: {goal.metric!r} is none of {', '.join(metrics)}"
            )
        if goal.min is None and goal.max is None:
            raise ScenarioError(f"{where}: goal: {goal.metric}: needs min or max")
        if goal.state not in STATES:
            raise ScenarioError(
                f"{where}: goal: {goal.metric}: state: {goal.state!r} is none of "
                f"{', '.join(STATES)}"
            )
        goals.append(goal)
    return tuple(goals)


def _overhead(where: str, table: Mapping[str, object]) -> Overhead:
    cost = made(where, Overhead, {**table, "goal": _goals(where, table, OVERHEADS)})
    for key, least in (("units", 1), ("leaves", 1), ("promised", 0), ("active", 0)):
        if not least <= getattr(cost, key) <= 10000:
            raise ScenarioError(f"{where}: {key}: {getattr(cost, key)} is not {least} to 10000")
    if max(cost.promised, cost.active) > cost.units:
        raise ScenarioError(f"{where}: promised, active: more than units")
    return cost


def _check(where: str, scenario: Scenario) -> None:
    """What is well formed and still makes no sense."""
    names = [unit.name for unit in scenario.unit]
    unique(f"{where}: unit", names)
    if not scenario.promised():
        raise ScenarioError(f"{where}: unit: none has a floor")
    for name in scenario.schedulers:
        if name not in SCHEDULERS:
            raise ScenarioError(f"{where}: schedulers: {name!r} is none of {', '.join(SCHEDULERS)}")
    if scenario.measure_s <= 0 or scenario.capacity_s <= 0:
        raise ScenarioError(f"{where}: measure_s, capacity_s: must be above 0")
    for unit in scenario.unit:
        on = {unit.on} if unit.on else set()
        _known(where, f"unit {unit.name}: on", on, scenario.stack.devices())
    promised = [unit.name for unit in scenario.promised()]
    _known(where, "goal", {goal.of for goal in scenario.goal if goal.of}, promised)
    moments = [0.0, *(event.at_s for event in scenario.event)]
    if moments != sorted(moments) or moments[-1] > scenario.measure_s:
        raise ScenarioError(f"{where}: event: at_s: not in order, or not within measure_s")
    for event in scenario.event:
        here = f"event at {event.at_s:g} s"
        _known(where, here, event.units(), names)
        _known(where, f"{here}: floor", set(event.floor), promised)
        _known(where, f"{here}: disk", set(event.disk), scenario.stack.disks())
    moved = [name for event in scenario.event for name in event.move]
    unique(f"{where}: event: move", moved)


def _known(where: str, what: str, used: set[str], there: Sequence[str]) -> None:
    for name in sorted(used - set(there)):
        raise ScenarioError(f"{where}: {what}: no {name!r}; there are {', '.join(there)}")
