# SPDX-License-Identifier: LGPL-2.1-or-later
"""Run a scenario: make the disks and the stack once, then let the units run under each scheduler.

Nothing is judged here; the measurements are returned as a `Run` for each scheduler.
"""

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rig import scheduler as elevators
from rig import unit as units_of
from rig.modeldisk import ModelDisk
from rig.sampler import PERIOD_S, Sampler
from rig.shell import TIMEOUT_S, wait_for
from rig.shell import run as command
from rig.stack import Stack, devno
from rig.unit import Unit

from bench.demo.scenario import Event, Scenario, UnitSpec
from bench.judge import Say
from bench.stacks import built, sysctl


@dataclass(frozen=True)
class Run:
    """A scenario under one scheduler: the samples, and the measured time by their clock."""

    scenario: Scenario
    scheduler: str
    leaves: tuple[str, ...]
    sampler: Sampler
    from_s: float
    to_s: float
    event_s: tuple[float, ...]
    finished_s: Mapping[str, float]


def run(scenario: Scenario, say: Say) -> Iterator[Run]:
    """Run a scenario under each of its schedulers in turn."""

    def write_files(stack: Stack) -> None:
        for file in scenario.file:
            _write_file(Path(stack.top) / file.name, file.size_mb)

    spec = scenario.stack
    with sysctl(scenario.sysctl), built(spec.disk, spec.layer, write_files) as (disks, stack):
        top = stack.top or disks[0].node
        device = _device(stack, top)
        for name in scenario.schedulers:
            say(f"{scenario.name}: {name}: setting up")
            with elevators.chosen(name, [disk.name for disk in disks], device):
                yield _observe(scenario, name, disks, top, device, say)


def _write_file(file: Path, size_mb: int) -> None:
    """Write real blocks: an unwritten extent is read without a disk."""
    command("dd", "if=/dev/zero", f"of={file}", "bs=1M", f"count={size_mb}", "conv=fsync")


def _forget(file: Path) -> None:
    """Drop a file from memory, and nothing else: programs read again would cost time."""
    with file.open("rb") as opened:
        os.fsync(opened.fileno())
        os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _device(stack: Stack, top: str) -> str:
    """The device that units see: the top, or what its file system lies on."""
    if Path(top).is_dir():
        return command("findmnt", "--noheadings", "--output=SOURCE", top).strip()
    return top


def _unit(spec: UnitSpec, top: str, device: str, ends: bool) -> Unit:
    on_device = {device: spec.device_weight} if spec.device_weight else {}
    # A unit that is waited for must stay in systemd until its duration has been read.
    properties = {"RemainAfterExit": "yes"} if ends else {}
    return Unit(spec.name, spec.command(top), spec.weight, on_device, properties)


def _observe(
    scenario: Scenario, name: str, disks: list[ModelDisk], top: str, device: str, say: Say
) -> Run:
    everyone = [_unit(spec, top, device, spec.name == scenario.until) for spec in scenario.unit]
    last = [unit for unit in everyone if unit.name == scenario.until]
    first = [unit for unit in everyone if unit not in last]
    for file in scenario.file:
        _forget(Path(top) / file.name)
    for disk in disks:
        disk.reset()
    with ExitStack() as undo:
        undo.callback(units_of.stop, everyone)
        sampler = undo.enter_context(Sampler(disks, everyone, devno(device)))
        units_of.start(first)
        for unit in first:
            wait_for(partial(sampler.came, unit.name), f"{unit.unit} uses {device}", TIMEOUT_S)
        time.sleep(scenario.ramp_s)
        say(f"{scenario.name}: {name}: measuring")
        from_s = time.monotonic()
        if last:
            units_of.start(last)
            _wait_for_end(last[0], scenario.timeout_s)
            began_s, to_s = last[0].ran()
            finished, events = {last[0].name: to_s - began_s}, ()
            # The disk is shared from its first request on; before, a program was loaded.
            from_s = sampler.came_s(last[0].name)
        else:
            finished = {}
            events = tuple(_events(scenario, everyone, device, from_s))
            time.sleep(max(0.0, from_s + scenario.measure_s - time.monotonic()))
            to_s = time.monotonic()
        dead = [unit for unit in first if not unit.busy()]
        if dead:
            raise RuntimeError(f"{dead[0].unit} ended early:\n{dead[0].journal()}")
        say(f"{scenario.name}: {name}: measured")
    leaves = tuple(disk.name for disk in disks)
    return Run(scenario, name, leaves, sampler, from_s, to_s, events, finished)


def _wait_for_end(unit: Unit, timeout_s: float) -> None:
    end = time.monotonic() + timeout_s
    while unit.busy():
        if time.monotonic() > end:
            raise TimeoutError(f"{unit.unit}: still running after {timeout_s:g} s")
        time.sleep(PERIOD_S)


def _events(
    scenario: Scenario, everyone: list[Unit], device: str, from_s: float
) -> Iterator[float]:
    """Let the events of a scenario happen; yields the time at which each was requested."""
    for event in scenario.event:
        time.sleep(max(0.0, from_s + event.at_s - time.monotonic()))
        yield time.monotonic()
        changed = [unit for unit in everyone if unit.name in event.weight]
        units_of.at_once([_change(unit, event, device) for unit in changed])


def _change(unit: Unit, event: Event, device: str) -> list[str]:
    weight = event.weight[unit.name]
    if unit.device_weights:
        return unit.set_command(IODeviceWeight=f"{device} {weight}")
    return unit.set_command(IOWeight=weight)
