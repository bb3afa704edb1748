# SPDX-License-Identifier: LGPL-2.1-or-later
"""How stages run: side by side both count; a test that failed has a second chance, alone."""

import os
import shlex
import time
from functools import partial
from pathlib import Path
from typing import cast

import pytest

from lab import stages
from lab.guest import Guest
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


class Machine:
    """A guest in which tests fail as often as `fails` says."""

    why = "why"

    def __init__(self, folder: Path, fails: dict[str, int]):
        self.folder, self.fails = folder, fails
        self.runs: list[list[str]] = []

    def run(self, command: str, name: str, **_more: object) -> int:
        """Run what is asked for, leave a report."""
        words = shlex.split(command)
        tests = [word for word in words if word.startswith("/mnt/src/")]
        self.runs.append(tests)
        cases = ""
        for test in tests:
            file, name = test.removeprefix("/mnt/src/").split(".py::")
            self.fails[test] = self.fails.get(test, 0) - 1
            bad = f"<failure message='{self.why}'/>" if self.fails[test] >= 0 else ""
            cases += (
                f"<testcase classname='{file.replace('/', '.')}' name='{name}'>{bad}</testcase>"
            )
        (report,) = [word.split("/")[-1] for word in words if word.startswith("--junitxml=")]
        (self.folder / "out").mkdir(exist_ok=True)
        (self.folder / "out" / report).write_text(f"<testsuites>{cases}</testsuites>")
        return int("failure" in cases)


def guest_runs(folder: Path, fails: dict[str, int], tests: list[str]) -> tuple[Results, Machine]:
    machine = Machine(folder, fails)
    return stages.guest(cast(Guest, machine), "guest", tests), machine


TESTS = [f"/mnt/src/tests/vm/test_a.py::test_{name}" for name in "vwxyz"]


def test_who_failed_once_has_a_second_chance(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    results, machine = guest_runs(tmp_path, {TESTS[1]: 1, TESTS[2]: 2}, TESTS)
    assert machine.runs == [TESTS, TESTS[1:3]]
    assert results.line() == "4 passed, 1 failed"
    assert list(results.failed) == ["tests.vm.test_a.test_x"]
    assert "AGAIN guest: tests.vm.test_a.test_w" in capfd.readouterr().out


def test_many_failures_have_a_reason(tmp_path: Path) -> None:
    results, machine = guest_runs(tmp_path, dict.fromkeys(TESTS[:4], 1), TESTS)
    assert machine.runs == [TESTS]
    assert results.line() == "1 passed, 4 failed"


def test_a_complaint_of_the_kernel_is_not_forgiven(tmp_path: Path) -> None:
    class Complaining(Machine):
        why = "the kernel said: WARNING: at block/sutro-core.c:1"

    machine = Complaining(tmp_path, {TESTS[0]: 1})
    results = stages.guest(cast(Guest, machine), "guest", TESTS)
    assert machine.runs == [TESTS]
    assert results.line() == "4 passed, 1 failed"


def test_who_traces_has_one_cpu() -> None:
    """A tracepoint that is switched on patches code that another emulated CPU may be running."""
    source = Path(stages.__file__).parents[2]
    for stage in stages.guest_stages(source):
        for test in stage.tests if stage.smp else []:
            text = (source / "tests/vm" / test.rpartition("/")[2]).read_text()
            assert "rig.trace" not in text, f"{stage.name}: {test}: belongs to TRACING of stages.py"


def test_purge_comes_after_second_chances(tmp_path: Path) -> None:
    purge = ["/mnt/src/tests/vm/test_purge.py"]

    class Files(Machine):
        def run(self, command: str, name: str, **more: object) -> int:
            return super().run(command.replace("_purge.py", "_purge.py::test_it"), name, **more)

    machine = Files(tmp_path, {TESTS[0]: 1})
    results = stages.guest(cast(Guest, machine), "guest", [TESTS[0], *purge])
    assert [runs[0] for runs in machine.runs] == [TESTS[0], TESTS[0], purge[0] + "::test_it"]
    assert results.line() == "2 passed, 0 failed"
