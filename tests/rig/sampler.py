# SPDX-License-Identifier: LGPL-2.1-or-later
"""Watch a run: a thread that records ten times a second the use of each unit so far.

Three accounts are kept side by side, all of them running totals:

* truth: device time and bytes of each unit at each leaf, from the model disk;
* sent, logical: bytes that each unit submitted to the logical device, and that completed. `io.stat`
  of its cgroup counts both alike; if the logical device is a leaf, the truth has the second;
* cpu: busy and all jiffies, because a starved CPU makes a slow disk of its own.

Totals go on where they were when a unit is stopped and started again, though its cgroup is new.
Afterwards, any window of time can be read: totals between two samples are interpolated.
"""

import bisect
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from rig.modeldisk import ModelDisk
from rig.unit import Unit

PERIOD_S = 0.1


def parse_io_stat(text: str, devno: str) -> dict[str, int]:
    """The numbers of one device in an `io.stat`-like file (`MAJ:MIN key=value ...`)."""
    for line in text.splitlines():
        number, *pairs = line.split()
        if number == devno:
            named = (pair.partition("=") for pair in pairs)
            return {key: int(value) for key, _, value in named if value.lstrip("-").isdecimal()}
    return {}


def cpu_jiffies() -> tuple[int, int]:
    """Idle (with waiting for I/O) and all jiffies since boot."""
    fields = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return fields[3] + fields[4], sum(fields)


@dataclass(frozen=True)
class Sample:
    """Running totals at one moment, by (account, unit or leaf) keys."""

    at_s: float
    totals: Mapping[tuple[str, ...], int]

    def sent(self, unit: str) -> int:
        """Bytes that a unit has submitted to the logical device so far."""
        return self.totals.get(("sent", unit), 0)


class Sampler:
    """Take samples while the `with` statement lasts; read them afterwards or meanwhile.

    `devno` is the logical device of all units, or that of each by its name.
    """

    def __init__(
        self, disks: Sequence[ModelDisk], units: Sequence[Unit], devno: str | Mapping[str, str]
    ):
        self._disks = list(disks)
        self._units = list(units)
        every = {unit.name: devno for unit in units} if isinstance(devno, str) else devno
        self._devno = dict(every)
        # By unit: the bytes of its present cgroup at the last sample, and of all cgroups before it.
        self._sent: dict[str, tuple[int, int]] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="sampler", daemon=True)
        self._failure: Exception | None = None
        self.samples: list[Sample] = []

    def __enter__(self) -> Self:
        self.samples.append(self._take())
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self.samples.append(self._take())
        if self._failure:
            raise self._failure

    def _loop(self) -> None:
        try:
            while not self._stop.wait(PERIOD_S):
                self.samples.append(self._take())
        except Exception as error:  # noqa: BLE001 - raised again at the end of the `with`
            self._failure = error

    def _take(self) -> Sample:
        # A unit that has ended has no files any more: its totals stay what they were.
        totals = dict(self.samples[-1].totals) if self.samples else {}
        for disk in self._disks:
            truth = disk.truth()
            totals["busy", disk.name] = truth.total.busy_ns
            totals["time", disk.name] = truth.total.time_ns
            for unit in self._units:
                used = truth.owners.get(unit.cgroup)
                if used:
                    totals["time", disk.name, unit.name] = used.time_ns
                    totals["bytes", disk.name, unit.name] = used.bytes
        leaves = {disk.devno: disk.name for disk in self._disks}
        for unit in self._units:
            devno = self._devno[unit.name]
            try:
                numbers = parse_io_stat(unit.read("io.stat"), devno)
            except OSError:
                numbers = {}
            if numbers:
                sent = self._add(unit.name, numbers["rbytes"] + numbers["wbytes"])
                totals["sent", unit.name] = totals["logical", unit.name] = sent
            if devno in leaves:
                # io.stat counts sent bytes; the model disk counts completed ones.
                totals["logical", unit.name] = totals.get(("bytes", leaves[devno], unit.name), 0)
        totals["idle",], totals["jiffies",] = cpu_jiffies()
        return Sample(time.monotonic(), totals)

    def _add(self, unit: str, sent: int) -> int:
        """Bytes that a unit has sent in all its cgroups; a smaller number is that of a new one."""
        last, before = self._sent.get(unit, (0, 0))
        before += last if sent < last else 0
        self._sent[unit] = sent, before
        return before + sent

    def came(self, unit: str, after_s: float = 0.0) -> bool:
        """True once a unit has submitted a request to the logical device since a moment."""
        return self.samples[-1].sent(unit) > self.total(("sent", unit), after_s)

    def came_s(self, unit: str, after_s: float = 0.0) -> float:
        """The time of the first request of a unit to the logical device since a moment."""
        had = self.total(("sent", unit), after_s)
        number = next(n for n, sample in enumerate(self.samples) if sample.sent(unit) > had)
        around = self.samples[max(number - 1, 0) : number + 1]
        return sum(sample.at_s for sample in around) / len(around)

    def total(self, key: tuple[str, ...], at_s: float) -> float:
        """A running total at any moment, interpolated between samples."""
        times = [sample.at_s for sample in self.samples]
        right = bisect.bisect_left(times, at_s)
        if right == 0:
            return self.samples[0].totals.get(key, 0)
        if right == len(times):
            return self.samples[-1].totals.get(key, 0)
        before, after = self.samples[right - 1], self.samples[right]
        part = (at_s - before.at_s) / (after.at_s - before.at_s)
        low, high = before.totals.get(key, 0), after.totals.get(key, 0)
        return low + part * (high - low)

    def used(self, key: tuple[str, ...], from_s: float, to_s: float) -> float:
        """How much of a total came in a window."""
        return self.total(key, to_s) - self.total(key, from_s)

    def time_ns(self, unit: str, from_s: float, to_s: float, leaf: str | None = None) -> float:
        """True device time of a unit in a window, at one leaf or at all."""
        leaves = [leaf] if leaf else [disk.name for disk in self._disks]
        return sum(self.used(("time", each, unit), from_s, to_s) for each in leaves)

    def shares(self, from_s: float, to_s: float, leaf: str | None = None) -> dict[str, float]:
        """Each unit's part of the units' true device time in a window; all 0 if nothing ran."""
        times = {u.name: self.time_ns(u.name, from_s, to_s, leaf) for u in self._units}
        whole = sum(times.values())
        return {name: time_ns / whole if whole else 0.0 for name, time_ns in times.items()}

    def mbps(self, unit: str, from_s: float, to_s: float) -> float:
        """Bandwidth of a unit at the logical device, in 10^6 bytes per second."""
        return self.used(("logical", unit), from_s, to_s) / (to_s - from_s) / 1e6

    def disk_busy(self, leaf: str, from_s: float, to_s: float) -> float:
        """Part of a window in which a leaf had work."""
        return self.used(("busy", leaf), from_s, to_s) / 1e9 / (to_s - from_s)

    def cpu_idle(self, from_s: float, to_s: float) -> float:
        """Idle part of the CPU time."""
        jiffies = self.used(("jiffies",), from_s, to_s)
        return self.used(("idle",), from_s, to_s) / jiffies if jiffies else 0.0


def mbps_by_window(
    disks: Sequence[ModelDisk], units: Sequence[Unit], devno: str, seconds: float, window_s: float
) -> dict[str, list[float]]:
    """The bandwidth of each unit in each window of the next seconds, half a second apart."""
    began = time.monotonic()
    with Sampler(disks, units, devno) as watch:
        time.sleep(seconds)
    ended = time.monotonic()
    starts = [began + 0.5 * n for n in range(int((ended - began - window_s) / 0.5))]
    return {u.name: [watch.mbps(u.name, t, t + window_s) for t in starts] for u in units}


def device_time_ns(
    disk: ModelDisk, cgroups: Sequence[str], ramp_s: float, measure_s: float
) -> dict[str, int]:
    """Wait for a while, and return the true device time of each cgroup on a disk."""
    time.sleep(ramp_s)
    before = disk.truth()
    time.sleep(measure_s)
    after = disk.truth()
    return {path: after.of(path).time_ns - before.of(path).time_ns for path in cgroups}
