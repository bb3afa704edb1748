# SPDX-License-Identifier: LGPL-2.1-or-later
"""Two stages side by side: both count, whatever happens to the one that is not seen."""

import os
import time
from functools import partial
from pathlib import Path

import pytest

from lab import stages
from lab.junit import Results
from lab.progress import LabError


def test_both_count(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    total = Results()

    def other() -> Results:
        os.write(1, b"heard at the end\n")
        return Results(["b"], {"c": "why" * 100_000})

    with stages.beside({"other": other}, tmp_path / "log", total):
        total.add(Results(["a"]))
    assert (total.passed, total.failed) == (["a", "b"], {"c": "why" * 100_000})
    said = capfd.readouterr().out
    assert "heard at the end" in said
    assert "FAILED other: c" in said


def test_one_that_breaks_down_fails(tmp_path: Path) -> None:
    total = Results()

    def broken() -> Results:
        raise LabError("no kernel")

    with stages.beside({"broken": broken}, tmp_path / "log", total):
        pass
    assert total.failed == {"broken": "no kernel"}


def test_one_that_vanishes_fails(tmp_path: Path) -> None:
    total = Results()

    def vanishing() -> Results:
        os._exit(3)

    with stages.beside({"vanishing": vanishing}, tmp_path / "log", total):
        pass
    assert "status 3" in total.failed["vanishing"]
    assert not total.passed


def test_they_run_one_by_one(tmp_path: Path) -> None:
    """The next begins when the one before it has ended; one that breaks down stops nobody."""
    trace = tmp_path / "trace"

    def stage(name: str) -> Results:
        with trace.open("a") as file:
            file.write(f"{name} begins\n")
        time.sleep(0.05)
        with trace.open("a") as file:
            file.write(f"{name} ends\n")
        if name == "first":
            raise LabError("no machine")
        return Results([name])

    total = Results()
    others = {name: partial(stage, name) for name in ("first", "second")}
    with stages.beside(others, tmp_path / "log", total):
        pass
    assert trace.read_text().split("\n")[:-1] == [
        f"{name} {what}" for name in others for what in ("begins", "ends")
    ]
    assert total.passed == ["second"]
    assert list(total.failed) == ["first"]
