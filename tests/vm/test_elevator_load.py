# SPDX-License-Identifier: LGPL-2.1-or-later
"""The elevator at any moment: things change while I/O runs, nothing hangs, fails or complains.

The clock is that of the host, so nothing here depends on how fast things happen: a load that ends
before enough changes were made starts again.
"""

from __future__ import annotations

import random
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest
from rig import scheduler
from rig.cgroup import CONTROLLERS, Group, Subtree
from rig.modeldisk import ModelDisk
from rig.sampler import device_time_ns
from rig.sutro import debug
from rig.unit import fio

LOAD_S = 5
# An emulated CPU of a busy host is slow; a request that hangs takes longer than this.
TIMEOUT_S = 300
WEIGHT = "io.sutro.weight"


def job(disk: ModelDisk, seed: int, seconds: int = LOAD_S) -> str:
    """Mixed reads and writes of mixed sizes, which end by themselves and fail on an I/O error."""
    more = {"bsrange": "4k-128k", "rwmixread": 60, "runtime": seconds}
    return fio(disk.node, "randrw", "4k", iodepth=32, seed=seed, **more)


def finish(load: list[subprocess.Popen]) -> None:
    """All jobs ended by themselves and well."""
    for process in load:
        said, _ = process.communicate(timeout=TIMEOUT_S)
        assert process.returncode == 0, said


def during(start: Callable[[], list[subprocess.Popen]], least: int) -> Iterator[int]:
    """Count rounds while a load runs, which starts again until there were `least` rounds."""
    rounds = 0
    while rounds < least:
        load = start()
        while load[0].poll() is None:
            yield rounds
            rounds += 1
        finish(load)


def jobs(groups: list[Group], disk: ModelDisk) -> Callable[[], list[subprocess.Popen]]:
    """A load of one job in each group."""
    return lambda: [group.run(job(disk, seed)) for seed, group in enumerate(groups)]


def test_no_code_is_patched(subtree: Subtree) -> None:
    """The tree has the controllers that are used here, and brought none that patches code."""
    assert {*CONTROLLERS} <= {*subtree.read("cgroup.controllers").split()}
    assert "cpuset" not in Group.root().read("cgroup.subtree_control").split()


def test_switch_elevators(tree: Subtree, sutro_disk: ModelDisk) -> None:
    """The elevator changes all the time."""
    load = jobs([tree.child(name) for name in "ab"], sutro_disk)
    names = ("none", "sutro", "bfq", "sutro", "mq-deadline", "sutro", "kyber", "sutro")
    for n in during(load, 2 * len(names)):
        scheduler.select(sutro_disk.name, names[n % len(names)])


def test_cgroups_come_and_go(tree: Subtree, sutro_disk: ModelDisk) -> None:
    """Cgroups are made, used, killed and removed while others work."""
    for n in during(jobs([tree.child("steady")], sutro_disk), 6):
        group = tree.child(f"brief{n}")
        group.write(WEIGHT, 1 + n * 37 % 10000)
        group.run(job(sutro_disk, n))
        time.sleep(0.1)
        group.remove()


def test_weights_change(tree: Subtree, sutro_disk: ModelDisk) -> None:
    """Weights of three groups are rewritten as fast as can be, default and per device."""
    groups = [tree.child(name) for name in "abc"]
    dice = random.Random(1)
    for n in during(jobs(groups, sutro_disk), 50):
        group = groups[n % 3]
        group.write(WEIGHT, dice.randint(1, 10000))
        group.write(WEIGHT, f"{sutro_disk.devno} {dice.randint(1, 10000)}")
        if n % 5 == 0:
            group.write(WEIGHT, f"{sutro_disk.devno} default")


def test_knobs_and_slots_change(tree: Subtree, sutro_disk: ModelDisk) -> None:
    """nr_requests and the elevator's knobs move."""
    queue = scheduler.queue(sutro_disk.name)
    for n in during(jobs([tree.child(name) for name in "ab"], sutro_disk), 12):
        (queue / "nr_requests").write_text(str((4, 256, 32, 64)[n % 4]))
        (queue / "iosched/fairness").write_text(str(n % 2))
        (queue / "iosched/group_idle_us").write_text(str((0, 8000, 2000)[n % 3]))
        (queue / "iosched/slice_us").write_text(str((1000, 100000)[n % 2]))
        (queue / "iosched/group_requests").write_text(str((0, 1, 16)[n % 3]))


def test_processes_move(tree: Subtree, sutro_disk: ModelDisk) -> None:
    """Processes are moved between cgroups with I/O in flight."""
    groups = [tree.child(name) for name in "abc"]
    load: list[subprocess.Popen] = []

    def start() -> list[subprocess.Popen]:
        load[:] = [groups[0].run(job(sutro_disk, 1))]
        return load

    for n in during(start, 12):
        # A job that has ended cannot be moved.
        with suppress(ProcessLookupError):
            groups[n % 3].write("cgroup.procs", load[0].pid)
        time.sleep(0.02)


def test_readers_of_the_files(tree: Subtree, sutro_disk: ModelDisk) -> None:
    """All files are read while everything moves."""
    groups = [tree.child(name) for name in "ab"]
    read = 0
    for _ in during(jobs(groups, sutro_disk), 12):
        for group in groups:
            assert group.read(WEIGHT).startswith("default ")
            read += len(group.read("io.sutro.stat"))
    assert read


def test_debugfs_while_switching(tree: Subtree, sutro_disk: ModelDisk) -> None:
    """The files in debugfs are read while the elevator comes and goes."""
    stop, read = threading.Event(), []

    def reads() -> None:
        while not stop.is_set():
            for name in ("state", "groups", "costs", "group_costs"):
                # Between two elevators there is no file, or nothing to read from it.
                with suppress(OSError):
                    read.append(len(debug(sutro_disk, name)))

    readers = [threading.Thread(target=reads) for _ in range(2)]
    for reader in readers:
        reader.start()
    for n in during(jobs([tree.child(name) for name in "ab"], sutro_disk), 12):
        scheduler.select(sutro_disk.name, ("none", "sutro", "mq-deadline", "sutro")[n % 4])
    stop.set()
    for reader in readers:
        reader.join()
    assert sum(read) > 0


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


def test_all_at_once(tree: Subtree, sutro_disk: ModelDisk) -> None:
    """Elevators, weights and cgroups change at the same time, from three threads."""
    steady = [tree.child(name) for name in "ab"]
    load = [group.run(job(sutro_disk, seed, 8)) for seed, group in enumerate(steady)]
    stop, failed = threading.Event(), []

    def again(what) -> None:
        n = 0
        try:
            while not stop.is_set():
                what(n)
                n += 1
        except Exception as error:  # noqa: BLE001 - reported by the test
            failed.append(error)

    def switch(n: int) -> None:
        scheduler.select(sutro_disk.name, ("sutro", "none", "sutro", "mq-deadline")[n % 4])
        time.sleep(0.2)

    def weigh(n: int) -> None:
        steady[n % 2].write(WEIGHT, 1 + n % 10000)

    def come_and_go(n: int) -> None:
        group = tree.child(f"brief{n}")
        group.run(job(sutro_disk, n))
        time.sleep(0.2)
        group.remove()

    threads = [
        threading.Thread(target=again, args=(what,)) for what in (switch, weigh, come_and_go)
    ]
    for thread in threads:
        thread.start()
    for process in load:
        process.wait(TIMEOUT_S)
    stop.set()
    for thread in threads:
        thread.join()
    assert not failed
    finish(load)
