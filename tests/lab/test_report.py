# SPDX-License-Identifier: LGPL-2.1-or-later
"""The runs that `./lab report` takes: newer ones, of a commit, of benches that the page shows."""

import argparse
import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from bench.report import Run, read, write

from lab import keys, report
from lab.progress import LabError

RUN = Run("./lab bench scale", "aaaa", "2026-02-02T00:00:00Z", "6.12", [])
PAGE = """
intro = ""
[[section]]
title = "Scale"
command = ["./lab bench scale"]
bench = "scale"
conclusion = "It does not grow."
[readme]
bench = "scale"
column = [{ head = "Sutro", scheduler = "sutro" }]
row = [{ head = "cost", metric = "cost" }]
limits = "An I/O costs {cost}."
[readme.figure]
cost = { metric = "cost" }
"""
README = """# Sutro
<!-- begin of figures -->
{}
<!-- end of figures -->
<!-- begin of limits -->
{}
<!-- end of limits -->
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of results, in which a run of the first of February is the newest."""
    folder = tmp_path / "Documentation/results"
    folder.mkdir(parents=True)
    (folder / "page.toml").write_text(PAGE)
    write([one("cost", "2026-02-01")], folder / "scale.json")
    (tmp_path / "README.md").write_text(README.format("by hand", "too"))
    monkeypatch.setattr(report, "FOLDER", folder)
    monkeypatch.setattr(report, "is_in_history", lambda commit: commit != "bbbb")
    return folder


def one(metric: str, date: str, commit: str = "aaaa") -> Run:
    found = {"scenario": "idle", "scheduler": "sutro", "metric": metric, "value": 1}
    found |= {"goal": None, "judged": False}
    return Run(RUN.command, commit, date, "6.12", [found])


def kept(cache: SimpleNamespace, run: Run, folder: str, name: str = "scale") -> Path:
    """The files of a bench in the folder of its run."""
    place = cache.run_dir.parent / folder
    place.mkdir(parents=True, exist_ok=True)
    (place / f"{name}{report.SUFFIX}").write_text(json.dumps(vars(run)))
    return place / f"{name}{report.SUFFIX}"


def run_report(cache: SimpleNamespace, *files: Path, check: bool = False) -> int:
    return report.report(cache, argparse.Namespace(files=files, check=check))


def test_newer_runs_of_commits_are_merged(tmp_path: Path, place: Path) -> None:
    cache = SimpleNamespace(run_dir=tmp_path / "runs/now")
    kept(cache, one("bytes", "2026-02-02T10:00:00Z"), "1")
    kept(cache, one("older", "2026-01-31"), "2")
    kept(cache, one("changed", "2026-02-03", "aaaa+"), "3")
    kept(cache, one("share", "2026-02-03"), "4", name="protect")
    kept(cache, one("tried", "2026-02-04", "bbbb"), "5")
    assert run_report(cache) == 0
    assert [run.results[0]["metric"] for run in read(place / "scale.json")] == ["cost", "bytes"]
    assert not (place / "protect.json").exists()
    assert run_report(cache, check=True) == 0
    table = "|  | Sutro |\n| --- | --- |\n| cost | 1 |"
    assert (tmp_path / "README.md").read_text() == README.format(table, "An I/O costs 1.")
    for file in (tmp_path / "README.md", place.parent / "results.md"):
        text = file.read_text()
        file.write_text(text.replace("Sutro", "bfq") + "by hand")
        with pytest.raises(LabError, match="./lab report"):
            run_report(cache, check=True)
        file.write_text(text)


def test_a_named_run_may_be_older(tmp_path: Path, place: Path) -> None:
    cache = SimpleNamespace(run_dir=tmp_path / "runs/now")
    file = kept(cache, one("older", "2026-01-31"), "1")
    assert run_report(cache, file) == 0
    assert [run.results[0]["metric"] for run in read(place / "scale.json")] == ["older", "cost"]
    file.write_text("[]")
    with pytest.raises(LabError, match="not a run of a bench"):
        run_report(cache, file)


def test_history(monkeypatch: pytest.MonkeyPatch) -> None:
    def git(source: Path, *words: str) -> SimpleNamespace:
        assert words == ("merge-base", "--is-ancestor", words[2], "HEAD")
        return SimpleNamespace(returncode=int(words[2] != "aaaa"))

    monkeypatch.setattr(keys, "git", git)
    assert report.is_in_history("aaaa")
    assert not report.is_in_history("bbbb")


def test_only_scenarios_of_the_repository_are_reported(tmp_path: Path) -> None:
    for name in ("ours.toml", "theirs.toml"):
        (tmp_path / name).touch()
    for words in (["init", "-q"], ["add", "ours.toml"]):
        assert not keys.git(tmp_path, *words).returncode
    assert keys.is_tracked(tmp_path, tmp_path / "ours.toml")
    assert not keys.is_tracked(tmp_path, tmp_path / "theirs.toml")
    assert not keys.is_tracked(tmp_path, tmp_path.parent / "elsewhere.toml")


@pytest.mark.parametrize(("commit", "files"), [("aaaa", ["scale.run.json"]), ("bbbb", [])])
def test_a_bench_keeps_a_run_of_one_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, commit: str, files: list[str]
) -> None:
    """A commit that changed meanwhile leaves open which one was measured."""
    monkeypatch.setattr(keys, "commit", lambda source: commit)
    found = [{"metric": "cost", "value": 1}]
    report.keep(SimpleNamespace(run_dir=tmp_path), "scale", ["./lab"], "aaaa", "6.12", found)
    assert [path.name for path in tmp_path.iterdir()] == files
