# SPDX-License-Identifier: GPL-2.0-only
"""A service with a request now and then keeps its rate beside bulk I/O, and others keep the gaps.

With random think times, no gap can be predicted (sporadic.py).
"""

from __future__ import annotations

import pytest
from sporadic import Case, cases

# Of the service's rate alone; the rest is lost to the others' requests that it meets.
REGULAR, RANDOM = 0.88, 0.85
# With this mean think time, the gaps of a regular service hold a request of the others.
GAP_MS = 20
# Of the others' rate alone: a disk serves few of their requests at once here.
OTHERS = 0.07
OTHERS_ANYWAY = 0.001
SECONDS = 12.0
REGULAR_MS = {"hdd": (10, 20, 50, 100, 200), "nvme": (50,)}
RANDOM_MS = {"hdd": (10, 20, 50, 100)}


def chosen(is_random: bool, times_ms: dict[str, tuple[int, ...]]) -> list[Case]:
    """Cases with some think times for each disk."""
    return [
        case
        for case in cases()
        if case.is_random == is_random and case.think_ms in times_ms.get(case.disk, ())
    ]


@pytest.mark.parametrize("case", chosen(False, REGULAR_MS), ids=str)
def test_regular(case: Case) -> None:
    """A request after the same time each: others use the gaps if a request of theirs fits in."""
    one = case.received(SECONDS)
    assert one.service >= REGULAR
    assert one.others >= (OTHERS if case.think_ms >= GAP_MS else OTHERS_ANYWAY)


@pytest.mark.parametrize("case", chosen(True, RANDOM_MS), ids=str)
def test_random(case: Case) -> None:
    """A request at any time, on a disk that serves one after another."""
    one = case.received(SECONDS)
    assert one.service >= RANDOM
    assert one.others >= OTHERS_ANYWAY
