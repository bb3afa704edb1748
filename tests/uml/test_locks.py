# SPDX-License-Identifier: LGPL-2.1-or-later
"""Counts of /proc/lock_stat: which classes are locks, and acquisitions for a request."""

import math
import re
from pathlib import Path

import pytest
from bench.read import load

from uml import locks, plan
from uml.bench import lock_classes
from uml.measure import Run
from uml.scenario import Book, Goal, Group, Job, Scenario

KERNEL = Path(__file__).resolve().parents[2] / "kernel"
HEAD = """lock_stat version 0.4
-----------------------------------------------------------------------------
                              class name    con-bounces    contentions   waittime-min   acquisitions
-----------------------------------------------------------------------------

"""


def line(name: str, acquisitions: int, contentions: int = 0) -> str:
    """As seq_stats() of the kernel prints a class: each number in its place has another value."""
    times = "0.11 0.22 0.33 0.44"
    return f"{name:>40}: {11:>14} {contentions:>14} {times} {22:>14} {acquisitions:>14} {times}\n"


def test_acquisitions_are_those_of_locks() -> None:
    text = HEAD + line("&sq->lock", 7, contentions=3)
    # Where a class was waited for, the places follow.
    text += "  &sq->lock              3          [<0000000060123456>] sutro_fold+0x1/0x2\n"
    text += line("&mm->mmap_lock-W", 2) + line("&mm->mmap_lock-R", 40)
    text += line("&ctx->lock#2", 5) + line("&____s->seqcount#4", 90) + line("rcu_read_lock-R", 91)
    text += line("(work_completion)(&sq->work)", 92) + line("tk_core.seq.seqcount", 93)
    text += line("&q->q_usage_counter(io)", 94)
    assert locks.acquisitions(text) == {"&sq->lock": 7, "&mm->mmap_lock": 42, "&ctx->lock#2": 5}
    assert locks.acquisitions("") == {}


def measured(scheduler: str, before: str, after: str) -> Run:
    """A run with 200 requests between two samples."""
    truths = ["total rios=100 wios=50\n/g rios=100 wios=50\n",
              "total rios=250 wios=100\n/g rios=250 wios=100\n"]  # fmt: skip
    samples = [
        {"at_s": at_s, "truths": [truth], "stat": {}, "locks": text}
        for at_s, truth, text in zip((1.0, 3.0), truths, (before, after), strict=True)
    ]
    group = (Group("g", job=(Job(fio={"rw": "randread"}),)),)
    made = Scenario(name="s", disk={"kind": "nvme"}, nr_requests=64, group=group)
    return Run(made, scheduler, {"samples": samples, "fio": {}, "ended_s": {}})


def test_acquisitions_are_for_a_request_of_the_measured_time() -> None:
    before = line("&sq->lock", 1000) + line("&dd->lock", 50)
    after = line("&sq->lock", 1100) + line("&dd->lock", 650) + line("sutro_active_lock", 20)
    run = measured("sutro", before, after)
    assert run.locks() == pytest.approx(0.6)
    assert run.all_locks() == pytest.approx(3.6)
    assert measured("mq-deadline", before, after).locks() == pytest.approx(3.0)
    assert measured("none", before, after).locks() == 0
    assert "sutro_active_lock 0.1000; of others, the most: &dd->lock 3.0000" in lock_classes(run)


def test_without_counts_there_is_no_number() -> None:
    """A goal is missed then."""
    run = measured("sutro", "", "")
    assert math.isnan(run.locks()) and math.isnan(run.all_locks())


def test_every_lock_of_the_elevator_has_a_name_that_is_counted() -> None:
    """The names of classes are the arguments of spin_lock_init() and DEFINE_SPINLOCK()."""
    source = "".join(path.read_text() for path in sorted(KERNEL.glob("*.c")))
    init = r"(?:(?:raw_)?spin_lock|rwlock|mutex|seqlock)_init\((.*?)\);"
    defined = r"DEFINE_(?:RAW_)?(?:SPINLOCK|RWLOCK|MUTEX|SEQLOCK)\((\w+)\)"
    names = [*re.findall(init, source), *re.findall(defined, source)]
    assert "&sq->lock" in names and "sutro_active_lock" in names
    assert locks.own("sutro", dict.fromkeys(names, 1.0)).keys() == set(names)


def test_only_a_goal_for_locks_needs_the_kernel_that_counts() -> None:
    for scenario in load(Book, locks.SHIPPED).scenario:
        assert plan.make(scenario, "sutro")["locks"]
    group = (Group("g", job=(Job(fio={"rw": "randread"}),)),)
    goal = (Goal("jain", min=0.9),)
    made = Scenario(name="s", disk={"kind": "ssd"}, nr_requests=64, group=group, goal=goal)
    assert not plan.make(made, "sutro")["locks"]
