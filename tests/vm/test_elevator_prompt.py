# SPDX-License-Identifier: LGPL-2.1-or-later
"""Prompt requests go before their cgroup's turn, as traces show, and are charged all the same.

The guest has one CPU (tests/lab/stages.py), because these tests trace.
"""

from pathlib import Path

import pytest
from rig.cgroup import Subtree
from rig.sampler import device_time_ns
from rig.shell import run
from rig.sutro import groups
from rig.trace import Trace
from rig.unit import fio
from test_elevator_requests import WEIGHT, finish


@pytest.fixture
def metadata(disk, tmp_path: Path):
    """An ext4 file system with 300 directories on a slow ssd; yields the disk and its mount."""
    one = disk("ssd", "req0", "sutro", bus_kbps=20000)
    one.hurry()
    run("mkfs.ext4", "-q", "-O", "^has_journal", "-N", "40000", one.node)
    run("mount", one.node, tmp_path)
    for n in range(300):
        (tmp_path / f"{n}").mkdir()
        (tmp_path / f"{n}/file").touch()
    run("umount", tmp_path)
    one.slow()
    run("mount", "-o", "ro", one.node, tmp_path)
    yield one, tmp_path
    run("umount", tmp_path)


def test_metadata_is_prompt(tree: Subtree, metadata) -> None:
    """REQ_META reads do not wait for the turn of their cgroup, and are charged to it."""
    one, mount = metadata
    few, many = tree.child("few"), tree.child("many")
    many.write(WEIGHT, 1000)
    many.run(fio(one.node, "randread", "64k", 64, seed=2))
    device_time_ns(one, [], 0.5, 0.5)
    with Trace("sutro/sutro_dispatch") as trace:
        # A lookup reads the directory's block as metadata; a listing would read ahead.
        finish([few.run(f"cd {mount}; for n in $(seq 0 299); do [ -e $n/file ] || exit 1; done")])
    events = trace.events()
    prompt = [event for event in events if event["cgroup"] == few.id and event["prompt"] == "1"]
    others = [event for event in events if event["cgroup"] == many.id]
    assert len(prompt) >= 50
    waits = sorted(int(event["wait_ns"]) for event in prompt)
    theirs = sorted(int(event["wait_ns"]) for event in others)
    assert waits[len(waits) // 2] < theirs[len(theirs) // 2] / 4
    assert one.truth().of(few.cgroup).rios >= len(prompt)
    assert int(groups(one)[few.cgroup]["time_ns"]) > 0


def test_swapping_is_no_way_around(tree: Subtree, disk) -> None:
    """Swap-outs are prompt, and charged: a group that only swaps gets no more than its share."""
    one = disk("ssd", "req0", "sutro", bus_kbps=20000)
    run("mkswap", one.node)
    run("swapon", one.node)
    try:
        hog, fair = tree.child("hog"), tree.child("fair")
        hog.write("memory.max", 32 << 20)
        fair.run(fio(one.node, "randread", "64k", 32))
        # Writes 64 MiB over and over of which half fit.
        hog.run("python3 -c 'b = bytearray(64 << 20)\nwhile 1: b[::4096] = bytes(16384)'")
        device_time_ns(one, [], 1, 1)
        with Trace("sutro/sutro_dispatch") as trace:
            used = device_time_ns(one, [hog.cgroup, fair.cgroup], 0, 8)
        prompt = [event for event in trace.events() if event["prompt"] == "1"]
        assert prompt
        assert {event["cgroup"] for event in prompt} == {hog.id}
        assert used[hog.cgroup] / (used[hog.cgroup] + used[fair.cgroup]) <= 0.65, used
    finally:
        for group in (hog, fair):
            group.kill()
        run("swapoff", one.node)
