# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tables of scenario files (TOML): reading them, and saying exactly what is wrong with one.

Every message begins with `where`: the file, the scenario, the table. A table becomes a dataclass
whose fields are named as the keys; a key that Python has taken (`class`) gets a `_` behind it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import MISSING, fields
from pathlib import Path


class ScenarioError(ValueError):
    """A file that cannot be run; the text names file, scenario and key."""


def read(file: str | Path, keys: Collection[str]) -> dict:
    """A TOML document that has at most these keys."""
    try:
        document = tomllib.loads(Path(file).read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ScenarioError(f"{file}: {error}") from error
    unknown = set(document) - set(keys)
    if unknown:
        there = " and ".join(sorted(keys))
        raise ScenarioError(f"{file}: unknown key {min(unknown)!r}; there are {there}")
    return document


def tables(where: str, keys: Mapping[str, object], key: str) -> list[dict]:
    """A table or a list of tables, as a list."""
    found = keys.get(key, [])
    found = [found] if isinstance(found, dict) else found
    if not isinstance(found, list) or not all(isinstance(part, dict) for part in found):
        raise ScenarioError(f"{where}: {key}: must be a table or a list of tables")
    return found


def listed(where: str, keys: Mapping[str, object], key: str) -> list:
    """A list."""
    if not isinstance(keys[key], list):
        raise ScenarioError(f"{where}: {key}: must be a list")
    return keys[key]


TYPES = {
    "str": str, "int": int, "bool": bool, "float": (int, float), "str | None": str,
    "int | None": int, "float | None": (int, float),
}  # fmt: skip


def made(where: str, kind: type, keys: Mapping[str, object]):
    """A dataclass from a table; unknown, missing and mistyped keys are named."""
    known = {part.name: part for part in fields(kind)}
    for key, value in keys.items():
        shown = key.rstrip("_")
        if key not in known:
            there = ", ".join(sorted(name.rstrip("_") for name in known))
            raise ScenarioError(f"{where}: {shown}: unknown key; there are {there}")
        wanted = TYPES.get(known[key].type)
        mistaken = isinstance(value, bool) and wanted is not bool
        if wanted and (mistaken or not isinstance(value, wanted)):
            raise ScenarioError(f"{where}: {shown}: {value!r} is no {known[key].type.split()[0]}")
        if known[key].type.startswith("Mapping") and not isinstance(value, dict):
            raise ScenarioError(f"{where}: {shown}: must be a table")
    for name, part in known.items():
        if name not in keys and part.default is MISSING and part.default_factory is MISSING:
            raise ScenarioError(f"{where}: {name}: is missing")
    return kind(**keys)


def unique(where: str, names: Sequence[str]) -> None:
    """No name is used twice."""
    for name in names:
        if names.count(name) > 1:
            raise ScenarioError(f"{where} {name}: the name is used twice")
