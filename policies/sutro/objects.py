# SPDX-License-Identifier: LGPL-2.1-or-later
"""Objects in JSON that others wrote, checked against a shape before anything else reads them.

A shape is a Kind, a dict of shapes (an object with these fields), a list of one shape (a list of
such values), or one of the classes below:

    LEAF = {"leaf": STRING, "share": NUMBER}
    read('{"leaf": "sda", "share": 0.2, "more": 1}', LEAF) == {"leaf": "sda", "share": 0.2}
    read('{"leaf": "sda", "share": "x"}', LEAF)    Mistake: 'share' is missing or not a number ...

The result has the fields of the shape and no others, so no program uses one that was not checked.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

# Numbers of the daemon have 64 bits at most.
NUMBER_MOST = 2**64
# Python refuses to read whole numbers of more than 4300 digits.
DIGITS_MOST = 300
# No shape has it.
MISSING = object()


class Mistake(ValueError):
    """The text is not JSON, or a value in it is not of its shape."""


class NotJSON(Mistake):
    """The text is not JSON, as of a line that was cut off."""


class WrongField(Mistake):
    """A value in it is not of its shape; the message has the name of the field: "rows[0].unit"."""

    def __init__(self, expected: str, field: str = "") -> None:
        what = f"'{field}' is missing or not" if field else "this is not"
        super().__init__(f"{what} {expected}")
        self._expected, self._field = expected, field

    def within(self, name: str) -> "WrongField":
        """The same, as a part of a field or of an entry of a list."""
        dot = "." if self._field and not self._field.startswith("[") else ""
        return WrongField(self._expected, f"{name}{dot}{self._field}")


@dataclass(frozen=True)
class Kind:
    """Values that pass a check; `expected` describes them."""

    expected: str
    passes: Callable[[Any], bool]


@dataclass(frozen=True)
class Optional:
    """A field that may be missing or null. It has the default then; without one it is left out."""

    shape: Any
    default: Any = None


@dataclass(frozen=True)
class Map:
    """An object with any names, whose values have one shape."""

    shape: Any


def _is_text(value: Any) -> bool:
    """Is it a string that the names of files, terminals and the bus can carry?"""
    if not isinstance(value, str) or "\0" in value:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:  # half of a pair, "\ud800"
        return False
    return True


def is_number(value: Any, most: float = NUMBER_MOST) -> bool:
    """Is it a number from 0 to `most`? NaN is none, and neither is a truth value."""
    is_one = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_one and 0 <= value <= most


STRING = Kind("a string of UTF-8 without NUL", _is_text)
BOOL = Kind("true or false", lambda value: isinstance(value, bool))
NUMBER = Kind("a number from 0 to 2^64", is_number)


def _whole(digits: str) -> float:
    """A whole number in JSON; one with more digits than any field has is infinity."""
    return int(digits) if len(digits) <= DIGITS_MOST else float(digits)


def parse(text: str) -> Any:
    """The value of a text in JSON; NotJSON for any other text."""
    try:
        return json.loads(text, parse_int=_whole)
    except RecursionError:
        raise NotJSON("this is not JSON, or nests too deep") from None
    except ValueError as error:
        raise NotJSON(f"this is not JSON: {error}") from None


def checked(value: Any, shape: Any) -> Any:
    """The value with the fields of its shape; WrongField for another value."""
    if isinstance(shape, Kind):
        if not shape.passes(value):
            raise WrongField(shape.expected)
        return value
    if isinstance(shape, list):
        if not isinstance(value, list):
            raise WrongField("a list")
        return [_within(f"[{index}]", one, shape[0]) for index, one in enumerate(value)]
    if not isinstance(value, dict):
        raise WrongField("a JSON object")
    if isinstance(shape, Map):
        if not all(map(_is_text, value)):
            raise WrongField("an object whose names are strings of UTF-8 without NUL")
        return {name: _within(name, one, shape.shape) for name, one in value.items()}
    found = {}
    for name, inner in shape.items():
        one = value.get(name, MISSING)
        if not isinstance(inner, Optional):
            found[name] = _within(name, one, inner)
        elif one not in (None, MISSING):
            found[name] = _within(name, one, inner.shape)
        elif inner.default is not None:
            found[name] = inner.default
    return found


def _within(name: str, value: Any, shape: Any) -> Any:
    """As checked(), for a part of an object or list."""
    try:
        return checked(value, shape)
    except WrongField as error:
        raise error.within(name) from None


def read(text: str, shape: Any) -> Any:
    """The value of a text in JSON, with the fields of its shape; Mistake for any other text."""
    return checked(parse(text), shape)
