# SPDX-License-Identifier: LGPL-2.1-or-later
"""How what a scheduler costs grows: files and their mistakes, growth of numbers, the load."""

import subprocess
from dataclasses import replace
from math import log2
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.judge import summed_up
from bench.read import load
from bench.scale.measure import (
    bytes_of_disk,
    bytes_per_group,
    case_numbers,
    cost_ratio,
    per_doubling,
    verdicts,
)
from bench.scale.plot import far_apart
from bench.scale.run import Windows, per_cpu_bytes, slab_bytes
from bench.scale.scenario import SHIPPED, Book, Scenario
from bench.test_overhead import WINDOW
from bench.test_read import GOOD, read

ROOT = Path(__file__).resolve().parents[2]
CROWD = ROOT / "tests/bench/scale/crowd.c"


def scenario(folder: Path, text: str = "") -> Scenario:
    return read(folder, "scale", text).scenario[0]


def test_what_a_file_means(tmp_path: Path) -> None:
    one = scenario(tmp_path)
    assert [(c.name, c.idle, c.busy, c.queues) for c in one.cases()] == [
        ("one/1", 1, 1, 1), ("one/10", 10, 1, 1), ("one/100", 100, 1, 1),
    ]  # fmt: skip
    text = (
        GOOD["scale"]
        .replace('axis = "idle"', 'axis = "queues"\nidle = 7')
        .replace("10, 100", "2, 8")
    )
    grows = scenario(tmp_path, text)
    assert [(c.idle, c.queues) for c in grows.cases()] == [(7, 1), (7, 2), (7, 8)]


def test_the_shipped_file_has_the_required_goals() -> None:
    book = load(Book, SHIPPED)
    by_name = {one.name: one for one in book.scenario}
    for name in ("idle-alone", "idle-16"):
        one = by_name[name]
        assert one.axis == "idle" and one.sizes == (1, 10, 100, 1000, 10000)
        goals = {(goal.metric, str(goal)) for goal in one.goal}
        assert goals == {("cost_ratio", "<= 1.02"), ("bytes_per_group", "<= 768")}
    assert by_name["busy"].sizes == (1, 10, 100, 1000, 10000)
    assert [goal.metric for goal in by_name["busy"].goal] == ["per_doubling"]
    for name in ("queues-1", "queues-16"):
        assert by_name[name].sizes == (1, 2, 4, 8) and by_name[name].machine == "speed"


@given(st.floats(1000, 50000), st.floats(0, 500))
def test_log_n_adds_the_same_with_each_doubling(base: float, each: float) -> None:
    costs = {n: base + each * log2(n) for n in (1, 10, 100, 1000)}
    assert per_doubling({"instructions": costs}) == pytest.approx(each / base, abs=1e-9)


@given(st.floats(1000, 30000), st.floats(2, 50))
def test_a_walk_over_all_groups_does_not_pass(base: float, each: float) -> None:
    costs = {n: base + each * n for n in (1, 10, 100, 1000, 10000)}
    assert per_doubling({"instructions": costs}) > 0.02


def test_the_step_from_one_to_several_is_left_out() -> None:
    assert per_doubling({"instructions": {1: 1000.0, 10: 2000.0, 100: 2000.0}}) == 0
    assert per_doubling({"instructions": {1: 1000.0, 2: 1100.0}}) == pytest.approx(0.1)


def test_a_slope_and_what_is_left() -> None:
    curves = {"instructions": {1: 10000.0, 100: 10100.0}, "bytes": {1: 31000.0, 100: 130000.0}}
    assert cost_ratio(curves) == pytest.approx(1.01)
    assert bytes_per_group(curves) == 1000
    assert bytes_of_disk(curves) == 30000


SLABINFO = """slabinfo - version: 2.1
# name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab> : tunables
kmalloc-1k           10     16   1024   16    4 : tunables    0    0    0 : slabdata 1 1 0
kmalloc-8           100    512      8  512    1 : tunables    0    0    0 : slabdata 1 1 0
"""


@given(st.lists(st.integers(-(1 << 40), 1 << 40), min_size=1, max_size=5))
def test_spread_is_no_less_than_nothing(memory: list[int]) -> None:
    """Also where there is less memory than under none, by chance."""
    assert summed_up("idle/1", "sutro", "bytes", memory).detail["stdev_percent"] >= 0


def test_memory_is_that_of_objects_in_use() -> None:
    assert slab_bytes(SLABINFO) == 10 * 1024 + 100 * 8
    assert per_cpu_bytes("Slab: 1 kB\nPercpu:   24 kB\n") == 24 * 1024


@given(st.integers(100, 4000), st.floats(0.9, 1.2))
def test_verdicts_are_on_growth(tmp_path_factory, each: int, factor: float) -> None:
    one = scenario(tmp_path_factory.mktemp("s"))
    found = []
    for case in one.cases():
        grown = factor if case.size == 100 else 1
        busy_ns = 2_000_000 + round(7_000_000 * grown)
        windows = {
            "none": Windows([WINDOW] * 3, [5_000_000] * 3),
            "sutro": Windows([replace(WINDOW, busy_ns=busy_ns)] * 3,
                             [5_040_000 + each * case.size] * 3),
        }  # fmt: skip
        found += case_numbers(case, windows)
    judged = {r.metric: r for r in verdicts(one, found) if r.goal}
    assert judged["cost_ratio"].value == pytest.approx(factor, rel=1e-3)
    assert judged["cost_ratio"].met == (judged["cost_ratio"].value <= 1.02)
    assert judged["bytes_per_group"].value == pytest.approx(each)
    assert judged["bytes_per_group"].met == (each <= 1024)
    stated = {r.metric: r.value for r in verdicts(one, found) if r.scheduler == "sutro"}
    assert stated["bytes_of_disk"] == pytest.approx(40_000)


def test_one_size_shows_no_growth(tmp_path: Path) -> None:
    one = scenario(tmp_path)
    case = next(one.cases())
    assert not list(verdicts(one, list(case_numbers(case, {"sutro": Windows([WINDOW], [1])}))))


@pytest.fixture(scope="module")
def crowd(tmp_path_factory) -> Path:
    program = tmp_path_factory.mktemp("crowd") / "crowd"
    command = ["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-o", str(program), str(CROWD)]
    subprocess.run(command, check=True)
    return program


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], "usage: crowd DISK TASKS"),
        (["/nowhere", "1"], "/nowhere"),
        (["/dev/null", "1"], "null"),
    ],
)
def test_the_load_names_mistakes(crowd: Path, words: list[str], expected: str) -> None:
    done = subprocess.run(
        [str(crowd), *words], input="", capture_output=True, text=True, check=False
    )
    assert done.returncode in (1, 2) and expected in done.stderr


@pytest.mark.parametrize(
    ("values", "far"),
    [([0, 0], False), ([-4, 80], False), ([0, 80], False), ([5, 50], False), ([5, 51], True)],
)
def test_what_needs_a_logarithmic_axis(values: list[float], far: bool) -> None:
    """Memory may be nothing, or less than under none: that has no logarithm."""
    assert far_apart(values) == far
