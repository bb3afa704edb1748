# SPDX-License-Identifier: LGPL-2.1-or-later
"""The guests of `./lab bench overhead`: clock, CPUs and kernel of each machine."""

import argparse
from collections.abc import Mapping
from pathlib import Path

import pytest
from bench.overhead.scenario import MACHINES, SHIPPED, Book
from bench.read import load

from lab import benches, guest, image, setup
from lab.cache import Cache
from lab.roots import Root, image_recipe


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cache:
    """A cache in which an image takes no time; its folder has the command that makes it."""

    def run(command: list[str], what: str, log: Path) -> None:
        folder = Path(command[command.index("sh") + 4]).parent
        (folder / "command").write_text("\n".join(command))

    kernel = tmp_path / "kernel"
    monkeypatch.setattr(image, "run", run)
    monkeypatch.setattr(image, "bootstrapped", lambda cache, recipe: Root(tmp_path))
    monkeypatch.setattr(setup.host, "ensure_packages", lambda: None)
    monkeypatch.setattr(setup.roots, "prepared", lambda cache, *recipes: None)
    monkeypatch.setattr(setup.products, "debs", lambda *words: tmp_path / "debs")
    monkeypatch.setattr(setup.products, "test_modules", lambda *words: None)
    monkeypatch.setattr(setup.products, "gathered", lambda *words: None)
    monkeypatch.setattr(setup.uml, "kernel", lambda *words: kernel)
    monkeypatch.setattr(setup.accel, "chosen", lambda *words, smp: "tcg-smp" if smp else "tcg")
    return Cache(tmp_path / "cache")


def setups(cache: Cache, monkeypatch: pytest.MonkeyPatch, *names: str) -> Mapping:
    """The guests that scenarios are run in, by machine."""
    found: dict[str, guest.Setup] = {}

    def in_guests(cache: Cache, options: object, setups: Mapping, more: list[str]) -> int:
        found.update(setups)
        return 0

    monkeypatch.setattr(benches, "_in_guests", in_guests)
    book = load(Book, SHIPPED).only(names)
    benches.by_machine(cache, argparse.Namespace(bench="overhead"), book)
    return found


def test_each_machine_has_a_guest(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    found = setups(cache, monkeypatch)
    assert tuple(found) == MACHINES
    for machine, one in found.items():
        assert one.accelerator == ("tcg" if machine.startswith("count") else "tcg-smp")
        scripts = (one.image.disk.parent / "command").read_text().splitlines()
        # The kernel with the series, and nothing of the packages, which are for Debian's.
        assert ("kernel" in scripts) == machine.endswith("-series")
        assert ("install" in scripts) == (not machine.endswith("-series"))
        mounted = "kernel" if machine.endswith("-series") else "debs"
        assert str(cache.root.parent / mounted) in scripts


def test_a_kernel_is_made_for_its_scenarios_only(
    cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert list(setups(cache, monkeypatch, "six", "two-cpus")) == ["count", "speed"]
    assert list(setups(cache, monkeypatch, "six-series")) == ["count-series"]


def test_another_kernel_makes_another_image(cache: Cache, tmp_path: Path) -> None:
    disks = {
        image.built(cache, None, image_recipe("6.12"), kernel=kernel).disk
        for kernel in (None, tmp_path / "a", tmp_path / "b")
    }
    assert len(disks) == 3
