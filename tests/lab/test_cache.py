# SPDX-License-Identifier: LGPL-2.1-or-later
"""The cache: one build per content, nothing half-built, nothing in use removed."""

import errno
import fcntl
import multiprocessing
import os
import threading
import time
from collections import namedtuple
from pathlib import Path

import pytest

from lab import cache
from lab.cache import Cache, digest_files, key_of
from lab.progress import LabError


def make(text: str):
    """A build function that writes one file."""

    def build(folder: Path) -> None:
        (folder / "file").write_text(text)

    return build


def never(folder: Path) -> None:
    raise AssertionError("built again")


def test_built_once_per_recipe(tmp_path: Path) -> None:
    first = Cache(tmp_path).artefact("kind", {"a": 1, "b": 2}, "", make("x"))
    assert Cache(tmp_path).artefact("kind", {"b": 2, "a": 1}, "", never) == first
    other = Cache(tmp_path).artefact("kind", {"a": 1, "b": 3}, "", make("y"))
    assert (first / "file").read_text() == "x" and (other / "file").read_text() == "y"


def test_failed_build_counts_for_nothing(tmp_path: Path) -> None:
    def fails(folder: Path) -> None:
        (folder / "file").write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Cache(tmp_path).artefact("kind", 1, "", fails)
    other = Cache(tmp_path)
    other.artefact("kind", 2, "", make("other"))
    assert [path.name for path in (tmp_path / "kind").iterdir()] == [key_of(2)]
    assert (Cache(tmp_path).artefact("kind", 1, "", make("whole")) / "file").read_text() == "whole"


def test_remains_of_a_killed_build_are_replaced(tmp_path: Path) -> None:
    part = tmp_path / "kind" / (key_of(1) + ".part")
    part.mkdir(parents=True)
    (part / "stale").touch()
    built = Cache(tmp_path).artefact("kind", 1, "", make("new"))
    assert [path.name for path in built.iterdir()] == ["file"]


def test_full_disk_is_named_although_its_remains_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut = tmp_path / "kind" / (key_of(1) + ".part")
    usage = namedtuple("usage", "free")
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage(0 if cut.exists() else 1 << 30))

    def fails(folder: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(LabError, match="^tree: the disk of .* is full; free 16 GiB there, or"):
        Cache(tmp_path).artefact("kind", 1, "tree", fails)
    assert not cut.exists()


@pytest.mark.parametrize(
    "complaint",
    [
        "E: You don't have enough free space in /cache/packages/.",
        "cp: error writing 'root.img': No space left on device",
    ],
)
def test_full_disk_of_a_program_is_named(tmp_path: Path, complaint: str) -> None:
    log = tmp_path / "log"
    log.write_text(f"begin\n{complaint}\nend\n")
    with pytest.raises(LabError, match="is full") as found, Cache(tmp_path).names_full_disk("x"):
        raise LabError("apt failed with status 100", log)
    assert found.value.log == log


def test_another_failure_stays_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="^status 1$"), Cache(tmp_path).names_full_disk("x"):
        raise LabError("status 1", tmp_path / "none")


def _count(root: Path) -> None:
    def build(folder: Path) -> None:
        time.sleep(0.2)
        (folder / "file").write_text("x")
        with open(root / "builds", "a", encoding="utf-8") as count:
            count.write("built\n")

    Cache(root).artefact("kind", 1, "", build)


def test_concurrent_runs_build_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    runs = [context.Process(target=_count, args=(tmp_path,)) for _ in range(4)]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    assert [run.exitcode for run in runs] == [0] * 4
    assert (tmp_path / "builds").read_text() == "built\n"


def test_stages_of_one_run_build_once(tmp_path: Path) -> None:
    one, built = Cache(tmp_path), []

    def slow(folder: Path) -> None:
        built.append(folder)
        time.sleep(0.2)

    keys = ("kind", 1, "", slow)
    stages = [threading.Thread(target=one.artefact, args=keys, daemon=True) for _ in range(4)]
    for stage in stages:
        stage.start()
    for stage in stages:
        stage.join(timeout=60)
    assert not any(stage.is_alive() for stage in stages)
    assert len(built) == 1


def test_artefact_in_use_is_not_waited_for(tmp_path: Path) -> None:
    """Another stage has built it while this one waited, and uses it until the end of the run."""
    one, final = Cache(tmp_path), tmp_path / "kind" / key_of(1)
    with (tmp_path / "locks" / f"kind-{key_of(1)}").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        found = threading.Thread(target=one.artefact, args=("kind", 1, "", never), daemon=True)
        found.start()
        time.sleep(0.5)
        final.mkdir(parents=True)
        found.join(timeout=60)
        assert not found.is_alive()


def test_artefact_that_is_missing_is_not_in_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is removed after the first look at it."""
    one, final = Cache(tmp_path), tmp_path / "kind" / key_of(1)
    final.mkdir(parents=True)
    lock = one._lock

    def remove_then_lock(*words: object) -> int:
        final.rmdir()
        return lock(*words)

    with monkeypatch.context() as context:
        context.setattr(one, "_lock", remove_then_lock)
        assert one.existing("kind", 1) is None
    assert Cache(tmp_path).artefact("kind", 1, "", make("x")) == final


def test_old_artefacts_go_unless_they_are_in_use(tmp_path: Path) -> None:
    held = Cache(tmp_path)
    kept = held.artefact("kind", "held", "", make("held"))
    for number in range(cache.KEEP + 3):
        other = Cache(tmp_path)
        other.artefact("kind", number, "", make(str(number)))
        other.close()
        time.sleep(0.01)
    left = {path.name for path in (tmp_path / "kind").iterdir()}
    newest = {key_of(number) for number in range(3, cache.KEEP + 3)}
    assert kept.name in left and newest <= left and len(left) <= cache.KEEP + 1
    assert held.root == tmp_path


def test_another_run_removes_the_same_artefact(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the list of folders and the lock of this one."""
    for number in range(cache.KEEP):
        run = Cache(tmp_path)
        run.artefact("kind", number, "", make(str(number)))
        run.close()
    oldest, lock = tmp_path / "kind" / key_of(0), tmp_path / "locks" / f"kind-{key_of(0)}"
    os.utime(lock, (0, 0))
    flock = cache.fcntl.flock

    def after_another_run(fd: int, mode: int) -> None:
        if Path(f"/proc/self/fd/{fd}").readlink() == lock:
            cache.remove_tree(oldest)
        flock(fd, mode)

    monkeypatch.setattr(cache.fcntl, "flock", after_another_run)
    Cache(tmp_path).artefact("kind", "one more", "", make("x"))
    assert not oldest.exists()


def test_clean_removes_everything(tmp_path: Path) -> None:
    root = tmp_path / "cache"
    opened = Cache(root)
    opened.artefact("kind", 1, "", make("x"))
    opened.clean()
    assert not root.exists()


def test_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(LabError, match="file/cache.*--cache"):
        Cache(tmp_path / "file" / "cache")


def test_digest_sees_content_mode_and_links(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    (tmp_path / "l").symlink_to("a")
    before = digest_files(tmp_path, ["a", "l"])
    (tmp_path / "a").chmod(0o755)
    executable = digest_files(tmp_path, ["a", "l"])
    assert executable["a"] != before["a"] and executable["l"] == before["l"]
    (tmp_path / "a").write_text("2")
    assert digest_files(tmp_path, ["a"])["a"] != executable["a"]
