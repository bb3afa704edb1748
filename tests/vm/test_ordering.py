# SPDX-License-Identifier: LGPL-2.1-or-later
"""Order among the tasks of one cgroup: disciplines, ioprio, cooperators."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from rig.cgroup import Group, Subtree, ended
from rig.modeldisk import ModelDisk
from rig.sutro import knob, reads
from rig.unit import fio, fio_report

NUMBERS = {"hdd": {"size_mb": 1024}, "ssd": {"bus_kbps": 60000}}
KINDS = tuple(NUMBERS)
DISCIPLINES = ("fifo", "deadline", "process")
RUN_S = 4


def rates(group: Group, disk: ModelDisk, jobs: Mapping[object, Mapping]) -> dict[object, float]:
    """Read requests per second of jobs that run side by side in one cgroup."""
    common = {"ramp_time": 1, "runtime": RUN_S, "output-format": "json"}
    started = {}
    for seed, (name, job) in enumerate(jobs.items(), start=1):
        keys = {"rw": "randread", "bs": "16k", "iodepth": 16, "seed": seed, **common, **job}
        started[name] = group.run(fio(disk.node, **keys))
    found = {}
    for name, process in started.items():
        found[name] = fio_report(ended(process))["read"]["iops"]
    return found


@pytest.mark.parametrize("discipline", DISCIPLINES)
@pytest.mark.parametrize("kind", KINDS)
def test_levels(tree: Subtree, disk, kind: str, discipline: str) -> None:
    """Levels 0, 4 and 7 of one cgroup share its device time 8 : 4 : 1."""
    one = disk(kind, f"{kind}0", "sutro", **NUMBERS[kind])
    knob(one, "discipline").write_text(discipline)
    jobs = {level: {"prioclass": 2, "prio": level} for level in (0, 4, 7)}
    got = rates(tree.child("a"), one, jobs)
    assert 1.6 <= got[0] / got[4] <= 2.4, got
    assert 2.9 <= got[4] / got[7] <= 5.5, got


@pytest.mark.parametrize("kind", KINDS)
def test_classes(tree: Subtree, disk, kind: str) -> None:
    """rt goes before be and idle, which are served a few times a second nevertheless."""
    jobs = {name: {"prioclass": n} for n, name in enumerate(("rt", "be", "idle"), start=1)}
    got = rates(tree.child("a"), disk(kind, f"{kind}0", "sutro", **NUMBERS[kind]), jobs)
    # Five times a second at least, and when rt has just nothing to send.
    for lower in ("be", "idle"):
        assert 4 <= got[lower] <= got["rt"] / 10, got


def test_class_alone_has_all(tree: Subtree, disk) -> None:
    """Without competitors, the idle class is as fast as any."""
    one = disk("ssd", "ssd0", "sutro", **NUMBERS["ssd"])
    group = tree.child("a")
    alone = rates(group, one, {"be": {}})["be"]
    assert rates(group, one, {"idle": {"prioclass": 3}})["idle"] >= 0.95 * alone


@pytest.mark.parametrize("kind", KINDS)
def test_process_shares(tree: Subtree, disk, kind: str) -> None:
    """With process, one thread of depth 4 holds its own against 8 of depth 16; not with fifo."""
    one = disk(kind, f"{kind}0", "sutro", **NUMBERS[kind])
    group = tree.child("a")
    jobs = {"deep": {"jobs": 8}, "shallow": {"iodepth": 4}}
    share = {}
    for discipline in ("fifo", "process"):
        knob(one, "discipline").write_text(discipline)
        got = rates(group, one, jobs)
        share[discipline] = got["shallow"] / sum(got.values())
    # Of nine threads one; of the 132 requests that wait, 4.
    assert 0.085 <= share["process"] <= 0.14, share
    assert share["fifo"] <= 0.06, share


# A disk that an emulated CPU keeps busy with pieces of 8 KiB.
SLOW = {"size_mb": 1024, "bandwidth_kbps": 30000}


def pieces(group: Group, disk: ModelDisk, tasks: int, kib: int) -> float:
    """Pieces per second read by tasks, each of which takes the next free piece."""
    program = Path(__file__).parents[1] / "rig" / "sharedstream.py"
    job = group.run(f"exec python3 {program} {disk.node} {tasks} {kib << 10} 2")
    return float(ended(job))


@pytest.mark.parametrize("discipline", DISCIPLINES)
@pytest.mark.parametrize("kib", [8, 64])
def test_cooperators(tree: Subtree, disk, discipline: str, kib: int) -> None:
    """Tasks that read one stream together are as fast as one that reads it alone: no seeks."""
    one = disk("hdd", "hdd0", "sutro", **SLOW)
    knob(one, "discipline").write_text(discipline)
    group = tree.child("a")
    alone = pieces(group, one, 1, kib)
    for tasks in (2, 8):
        together = pieces(group, one, tasks, kib)
        assert together >= 0.95 * alone, (tasks, together, alone)


@pytest.mark.parametrize("discipline", DISCIPLINES)
def test_cooperators_merge(tree: Subtree, disk, discipline: str) -> None:
    """Where such requests wait, those of different tasks become one."""
    one = disk("hdd", "hdd0", "sutro", queue_depth=2, **SLOW)
    knob(one, "discipline").write_text(discipline)
    before = reads(one)
    pieces(tree.child("a"), one, 8, 8)
    requests, merged = (now - then for now, then in zip(reads(one), before, strict=True))
    # Each task has one piece on the way: no merge is of two of its own.
    assert merged >= 0.8 * requests, (requests, merged)
