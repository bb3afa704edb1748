# SPDX-License-Identifier: LGPL-2.1-or-later
"""Stages and paths of tests on the command line."""

import subprocess
import sys
from pathlib import Path

import pytest

from lab import selection, stages
from lab.progress import LabError

SOURCE = Path(selection.__file__).parents[2]
FILE = "tests/vm/test_floors.py"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A clone with one file of tests, and a folder whose name may be an option's value."""
    (tmp_path / FILE).parent.mkdir(parents=True)
    (tmp_path / FILE).touch()
    (tmp_path / "daemon").mkdir()
    return tmp_path


@pytest.mark.parametrize("root", ["", "{source}/", "/mnt/src/"])
@pytest.mark.parametrize("path", [FILE, f"{FILE}::test_stripe", f"{FILE}::test_a[b/c]", "tests/vm"])
def test_a_path_in_the_clone_becomes_one_in_the_guest(source: Path, root: str, path: str) -> None:
    word = root.format(source=source) + path
    assert selection.in_guest(source, [word]) == [f"/mnt/src/{path}"]


@pytest.mark.parametrize(
    "words",
    [
        ["-s", "-k", "daemon"],
        ["-k", "test_a[b/c]", "-m", "first"],
        [f"--deselect={FILE}::test_stripe", "--maxfail", "1"],
    ],
)
def test_options_and_their_values_stay(source: Path, words: list[str]) -> None:
    assert selection.in_guest(source, words) == words
    assert selection.in_guest(source, [*words, FILE]) == [*words, f"/mnt/src/{FILE}"]


@pytest.mark.parametrize(
    "path", ["test_floors.py", "tests/vm/test_flaws.py", "/mnt/src/test_floors.py", "/etc/passwd"]
)
def test_a_path_that_is_not_in_the_clone_is_an_error_that_names_it(source: Path, path: str) -> None:
    with pytest.raises(LabError) as refused:
        selection.in_guest(source, ["-s", f"{path}::test_stripe"])
    assert str(refused.value).startswith(f"{path}: no such file in {source}")


def test_a_wrong_path_ends_the_lab_before_it_prepares_anything(tmp_path: Path) -> None:
    words = ["--cache", str(tmp_path), "test", "--stage", "smp", "--", "tests/vm/test_flaws.py"]
    done = subprocess.run(
        [sys.executable, SOURCE / "lab", *words], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    # Each step of the preparation would be a line before it.
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"lab: tests/vm/test_flaws.py: no such file in {SOURCE};")


def test_an_unknown_stage_is_an_error_that_names_all_stages(tmp_path: Path) -> None:
    words = ["--cache", str(tmp_path), "test", "--stage", "guest", "gest"]
    done = subprocess.run(
        [sys.executable, SOURCE / "lab", *words], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    *_, line = done.stderr.splitlines()
    head, _, listed = line.partition(" (choose from ")
    assert head.endswith("argument --stage: invalid choice: 'gest'")
    names = [one.name for one in stages.stages(SOURCE)]
    # Python 3.12 and later do not quote them.
    assert listed.removesuffix(")").replace("'", "").split(", ") == names
    assert not list(tmp_path.iterdir())
