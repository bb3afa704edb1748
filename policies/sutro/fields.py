# SPDX-License-Identifier: LGPL-2.1-or-later
"""The fields that the files of policy programs have in common."""

from . import units, values
from .errors import SutroError
from .settings import Table


def unit(table: Table) -> str:
    """The key `unit`."""
    name = table.take("unit", str)
    try:
        return units.complete(name)
    except SutroError as error:
        raise table.wrong("unit", error.message) from None


def key(table: Table, allowed: tuple[str, ...], name: str = "key") -> str:
    """The key that names a key of a policy."""
    key = table.take(name, str)
    if key not in allowed:
        raise table.wrong(name, f"{name} = '{key}' is not known: allowed is {', '.join(allowed)}")
    return key


def path(table: Table) -> str:
    """The key `path`, "" when it is not there."""
    path = table.take("path", str, "")
    bad = not path.startswith("/") or ".." in path.split("/") or not path.isprintable()
    if path and (bad or len(path.encode()) > 4095):
        raise table.wrong("path", f"path = '{path[:80]}': allowed is an absolute path without ..")
    return path


def value(table: Table, name: str, key: str, text: str) -> str:
    """A value as it was written, if it is one."""
    try:
        values.check(key, text)
    except SutroError as error:
        raise table.wrong(name, error.message) from None
    return text.strip()
