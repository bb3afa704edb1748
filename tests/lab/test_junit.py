# SPDX-License-Identifier: LGPL-2.1-or-later
"""What counts as passed: the sums of ./lab test."""

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


@pytest.fixture
def build(tmp_path: Path) -> Path:
    """A build folder of meson with nothing in it yet."""
    (tmp_path / "meson-logs").mkdir()
    (tmp_path / "tests").mkdir()
    return tmp_path


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


def test_bad_status_with_a_clean_report_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "vm.xml").write_text(suite('<testcase name="t"/>'))
    assert junit.read_stage(tmp_path / "vm.xml", 3, tmp_path).line() == "1 passed, 1 failed"
    assert junit.read_stage(tmp_path / "vm.xml", 0, tmp_path).line() == "1 passed, 0 failed"


def test_meson_counts_what_pytest_counted(build: Path) -> None:
    outer = (
        '<testcase classname="sutro" name="ctl"/>',
        '<testcase classname="sutro" name="core"/>',
    )
    (build / "meson-logs" / "testlog.junit.xml").write_text(suite(*outer))
    (build / "tests" / "ctl.xml").write_text(suite(*(f'<testcase name="{n}"/>' for n in "abc")))
    assert junit.read_meson(build, 0, build).line() == "4 passed, 0 failed"


def test_meson_sees_a_skip_that_pytest_let_pass(build: Path) -> None:
    outer = '<testcase classname="sutro" name="ctl"/>'
    (build / "meson-logs" / "testlog.junit.xml").write_text(suite(outer))
    (build / "tests" / "ctl.xml").write_text(MIXED)
    assert junit.read_meson(build, 0, build).line() == "1 passed, 3 failed"


def test_meson_test_that_died_fails_though_its_report_is_clean(build: Path) -> None:
    outer = '<testcase classname="sutro" name="ctl"><failure message="timeout"/></testcase>'
    (build / "meson-logs" / "testlog.junit.xml").write_text(suite(outer))
    (build / "tests" / "ctl.xml").write_text(suite('<testcase name="a"/>'))
    assert junit.read_meson(build, 1, build).line() == "1 passed, 1 failed"


def test_meson_that_did_not_get_to_testing_fails(build: Path) -> None:
    assert junit.read_meson(build, 1, build).line() == "0 passed, 1 failed"
