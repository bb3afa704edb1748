# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the tasks of one cgroup get of it: disciplines, ioprio, cooperators."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from rig import scheduler
from rig.cgroup import Group, Subtree
from rig.modeldisk import ModelDisk
from rig.sutro import knob, reads
from rig.unit import fio

NUMBERS = {"hdd": {"size_mb": 1024}, "ssd": {"bus_kbps": 60000}}
KINDS = tuple(NUMBERS)
DISCIPLINES = ("fifo", "deadline", "process")
RUN_S = 4


def make(disk, kind: str) -> ModelDisk:
    """A disk under sutro with 256 slots."""
    made = disk(kind, f"{kind}0", **NUMBERS[kind])
    scheduler.select(made.name, "sutro")
    (scheduler.queue(made.name) / "nr_requests").write_text("256")
    return made


def rates(group: Group, disk: ModelDisk, jobs: Mapping[object, Mapping]) -> dict[object, float]:
    """Read requests per second of jobs that run side by side in one cgroup."""
    common = {"ramp_time": 1, "runtime": RUN_S, "output-format": "json"}
    started = {}
    for seed, (name, job) in enumerate(jobs.items(), start=1):
        keys = {"rw": "randread", "bs": "16k", "iodepth": 16, "seed": seed, **common, **job}
        started[name] = group.run(fio(disk.node, **keys))
    found = {}
    for name, process in started.items():
        said, _ = process.communicate(timeout=600)
        assert process.returncode == 0, said
        found[name] = json.loads(said[said.index("{") :])["jobs"][0]["read"]["iops"]
    return found


@pytest.mark.parametrize("discipline", DISCIPLINES)
@pytest.mark.parametrize("kind", KINDS)
def test_levels(tree: Subtree, disk, kind: str, discipline: str) -> None:
    """Levels 0, 4 and 7 of one cgroup share its device time 8 : 4 : 1."""
    one = make(disk, kind)
    knob(one, "discipline").write_text(discipline)
    jobs = {level: {"prioclass": 2, "prio": level} for level in (0, 4, 7)}
    got = rates(tree.child("a"), one, jobs)
    assert 1.6 <= got[0] / got[4] <= 2.4, got
    assert 2.9 <= got[4] / got[7] <= 5.5, got


@pytest.mark.parametrize("kind", KINDS)
def test_classes(tree: Subtree, disk, kind: str) -> None:
    """rt goes before be and idle, which are served five times a second nevertheless."""
    jobs = {name: {"prioclass": n} for n, name in enumerate(("rt", "be", "idle"), start=1)}
    got = rates(tree.child("a"), make(disk, kind), jobs)
    assert got["rt"] >= 10 * got["be"], got
    assert 4 <= got["be"] <= 8, got
    assert 4 <= got["idle"] <= 8, got


def test_class_alone_has_all(tree: Subtree, disk) -> None:
    """The idle class is as fast as any where nobody else is."""
    one = make(disk, "ssd")
    group = tree.child("a")
    alone = rates(group, one, {"be": {}})["be"]
    assert rates(group, one, {"idle": {"prioclass": 3}})["idle"] >= 0.95 * alone


@pytest.mark.parametrize("kind", KINDS)
def test_process_shares(tree: Subtree, disk, kind: str) -> None:
    """With process, one thread of depth 4 holds its own against 8 of depth 16; not with fifo."""
    one = make(disk, kind)
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


@pytest.mark.parametrize("discipline", DISCIPLINES)
@pytest.mark.parametrize(("bs", "depth"), [(64, 8), (8, 1)])
def test_cooperators(tree: Subtree, disk, discipline: str, bs: int, depth: int) -> None:
    """Two tasks that read one stream in alternating pieces are as fast as one reader."""
    one = make(disk, "hdd")
    knob(one, "discipline").write_text(discipline)
    group = tree.child("a")
    piece = {"rw": "read", "bs": f"{bs}k", "iodepth": depth}
    alone = rates(group, one, {"one": {**piece, "iodepth": 2 * depth}})["one"]
    halves = {half: {**piece, "rw": f"read:{bs}k", "offset": half * bs << 10} for half in (0, 1)}
    together = sum(rates(group, one, halves).values())
    assert together >= 0.9 * alone, (together, alone)


def test_cooperators_beside_another(tree: Subtree, disk) -> None:
    """Such a stream has its slices, and is read within them as fast, beside another cgroup."""
    one = make(disk, "hdd")
    tree.child("other").run(fio(one.node, "randread", "64k", 4, seed=9))
    group = tree.child("a")
    alone = rates(group, one, {"one": {"rw": "read", "bs": "64k", "iodepth": 16}})["one"]
    piece = {"rw": "read:64k", "bs": "64k", "iodepth": 8}
    halves = {half: {**piece, "offset": half << 16} for half in (0, 1)}
    together = sum(rates(group, one, halves).values())
    assert together >= 0.9 * alone, (together, alone)


def test_adjacent_reads_merge(tree: Subtree, disk) -> None:
    """Adjacent 8 KiB reads of two tasks that wait become few requests."""
    one = make(disk, "hdd")
    before = reads(one)
    # More than the disk's 32 tags hold, so that requests wait and can meet.
    piece = {"bs": "8k", "iodepth": 96, "iodepth_batch": 16}
    halves = {half: {**piece, "rw": "read:8k", "offset": half << 13} for half in (0, 1)}
    rates(tree.child("a"), one, halves)
    requests, merged = (now - then for now, then in zip(reads(one), before, strict=True))
    # No two pieces of one task are adjacent: each merge joins requests of both.
    assert merged >= requests, (requests, merged)
