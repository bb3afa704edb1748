# SPDX-License-Identifier: LGPL-2.1-or-later
"""Fields that the files of several policy programs have. Each raises UsageError with the line."""

from . import units, values
from .errors import SutroError, UsageError
from .settings import Table


def unit(table: Table) -> str:
    """The key `unit`: a unit, with .service added if it has no type, or the path of a cgroup."""
    name = table.take("unit", str)
    try:
        if "\0" in name:
            raise UsageError(f"unit = {name!r}: allowed is a name without NUL")
        return units.subject(name)
    except SutroError as error:
        raise table.wrong("unit", error.message) from None


def key(table: Table, allowed: tuple[str, ...], name: str = "key") -> str:
    """A key of a policy: the value of the key `name` of the table, one of `allowed`."""
    key = table.take(name, str)
    if key not in allowed:
        raise table.wrong(name, f"{name} = '{key}' is not known: allowed is {', '.join(allowed)}")
    return key


def path(table: Table) -> str:
    """The key `path`: an absolute path, or "" if the table has none."""
    path = table.take("path", str, "")
    bad = not path.startswith("/") or ".." in path.split("/") or not path.isprintable()
    if path and (bad or len(path.encode()) > 4095):
        raise table.wrong("path", f"path = '{path[:80]}': allowed is an absolute path without ..")
    return path


def number(table: Table, name: str, key: str, text: str, note: str = "") -> int:
    """`text`, the value of the table's key `name`, as a number in the unit of the policy key `key`.

    A percentage and a percentile are none; `note` follows the allowed values.
    """
    try:
        return values.parse(key, text)
    except SutroError as error:
        raise table.wrong(name, error.message + note) from None


def value(table: Table, name: str, key: str, text: str) -> str:
    """`text`, the value of the table's key `name`, if it is valid for the policy key `key`."""
    try:
        values.check(key, text)
    except SutroError as error:
        raise table.wrong(name, error.message) from None
    return text.strip()
