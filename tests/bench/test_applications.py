# SPDX-License-Identifier: LGPL-2.1-or-later
"""Databases beside competitors: their logs, the verdict on made-up runs, the table of the page."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.applications import kind, measure, page
from bench.applications.application import Served, db_bench_served, pgbench_served
from bench.applications.run import Moment, Run, explained, seen
from bench.applications.scenario import FLOOR, LATENCY, SHIPPED, Book, Goal, Scenario
from bench.applications.setups import Rates, policy
from bench.read import ScenarioError, load
from bench.stacks import StackSpec

STACK = StackSpec(
    name="stack",
    disk=({"names": ["s0"], "kind": "ssd"},),
    layer=({"kind": "ext4", "name": "files", "over": ["s0"]},),
)
PGBENCH = Scenario(
    name="pgbench",
    title="PostgreSQL",
    application="pgbench",
    stack=STACK,
    beside=("dd",),
    goal=(Goal("kept", min=0.9),),
    clients=4,
    floor=0.6,
    latency_ms=2.5,
    ramp_s=3,
    measure_s=5,
)
ALONE = Run("none", "", 0, Served(200.0, 10.0), Rates(4e6, 2e6))


def beside(scheduler: str, per_s: float, p99_ms: float = 20.0, **keys: object) -> Run:
    """A run beside dd."""
    run = Run(scheduler, "dd", 0, Served(per_s, p99_ms), Rates(2e6, 1e6), Rates(50e6, 0.0))
    return replace(run, **keys)


# ---- logs ----


@given(st.lists(st.tuples(st.integers(0, 9_999_999), st.integers(1, 10**6)), max_size=300))
def test_transactions_count_from_the_end_of_the_ramp(ends: list[tuple[int, int]]) -> None:
    """CLIENT NUMBER TIME_US SCRIPT END_S END_US, in any order; the ramp ends at second 1003."""
    lines = [
        f"0 {n} {latency_us} 0 {1000 + end_us // 10**6} {end_us % 10**6}"
        for n, (end_us, latency_us) in enumerate(ends)
    ]
    counted = [(end_us, latency_us) for end_us, latency_us in ends if end_us > 3 * 10**6]
    got = pgbench_served(lines, 1003.0000005)
    if not counted:
        assert got == Served(0.0, math.inf)
        return
    seconds = max(end_us for end_us, _ in counted) / 1e6 - 3
    assert got.per_s * seconds == pytest.approx(len(counted), rel=1e-3, abs=1e-3) or seconds < 1e-3
    slower = sum(latency_us > got.p99_ms * 1000 + 1e-6 for _, latency_us in counted)
    assert slower <= len(counted) / 100
    assert any(latency_us / 1e3 == got.p99_ms for _, latency_us in counted)


DB_BENCH = """\
DB path: [/tmp/rdb]
readrandomwriterandom :     140.532 micros/op 28216 ops/sec 2.028 seconds 57214 operations; ( ...)
Microseconds per read:
Count: 51515 Average: 72.2045  StdDev: 247.79
Min: 1  Median: 63.7721  Max: 24220
Percentiles: P50: 63.77 P75: 98.67 P99: 217.31 P99.9: 2325.37 P99.99: 6405.13
------------------------------------------------------
[       0,       1 ]      229   0.445%   0.445%

Microseconds per write:
Count: 5699 Average: 763.5038  StdDev: 1422.31
Min: 75  Median: 249.1598  Max: 11250
Percentiles: P50: 249.16 P75: 370.74 P99: 7659.67 P99.9: 9749.30 P99.99: 11250.00
"""


def test_output_of_db_bench() -> None:
    again = DB_BENCH.replace("28216", "30000").replace("217.31", "300.00")
    assert db_bench_served(DB_BENCH) == [Served(28216.0, 0.21731)]
    assert db_bench_served(DB_BENCH + again)[1] == Served(30000.0, 0.3)
    assert db_bench_served(DB_BENCH[: DB_BENCH.index("Min: 1 ")]) == []


# ---- counters ----


def test_rates_between_two_moments() -> None:
    """Of the database and of its competitor; the busiest leaf; the part of the CPU that idled."""
    begin = Moment(1.0, {"db": 100, "dd": 0}, {"db": 10, "dd": 5}, [0, 10**9], 50, 100)
    busy_ns = [10**9, 10**9 + 500_000_000]
    end = Moment(3.0, {"db": 300, "dd": 2000}, {"db": 10, "dd": 5}, busy_ns, 65, 160)
    run = seen("bfq", "dd", 2, Served(7.0, 8.0), begin, end, "")
    assert (run.database, run.competitor) == (Rates(100.0, 0.0), Rates(1000.0, 0.0))
    assert (run.disk_busy, run.cpu_idle) == (0.5, 0.25)
    assert end.total("dd") - begin.total("dd") == 2000
    assert seen("none", "", 0, Served(7.0, 8.0), begin, end, "").competitor == Rates(0.0, 0.0)


def test_a_policy_in_a_line() -> None:
    leaf = {"leaf": "/dev/s0", "share_needed": 0.28, "share_allotted": 0.3, "share_got": 0.1}
    promise = {
        "key": "ReadBandwidthMin", "value": 1000, "state": "limited", "cause": "too few requests",
        "got": 400, "gain": 1.0, "leaves": [{**leaf, "weight": 173}],
    }  # fmt: skip
    assert explained(promise) == (
        "ReadBandwidthMin 1000: limited (too few requests), got 400, gain 1.00; "
        "/dev/s0 needs 28%, has 30%, got 10% with weight 173"
    )


# ---- files ----


def test_the_shipped_file_has_every_database_on_every_stack() -> None:
    book = load(Book, SHIPPED)
    pairs = {(one.application, one.stack.name) for one in book.scenario}
    every = {(a, s) for a in ("pgbench", "db_bench") for s in ("stripe", "crypt-raid1")}
    assert pairs == every | {("pgbench", "crypt-direct")}
    for one in book.scenario:
        expected = {"flood"} if one.stack.name == "crypt-direct" else {"dd", "tar", "flood"}
        if one.application == "pgbench" and one.stack.name != "crypt-raid1":
            expected.add("bounded")
        assert expected == set(one.beside), one.name
    judged = [one for one in book.scenario if one.goal]
    assert {one.application for one in judged} == {"pgbench"}


SMALL = """
[stack.disk]
disk = { names = ["s0"], kind = "ssd" }
layer = [LAYER]

[scenario.one]
title = "One"
application = "pgbench"
stack = "disk"
beside = ["dd"]
clients = 1
floor = 0.5
latency_ms = 5
ramp_s = 1
measure_s = 2
MORE
"""
EXT4 = '{ kind = "ext4", name = "files", over = ["s0"] }'


def small(folder: Path, layer: str = EXT4, more: str = "") -> Path:
    file = folder / "a.toml"
    file.write_text(SMALL.replace("LAYER", layer).replace("MORE", more))
    return file


def test_a_small_file(tmp_path: Path) -> None:
    (one,) = load(Book, small(tmp_path)).scenario
    assert one.floor == 0.5 and one.stack.name == "disk" and one.rounds == 1


@pytest.mark.parametrize(
    ("layer", "more", "message"),
    [
        ("", "", "scenario one: stack disk: its last layer is no ext4"),
        (EXT4, 'goal = { metric = "kept", min = 1, beside = ["tar"] }', "goal: beside: no 'tar'"),
        (EXT4, "rounds = 0", "scenario one: rounds: 0 is not at least 1"),
        (EXT4, 'schedulers = ["cfq"]', "scenario one: schedulers: 'cfq' is none of none, bfq"),
    ],
)
def test_mistakes(tmp_path: Path, layer: str, more: str, message: str) -> None:
    with pytest.raises(ScenarioError) as error:
        load(Book, small(tmp_path, layer, more))
    assert message in str(error.value)


# ---- policies ----


def test_floors_are_parts_of_what_the_database_has_alone() -> None:
    words = policy(PGBENCH, FLOOR, "/dev/vg/lv", Rates(4e6, 2e6))
    assert words == [
        "ReadBandwidthMin=/dev/vg/lv 2400000",
        "WriteBandwidthMin=/dev/vg/lv 1200000",
    ]
    assert policy(PGBENCH, FLOOR, "/dev/vg/lv", Rates(0.0, 2e6)) == words[1:]
    assert policy(PGBENCH, LATENCY, "/dev/s0", Rates(1, 1)) == ["LatencyTarget=/dev/s0 2.5ms"]
    assert policy(PGBENCH, "bfq", "/dev/s0", Rates(1, 1)) == []


# ---- the verdict ----


@given(st.floats(0, 1000), st.floats(0.01, 1))
def test_kept_is_against_the_smaller_of_alone_and_promised(per_s: float, floor: float) -> None:
    got = measure.numbers(beside(FLOOR, per_s), ALONE, floor)
    assert got["kept"] == pytest.approx(per_s / min(200, floor * 200))
    assert got["retained"] == pytest.approx(per_s / 200)
    assert got["p99_ratio"] == 2


@pytest.mark.parametrize(("per_s", "met"), [(108.0, True), (107.0, False)])
def test_a_goal_is_for_its_scheduler(per_s: float, met: bool) -> None:
    runs = [beside("none", 60.0), beside(FLOOR, per_s), beside(LATENCY, per_s)]
    found = list(measure.results(PGBENCH, "dd", runs, ALONE))
    kept = {one.scheduler: one for one in found if one.metric == "kept"}
    assert kept.keys() == {"none", FLOOR}, "a latency target promises no transactions"
    assert kept[FLOOR].counts and kept[FLOOR].met is met
    assert not kept["none"].counts and kept["none"].value == pytest.approx(0.5)


def test_rounds_give_their_median() -> None:
    runs = [beside(FLOOR, per_s) for per_s in (50.0, 120.0, 110.0)]
    found = {one.metric: one for one in measure.results(PGBENCH, "dd", runs, ALONE)}
    assert found["per_s"].value == 110
    assert found["per_s"].detail["stdev_percent"] > 30


def test_an_explanation_is_printed_for_a_missed_goal(capsys: pytest.CaptureFixture) -> None:
    for per_s, shown in ((60.0, True), (120.0, False)):
        runs = [beside("none", 1.0), beside(FLOOR, per_s, explanation="because")]
        found = list(measure.results(PGBENCH, "dd", runs, ALONE))
        assert sum("explanation" in one.detail for one in found) == 1
        kind.show(found)
        assert ("because" in capsys.readouterr().out) is shown


def test_a_failed_round_fails_the_scheduler() -> None:
    runs = [beside(FLOOR, 200.0), beside(FLOOR, 200.0, why="no"), beside("bfq", 1.0, why="never")]
    mine, theirs = measure.results(PGBENCH, "dd", runs, ALONE)
    assert mine.counts and not mine.met and mine.detail["why"] == "no"
    assert not theirs.counts and theirs.detail["beside"] == "dd"


# ---- the page ----


def test_the_table() -> None:
    runs = [beside("none", 60.0), beside("bfq", 1.0, why="x"), beside(FLOOR, 100.0)]
    found = list(measure.alone_results(PGBENCH, ALONE))
    found += measure.results(PGBENCH, "dd", runs, ALONE)
    lines = page.table([one.as_object() for one in found], [PGBENCH]).splitlines()
    backup = page.COMPETITORS["dd"]
    about = "PostgreSQL: 200/s, P99 10 ms"
    assert lines[2:] == [
        f"| {about} | {backup} | {page.ROWS['kept']} | 0.5 | **failed** |  | **0.833** |  |",
        f"|  |  | {page.ROWS['retained']} | 0.3 | **failed** |  | 0.5 |  |",
        f"|  |  | {page.ROWS['p99_ratio']} | 2 | **failed** |  | 2 |  |",
        f"|  |  | {page.ROWS['competitor_mbps']} | 50 | **failed** |  | 50 |  |",
    ]
