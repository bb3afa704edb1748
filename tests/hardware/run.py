# SPDX-License-Identifier: LGPL-2.1-or-later
"""One run: units use the device under a scheduler, and their counters are sampled.

    switch -> start units -> wait for I/O of each -> ramp -> samples for the measured time -> SIGINT

Floors are policies that end with the connection to the bus.
"""

import contextlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sutro import values
from sutro.client import Client
from sutro.errors import SutroError

from . import fio, state
from .experiment import OURS, Group
from .leaf import LeafError
from .machine import POLL_S, START_S, Job, Machine, RunError
from .plan import Step
from .target import Medium, Target

Dict = dict[str, Any]

PERIOD_S = 0.25
WORST_S = 2.0
WEIGHT_S = 10.0
FLOOR_KEY = "ReadBandwidthMin"
# Failures of a run; the test goes on.
TROUBLE = (RunError, LeafError, fio.ReportError)


@dataclass(frozen=True)
class Sample:
    """Counters of all units at a moment; `account_ns` is empty where the elevator has none."""

    at_s: float
    bytes: Mapping[str, int]
    account_ns: Mapping[str, int]


@dataclass(frozen=True)
class Run:
    """Samples of a run, and P99 by unit (no number where fio has none)."""

    step: Step
    samples: Sequence[Sample]
    p99_us: Mapping[str, float]

    @property
    def seconds(self) -> float:
        """The measured time."""
        return self.samples[-1].at_s - self.samples[0].at_s

    def bytes(self, name: str) -> int:
        """Bytes that a unit moved."""
        return self.samples[-1].bytes[name] - self.samples[0].bytes[name]

    def rate(self, name: str) -> float:
        """Bytes per second."""
        return self.bytes(name) / self.seconds

    def total(self) -> float:
        """Bytes per second of all units."""
        return sum(self.rate(name) for name in self.samples[-1].bytes)

    def account_ns(self, name: str) -> int | None:
        """Device time that the elevator charged; None without an account of all units."""
        first, last = self.samples[0].account_ns, self.samples[-1].account_ns
        if not last or not all(last[one] - first.get(one, 0) > 0 for one in last):
            return None
        return last[name] - first.get(name, 0)

    def worst_rate(self, name: str) -> float:
        """The lowest rate of a unit in WORST_S seconds; no number if the run was shorter."""
        worst = math.nan
        for begin in self.samples:
            later = (end for end in self.samples if end.at_s >= begin.at_s + WORST_S)
            end = next(later, None)
            if end:
                rate = (end.bytes[name] - begin.bytes[name]) / (end.at_s - begin.at_s)
                worst = rate if math.isnan(worst) else min(worst, rate)
        return worst


class Runner:
    """Runs steps on a machine."""

    def __init__(self, client: Client, machine: Machine, target: Target, measure_s: float):
        self._client, self._machine, self._target = client, machine, target
        self._measure_s = measure_s

    async def run(self, step: Step, floors: Mapping[str, float]) -> Run:
        """Do a run; floors: bytes per second by unit. RunError and others for a failure."""
        groups = [one for one in step.experiment.group if step.only in ("", one.name)]
        jobs = {group.name: self._job(step, group) for group in groups}
        self._machine.select(step.scheduler, step.experiment.knobs.get(step.scheduler, {}))
        stated = [] if step.only else [name for name in jobs if name in floors]
        try:
            for name in stated:
                await self._state(jobs[name].unit, str(round(floors[name])))
            await self._machine.start(list(jobs.values()))
            await self._begun(jobs, step.scheduler == OURS and not stated)
            samples = await self._samples(step, jobs)
            await self._machine.finish(list(jobs.values()))
        finally:
            self._machine.stop(list(jobs.values()))
            for name in stated:
                # Without a connection the policy has ended.
                with contextlib.suppress(SutroError):
                    await self._state(jobs[name].unit, "")
        p99 = {group.name: self._p99_us(jobs[group.name], group) for group in groups}
        return Run(step, samples, p99)

    def _medium(self, group: Group) -> Medium:
        medium = self._target.file if group.job.writes else self._target.device
        assert medium, "experiments that write are run with a file only"
        return medium

    def _job(self, step: Step, group: Group) -> Job:
        medium, unit = self._medium(group), step.unit(group.name)
        command = fio.command(step.experiment, group, medium.path, medium.size_bytes, _report(unit))
        return Job(unit, tuple(command), group.weight, medium.devno)

    async def _state(self, unit: str, rate: str) -> None:
        """Set a floor, or reset it."""
        value = f"{values.quoted(self._target.device.path)} {rate}" if rate else ""
        await self._client.set_policy(unit, [(FLOOR_KEY, value)], "client")

    async def _begun(self, jobs: Mapping[str, Job], weighted: bool) -> None:
        """Wait until each unit has used the device, and has its weight."""
        machine, end = self._machine, self._machine.now() + START_S
        while idle := [job for job in jobs.values() if not machine.bytes_used(job)]:
            self._check_alive(jobs)
            if machine.now() > end:
                raise RunError(f"{idle[0].unit} made no request within {START_S:.0f} s")
            await machine.sleep(POLL_S)
        end = machine.now() + WEIGHT_S
        while weighted and not all(machine.has_weight(job) for job in jobs.values()):
            if machine.now() > end:
                raise RunError(f"the weights are not in force after {WEIGHT_S:.0f} s")
            await machine.sleep(POLL_S)

    async def _samples(self, step: Step, jobs: Mapping[str, Job]) -> list[Sample]:
        machine = self._machine
        await machine.sleep(step.experiment.ramp_s)
        samples = [self._sample(step, jobs)]
        end = samples[0].at_s + self._measure_s
        while (left := end - machine.now()) > 0:
            await machine.sleep(min(left, PERIOD_S))
            samples.append(self._sample(step, jobs))
        self._check_alive(jobs)
        return samples

    def _sample(self, step: Step, jobs: Mapping[str, Job]) -> Sample:
        used = {name: self._machine.bytes_used(job) for name, job in jobs.items()}
        account = {
            name: self._machine.account_ns(job, step.scheduler) for name, job in jobs.items()
        }
        known = {name: ns for name, ns in account.items() if ns is not None}
        return Sample(self._machine.now(), used, known)

    def _check_alive(self, jobs: Mapping[str, Job]) -> None:
        for job in jobs.values():
            if not self._machine.is_alive(job):
                words = self._machine.last_words(job)
                raise RunError(f"{job.unit} ended early" + (f": {words}" if words else ""))

    def _p99_us(self, job: Job, group: Group) -> float:
        if group.job.tool != "fio":
            return math.nan
        return fio.p99_us(fio.report(self._machine.report(_report(job.unit))))


def _report(unit: str) -> str:
    return f"{state.FOLDER}/{unit}.json"
