# SPDX-License-Identifier: LGPL-2.1-or-later
"""Lines of sutrod.conf that declare the capacity of a device, and the one that is in force.

sutrod.conf                                  Device=/dev/vg/db read=1G
sutrod.conf.d/50-capacity-dev-vg-db.conf     Device=/dev/vg/db read=225M   replaces it
sutrod.conf.d/60-local.conf                  Device=/srv read=400M         the same device
sutrod.conf.d/70-none.conf                   Device=                       removes all
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from . import reach
from .errors import SutroError
from .policy import text_of

FILE = "/etc/sutro/sutrod.conf"
# Of files with one name the first counts.
FOLDERS = tuple(f"{top}/sutro/sutrod.conf.d" for top in ("/etc", "/run", "/usr/lib"))


@dataclass(frozen=True)
class Line:
    """A line Device= in a file; the path is "" in a line that removes all before."""

    file: str
    number: int
    value: str

    @property
    def path(self) -> str:
        """The path of the device."""
        return (self.value.split() or [""])[0]

    def __str__(self) -> str:
        """As a remedy names it."""
        return f"line {self.number} of {self.file}: Device={self.value}".rstrip()


def _files() -> list[str]:
    """The files in the order in which sutrod reads them."""
    found: dict[str, str] = {}
    for folder in FOLDERS:
        with contextlib.suppress(OSError):
            for file in Path(reach.ROOT + folder).iterdir():
                if file.name.endswith(".conf") and not file.name.startswith("."):
                    found.setdefault(file.name, f"{folder}/{file.name}")
    return [FILE, *(found[name] for name in sorted(found, key=str.encode))]


def lines() -> Iterator[Line]:
    """All lines Device= of files that can be read; of two lines for a path the later one counts."""
    for file in _files():
        section = ""
        with contextlib.suppress(SutroError):
            for number, text in enumerate(text_of(reach.ROOT + file).split("\n"), 1):
                key, equals, value = (part.strip() for part in text.partition("="))
                if key.startswith("["):
                    section = key.partition("]")[0][1:]
                elif section == "Capacity" and key == "Device" and equals:
                    yield Line(file, number, value)


def shadowing(path: str, file: str, listed: set[str]) -> Line | None:
    """The line because of which the one of a path in a file is not in force.

    `listed` are the paths to the same device whose capacities sutrod lists.
    """
    before: list[Line] = []
    after: list[Line] | None = None
    for line in lines():
        if (line.file, line.path) == (file, path):
            after = []
        elif after is None and line.path in listed - {path}:
            before.append(line)
        elif after is not None and line.path in listed | {path, ""}:
            after.append(line)
    return next(reversed(after or before), None)
