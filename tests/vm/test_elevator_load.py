# SPDX-License-Identifier: LGPL-2.1-or-later
"""The elevator at any moment: things change while I/O runs, nothing hangs, fails or complains."""

from __future__ import annotations

import random
import subprocess
import threading
import time
from contextlib import suppress

import pytest
from rig import scheduler
from rig.cgroup import CONTROLLERS, Group, Subtree
from rig.modeldisk import ModelDisk
from rig.sampler import device_time_ns
from rig.sutro import debug
from rig.unit import fio

LOAD_S = 5
WEIGHT = "io.sutro.weight"


def job(disk: ModelDisk, seed: int, seconds: int = LOAD_S) -> str:
    """Mixed reads and writes of mixed sizes, which end by themselves and fail on an I/O error."""
    more = {"bsrange": "4k-128k", "rwmixread": 60, "runtime": seconds}
    return fio(disk.node, "randrw", "4k", iodepth=32, seed=seed, **more)


def finish(load: list[subprocess.Popen]) -> None:
    """All jobs ended by themselves and well."""
    for process in load:
        said, _ = process.communicate(timeout=60)
        assert process.returncode == 0, said


def until(load: list[subprocess.Popen]):
    """Count rounds while the first job runs."""
    rounds = 0
    while load[0].poll() is None:
        yield rounds
        rounds += 1


def test_no_code_is_patched(subtree: Subtree) -> None:
    """The tree has the controllers that are used here, and brought none that patches code."""
    assert {*CONTROLLERS} <= {*subtree.read("cgroup.controllers").split()}
    assert "cpuset" not in Group.root().read("cgroup.subtree_control").split()


def test_switch_elevators(tree: Subtree, sutro_disk: ModelDisk) -> None:
    """The elevator changes all the time."""
    load = [tree.child(name).run(job(sutro_disk, seed)) for seed, name in enumerate("ab")]
    names = ("none", "sutro", "bfq", "sutro", "mq-deadline", "sutro", "kyber", "sutro")
    switched = 0
    for n in until(load):
        scheduler.select(sutro_disk.name, names[n % len(names)])
        switched += 1
    finish(load)
    assert switched > 8


def test_cgroups_come_and_go(tree: Subtree, sutro_disk: ModelDisk) -> None:
    """Cgroups are made, used, killed and removed while others work."""
    load = [tree.child("steady").run(job(sutro_disk, 1))]
    made = 0
    for n in until(load):
        group = tree.child(f"brief{n}")
        group.write(WEIGHT, 1 + n * 37 % 10000)
        group.run(job(sutro_disk, n))
        time.sleep(0.1)
        group.remove()
        made += 1
    finish(load)
    assert made > 5


def test_weights_change(tree: Subtree, sutro_disk: ModelDisk) -> None:
    """Weights of three groups are rewritten as fast as can be, default and per device."""
    groups = [tree.child(name) for name in "abc"]
    load = [group.run(job(sutro_disk, seed)) for seed, group in enumerate(groups)]
    dice = random.Random(1)
    written = 0
    for n in until(load):
        group = groups[n % 3]
        group.write(WEIGHT, dice.randint(1, 10000))
        group.write(WEIGHT, f"{sutro_disk.devno} {dice.randint(1, 10000)}")
        if n % 5 == 0:
            group.write(WEIGHT, f"{sutro_disk.devno} default")
        written += 1
    finish(load)
    assert written > 50


def test_knobs_and_slots_change(tree: Subtree, sutro_disk: ModelDisk) -> None:
    """nr_requests and the elevator's knobs move."""
    load = [tree.child(name).run(job(sutro_disk, seed)) for seed, name in enumerate("ab")]
    queue = scheduler.queue(sutro_disk.name)
    for n in until(load):
        (queue / "nr_requests").write_text(str((4, 256, 32, 64)[n % 4]))
        (queue / "iosched/fairness").write_text(str(n % 2))
        (queue / "iosched/group_idle_us").write_text(str((0, 8000, 2000)[n % 3]))
        (queue / "iosched/slice_us").write_text(str((1000, 100000)[n % 2]))
        (queue / "iosched/group_requests").write_text(str((0, 1, 16)[n % 3]))
    finish(load)


def test_processes_move(tree: Subtree, sutro_disk: ModelDisk) -> None:
    """Processes are moved between cgroups with I/O in flight."""
    groups = [tree.child(name) for name in "abc"]
    load = [groups[0].run(job(sutro_disk, 1))]
    for n in until(load):
        groups[n % 3].write("cgroup.procs", load[0].pid)
        time.sleep(0.02)
    finish(load)


def test_readers_of_the_files(tree: Subtree, sutro_disk: ModelDisk) -> None:
    """All files are read while everything moves."""
    groups = [tree.child(name) for name in "ab"]
    load = [group.run(job(sutro_disk, seed)) for seed, group in enumerate(groups)]
    read = 0
    for _ in until(load):
        for group in groups:
            assert group.read(WEIGHT).startswith("default ")
            read += len(group.read("io.sutro.stat"))
    finish(load)
    assert read


def test_debugfs_while_switching(tree: Subtree, sutro_disk: ModelDisk) -> None:
    """The files in debugfs are read while the elevator comes and goes."""
    load = [tree.child(name).run(job(sutro_disk, seed)) for seed, name in enumerate("ab")]
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
    for n in until(load):
        scheduler.select(sutro_disk.name, ("none", "sutro", "mq-deadline", "sutro")[n % 4])
    stop.set()
    for reader in readers:
        reader.join()
    finish(load)
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
    load.communicate(timeout=60)
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
        process.wait(60)
    stop.set()
    for thread in threads:
        thread.join()
    assert not failed
    finish(load)
