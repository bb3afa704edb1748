# SPDX-License-Identifier: LGPL-2.1-or-later
"""Units that use the volume of a database, without end.

dd      a backup of the volume: `dd bs=16M iflag=direct`
tar     a backup of files: tar through the page cache, which keeps none of them
flood   a buffered writer, `dd` to a file
bounded the same, with MemoryHigh=, so that its dirty pages have a limit of their own
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from rig.shell import run
from rig.unit import Unit, dd_readers, dd_writer

from bench.applications.application import COUNTED

BACKUP_KIB = 16 << 10
ARCHIVE_MB = 192
ARCHIVE_FILES = 12
FLOOD_MB = 256
BOUNDED_HIGH = "48M"


class Competitor:
    """One of them, on the file system in a folder and the device below it."""

    def __init__(self, name: str, folder: Path, device: str):
        self.name = name
        self._folder = folder
        self._device = device
        self._flood = folder / "flood"
        self._archive = folder / "archive"

    def prepare(self) -> None:
        """Make what it reads."""
        if self.name != "tar":
            return
        self._archive.mkdir()
        count = ARCHIVE_MB // ARCHIVE_FILES
        for number in range(ARCHIVE_FILES):
            # Past the page cache: all of it is read from the disks.
            words = ("bs=1M", f"count={count}", "oflag=direct", "conv=fsync", "status=none")
            run("dd", "if=/dev/zero", f"of={self._archive}/{number}", *words)

    def unit(self) -> Unit:
        """Its service."""
        if self.name == "dd":
            size_mb = int(run("blockdev", "--getsize64", self._device)) >> 20
            command = dd_readers(self._device, BACKUP_KIB, 1, size_mb)
            return Unit("backup", command, properties=COUNTED)
        if self.name == "tar":
            folder = shlex.quote(str(self._folder))
            one = f"tar --create --directory={folder} archive | cat >/dev/null"
            properties = {**COUNTED, "MemoryMax": "64M"}
            return Unit("backup", f"while {one}; do :; done", properties=properties)
        properties = COUNTED | ({"MemoryHigh": BOUNDED_HIGH} if self.name == "bounded" else {})
        return Unit("flood", dd_writer(str(self._flood), FLOOD_MB), properties=properties)

    def clean(self) -> None:
        """Leave nothing in memory of its writes, and of the reads of the next competitor.

        The pages of a service that has ended no longer count for its MemoryMax=.
        """
        self._flood.unlink(missing_ok=True)
        for file in self._archive.glob("*"):
            with file.open("rb") as opened:
                os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
