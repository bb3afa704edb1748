# SPDX-License-Identifier: LGPL-2.1-or-later
"""Settings that change until the power is cut, and the values that each may have afterwards.

The journal is a file on the host, so it survives the power cut. A line is a JSON object: a setting
is about to get a value, or has it. A change that is whole before the cut is kept if its setting is
durable; systemd syncs no drop-in, so a weight of a unit may be an earlier one. In an example, db's
floor may be 3 or 4 million, and batch's weight may be 100, 200 or 300:

    {"setting": "floor", "value": 2000000, "whole": true}
    {"setting": "weight", "value": 100, "whole": true}
    {"setting": "floor", "value": 3000000, "whole": false}
    {"setting": "floor", "value": 3000000, "whole": true}
    {"setting": "weight", "value": 200, "whole": false}
    {"setting": "weight", "value": 200, "whole": true}
    {"setting": "weight", "value": 300, "whole": false}
    {"setting": "floor", "value": 4000000, "whole": false}
"""

import json
import mmap
import os
from collections.abc import Iterable
from pathlib import Path

JOURNAL = Path("/mnt/out/changes")
# The number of lines is also in a block of this volume, which is written past all caches. So the
# log of writes to the disks has the order of both (tests/lab/crashes.py).
MARKS, MAGIC, MARK_BYTES = "/dev/lab/marks", b"sutro-journal-", 4096
# Their changes are on the disk when the command ends.
DURABLE = ("floor", "ceiling", "policy", "file")


def note(setting: str, value: int, *, whole: bool) -> None:
    """Add a line; it is on the host when this returns."""
    line = json.dumps({"setting": setting, "value": value, "whole": whole}) + "\n"
    with open(JOURNAL, "ab", buffering=0) as file:
        file.write(line.encode())


def mark() -> None:
    """Write the number of lines to the volume for marks."""
    lines = len(JOURNAL.read_text().splitlines())
    block = mmap.mmap(-1, MARK_BYTES)
    block.write(MAGIC + str(lines).encode())
    file = os.open(MARKS, os.O_WRONLY | os.O_DIRECT)
    try:
        os.write(file, block)
    finally:
        os.close(file)


def begin(values: dict[str, int]) -> None:
    """Make a journal in which the settings have these values."""
    JOURNAL.unlink(missing_ok=True)
    for setting, value in values.items():
        note(setting, value, whole=True)


def read(journal: Path = JOURNAL) -> dict[str, list[int]]:
    """The values that each setting may have, the newest last."""
    return possible(map(json.loads, journal.read_text().splitlines()))


def possible(changes: Iterable[dict]) -> dict[str, list[int]]:
    """The values that each setting may have after these changes."""
    found: dict[str, list[int]] = {}
    for one in changes:
        setting, value = one["setting"], one["value"]
        if one["whole"] and setting in DURABLE:
            found[setting] = [value]
        else:
            found[setting] = [*found.get(setting, []), value]
    return found


def sync() -> None:
    """All that systemd has written is on the disk."""
    os.sync()
