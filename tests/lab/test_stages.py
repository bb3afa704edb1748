# SPDX-License-Identifier: LGPL-2.1-or-later
"""Stages: every test belongs to one, and a stage that breaks is a failed test."""

import re
from pathlib import Path

import pytest

from lab import stages
from lab.cache import Cache
from lab.junit import Results
from lab.progress import LabError
from lab.roots import KERNELS, packages_of

SOURCE = Path(stages.__file__).parents[2]


def stage(run: stages.Run) -> stages.Stage:
    return stages.Stage("some", run, (), ())


def guest_words(one: stages.Stage) -> list[str]:
    """The words that a guest stage gives to pytest; none for another stage."""
    return getattr(one.run, "keywords", {}).get("tests", [])


def test_a_stage_that_breaks_down_is_a_failed_test(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(cache: Cache, source: Path) -> Results:
        raise LabError("no kernel", tmp_path / "log")

    results, seconds = stages.run(stage(broken), Cache(tmp_path), SOURCE)
    stages.show("some", results, seconds)
    printed = capsys.readouterr().out
    assert results.line() == "0 passed, 1 failed"
    assert "no kernel" in printed and str(tmp_path / "log") in printed
    assert printed.endswith("some: 0 passed, 1 failed (0:00)\n")


def test_every_guest_test_file_runs_in_one_stage_and_if_marked_in_the_first_tier() -> None:
    texts = {path.name: path.read_text() for path in (SOURCE / "tests/vm").glob("test_*.py")}
    marked = {name for name, text in texts.items() if re.search(r"\bmark\.first\b", text)}
    # It needs packages that only its stage has.
    assert marked and stages.UPGRADE not in marked
    of_stable = [one for one in stages.stages(SOURCE) if one.series == "6.12"]
    for mark, files in ((stages.FIRST, marked), (stages.REST, texts)):
        listed = [
            word.rpartition("/")[2]
            for one in of_stable
            if mark in guest_words(one)
            for word in guest_words(one)
            if word.endswith(".py")
        ]
        assert sorted(listed) == sorted(files)


def test_the_table_of_stages() -> None:
    """README.rst has each stage, with its tier; the name of a series is VERSION there."""
    text = (SOURCE / "tests/lab/README.rst").read_text()
    rows = re.findall(r"(?m)^((?:``[\w-]+``,? *\n?)+) +(first|all)\b", text)
    # One row has several names, a line each; its tier follows the first.
    listed = {name: tier for names, tier in rows for name in re.findall("``(.*?)``", names)}
    more = re.search(r"(?m)^``checks-VERSION``, .*\n((?:``[\w-]+``,?\n)+)", text)
    assert more
    listed |= dict.fromkeys(re.findall("``(.*?)``", more[1]), "all")
    series = "|".join(map(re.escape, KERNELS))
    there = {
        re.sub(rf"-({series})$", "-VERSION", one.name): "first" if one.first else "all"
        for one in stages.stages(SOURCE)
    }
    assert listed == there


def test_the_first_tier_is_of_the_stable_kernel() -> None:
    first = [one for one in stages.stages(SOURCE) if one.first]
    assert {one.name for one in first} == {"checks", "meson", "guest", "smoke"}
    assert not any(one.source for one in first)
    assert {tree.name for one in first for tree in one.trees} == {"build", "image-6.12", "package"}


def test_the_tree_that_packages_are_built_in_is_in_the_key() -> None:
    """Of each stage that boots a guest with them: another compiler may change its result."""
    guests = [one for one in stages.stages(SOURCE) if guest_words(one) or one.name == "boot"]
    *_, newest = KERNELS
    assert {"guest", "boot", "nri", f"stacking-{newest}"} <= {one.name for one in guests}
    for one in guests:
        (image,) = (tree for tree in one.trees if tree.name.startswith("image-"))
        assert packages_of(image) in one.trees, one.name
        assert len(set(one.trees)) == len(one.trees)


def test_every_other_kernel_has_its_stages() -> None:
    names = {one.name for one in stages.stages(SOURCE)}
    for series in list(KERNELS)[1:]:
        kinds = ("checks", "layers", "series", "owners", "weights", "smp", "measure", "stacking")
        assert {f"{kind}-{series}" for kind in kinds} <= names


def test_tracing_tests_have_one_cpu() -> None:
    """Switching a tracepoint on patches code that another emulated CPU may be executing."""
    for one in stages.stages(SOURCE):
        if not getattr(one.run, "keywords", {}).get("smp"):
            continue
        for word in guest_words(one):
            if word.endswith(".py"):
                text = (SOURCE / "tests/vm" / word.rpartition("/")[2]).read_text()
                assert "rig.trace" not in text, f"{one.name}: {word} belongs to TRACING"


def test_tests_that_a_user_names_replace_those_of_a_guest_stage() -> None:
    named = ["/mnt/src/tests/vm/test_floors.py::test_stripe"]
    (guest,) = [one for one in stages.stages(SOURCE, named) if one.name == "guest"]
    assert guest_words(guest) == named


def test_progress_shows_a_failure_although_its_line_comes_in_pieces(
    capsys: pytest.CaptureFixture[str],
) -> None:
    echo = stages._progress("guest")
    echo("../mnt/src/tests/vm/test_a.py::test_a PASSED [  1%]\n../mnt/src/tests/vm/")
    echo("test_a.py::test_b[x y] ")
    echo("FAILED           [  3%]\n")
    shown = capsys.readouterr().err.splitlines()
    assert [line.split("] ", 1)[1] for line in shown] == [
        "test: guest: 3% test_a.py::test_b[x y] failed"
    ]


def test_a_long_failure_is_shown_with_its_beginning_and_its_end(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A fuzz target prints its progress before the reason, and pytest the reason before logs."""
    text = "\n".join(["began", *(f"#{n} NEW" for n in range(1000)), "SUMMARY: deadly signal"])
    stages.show("fuzz", Results([], {"fuzz-topology": text}), 60)
    first, *lines, last = capsys.readouterr().out.splitlines()
    assert first == "FAILED fuzz: fuzz-topology"
    assert lines[0] == "    began" and lines[-1] == "    SUMMARY: deadly signal"
    assert "    ... 942 lines are left out ..." in lines and len(lines) == 61
    assert last == "fuzz: 0 passed, 1 failed (1:00)"
