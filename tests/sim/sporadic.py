# SPDX-License-Identifier: GPL-2.0-only
"""A service with a request now and then beside bulk I/O of weight 100.

It reads 16 KiB at a random place, waits for it and thinks: for the same time after each read, or
for a time at random, exponentially distributed. The rates of both alone are measured in the same
simulation.

    python3 sporadic.py [WORDS]     rates over those alone, of the cases whose names hold WORDS
"""

import itertools
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import scenes
from uml.scenario import Group, Job, Scenario

DISKS = {
    "hdd": {"kind": "hdd"},
    "ssd-fast": {"kind": "ssd"},
    # Four times slower than the default, as in tests/uml/protect.toml.
    "ssd": {"kind": "ssd", "read_us": 320, "write_us": 800, "bus_kbps": 135000},
    "nvme": {"kind": "nvme"},
}
DEEP = {"rw": "randread", "bs": "64k", "iodepth": 64}
# The jobs of one group or more.
OTHERS = {
    "deep": ((DEEP,),),
    "writes": (({"rw": "write", "bs": "1m", "iodepth": 32},),),
    "stream": (({"rw": "read", "bs": "256k", "iodepth": 8},),),
    # A request now and then that fits into fewer gaps than the others.
    "mixed": ((DEEP, {"rw": "randread", "bs": "1m", "iodepth": 1, "thinktime": 20000}),),
    # A group for which most gaps are too short, and one that can use them.
    "apart": ((DEEP,), ({"rw": "randread", "bs": "1m", "iodepth": 4},)),
}
WEIGHTS = (200, 1000)
THINK_MS = (5, 10, 20, 50, 100, 200)
SHOWN_S = 30.0


@dataclass(frozen=True)
class Received:
    """The bytes of the service and of each other group over those alone, its P99 likewise, and the
    P99 of the slowest process of the others in seconds. Of several services, the bytes are added,
    and the worst P99 counts."""

    service: float
    others: tuple[float, ...]
    p99: float
    slowest_s: float


@dataclass(frozen=True)
class Case:
    """A service on some disk, the bulk I/O beside it, and its weight."""

    disk: str
    is_random: bool
    think_ms: int
    other: str
    weight: int
    # How many there are in a slice of that weight; 0: one without a slice.
    services: int = 0
    # Processes of each of them.
    processes: int = 1

    def __str__(self) -> str:
        thinks = "random" if self.is_random else "regular"
        many = f"-{self.services}" if self.services else ""
        many += f"x{self.processes}" if self.processes > 1 else ""
        return f"{self.disk}-{thinks}-{self.think_ms}ms{many}-{self.other}-{self.weight}:100"

    def _services(self, job: Job) -> tuple[Group, ...]:
        """The groups of the services, after that of the slice if there is one."""
        if not self.services:
            return (Group("service", self.weight, None, (job,)),)
        slice_ = Group("slice", self.weight, None, ())
        services = (Group(f"slice/{number}", 100, None, (job,)) for number in range(self.services))
        return slice_, *services

    def received(self, seconds: float) -> Received:
        """Both together for some seconds, against each alone."""
        service = {
            "rw": "randread", "bs": "16k", "thinktime": 1000 * self.think_ms,
            "poisson": self.is_random, "numjobs": self.processes,
        }  # fmt: skip
        services = self._services(Job(service))
        others = [
            Group(f"other-{number}", 100, None, tuple(map(Job, jobs)))
            for number, jobs in enumerate(OTHERS[self.other])
        ]
        scene = Scenario(
            name=str(self),
            disk=DISKS[self.disk],
            nr_requests=256,
            group=(*services, *others),
            schedulers=("sutro",),
            warmup_s=3.0,
            measure_s=seconds,
            goal=(),
        )
        names = [group.name for group in scene.group if group.job]
        (together,) = scenes.simulate(scene, "sutro")
        alone = {}
        for name in names:
            (alone[name],) = scenes.simulate(scene, "sutro", only=name)
        mine = [group.name for group in services if group.job]
        return Received(
            sum(map(together.bytes, mine)) / sum(alone[name].bytes(name) for name in mine),
            tuple(together.bytes(one.name) / alone[one.name].bytes(one.name) for one in others),
            max(together.p99_us((name,)) / alone[name].p99_us((name,)) for name in mine),
            max(together.p99_us((group.name,)) for group in others) / 1e6,
        )


def cases() -> Iterator[Case]:
    """All combinations."""
    return itertools.starmap(
        Case, itertools.product(DISKS, (False, True), THINK_MS, OTHERS, WEIGHTS, (0, 4))
    )


def main(words: str) -> None:
    """Print the cases whose names hold the words."""
    chosen = [case for case in cases() if words in str(case)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(lambda case: case.received(SHOWN_S), chosen)
        for case, one in zip(chosen, found, strict=True):
            print(
                f"{str(case):34} service {one.service:.3f} "
                f"others {' '.join(f'{other:.3f}' for other in one.others)} "
                f"P99 {one.p99:.2f} slowest {one.slowest_s:.2f} s",
                flush=True,
            )


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "")
