# SPDX-License-Identifier: LGPL-2.1-or-later
"""A user's clone of blktests: its tests, and the part of it that a guest needs.

tests/block/001, ... are bash. One that has `test_device()` needs a disk, unless
`fallback_device()` makes one. src/openclose, ... are programs that the user has built there: a test
that misses one reports that, and does not run.
"""

import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

GROUPS = ("block", "dm", "loop", "throtl", "scsi", "zbd")
WHERE = "https://github.com/linux-blktests/blktests"
NUMBER = re.compile(r"\d{3}")
NOT_NEEDED = (".git", ".github", "results", "Documentation", "LICENSES", "contrib")


class CloneError(ValueError):
    """A folder that is no clone of blktests, or a test that it does not have."""


def check(clone: Path) -> None:
    """Raise an error that names the fault of a folder that cannot be used."""
    for part in ("check", "common/rc", "src/Makefile", "tests/block/rc"):
        if not (clone / part).is_file():
            raise CloneError(f"{clone}: no clone of blktests ({WHERE}): {part} is not there")
    if not any(_is_program(source.with_suffix("")) for source in (clone / "src").glob("*.c")):
        what = "no program in src is built; its README.md tells how, and Debian 12 or 13 will do"
        raise CloneError(f"{clone}: {what}")


def tests(clone: Path, names: Sequence[str] = ()) -> list[str]:
    """The tests of these groups, or these tests, in their order: block/001, ..."""
    found: list[str] = []
    for name in names or GROUPS:
        group, _, number = name.partition("/")
        there = sorted(
            f"{group}/{file.name}"
            for file in (clone / "tests" / group).glob("*")
            if NUMBER.fullmatch(file.name)
        )
        if number:
            there = [test for test in there if test == name]
        if not there:
            raise CloneError(f"{clone}: no test or group {name}; groups are {', '.join(GROUPS)}")
        found += [test for test in there if test not in found]
    return found


def wants_disk(text: str) -> bool:
    """Must a test be given a disk? From its text."""
    functions = set(re.findall(r"^(\w+) ?\(\)", text, re.MULTILINE))
    return "test_device" in functions and "fallback_device" not in functions


def copied(clone: Path, target: Path) -> None:
    """Copy the tests and programs, without the results of earlier runs."""
    shutil.copytree(clone, target, symlinks=True, ignore=shutil.ignore_patterns(*NOT_NEEDED))


def _is_program(file: Path) -> bool:
    return file.is_file() and os.access(file, os.X_OK)
