# SPDX-License-Identifier: LGPL-2.1-or-later
"""The page of results: selection, rounding, provenance, and newer runs."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rig.result import Goal, Result, failed

from bench import report
from bench.report import Run

OLD = Run("./lab bench fairness", "aaaa", "2026-01-01", "6.12", [], published=True)
NEW = Run("./lab bench fairness", "bbbb", "2026-02-02T10:00:00Z", "6.12", [])
PAGE = """
intro = "Two runs."
[[section]]
title = "Shares"
command = ["./lab bench fairness"]
bench = "fairness"
conclusion = "The ratio is {ratio}."
[section.figure]
ratio = { scenario = "hdd", metric = "ratio", scheduler = "sutro" }
[[section.table]]
title = ""
column = [
  { head = "goal", scheduler = "sutro", goal = true },
  { head = "Sutro", scheduler = "sutro" },
]
row = [
  { head = "ratio: hdd; ssd", metric = "ratio", scenario = ["hdd", "ssd"] },
  { head = "error", metric = "error", percent = true },
]
"""


def result(scenario: str, metric: str, value: float, goal: Goal | None = None) -> dict:
    return Result(scenario, "sutro", metric, value, goal).as_object()


def page(folder: Path, *runs: Run, text: str = PAGE) -> list[str]:
    (folder / "page.toml").write_text(text)
    report.write(report.merged(runs), folder / "fairness.json")
    return report.render(folder).splitlines()


def test_a_page_of_one_run(tmp_path: Path) -> None:
    goal, error = Goal("ratio", 1.98, 2.02), Goal("error", max=0.02)
    found = [result("hdd", "ratio", 1.99, goal), result("ssd", "ratio", 2.5, goal)]
    found.append(result("ssd", "error", 0.0213, error))
    assert page(tmp_path, replace(OLD, results=found))[5:] == [
        "",
        "## Shares",
        "",
        "    ./lab bench fairness",
        "",
        "Published with commit aaaa on 2026-01-01, Linux 6.12.",
        "",
        "The ratio is 1.99.",
        "",
        "|  | goal | Sutro |",
        "| --- | --- | --- |",
        "| ratio: hdd; ssd | 1.98 to 2.02 | 1.99; **2.5** |",
        "| error | at most 2 % | **2.13** % |",
    ]


def test_a_newer_run_replaces_its_own_figures(tmp_path: Path) -> None:
    """Rows of two runs have a column with the commit of each."""
    old = replace(OLD, results=[result("hdd", "ratio", 1), result("hdd", "error", 0.01)])
    new = replace(NEW, results=[result("hdd", "ratio", 2)])
    lines = page(tmp_path, new, old)
    assert "The ratio is 2." in lines
    assert lines[-3:] == [
        "| --- | --- | --- | --- |",
        "| ratio: hdd; ssd |  | 2 | bbbb |",
        "| error |  | 1 % | aaaa |",
    ]
    assert [run.commit for run in report.read(tmp_path / "fairness.json")] == ["aaaa", "bbbb"]


def test_a_run_without_a_figure_of_its_own_leaves(tmp_path: Path) -> None:
    old, new = (replace(run, results=[result("hdd", "ratio", 1)]) for run in (OLD, NEW))
    assert report.merged([old, new]) == [new]
    other = replace(old, kernel="7.2.1")
    assert len(report.merged([other, new])) == 2, "another kernel is another figure"


def test_a_run_is_read_as_it_was_written(tmp_path: Path) -> None:
    run = replace(OLD, results=[result("hdd", "ratio", 1.5), result("ssd", "ratio", float("inf"))])
    report.write([run, replace(NEW, results=run.results)], tmp_path / "a.json")
    assert report.read(tmp_path / "a.json") == [run, replace(NEW, results=run.results)]
    json.loads((tmp_path / "a.json").read_text())
    assert report.read(tmp_path / "none.json") == []


def test_a_failed_run_and_a_time_that_never_came() -> None:
    failed = {"why": "x", "value": 0, "goal": ">= 1", "judged": True, "met": False}
    assert report._value(failed, {}) == "**failed**"
    never = result("hdd", "hold_s", float("inf"), Goal("hold_s", max=3))
    assert report._value(never, {"unit": "s"}) == "**never**"


def test_a_figure_that_no_result_has(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Shares: no result has"):
        page(tmp_path, replace(OLD, results=[result("ssd", "ratio", 1)]))


@pytest.mark.parametrize(("pick", "number"), [("lowest", "0.1"), ("highest", "0.9")])
def test_a_pick_is_of_all_runs(tmp_path: Path, pick: str, number: str) -> None:
    """A run of some scenarios replaces the older figures of these, and the others still count."""
    old = replace(OLD, results=[result(name, "ratio", 0.9) for name in ("a", "b")])
    new = replace(NEW, results=[result("a", "ratio", 0.1)])
    text = PAGE.replace('scenario = "hdd", metric = "ratio"', f'metric = "ratio", pick = "{pick}"')
    assert f"The ratio is {number}." in page(tmp_path, old, new, text=text)


@pytest.mark.parametrize(("pick", "number"), [("lowest", "0.2"), ("highest", "0.9")])
def test_a_pick_of_some_scenarios(tmp_path: Path, pick: str, number: str) -> None:
    values = {"a": 0.9, "b": 0.2, "c": 0.1}
    run = replace(OLD, results=[result(name, "ratio", value) for name, value in values.items()])
    some = f'scenario = ["a", "b"], metric = "ratio", pick = "{pick}"'
    text = PAGE.replace('scenario = "hdd", metric = "ratio"', some)
    assert f"The ratio is {number}." in page(tmp_path, run, text=text)


@pytest.mark.parametrize(("pick", "number"), [("number", 3), ("missed", 1)])
def test_a_count_is_of_all_that_a_figure_selects(tmp_path: Path, pick: str, number: int) -> None:
    goal = Goal("ratio", min=0.5)
    found = [result(name, "ratio", value, goal) for name, value in (("a", 0.9), ("b", 0.4))]
    run = replace(OLD, results=[*found, result("c", "ratio", 0.1)])
    text = PAGE.replace('scenario = "hdd", metric = "ratio"', f'metric = "ratio", pick = "{pick}"')
    assert f"The ratio is {number}." in page(tmp_path, run, text=text)


FAILURE = failed("hdd", "sutro", "the disk is full").as_object()


def test_a_failure_replaces_older_figures_of_its_scenario(tmp_path: Path) -> None:
    figures = [result("hdd", "ratio", 1), result("ssd", "ratio", 2)]
    old, new = replace(OLD, results=figures), replace(NEW, results=[FAILURE])
    assert report.merged([old, new]) == [replace(OLD, results=figures[1:]), new]


def test_newer_figures_replace_a_failure() -> None:
    new = replace(NEW, results=[result("hdd", "ratio", 1)])
    assert report.merged([replace(OLD, results=[FAILURE]), new]) == [new]


@given(st.floats(1e-4, 999), st.floats(1e-4, 999))
def test_a_rounded_number_is_on_the_side_of_the_value(value: float, bound: float) -> None:
    """Six digits are enough for figures that JSON has; nearer ones are one number to a reader."""
    bound = float(f"{bound:.5g}")
    text = report.number(value, f">= {bound}", {})
    if abs(value / bound - 1) > 1e-5:
        assert (float(text) >= bound) == (value >= bound)
    assert float(text) == pytest.approx(value, rel=5e-3)
