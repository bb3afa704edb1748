# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tasks side by side in threads. They run commands, so threads are enough.

The first exception, Ctrl-C and SIGTERM included, ends the commands of all tasks and is raised.
"""

import itertools
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TypeVar

from .namespace import end_all

Result = TypeVar("Result")
# A guest and its emulator.
MEMORY_GIB = 5
POLL_S = 0.2
_pools = itertools.count()


def workers() -> int:
    """How many guests the CPUs and the free memory of the host carry at a time: at least one."""
    free_gib = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 30
    return max(1, min(os.cpu_count() or 1, free_gib // MEMORY_GIB))


def at_once(tasks: Sequence[Callable[[], Result]]) -> list[Result]:
    """Run all tasks at a time; their results in order."""
    results = dict(as_they_end(tasks, len(tasks)))
    return [results[number] for number in range(len(tasks))]


def as_they_end(
    tasks: Sequence[Callable[[], Result]], workers: int
) -> Iterator[tuple[int, Result]]:
    """Run tasks in order, some at a time; yield the number and the result of each at its end."""
    # By name: an interrupt may come while the pool starts a thread, before it has a future for it.
    threads = f"tasks-{next(_pools)}_"
    with ThreadPoolExecutor(workers, thread_name_prefix=threads.rstrip("_")) as pool:
        left: dict[Future[Result], int] = {}
        try:
            left = {pool.submit(task): number for number, task in enumerate(tasks)}
            while left:
                # With a limit: a signal that another thread gets does not end an endless wait.
                for future in wait(left, POLL_S, FIRST_COMPLETED).done:
                    yield left.pop(future), future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            # A thread may be about to start a command: look again until all have ended.
            while any(thread.name.startswith(threads) for thread in threading.enumerate()):
                end_all()
                time.sleep(POLL_S)
            raise
