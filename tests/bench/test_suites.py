# SPDX-License-Identifier: LGPL-2.1-or-later
"""Two schedulers are compared by tests of others, on made-up results."""

import json
import math
from pathlib import Path

import pytest
from rig.result import all_met, write_json

from bench.suites import results
from bench.suites.results import FAILED, NOT_RUN, PASSED, Case, Row, cases, judged

# ---- judging ----


def row(status: str | None) -> Row | None:
    return Row("a/001", "nodev", status, f"why {status}") if status else None


VERDICTS = {
    (PASSED, PASSED): PASSED, (PASSED, FAILED): "new failure", (PASSED, NOT_RUN): "new failure",
    (PASSED, None): "new failure", (FAILED, PASSED): "failed before",
    (FAILED, FAILED): "failed before", (FAILED, NOT_RUN): "failed before",
    (NOT_RUN, NOT_RUN): NOT_RUN, (NOT_RUN, FAILED): "new failure", (NOT_RUN, PASSED): PASSED,
    (None, FAILED): "new failure",
}  # fmt: skip


@pytest.mark.parametrize("pair", VERDICTS, ids=lambda pair: f"{pair[0]}-{pair[1]}")
def test_what_counts_as_new(pair: tuple[str | None, str | None]) -> None:
    """The verdict, the goal of the JSON and the table agree."""
    case = Case("a/001", row(pair[0]), row(pair[1]))
    assert case.verdict == VERDICTS[pair]
    before, after = case.results()
    assert before.goal is None and before.scheduler == "mq-deadline"
    assert (after.met is False) == case.is_new_failure == ("NEW" in case.text())
    assert after.scenario == "a/001" and after.metric == "passed"
    assert math.isnan(after.value) == (pair[1] in (None, NOT_RUN))


def test_sides_are_matched_by_name() -> None:
    """Also where one scheduler did not get to all disks of a test."""
    before = [Row("a/001", "sda", PASSED), Row("a/001", "model", PASSED)]
    after = [Row("a/001", "model", PASSED), Row("a/001", "", FAILED, "did not end")]
    found = cases(before, after)
    assert [case.name for case in found] == ["a/001", "a/001 model", "a/001 sda"]
    assert [case.verdict for case in found] == ["new failure", PASSED, "new failure"]
    assert results.summary(found) == "1 passed under both, 0 not run, 2 new failures"


def test_the_last_line() -> None:
    pairs = [(PASSED, PASSED), (NOT_RUN, NOT_RUN), (FAILED, FAILED), (PASSED, FAILED)]
    found = [Case("a", row(one), row(two)) for one, two in pairs]
    printed = "1 passed under both, 1 not run, 1 failed under mq-deadline, 1 new failure"
    assert results.summary(found) == printed


def test_a_complaint_is_new_unless_the_same_test_provoked_it() -> None:
    """Times, numbers of processes and CPUs, and addresses do not make it another."""
    line = "[   {}] WARNING: CPU: {} PID: {} at block/blk-mq.c:123 blk_mq+0x1{}/0x20 [sutro]"
    before = {"block/005": [line.format("12.5", 0, 77, 0)]}
    after = {"block/005": [line.format("99.1", 1, 1234, 5)]}
    assert results.new_complaints(before, after) == []
    assert len(results.new_complaints({}, after)) == 1
    assert len(results.new_complaints({"block/006": before["block/005"]}, after)) == 1
    other = {"block/005": ["[   12.5] BUG: kernel NULL pointer dereference, address: 08"]}
    assert results.new_complaints(before, other) == [f"block/005: {other['block/005'][0]}"]


def test_the_json_has_it_all(tmp_path: Path) -> None:
    good = Case("a/001", row(PASSED), row(PASSED))
    assert all_met(judged([good], []))
    numbers = judged([good, Case("a/002", row(NOT_RUN), row(NOT_RUN))], ["block/005: BUG: x"])
    assert not all_met(numbers), "the kernel complained"
    write_json(numbers, tmp_path / "a.json")
    objects = json.loads((tmp_path / "a.json").read_text())
    assert objects[1] == {
        "scenario": "a/001", "scheduler": "sutro", "metric": "passed", "value": 1.0,
        "goal": ">= 1", "met": True, "judged": True, "status": PASSED, "reason": "why passed",
    }  # fmt: skip
    assert objects[3]["value"] is None and objects[3]["reason"] == "why not run"
    assert objects[-1]["metric"] == "complaints" and objects[-1]["lines"] == ["block/005: BUG: x"]
