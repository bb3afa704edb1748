# SPDX-License-Identifier: LGPL-2.1-or-later
"""Two stages side by side: both count, whatever happens to the one that is not seen."""

import os
from pathlib import Path

import pytest

from lab import stages
from lab.junit import Results
from lab.progress import LabError


def test_both_count(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    total = Results()

    def other() -> Results:
        os.write(1, b"heard at the end\n")
        return Results(["b"], {"c": "why"})

    with stages.beside("other", other, tmp_path / "log", total):
        total.add(Results(["a"]))
    assert (total.passed, total.failed) == (["a", "b"], {"c": "why"})
    said = capfd.readouterr().out
    assert "heard at the end" in said
    assert "FAILED other: c" in said


def test_one_that_breaks_down_fails(tmp_path: Path) -> None:
    total = Results()

    def broken() -> Results:
        raise LabError("no kernel")

    with stages.beside("broken", broken, tmp_path / "log", total):
        pass
    assert total.failed == {"broken": "no kernel"}


def test_one_that_vanishes_fails(tmp_path: Path) -> None:
    total = Results()

    def vanishing() -> Results:
        os._exit(3)

    with stages.beside("vanishing", vanishing, tmp_path / "log", total):
        pass
    assert "status 3" in total.failed["vanishing"]
    assert not total.passed
