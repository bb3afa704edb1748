# SPDX-License-Identifier: GPL-2.0-only
"""Scenarios of the control law: sim-run with the daemon, and floors."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from program import line, run

STRIPE, LINEAR, MIRROR = range(3)
MB = 1_000_000
SIZE = {"size_mb": 2048}
HDD = {"kind": 0, **SIZE}
# An hdd that takes twice as long for everything, and as long as usual again.
SLOWER = {"rpm": 3600, "bandwidth_kbps": 75000, "seek_min_us": 1000, "seek_max_us": 21000}
USUAL = {"rpm": 7200, "bandwidth_kbps": 150000, "seek_min_us": 500, "seek_max_us": 10500}
# An ssd that is 8 times slower has as many requests less to simulate.
FLASH = {"kind": 1, "read_us": 640, "write_us": 1600, "bus_kbps": 67500, **SIZE}
# A virtual disk of 24 MB/s that takes 8 requests.
CLOUD = {"kind": 1, "read_us": 1800, "write_us": 4500, "bus_kbps": 24000, "queue_depth": 8, **SIZE}
# 512 KiB take 50 ms: a virtual disk with a limit.
SLOW = {"kind": 1, "read_us": 80, "write_us": 200, "bus_kbps": 10000, **SIZE}


class Result:
    """The results of a scenario; each list has an element for each tick."""

    def __init__(self, result: dict[str, Any]) -> None:
        self.tick_s: float = result["tick_s"]
        self.writes: int = result["writes"]
        self.promises: list[dict[str, Any]] = []
        for promise in result["promises"]:
            columns = [list(column) for column in zip(*promise["ticks"], strict=True)]
            named = zip(("rate", "state", "phi", "gain", "reserve"), columns, strict=False)
            self.promises.append({**promise, "weight": columns[5:], **dict(named)})
        self.clients: list[list[float]] = [client["rate"] for client in result["clients"]]

    def ticks(self, seconds: float) -> int:
        return round(seconds / self.tick_s)

    def mean(self, rate: list[float], first_s: float, last_s: float | None = None) -> float:
        """Of a rate between two times."""
        part = rate[self.ticks(first_s) : None if last_s is None else self.ticks(last_s)]
        return sum(part) / len(part)

    def windows(
        self, rate: list[float], first_s: float, last_s: float | None = None, length_s: float = 2
    ) -> list[float]:
        """Means over all windows of a length between two times."""
        part = rate[self.ticks(first_s) : None if last_s is None else self.ticks(last_s)]
        n = self.ticks(length_s)
        return [sum(part[i : i + n]) / n for i in range(len(part) - n + 1)]

    def held(self, promise: int, first_s: float, last_s: float | None = None) -> float:
        """The part of a floor that was got between two times."""
        p = self.promises[promise]
        return self.mean(p["rate"], first_s, last_s) / p["floor"]

    def worst(self, promise: int, first_s: float, last_s: float | None = None) -> float:
        """The part of a floor that was got in the worst 2 s between two times."""
        p = self.promises[promise]
        return min(self.windows(p["rate"], first_s, last_s)) / p["floor"]

    def states(self, promise: int, first_s: float, last_s: float | None = None) -> list[str]:
        """The states of a promise between two times."""
        last = None if last_s is None else self.ticks(last_s)
        return self.promises[promise]["state"][self.ticks(first_s) : last]

    def total(self, first_s: float, last_s: float | None = None) -> float:
        """Of all clients."""
        return sum(self.mean(rate, first_s, last_s) for rate in self.clients)


@dataclass
class Scenario:
    """Lines for sim-run."""

    seconds: float = 16
    seed: int = 1
    noise: float = 0
    lines: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    def add(self, word: str, **numbers: float) -> int:
        """Add a line to the scenario; returns the number of the object that the line makes."""
        self.lines.append(line(word, **numbers))
        self.counts[word] = self.counts.get(word, 0) + 1
        return self.counts[word] - (0 if word == "cgroup" else 1)

    def unit(self, weight: int = 100, **client: float) -> int:
        """Add a cgroup and its client; the number of the cgroup."""
        cgroup = self.add("cgroup", weight=weight)
        self.add("client", cgroup=cgroup, **client)
        return cgroup

    def run(self, control: bool = True, only: Collection[int] = (), seconds: float = 0) -> Result:
        """Run it; without the daemon, or with some clients alone that are always there."""
        seconds = seconds or self.seconds
        lines = [line("run", seconds=seconds, seed=self.seed, noise=self.noise, control=control)]
        client = -1
        for text in self.lines:
            word, *numbers = text.split()
            client += word == "client"
            if only:
                if word in ("promise", "disk", "move", "recall"):
                    continue
                if word == "client" and client not in only:
                    continue
                numbers = [n for n in numbers if not n.startswith(("start=", "stop="))]
            lines.append(" ".join([word, *numbers]))
        return Result(run(lines))

    def alone(self, *clients: int) -> float:
        """Bytes per second that clients receive without competitors."""
        return self.run(control=False, only=clients, seconds=5).total(1)

    def rates_alone(self, *clients: int) -> dict[int, float]:
        """The same for each of the clients."""
        result = self.run(control=False, only=clients, seconds=5)
        rates = [result.mean(rate, 1) for rate in result.clients]
        return dict(zip(sorted(clients), rates, strict=True))

    def __str__(self) -> str:
        return "\n".join(self.lines)

    __repr__ = __str__


def disks(count: int, numbers: dict[str, int] = HDD, **keys: float) -> Scenario:
    """A scenario of 20 s with `count` disks."""
    s = Scenario(**{"seconds": 20, **keys})
    for _ in range(count):
        s.add("leaf", **numbers)
    return s
