# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests of others get new guests after one that breaks its guest."""

import json
from pathlib import Path

from bench.suites.results import FAILED, PASSED, Row

from lab import suites
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
