# SPDX-License-Identifier: LGPL-2.1-or-later
"""Cost of the patched drivers: files of stacks and their mistakes, verdicts on made-up guests."""

import math
from pathlib import Path

import pytest
from rig.result import Result

from bench.harm.drivers import MODULES
from bench.harm.kind import show
from bench.harm.measure import ratio_of, turn
from bench.harm.scenario import SHIPPED, Book
from bench.read import load
from bench.show import goals
from bench.test_overhead import WINDOW
from bench.test_read import GOOD, read


def took(drivers: str, value: float) -> Result:
    return Result("one", drivers, "instructions", value)


def test_what_a_file_means(tmp_path: Path) -> None:
    (stack,) = read(tmp_path, "harm").scenario
    assert (stack.name, stack.leaves, stack.once) == ("one", {"n0": 64}, False)
    assert [str(goal) for goal in stack.goal] == ["<= 1.01 x stock"]


def test_a_number(tmp_path: Path) -> None:
    (stack,) = read(tmp_path, "harm").scenario
    one = turn(stack, "stock", [WINDOW])
    # 7 ms at 2 ns, for 1000 reads.
    assert (one.scheduler, one.value) == ("stock", 3500)
    with pytest.raises(RuntimeError, match="no I/O within 300 ms"):
        turn(stack, "stock", [WINDOW, WINDOW - WINDOW])


def test_a_ratio(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (stack,) = read(tmp_path, "harm").scenario
    values = {"stock": (1000, 1010), "patched": (1018, 1020)}
    row = ratio_of(stack, [took(name, value) for name, both in values.items() for value in both])
    assert row.value == pytest.approx(1019 / 1005)
    assert row.met is False
    # Turns lie 5 and 1 from their means.
    assert row.detail["error_percent"] == pytest.approx(
        math.hypot(5 / 1005, 1 / 1019) * 100, abs=0.01
    )
    show([row])
    goals([row])
    out = capsys.readouterr().out
    assert "1.0139" in out
    assert "MISSED  instructions_vs_stock <= 1.01 x stock: patched 1.014" in out


def test_what_a_cgroup_costs_is_the_price(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = GOOD["harm"].replace('title = "One"', 'title = "One"\nowned = 2')
    disk = '[scenario.disk]\ntitle = "a disk"\nbetween = "cgroups"\nleaves = { n0 = 64 }\n'
    disk += 'top = "n0"\njob = { rw = "randread", bs = "4k" }\n'
    linear, alone = read(tmp_path, "harm", text + disk).scenario
    paid = ratio_of(alone, [took("root", 500), took("own", 505)] * 2)
    assert (paid.goal, paid.metric, paid.value) == (None, "instructions_vs_root", 1.01)
    row = ratio_of(linear, [took("stock", 1000), took("patched", 1020)] * 2, [paid])
    assert row.detail["price"] == pytest.approx(1.01)
    goals([paid])
    assert not capsys.readouterr().out, "only drivers are judged"


def test_the_shipped_file_has_every_driver() -> None:
    stacks = load(Book, SHIPPED).scenario
    assert {goal.max for stack in stacks for goal in stack.goal} == {1.01}
    assert [stack.name for stack in stacks if not stack.judged] == ["disk"]
    words = " ".join(str(stack.layer) for stack in stacks)
    for part in ("linear", "thin-pool", "snapshot", "integrity", "raid5", "raid1", "bcache"):
        assert part in words
    assert len(MODULES) == len(set(MODULES))
