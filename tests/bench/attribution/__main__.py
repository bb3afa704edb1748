# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measure inside the guest who is charged at the leaves of stacks; print a line for each use.

Exit status 0: everything that this kernel offers was measured. 1: something could not be. 2:
nothing was run.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from rig.shell import run

from bench.attribution.page import write_json
from bench.attribution.run import BROKEN, MEASURED, MISSING, Row, measure
from bench.attribution.stacks import SHIPPED, load, only
from bench.tables import ScenarioError


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="bench.attribution", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="stacks of the file (all)")
    parser.add_argument("--stacks", type=Path, default=SHIPPED, help="another file")
    parser.add_argument("--patched", action="store_true", help="the modules must be patched ones")
    parser.add_argument("--json", type=Path, help="write everything as JSON, too")
    return parser.parse_args(words)


def series() -> str:
    """The series of the running kernel: 6.12."""
    return ".".join(os.uname().release.split(".")[:2])


def patched() -> bool:
    """Does this system load dm from updates/, where patched modules are installed?"""
    return "/updates/" in run("modinfo", "--filename", "dm_mod")


def text(row: Row) -> str:
    """One line: the share of the owner, and what was charged to others."""
    what = f"{row.stack} {row.op} {row.mode}".rstrip()
    if row.status != MEASURED:
        return f"{what}: {row.status}: {row.reason}"
    others = {cgroup: number for cgroup, number in row.data.items() if cgroup != row.owner}
    said = f"{what}: {row.share:.1%} of {mib(sum(row.data.values()))}"
    if others:
        said += f"; {amounts(others)}"
    if row.metadata:
        said += f"; metadata: {amounts(row.metadata, row.owner)}"
    return said


def amounts(charged: Mapping[str, int], owner: str = "") -> str:
    """Cgroups and what they are charged, the largest first."""
    largest = sorted(charged.items(), key=lambda item: -item[1])
    return ", ".join(f"{'owner' if name == owner else name} {mib(n)}" for name, n in largest)


def mib(number: int) -> str:
    """A number of bytes."""
    return f"{number / (1 << 20):.2f} MiB"


def main(words: Sequence[str] | None = None) -> int:
    """Run the bench."""
    options = arguments(words)
    # A stop from outside takes everything down as Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        specs = only(load(options.stacks), options.names)
    except ScenarioError as error:
        print(f"bench.attribution: {error}", file=sys.stderr)
        return 2
    kernel, is_patched = series(), patched()
    if options.patched and not is_patched:
        print(f"bench.attribution: dm of {os.uname().release} is no patched one", file=sys.stderr)
        return 2
    began = time.monotonic()

    def say(what: str) -> None:
        print(f"[{time.monotonic() - began:6.1f} s] {what}", flush=True)

    say(f"kernel {os.uname().release}, {'patched' if is_patched else 'stock'} modules")
    rows: list[Row] = []
    for spec in specs:
        for row in measure(spec, say):
            say(text(row))
            rows.append(row)
            # What there is so far: a run that is stopped was not for nothing.
            if options.json:
                objects = [row.as_object(kernel, is_patched) for row in rows]
                write_json(objects, options.json)
    count = {status: sum(row.status == status for row in rows) for status in (MEASURED, MISSING)}
    errors = [row for row in rows if row.status == BROKEN]
    print(f"{count[MEASURED]} measured, {count[MISSING]} not offered, {len(errors)} failed")
    return 1 if errors or not count[MEASURED] + count[MISSING] else 0


if __name__ == "__main__":
    sys.exit(main())
