# SPDX-License-Identifier: LGPL-2.1-or-later
"""Count in the guest what an I/O through each stack takes with the drivers that are there.

Exit status 0: all was measured. 1: something was not. 2: nothing could be.
"""

from __future__ import annotations

import argparse
import math
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rig.result import Result, write_json

from bench.counted import TROUBLE
from bench.harm.measure import number
from bench.harm.run import drivers, windows
from bench.harm.scenario import DRIVERS, METRIC, SHIPPED, load, only


def main(words: Sequence[str] | None = None) -> int:
    """All stacks, one after another."""
    parser = argparse.ArgumentParser(prog="bench.harm", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="stacks of the file (all)")
    parser.add_argument("--scenarios", type=Path, default=SHIPPED, help="another file")
    parser.add_argument("--drivers", choices=DRIVERS, required=True, help="what must be there")
    parser.add_argument("--json", type=Path, help="write all numbers as JSON, too")
    options = parser.parse_args(words)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if (there := drivers()) != options.drivers:
        print(f"{parser.prog}: the drivers here are {there}", file=sys.stderr)
        return 2
    began = time.monotonic()

    def say(what: str) -> None:
        print(f"[{time.monotonic() - began:6.1f} s] {what}", flush=True)

    found = []
    for stack in only(load(options.scenarios), options.names):
        try:
            one = number(stack, there, windows(stack, say))
            print(f"{stack.name}: {one.value:.0f} +- {one.detail['stdev']} %", flush=True)
        except TROUBLE as error:
            print(f"{stack.name}: FAILED {error}", flush=True)
            one = Result(stack.name, there, METRIC, math.nan, None, {"why": str(error)})
        found.append(one)
        if options.json:
            write_json(found, options.json)
    return 1 if any(math.isnan(one.value) for one in found) else 0


if __name__ == "__main__":
    sys.exit(main())
