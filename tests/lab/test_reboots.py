# SPDX-License-Identifier: LGPL-2.1-or-later
"""Steps of the stage boot on a fake machine, values of settings after a power cut, versions."""

import contextlib
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from boot.journal import possible

from lab import products, reboots
from lab.cache import Cache
from lab.progress import LabError

SOURCE = Path(reboots.__file__).parents[2]


def change(setting: str, value: int, *, whole: bool = True) -> dict:
    return {"setting": setting, "value": value, "whole": whole}


def test_a_durable_setting_has_its_last_value_or_the_one_that_was_under_way() -> None:
    changes = [change("floor", 1), change("floor", 2, whole=False), change("floor", 2)]
    assert possible(changes) == {"floor": [2]}
    assert possible([*changes, change("floor", 3, whole=False)]) == {"floor": [2, 3]}


def test_a_setting_that_nothing_syncs_has_any_value() -> None:
    changes = [change("weight", n, whole=whole) for n in (1, 2) for whole in (False, True)]
    assert possible(changes) == {"weight": [1, 1, 2, 2]}


def test_another_version_is_everywhere(tmp_path: Path) -> None:
    products.copied(SOURCE, list(products.VERSIONED), tmp_path / "clone")
    products.renumber(tmp_path / "clone", "9.8.7")
    for name in products.VERSIONED:
        old, new = ((p / name).read_text() for p in (SOURCE, tmp_path / "clone"))
        (changed,) = set(new.splitlines()) - set(old.splitlines())
        assert "9.8.7" in changed


def test_a_file_without_the_version_is_an_error(tmp_path: Path) -> None:
    products.copied(SOURCE, list(products.VERSIONED), tmp_path / "clone")
    (tmp_path / "clone/meson.build").write_text("version: '1'\n")
    with pytest.raises(LabError, match=r"meson\.build does not have the version"):
        products.renumber(tmp_path / "clone", "9.8.7")


def test_every_kind_of_cut_is_in_a_short_run() -> None:
    life = object.__new__(reboots.Life)
    life.seed = random.Random(1)
    steps = list(life.steps(3))
    names = [one.name for one in steps]
    assert names == [
        "configured",
        "upgrade",
        "completed",
        "killed",
        "cut 1",
        "cut 2",
        "cut 3",
        "removed",
    ]
    assert [bool(one.files) for one in steps if one.name.startswith("cut")] == [False, False, True]


class FakeGuest:
    """A guest in which commands succeed, but for those that have a text of `bad`."""

    def __init__(self, machine: "FakeMachine", log: Path):
        self.machine, self.log = machine, log

    def run(self, command: str, *, name: str, timeout_s: float) -> int:
        self.machine.done.append(name)
        return int(any(text in command for text in self.machine.bad))

    def start(self, command: str, name: str) -> str:
        """The files on the host of a command that has ended."""
        self.machine.done.append(f"start {name}")
        for file in ("status", "changes"):
            with open(self.machine.folder / "out" / file, "a") as out:
                out.write("line\n" * 100)
        return "unit"

    def reboot(self) -> None:
        self.machine.done.append("reboot")

    def check_log(self) -> None:
        pass


class FakeMachine:
    """A machine that boots a number of times."""

    def __init__(self, folder: Path, boots: int, bad: tuple[str, ...]):
        self.folder, self.boots, self.bad = folder, boots, bad
        self.done: list[str] = []
        self.loses_all, self.examine = False, None
        for share in ("out", "build"):
            (folder / share).mkdir()
        (folder / "log").write_text("reason\n")

    @contextlib.contextmanager
    def boot(self) -> Iterator[FakeGuest]:
        self.boots -= 1
        if self.boots < 0:
            raise LabError("it does not boot")
        self.done.append("boot")
        yield FakeGuest(self, self.folder / "log")


@pytest.fixture
def run_stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple]:
    """Run the stage on a fake machine; the results, and the commands."""

    def run(boots: int = 100, bad: tuple[str, ...] = ()) -> tuple:
        machine = FakeMachine(tmp_path, boots, bad)
        (tmp_path / "debs").mkdir()
        monkeypatch.setattr(reboots.persistent, "machine", lambda *words: machine)
        monkeypatch.setattr(reboots.products, "debs", lambda *words, **more: tmp_path / "debs")
        monkeypatch.setattr(reboots, "COMPILES_S", 0.0)
        monkeypatch.setattr(reboots, "MOMENT_S", 0.0)
        return reboots.stage(Cache(tmp_path / "cache"), tmp_path, cuts=3, seed=1), machine.done

    return run


def test_each_step_is_judged_after_the_next_boot(run_stage: Callable[..., tuple]) -> None:
    results, done = run_stage()
    assert done == [
        "boot", "settings", "check", "reboot",
        "boot", "check", "start dpkg",
        "boot", "check", "complete",
        "boot", "mend", "check", "start dpkg", "kill", "reboot",
        "boot", "mend", "check", "start change",
        "boot", "check", "start change",
        "boot", "check", "start dpkg",
        "boot", "mend", "check", "remove", "reboot",
        "boot", "check",
    ]  # fmt: skip
    names = ["configured", "upgrade", "completed", "killed", "cut 1", "cut 2", "cut 3", "removed"]
    assert results.passed == [f"boot.{name}" for name in names]
    # The fake machine has no log of writes.
    assert results.failed == {"boot.moments": "no moment was examined"}


def test_a_machine_that_does_not_boot_ends_the_stage(run_stage: Callable[..., tuple]) -> None:
    results, _ = run_stage(boots=5)
    assert results.passed == [f"boot.{n}" for n in ("configured", "upgrade", "completed", "killed")]
    assert results.failed["boot.cut 1"] == "it does not boot"


def test_a_problem_is_a_failure_of_the_step_before_the_boot(
    run_stage: Callable[..., tuple],
) -> None:
    results, _ = run_stage(bad=("--only-files",))
    assert results.failed["boot.upgrade"].startswith("check failed:\nreason")
    assert "boot.configured" in results.passed and "boot.removed" in results.passed


def test_a_step_that_fails_is_not_judged(run_stage: Callable[..., tuple]) -> None:
    results, _ = run_stage(bad=("dpkg --remove",))
    assert results.failed["boot.removed"].startswith("remove failed")
    assert "boot.removed" not in results.passed
