# SPDX-License-Identifier: LGPL-2.1-or-later
"""The numbers of passed and failed tests of ./lab test."""

from pathlib import Path

import pytest

from lab import junit

MIXED = """<testsuites><testsuite>
  <testcase classname="a" name="good"/>
  <testcase classname="a" name="bad"><failure message="assert 1 == 2">line 7</failure></testcase>
  <testcase classname="a" name="broken"><error message="no fixture"/></testcase>
  <testcase classname="a" name="left out"><skipped message="not today"/></testcase>
</testsuite></testsuites>"""


def suite(*cases: str) -> str:
    return f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>"


def test_failures_errors_and_skips_all_fail(tmp_path: Path) -> None:
    (tmp_path / "x.xml").write_text(MIXED)
    results = junit.read(tmp_path / "x.xml")
    assert results.line() == "1 passed, 3 failed"
    assert "assert 1 == 2" in results.failed["a.bad"] and "line 7" in results.failed["a.bad"]


def test_failure_and_error_of_one_test_are_one(tmp_path: Path) -> None:
    twice = '<testcase name="t"><failure message="first"/></testcase>'
    again = '<testcase name="t"><error message="teardown"/></testcase>'
    (tmp_path / "x.xml").write_text(suite(twice, again))
    results = junit.read(tmp_path / "x.xml")
    assert results.line() == "0 passed, 1 failed"
    assert "first" in results.failed["t"] and "teardown" in results.failed["t"]


@pytest.mark.parametrize("content", [None, "", "<testsuites>", suite()])
def test_no_report_is_a_failure(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "vm.xml").write_text(content)
    results = junit.read_stage(tmp_path / "vm.xml", 0, tmp_path)
    assert results.line() == "0 passed, 1 failed"


def test_a_killed_program_is_reported_with_its_last_lines(tmp_path: Path) -> None:
    """Without a report, the log is all there is to find the cause."""
    log = tmp_path / "log"
    log.write_text("test_a PASSED\ntest_b FAILED\n")
    (text,) = junit.read_stage(tmp_path / "vm.xml", 137, log).failed.values()
    assert "no report" in text and "status 137" in text
    assert text.endswith("test_a PASSED\ntest_b FAILED")


def test_bad_status_with_a_clean_report_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "vm.xml").write_text(suite('<testcase name="t"/>'))
    assert junit.read_stage(tmp_path / "vm.xml", 3, tmp_path).line() == "1 passed, 1 failed"
    assert junit.read_stage(tmp_path / "vm.xml", 0, tmp_path).line() == "1 passed, 0 failed"


CTL = '<testcase classname="sutro" name="ctl"/>'
CORE = '<testcase classname="sutro" name="core"/>'
DIED = '<testcase classname="sutro" name="ctl"><failure message="timeout"/></testcase>'
INNER = suite(*(f'<testcase name="{name}"/>' for name in "abc"))


@pytest.mark.parametrize(
    ("outer", "inner", "status", "line"),
    [
        pytest.param(CTL + CORE, INNER, 0, "4 passed, 0 failed", id="tests of pytest count"),
        pytest.param(CTL, MIXED, 0, "1 passed, 3 failed", id="pytest let a skip pass"),
        pytest.param(DIED, INNER, 1, "3 passed, 1 failed", id="a clean report of a dead test"),
        pytest.param(None, None, 1, "0 passed, 1 failed", id="no test ran"),
    ],
)
def test_meson(tmp_path: Path, outer: str | None, inner: str, status: int, line: str) -> None:
    """The report of meson and that of pytest for the test ctl."""
    if outer:
        (tmp_path / "meson-logs").mkdir()
        (tmp_path / "meson-logs/testlog.junit.xml").write_text(suite(outer))
        (tmp_path / "ctl.xml").write_text(inner)
    assert junit.read_meson(tmp_path, status, tmp_path).line() == line
