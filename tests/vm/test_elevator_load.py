# SPDX-License-Identifier: LGPL-2.1-or-later
"""The elevator at any moment: things change while I/O runs, nothing hangs, fails or complains.

The clock is that of the host, so nothing here depends on how fast things happen: a load that ends
before enough changes were made starts again. The stage stress has more changes, and faults.
"""

import random
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import pytest
from rig import scheduler
from rig.cgroup import CONTROLLERS, Group, Subtree, ended
from rig.modeldisk import ModelDisk
from rig.sampler import device_time_ns
from rig.sutro import active, debug, knob
from rig.unit import fio

LOAD_S = 8
# An emulated CPU of a busy host is slow; a request that hangs takes longer than this.
TIMEOUT_S = 300
WEIGHT = "io.sutro.weight"
ELEVATORS = ("none", "sutro", "bfq", "sutro", "mq-deadline", "sutro", "kyber", "sutro")
DEBUG = ("state", "groups", "costs", "group_costs")
KNOBS = {"fairness": (0, 1), "group_idle_us": (0, 8000, 2000), "slice_us": (1000, 100000),
         "group_requests": (0, 1, 16), "protect": (0, 50, 98)}  # fmt: skip


def job(disk: ModelDisk, seed: int) -> str:
    """Mixed reads and writes of mixed sizes, which end by themselves and fail on an I/O error."""
    more = {"bsrange": "4k-128k", "rwmixread": 60, "runtime": LOAD_S}
    return fio(disk.node, "randrw", "4k", iodepth=32, seed=seed, **more)


class Site:
    """A disk with a job in each of three cgroups, and changes to make meanwhile; n counts them."""

    def __init__(self, tree: Subtree, disk: ModelDisk):
        self.tree, self.disk = tree, disk
        self.groups = [tree.child(name) for name in "abc"]
        self.load: list[subprocess.Popen] = []
        self.dice = random.Random(1)
        self.read: set[str] = set()

    def run(self) -> None:
        """A job in each cgroup; all of them end by themselves and well."""
        jobs = [job(self.disk, seed) for seed in range(len(self.groups))]
        self.load = [group.run(job) for group, job in zip(self.groups, jobs, strict=True)]
        for process in self.load:
            ended(process, TIMEOUT_S)

    def switch(self, n: int) -> None:
        scheduler.select(self.disk.name, ELEVATORS[n % len(ELEVATORS)])

    def come_and_go(self, n: int) -> None:
        """A cgroup is made, used, killed and removed while others work."""
        group = self.tree.child(f"brief{n}")
        group.write(WEIGHT, 1 + n * 37 % 10000)
        group.run(job(self.disk, n))
        time.sleep(0.1)
        group.remove()

    def weigh(self, n: int) -> None:
        group, devno = self.groups[n % len(self.groups)], self.disk.devno
        group.write(WEIGHT, self.dice.randint(1, 10000))
        # Between two elevators the disk takes no weight.
        with suppress(OSError):
            group.write(WEIGHT, f"{devno} {self.dice.randint(1, 10000)}")
            if n % 5 == 0:
                group.write(WEIGHT, f"{devno} default")

    def tune(self, n: int) -> None:
        (scheduler.queue(self.disk.name) / "nr_requests").write_text(str((4, 256, 32, 64)[n % 4]))
        for name, values in KNOBS.items():
            knob(self.disk, name).write_text(str(values[n % len(values)]))

    def move(self, n: int) -> None:
        """A process moves to another cgroup with I/O in flight; one that has ended cannot."""
        if self.load:
            with suppress(ProcessLookupError):
                self.groups[n % len(self.groups)].write("cgroup.procs", self.load[0].pid)
        time.sleep(0.02)

    def read_files(self, n: int) -> None:
        group = self.groups[n % len(self.groups)]
        assert group.read(WEIGHT).startswith("default ")
        self.read.update(group.read("io.sutro.stat").split())

    def read_active(self, n: int) -> None:
        self.read.update(active(self.disk))

    def read_debugfs(self, n: int) -> None:
        """Between two elevators there is no file, or nothing to read from it."""
        with suppress(OSError):
            self.read.update(debug(self.disk, DEBUG[n % len(DEBUG)]).split())


# Changes that run at the same time. With another elevator there is nothing to tune.
CHANGES = (
    (Site.switch, Site.weigh, Site.come_and_go, Site.read_files),
    (Site.tune, Site.weigh, Site.move, Site.read_debugfs),
    (Site.switch, Site.read_debugfs, Site.read_debugfs),
    (Site.come_and_go, Site.read_debugfs, Site.read_debugfs, Site.read_debugfs),
    (Site.switch, Site.come_and_go, Site.read_active, Site.read_active),
)
# How often each of them, at least.
LEAST = 16


def test_no_code_is_patched(subtree: Subtree) -> None:
    """The tree has the controllers that are used here, and brought none that patches code."""
    assert {*CONTROLLERS} <= {*subtree.read("cgroup.controllers").split()}
    assert "cpuset" not in Group.root().read("cgroup.subtree_control").split()


@pytest.mark.parametrize("changes", CHANGES)
def test_changes(tree: Subtree, sutro_disk: ModelDisk, changes: tuple[Callable, ...]) -> None:
    """Several things change at the same time, each from a thread of its own."""
    site = Site(tree, sutro_disk)
    stop, failed, done = threading.Event(), [], [0] * len(changes)

    def again(number: int, change: Callable) -> None:
        try:
            # Between two switches there is time for requests.
            while not stop.wait(0.2 if change is Site.switch else 0):
                change(site, done[number])
                done[number] += 1
        except Exception as error:  # noqa: BLE001 - reported by the test
            failed.append(error)

    threads = [threading.Thread(target=again, args=one) for one in enumerate(changes)]
    for thread in threads:
        thread.start()
    try:
        while not failed and min(done) < LEAST:
            site.run()
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not failed
    assert site.read


@pytest.mark.parametrize("elevator", ["sutro", "bfq"])
def test_hot_unplug(tree: Subtree, disk, elevator: str) -> None:
    """The disk goes away in the middle: nothing hangs, and nothing is left of it."""
    gone = disk("ssd", "ssd1", bus_kbps=60000)
    scheduler.select(gone.name, elevator)
    group = tree.child("a")
    load = group.run(fio(gone.node, "randread", "16k", 32, runtime=LOAD_S))
    device_time_ns(gone, [group.cgroup], 1, 0.2)
    gone.unplug()
    # fio goes on over a device of size 0 until its time is up; stuck I/O would keep it for ever.
    load.communicate(timeout=TIMEOUT_S)
    assert not scheduler.queue(gone.name).exists()
    assert group.read(WEIGHT) == "default 100\n"
    assert not group.read("io.sutro.stat").strip()
