# SPDX-License-Identifier: LGPL-2.1-or-later
"""The elevator's internal state for developers: debugfs, tracepoints, the slots."""

import time

import pytest
from rig.cgroup import Group, Subtree
from rig.modeldisk import ModelDisk
from rig.sampler import device_time_ns
from rig.shell import wait_for
from rig.sutro import debug, groups, knob, state
from rig.trace import Trace
from rig.unit import fio

WEIGHT = "io.sutro.weight"


@pytest.fixture
def two(tree: Subtree) -> dict[str, Group]:
    """A parent of weight 300 with a child, and a cgroup of weight 100."""
    top = tree.child("top")
    made = {"a": top.child("a"), "b": tree.child("b")}
    top.write(WEIGHT, 300)
    return made


def load(disk: ModelDisk, two: dict[str, Group], **more: object) -> None:
    """Both have always something to send."""
    for seed, group in enumerate(two.values(), start=1):
        group.run(fio(disk.node, "randread", "16k", 32, seed=seed, **more))

    def used(group: Group) -> bool:
        return int(groups(disk).get(group.cgroup, {}).get("time_ns", 0)) > 0

    wait_for(lambda: all(used(group) for group in two.values()), "both use the disk", 60)
    time.sleep(1)


def test_groups(two: dict[str, Group], sutro_disk: ModelDisk) -> None:
    """The tree with weights and shares, parents before children, under load."""
    load(sutro_disk, two)
    seen = groups(sutro_disk)
    a, b = two["a"].cgroup, two["b"].cgroup
    top = a.rsplit("/", 1)[0]
    paths = list(seen)
    assert paths[0] == "/"
    assert paths.index(top) < paths.index(a)
    assert seen[top]["weight"] == "300"
    assert seen[a]["id"] == two["a"].id
    assert abs(int(seen[a]["share_permyriad"]) - 7500) <= 1
    assert abs(int(seen[b]["share_permyriad"]) - 2500) <= 1
    for path in (a, b):
        assert seen[path]["active"] == "1"
        assert int(seen[path]["slots"]) > 0
        assert int(seen[path]["time_ns"]) > 0


def test_state(two: dict[str, Group], sutro_disk: ModelDisk) -> None:
    """Requests in the elevator and at the disk; none when the load has gone."""
    load(sutro_disk, two)
    busy = state(sutro_disk)
    assert busy["rotational"] == "0"
    assert busy["active"] == "2"
    assert int(busy["queued"]) + int(busy["in_flight"]) > 2
    for group in two.values():
        group.kill()
    time.sleep(0.5)
    calm = state(sutro_disk)
    assert calm["queued"] == calm["prompt"] == "0"
    assert calm["lanes_idle"] == "256"


def test_costs(two: dict[str, Group], sutro_disk: ModelDisk) -> None:
    """The class of requests that ran has a cost; a busy CPU makes it more than the model's."""
    load(sutro_disk, two)
    lines = [line.split() for line in debug(sutro_disk, "costs").splitlines() if line[0] != "#"]
    *table, times = lines
    costs = {(op, int(size)): int(ns) for op, size, ns in table}
    true_ns = (16 << 10) / (60000 << 10) * 1e9
    assert 0.8 * true_ns <= costs["read", 16 << 10] <= 1e8
    # Without writes, nothing is missing from the charges of writes.
    assert times == ["write_times", "1.00"]


def test_group_costs(two: dict[str, Group], disk) -> None:
    """On a rotational disk costs are known for each cgroup."""
    one = disk("hdd", "hdd0", "sutro", size_mb=1024)
    load(one, two)
    text = debug(one, "group_costs")
    part = text[text.index(f"# {two['b'].cgroup}\n") :].splitlines()[1]
    op, size, ns = part.split()
    assert (op, size) == ("read", str(16 << 10))
    assert 1e6 < int(ns) < 3e7


def test_slots_refused(two: dict[str, Group], sutro_disk: ModelDisk) -> None:
    """A group that has all slots of its share is counted, in a counter and in the trace."""
    knob(sutro_disk, "group_requests").write_text("8")
    with Trace("sutro/sutro_slot_refused") as trace:
        load(sutro_disk, two)
    seen = groups(sutro_disk)
    events = trace.events("sutro_slot_refused")
    for group in two.values():
        mine = [event for event in events if event["cgroup"] == group.id]
        assert mine
        assert int(seen[group.cgroup]["slots_refused"]) >= len(mine)
        assert all(int(event["used"]) >= int(event["limit"]) == 8 for event in mine)


def test_decisions_are_traced(two: dict[str, Group], disk) -> None:
    """Each decision has its event, with the cgroup it is about and why."""
    one = disk("hdd", "hdd0", "sutro", size_mb=1024)
    with Trace("sutro") as trace:
        # A stream that thinks for 2 ms: its slice is worth waiting for.
        two["a"].run(fio(one.node, "read", "64k", 1, thinktime=2000))
        two["b"].run(fio(one.node, "read", "64k", 8, offset=512 << 20))
        device_time_ns(one, [], 1, 3)
        for group in two.values():
            group.kill()
    known = {group.id for group in two.values()}
    found = {}
    for event in trace.events():
        if event.get("cgroup") in known:
            found.setdefault(event["event"], []).append(event)
    names = "dispatch complete idle idle_end expire cost"
    assert set(found) >= {f"sutro_{name}" for name in names.split()}
    assert {event["reason"] for event in found["sutro_expire"]} <= {"used", "empty", "preempted"}
    assert {event["reason"] for event in found["sutro_idle"]} <= {"slice", "owed"}
    ends = {event["reason"] for event in found["sutro_idle_end"]}
    assert "arrived" in ends
    assert ends <= {"arrived", "late", "other"}
    # Idling ends as often as it begins, but for one that goes on.
    starts = len(found["sutro_idle"])
    assert abs(starts - len(found["sutro_idle_end"])) <= 1


def test_stat_agrees_with_trace(two: dict[str, Group], sutro_disk: ModelDisk) -> None:
    """The charge in io.sutro.stat is the sum of the costs of completions."""
    with Trace("sutro/sutro_complete") as trace:
        job = two["a"].run(fio(sutro_disk.node, "randread", "16k", 4, runtime=2))
        job.communicate(timeout=60)
    costs = [int(event["cost_ns"]) for event in trace.events() if event["cgroup"] == two["a"].id]
    charged = int(groups(sutro_disk)[two["a"].cgroup]["time_ns"])
    # The last completions are reported at the next dispatch.
    assert 0.98 <= charged / sum(costs) <= 1
