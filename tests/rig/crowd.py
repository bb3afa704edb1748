# SPDX-License-Identifier: LGPL-2.1-or-later
"""A unit with a floor beside bigger ones, all backlogged, and threads that watch them.

The unit `db` of weight 100 reads, or runs the given job, beside two of weight 1000, so that without
a policy it gets a 21st. The oracle is io.stat of the logical device and the truth of the disks.
`./lab bench promises` measures how exactly a floor holds; here 15 % less still counts as held.
"""

import contextlib
import threading
import time
from collections.abc import Iterator
from typing import Self

from rig import bus
from rig.modeldisk import ModelDisk, hurried
from rig.sampler import Sampler
from rig.shell import run, wait_for
from rig.stack import Stack, devno, fill, standing
from rig.unit import CGROUP_ROOT, Unit, fio, start, stop

DB = "rig-db.service"
KEY = "ReadBandwidthMin"
WRITE_KEY = "WriteBandwidthMin"
# Rate of a disk: slow enough for an emulated CPU. Each unit reads as much as it may.
KBPS = 20000
# The floor of most tests, in MB/s: 0.6 of two disks.
FLOOR = 24

HELD = 0.85
SETTLES_S = 6.0
SOON_S = 5.0


class Crowd:
    """The unit `db` beside two bigger ones on a device, watched."""

    def __init__(self, top: str, disks: list[ModelDisk], **job: object):
        read = {"rw": "randread", "bs": "64k", "iodepth": 32, **job}
        self.top, self.disks = top, disks
        self.key = WRITE_KEY if "write" in str(read["rw"]) else KEY
        self.db = Unit("db", fio(top, seed=1, **read), 100)
        self.bigs = [Unit(f"big{n}", fio(top, seed=n + 2, **read), 1000) for n in range(2)]
        self.units = [self.db, *self.bigs]
        self.watch = Sampler(disks, self.units, devno(top))

    def __enter__(self) -> Self:
        start(self.units)
        self.watch.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self.watch.__exit__(*exc)
        stop(self.units)
        run("systemctl", "start", "sutrod")
        for unit in (DB, "rig-big0.service"):
            bus.call("ResetPolicy", "ss", unit, "runtime")

    def mbps(self, seconds: float, name: str = "db") -> float:
        """The rate of a unit in the next seconds."""
        began = time.monotonic()
        time.sleep(seconds)
        return self.watch.mbps(name, began, time.monotonic())

    def has(self, mbps: float = FLOOR) -> bool:
        """Did `db` get this rate in the last two seconds?"""
        now = time.monotonic()
        return self.watch.mbps("db", now - 2, now) >= HELD * mbps

    def settles(self, mbps: float = FLOOR) -> None:
        """`db` gets the floor soon, and keeps it."""
        wait_for(lambda: self.has(mbps), f"{mbps} MB/s for db, {self.reported()}", SETTLES_S)
        self.holds(mbps)

    def holds(self, mbps: float = FLOOR, seconds: float = 2.0) -> None:
        """`db` gets the floor from now on."""
        got = self.mbps(seconds)
        assert got >= HELD * mbps, f"{got:.1f} of {mbps} MB/s, {self.reported()}"

    def promise(self, mbps: float = FLOOR, unit: str = DB, **more: str) -> None:
        """Set a floor."""
        bus.set_policy(unit, **{self.key: f"{self.top} {mbps}M", **more})

    def held(self, mbps: float = FLOOR) -> None:
        """Set a floor, and wait until it holds."""
        self.promise(mbps)
        self.settles(mbps)

    def reported(self) -> list[tuple[str, str]]:
        """State and cause of the promises of `db`, as the daemon reports them."""
        return [(one["state"], one["cause"]) for one in bus.promises(DB)]


def weight_file(cgroup: str) -> str:
    """The whole text of io.sutro.weight."""
    return (CGROUP_ROOT / cgroup.lstrip("/") / "io.sutro.weight").read_text()


def lines(unit: Unit) -> dict[str, str]:
    """The lines of io.sutro.weight of a unit, by device."""
    return dict(line.split() for line in weight_file(unit.cgroup).splitlines())


class Watcher:
    """A thread that calls look() repeatedly while the `with` statement lasts."""

    PERIOD_S = 0.1

    def __init__(self) -> None:
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(self.PERIOD_S):
            self.look()

    def look(self) -> None:
        """Look once."""
        raise NotImplementedError


class Bystanders(Watcher):
    """Units under no policy, beside the crowd and in a slice of their own: all of their files."""

    FILES = ("io.sutro.weight", "io.sutro.class", "io.weight", "io.bfq.weight", "io.max")

    def __init__(self) -> None:
        super().__init__()
        self.units = [Unit("near", "exec sleep infinity", 333)]
        self.units += [Unit("far", "exec sleep infinity", 77, parent="rig-far.slice")]
        # All contents that the files had at any time, by path.
        self.seen: list[dict[str, str]] = []

    def look(self) -> None:
        """Read every file with a weight or a limit."""
        folders = [unit.folder for unit in self.units] + [self.units[1].folder.parent]
        paths = [folder / file for folder in folders for file in self.FILES]
        now = {str(path): path.read_text() for path in paths if path.exists()}
        if now not in self.seen:
            self.seen.append(now)

    def __enter__(self) -> Self:
        start(self.units)
        for unit in self.units:
            wait_for(
                lambda unit=unit: f"default {unit.weight}" in weight_file(unit.cgroup),
                unit.unit,
                SOON_S,
            )
        self.look()
        return super().__enter__()

    def __exit__(self, *exc: object) -> None:
        super().__exit__(*exc)
        self.look()
        stop(self.units)
        assert len(self.seen) == 1, self.seen


class Fall(Watcher):
    """The lowest weight that the lines of a unit had at any time."""

    PERIOD_S = 0.02

    def __init__(self, unit: Unit, devices: list[str]):
        super().__init__()
        self._unit, self._devices = unit, devices
        self.lowest = 10000

    def look(self) -> None:
        now = lines(self._unit)
        found = [int(now.get(device, now["default"])) for device in self._devices]
        self.lowest = min(self.lowest, *found)


@contextlib.contextmanager
def built(
    count: int, *layers: dict[str, object], switch: bool = True, **numbers: object
) -> Iterator[Stack]:
    """A stack on sutro; its disks are fast until it is built, and slow afterwards.

    Without switch, the disks keep the scheduler of the system, and sutrod runs.
    """
    numbers = {"size_mb": 256, "bus_kbps": KBPS, **numbers}
    with contextlib.ExitStack() as undo:
        disks = [ModelDisk(f"ssd{n}", "ssd", {**numbers, "seed": n + 1}) for n in range(count)]
        for one in disks:
            undo.enter_context(one)
        made = undo.enter_context(standing(disks, layers))
        made.disks = disks
        run("systemctl", "start", "sutrod")
        undo.callback(run, "systemctl", "stop", "sutrod")
        if switch:
            undo.callback(bus.release)
            bus.use(made.top)
        yield made


def zeroed(made: Stack) -> None:
    """Write all of a stack that built() made; the disks are fast meanwhile."""
    with hurried(made.disks):
        fill(made.top)
