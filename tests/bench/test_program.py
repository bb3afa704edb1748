# SPDX-License-Identifier: LGPL-2.1-or-later
"""The engine: the printed results, the JSON, and the exit status."""

import json
import math
from pathlib import Path

import pytest
from rig.result import Goal, Result, all_met, failed

from bench import program, show
from bench.demo import kind as demo
from bench.judge import summed_up, verdicts
from bench.promises.kind import KIND

FILE = """
[scenario.made-up]
title = "Made up"
stack = { name = "flat", disk = { names = ["s0"], kind = "ssd" } }
unit = [{ name = "db", floor = 0.5, job = { rw = "read", bs = "64k" } }]
"""
LEAST = Goal("worst_2s", min=0.95)


def outcome(value: float, scheduler: str = "sutro") -> Result:
    return Result(
        "made-up", scheduler, "worst_2s", value, LEAST, {"of": "db"}, scheduler == "sutro"
    )


@pytest.mark.parametrize(
    ("results", "status", "line"),
    [
        ([outcome(0.99)], 0, "1 of 1 goals met"),
        ([outcome(0.99), outcome(0.2, "bfq")], 0, "met     worst_2s db >= 0.95: sutro 0.99  bfq"),
        ([outcome(0.2), outcome(0.99, "bfq")], 1, "MISSED  worst_2s db >= 0.95"),
        ([outcome(math.nan)], 1, "sutro none"),
        ([outcome(math.inf)], 0, "sutro never"),
        ([outcome(0.99), failed("made-up", "sutro", "it broke")], 1, "FAILED  sutro: it broke"),
        ([outcome(0.99), failed("made-up", "bfq", "it broke", False)], 0, "1 of 1 goals met"),
        ([outcome(0.99, "bfq")], 3, "0 of 0 goals met"),
    ],
)  # fmt: skip
def test_status(tmp_path: Path, capsys, results, status: int, line: str) -> None:
    """0 only if sutro was judged and met all of it."""
    file, numbers = tmp_path / "p.toml", tmp_path / "p.json"
    file.write_text(FILE)
    kind = program.Kind(KIND.book, file, lambda book, options, say: iter([results]), KIND.show)
    assert program.main("promises", kind, ["--json", str(numbers)]) == status
    out = capsys.readouterr().out
    assert line in out and "made-up: Made up" in out
    objects = json.loads(numbers.read_text())
    assert [one["judged"] for one in objects] == [result.counts for result in results]
    assert all_met(results) == (status == 0)


def test_numbers_that_json_does_not_have() -> None:
    assert outcome(math.inf).as_object()["value"] is None
    assert outcome(math.nan).as_object()["value"] is None
    assert outcome(0.12345678).as_object()["value"] == 0.123457


def test_goals_against_another_scheduler() -> None:
    goals = (Goal("iops", min=2, against="bfq"), Goal("iops", min=1, against="kyber"), LEAST)
    found = [Result("s", "sutro", "iops", 30), Result("s", "bfq", "iops", 10)]
    (verdict,) = verdicts("s", goals, found)
    assert (verdict.metric, verdict.value, verdict.met) == ("iops_vs_bfq", 3, True)
    assert (verdict.detail["ours"], verdict.detail["theirs"]) == (30, 10)
    found[1] = Result("s", "bfq", "iops", 0)
    assert next(verdicts("s", goals, found)).value == math.inf


def test_a_median_and_its_spread() -> None:
    one = summed_up("case", "bfq", "iops", [9, 10, 11])
    assert (one.value, one.detail["stdev_percent"]) == (10, 10)
    assert summed_up("case", "bfq", "iops", [0]).detail["stdev_percent"] == 0


def test_a_table_has_columns(capsys) -> None:
    show.table(["who", "MB/s"], [["a", "1.5"], [], ["bcd", "10.25"]])
    assert capsys.readouterr().out == "  who   MB/s\n  a      1.5\n\n  bcd  10.25\n"


def test_the_table_of_the_demo(capsys) -> None:
    """A row for each unit; the first row also has the ratios and the numbers of the disks."""
    pair = {"pair": "a:b", "asked": 2.0}
    about = {"of": "a:b", "part": 0}
    found = [
        Result("s", "bfq", "mbps", 20, None,
               {"of": "a", "part": 0, "weight": 200, "time_share": 0.66, **pair}),
        Result("s", "bfq", "mbps", 10, None,
               {"of": "b", "part": 0, "weight": 100, "time_share": 0.34}),
        Result("s", "bfq", "bandwidth_ratio", 2, None, {**about, "at": "logical"}),
        Result("s", "bfq", "device_time_ratio", 1.9, None, {**about, "at": "all"}),
        Result("s", "bfq", "device_time_ratio", 1.8, None, {**about, "at": "hdd0"}),
        Result("s", "bfq", "completion_s", 3.5, None, {"of": "b"}),
        Result("s", "bfq", "disk_busy", 0.99), Result("s", "bfq", "cpu_idle", 0.5),
    ]  # fmt: skip
    demo.table(found)
    _, first, second = capsys.readouterr().out.splitlines()
    assert first.split() == [
        "bfq", "a", "200", "20.0", "0.660", "2.00", "2", "1.9", "1.8", "99%", "50%",
    ]  # fmt: skip
    assert second.split() == ["b", "100", "10.0", "0.340", "3.5"]
