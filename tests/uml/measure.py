# SPDX-License-Identifier: LGPL-2.1-or-later
"""Numbers of a run. Shares are of true device time, which the model disk reports.

    ratio                true time of the first group of a goal over that of the second
    bandwidth_ratio      bytes of the first group of a goal over those of the second
    share                true time of a group as a part of that of all
    worst_share_error    largest |share / entitlement - 1| among the siblings of any level
    jain                 Jain's index of share / entitlement over all groups with jobs
    charge_error         largest |charged / true - 1|; charged is time_ns of io.sutro.stat
    throughput_mbps      10^6 bytes a second, all groups together; iops: requests
    work                 true device time a second; on flash it is the part of the work of the
                         groups alone that they do together, so mixes can be compared
    pNN_us               latency of a group's fio: of completion, and of fsync() where it calls that
    takeover_ms          how late a group is in having the device for itself while others pause
    giveback_ms          how late a group is in having its share after the pause
    weight_ms            how late a group is in having its share after the last event
    settle_s             from the last event until every second thereafter has all shares within 5 %
    finish_s             when the awaited job ended, from its start
    locks                acquisitions of the scheduler's own locks for a request (locks.py)
    all_locks            acquisitions of all locks of the kernel for a request: also those of
                         fio, of the block layer, of the driver and of timers
    least_busy           of several disks, the part of the time for which the one that was least
                         busy had requests
    owned                the part of all bytes, those of the root cgroup included, that groups with
                         jobs were charged for
    reading              the number that the command of this name in `readings` printed

How late. A group shall receive device time at a rate r from a moment on. It is late by the least D
with which its service at all times t after that is at least r (t - D). That is the latency of its
service curve: 0 for a group that is served at once and evenly, half a second for one that gets
nothing for half a second and then its rate. r is 95 % of the whole device, or of the group's
entitlement, as far as the device is used at all.

The other metrics compare runs (bench.py).
"""

import math
from dataclasses import dataclass
from functools import cached_property

from rig.modeldisk import Truth, Usage, parse_truth

from . import locks
from .scenario import Scenario

NAN = math.nan
RATE_PART = 0.95
SETTLED = 0.05
WINDOW_S = 1.0


@dataclass(frozen=True)
class Sample:
    """The truth, and the charges of the elevator, at one moment of the run."""

    at_s: float
    disks: tuple[Truth, ...]
    charged_ns: dict[str, int]
    dequeued: dict[str, int]
    acquired: dict[str, int]

    @cached_property
    def truth(self) -> Truth:
        """Of all disks together."""
        return sum(self.disks[1:], self.disks[0])


class Run:
    """The result of a scenario under a scheduler; its methods compute the numbers."""

    def __init__(self, scenario: Scenario, scheduler: str, result: dict):
        self.scenario = scenario
        self.scheduler = scheduler
        self.samples = [
            Sample(
                sample["at_s"],
                tuple(map(parse_truth, sample["truths"])),
                {path: _stat(text, "time_ns") for path, text in sample["stat"].items()},
                {path: _stat(text, "dequeue") for path, text in sample["stat"].items()},
                locks.acquisitions(sample.get("locks", "")),
            )
            for sample in result["samples"]
        ]
        self.fio: dict[str, dict] = result["fio"]
        self.ended_s: dict[str, float] = result["ended_s"]
        self.readings: dict[str, float] = result.get("readings", {})

    @property
    def counts(self) -> dict[str, tuple[int, ...]]:
        """The numbers that two runs must have in common to the last digit."""
        last = self.samples[-1].truth
        return {path: (u.rios, u.wios, u.time_ns) for path, u in sorted(last.owners.items())}

    # ---- true device time ----

    def used(self, name: str, begin: int = 0, end: int = -1) -> Usage:
        """The use of a group and all groups in it between two samples."""
        return self._sum(name, self.samples[end].truth) - self._sum(name, self.samples[begin].truth)

    @staticmethod
    def _sum(name: str, truth: Truth) -> Usage:
        inside = f"/{name}/"
        mine = [u for path, u in truth.owners.items() if f"{path}/".startswith(inside)]
        return sum(mine, Usage())

    def phases(self, settle_s: float) -> list[tuple[int, int]]:
        """Numbers of the samples at the begin and the end of each phase, once it is settled.

        A phase ends when a job begins, pauses or resumes, and with an event."""
        scene = self.scenario
        jobs = [job for group in scene.group for job in group.job]
        changes = {at_s for job in jobs for at_s in (job.start_s, *job.pause_s)}
        changes |= {event.at_s for event in scene.event}
        ends = sorted(at_s for at_s in changes if scene.warmup_s < at_s < scene.end_s)
        found, begin_s = [], scene.warmup_s
        for end_s in (*ends, scene.end_s):
            inside = [n for n, s in enumerate(self.samples) if begin_s <= s.at_s <= end_s]
            found.append((inside[0], inside[-1]))
            begin_s = end_s + settle_s
        return found

    def series(self) -> list[dict[str, float]]:
        """Totals of each group with jobs at each sample: device time in ms, and dequeues."""
        return [
            {"at_s": sample.at_s}
            | {f"{g.name}_ms": self._sum(g.name, sample.truth).time_ns / 1e6 for g in groups}
            | {f"{g.name}_dequeue": sample.dequeued.get(g.path, 0) for g in groups}
            for groups in [self.scenario.leaves()]
            for sample in self.samples
        ]

    @property
    def elapsed_s(self) -> float:
        """Length of the measurement."""
        return self.samples[-1].at_s - self.samples[0].at_s

    def shares(self, begin: int = 0, end: int = -1) -> dict[str, float]:
        """Parts of the true time of all groups that have jobs."""
        times = {g.name: self.used(g.name, begin, end).time_ns for g in self.scenario.leaves()}
        total = sum(times.values())
        return {name: time / total if total else NAN for name, time in times.items()}

    def share_errors(self, begin: int = 0, end: int = -1) -> dict[str, float]:
        """share / entitlement - 1 of each group among its siblings."""
        at_s = self.samples[end].at_s
        weights = self.scenario.weights(at_s)
        errors = {}
        for _, groups in self.scenario.siblings():
            times = {group.name: self.used(group.name, begin, end).time_ns for group in groups}
            total, weight = sum(times.values()), sum(weights[name] for name in times)
            for name, time in times.items():
                due = weights[name] / weight
                errors[name] = time / total / due - 1 if total else NAN
        return errors

    def ratio(self, of: tuple[str, ...]) -> float:
        first, second = of or [group.name for group in self.scenario.leaves()[:2]]
        below = self.used(second).time_ns
        return self.used(first).time_ns / below if below else math.inf

    def bandwidth_ratio(self, of: tuple[str, ...]) -> float:
        first, second = of or [group.name for group in self.scenario.leaves()[:2]]
        return self.bytes(first) / below if (below := self.bytes(second)) else math.inf

    def share(self, of: tuple[str, ...]) -> float:
        return self.shares()[of[0]]

    def worst_share_error(self) -> float:
        return _worst(self.share_errors().values())

    def jain(self) -> float:
        entitled = self.scenario.entitled(self.samples[-1].at_s)
        parts = [share / entitled[name] for name, share in self.shares().items()]
        squares = sum(part * part for part in parts)
        return sum(parts) ** 2 / (len(parts) * squares) if squares else NAN

    def charge_errors(self) -> dict[str, float]:
        """charged / true - 1 of each group with jobs; empty where the elevator charges nothing."""
        errors = {}
        for group in self.scenario.leaves():
            if group.path not in self.samples[-1].charged_ns:
                return {}
            before, after = self.samples[0].charged_ns, self.samples[-1].charged_ns
            charged = after[group.path] - before[group.path]
            true = self.used(group.name).time_ns
            errors[group.name] = charged / true - 1 if true else NAN
        return errors

    def charge_error(self) -> float:
        return _worst(self.charge_errors().values())

    def work(self) -> float:
        return sum(self.used(g.name).time_ns for g in self.scenario.leaves()) / self.elapsed_s / 1e9

    def least_busy(self) -> float:
        first, last = self.samples[0].disks, self.samples[-1].disks
        busy = [end.total - begin.total for begin, end in zip(first, last, strict=True)]
        return min(usage.busy_ns for usage in busy) / 1e9 / self.elapsed_s

    def owned(self) -> float:
        total = (self.samples[-1].truth.total - self.samples[0].truth.total).bytes
        mine = sum(self.bytes(group.name) for group in self.scenario.leaves())
        return mine / total if total else NAN

    def reading(self, of: tuple[str, ...]) -> float:
        return self.readings[of[0]]

    # ---- throughput and latency ----

    def bytes(self, name: str) -> int:
        return self.used(name).bytes

    def throughput_mbps(self) -> float:
        return sum(self.bytes(g.name) for g in self.scenario.leaves()) / self.elapsed_s / 1e6

    def iops(self) -> float:
        used = [self.used(group.name) for group in self.scenario.leaves()]
        return sum(u.rios + u.wios for u in used) / self.elapsed_s

    def latency_us(self, name: str, percentile: float) -> float:
        """Of all jobs of a group, reads, writes and fsyncs, the worst; NaN if fio saw none."""
        found = [NAN]
        for job, report in self.fio.items():
            if job.rpartition("-")[0] != name.replace("/", "-"):
                continue
            for part in report["jobs"]:
                for way, latency in (("read", "clat_ns"), ("write", "clat_ns"), ("sync", "lat_ns")):
                    values = part.get(way, {}).get(latency, {}).get("percentile", {})
                    found += [ns / 1e3 for key, ns in values.items() if float(key) == percentile]
        known = [value for value in found if not math.isnan(value)]
        return max(known, default=NAN)

    def p99_us(self, of: tuple[str, ...]) -> float:
        return self.latency_us(of[0], 99)

    # ---- locks ----

    def locks_per_request(self) -> dict[str, float]:
        """Acquisitions for a request, by class; empty unless the kernel counted them."""
        before, after = self.samples[0].acquired, self.samples[-1].acquired
        requests = self.iops() * self.elapsed_s
        if not requests:
            return {}
        return {name: (n - before.get(name, 0)) / requests for name, n in after.items()}

    def locks(self) -> float:
        counted = self.locks_per_request()
        return sum(locks.own(self.scheduler, counted).values()) if counted else NAN

    def all_locks(self) -> float:
        return sum(self.locks_per_request().values()) or NAN

    # ---- what happens when something changes ----

    def takeover_ms(self, of: tuple[str, ...]) -> float:
        """While others pause."""
        begin_s, end_s = self._pause()
        return 1e3 * self._late_s(of[0], begin_s, end_s, 1.0)

    def giveback_ms(self, of: tuple[str, ...]) -> float:
        """After the pause."""
        _, begin_s = self._pause()
        end_s = self.samples[-1].at_s
        return 1e3 * self._late_s(of[0], begin_s, end_s, self.scenario.entitled(end_s)[of[0]])

    def weight_ms(self, of: tuple[str, ...]) -> float:
        """After the last event."""
        begin_s, end_s = self.event_s, self.samples[-1].at_s
        return 1e3 * self._late_s(of[0], begin_s, end_s, self.scenario.entitled(end_s)[of[0]])

    @property
    def event_s(self) -> float:
        """When the last event is; the end if there is none."""
        return max((event.at_s for event in self.scenario.event), default=self.samples[-1].at_s)

    def time_per_s(self, name: str) -> float:
        """True device time a second, before the last event."""
        before, after = self.samples[0], self._at(self.event_s)
        used = self._sum(name, after.truth) - self._sum(name, before.truth)
        return used.time_ns / 1e9 / (after.at_s - before.at_s)

    def _pause(self) -> tuple[float, float]:
        """The one pause of a scenario."""
        jobs = [job for group in self.scenario.leaves() for job in group.job]
        (pause,) = {job.pause_s for job in jobs if job.pause_s}
        return pause[0], pause[1]

    def _at(self, at_s: float) -> Sample:
        """The last sample that is not after a moment."""
        return [sample for sample in self.samples if sample.at_s <= at_s + 1e-6][-1]

    def _late_s(self, name: str, begin_s: float, end_s: float, part: float) -> float:
        begin = self._at(begin_s)
        got0, late_s = self._sum(name, begin.truth).time_ns, 0.0
        span = [sample for sample in self.samples if begin.at_s < sample.at_s <= end_s]
        if not span:
            return NAN
        total0 = begin.truth.total.time_ns
        whole = (span[-1].truth.total.time_ns - total0) / 1e9 / (span[-1].at_s - begin.at_s)
        rate = RATE_PART * part * min(whole, 1.0)
        for sample in span:
            got_s = (self._sum(name, sample.truth).time_ns - got0) / 1e9
            late_s = max(late_s, sample.at_s - begin.at_s - got_s / rate)
        return late_s

    def settle_s(self) -> float:
        event_s = max(event.at_s for event in self.scenario.event)
        settled_s = math.inf
        for end, sample in reversed(list(enumerate(self.samples))):
            begins = [n for n, s in enumerate(self.samples) if s.at_s <= sample.at_s - WINDOW_S]
            if not begins or self.samples[begins[-1]].at_s < event_s:
                break
            if _worst(self.share_errors(begins[-1], end).values()) > SETTLED:
                break
            settled_s = self.samples[begins[-1]].at_s - event_s
        return settled_s

    def finish_s(self) -> float:
        (ended_s,) = self.ended_s.values()
        return ended_s - self.samples[0].at_s


def _stat(text: str, key: str) -> int:
    """A value in an io.sutro.stat, of all disks together."""
    words = (word.partition("=") for word in text.split())
    return sum(int(value) for name, _, value in words if name == key)


def _worst(errors) -> float:
    """The largest error; no number if there is none or one of them is none."""
    found = [abs(error) for error in errors]
    return NAN if not found or any(math.isnan(e) for e in found) else max(found)
