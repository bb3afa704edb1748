# SPDX-License-Identifier: LGPL-2.1-or-later
"""Count what an I/O through a stack takes with the drivers that are loaded.

The leaves are disks of null_blk that keep data in memory and answer at once: all time is the CPU's,
and the clock counts instructions (README.rst). A job that uses each place once has to end later
than the last window does.
"""

import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from rig import scheduler
from rig.cgroup import Group, Subtree
from rig.nullblk import NullBlk
from rig.shell import run, wait_for
from rig.stack import Stack, fill
from rig.unit import fio

from bench.harm.scenario import ROOT, Scenario
from bench.judge import Say
from bench.overhead.measure import ios
from bench.overhead.run import Count, Meter
from bench.stacks import build

DISK = {
    "irqmode": 0, "queue_mode": 2, "submit_queues": 1, "hw_queue_depth": 128, "memory_backed": 1,
}  # fmt: skip
COME_S = 600.0


def windows(stack: Scenario, which: str, say: Say) -> list[Count]:
    """The counts of each window; with ROOT in the root cgroup, else in a cgroup of its own."""
    with ExitStack() as undo:
        say(f"{stack.name}: making it")
        top = _standing(undo, stack)
        subtree = undo.enter_context(Subtree("harm"))
        group = Group.root() if which == ROOT else subtree.child("job")
        undo.callback(group.kill)
        meter = Meter(Path(top).resolve().name, subtree.folder)
        begin = meter.read()
        job = group.run(fio(top, **_job(stack)))
        wait_for(lambda: ios(meter.read() - begin), f"{stack.name}: I/O at {top}", COME_S, 0.01)
        say(f"{stack.name}: measuring")
        time.sleep(stack.settle_ms / 1e3)
        counts = []
        for _ in range(stack.rounds):
            before = meter.read()
            time.sleep(stack.window_ms / 1e3)
            counts.append(meter.read() - before)
        if job.poll() is not None:
            raise RuntimeError(f"{stack.name}: fio ended early:\n{job.communicate()[0]}")
    return counts


def _job(stack: Scenario) -> Mapping[str, object]:
    """One that may use each place once ends when it has used all."""
    once = {"time_based": 0, "runtime": 0} if stack.once else {}
    return {"gtod_reduce": 1, **stack.job, **once}


def _standing(undo: ExitStack, spec: Scenario) -> str:
    """The stack; returns what is used."""
    disks = {}
    for name, size_mib in spec.leaves.items():
        disk = undo.enter_context(NullBlk(name, {**DISK, "size": size_mib}))
        scheduler.select(name, "none")
        disks[name] = disk.node
    made = undo.enter_context(Stack(disks))
    build(made, spec.layer, fill)
    run("udevadm", "settle", "--timeout=60")
    return made.nodes[spec.top] if spec.top else made.top
