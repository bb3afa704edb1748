# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the patched drivers cost: files of stacks and their mistakes, verdicts on made-up guests."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from rig.result import Result

from bench.harm.drivers import MODULES
from bench.harm.measure import failed, number, show, verdict
from bench.harm.scenario import SHIPPED, Harmed, load, only
from bench.overhead.run import Count
from bench.tables import ScenarioError

GOOD = """
max = 1.01
[[stack]]
name = "linear"
title = "dm linear"
leaves = { n0 = 64 }
layer = [{ kind = "dm", name = "top", over = ["n0"], table = "0 {sectors} linear {0} 0" }]
job = { rw = "randread", bs = "4k" }
"""
# 1000 reads of 4 KiB in 10 ms, of which others had 2 ms and nobody 1 ms.
WINDOW = Count(
    at_ns=10_000_000, busy_ns=9_000_000, others_ns=2_000_000, user_us=0, system_us=0, switches=0,
    reads=1000, writes=0, read_sectors=8000, write_sectors=0, read_merges=0, write_merges=0,
)  # fmt: skip


def read(folder: Path, text: str = GOOD) -> list[Harmed]:
    file = folder / "h.toml"
    file.write_text(text)
    return load(file)


def turn(drivers: str, value: float) -> Result:
    return Result("linear", drivers, "instructions", value)


def test_what_a_file_means(tmp_path: Path) -> None:
    (stack,) = read(tmp_path)
    assert (stack.name, stack.leaves, stack.once) == ("linear", {"n0": 64}, False)
    assert str(stack.goal) == "<= 1.01"
    assert only([stack], []) == only([stack], ["linear"]) == [stack]
    with pytest.raises(ScenarioError, match="no stack raid0; there are linear"):
        only([stack], ["raid0"])


@pytest.mark.parametrize(
    ("good", "bad", "said"),
    [
        ("max = 1.01", "", "max: None is no number above 0"),
        ("max = 1.01", 'max = "x"', "max: 'x' is no number above 0"),
        ("leaves = { n0 = 64 }", "", "stack linear: leaves: is missing"),
        ("leaves = { n0 = 64 }", "leaves = {}", "needs leaves, and a layer or the top"),
        ('over = ["n0"]', 'over = ["n1"]', "over: no 'n1' below"),
        ('kind = "dm"', 'kind = "md9"', "kind 'md9' is none of fill"),
        ('title = "dm linear"', 'title = "x"\ntop = "t"', "top: no 't'; there are n0, top"),
        ('title = "dm linear"', 'title = "x"\nloops = 3', "loops: unknown key"),
        ('title = "dm linear"', 'title = "x"\nrounds = 0', "rounds: must be at least 1"),
        ('title = "dm linear"', 'title = "x"\nowned = -1', "owned: must be at least 0"),
        ('title = "dm linear"', 'title = "x"\nbetween = "us"', "'us' is none of drivers, cgroups"),
        (', bs = "4k"', "", "job: bs: is missing"),
        ("[[stack]]", "[stock]", "unknown key 'stock'"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, good: str, bad: str, said: str) -> None:
    assert good in GOOD
    with pytest.raises(ScenarioError) as told:
        read(tmp_path, GOOD.replace(good, bad, 1))
    assert said in str(told.value)


def test_a_number(tmp_path: Path) -> None:
    (stack,) = read(tmp_path)
    one = number(stack, "stock", [WINDOW])
    # 7 ms at 2 ns, for 1000 reads.
    assert (one.scheduler, one.value) == ("stock", 3500)
    with pytest.raises(RuntimeError, match="no I/O within 300 ms"):
        number(stack, "stock", [WINDOW, WINDOW - WINDOW])


def test_a_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (stack,) = read(tmp_path)
    values = {"stock": (1000, 1010), "patched": (1018, 1020)}
    row = verdict(stack, [turn(name, value) for name, both in values.items() for value in both])
    assert row.value == pytest.approx(1019 / 1005)
    assert row.met is False
    # Turns lie 5 and 1 from their means.
    assert row.detail["error"] == pytest.approx(math.hypot(5 / 1005, 1 / 1019) * 100, abs=0.01)
    show([row])
    assert "1.0139           MISSED, goal <= 1.01" in capsys.readouterr().out


def test_what_a_cgroup_costs_is_the_price(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = GOOD.replace('title = "dm linear"', 'title = "dm linear"\nowned = 2')
    disk = '[[stack]]\nname = "disk"\ntitle = "a disk"\nbetween = "cgroups"\nleaves = { n0 = 64 }\n'
    disk += 'top = "n0"\njob = { rw = "randread", bs = "4k" }\n'
    linear, alone = read(tmp_path, text + disk)
    paid = verdict(alone, [turn("root", 500), turn("own", 505)] * 2)
    assert (paid.goal, paid.metric, paid.value) == (None, "instructions_vs_root", 1.01)
    row = verdict(linear, [turn("stock", 1000), turn("patched", 1020)] * 2, [paid])
    assert row.detail["price"] == pytest.approx(1.01)
    show([paid, row])
    assert "1.0100           root and own cgroup" in capsys.readouterr().out


def test_what_is_not_measured_is_not_met(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (stack,) = read(tmp_path)
    row = failed(stack, RuntimeError("fio ended early"))
    assert math.isnan(row.value) and row.met is False
    show([row])
    assert "FAILED fio ended early" in capsys.readouterr().out


def test_the_shipped_file_has_every_driver() -> None:
    stacks = load(SHIPPED)
    assert {stack.goal.max for stack in stacks if stack.goal} == {1.01}
    assert [stack.name for stack in stacks if not stack.goal] == ["disk"]
    words = " ".join(str(stack.layer) for stack in stacks)
    for part in ("linear", "thin-pool", "snapshot", "integrity", "raid5", "raid1", "bcache"):
        assert part in words
    assert len(MODULES) == len(set(MODULES))
