# SPDX-License-Identifier: LGPL-2.1-or-later
"""Recordings of top: a file with a JSON object a line, {"time": seconds since 1970, "rows": [...]}.

The rows are those of usage.py. `top --record` writes them, as `top --json -n` prints them.
"""

import contextlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .errors import UsageError, of_file

Dict = dict[str, Any]

ROW = {"unit": str, "cgroup": str, "device": str, "name": str, "fails": bool}
# Numbers of the daemon have 64 bits at most.
NUMBER_MOST = 2**64
# The end of the year 9999.
TIME_MOST_S = 253_402_300_799


def is_number(value: Any, most: float = NUMBER_MOST) -> bool:
    """Is it a number from 0 to `most`? NaN is none."""
    return isinstance(value, (int, float)) and 0 <= value <= most


def _is_value(value: Any) -> bool:
    """Is it the value of a line? None is infinity."""
    return value is None or is_number(value)


LINES = {"about": str, "key": str, "value": _is_value, "granted": is_number}
LINES |= {"got": is_number, "state": str, "cause": str}
LEAVES = {"leaf": str, "share": is_number, "weight": is_number}
RECORD = {"time": lambda value: is_number(value, TIME_MOST_S), "rows": list}


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
    """Is it an object with these keys, with values of these types or that pass these checks?"""
    return isinstance(entry, dict) and all(
        isinstance(entry.get(key), kind) if isinstance(kind, type) else kind(entry.get(key))
        for key, kind in shape.items()
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
    try:
        entry = json.loads(text)
    except RecursionError:
        raise ValueError("this line is not a record of sutroctl top") from None
    if not _has(entry, RECORD) or not all(map(_is_row, entry["rows"])):
        raise ValueError("this line is not a record of sutroctl top")
    return Record(entry["time"], entry["rows"])


def read(file: str) -> list[Record]:
    """All records of a file; the last line may be cut off, as after a kill.

    UsageError with the line of a mistake, SutroError if the file cannot be read.
    """
    try:
        lines = Path(file).read_text().splitlines()
    except UnicodeDecodeError:
        raise UsageError(
            f"{file}: this is not UTF-8", "make one: sutroctl top --record FILE"
        ) from None
    except OSError as error:
        raise of_file(file, error) from None
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


@contextlib.contextmanager
def create(file: str) -> Iterator[Callable[[Record], None]]:
    """A context whose function writes a record to a new file, at once.

    SutroError if the file cannot be written.
    """

    def write(record: Record) -> None:
        left = memoryview(f"{record.line()}\n".encode())
        try:
            while left:
                left = left[out.write(left) :]
        except OSError as error:
            raise of_file(file, error) from None

    try:
        # Without a buffer, so that closing it after a failure writes nothing.
        out = open(file, "wb", buffering=0)
    except OSError as error:
        raise of_file(file, error) from None
    with out:
        yield write
