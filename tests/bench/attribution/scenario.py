# SPDX-License-Identifier: LGPL-2.1-or-later
"""Scenarios of `./lab bench attribution`: stacks and their uses. README.rst has the format."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from bench import book
from bench.read import Count, NotEmpty, OneOf, Range, Table, known
from bench.stacks import FILL, standing

SHIPPED = book.HERE / "attribution.toml"
OPS = ("read", "write")
MODES = ("direct", "buffered")


@dataclass(frozen=True, kw_only=True)
class Scenario(book.Scenario):
    """One stack and its uses."""

    leaves: Annotated[Mapping[str, Count], NotEmpty()]
    layer: Annotated[tuple[Table, ...], NotEmpty()]
    mib: Count
    metadata: tuple[str, ...] = ()
    top: str = ""
    fill: Annotated[str, OneOf("all", "reads")] = "all"
    ops: tuple[Annotated[str, OneOf(*OPS)], ...] = OPS
    modes: tuple[Annotated[str, OneOf(*MODES)], ...] = MODES
    bs_kib: Annotated[int, Range(4)] = 64
    stride_kib: Annotated[int, Range(0)] = 0
    least: Annotated[float, Range(0)] = 1.0
    prompt: bool = False
    compressible: bool = False
    after: str = ""
    needs: tuple[str, ...] = ()
    exempt: Mapping[str, str] = field(default_factory=dict)

    def check(self) -> None:
        """The layers stand on each other, and a use has room for a request."""
        if self.requests < 1 or (self.stride_kib or self.bs_kib) < self.bs_kib:
            raise ValueError("bs_kib: must be at most stride_kib, both within mib")
        there = standing(list(self.leaves), self.layer, FILL)
        known("metadata", self.metadata, list(self.leaves))
        known("top", {self.top} if self.top else (), there)

    @property
    def used(self) -> dict[str, int]:
        """The leaves that are the top, or that a layer names: in `over`, or as {NAME} in a text."""
        words = set(re.findall(r"\w+", f"{self.top} {self.layer}"))
        return {name: size_mib for name, size_mib in self.leaves.items() if name in words}

    def uses(self) -> list[tuple[str, str]]:
        """The uses of the stack, in this order: pairs of op and mode."""
        return [(op, mode) for op in self.ops for mode in self.modes]

    @property
    def requests(self) -> int:
        """Requests of each use."""
        return (self.mib << 10) // (self.stride_kib or self.bs_kib)

    @property
    def moved(self) -> int:
        """Bytes that each use moves."""
        return self.requests * (self.bs_kib << 10)


@dataclass(frozen=True, kw_only=True)
class Book(book.Book):
    """A file of attribution."""

    scenario: tuple[Scenario, ...] = ()
