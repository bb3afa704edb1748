# SPDX-License-Identifier: LGPL-2.1-or-later
"""A user's copy of LTP: the tests of its files runtest/NAME, and their results.

A line of a file is the name of a test and a shell command: `dio01 diotest1`. The exit status of a
test is a sum:

    0 passed    1 failed    2 broken    4 warned    32 it cannot run with this configuration
"""

import json
import re
from collections.abc import Sequence
from pathlib import Path

from bench.suites.results import EXCERPT_LINES, FAILED, NOT_RUN, PASSED, Row
from bench.suites.xfstests import CopyError

WHERE = "https://github.com/linux-test-project/ltp"
# Files with tests of direct, asynchronous and buffered I/O, and of cgroups.
FILES = ("dio", "ltp-aiodio.part1", "ltp-aiodio.part2", "ltp-aiodio.part3", "ltp-aiodio.part4",
         "ltp-aio-stress", "fs", "controllers")  # fmt: skip
CANNOT_RUN = 32
NOT_FOUND = 127
REASON = re.compile(r"\b(?:TCONF|TBROK|TFAIL|TWARN)\b\s*:?\s*(.*)")


def check(copy: Path) -> None:
    """Raise an error that names the fault of a folder that cannot be used."""
    for part in ("configure.ac", "runtest/dio", "testcases/kernel/io/Makefile"):
        if not (copy / part).is_file():
            raise CopyError(f"{copy}: no copy of LTP ({WHERE}): {part} is not there")


def tests(copy: Path, names: Sequence[str] = ()) -> dict[str, str]:
    """Tests of these files, or these tests, and their commands: dio/dio01, ..."""
    found: dict[str, str] = {}
    for name in names or FILES:
        file, _, test = name.partition("/")
        path = copy / "runtest" / file
        there = _listed(path) if path.is_file() else {}
        if test:
            there = {key: there[key] for key in (name,) if key in there}
        if not there:
            raise CopyError(f"{copy}: no test or file {name} in runtest")
        found |= there
    return found


def _listed(file: Path) -> dict[str, str]:
    lines = (line.split(None, 1) for line in file.read_text().splitlines())
    return {
        f"{file.name}/{words[0]}": words[1].strip()
        for words in lines
        if len(words) == 2 and not words[0].startswith("#")
    }


def rows(out: Path) -> list[Row]:
    """The tests that have ended, from `ended` and their output."""
    file = out / "ended"
    if not file.exists():
        return []
    return [_row(json.loads(line), out) for line in file.read_text().splitlines()]


def _row(keys: dict, out: Path) -> Row:
    test, status, seconds = keys["test"], keys["status"], keys["seconds"]
    output = (out / f"{test.replace('/', '-')}.log").read_text(errors="replace").splitlines()
    if status == 0:
        return Row(test, "", PASSED, "", seconds)
    reasons = [found[1] for line in output if (found := REASON.search(line))]
    if status in (CANNOT_RUN, NOT_FOUND):
        return Row(test, "", NOT_RUN, "; ".join(reasons[:1] or output[-1:]), seconds)
    reason = keys.get("reason") or f"status {status}"
    return Row(test, "", FAILED, reason, seconds, tuple((reasons or output)[-EXCERPT_LINES:]))
