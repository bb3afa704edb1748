# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests of others get new guests after one that breaks its guest; results of a machine are read."""

import json
from pathlib import Path

import pytest
from bench.suites.results import FAILED, PASSED, Row

from lab import suites, umlsuites
from lab.progress import LabError
from lab.suites import Found

BUG = "[   12.500000] BUG: kernel NULL pointer dereference, address: 08"


def test_each_test_has_its_turn_once() -> None:
    guests: list[list[str]] = []

    def breaks_at_c(left: list[str], found: Found) -> int:
        guests.append(left)
        done = left.index("c") + 1 if "c" in left else len(left)
        found.rows += [Row(name, "", FAILED if name == "c" else PASSED) for name in left[:done]]
        return done

    found = suites.under("sutro", list("abcde"), breaks_at_c)
    assert guests == [list("abcde"), list("de")]
    assert [row.test for row in found.rows] == list("abcde")


def test_a_complaint_is_that_of_the_first_test_with_it() -> None:
    found = Found()
    for test in ("a", "b"):
        found.complained(test, ["[    1.000000] fine", BUG])
    assert found.complaints == {"a": [BUG]}


def test_the_comparison_fails_without_a_test_that_passes(tmp_path: Path) -> None:
    good, bad = Found([Row("a", "", PASSED)]), Found([Row("a", "", FAILED)])
    assert suites.compared(good, good, tmp_path / "a.json") == 0
    assert json.loads((tmp_path / "a.json").read_text())[0]["scenario"] == "a"
    for before, after in ((good, bad), (bad, bad), (Found(), Found())):
        assert suites.compared(before, after, None) == 1
    assert suites.compared(good, Found(good.rows, {"a": [BUG]}), None) == 1


# ---- what a machine leaves ----


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a machine in which generic/002 was the last test."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out/check.log").write_text("generic/001        4s\ngeneric/002      ")
    lines = ["[    1.000000] Linux version 6.12", "[    9.000000] run fstests generic/001 at 2026"]
    lines += ["[   11.000000] run fstests generic/002 at 2026", BUG, "[   13.000000] Rebooting"]
    (tmp_path / "console.log").write_text("\n".join(lines) + "\n")
    return tmp_path


@pytest.fixture
def suite(folder: Path) -> umlsuites.Suite:
    """A suite of three tests."""
    copy = folder / "copy"
    for part in (
        "check",
        "common/rc",
        "configure.ac",
        *(f"tests/generic/00{n}" for n in (1, 2, 3)),
    ):
        (copy / part).parent.mkdir(parents=True, exist_ok=True)
        (copy / part).write_text("_begin_fstest quick\n")
    return umlsuites.of_xfstests(copy, "ext4", ())


def test_a_broken_machine(folder: Path, suite: umlsuites.Suite) -> None:
    found, wanted = Found(), list(suite.tests)
    assert umlsuites.read(suite, folder, wanted, "the kernel did not survive it", found) == 2
    assert [row.status for row in found.rows] == [PASSED, FAILED]
    assert found.rows[1].reason == "the kernel did not survive it"
    assert found.complaints == {"generic/002": [BUG]}


def test_a_machine_that_ended(folder: Path, suite: umlsuites.Suite) -> None:
    with open(folder / "out/check.log", "a") as log:
        log.write(" 5s\ngeneric/003       [not run] no reflinks\nRan: generic/001\n")
    found = Found()
    assert umlsuites.read(suite, folder, list(suite.tests), "", found) == 3
    assert [row.test for row in found.rows] == ["generic/001", "generic/002", "generic/003"]


@pytest.mark.parametrize("gone", ["", "the kernel did not survive it"])
def test_a_machine_that_ran_no_test(folder: Path, suite: umlsuites.Suite, gone: str) -> None:
    """Its program failed before, and no other machine would do better."""
    (folder / "out/check.log").write_text("check: failed to mkfs $TEST_DEV\n")
    with pytest.raises(LabError, match="failed to mkfs"):
        umlsuites.read(suite, folder, list(suite.tests), gone, Found())


def test_a_mistaken_folder_or_name_is_an_error(suite: umlsuites.Suite) -> None:
    for copy, names in ((suite.copy / "tests", ()), (suite.copy, ["generic/009"])):
        with pytest.raises(LabError, match=str(copy)):
            umlsuites.of_xfstests(copy, "ext4", names)
        with pytest.raises(LabError, match=str(copy)):
            umlsuites.of_ltp(copy, names)
