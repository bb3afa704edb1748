# SPDX-License-Identifier: LGPL-2.1-or-later
"""Scenarios as data: disks, a stack, units with weights, and what is expected.

A file is TOML with a list of tables `[[scenario]]`:

    name, title            text for the table
    schedulers             who runs it, in this order; "sutro" brings the daemon along
    stock, baseline        the scheduler whose aggregate bandwidth, or completion time, others are
                           compared with ("bfq", "none")
    ramp_s, measure_s      seconds left out, seconds measured
    until                  or: measure while this unit runs; it starts when the ramp is over
    timeout_s              for `until`
    [scenario.sysctl]      kernel settings during the scenario
    [[scenario.disk]]      names, kind, size_mb, seed and any number of the model (rig.modeldisk);
                           `queue` is a table of settings in the queue folder of sysfs
    [[scenario.layer]]     the stack, bottom up (rig.stack)
    [[scenario.file]]      name, size_mb: files written before, if the top is a file system
    [[scenario.unit]]      name, weight or device_weight (on the top device), and `job`, a table
                           whose `run` is a job below, its other keys the job's arguments
    [[scenario.event]]     at_s after the ramp; weights = { UNIT = N }: set through systemd
    [[scenario.goal]]      metric, min, max: what the rows of sutro are judged by

Jobs:

    fio                    endless, libaio, direct: rw, bs, iodepth, jobs, seed, any option of fio
    dd-readers             endless, direct: bs_kib, streams, apart_mb, first_mb
    dd-writer              endless, buffered: file, size_mb
    dd-reader              ends, buffered: file

Metrics are listed in bench.measure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rig import unit as jobs
from rig.result import Goal

from bench.tables import ScenarioError, listed, made, read, tables


@dataclass(frozen=True)
class UnitSpec:
    """A unit as the file has it."""

    name: str
    job: Mapping[str, object]
    weight: int | None = None
    device_weight: int | None = None

    @property
    def asked(self) -> int:
        """The weight that counts."""
        return self.device_weight or self.weight or 100

    def command(self, top: str) -> str:
        """The shell command of its job on the device or mount point `top`."""
        keys = dict(self.job)
        kind = keys.pop("run")
        if kind == "fio":
            return jobs.fio(top, **keys)
        if kind == "dd-readers":
            return jobs.dd_readers(top, **keys)
        keys["file"] = f"{top}/{keys['file']}"
        return jobs.dd_writer(**keys) if kind == "dd-writer" else jobs.dd_reader(**keys)


@dataclass(frozen=True)
class Event:
    """New weights at a moment of the measured time."""

    at_s: float
    weights: Mapping[str, int]


@dataclass(frozen=True)
class Scenario:
    """One scenario; field names as in the file."""

    name: str
    title: str
    schedulers: tuple[str, ...]
    disk: tuple[Mapping[str, object], ...]
    unit: tuple[UnitSpec, ...]
    layer: tuple[Mapping[str, object], ...] = ()
    file: tuple[Mapping[str, object], ...] = ()
    event: tuple[Event, ...] = ()
    goal: tuple[Goal, ...] = ()
    sysctl: Mapping[str, object] = field(default_factory=dict)
    stock: str = "bfq"
    baseline: str = "none"
    ramp_s: float = 2
    measure_s: float = 8
    until: str | None = None
    timeout_s: float = 120

    def weights(self, at_s: float) -> dict[str, int]:
        """Weights in force at a moment of the measured time."""
        now = {unit.name: unit.asked for unit in self.unit}
        for event in self.event:
            if event.at_s <= at_s:
                now.update(event.weights)
        return now

    def entitled(self, at_s: float) -> dict[str, float]:
        """Shares that the weights in force at a moment ask for, if all units want more."""
        weights = self.weights(at_s)
        return {name: weight / sum(weights.values()) for name, weight in weights.items()}


JOBS = ("fio", "dd-readers", "dd-writer", "dd-reader")
LISTS = {"unit": UnitSpec, "event": Event, "goal": Goal}


def load(file: str | Path) -> list[Scenario]:
    """Read a scenario file."""
    found = tables(str(file), read(file, ("scenario",)), "scenario")
    if not found:
        raise ScenarioError(f"{file}: no [[scenario]] in it")
    return [_scenario(f"{file}: scenario {n}", table) for n, table in enumerate(found, start=1)]


def _scenario(where: str, table: Mapping[str, object]) -> Scenario:
    keys = dict(table)
    where = f"{where} ({keys.get('name', 'no name')})"
    for key, kind in LISTS.items():
        keys[key] = tuple(made(f"{where}: {key}", kind, one) for one in tables(where, keys, key))
    for key in ("disk", "layer", "file"):
        keys[key] = tuple(tables(where, keys, key))
    if "schedulers" in keys:
        keys["schedulers"] = tuple(listed(where, keys, "schedulers"))
    scenario = made(where, Scenario, keys)
    names = [unit.name for unit in scenario.unit]
    for key in ("schedulers", "disk", "unit"):
        if not keys[key]:
            raise ScenarioError(f"{where}: needs at least one {key}")
    for spec in scenario.unit:
        if spec.job.get("run") not in JOBS:
            run = spec.job.get("run")
            raise ScenarioError(f"{where}: unit {spec.name}: job {run!r} is none of {JOBS}")
    used = {name for event in scenario.event for name in event.weights}
    unknown = (used | ({scenario.until} if scenario.until else set())) - set(names)
    if unknown:
        raise ScenarioError(f"{where}: no unit {', '.join(sorted(unknown))}; units are {names}")
    return scenario
