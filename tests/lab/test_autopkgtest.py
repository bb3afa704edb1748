# SPDX-License-Identifier: LGPL-2.1-or-later
"""Results in a folder of autopkgtest."""

from pathlib import Path

import pytest

from lab import autopkgtest


def test_passed(tmp_path: Path) -> None:
    """Tests that are not named do not count: they need another test bed."""
    skip = "elevator             SKIP Test restriction"
    (tmp_path / "summary").write_text(f"{skip}\ndaemon               PASS\n")
    found = autopkgtest.read(tmp_path, ("daemon",), "status 2")
    assert (found.passed, found.failed) == (["autopkgtest.daemon"], {})


@pytest.mark.parametrize("outcome", ["FAIL non-zero exit status 1", "SKIP no", "FLAKY", "PASSED"])
def test_other_outcomes_are_failures(tmp_path: Path, outcome: str) -> None:
    (tmp_path / "summary").write_text(f"daemon               {outcome}\n")
    (tmp_path / "daemon-stdout").write_text("collected 19 items\n1 failed\n")
    found = autopkgtest.read(tmp_path, ("daemon",), "status 4")
    assert not found.passed
    text = found.failed["autopkgtest.daemon"]
    assert text.startswith(f"{outcome}, status 4\n") and "1 failed" in text


def test_no_report_is_a_failure(tmp_path: Path) -> None:
    """The packages could not be installed, for example."""
    found = autopkgtest.read(tmp_path / "report", ("daemon",), "status 1")
    assert found.failed == {"autopkgtest.daemon": "no result, status 1\n"}


def test_all_tests_of_the_packages_run_somewhere() -> None:
    """Here those that need no machine of their own, in a guest the other one."""
    text = (Path(__file__).parents[2] / "debian/tests/control").read_text()
    for one in text.split("\n\n"):
        (name,) = [line.split()[1] for line in one.splitlines() if line.startswith("Tests:")]
        assert (name in autopkgtest.TESTS) == ("isolation-machine" not in one), name
        guest = Path(__file__).parents[1] / "vm/test_autopkgtest.py"
        assert (f"debian/tests/{name}" in guest.read_text()) == ("isolation-machine" in one), name
