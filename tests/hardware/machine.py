# SPDX-License-Identifier: LGPL-2.1-or-later
"""The machine of a run: transient units, counters of their cgroups, the clock, the schedulers.

A unit is a service of the slice sutrotest.slice. Its counters at the leaves and at the device come
from its cgroup: io.stat has bytes, for all schedulers. sutro's io.sutro.stat has the device time
that the elevator charged; on leaves with iocost io.stat has it as cost.usage.
"""

import asyncio
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import files, state
from .experiment import OURS
from .leaf import IOCOST, Leaf

Dict = dict[str, Any]

CGROUPS = f"/sys/fs/cgroup/{state.SLICE}"
START_S, END_S, POLL_S = 60.0, 15.0, 0.1


class RunError(RuntimeError):
    """A run that did not come to its end; the text has the reason."""


@dataclass(frozen=True)
class Job:
    """A unit to start; `devno` has its bytes in io.stat."""

    unit: str
    command: tuple[str, ...]
    weight: int
    devno: str

    def start_command(self) -> list[str]:
        """The call of systemd-run."""
        return [
            "systemd-run", "--quiet", "--collect", f"--unit={self.unit}",
            f"--slice={state.SLICE}", "--service-type=exec", f"--property=IOWeight={self.weight}",
            "--property=IOAccounting=yes", "--", *self.command,
        ]  # fmt: skip


def io_stat(text: str) -> dict[str, dict[str, int]]:
    """The counters of io.stat or io.sutro.stat by device."""
    found: dict[str, dict[str, int]] = {}
    for devno, *words in filter(None, map(str.split, text.splitlines())):
        pairs = (word.partition("=") for word in words)
        found[devno] = {key: int(value) for key, _, value in pairs if value.isdecimal()}
    return found


class Machine:
    """The real one. Tests have another with the same methods."""

    def __init__(self, leaves: Sequence[Leaf], iocost: Sequence[Leaf]) -> None:
        self.leaves, self._iocost = leaves, iocost

    # Schedulers

    def select(self, scheduler: str, knobs: Mapping[str, object]) -> None:
        """Switch all leaves to a scheduler; iocost is enabled for its own runs only."""
        for leaf in self.leaves:
            leaf.select(scheduler, dict(knobs))
        for leaf in self._iocost:
            leaf.enable_iocost(scheduler == IOCOST)

    # Units

    async def start(self, jobs: Sequence[Job]) -> None:
        """Start units together; they run when it returns."""
        await asyncio.gather(*(_run(job.start_command()) for job in jobs))

    async def fill(self, command: Sequence[str]) -> None:
        """Run a command in a unit of the slice to its end."""
        words = ["systemd-run", "--quiet", "--collect", "--wait", "--pipe"]
        words += [f"--slice={state.SLICE}", "--unit=sutrotest-fill.service", "--", *command]
        await _run(words)

    async def finish(self, jobs: Sequence[Job]) -> None:
        """End units as Ctrl-C does, so that fio leaves its reports."""
        names = [job.unit for job in jobs]
        state.systemctl("kill", "--signal=SIGINT", *names)
        end = self.now() + END_S
        while any(self.is_alive(job) for job in jobs) and self.now() < end:
            await self.sleep(POLL_S)

    def stop(self, jobs: Sequence[Job]) -> None:
        """Stop units, whatever state they are in."""
        state.systemctl("stop", *(job.unit for job in jobs))

    def is_alive(self, job: Job) -> bool:
        """It has processes."""
        return "populated 1" in (files.text(f"{CGROUPS}/{job.unit}/cgroup.events") or "")

    def last_words(self, job: Job) -> str:
        """The last line that a unit wrote."""
        command = ["journalctl", "--quiet", "--no-pager", "--lines=1", "--output=cat"]
        try:
            done = subprocess.run(
                [*command, f"--unit={job.unit}"], capture_output=True, text=True, timeout=30,
                check=False,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired):
            return ""
        return done.stdout.strip()

    def report(self, path: str) -> str:
        """The text of the report of a job; it is removed."""
        text = files.text(path) or ""
        files.at(path).unlink(missing_ok=True)
        return text

    # Counters

    def bytes_used(self, job: Job) -> int:
        """Bytes that a unit has requested of its device."""
        found = io_stat(files.text(f"{CGROUPS}/{job.unit}/io.stat") or "").get(job.devno, {})
        return found.get("rbytes", 0) + found.get("wbytes", 0)

    def account_ns(self, job: Job, scheduler: str) -> int | None:
        """Device time of a unit on all leaves as the elevator charges it; None without one."""
        file, key, factor = {
            OURS: ("io.sutro.stat", "time_ns", 1),
            IOCOST: ("io.stat", "cost.usage", 1000),
        }.get(scheduler, ("", "", 0))
        if not file:
            return None
        found = io_stat(files.text(f"{CGROUPS}/{job.unit}/{file}") or "")
        return sum(found.get(leaf.devno, {}).get(key, 0) * factor for leaf in self.leaves)

    def has_weight(self, job: Job) -> bool:
        """Under sutro: the weight of the unit is in force."""
        text = files.text(f"{CGROUPS}/{job.unit}/io.sutro.weight") or ""
        return text.splitlines()[:1] == [f"default {job.weight}"]

    # The clock

    def now(self) -> float:
        """Seconds of CLOCK_MONOTONIC."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Let units run."""
        await asyncio.sleep(seconds)


async def _run(command: Sequence[str]) -> None:
    """Run a command; RunError with its last line if it fails."""
    try:
        process = await asyncio.create_subprocess_exec(
            *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
    except OSError as error:
        raise RunError(f"{command[0]}: {error.strerror}") from None
    out, _ = await process.communicate()
    if process.returncode:
        lines = out.decode(errors="replace").strip().splitlines() or ["no output"]
        raise RunError(f"{command[0]}: status {process.returncode}: {lines[-1]}")
