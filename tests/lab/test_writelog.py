# SPDX-License-Identifier: LGPL-2.1-or-later
"""Writes of a disk that a power cut leaves there: logs in the format of QEMU's blklogwrites."""

import random
import struct
from pathlib import Path

import pytest

from lab import writelog
from lab.writelog import DISCARD, ENTRY, FLUSH, MAGIC, SECTOR_BYTES, SUPER

# A write of a sector with these bytes to this sector, or a flush.
Write = tuple[int, bytes] | None
WRITES: list[Write] = [(1, b"a"), (2, b"b"), None, (1, b"c"), (3, b"x")]


def log_of(path: Path, writes: list[Write], count: int | None = None, flags: int = 0) -> Path:
    """A log; count: the number of entries that its first sector has."""
    data = SUPER.pack(MAGIC, 1, len(writes) if count is None else count, SECTOR_BYTES)
    data = data.ljust(SECTOR_BYTES, b"\0")
    for write in writes:
        head = ENTRY.pack(0, 0, FLUSH, 0) if write is None else ENTRY.pack(write[0], 1, flags, 0)
        data += head.ljust(SECTOR_BYTES, b"\0")
        if write:
            data += write[1] * SECTOR_BYTES
    path.write_bytes(data + bytes(4 * SECTOR_BYTES))
    return path


def disk(path: Path, sectors: str) -> bytes:
    """The content of a disk, a letter for each sector; a point is a sector of zeros."""
    return b"".join((b"\0" if s == "." else s.encode()) * SECTOR_BYTES for s in sectors)


@pytest.mark.parametrize(
    ("survives", "sectors", "counts"),
    [(True, ".cbx", (4, 0)), (False, ".ab.", (2, 2))],
)
def test_writes_after_the_last_flush(
    tmp_path: Path, survives: bool, sectors: str, counts: tuple[int, int]
) -> None:
    """Those before it are on the disk in any case."""
    log, target = log_of(tmp_path / "log", WRITES), tmp_path / "disk"
    target.write_bytes(bytes(4 * SECTOR_BYTES))
    assert writelog.applied(log, target, lambda: survives) == counts
    assert target.read_bytes() == disk(target, sectors)


def test_each_write_is_lost_or_not(tmp_path: Path) -> None:
    log, target = log_of(tmp_path / "log", WRITES), tmp_path / "disk"
    target.write_bytes(bytes(4 * SECTOR_BYTES))
    answers = iter((False, True))
    assert writelog.applied(log, target, lambda: next(answers)) == (3, 1)
    assert target.read_bytes() == disk(target, ".abx")


def test_count_of_a_kill_is_behind(tmp_path: Path) -> None:
    """All entries up to the first one of zeros are there."""
    log = log_of(tmp_path / "log", WRITES, count=1)
    assert len(list(writelog.entries(log))) == len(WRITES)


def test_machine_that_never_wrote(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(bytes(2 * SECTOR_BYTES))
    assert list(writelog.entries(tmp_path / "log")) == []


def test_another_file_is_no_log(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"x" * SECTOR_BYTES)
    with pytest.raises(ValueError, match="no log of writes"):
        list(writelog.entries(tmp_path / "log"))


def test_discard_is_an_error(tmp_path: Path) -> None:
    log = log_of(tmp_path / "log", WRITES, flags=DISCARD)
    with pytest.raises(ValueError, match="discard"):
        list(writelog.entries(log))


def test_caches_keep_all_or_nothing_or_each() -> None:
    seed = random.Random(1)
    kinds = set()
    for _ in range(50):
        survives = writelog.caches(seed)
        kinds.add(frozenset(survives() for _ in range(50)))
    assert kinds == {frozenset({True}), frozenset({False}), frozenset({True, False})}


def test_overlay(tmp_path: Path) -> None:
    """The header names the size and a table for it; the rest is without data."""
    overlay = tmp_path / "overlay"
    writelog.empty_overlay(overlay, 5 << 30)
    text = overlay.read_bytes()
    magic, version = struct.unpack_from(">4sI", text)
    size, _crypt, tables, at = struct.unpack_from(">QIIQ", text, 24)
    assert (magic, version, size, tables) == (b"QFI\xfb", 2, 5 << 30, 10)
    assert len(text) == 4 << writelog.CLUSTER_BITS and not any(text[at:])
    with pytest.raises(ValueError, match="too many"):
        writelog.empty_overlay(overlay, 1 << 50)
