# SPDX-License-Identifier: LGPL-2.1-or-later
"""Files on a disk after a power cut at any entry of its log of writes, without a boot.

tests/boot/change.py writes a mark to a volume of the machine after each line of its journal: a
block with MAGIC and the number of lines. So the log of a disk has the order of changes and writes.
For each moment, a copy of the volume of the root gets the writes that survive, and e2fsck replays
the journal of ext4. debugfs reads the files that tests/boot/files.py judges.
"""

import json
import os
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

from boot import files, journal

from . import writelog
from .namespace import ENVIRONMENT
from .progress import LabError
from .writelog import Entry

# The statuses of e2fsck for a file system in order, and for one that it has corrected.
IN_ORDER = (0, 1)


def marked(log: Path, found: list[Entry]) -> list[int]:
    """For each entry of a log, the lines that the journal had then."""
    lines, counts = 0, []
    with open(log, "rb") as file:
        for one in found:
            if one.bytes == journal.MARK_BYTES:
                block = os.pread(file.fileno(), one.bytes, one.at)
                if block.startswith(journal.MAGIC):
                    lines = int(block[len(journal.MAGIC) :].split(b"\0")[0])
            counts.append(lines)
    return counts


class Volume:
    """A file system on a disk: `size` bytes at `offset`."""

    def __init__(self, disk: Path, offset: int, size: int, folder: Path):
        self._disk, self._offset, self._size = disk, offset, size
        self._copy = folder / "volume"

    def after(self, log: Path, kept: list[Entry]) -> None:
        """Make a copy with these writes, as it is when the journal of ext4 has been replayed."""
        self._copy.unlink(missing_ok=True)
        with open(self._disk, "rb") as disk, open(self._copy, "wb") as copy:
            copy.truncate(self._size)
            for start, end in _data(disk.fileno(), self._offset, self._offset + self._size):
                while start < end:
                    start += os.copy_file_range(
                        disk.fileno(), copy.fileno(), end - start, start, start - self._offset
                    )
            with open(log, "rb") as source:
                for one in kept:
                    if self._offset <= one.to < self._offset + self._size:
                        block = os.pread(source.fileno(), one.bytes, one.at)
                        os.pwrite(copy.fileno(), block, one.to - self._offset)
        done = self._tool("e2fsck", "-p", "-E", "journal_only", str(self._copy))
        if done.returncode not in IN_ORDER:
            raise LabError(f"e2fsck: status {done.returncode}: {done.stdout}{done.stderr}")

    def read(self, path: str) -> str | None:
        """The text of a file; None if there is none."""
        done = self._tool("debugfs", "-R", f"cat {path}", str(self._copy))
        return None if "File not found" in done.stderr else done.stdout

    def remove(self) -> None:
        """Remove the copy."""
        self._copy.unlink(missing_ok=True)

    @staticmethod
    def _tool(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words, env=ENVIRONMENT, capture_output=True, text=True, errors="replace", check=False
        )


def _data(file: int, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The parts of a file between two places that are no holes."""
    while start < end:
        try:
            start = os.lseek(file, start, os.SEEK_DATA)
        except OSError:
            return
        if start >= end:
            return
        hole = min(os.lseek(file, start, os.SEEK_HOLE), end)
        yield start, hole
        start = hole


def judge(
    volume: Volume, log: Path, changes: list[str], count: int, seed: random.Random
) -> tuple[int, list[str]]:
    """Cut the power at some moments after the first change; their number, and the problems.

    changes: the lines of the journal of this boot.
    """
    found = list(writelog.entries(log))
    lines = marked(log, found)
    begun = [number for number, line in enumerate(lines) if line]
    if not begun:
        return 0, []
    problems = []
    for _ in range(count):
        moment = seed.choice(begun)
        kept = writelog.survivors(found[: moment + 1], writelog.caches(seed))
        volume.after(log, kept)
        allowed = journal.possible(map(json.loads, changes[: lines[moment]]))
        problems += [
            f"cut after entry {moment} of {len(found)}, line {lines[moment]}: {text}"
            for text in files.problems(volume.read, allowed)
        ]
    volume.remove()
    return count, problems
