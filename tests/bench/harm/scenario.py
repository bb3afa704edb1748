# SPDX-License-Identifier: LGPL-2.1-or-later
"""Stacks of `./lab bench harm`: reading a file, and saying exactly what is wrong with it.

tests/bench/README.rst documents the format.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rig.result import Goal

from bench.attribution.stacks import check_layer
from bench.tables import ScenarioError, made, read, tables, unique

SHIPPED = Path(__file__).resolve().parents[1] / "harm.toml"
METRIC = "instructions"
# What is compared; the second costs what the first does, and something more.
STOCK, PATCHED = DRIVERS = ("stock", "patched")
ROOT, OWN = CGROUPS = ("root", "own")
PAIRS = {"drivers": DRIVERS, "cgroups": CGROUPS}


@dataclass(frozen=True, kw_only=True)
class Harmed:
    """One stack and the job on it; field names as in the file."""

    name: str
    title: str
    leaves: Mapping[str, int]
    layer: tuple[Mapping[str, object], ...]
    job: Mapping[str, object]
    goal: Goal | None
    top: str = ""
    between: str = "drivers"
    owned: float = 0
    once: bool = False
    rounds: int = 5
    settle_ms: int = 100
    window_ms: int = 300

    @property
    def pair(self) -> tuple[str, str]:
        """The two that are compared."""
        return PAIRS[self.between]


def load(file: str | Path) -> list[Harmed]:
    """Read a file."""
    document = read(file, ("max", "stack"))
    most = document.get("max")
    if not isinstance(most, float) or most <= 0:
        raise ScenarioError(f"{file}: max: {most!r} is no number above 0")
    found = tables(str(file), document, "stack")
    if not found:
        raise ScenarioError(f"{file}: no [[stack]] in it")
    goal = Goal(METRIC, max=most)
    stacks = [_stack(f"{file}: stack {keys.get('name', '?')}", keys, goal) for keys in found]
    unique(f"{file}: stack", [stack.name for stack in stacks])
    return stacks


def only(stacks: Sequence[Harmed], names: Sequence[str]) -> list[Harmed]:
    """Those that are asked for; all if none is."""
    known = [stack.name for stack in stacks]
    for name in names:
        if name not in known:
            raise ScenarioError(f"no stack {name}; there are {', '.join(known)}")
    return [stack for stack in stacks if not names or stack.name in names]


def _stack(where: str, table: Mapping[str, object], goal: Goal) -> Harmed:
    # What a cgroup costs is the kernel's affair: nobody judges it.
    judged = goal if table.get("between", "drivers") == "drivers" else None
    keys = {**table, "layer": tuple(tables(where, table, "layer")), "goal": judged}
    stack = made(where, Harmed, keys)
    if stack.between not in PAIRS:
        raise ScenarioError(f"{where}: between: {stack.between!r} is none of {', '.join(PAIRS)}")
    if not stack.leaves or not (stack.layer or stack.top):
        raise ScenarioError(f"{where}: needs leaves, and a layer or the top")
    there = list(stack.leaves)
    for layer in stack.layer:
        check_layer(where, layer, there)
        there += [str(layer["name"])] if "name" in layer else []
    if stack.top and stack.top not in there:
        raise ScenarioError(f"{where}: top: no {stack.top!r}; there are {', '.join(there)}")
    for key in ("rw", "bs"):
        if key not in stack.job:
            raise ScenarioError(f"{where}: job: {key}: is missing")
    for key, least in (("rounds", 1), ("window_ms", 1), ("owned", 0)):
        if getattr(stack, key) < least:
            raise ScenarioError(f"{where}: {key}: must be at least {least}")
    return stack
