# SPDX-License-Identifier: LGPL-2.1-or-later
"""Stacks as data: leaves, what stands on them, and how they are used.

A file is TOML: a number `mib`, what each use moves or spans, and a list of tables `[[stack]]`:

    name          how the row is called; `title`: what it is
    leaves        table of model disks: name = size in MiB
    metadata      leaves that hold only what a driver writes for itself: [] unless given
    layer         the stack, bottom up (rig.stack); a layer { kind = "fill", over = [X] } writes the
                  places of all uses on X over, when it is its turn; without one that is done on the
                  top, in the end
    top           the device or mount point that is used; unless given the last layer
    fill          "all", or "reads": only places that will be read, so that writing finds nothing;
                  that is so for a file system, where each place is a file of its own
    ops           ["read", "write"] unless given; modes: ["direct", "buffered"] unless given
    bs_kib        64 unless given: the size of one request
    stride_kib    from one request to the next; bs_kib unless given
    least         1 unless given: bytes that the leaves must see for each byte that is moved
    prompt        with the patches this driver marks what it does for somebody as REQ_META, so that
                  nobody waits for his turn: it is data all the same
    compressible  three quarters of what is written are zeros
    after         a shell command that whoever has written runs next
    needs         modules that a kernel may not have: then the stack is not measured
    exempt        table by op: why not all of it can be charged to its owner
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rig import stack

from bench.tables import ScenarioError, listed, made, read, tables, unique

SHIPPED = Path(__file__).parents[1] / "attribution.toml"
OPS = ("read", "write")
MODES = ("direct", "buffered")
FILL, FILLS = "fill", ("all", "reads")
LISTS = {"ops": OPS, "modes": MODES, "metadata": None, "needs": None}


@dataclass(frozen=True)
class StackSpec:
    """One stack; field names as in the file."""

    name: str
    title: str
    leaves: Mapping[str, int]
    layer: tuple[Mapping[str, object], ...]
    mib: int
    metadata: tuple[str, ...] = ()
    top: str = ""
    fill: str = "all"
    ops: tuple[str, ...] = OPS
    modes: tuple[str, ...] = MODES
    bs_kib: int = 64
    stride_kib: int = 0
    least: float = 1.0
    prompt: bool = False
    compressible: bool = False
    after: str = ""
    needs: tuple[str, ...] = ()
    exempt: Mapping[str, str] = field(default_factory=dict)

    def uses(self) -> list[tuple[str, str]]:
        """What is done to it, in this order: pairs of op and mode."""
        return [(op, mode) for op in self.ops for mode in self.modes]

    @property
    def requests(self) -> int:
        """Requests of each use."""
        return (self.mib << 10) // (self.stride_kib or self.bs_kib)

    @property
    def moved(self) -> int:
        """Bytes that each use moves."""
        return self.requests * (self.bs_kib << 10)


def load(file: str | Path) -> list[StackSpec]:
    """Read a file."""
    document = read(file, ("mib", "stack"))
    mib = document.get("mib")
    if not isinstance(mib, int) or isinstance(mib, bool) or mib < 1:
        raise ScenarioError(f"{file}: mib: {mib!r} is no number of at least 1")
    found = tables(str(file), document, "stack")
    if not found:
        raise ScenarioError(f"{file}: no [[stack]] in it")
    specs = [_stack(f"{file}: stack {n}", keys, mib) for n, keys in enumerate(found, start=1)]
    unique(f"{file}: stack", [spec.name for spec in specs])
    return specs


def only(specs: Sequence[StackSpec], names: Sequence[str]) -> list[StackSpec]:
    """Those that are asked for; all if none is."""
    there = [spec.name for spec in specs]
    for name in names:
        if name not in there:
            raise ScenarioError(f"no stack {name}; there are {', '.join(there)}")
    return [spec for spec in specs if not names or spec.name in names]


def _stack(where: str, table: Mapping[str, object], mib: int) -> StackSpec:
    keys = dict(table)
    where = f"{where} ({keys.get('name', 'no name')})"
    keys["layer"] = tuple(tables(where, keys, "layer"))
    for key, allowed in LISTS.items():
        if key in keys:
            keys[key] = tuple(listed(where, keys, key))
            for word in keys[key]:
                if allowed and word not in allowed:
                    raise ScenarioError(f"{where}: {key}: {word!r} is none of {allowed}")
    spec = made(where, StackSpec, {**keys, "mib": mib})
    if not spec.leaves or not spec.layer:
        raise ScenarioError(f"{where}: needs leaves and at least one layer")
    if spec.fill not in FILLS:
        raise ScenarioError(f"{where}: fill: {spec.fill!r} is none of {FILLS}")
    if spec.bs_kib < 4 or spec.requests < 1 or (spec.stride_kib or spec.bs_kib) < spec.bs_kib:
        raise ScenarioError(f"{where}: bs_kib: at least 4, at most stride_kib, both within mib")
    there = list(spec.leaves)
    for layer in spec.layer:
        check_layer(where, layer, there)
        there += [str(layer["name"])] if "name" in layer else []
    for key, names in (("metadata", spec.metadata), ("top", [spec.top] if spec.top else [])):
        for name in names:
            if name not in (spec.leaves if key == "metadata" else there):
                raise ScenarioError(f"{where}: {key}: no {name!r}; there are {there}")
    return spec


def check_layer(where: str, layer: Mapping[str, object], there: Sequence[str]) -> None:
    """A layer has what every layer needs, and lies on what is there."""
    kinds = (FILL, *stack.KINDS)
    if layer.get("kind") not in kinds:
        kind = layer.get("kind")
        raise ScenarioError(f"{where}: layer: kind {kind!r} is none of {', '.join(kinds)}")
    if not isinstance(layer.get("over"), list) or (layer["kind"] != FILL and "name" not in layer):
        raise ScenarioError(f"{where}: layer: needs name, and over, a list of what it lies on")
    for below in layer["over"]:
        if below not in there:
            raise ScenarioError(f"{where}: layer: over: no {below!r} below; there are {there}")
