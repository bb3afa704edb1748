# SPDX-License-Identifier: LGPL-2.1-or-later
"""Cost of a scheduler: files of scenarios and their mistakes, numbers of made-up windows."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.judge import verdicts
from bench.overhead.measure import METRICS, numbers
from bench.overhead.run import IOCOST_MODEL, Count, abba
from bench.overhead.scenario import SCHEDULERS, SHIPPED, Book, Scenario, Striped
from bench.read import load
from bench.test_read import read

# 1000 reads of 4 KiB, half of them merged, in 10 ms: 2 ms of other tasks, and 1 ms idle.
WINDOW = Count(
    at_ns=10_000_000, busy_ns=9_000_000, others_ns=2_000_000, user_us=2000, system_us=4000,
    switches=50, reads=500, writes=0, read_sectors=8000, write_sectors=0,
)  # fmt: skip


def test_what_a_file_means(tmp_path: Path) -> None:
    book = read(tmp_path, "overhead")
    one, two, eight = book.runs()[0].cases()
    assert one.of.schedulers == ("mq-deadline", "sutro")
    assert (one.name, two.name) == ("one/reads/1", "one/reads/2")
    assert one.of.disk == {"irqmode": 0}
    assert [case.group_job()["jobs"] for case in (one, two, eight)] == [4, 2, 1]
    assert [len(case.goal) for case in (one, two, eight)] == [1, 1, 2]
    assert [str(goal) for goal in eight.goal] == ["<= 1 x mq-deadline", ">= 2 x bfq"]


def test_a_part_for_a_machine(tmp_path: Path) -> None:
    book = read(tmp_path, "overhead")
    assert book.on("count").runs() and not book.on("speed").runs()


def test_the_shipped_file_has_the_required_goals() -> None:
    book = load(Book, SHIPPED)
    assert all(set(one.schedulers) == set(SCHEDULERS) for one in book.scenario)
    goals = {(c.name, g.metric, str(g)) for s in book.runs() for c in s.cases() for g in c.goal}
    jobs = ("write", "read", "randwrite", "randread", "readwrite", "randrw")
    for name in [f"six/{job}/1" for job in jobs]:
        assert (name, "instructions", "<= 1 x mq-deadline") in goals
    for name in ("one/plugged/1", "one/unplugged/1"):
        assert (name, "time_us", "<= 1 x mq-deadline") in goals
    assert ("groups/randread/16", "instructions", "<= 0.5 x bfq") in goals
    assert ("two-cpus/randread/1", "iops", ">= 0.95 x kyber") in goals
    assert ("two-cpus/randread/16", "iops", ">= 2 x bfq") in goals
    assert ("striped-hdd/write-direct", "mbps", ">= 0.97 x none") in goals
    assert ("striped-ssd/read", "busy", ">= 0.97 x none") in goals
    for name in [*(f"six-series/{job}/1" for job in jobs), "one-series/unplugged/1"]:
        assert (name, "instructions", "<= 1.015 x none") in goals
        assert (name, "instructions", "<= 1 x iocost") in goals
    assert ("room-series/randread/16", "instructions", "<= 1.04 x none") in goals
    assert all(one.rounds == 5 for one in book.runs() if isinstance(one, Scenario))
    assert all(one.count == 2048 for one in book.runs() if isinstance(one, Striped))


def test_the_order_is_there_and_back() -> None:
    assert list(abba("ABC", 3)) == list("ABCCBAABC")


def test_the_model_of_iocost_has_all_six_numbers() -> None:
    keys = {word.split("=")[0] for word in IOCOST_MODEL.split()} - {"ctrl", "model"}
    assert keys == {f"{way}{what}" for way in "rw" for what in ("bps", "seqiops", "randiops")}


def test_numbers_of_a_window() -> None:
    got = {name: of(WINDOW) for name, of in METRICS.items()}
    # 7 ms of CPU at 2 ns an instruction, and 8 ms on the clock, for 1000 I/Os.
    assert got["instructions"] == 3500
    assert got["time_us"] == 8
    assert got["iops"] == 125000
    assert got["mbps_read"] == pytest.approx(512)
    assert got["mbps_write"] == 0
    assert (got["usr"], got["sys"]) == (0.25, 0.5)
    assert (got["switches"], got["merged"]) == (50, 0.5)
    assert got["idle"] == pytest.approx(0.1)


def test_counters_only_rise_between_two_looks() -> None:
    assert (WINDOW - WINDOW).busy_ns == 0
    assert replace(WINDOW, reads=700) - WINDOW == replace(WINDOW - WINDOW, reads=200)


@given(st.floats(0.2, 5), st.integers(1, 9))
def test_the_verdict_is_on_medians(factor: float, rounds: int) -> None:
    case = next(load(Book, SHIPPED).scenario[0].cases())
    ours = replace(WINDOW, busy_ns=2_000_000 + round(7_000_000 * factor))
    wild = replace(WINDOW, busy_ns=900_000_000)
    # One wild window among three or more changes nothing.
    windows = {
        "mq-deadline": [WINDOW] * rounds,
        "sutro": [*[ours] * rounds, *([wild] if rounds > 1 else [])],
    }
    (verdict,) = verdicts(case.name, case.goal, list(numbers(case, windows)))
    assert verdict.value == pytest.approx(factor, rel=1e-3)
    assert verdict.met == (verdict.value <= 1)
    assert verdict.as_object()["judged"]


@pytest.mark.parametrize("machine", ["count", "count-series"])
def test_what_none_does_not_need(machine: str) -> None:
    case = next(next(s for s in load(Book, SHIPPED).scenario if s.machine == machine).cases())
    more = replace(WINDOW, busy_ns=11_000_000)
    found = list(numbers(case, {"none": [WINDOW] * 3, "bfq": [more] * 3}))
    added = [result for result in found if result.metric == "added"]
    assert [(result.scheduler, result.value) for result in added] == [("bfq", 1000)]


def test_what_was_not_run_is_not_judged() -> None:
    case = next(load(Book, SHIPPED).scenario[0].cases())
    assert not list(verdicts(case.name, case.goal, list(numbers(case, {"sutro": [WINDOW]}))))


def test_a_window_without_io_is_an_error() -> None:
    case = next(load(Book, SHIPPED).scenario[0].cases())
    still = replace(WINDOW, read_sectors=0)
    with pytest.raises(RuntimeError, match="six/write/1: bfq: no I/O within 60 ms"):
        list(numbers(case, {"bfq": [still]}))


@pytest.mark.parametrize("machine", ["speed", "speed-series"])
def test_two_cpus_have_no_instructions(machine: str) -> None:
    case = next(next(s for s in load(Book, SHIPPED).scenario if s.machine == machine).cases())
    found = {result.metric: result.value for result in numbers(case, {"none": [WINDOW]})}
    assert "instructions" not in found
    assert found["iops"] == 100000, "others may have been on the other CPU"
