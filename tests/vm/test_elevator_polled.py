# SPDX-License-Identifier: LGPL-2.1-or-later
"""Polled requests, which complete when a task polls for them."""

from functools import partial
from pathlib import Path

from rig import scheduler
from rig.cgroup import Group, Subtree
from rig.nullblk import NullBlk
from rig.sampler import parse_io_stat
from rig.shell import wait_for
from rig.sutro import knob
from rig.unit import fio

STAT = "io.sutro.stat"
# Polled requests have hardware queues of their own, without interrupts.
POLLED = {
    "irqmode": 0, "queue_mode": 2, "submit_queues": 1, "poll_queues": 1,
    "hw_queue_depth": 64, "size": 1000,
}  # fmt: skip
# The driver completes requests by itself after 30 s, unless it is to wait for longer.
DRIVER_MS = 3600 * 1000
START_S = 60.0
MORE_READS = 100


def reads_of(group: Group, disk: NullBlk) -> int:
    return parse_io_stat(group.read(STAT), disk.devno).get("rios", 0)


def has_read(group: Group, disk: NullBlk, reads: int) -> bool:
    return reads_of(group, disk) >= reads


def test_polled_requests_of_a_frozen_cgroup(tree: Subtree) -> None:
    """With fairness=1, a cgroup with polled reads at the device is frozen: another one reads."""
    with NullBlk("polled0", POLLED) as disk:
        (Path("/sys/block") / disk.name / "queue/io_timeout").write_text(f"{DRIVER_MS}\n")
        scheduler.select(disk.name, "sutro")
        knob(disk, "fairness").write_text("1")
        polls, other = tree.child("a"), tree.child("b")
        polls.run(fio(disk.node, "randread", "4k", 32, ioengine="io_uring", hipri=1))
        wait_for(partial(has_read, polls, disk, 1), "a polled read", START_S)
        polls.write("cgroup.freeze", 1)
        other.run(fio(disk.node, "randread", "4k", 1, seed=2))
        reads = reads_of(other, disk) + MORE_READS
        wait_for(partial(has_read, other, disk, reads), f"{reads} reads", START_S)
        polls.write("cgroup.freeze", 0)
        polls.kill()
        other.kill()
