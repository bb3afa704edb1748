# SPDX-License-Identifier: LGPL-2.1-or-later
"""A user's copy of xfstests: its tests, and the output of its program `check`.

tests/generic/001, ... are bash, with their groups in a line `_begin_fstest auto quick`; a test of
tests/ext4 is only run on ext4. `check` prints the name of a test when it begins, and goes on in
that line when it has ended:

    generic/001        4s
    generic/003       [not run] Reflink not supported by test filesystem type: ext4
    generic/475       - output mismatch (see /mnt/out/generic/475.out.bad)
        --- tests/generic/475.out
        ...
    generic/476
    Ran: generic/001 generic/003 ...
"""

import re
from collections.abc import Sequence
from pathlib import Path

from bench.suites.results import EXCERPT_LINES, FAILED, NOT_RUN, PASSED, Row

FILE_SYSTEMS = ("ext4", "xfs", "btrfs")
GROUP = "quick"
WHERE = "https://git.kernel.org/pub/scm/fs/xfs/xfstests-dev.git"
NUMBER = re.compile(r"\d{3,4}")
GROUPS = re.compile(r"^_begin_fstest\s+(.*)$", re.MULTILINE)
HEAD = re.compile(rf"((?:generic|{'|'.join(FILE_SYSTEMS)})/\d{{3,4}})(?:\s+(.*?))?\s*")
# The first line after the last test.
END = re.compile(r"Ran: |Interrupted!|Passed all \d+ tests|Failures: ")
TOOK = re.compile(r"(?:\d+s \.\.\. )?\s*(\d+)s")
SKIPPED = "[not run]"


class CopyError(ValueError):
    """A folder that is no copy of the suite, or a test that it does not have."""


def check(copy: Path) -> None:
    """Raise an error that names the fault of a folder that cannot be used."""
    for part in ("check", "common/rc", "configure.ac", "tests/generic/001"):
        if not (copy / part).is_file():
            raise CopyError(f"{copy}: no copy of xfstests ({WHERE}): {part} is not there")


def tests(copy: Path, fs: str, names: Sequence[str] = ()) -> list[str]:
    """The tests of these groups, or these tests, for a file system: ext4/001, generic/001, ..."""
    there = {
        f"{folder}/{file.name}": file
        for folder in (fs, "generic")
        for file in sorted((copy / "tests" / folder).glob("*"), key=lambda file: file.name.zfill(4))
        if NUMBER.fullmatch(file.name)
    }
    found: list[str] = []
    for name in names or (GROUP,):
        some = (
            [name] if name in there else [t for t, file in there.items() if name in _groups(file)]
        )
        if not some:
            raise CopyError(f"{copy}: {fs} has no test or group {name}")
        found += [test for test in some if test not in found]
    return found


def _groups(file: Path) -> list[str]:
    line = GROUPS.search(file.read_text(errors="replace"))
    return line[1].split() if line else []


def rows(output: str) -> list[Row]:
    """The tests that have ended; without an end, the last one has not."""
    blocks, ended = _blocks(output)
    return [_row(*block) for block in (blocks if ended else blocks[:-1])]


def running(output: str) -> str:
    """The test that has begun and not ended; empty: none."""
    blocks, ended = _blocks(output)
    return "" if ended or not blocks else blocks[-1][0]


def _blocks(output: str) -> tuple[list[tuple[str, str, list[str]]], bool]:
    """Name, rest of the line and further lines of each test; whether the last one has ended."""
    found: list[tuple[str, str, list[str]]] = []
    for line in output.splitlines():
        if head := HEAD.fullmatch(line):
            found.append((head[1], head[2] or "", []))
        elif found and END.match(line):
            return found, True
        elif found:
            found[-1][2].append(line)
    return found, False


def _row(test: str, first: str, more: list[str]) -> Row:
    if first.startswith(SKIPPED):
        return Row(test, "", NOT_RUN, " ".join([first.removeprefix(SKIPPED), *more]).strip())
    if took := TOOK.fullmatch(first):
        return Row(test, "", PASSED, "", float(took[1]))
    lines = [line.rstrip() for line in more if line.strip()]
    reason = first or (lines[0] if lines else "no result")
    return Row(test, "", FAILED, reason, None, tuple(lines[:EXCERPT_LINES]))
