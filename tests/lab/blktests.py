# SPDX-License-Identifier: LGPL-2.1-or-later
"""blktests under one scheduler: guests, until every test has had its turn.

A test that hangs takes what it holds with it, and one that the kernel does not survive takes all:
both are failures, and the tests after it get a new guest.

    guest 1    block/001 ... block/019 hangs     guest 2    block/020 ...
"""

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from bench.blktests import clone
from bench.blktests.results import FAILED, STUCK, Row, from_object
from rig.kernel_log import kernel_trouble

from . import guest
from .progress import LabError, step

# A test that takes longer hangs; nothing is measured, and an emulated CPU is slow.
LIMIT_S = 600
BUILD, OUT = "/mnt/build/blktests", "/mnt/out"


@dataclass
class Found:
    """The results of a scheduler: rows, and complaints of its kernel by test."""

    rows: list[Row] = field(default_factory=list)
    complaints: dict[str, list[str]] = field(default_factory=dict)


def tests(folder: Path, names: Sequence[str]) -> list[str]:
    """The requested tests; the folder must be a clone of blktests."""
    try:
        clone.check(folder)
        return clone.tests(folder, names)
    except clone.CloneError as error:
        raise LabError(str(error)) from error


def under(
    scheduler: str, setup: guest.Setup, folder: Path, wanted: Sequence[str], seconds: int
) -> Found:
    """Run all tests under a scheduler."""
    clone.copied(folder, setup.folder / "build/blktests")
    found, left, first = Found(), list(wanted), setup
    while left:
        step(f"bench: {scheduler}: {len(left)} tests of {len(wanted)}")
        done = _in_guest(scheduler, setup, left, seconds, found)
        left = left[done:]
        setup = _another(first, len(left)) if left else first
    return found


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
        _complained(now, setup.folder / "console.log", found)
    return wanted.index(now) + 1 if now else len(wanted)


def _read(out: Path, found: Found) -> None:
    """Add what a guest has left."""
    if (out / "rows.json").exists():
        found.rows += map(from_object, json.loads((out / "rows.json").read_text()))
    for log in sorted((out / "kernel").glob("*.log")):
        _complained(log.stem.replace("-", "/"), log, found)


def _complained(test: str, log: Path, found: Found) -> None:
    """Add what was not there before: a console has everything since the boot."""
    known = {line for lines in found.complaints.values() for line in lines}
    lines = kernel_trouble(log.read_text(errors="replace"))
    if new := [line for line in lines if line not in known]:
        found.complaints[test] = new


def _another(setup: guest.Setup, number: int) -> guest.Setup:
    """The same guest in a folder of its own, so that the files of the first one stay."""
    folder = setup.folder.with_name(f"{setup.folder.name}-{number}-left")
    for share in ("out", "log"):
        (folder / share).mkdir(parents=True)
    shutil.copytree(setup.folder / "build", folder / "build", symlinks=True)
    return replace(setup, folder=folder)
