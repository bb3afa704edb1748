# SPDX-License-Identifier: LGPL-2.1-or-later
"""Count in the guest what an I/O through each stack takes with stock and with patched drivers.

And what one to a disk takes in the root cgroup and in another.

Exit status 0: every goal is met. 1: one is not. 2: nothing was run.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rig import scheduler
from rig.dkms import kernel
from rig.result import write_json

from bench.counted import TROUBLE
from bench.harm import drivers
from bench.harm.measure import failed, number, show, verdict
from bench.harm.run import windows
from bench.harm.scenario import PATCHED, SHIPPED, STOCK, load, only
from bench.tables import ScenarioError

# Turns differ by 1 or 2 %, for nothing lies twice where it was.
ROUNDS = 3


def main(words: Sequence[str] | None = None) -> int:
    """All stacks, one after another."""
    parser = argparse.ArgumentParser(prog="bench.harm", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="stacks of the file (all)")
    parser.add_argument("--scenarios", type=Path, default=SHIPPED, help="another file")
    parser.add_argument("--json", type=Path, help="write all numbers as JSON, too")
    options = parser.parse_args(words)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        stacks = only(load(options.scenarios), options.names)
    except ScenarioError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2
    began = time.monotonic()

    def say(what: str) -> None:
        print(f"[{time.monotonic() - began:6.1f} s] {what}", flush=True)

    scheduler.stop_daemon()
    about = {"kernel": kernel()}
    found, rows = [], []
    for stack in stacks:
        turns = []
        try:
            first, second = stack.pair
            for which in ROUNDS * (first, second, second, first):
                drivers.load(PATCHED if which == PATCHED else STOCK)
                turns.append(number(stack, which, windows(stack, which, say)))
                say(f"{stack.name}: {which}: {turns[-1].value:.0f}")
            rows.append(verdict(stack, turns, rows))
        except TROUBLE as error:
            rows.append(failed(stack, error))
        found += [replace(one, detail={**one.detail, **about}) for one in (*turns, rows[-1])]
        if options.json:
            write_json(found, options.json)
    show(rows)
    judged = [row for row in rows if row.goal]
    print(f"{sum(bool(row.met) for row in judged)} of {len(judged)} goals met")
    bad = [row for row in rows if row.met is False or "why" in row.detail]
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
