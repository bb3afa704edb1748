# SPDX-License-Identifier: LGPL-2.1-or-later
"""The elevator's promise: backlogged groups get true device time in the ratio of their weights."""

from __future__ import annotations

import time
from collections.abc import Mapping

import pytest
from rig import scheduler
from rig.cgroup import Group, Subtree
from rig.modeldisk import ModelDisk
from rig.sampler import device_time_ns, parse_io_stat
from rig.unit import fio

WEIGHT = "io.sutro.weight"
CLASS = "io.sutro.class"
NUMBERS = {
    "hdd": {"size_mb": 1024},
    "ssd": {"size_mb": 1024, "bus_kbps": 60000},
    "nvme": {"size_mb": 1024, "bus_kbps": 120000},
}
KINDS = tuple(NUMBERS)


def make(disk, kind: str) -> ModelDisk:
    """A disk that an emulated CPU can keep busy, under sutro."""
    made = disk(kind, f"{kind}0", **NUMBERS[kind])
    scheduler.select(made.name, "sutro")
    return made


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


@pytest.mark.parametrize(
    ("kind", "rw"),
    [
        pytest.param("ssd", "randread", marks=pytest.mark.first),
        ("ssd", "randwrite"),
        *((kind, rw) for kind in KINDS if kind != "ssd" for rw in ("randread", "randwrite")),
    ],
)
def test_two_to_one(tree: Subtree, disk, kind: str, rw: str) -> None:
    """Equal jobs, weights 200 and 100, on each kind."""
    one = make(disk, kind)
    groups = {name: tree.child(name) for name in ("heavy", "light")}
    groups["heavy"].write(WEIGHT, 200)
    load(one, groups, rw=rw)
    used = measured(one, groups, 6)
    assert 1.9 <= used["heavy"] / used["light"] <= 2.1


@pytest.mark.parametrize("kind", KINDS)
def test_sixteen_groups(tree: Subtree, disk, kind: str) -> None:
    """Each of 16 groups sends more than its share of the request slots: the light ones get theirs,
    and do not sleep for slots while the heavy ones are served."""
    one = make(disk, kind)
    (scheduler.queue(one.name) / "nr_requests").write_text("256\n")
    groups = {str(weight): tree.child(f"g{weight}") for weight in range(10, 170, 10)}
    for name, group in groups.items():
        group.write(WEIGHT, name)
    load(one, groups, iodepth=32)
    used = measured(one, groups, 10)
    allowed = 0.25 if kind == "hdd" else 0.05  # the lightest gets a few requests in 10 s of an hdd
    assert error(used, {name: int(name) for name in groups}) <= allowed


@pytest.mark.parametrize("kind", KINDS)
def test_classes(tree: Subtree, disk, kind: str) -> None:
    """rt before be before idle whatever the weights, and nobody starves: 1/33 for each of the
    two below, more or less by when their turns fall."""
    one = make(disk, kind)
    groups = {name: tree.child(name) for name in ("rt", "be", "idle")}
    for weight, (name, group) in zip((1, 1000, 10000), groups.items(), strict=True):
        group.write(CLASS, name)
        group.write(WEIGHT, weight)
    load(one, groups, iodepth=16)
    used = measured(one, groups, 10)
    whole = sum(used.values())
    assert used["rt"] / whole > 0.9
    assert 0.01 < used["be"] / whole < 0.05
    assert 0.01 < used["idle"] / whole < 0.05


@pytest.mark.parametrize("kind", KINDS)
def test_class_changes_under_load(tree: Subtree, disk, kind: str) -> None:
    """Of two equal groups one is made rt, and then idle."""
    one = make(disk, kind)
    groups = {name: tree.child(name) for name in ("fickle", "steady")}
    load(one, groups, iodepth=16)
    for setting, low, high in (("rt", 0.9, 1), ("idle", 0.01, 0.1), ("be", 0.45, 0.55)):
        groups["fickle"].write(CLASS, f"{one.devno} {setting}")
        used = measured(one, groups, 6)
        assert low < used["fickle"] / sum(used.values()) < high, setting


@pytest.mark.parametrize("kind", ("hdd", "ssd"))
def test_sequential_readers(tree: Subtree, disk, kind: str) -> None:
    """Two sequential streams, 200 and 100, that ask for more than the drive takes at once."""
    one = make(disk, kind)
    groups = {name: tree.child(name) for name in ("heavy", "light")}
    groups["heavy"].write(WEIGHT, 200)
    for name, offset in (("heavy", "0"), ("light", "512m")):
        groups[name].run(fio(one.node, "read", "128k", 128, offset=offset, size="512m"))
    begun(one, groups)
    used = measured(one, groups, 6)
    assert 1.9 <= used["heavy"] / used["light"] <= 2.1


def test_eight_groups(tree: Subtree, disk) -> None:
    """Weights 100 to 800."""
    one = make(disk, "ssd")
    groups = {f"g{n}": tree.child(f"g{n}") for n in range(1, 9)}
    for n in range(1, 9):
        groups[f"g{n}"].write(WEIGHT, n * 100)
    load(one, groups, iodepth=16, bs="16k")
    used = measured(one, groups, 6)
    assert error(used, {f"g{n}": n for n in range(1, 9)}) <= 0.05


@pytest.mark.first
def test_nested(tree: Subtree, disk) -> None:
    """a (300) holds a1 (100) and a2 (300); b has 100: 3/16, 9/16, 4/16."""
    one = make(disk, "ssd")
    a, b = tree.child("a"), tree.child("b")
    groups = {"a1": a.child("a1"), "a2": a.child("a2"), "b": b}
    for group, weight in ((a, 300), (groups["a2"], 300)):
        group.write(WEIGHT, weight)
    load(one, groups)
    assert error(measured(one, groups, 6), {"a1": 3, "a2": 9, "b": 4}) <= 0.05


def test_weight_of_one_device(tree: Subtree, disk) -> None:
    """`MAJ:MIN N` counts on that disk only; the default counts on the other."""
    disks = [disk("ssd", f"ssd{n}", **NUMBERS["ssd"]) for n in range(2)]
    groups = {name: tree.child(name) for name in ("a", "b")}
    for one in disks:
        scheduler.select(one.name, "sutro")
        load(one, groups, iodepth=32)
    groups["a"].write(WEIGHT, "default 200")
    groups["b"].write(WEIGHT, f"{disks[0].devno} 600")
    assert error(measured(disks[0], groups, 5), {"a": 1, "b": 3}) <= 0.05
    assert error(measured(disks[1], groups, 5), {"a": 2, "b": 1}) <= 0.05


@pytest.mark.first
def test_weight_at_run_time(tree: Subtree, disk) -> None:
    """A new weight counts at once."""
    one = make(disk, "ssd")
    groups = {name: tree.child(name) for name in ("a", "b")}
    groups["a"].write(WEIGHT, 200)
    load(one, groups)
    assert error(measured(one, groups, 3), {"a": 2, "b": 1}) <= 0.05
    groups["a"].write(WEIGHT, 100)
    groups["b"].write(WEIGHT, 200)
    paths = {name: group.cgroup for name, group in groups.items()}
    used = device_time_ns(one, list(paths.values()), 0.5, 3)
    assert error({name: used[path] for name, path in paths.items()}, {"a": 1, "b": 2}) <= 0.05


def test_idle_share_goes_to_others(tree: Subtree, disk) -> None:
    """A group with a large weight that does nothing costs nobody anything."""
    one = make(disk, "ssd")
    groups = {name: tree.child(name) for name in ("idle", "a", "b")}
    groups["idle"].write(WEIGHT, 10000)
    load(one, {name: groups[name] for name in "ab"})
    measured(one, groups, 0.5)
    one.reset()
    used = measured(one, groups, 3)
    assert used["idle"] == 0
    rate = one.truth().total.rbytes / 5 / 1024
    assert rate > 0.95 * NUMBERS["ssd"]["bus_kbps"]
    assert error({name: used[name] for name in "ab"}, {"a": 1, "b": 1}) <= 0.05


MIXES = {
    "small-large": ({"rw": "randread", "bs": "4k"}, {"rw": "randread", "bs": "128k"}),
    "read-write": ({"rw": "randread", "bs": "16k"}, {"rw": "randwrite", "bs": "16k"}),
}


@pytest.mark.parametrize("mix", MIXES)
def test_charge_is_true(tree: Subtree, disk, record_property, mix: str) -> None:
    """Unequal jobs on an hdd: what the elevator charges each group, beside what the disk knows.

    The charged share may be off by a tenth of the whole; the number seen goes into the report. On
    flash nothing of the kind is promised yet: Documentation/design.rst has what was seen.
    """
    one = make(disk, "hdd")
    groups = {name: tree.child(name) for name in ("a", "b")}
    for seed, (group, keys) in enumerate(zip(groups.values(), MIXES[mix], strict=True), start=1):
        group.run(fio(one.node, iodepth=32, seed=seed, **keys))
    begun(one, groups)
    measured(one, groups, 1)

    def charged() -> dict[str, int]:
        return {
            name: parse_io_stat(group.read("io.sutro.stat"), one.devno)["time_ns"]
            for name, group in groups.items()
        }

    before = charged()
    true = device_time_ns(one, [group.cgroup for group in groups.values()], 0, 5)
    after = charged()
    whole, whole_true = sum(after.values()) - sum(before.values()), sum(true.values())
    off = {
        name: (after[name] - before[name]) / whole - true[group.cgroup] / whole_true
        for name, group in groups.items()
    }
    record_property("charge_error", round(off["a"], 4))
    print(f"hdd {mix}: charged share minus true share of the first group: {off['a']:+.3f}")
    assert abs(off["a"]) <= 0.10
