# SPDX-License-Identifier: LGPL-2.1-or-later
"""The TOML file of a policy program, with errors that name the line.

tomllib reports where the syntax breaks, but not the lines of values. For these the file is read
once more, for headers and keys only:

    [[promise]]              ("promise", 0)
    unit = "a.service"       ("promise", 0), "unit"
    [[promise.window]]       ("promise", 0, "window", 0)

A value in an inline table has the line of the key of that table. In a multi-line string, a line
that looks like a header leads to a wrong number of a line, and to nothing else.
"""

import re
import tomllib
from pathlib import Path
from typing import Any

from .errors import UsageError, of_file

MISSING = object()
WHAT = {str: "a string", list: "a list", dict: "a table"}
# A file that a person wrote is smaller.
LARGEST_BYTES = 1 << 20

Where = tuple[str | int, ...]


class Lines:
    """The line of each key and each header, from 1."""

    def __init__(self, text: str) -> None:
        self._found: dict[tuple[Where, str], int] = {}
        counts: dict[tuple[str, ...], int] = {}
        where: Where = ()
        for number, line in enumerate(text.splitlines(), 1):
            if header := re.match(r"\s*(\[\[?)([^\[\]]+)\]", line):
                names = tuple(part.strip().strip("\"'") for part in header[2].split("."))
                if header[1] == "[[":
                    counts[names] = counts.get(names, -1) + 1
                    # Arrays below it are counted from the start in each.
                    for inner in [key for key in counts if key[:-1][: len(names)] == names]:
                        del counts[inner]
                where = self._numbered(names, counts)
                self._found.setdefault((where, ""), number)
            elif key := re.match(r"\s*[\"']?([\w-]+)[\"']?\s*=", line):
                self._found.setdefault((where, key[1]), number)

    @staticmethod
    def _numbered(names: tuple[str, ...], counts: dict[tuple[str, ...], int]) -> Where:
        """The place of a header: its names, each with its number if it is an array of tables."""
        where: Where = ()
        for depth, name in enumerate(names, 1):
            count = counts.get(names[:depth])
            where += (name,) if count is None else (name, count)
        return where

    def line(self, where: Where, key: str) -> int:
        """The line of a key, else of the nearest table around it."""
        headers = ((*where, key), (*where, key, 0), where)  # the key may be a table
        for place in ((where, key), *((header, "") for header in headers)):
            if place in self._found:
                return self._found[place]
        if not where:
            return 1
        outer = where[:-2] if isinstance(where[-1], int) else where[:-1]
        return self.line(outer, str(where[len(outer)]))


class Table:
    """A table of the file. Each key is taken once; finish() refuses the other keys."""

    def __init__(self, file: str, lines: Lines, values: dict[str, Any], where: Where = ()) -> None:
        self._file, self._lines, self._values, self._where = file, lines, values, where
        self._known: list[str] = []

    def wrong(self, key: str, what: str) -> UsageError:
        """The failure for a mistake in a key, with file and line."""
        return UsageError(f"{self._file}:{self._lines.line(self._where, key)}: {what}")

    def take(self, key: str, kind: type, default: Any = MISSING) -> Any:
        """The value of a key; UsageError for another type, and without a value and a default."""
        self._known.append(key)
        value = self._values.get(key, default)
        if value is MISSING:
            raise self.wrong("", f"'{key}' is missing here")
        if value is not default and not isinstance(value, kind):
            raise self.wrong(key, f"{key} = {value!r}: allowed is {WHAT[kind]}")
        return value

    def tables(self, key: str) -> list["Table"]:
        """The tables of an array, none without it; UsageError if it is no array of tables."""
        found = self.take(key, list, [])
        if any(not isinstance(entry, dict) for entry in found):
            raise self.wrong(key, f"{key}: allowed are tables, each begun by a line [[{key}]]")
        inner = [(*self._where, key, number) for number in range(len(found))]
        return [
            Table(self._file, self._lines, entry, where)
            for entry, where in zip(found, inner, strict=True)
        ]

    def finish(self) -> None:
        """UsageError for a key that was not taken: a typing error."""
        for key in self._values:
            if key not in self._known:
                known = ", ".join(self._known)
                raise self.wrong(key, f"'{key}' is not known here: allowed is {known}")


def load(file: str) -> Table:
    """Read a file; UsageError for a mistake, with file, line and the allowed values."""
    try:
        with Path(file).open("rb") as stream:
            raw = stream.read(LARGEST_BYTES + 1)
        if len(raw) > LARGEST_BYTES:
            raise UsageError(
                f"{file}: is larger than {LARGEST_BYTES} bytes", "divide it, or name another file"
            )
        text = raw.decode()
        return Table(file, Lines(text), tomllib.loads(text))
    except OSError as error:
        raise of_file(file, error, UsageError) from None
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise UsageError(
            f"{file}:{line}: this is not UTF-8", "write the file as UTF-8 text"
        ) from None
    except (ValueError, RecursionError) as error:
        if not isinstance(error, (tomllib.TOMLDecodeError, RecursionError)):
            # Python reads no whole number with more digits.
            before = re.split("[0-9_]{4300}", text)[0]
            line = before.count("\n") + 1
            what = "a number has too many digits: allowed are 4300"
            raise UsageError(f"{file}:{line}: {what}") from None
        found = re.search(r"line (\d+)", str(error))
        line = found[1] if found else text.count("\n") + 1
        raise UsageError(f"{file}:{line}: {error}", "correct this line: it is no TOML") from None
