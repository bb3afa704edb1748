# SPDX-License-Identifier: LGPL-2.1-or-later
"""Scenario files: from TOML to dataclasses, with exact messages about mistakes.

A file is a dataclass, and so is each table in it. The type of a field is the rule for its key:

    name: str                                   without a default, the key must be there
    weight: Annotated[int, Range(1, 10000)]     bounds
    rw: Annotated[str, OneOf("read", "write")]  allowed values
    unit: tuple[Unit, ...]                      a list of tables; a single table is a list of one
    goal: tuple[Goal, ...]                      the same; each may be a text (rig.result.Goal.parse)
    job: Mapping[str, Job]                      tables by name
    disk: Annotated[Table, Named("disk")]       a table, or the name of one of the tables `disk`
                                                that the file has before

A file has its lists of tables as tables by name: [scenario.NAME]. Such a table may have `like`, the
name of an earlier table, whose keys it inherits unless it states them itself. Keys in [common] hold
for each scenario without them; each goal of the file is added to the goals of each scenario.

A key that is a keyword of Python (`class`) is a field with a `_` behind it. A dataclass may have
two methods: check() raises ValueError for well-formed values that are wrong, and expand() yields
the entries that one entry of a list stands for. A message has file, table and key, then the wrong
value, then the allowed ones:

    a.toml: scenario one: unit db: weight: 0 is not 1 to 10000

./lab reads files on hosts that have Python's own library only.
"""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from math import inf
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

from rig.result import Goal

Table = Mapping[str, object]
File = TypeVar("File")
Names = Mapping[str, Mapping[str, object]]


class ScenarioError(ValueError):
    """A file that cannot be run; the text names file, table and key."""


@dataclass(frozen=True)
class Range:
    """Bounds of a number; `above`: the lower one is not allowed itself."""

    least: float = -inf
    most: float = inf
    above: bool = False

    def check(self, value: Any) -> None:
        """Raise ValueError unless the number is within the bounds."""
        if not self.least <= value <= self.most or (self.above and value == self.least):
            raise ValueError(f"{value!r} is not {self}")

    def __str__(self) -> str:
        if self.above:
            return f"above {self.least:g}" + (f" to {self.most:g}" if self.most < inf else "")
        return f"{self.least:g} to {self.most:g}" if self.most < inf else f"at least {self.least:g}"


class OneOf:
    """Allowed values."""

    def __init__(self, *values: str):
        self.values = values

    def check(self, value: Any) -> None:
        """Raise ValueError unless it is one of them."""
        if value not in self.values:
            raise ValueError(f"{value!r} is none of {', '.join(self.values)}")


class Has:
    """Keys that a table must have, whatever else it has."""

    def __init__(self, *keys: str):
        self.keys = keys

    def check(self, value: Any) -> None:
        """Raise ValueError for a key that is not there."""
        for key in self.keys:
            if key not in value:
                raise ValueError(f"{key}: is missing")


class NotEmpty:
    """A text, list or table in which there is something."""

    def check(self, value: Any) -> None:
        """Raise ValueError for an empty one."""
        if not value:
            raise ValueError("is empty")


@dataclass(frozen=True)
class Named:
    """The name of a table under this key of the file, or the table itself; or a list of names."""

    key: str


@dataclass(frozen=True)
class OrOne:
    """A list, or its only entry."""


Name = Annotated[str, NotEmpty()]
Positive = Annotated[float, Range(0, above=True)]
Count = Annotated[int, Range(1)]
Weight = Annotated[int, Range(1, 10000)]


def load(kind: type[File], file: str | Path) -> File:
    """Read a file."""
    try:
        document = tomllib.loads(Path(file).read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ScenarioError(f"{file}: {error}") from error
    common = _table(f"{file}: common", document.pop("common", {}))
    if "goal" in common:
        common["goal"] = _goals(f"{file}: common: goal", common["goal"])
    goals = _goals(f"{file}: goal", document.pop("goal", []))
    for key, hint in _hints(kind).items():
        if key in document and get_origin(hint) is tuple:
            document[key] = _entries(f"{file}: {key}", document[key])
    for table in document.get("scenario", []):
        table.update({key: value for key, value in common.items() if key not in table})
        if goals:
            table["goal"] = table.get("goal", []) + goals
    return _made(str(file), kind, document, {}, is_file=True)


def _entries(where: str, raw: object) -> list[dict[str, Any]]:
    """Tables by name as a list; each that is `like` another one has the keys of that."""
    before: dict[str, dict[str, Any]] = {}
    for name, part in _table(where, raw).items():
        table = _table(f"{where}: {name}", part)
        if "name" in table:
            raise ScenarioError(f"{where} {name}: name: unknown key; the name is {name}")
        if "goal" in table:
            table["goal"] = _goals(f"{where} {name}: goal", table["goal"])
        if "like" in table:
            other = _named(f"{where} {name}: like", table.pop("like"), before, several=False)
            table = other | table
        before[name] = table | {"name": name}
    return list(before.values())


def known(what: str, used: Sequence[str] | set[str], there: Sequence[str]) -> None:
    """Raise ValueError for a name that is not there."""
    for name in sorted(set(used) - set(there)):
        raise ValueError(f"{what}: no {name!r}; there are {', '.join(there)}")


def unique(names: Sequence[str]) -> None:
    """Raise ValueError for a name that is used twice."""
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{name!r}: the name is used twice")


def _table(where: str, raw: object) -> dict[str, Any]:
    if not isinstance(raw, dict):
        raise ScenarioError(f"{where}: {raw!r} is no table")
    return raw


def _tables(where: str, raw: object) -> list[dict[str, Any]]:
    raw = [raw] if isinstance(raw, dict) else raw
    if not isinstance(raw, list) or not all(isinstance(part, dict) for part in raw):
        raise ScenarioError(f"{where}: must be a table or a list of tables")
    return raw


def _goals(where: str, raw: object) -> list[dict[str, Any]]:
    """Goals as tables; each may be a text."""
    if isinstance(raw, list):
        raw = [_checked(where, Goal.parse, one) if isinstance(one, str) else one for one in raw]
    return _tables(where, raw)


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


def _checked(where: str, rule: Callable[[Any], Any], value: Any) -> Any:
    try:
        return rule(value)
    except ValueError as error:
        raise ScenarioError(f"{where}: {error}") from error


def _value(where: str, kind: Any, raw: Any, names: Names) -> Any:
    """The value of a key; `names` has the earlier tables of the file."""
    if get_origin(kind) is Annotated:
        kind, *rules = get_args(kind)
        for rule in rules:
            if isinstance(rule, Named) and not isinstance(raw, dict):
                several = get_origin(kind) is Mapping and get_args(kind)[1] is not object
                return _named(where, raw, names.get(rule.key, {}), several)
            if isinstance(rule, OrOne) and not isinstance(raw, list):
                raw = [raw]
        made = _value(where, kind, raw, names)
        for rule in rules:
            if hasattr(rule, "check"):
                _checked(where, rule.check, made)
        return made
    if get_origin(kind) in (Union, UnionType):
        # A table where there may be one, else what comes first.
        either = [one for one in get_args(kind) if isinstance(raw, dict) == is_dataclass(one)]
        return _value(where, (either or get_args(kind))[0], raw, names)
    if get_origin(kind) is tuple:
        return tuple(_listed(where, get_args(kind)[0], raw, names))
    if get_origin(kind) is Mapping:
        of = get_args(kind)[1]
        raw = _table(where, raw)
        return {key: _value(f"{where}: {key}", of, part, names) for key, part in raw.items()}
    if is_dataclass(kind):
        return _made(where, kind, _table(where, raw), names)
    wanted = (int, float) if kind is float else kind
    if not isinstance(raw, wanted) or (isinstance(raw, bool) and kind in (int, float)):
        raise ScenarioError(f"{where}: {raw!r} is no {kind.__name__}")
    return raw


def _named(where: str, raw: Any, there: Mapping[str, Any], several: bool) -> Any:
    """The table of this name, or tables by name for a list of names."""
    if several and not isinstance(raw, list):
        raise ScenarioError(f"{where}: {raw!r} is no list")
    for name in raw if several else [raw]:
        if not isinstance(name, str) or name not in there:
            raise ScenarioError(f"{where}: no {name!r}; there are {', '.join(there)}")
    return {name: there[name] for name in raw} if several else there[raw]


def _listed(where: str, kind: Any, raw: Any, names: Names) -> list[Any]:
    """The entries of a list; the names of its tables are used once each."""
    plain = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    of_tables = is_dataclass(plain) or get_origin(plain) is Mapping
    if of_tables:
        raw = _tables(where, raw)
    if not isinstance(raw, list):
        raise ScenarioError(f"{where}: {raw!r} is no list")
    found: list[Any] = []
    for number, part in enumerate(raw, start=1):
        here = _labelled(where, plain, part, number) if of_tables else where
        made = _value(here, kind, part, names)
        if hasattr(made, "expand"):
            _checked(here, lambda one: found.extend(one.expand()), made)
        else:
            found.append(made)
    if is_dataclass(kind) and "name" in _hints(kind):
        _checked(where, lambda all_of_them: unique([one.name for one in all_of_them]), found)
    return found


def _labelled(where: str, kind: Any, table: Mapping[str, object], number: int) -> str:
    """An entry by its first key: `unit db`, `goal hold_s`, `event with at_s = 2`."""
    first = fields(kind)[0].name if is_dataclass(kind) else "name"
    value = table.get(first)
    if isinstance(value, str) and value:
        return f"{where} {value}"
    if isinstance(value, int | float):
        return f"{where} with {first} = {value}"
    return f"{where} number {number}"


def _made(
    where: str, kind: type[File], table: Mapping[str, Any], names: Names, is_file: bool = False
) -> File:
    parts = {part.name.rstrip("_"): part for part in fields(kind)}
    for key in table:
        if key not in parts:
            raise ScenarioError(f"{where}: {key}: unknown key; there are {', '.join(parts)}")
    values: dict[str, Any] = {}
    for key, part in parts.items():
        if key in table:
            made = _value(f"{where}: {key}", _hints(kind)[part.name], table[key], names)
            values[part.name] = made
            if is_file and isinstance(made, tuple | dict):
                by_name = made if isinstance(made, dict) else {one.name: one for one in made}
                names = {**names, key: by_name}
        elif part.default is MISSING and part.default_factory is MISSING:
            raise ScenarioError(f"{where}: {key}: is missing")
    made = kind(**values)
    if hasattr(made, "check"):
        _checked(where, lambda one: one.check(), made)
    return made
