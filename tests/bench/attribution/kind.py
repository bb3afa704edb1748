# SPDX-License-Identifier: LGPL-2.1-or-later
"""The bench of attribution: a line for each use of each stack, as soon as it is measured."""

import os
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping, Sequence

from rig.result import Goal, Result
from rig.shell import run

from bench.attribution.run import BROKEN, MEASURED, Row, measure
from bench.attribution.scenario import SHIPPED, Book
from bench.judge import Say
from bench.program import Kind, Options
from bench.read import ScenarioError


def series() -> str:
    """The series of the running kernel: 6.12."""
    return ".".join(os.uname().release.split(".")[:2])


def patched() -> bool:
    """Does this system load dm from updates/, where patched modules are installed?"""
    return "/updates/" in run("modinfo", "--filename", "dm_mod")


def results(book: Book, options: Options, say: Say) -> Iterator[list[Result]]:
    """The results of each stack; its goal: each use that the kernel offers was measured."""
    drivers = "patched" if patched() else "stock"
    if options.patched and drivers == "stock":
        raise ScenarioError(f"dm of {os.uname().release} is no patched one")
    say(f"kernel {os.uname().release}, {drivers} modules")
    for spec in book.runs():
        rows = []
        for row in measure(spec, say):
            say(text(row))
            rows.append(row)
        found = [row.result(drivers, series()) for row in rows]
        failures = sum(row.status == BROKEN for row in rows)
        yield [*found, Result(spec.name, drivers, "failures", failures, Goal("failures", max=0))]


def text(row: Row) -> str:
    """One line: the share of the owner, and the bytes charged to others."""
    what = f"{row.stack} {row.op} {row.mode}".rstrip()
    if row.status != MEASURED:
        return f"{what}: {row.status}: {row.reason}"
    others = {cgroup: number for cgroup, number in row.data.items() if cgroup != row.owner}
    text = f"{what}: {row.share:.1%} of {mib(sum(row.data.values()))}"
    if others:
        text += f"; {amounts(others)}"
    if row.metadata:
        text += f"; metadata: {amounts(row.metadata, row.owner)}"
    return text


def amounts(charged: Mapping[str, int], owner: str = "") -> str:
    """Cgroups and the bytes they are charged, the largest first."""
    largest = sorted(charged.items(), key=lambda item: -item[1])
    return ", ".join(f"{'owner' if name == owner else name} {mib(n)}" for name, n in largest)


def mib(number: int) -> str:
    """A number of bytes."""
    return f"{number / (1 << 20):.2f} MiB"


def show(found: Sequence[Result]) -> None:
    """Nothing more: each line was printed as it was measured."""


def with_patched(parser: ArgumentParser) -> None:
    """The modules may have to be patched ones."""
    parser.add_argument("--patched", action="store_true", help="the modules must be patched ones")


KIND = Kind(Book, SHIPPED, results, show, options=with_patched)
