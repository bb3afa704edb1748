# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests of others: two schedulers are compared, and xfstests and LTP read, on made-up output."""

import json
import math
from pathlib import Path

import pytest
from rig.result import all_met, write_json

from bench.suites import ltp, results, xfstests
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


# ---- xfstests ----

OUTPUT = """\
FSTYP         -- ext4
MOUNT_OPTIONS -- -o acl,user_xattr /dev/d1 /tmp/scratch

generic/001        4s
generic/002 3s ...  12s
generic/003       [not run] Reflink not supported by test filesystem type: ext4
generic/004       - output mismatch (see /mnt/out/results/generic/004.out.bad)
    --- tests/generic/004.out	2026-01-01
    +Input/output error
generic/1005      [failed, exit status 1]- output mismatch (see there)
    -silence is golden
ext4/006          _check_generic_filesystem: filesystem on /dev/d0 is inconsistent
(see /mnt/out/results/ext4/006.full for details)

"""


def test_rows_of_xfstests() -> None:
    found = xfstests.rows(OUTPUT + "Ran: generic/001 generic/002\nPassed all 2 tests\n")
    assert [row.test for row in found] == [
        "generic/001", "generic/002", "generic/003", "generic/004", "generic/1005", "ext4/006",
    ]  # fmt: skip
    assert [row.status for row in found] == [PASSED, PASSED, NOT_RUN, FAILED, FAILED, FAILED]
    assert [row.seconds for row in found[:2]] == [4, 12]
    assert found[2].reason == "Reflink not supported by test filesystem type: ext4"
    assert found[3].reason.startswith("- output mismatch")
    assert found[3].excerpt[1] == "    +Input/output error"
    assert found[5].reason.endswith("is inconsistent")


@pytest.mark.parametrize("more", ["generic/475      ", "generic/475       3s ... "])
def test_a_test_of_xfstests_that_has_not_ended(more: str) -> None:
    assert xfstests.running(OUTPUT + more) == "generic/475"
    assert xfstests.rows(OUTPUT + more) == xfstests.rows(OUTPUT + "Ran: generic/001")
    assert xfstests.running(OUTPUT + "Ran: generic/001") == ""


def test_an_interrupted_failure_has_not_ended() -> None:
    """Its reason is not known before its last line."""
    assert xfstests.running(OUTPUT) == "ext4/006"
    assert len(xfstests.rows(OUTPUT)) == 5
    assert xfstests.running("") == "" and xfstests.rows("check: failed to mkfs\n") == []


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of both suites."""
    texts = {"check": "", "common/rc": "", "configure.ac": "", "testcases/kernel/io/Makefile": ""}
    texts |= {
        f"tests/{name}": f"#! /bin/bash\n. ./common/preamble\n_begin_fstest {groups}\n"
        for name, groups in {
            "generic/001": "rw auto quick", "generic/1002": "auto", "generic/003": "quick atime",
            "ext4/001": "auto quick", "xfs/001": "quick",
        }.items()
    }  # fmt: skip
    texts |= {"tests/generic/001.out": "_begin_fstest quick", "tests/generic/group.list": ""}
    texts |= {"runtest/dio": "#DESCRIPTION: x\n\ndio01 diotest1\ndio02\tdiotest2 -b 65536 | cat\n"}
    texts |= {"runtest/fs": "ftest01 ftest01\n"}
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_tests_of_xfstests_are_found(copy: Path) -> None:
    xfstests.check(copy)
    assert xfstests.tests(copy, "ext4") == ["ext4/001", "generic/001", "generic/003"]
    assert xfstests.tests(copy, "xfs", ["generic/003", "auto", "quick"]) == [
        "generic/003", "generic/001", "generic/1002", "xfs/001",
    ]  # fmt: skip
    for name in ("generic/002", "quic", "ext4/001"):
        with pytest.raises(xfstests.CopyError, match=name):
            xfstests.tests(copy, "xfs", [name])
    (copy / "common/rc").unlink()
    with pytest.raises(xfstests.CopyError, match=xfstests.WHERE):
        xfstests.check(copy)


# ---- LTP ----


def test_tests_of_ltp_are_found(copy: Path) -> None:
    ltp.check(copy)
    dio = {"dio/dio01": "diotest1", "dio/dio02": "diotest2 -b 65536 | cat"}
    assert ltp.tests(copy, ["dio"]) == dio
    assert list(ltp.tests(copy, ["fs/ftest01", "dio/dio02"])) == ["fs/ftest01", "dio/dio02"]
    for name in ("cheese", "dio/dio03", "../check"):
        with pytest.raises(xfstests.CopyError, match=name):
            ltp.tests(copy, [name])
    (copy / "configure.ac").unlink()
    with pytest.raises(xfstests.CopyError, match=ltp.WHERE):
        ltp.check(copy)


def test_rows_of_ltp(tmp_path: Path) -> None:
    assert ltp.rows(tmp_path) == []
    outputs = {
        "dio/dio01": (0, "diotest01    1  TPASS  :  Read"),
        "fs/quota": (32, "tst_kconfig.c:88: TINFO: x\ntst.c:1: TCONF: no quota here"),
        "fs/gone": (127, "sh: 1: gone: not found"),
        "fs/bad": (1, "a.c:1: TPASS: fine\na.c:2: TFAIL: write() returned 5"),
        "fs/hangs": (-1, "waiting"),
    }
    with open(tmp_path / "ended", "w") as ended:
        for test, (status, output) in outputs.items():
            (tmp_path / f"{test.replace('/', '-')}.log").write_text(output + "\n")
            keys = {"test": test, "status": status, "seconds": 1.5}
            ended.write(json.dumps(keys | ({"reason": "slow"} if status < 0 else {})) + "\n")
    found = ltp.rows(tmp_path)
    assert [row.status for row in found] == [PASSED, NOT_RUN, NOT_RUN, FAILED, FAILED]
    assert [row.reason for row in found] == [
        "", "no quota here", "sh: 1: gone: not found", "status 1", "slow",
    ]  # fmt: skip
    assert found[3].excerpt == ("write() returned 5",) and found[4].excerpt == ("waiting",)
