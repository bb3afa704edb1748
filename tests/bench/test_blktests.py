# SPDX-License-Identifier: LGPL-2.1-or-later
"""Results of blktests are read, and two schedulers compared, on made-up files and output."""

import json
import math
import stat
from pathlib import Path

import pytest
from rig.result import all_met, write_json

from bench.blktests import clone, results
from bench.blktests.results import FAILED, NOT_RUN, PASSED, Case, Row, cases, from_object, judged

PASS = "status\tpass\ndate\t2026-01-01 00:00:00\nruntime\t10.25s\nexit_status\t0\nread iops\t5\n"
FAIL = "status\tfail\nreason\toutput\nruntime\t0.5s\n"
SKIP = "status\tnot run\ndescription\tsay why\n"
OUTPUT = """\
block/005 => model (switch schedulers while doing IO)
    runtime    10.1s  ...
block/005 => model (switch schedulers while doing IO)        [passed]
    runtime    10.1s  ...  10.25s
block/005 => sda (switch schedulers while doing IO)
block/005 => sda (switch schedulers while doing IO)          [failed]
    runtime            ...  0.5s
    --- tests/block/005.out
    +++ /results/sda/block/005.out.bad
    -Test complete
"""


def left(folder: Path, **files: str) -> Path:
    """A results folder with files of block/005, by place."""
    for place, text in files.items():
        (folder / place / "block").mkdir(parents=True)
        (folder / place / "block/005").write_text(text)
        (folder / place / "block/005.full").write_text("status\tpass\n")
    return folder


# ---- reading ----


def test_a_row_for_each_place(tmp_path: Path) -> None:
    model, sda = results.rows("block/005", left(tmp_path, model=PASS, sda=FAIL), OUTPUT)
    assert model == Row("block/005", "model", PASSED, "", 10.25)
    assert (sda.status, sda.reason, sda.seconds) == (FAILED, "output", 0.5)
    assert sda.excerpt[0].startswith("---") and sda.excerpt[-1] == "-Test complete"
    assert [model.name, sda.name] == ["block/005 model", "block/005 sda"]
    assert from_object(json.loads(json.dumps(sda.as_object()))) == sda


def test_variants_have_names() -> None:
    places = {"nodev": "t/001", "nodev_sdebug": "t/001 sdebug", "sda_zoned": "t/001 sda_zoned"}
    for place, name in places.items():
        assert Row("t/001", place, PASSED).name == name
    assert Row("t/001", "", NOT_RUN).name == "t/001"


def test_why_not_is_on_standard_output(tmp_path: Path) -> None:
    """Each reason once, and that of its own disk."""
    printed = """\
block/005 => model (what)                                    [not run]
    /dev/model is none
block/005 => sda (what)                                      [not run]
    runtime    ...  0.1s
    command setpci is not available
    command setpci is not available
    sda is none
"""
    model, sda = results.rows("block/005", left(tmp_path, model=SKIP, sda=SKIP), printed)
    assert (model.status, model.reason) == (NOT_RUN, "/dev/model is none")
    assert sda.reason == "command setpci is not available; sda is none" and not sda.excerpt


def test_the_reason_of_a_variant(tmp_path: Path) -> None:
    """As the disk that a test was given, it is at its head."""
    printed = """\
block/005 (kind=a b) (what, and (more))                      [failed]
    -1
block/005 (other) (what, and (more))                         [failed]
awk: something else
    -2
"""
    folder = left(tmp_path, nodev_kind_a_b=FAIL, nodev_other=FAIL)
    assert [row.excerpt for row in results.rows("block/005", folder, printed)] == [("-1",), ("-2",)]


@pytest.mark.parametrize("head", ["throtl/***", "throtl/*** => sda"])
def test_a_group_that_cannot_run(tmp_path: Path, head: str) -> None:
    printed = f"{head:60} [not run]\n    command bc is not available\n"
    assert results.rows("throtl/001", tmp_path, printed) == [
        Row("throtl/001", "", NOT_RUN, "command bc is not available")
    ]


def test_no_result_is_a_failure(tmp_path: Path) -> None:
    for printed in ("", "./check: fallback_device call failure\n"):
        (row,) = results.rows("block/005", tmp_path, printed)
        assert row.status == FAILED and list(row.excerpt) == printed.splitlines()
    (row,) = results.rows("block/005", left(tmp_path, nodev="status\n"), "")
    assert row.status == FAILED, "a file that was not finished"


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


# ---- the clone ----


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A clone with built programs."""
    files = ["check", "common/rc", "src/Makefile", "src/a.c", "src/a", "results/nodev/block/001"]
    files += [f"tests/{name}" for name in ("block/rc", "block/002", "block/001", "block/001.out")]
    for name in [*files, "tests/zbd/001"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "src/a").chmod(stat.S_IRWXU)
    return tmp_path


def test_tests_are_found(folder: Path) -> None:
    clone.check(folder)
    with pytest.raises(clone.CloneError, match="dm"):
        clone.tests(folder)
    assert clone.tests(folder, ["zbd", "block/002", "block"]) == [
        "zbd/001", "block/002", "block/001",
    ]  # fmt: skip
    for name in ("block/003", "block/rc", "cheese", ".."):
        with pytest.raises(clone.CloneError, match=name):
            clone.tests(folder, [name])


@pytest.mark.parametrize("missing", ["check", "common/rc", "src/a", "tests/block/rc"])
def test_what_is_no_clone(folder: Path, missing: str) -> None:
    (folder / missing).unlink()
    with pytest.raises(clone.CloneError) as caught:
        clone.check(folder)
    assert str(folder) in str(caught.value)
    assert ("README" if missing == "src/a" else clone.WHERE) in str(caught.value)


def test_old_results_stay_behind(folder: Path) -> None:
    clone.copied(folder, folder / "copy")
    assert (folder / "copy/src/a").stat().st_mode & stat.S_IXUSR
    assert not (folder / "copy/results").exists() and (folder / "copy/tests/block/001").exists()


@pytest.mark.parametrize(
    ("text", "wants"),
    [
        ("test() {\n\ttrue\n}\n", False),
        ("test_device() {\n\ttrue\n}\n", True),
        ("fallback_device() {\n}\n\ntest_device() {\n}\n", False),
        ("setup_test_device() {\n}\ntest() {\n}\n", False),
    ],
)
def test_tests_that_need_a_disk(text: str, wants: bool) -> None:
    assert clone.wants_disk(text) == wants
