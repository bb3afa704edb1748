# SPDX-License-Identifier: LGPL-2.1-or-later
"""Recordings of top: a file with a JSON object a line, {"time": seconds since 1970, "rows": [...]}.

The rows are those of usage.py. `top --record` writes them, as `top --json -n` prints them.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from .errors import SutroError, UsageError

Dict = dict[str, Any]

ROW = {"unit": str, "cgroup": str, "device": str, "name": str, "fails": bool}
LINES = {"about": str, "key": str, "value": (int, float), "granted": (int, float)}
LINES |= {"got": (int, float), "state": str, "cause": str}
LEAVES = {"leaf": str, "share": (int, float), "weight": int}


@dataclass
class Record:
    """The rows at a time in seconds since 1970; `note` has the reason if they are old."""

    time_s: float
    rows: list[Dict] = field(default_factory=list)
    note: str = ""

    def line(self) -> str:
        """The record as a line of a file."""
        return json.dumps({"time": self.time_s, "rows": self.rows})


def _has(entry: Any, shape: dict[str, Any]) -> bool:
    """Is it an object with these keys and types of values?"""
    return isinstance(entry, dict) and all(
        isinstance(entry.get(key), kind) for key, kind in shape.items()
    )


def _all_have(entries: Any, shape: dict[str, Any]) -> bool:
    """Is it a list of such objects?"""
    return isinstance(entries, list) and all(_has(entry, shape) for entry in entries)


def _is_row(row: Any) -> bool:
    """Is it a row of usage.py?"""
    return (
        _has(row, ROW)
        and _all_have(row.get("lines"), LINES)
        and _all_have(row.get("leaves"), LEAVES)
    )


def parse(text: str) -> Record:
    """The record in a line; ValueError for any other text."""
    entry = json.loads(text)
    if not _has(entry, {"time": (int, float), "rows": list}) or not all(
        map(_is_row, entry["rows"])
    ):
        raise ValueError("this is no record of top")
    return Record(entry["time"], entry["rows"])


def read(file: str) -> list[Record]:
    """All records of a file; the last line may be cut off, as after a kill.

    UsageError with the line of a mistake, SutroError if the file cannot be read.
    """
    try:
        lines = Path(file).read_text().splitlines()
    except UnicodeDecodeError:
        raise UsageError(f"{file}: this is not UTF-8") from None
    except OSError as error:
        raise SutroError(f"{file}: {error.strerror}") from None
    found = []
    for number, line in enumerate(lines, 1):
        try:
            found.append(parse(line))
        except ValueError as error:
            if number < len(lines) or number == 1:
                raise UsageError(
                    f"{file}:{number}: {error}", "make one: sutroctl top --record FILE"
                ) from None
    if not found:
        raise UsageError(f"{file}: there is no record", "make one: sutroctl top --record FILE")
    return found


def create(file: str) -> TextIO:
    """A new file for records, each written at once; SutroError if it cannot be written."""
    try:
        return open(file, "w", buffering=1)
    except OSError as error:
        raise SutroError(f"{file}: {error.strerror}") from None
