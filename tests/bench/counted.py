# SPDX-License-Identifier: LGPL-2.1-or-later
"""The program of a bench that runs scenarios on machines: its words, its table, its exit status.

Exit status 0: every goal of sutro is met. 1: one is not. 2: nothing was run.
"""

from __future__ import annotations

import argparse
import math
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from rig.result import Goal, Result, write_json
from rig.shell import CommandError

from bench.overhead.run import Say
from bench.overhead.scenario import MACHINES, Book, Kind
from bench.tables import ScenarioError

TROUBLE = (CommandError, RuntimeError, OSError, TimeoutError)
# A column: its heading, the metric, a factor, and how it is written.
COLUMNS = (
    ("MB/s read", "mbps_read", 1, ".0f"), ("write", "mbps_write", 1, ".0f"),
    ("IOPS", "iops", 1, ".0f"), ("us/IO", "time_us", 1, ".2f"), ("usr%", "usr", 100, ".0f"),
    ("sys%", "sys", 100, ".0f"), ("csw/1000", "switches", 1, ".1f"),
    ("merged%", "merged", 100, ".0f"), ("idle%", "idle", 100, ".0f"),
    ("instr/IO", "instructions", 1, ".0f"), ("bytes", "bytes", 1, ".0f"),
    ("MB/s", "mbps", 1, ".1f"), ("busy%", "busy", 100, ".1f"),
)  # fmt: skip
# The one whose spread is shown, and the difference to none: the first that there is.
LEADING = ("instructions", "iops", "mbps")


def arguments(name: str, about: str | None, shipped: Path) -> argparse.ArgumentParser:
    """What can be said to it."""
    parser = argparse.ArgumentParser(prog=name, description=about)
    parser.add_argument("names", nargs="*", metavar="NAME", help="scenarios of the file (all)")
    parser.add_argument("--machine", choices=MACHINES, required=True, help="what this guest is")
    parser.add_argument("--scenarios", type=Path, default=shipped, help="another file")
    parser.add_argument("--scheduler", action="append", dest="schedulers", metavar="NAME",
                        help="only this one (may be given again)")  # fmt: skip
    parser.add_argument("--json", type=Path, help="write all numbers as JSON, too")
    parser.add_argument("--plot", type=Path, help="draw them, too")
    return parser


def failed(case: str, error: Exception, goals: Iterable[Goal]) -> list[Result]:
    """Goals of what could not be run are not met."""
    print(f"{case}: FAILED {error}", flush=True)
    why = {"why": str(error), "judged": True}
    return [Result(case, "sutro", "run", math.nan, goal, why) for goal in goals]


def show(case: str, results: Sequence[Result]) -> None:
    """A line for each scheduler, then the goals."""
    table = {(r.scheduler, r.metric): r for r in results if r.goal is None}
    columns = [column for column in COLUMNS if any(key[1] == column[1] for key in table)]
    against = next(name for name in LEADING if any(c[1] == name for c in columns))
    heads = "".join(f"{column[0]:>10}" for column in columns)
    print(f"\n{case}\n  {'':12}{heads}{'+- %':>8}{'vs none':>9}")
    zero = table.get(("none", against))
    for name in dict.fromkeys(key[0] for key in table):
        cells = "".join(
            f"{table[name, metric].value * factor:>10{form}}" for _, metric, factor, form in columns
        )
        row = table[name, against]
        more = f"{(row.value / zero.value - 1):>+9.1%}" if zero else ""
        print(f"  {name:12}{cells}{row.detail['stdev']:>8}{more}")
    for result in results:
        if result.goal:
            verdict = "met" if result.met else "MISSED"
            print(f"  {verdict:7} {result.metric} {result.value:.3f}, goal {result.goal}")
    sys.stdout.flush()


def program(
    parser: argparse.ArgumentParser,
    load: Callable[[Path], Book[Kind]],
    judged: Callable[[Kind, Sequence[str], Say], Iterator[list[Result]]],
    draw: Callable[[Sequence[Result], Path], None],
    words: Sequence[str] | None = None,
) -> int:
    """Run the scenarios; judged() gives results as they come."""
    options = parser.parse_args(words)
    # A stop from outside takes everything down as Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        book = load(options.scenarios).only(options.names, options.schedulers or ())
    except ScenarioError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2
    began = time.monotonic()

    def say(what: str) -> None:
        print(f"[{time.monotonic() - began:6.1f} s] {what}", flush=True)

    found: list[Result] = []
    for scenario in book.on(options.machine).scenarios:
        print(f"\n{scenario.name}: {scenario.title}")
        for results in judged(scenario, book.schedulers, say):
            found += results
            if options.json:
                write_json(found, options.json)
    if options.plot and found:
        draw(found, options.plot)
    goals = [result for result in found if result.goal]
    met = sum(bool(result.met) for result in goals)
    print(f"\n{met} of {len(goals)} goals met", flush=True)
    return 0 if met == len(goals) else 1
