# SPDX-License-Identifier: LGPL-2.1-or-later
"""Kernels of backports: which packages count as one, and the messages about those that are gone."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from lab import archive, host, keys, verbs
from lab.archive import newest_kernels
from lab.cache import Cache
from lab.junit import Results
from lab.progress import LabError
from lab.roots import absent
from lab.stages import Stage

NOT_RUN = ": not run: smp-7.2, measure-7.2"


def packages(version: str) -> list[str]:
    series = ".".join(version.split(".")[:2])
    return [f"linux-{kind}-{version}-amd64" for kind in ("image", "headers")] + [
        f"linux-source-{series}"
    ]


def test_the_newest_of_each_series_counts() -> None:
    names = [
        name
        for version in ("7.2.9+deb13", "7.2.12+deb13", "7.10.1+deb13")
        for name in packages(version)
    ]
    random.Random(1).shuffle(names)
    assert newest_kernels(names) == {"7.2": "7.2.12+deb13-amd64", "7.10": "7.10.1+deb13-amd64"}


def test_a_kernel_without_headers_or_source_is_none() -> None:
    image, headers, source = packages("7.3.4+deb13")
    assert newest_kernels([image, headers]) == {}
    assert newest_kernels([image, source]) == {}
    assert newest_kernels([f"{image}-dbg", headers, source]) == {}


def test_a_series_that_is_gone_is_one_line_with_what_there_is() -> None:
    line = absent("7.2", {"7.3": "7.3.4+deb13-amd64"})
    assert line == "trixie-backports has no Linux 7.2 today; it has 7.3.4+deb13-amd64"
    assert "no kernel" in absent("7.2", {})


def nothing(cache: Cache, source: Path) -> Results:
    return Results()


@pytest.fixture
def chosen(monkeypatch: pytest.MonkeyPatch) -> list[Stage]:
    """Stages of three series; of the last one the trees are in the cache."""
    monkeypatch.setattr(
        keys, "key", lambda _cache, stage, _source: "key" if stage.series == "7.10" else None
    )
    names = {"measure": "6.12", "smp-7.2": "7.2", "measure-7.2": "7.2", "smp-7.10": "7.10"}
    return [Stage(name, nothing, (), (), series=series) for name, series in names.items()]


def left(tmp_path: Path, chosen: list[Stage]) -> list[str]:
    """The names of the stages that are run."""
    return [one.name for one in verbs._without_absent(Cache(tmp_path), chosen)]


@pytest.fixture
def reason(
    tmp_path: Path, chosen: list[Stage], capsys: pytest.CaptureFixture[str]
) -> Callable[[], str]:
    """A function that lets the stages run but those of 7.2, and returns the printed reason."""

    def run() -> str:
        assert left(tmp_path, chosen) == ["measure", "smp-7.10"]
        (line,) = capsys.readouterr().out.splitlines()
        assert line.endswith(NOT_RUN)
        return line.removesuffix(NOT_RUN)

    return run


def test_stages_of_a_series_that_is_gone_are_not_run(
    tmp_path: Path,
    chosen: list[Stage],
    reason: Callable[[], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    offered = {"7.3": "7.3.4+deb13-amd64"}
    monkeypatch.setattr(archive, "backports", lambda cache: offered)
    assert reason() == absent("7.2", offered)
    offered["7.2"] = "7.2.9+deb13-amd64"
    assert left(tmp_path, chosen) == [one.name for one in chosen]


def test_an_archive_that_fails_is_the_reason(
    reason: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not known then that the archive has no such kernel."""

    def broken(cache: Cache) -> dict[str, str]:
        raise LabError("the mirror does not deliver")

    monkeypatch.setattr(archive, "backports", broken)
    assert reason() == "the mirror does not deliver"


def test_a_host_without_a_mirror_is_the_reason(
    reason: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "mirrors", lambda suite: [])
    text = reason()
    assert text.startswith("apt of this host names no mirror of Debian")
    assert text.endswith("/etc/apt/sources.list")
