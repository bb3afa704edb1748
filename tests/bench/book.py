# SPDX-License-Identifier: LGPL-2.1-or-later
"""The common form of the files of all benches: scenarios with goals, and parts of them."""

import difflib
import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Self

from rig import result

from bench.read import Name, ScenarioError, unique

HERE = Path(__file__).resolve().parent

# No more names than these are listed in an error.
LISTED = 20


def hint(name: str, there: Sequence[str]) -> str:
    """For the error about a name that is not there: all names, or those like it of many."""
    if len(there) <= LISTED:
        return f"there are {', '.join(there)}"
    longer = [one for one in there if one.startswith(name)]
    if longer:
        return f"{name}* are {len(longer)} of them, such as {longer[0]}"
    close = difflib.get_close_matches(name, there, n=3)
    if close:
        return f"like it are {', '.join(close)}"
    return f"there are {len(there)}, from {there[0]} to {there[-1]}"


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A scenario that is run and judged; a kind adds its own keys, and lists its schedulers."""

    name: Name
    title: Name
    schedulers: tuple[str, ...] = ()
    goal: tuple[result.Goal, ...] = ()

    def under(self, schedulers: Sequence[str]) -> Self | None:
        """The same under these schedulers; None if it is not for any of them."""
        return replace(self, schedulers=tuple(schedulers))


@dataclass(frozen=True, kw_only=True)
class Book:
    """The contents of a file. RUN: keys of tables that are run; SCHEDULERS: allowed names."""

    RUN: ClassVar[tuple[str, ...]] = ("scenario",)
    SCHEDULERS: ClassVar[tuple[str, ...]] = ()

    def runs(self) -> list[Scenario]:
        """All that is run, in this order."""
        return [one for key in self.RUN for one in getattr(self, key)]

    def check(self) -> None:
        """There is something to run, and each has a name of its own."""
        if not self.runs():
            raise ValueError(f"no {' and no '.join(f'[{key}.NAME]' for key in self.RUN)} in it")
        unique([one.name for one in self.runs()])

    def only(self, names: Sequence[str], schedulers: Sequence[str] = ()) -> Self:
        """A part of it, by names or patterns of a shell; nothing chosen is everything."""
        there = [one.name for one in self.runs()]
        matching: set[str] = set()
        for name in names:
            found = fnmatch.filter(there, name)
            if not found:
                raise ScenarioError(f"no scenario {name}; {hint(name, there)}")
            matching.update(found)
        for name in schedulers:
            if name not in self.SCHEDULERS:
                raise ScenarioError(f"no scheduler {name}; there are {', '.join(self.SCHEDULERS)}")
        parts = {}
        for key in self.RUN:
            kept = [one for one in getattr(self, key) if not names or one.name in matching]
            moved = [one.under(schedulers) for one in kept] if schedulers else kept
            parts[key] = tuple(one for one in moved if one)
        return replace(self, **parts)
