# SPDX-License-Identifier: LGPL-2.1-or-later
"""Scenarios of `./lab bench locks`: lock acquisitions for a request, by /proc/lock_stat.

The file has the format of fairness.toml. The kernel (uml-locks.config) counts the acquisitions of
each lock class, whose name is the expression that initialises the lock. A scenario has a goal for
one of the LOCKS metrics (measure.py), or its locks are not counted.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from .scenario import Book as Book

SHIPPED = Path(__file__).with_name("locks.toml")
# The beginnings of the names of the classes of each scheduler's own locks. A plain &ioc->lock is
# that of an io_context, too, which a task takes when it exits.
OWN: Mapping[str, tuple[str, ...]] = {
    "none": (),
    "mq-deadline": ("&dd->",),
    "kyber": ("&kcq->", "&khd->"),
    "bfq": ("&bfqd->",),
    "iocost": ("&ioc->", "&iocg->"),
    "sutro": ("&sq->", "sutro_"),
}
# Classes of lockdep that are no locks: sections of RCU, sequence counters (that of tick_cpu_sched
# has no name), per-CPU references of the queue, and annotations of work items, of reclaim and of
# wait types.
NO_LOCK = re.compile(
    r"rcu_|\(|.*seqcount|tick_cpu_sched|.*q_usage_counter|fs_reclaim|.*wait-type-override"
)
# After the name: two numbers of contention, four of waiting, bounces, and the acquisitions.
ACQUISITIONS = 7


def acquisitions(text: str) -> dict[str, int]:
    """The acquisitions of each class in /proc/lock_stat, those of readers and of writers."""
    found: dict[str, int] = {}
    for line in text.splitlines():
        name, colon, numbers = line.rpartition(":")
        name = name.strip()
        if not colon or NO_LOCK.match(name):
            continue
        name = name.removesuffix("-W").removesuffix("-R")
        found[name] = found.get(name, 0) + int(numbers.split()[ACQUISITIONS])
    return found


def own(scheduler: str, classes: Mapping[str, float]) -> dict[str, float]:
    """The classes of the locks of a scheduler."""
    return {name: n for name, n in classes.items() if name.startswith(OWN[scheduler])}
