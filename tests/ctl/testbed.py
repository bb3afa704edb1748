# SPDX-License-Identifier: LGPL-2.1-or-later
"""A machine for `sutroctl test` without units: its disk divides its time as a scheduler would.

    sutro   by weight; a unit with a floor has at least 55 %
    bfq     by the square root of the weight
    others  equally

A request takes the time of its bytes and of 64 KiB more. A unit with one request in flight can use
30 % of the disk. Time passes in sleep() only.
"""

import asyncio
import json
from math import sqrt

from hardware.machine import Job

RATE = 400e6
SETUP_BYTES = 64 << 10
SINGLE = 0.3
FLOOR = 0.55
P99_NS = 200_000


def _option(job: Job, key: str) -> str:
    return next((w.partition("=")[2] for w in job.command if w.startswith(f"--{key}=")), "")


class Testbed:
    """Has the methods of hardware.machine.Machine."""

    __test__ = False

    # Set by a test: failures, and the moment of a signal.
    fails: dict[str, str] = {}  # part of a unit's name: its last words
    stops_at: str = ""  # part of a unit's name: on_stop() is called once when it runs
    made: list["Testbed"] = []

    def __init__(self, leaves, iocost):
        self.leaves, self.iocost = leaves, iocost
        self.time_s, self.scheduler = 1000.0, ""
        self.jobs: dict[str, Job] = {}
        self.used: dict[str, float] = {}
        self.time_ns: dict[str, float] = {}
        self.log: list[str] = []
        self.filled: list[list[str]] = []
        Testbed.made.append(self)

    def on_stop(self):
        """The file that a test puts in its place."""

    def select(self, scheduler, knobs):
        self.scheduler = scheduler
        self.log.append(" ".join([scheduler, *(f"{k}={v}" for k, v in knobs.items())]))
        for leaf in self.leaves:
            leaf.select(scheduler, dict(knobs))

    async def start(self, jobs):
        self.jobs = {job.unit: job for job in jobs}
        self.used = dict.fromkeys(self.jobs, 0.0)
        self.time_ns = dict.fromkeys(self.jobs, 0.0)
        self.log.append("start " + " ".join(sorted(self.jobs)))

    async def fill(self, command):
        self.filled.append(list(command))

    async def finish(self, jobs):
        self.log.append("finish")

    def stop(self, jobs):
        self.log.append("stop")

    def is_alive(self, job):
        return not any(part in job.unit for part in self.fails)

    def last_words(self, job):
        return next((message for part, message in self.fails.items() if part in job.unit), "")

    def report(self, path):
        unit = path.rpartition("/")[2].removesuffix(".json")
        slow = 1 if len(self.jobs) == 1 else {"sutro": 1.5, "bfq": 4}.get(self.scheduler, 20)
        way = "write" if "write" in _option(self.jobs[unit], "rw") else "read"
        latency = {"percentile": {"99.000000": P99_NS * slow}}
        return "fio: a note\n" + json.dumps(
            {"jobs": [{"error": 0, way: {"total_ios": 1, "clat_ns": latency}}]}
        )

    def bytes_used(self, job):
        return int(self.used[job.unit])

    def account_ns(self, job, scheduler):
        return int(self.time_ns[job.unit]) if scheduler == "sutro" else None

    def has_weight(self, job):
        return True

    def now(self):
        return self.time_s

    async def sleep(self, seconds):
        self.time_s += seconds
        if self.stops_at and any(self.stops_at in unit for unit in self.jobs):
            self.stops_at = ""
            self.on_stop()
        await asyncio.sleep(0)
        for unit, share in self.shares().items():
            bs = self.bs_bytes(self.jobs[unit])
            self.used[unit] += RATE * seconds * share * bs / (bs + SETUP_BYTES)
            self.time_ns[unit] += 1e9 * seconds * share

    @staticmethod
    def bs_bytes(job):
        text = _option(job, "bs")
        return int(text[:-1]) * {"k": 1 << 10, "m": 1 << 20}[text[-1]] if text else 1 << 20

    def shares(self):
        """Parts of the time of the disk."""
        jobs = self.jobs.values()
        power = {"sutro": lambda weight: weight, "bfq": sqrt}.get(self.scheduler, lambda _: 1)
        shares = {job.unit: power(job.weight) for job in jobs}
        whole = sum(shares.values())
        shares = {unit: part / whole for unit, part in shares.items()}
        for job in jobs:
            if self.scheduler == "sutro" and job.unit.endswith("-db.service") and len(shares) > 1:
                rest = (1 - FLOOR) / (1 - shares[job.unit])
                shares = {unit: share * rest for unit, share in shares.items()}
                shares[job.unit] = FLOOR
        single = {job.unit for job in jobs if _option(job, "iodepth") == "1"}
        return {u: min(share, SINGLE) if u in single else share for u, share in shares.items()}
