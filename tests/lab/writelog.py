# SPDX-License-Identifier: LGPL-2.1-or-later
"""Writes of a virtual disk, and the disk after a power cut.

QEMU writes to an empty overlay, and its driver blklogwrites logs each write and flush in the format
of dm-log-writes. The disk itself stays as it was until the machine has ended. Then the writes of
the log go there: all of them, or of those after the last flush only some, as on a disk with a
volatile cache that loses its power.

    sector 0     magic, version, number of entries, bytes of a sector
    an entry     a sector: first sector, number of sectors, flags; then the data of a write
"""

import os
import random
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

SUPER, ENTRY = struct.Struct("<QQQI"), struct.Struct("<QQQQ")
MAGIC, VERSION = 0x6A736677736872, 1
SECTOR_BYTES = 512
FLUSH, DISCARD = 1, 4
# The log is sparse.
LOG_BYTES = 64 << 30
CLUSTER_BITS = 16
CLUSTER_BYTES = 1 << CLUSTER_BITS


@dataclass(frozen=True)
class Entry:
    """A write of some bytes, at `at` in the log, to `to` on the disk; without bytes, a flush."""

    to: int
    at: int
    bytes: int
    flush: bool


def entries(log: Path) -> Iterator[Entry]:
    """The entries of a log in their order.

    The count in the first sector may be behind after a kill: an entry that is all zeros is the end.
    """
    with open(log, "rb") as file:
        magic, version, count, sector_bytes = SUPER.unpack(file.read(SUPER.size))
        if not magic and not count:
            return
        if (magic, version, sector_bytes) != (MAGIC, VERSION, SECTOR_BYTES):
            raise ValueError(f"{log} is no log of writes with sectors of {SECTOR_BYTES} bytes")
        at = SECTOR_BYTES
        while True:
            file.seek(at)
            head = file.read(ENTRY.size)
            if len(head) < ENTRY.size or not any(head):
                return
            first, sectors, flags, _ = ENTRY.unpack(head)
            if flags & DISCARD:
                raise ValueError(f"{log} has a discard, which its disk does not offer")
            at += SECTOR_BYTES
            yield Entry(first * SECTOR_BYTES, at, sectors * SECTOR_BYTES, bool(flags & FLUSH))
            at += sectors * SECTOR_BYTES


def survivors(found: list[Entry], survives: Callable[[], bool]) -> list[Entry]:
    """The writes of some entries that a power cut after the last one leaves on the disk.

    A flush covers all writes before it. survives() decides about each write after the last one.
    """
    flushed = max((number for number, one in enumerate(found) if one.flush), default=-1)
    return [
        one for number, one in enumerate(found) if one.bytes and (number < flushed or survives())
    ]


def applied(log: Path, disk: Path, survives: Callable[[], bool] = lambda: True) -> tuple[int, int]:
    """Write the survivors of a log to the disk; the numbers of those written and of those lost."""
    found = list(entries(log))
    kept = survivors(found, survives)
    with open(log, "rb") as source, open(disk, "r+b") as target:
        for one in kept:
            os.pwrite(target.fileno(), os.pread(source.fileno(), one.bytes, one.at), one.to)
    return len(kept), sum(bool(one.bytes) for one in found) - len(kept)


def caches(seed: random.Random) -> Callable[[], bool]:
    """For writes of one disk after its last flush: all of them survive, none, or each by chance."""
    part = seed.choice((0.0, 0.5, 1.0))
    return lambda: seed.random() < part


def empty_overlay(path: Path, size_bytes: int) -> None:
    """Make a qcow2 image without data; the one behind it is named on QEMU's command line."""
    tables = -(-size_bytes // (CLUSTER_BYTES * CLUSTER_BYTES // 8))
    if tables * 8 > CLUSTER_BYTES:
        raise ValueError(f"{size_bytes} bytes are too many for one cluster of tables")
    header = struct.pack(
        ">4sIQIIQIIQQIIQ", b"QFI\xfb", 2, 0, 0, CLUSTER_BITS, size_bytes, 0, tables,
        3 * CLUSTER_BYTES, CLUSTER_BYTES, 1, 0, 0,
    )  # fmt: skip
    with open(path, "wb") as file:
        file.write(header)
        # The table of reference counts, its one block with the four clusters here, an empty table.
        os.pwrite(file.fileno(), struct.pack(">Q", 2 * CLUSTER_BYTES), CLUSTER_BYTES)
        os.pwrite(file.fileno(), struct.pack(">4H", 1, 1, 1, 1), 2 * CLUSTER_BYTES)
        file.truncate(4 * CLUSTER_BYTES)
