# SPDX-License-Identifier: LGPL-2.1-or-later
"""The clone and the results of blktests are read, on made-up files and output."""

import json
import stat
from pathlib import Path

import pytest

from bench.blktests import clone, results
from bench.suites.results import FAILED, NOT_RUN, PASSED, Row, from_object

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
