# SPDX-License-Identifier: LGPL-2.1-or-later
"""Results keyed by content: a stage whose inputs have not changed since it passed need not run.

README.rst explains what belongs to the key of a stage. Only results without a failure are kept, in
CACHE/results/STAGE/KEY as JSON, with the commit and the date; the newest KEEP of each stage stay.
"""

import json
import time
from dataclasses import dataclass
from pathlib import Path

from . import host
from .cache import Cache, digest_files, key_of
from .guest import QEMU
from .junit import Results
from .products import git, source_files
from .roots import Root, build_key
from .stages import Stage

LAB = ("lab", "tests/lab/")
KEEP = 20


@dataclass(frozen=True)
class Kept:
    """A result of an earlier run: names of passed tests, the commit and the date."""

    passed: list[str]
    commit: str
    date: str

    def line(self) -> str:
        """The line that ./lab test prints instead of running the stage."""
        return f"cached: {len(self.passed)} passed ({self.commit}, {self.date})"


def inputs(stage: Stage, names: list[str]) -> list[str]:
    """The files among names that decide the result of a stage."""
    own_tests = "tests/lab/test_"
    lab = [n for n in names if n.startswith(LAB) and not n.startswith(own_tests)]
    rooms = [name for name in names if name.startswith(stage.rooms)]
    return sorted({*lab, *rooms})


def key(cache: Cache, stage: Stage, source: Path) -> str | None:
    """The key of a stage; None if a tree that it uses is not in the cache yet."""
    versions = {}
    for recipe in stage.trees:
        folder = cache.existing(f"{recipe.name}-root", recipe.key())
        if folder is None:
            return None
        versions[recipe.name] = Root(folder / "tree").versions()
    if stage.source:
        folder = cache.existing(f"build-{stage.series}-root", build_key(stage.series))
        if folder is None:
            return None
        headers = (folder / "tree/usr/src").glob("linux-headers-*")
        versions["kernel"] = " ".join(sorted(path.name for path in headers))
    return key_of(
        {
            "stage": f"{stage.name} {stage.extent}".strip(),
            "files": digest_files(source, inputs(stage, source_files(source))),
            "packages": versions,
            "emulator": _emulator(),
        }
    )


def find(cache: Cache, stage: Stage, key: str | None) -> Kept | None:
    """The kept result of a stage, if there is one with this key."""
    file = cache.root / "results" / stage.name / str(key)
    try:
        return Kept(**json.loads(file.read_text()))
    except (OSError, ValueError, TypeError):
        return None


def keep(cache: Cache, stage: Stage, key: str, results: Results, source: Path) -> None:
    """Keep the result of a stage if all of it passed."""
    if results.failed or not results.passed:
        return
    folder = cache.root / "results" / stage.name
    folder.mkdir(parents=True, exist_ok=True)
    kept = Kept(results.passed, commit(source), time.strftime("%Y-%m-%d"))
    part = folder / f"{key}.part"
    part.write_text(json.dumps(vars(kept)))
    part.rename(folder / key)
    for old in sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime)[:-KEEP]:
        old.unlink(missing_ok=True)


def commit(source: Path) -> str:
    """The commit of the clone, `+` behind it if files differ from it; - without git."""
    done = git(source, "describe", "--always", "--dirty=+", "--abbrev=8", "--exclude=*")
    return done.stdout.strip() or "-"


def is_tracked(source: Path, file: Path) -> bool:
    """Is a file one of the clone's commit, or of its index?"""
    return not git(source, "ls-files", "--error-unmatch", str(file.resolve())).returncode


def _emulator() -> str:
    return "".join(host.output([QEMU, "--version"]).splitlines()[:1])
