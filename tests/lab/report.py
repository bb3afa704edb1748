# SPDX-License-Identifier: LGPL-2.1-or-later
"""`./lab report`: results.md and the table of README.md, from the newest runs of the benches.

A bench leaves CACHE/runs/RUN/NAME.run.json: its results with command, commit, date and kernel. The
runs that are newer than those of Documentation/results are merged into that folder. A run of a
clone whose files differed from its commit is left out: its figures could not be repeated. So is one
of a commit that is not in the history of this clone, unless its file is named.
"""

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.report import PAGE, Run, benches, merged, read, readme, render, write

from . import keys
from .cache import Cache
from .progress import LabError, step
from .setup import SOURCE

FOLDER = SOURCE / "Documentation" / "results"
SUFFIX = ".run.json"
# The mark that keys.commit() appends to the commit of files that differ from it.
CHANGED = "+"


def report(cache: Cache, options: argparse.Namespace) -> int:
    """Merge the newest runs into the results, and write the page; with --check, compare it only."""
    page, landing = FOLDER.parent / PAGE, FOLDER.parents[1] / "README.md"
    if options.check:
        for file, text in _made(page, landing):
            if file.read_text() != text:
                raise LabError(
                    f"{file} is not what ./lab report makes; run it, and commit the file"
                )
        return 0
    shown = {f"{name}{SUFFIX}" for name in benches(FOLDER)}
    kept = sorted(cache.run_dir.parent.glob(f"*/*{SUFFIX}"))
    for file in options.files or [one for one in kept if one.name in shown]:
        _add(file, chosen=bool(options.files))
    for file, text in _made(page, landing):
        file.write_text(text)
        step(f"report: {file} is up to date")
    return 0


def is_in_history(commit: str) -> bool:
    """Is it a commit of the branch that is checked out?"""
    return not keys.git(SOURCE, "merge-base", "--is-ancestor", commit, "HEAD").returncode


def _made(page: Path, landing: Path) -> list[tuple[Path, str]]:
    """The files that a report makes, and their text."""
    return [(page, render(FOLDER)), (landing, readme(FOLDER, landing.read_text()))]


def _add(file: Path, *, chosen: bool) -> None:
    """Add a run to the results of its bench, if it is newer than they are or was chosen."""
    try:
        run = Run(**json.loads(file.read_text()))
    except (ValueError, TypeError) as error:
        raise LabError(
            f"{file}: not a run of a bench ({error}); ./lab bench writes them"
        ) from error
    if run.commit.endswith(CHANGED) or run.commit == "-":
        step(f"report: {file}: left out: files of the clone differed from their commit")
        return
    place = FOLDER / file.name.replace(SUFFIX, ".json")
    known = read(place)
    if not chosen and any(run.date <= one.date for one in known):
        return
    if not chosen and not is_in_history(run.commit):
        step(f"report: {file}: left out: {run.commit} is no commit of this branch")
        return
    write(merged([*known, run]), place)
    step(f"report: {place.name}: {len(run.results)} results of {run.commit}, {run.date[:10]}")


def keep(
    cache: Cache, name: str, command: Sequence[str], commit: str, kernel: str, found: list[Mapping]
) -> None:
    """Keep the results of a run for `./lab report`; the commit is that of its begin."""
    date = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    run = Run(" ".join(command), commit, date, kernel, found)
    if keys.commit(SOURCE) == commit:
        (cache.run_dir / f"{name}{SUFFIX}").write_text(json.dumps(vars(run)))
