# SPDX-License-Identifier: LGPL-2.1-or-later
"""The elevator's promise: backlogged groups get true device time in the ratio of their weights.

tests/uml/quick.toml has tests of shares in virtual time, with tighter bounds. Here are the packaged
module on a stock kernel, and cases that a scenario cannot describe.
"""

import time
from collections.abc import Mapping

import pytest
from rig.cgroup import Group, Subtree
from rig.modeldisk import ModelDisk
from rig.sampler import device_time_ns
from rig.unit import fio

WEIGHT = "io.sutro.weight"
CLASS = "io.sutro.class"
# Disks that an emulated CPU can keep busy.
NUMBERS = {
    "hdd": {"size_mb": 1024},
    "ssd": {"size_mb": 1024, "bus_kbps": 60000},
    "nvme": {"size_mb": 1024, "bus_kbps": 120000},
}
KINDS = tuple(NUMBERS)


def load(disk: ModelDisk, groups: Mapping[str, Group], **job: object) -> None:
    """The same endless job in each group, deep enough to keep it backlogged; all have begun."""
    keys = {"rw": "randread", "bs": "64k", "iodepth": 64, **job}
    for seed, group in enumerate(groups.values(), start=1):
        group.run(fio(disk.node, seed=seed, **keys))
    begun(disk, groups)


def begun(disk: ModelDisk, groups: Mapping[str, Group]) -> None:
    """Wait until each group has used the disk: fio starts slowly beside busy neighbours."""
    deadline = time.monotonic() + 60
    while idle := [n for n, g in groups.items() if not disk.truth().of(g.cgroup).time_ns]:
        assert time.monotonic() < deadline, f"no I/O of {idle} within 60 s"
        time.sleep(0.05)


def error(used: Mapping[str, int], entitled: Mapping[str, float]) -> float:
    """The worst distance of a share from its entitlement, as a part of that."""
    whole, due = sum(used.values()), sum(entitled.values())
    return max(abs(used[name] / whole / (entitled[name] / due) - 1) for name in entitled)


def measured(disk: ModelDisk, groups: Mapping[str, Group], seconds: float) -> dict[str, int]:
    """True device time by name of the group, after a ramp."""
    paths = {name: group.cgroup for name, group in groups.items()}
    used = device_time_ns(disk, list(paths.values()), 2, seconds)
    return {name: used[path] for name, path in paths.items()}


@pytest.mark.first
def test_two_to_one(tree: Subtree, disk) -> None:
    """Equal jobs, weights 200 and 100."""
    one = disk("ssd", "ssd0", "sutro", **NUMBERS["ssd"])
    groups = {name: tree.child(name) for name in ("heavy", "light")}
    groups["heavy"].write(WEIGHT, 200)
    load(one, groups)
    used = measured(one, groups, 6)
    assert 1.9 <= used["heavy"] / used["light"] <= 2.1


@pytest.mark.parametrize("kind", KINDS)
def test_class_changes_under_load(tree: Subtree, disk, kind: str) -> None:
    """Of two equal groups one is made rt, and then idle."""
    one = disk(kind, f"{kind}0", "sutro", **NUMBERS[kind])
    groups = {name: tree.child(name) for name in ("fickle", "steady")}
    load(one, groups, iodepth=16)
    for setting, low, high in (("rt", 0.9, 1), ("idle", 0.01, 0.1), ("be", 0.45, 0.55)):
        groups["fickle"].write(CLASS, f"{one.devno} {setting}")
        used = measured(one, groups, 6)
        assert low < used["fickle"] / sum(used.values()) < high, setting


def test_weight_of_one_device(tree: Subtree, disk) -> None:
    """`MAJ:MIN N` counts on that disk only; the default counts on the other."""
    disks = [disk("ssd", f"ssd{n}", "sutro", **NUMBERS["ssd"]) for n in range(2)]
    groups = {name: tree.child(name) for name in ("a", "b")}
    for one in disks:
        load(one, groups, iodepth=32)
    groups["a"].write(WEIGHT, "default 200")
    groups["b"].write(WEIGHT, f"{disks[0].devno} 600")
    assert error(measured(disks[0], groups, 5), {"a": 1, "b": 3}) <= 0.05
    assert error(measured(disks[1], groups, 5), {"a": 2, "b": 1}) <= 0.05
