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

from . import objects
from .errors import SutroError, of_file
from .objects import BOOL, NUMBER, STRING, Kind, Optional, is_number

Dict = dict[str, Any]

# The end of the year 9999.
TIME_MOST_S = 253_402_300_799
TIME = Kind("a number of seconds from 0 to the year 9999", lambda v: is_number(v, TIME_MOST_S))
# Not each recording has all of these fields.
LINE = {"about": STRING, "key": STRING, "path": Optional(STRING), "percent": Optional(NUMBER)}
# A ceiling of infinity has null.
LINE |= {"value": Kind(f"{NUMBER.expected}, or null", lambda v: v is None or is_number(v))}
LINE |= {"granted": NUMBER, "got": NUMBER, "state": STRING, "cause": STRING}
LEAF = {"leaf": STRING, "share": NUMBER, "weight": NUMBER}
ROW = {"unit": STRING, "cgroup": STRING, "device": STRING, "name": STRING, "fails": BOOL}
ROW |= {"lines": [LINE], "leaves": [LEAF]}
RECORD = {"time": TIME, "rows": [ROW]}
REMEDY = "make one: sutroctl top --record FILE"


@dataclass
class Record:
    """The rows at a time in seconds since 1970; `note` has the reason if they are old."""

    time_s: float
    rows: list[Dict] = field(default_factory=list)
    note: str = ""

    def line(self) -> str:
        """The record as a line of a file."""
        return json.dumps({"time": self.time_s, "rows": self.rows})


def read(file: str) -> list[Record]:
    """All records of a file; the last line may be cut off, as after a kill.

    SutroError with the line of a mistake, or if the file cannot be read.
    """
    try:
        # Lines of JSON have no other separator: a string may have U+2028.
        lines = Path(file).read_text(encoding="utf-8").split("\n")
    except UnicodeDecodeError:
        raise SutroError(f"{file}: this is not UTF-8", REMEDY) from None
    except OSError as error:
        raise of_file(file, error) from None
    found = []
    for number, line in enumerate(lines, 1):
        try:
            if line.strip():
                record = objects.read(line, RECORD)
                found.append(Record(record["time"], record["rows"]))
        except objects.Mistake as error:
            is_cut = isinstance(error, objects.NotJSON) and number == len(lines)
            if not is_cut or not found:
                raise SutroError(
                    f"{file}:{number}: this line is not a record of sutroctl top: {error}", REMEDY
                ) from None
    if not found:
        raise SutroError(f"{file}: there is no record", REMEDY)
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
