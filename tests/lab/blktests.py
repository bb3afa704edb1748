# SPDX-License-Identifier: LGPL-2.1-or-later
"""blktests in guests: /mnt/build/blktests has the user's clone, /mnt/out the results."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from bench.blktests import clone
from bench.suites.results import FAILED, STUCK, Row, from_object

from . import guest
from .progress import LabError
from .suites import Found, Turn

# A test that takes longer hangs; nothing is measured, and an emulated CPU is slow.
LIMIT_S = 600
BUILD, OUT = "/mnt/build/blktests", "/mnt/out"


def tests(folder: Path, names: Sequence[str]) -> list[str]:
    """The requested tests; the folder must be a clone of blktests."""
    try:
        clone.check(folder)
        return clone.tests(folder, names)
    except clone.CloneError as error:
        raise LabError(str(error)) from error


def turn(scheduler: str, first: guest.Setup, folder: Path, seconds: int) -> Turn:
    """A function that runs tests in a guest, until one breaks it."""
    clone.copied(folder, first.folder / "build/blktests")

    def one(wanted: list[str], found: Found) -> int:
        setup = _another(first, len(wanted)) if found.rows else first
        return _in_guest(scheduler, setup, wanted, seconds, found)

    return one


def _in_guest(
    scheduler: str, setup: guest.Setup, wanted: list[str], seconds: int, found: Found
) -> int:
    """Run tests until one breaks the guest; how many have had their turn."""
    words = ["python3", "-m", "bench.blktests", "--scheduler", scheduler, "--clone", BUILD]
    words += ["--out", OUT, "--seconds", str(seconds), "--limit", str(LIMIT_S), *wanted]
    command = f"export PYTHONPATH=/mnt/src/tests; exec {guest.shell_words(words)}"
    out, gone, status = setup.folder / "out", "", 0
    with guest.boot(setup) as machine:
        try:
            patience_s = (LIMIT_S + 60.0) * len(wanted)
            status = machine.run(
                command, name="blktests", timeout_s=patience_s, echo=guest.to_stdout
            )
        except LabError as error:
            gone = str(error)
    now = (out / "now").read_text() if (out / "now").exists() else ""
    if gone and not now:
        raise LabError(gone)
    if status not in (0, STUCK):
        log = next((setup.folder / "log").iterdir())
        raise LabError(f"blktests: the bench broke in {now or 'its beginning'}", log)
    _read(out, found)
    if gone:
        found.rows.append(Row(now, "", FAILED, f"the guest did not survive it: {gone}"))
        found.complained(now, _lines(setup.folder / "console.log"))
    return wanted.index(now) + 1 if now else len(wanted)


def _read(out: Path, found: Found) -> None:
    """Add what a guest has left."""
    if (out / "rows.json").exists():
        found.rows += map(from_object, json.loads((out / "rows.json").read_text()))
    for log in sorted((out / "kernel").glob("*.log")):
        found.complained(log.stem.replace("-", "/"), _lines(log))


def _lines(log: Path) -> list[str]:
    return log.read_text(errors="replace").splitlines()


def _another(setup: guest.Setup, number: int) -> guest.Setup:
    """The same guest in a folder of its own, so that the files of the first one stay."""
    folder = setup.folder.with_name(f"{setup.folder.name}-{number}-left")
    for share in ("out", "log"):
        (folder / share).mkdir(parents=True)
    shutil.copytree(setup.folder / "build", folder / "build", symlinks=True)
    return replace(setup, folder=folder)
