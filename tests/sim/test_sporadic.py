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
# Of the others' rate alone, if most of their requests fit into a gap.
GAPS = 0.55
# Two other groups: of the rate of that with small requests, and of that with large ones.
SMALL, LARGE = 0.4, 0.005
# The longest wait of a request that fits into no gap, by the weight of the service. A debt leaves
# out the shared windows of four cycles, of a second at most each (SUTRO_PROTECT_DEBT).
WAIT_S = {200: 2.5, 1000: 5.5}
WAITED_S = 30.0
SECONDS = 12.0
REGULAR_MS = {"hdd": (10, 20, 50, 100, 200), "nvme": (50,)}
# Four services with random think times: of their rate alone, and of that of the others. A write of
# 1 MiB takes 2 ms on an ssd, so few may be sent without much harm.
SERVICES = 0.94
BESIDE_SERVICES = {
    ("ssd-fast", "writes"): 0.3,
    ("ssd-fast", "stream"): 0.8,
    ("ssd-fast", "deep"): 0.8,
    ("nvme", "writes"): 0.8,
    ("nvme", "stream"): 0.6,
    ("nvme", "deep"): 0.4,
}
# A service whose reads wait for few of the others, which lose nothing by that: of both rates.
LIGHT, BESIDE_LIGHT = 0.94, 0.9
# A service of 100 processes, likewise.
MANY, BESIDE_MANY = 0.97, 0.5
# The 99th percentile over that alone.
P99 = 2
RANDOM_MS = {"hdd": (10, 20, 50, 100)}


def chosen(is_random: bool, times_ms: dict[str, tuple[int, ...]]) -> list[Case]:
    """Cases with some think times for each disk."""
    return [
        case
        for case in cases()
        if case.is_random == is_random
        and case.think_ms in times_ms.get(case.disk, ())
        and case.other not in ("mixed", "apart")
        and not case.services
    ]


@pytest.mark.parametrize("case", chosen(False, REGULAR_MS), ids=str)
def test_regular(case: Case) -> None:
    """A request after the same time each: others use the gaps if a request of theirs fits in."""
    one = case.received(SECONDS)
    assert one.service >= REGULAR
    assert min(one.others) >= (OTHERS if case.think_ms >= GAP_MS else OTHERS_ANYWAY)


@pytest.mark.parametrize("case", chosen(True, RANDOM_MS), ids=str)
def test_random(case: Case) -> None:
    """A request at any time, on a disk that serves one after another."""
    one = case.received(SECONDS)
    assert one.service >= RANDOM
    assert min(one.others) >= OTHERS_ANYWAY


@pytest.mark.parametrize("weight", [200, 1000])
@pytest.mark.parametrize("think_ms", [5, 10, 20])
def test_sizes_in_gaps(think_ms: int, weight: int) -> None:
    """A gap takes those requests of the others that fit in, whatever the one before them needs."""
    one = Case("ssd", False, think_ms, "mixed", weight).received(SECONDS)
    assert one.service >= REGULAR
    assert one.p99 <= P99
    assert min(one.others) >= GAPS


@pytest.mark.parametrize("weight", WAIT_S)
def test_large_requests_are_not_passed_for_long(weight: int) -> None:
    """Smaller requests precede one that fits into no gap, but it has a shared window soon."""
    one = Case("ssd", False, 5, "mixed", weight).received(WAITED_S)
    assert one.slowest_s <= WAIT_S[weight]


@pytest.mark.parametrize("think_ms", [5, 10, 20])
def test_groups_in_gaps(think_ms: int) -> None:
    """A group uses the gaps that are too short for another one, which keeps shared windows."""
    one = Case("ssd", False, think_ms, "apart", 1000).received(SECONDS)
    small, large = one.others
    assert one.service >= REGULAR
    assert one.p99 <= P99
    assert small >= SMALL
    assert large >= LARGE


@pytest.mark.parametrize(("disk", "other"), BESIDE_SERVICES)
def test_services_in_a_slice(disk: str, other: str) -> None:
    """Services that use little of the disk, at times that are not known, cost others little."""
    one = Case(disk, True, 50, other, 1000, services=4).received(WAITED_S)
    assert one.service >= SERVICES
    assert one.others[0] >= BESIDE_SERVICES[disk, other]


@pytest.mark.parametrize(
    ("disk", "think_ms", "other", "weight"),
    [
        ("ssd", 20, "deep", 200),
        ("ssd", 50, "deep", 200),
        ("ssd", 20, "deep", 1000),
        ("ssd", 20, "mixed", 200),
        ("nvme", 20, "deep", 1000),
        ("nvme", 20, "mixed", 1000),
    ],
)
def test_light_service(disk: str, think_ms: int, other: str, weight: int) -> None:
    """A service at random times that needs few requests of others at the disk, not none."""
    one = Case(disk, True, think_ms, other, weight).received(WAITED_S)
    assert one.service >= LIGHT
    assert min(one.others) >= BESIDE_LIGHT


def test_service_of_many_processes() -> None:
    """A service of 100 processes keeps its rate, and others have half of theirs."""
    one = Case("ssd-fast", True, 50, "deep", 1000, processes=100).received(SECONDS)
    assert one.service >= MANY
    assert one.others[0] >= BESIDE_MANY
