# SPDX-License-Identifier: LGPL-2.1-or-later
"""Run scenarios of floors inside the guest, print a line for each goal, and judge those of sutro.

Exit status 0: every goal of sutro is met. 1: one is not, or there was none. 2: nothing was run.
"""

from __future__ import annotations

import argparse
import json
import math
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path

from rig.result import Result

from bench.promises.measure import failed, judge
from bench.promises.overhead import overhead
from bench.promises.run import TROUBLE, contests
from bench.promises.scenario import SHIPPED, Book, load
from bench.run import Say
from bench.tables import ScenarioError


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="bench.promises", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="scenarios of the file (all)")
    parser.add_argument("--scenarios", type=Path, default=SHIPPED, help="another file")
    parser.add_argument("--scheduler", action="append", dest="schedulers", metavar="NAME",
                        help="only this one (may be given again)")  # fmt: skip
    parser.add_argument("--json", type=Path, help="write all numbers as JSON, too")
    return parser.parse_args(words)


def run_all(book: Book, say: Say) -> Iterator[list[Result]]:
    """The results of each scenario, as it ends."""
    for _, group in groupby(book.scenarios, key=lambda scenario: scenario.stack):
        for contest in contests(list(group), say):
            yield list(judge(contest))
    for spec in book.overheads:
        try:
            yield list(overhead(spec, say))
        except TROUBLE as error:
            yield [failed(spec.name, "sutro", str(error))]


def number(value: float) -> str:
    """Three digits; what did not come about, or cannot be told, in words."""
    if math.isnan(value):
        return "none"
    return f"{value:.3g}" if math.isfinite(value) else "never"


def show(results: Sequence[Result], title: str) -> None:
    """A scenario: what units got, then a line for each goal with all that were asked to meet it."""
    print(f"{results[0].scenario}: {title}")
    for name in dict.fromkeys(result.scheduler for result in results):
        mine = [result for result in results if result.scheduler == name]
        for result in mine:
            if result.metric == "run":
                print(f"  {name:8} FAILED {result.detail['why']}")
        got = [r for r in mine if r.metric == "mbps"]
        told = [f"{r.detail['of']} {r.value:.2f}{_floor(r)}" for r in got]
        fit = [f"{r.metric} {r.value:.0%}" for r in mine if r.metric in ("cpu_idle", "disk_busy")]
        if got:
            print(f"  {name:8} MB/s {', '.join(told)}; {', '.join(fit)}")
    for what, rows in _rows(results).items():
        judged = [row for row in rows if row.detail.get("judged")]
        verdict = "met" if all(row.met for row in judged) else "MISSED"
        values = "  ".join(f"{row.scheduler} {number(row.value)}" for row in rows)
        print(f"  {verdict if judged else '':7} {what}: {values}")
    sys.stdout.flush()


def _floor(result: Result) -> str:
    """Its floor in brackets."""
    return f" (floor {result.detail['floor_mbps']:.2f})" if "floor_mbps" in result.detail else ""


def _rows(results: Iterable[Result]) -> dict[str, list[Result]]:
    """Results with goals by what they are about: one line each, all schedulers in it."""
    rows: dict[str, list[Result]] = {}
    for result in results:
        if result.goal and result.metric != "run":
            words = [result.metric, result.detail.get("of"), result.detail.get("state")]
            what = " ".join(str(word) for word in words if word)
            rows.setdefault(f"{what} {result.goal}", []).append(result)
    return rows


def write_json(results: Iterable[Result], file: Path) -> None:
    """A list of objects, one per line."""
    lines = ",\n".join(json.dumps(result.as_object()) for result in results)
    file.write_text(f"[\n{lines}\n]\n")


def main(words: Sequence[str] | None = None) -> int:
    """Run the bench."""
    options = arguments(words)
    # A stop from outside takes everything down as Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        book = load(options.scenarios).only(options.names, options.schedulers or ())
    except ScenarioError as error:
        print(f"bench.promises: {error}", file=sys.stderr)
        return 2
    began = time.monotonic()

    def say(what: str) -> None:
        print(f"[{time.monotonic() - began:6.1f} s] {what}", flush=True)

    titles = {each.name: each.title for each in (*book.scenarios, *book.overheads)}
    found: list[Result] = []
    for results in run_all(book, say):
        show(results, titles[results[0].scenario])
        found += results
        # What there is so far: a run that is stopped was not for nothing.
        if options.json:
            write_json(found, options.json)
    judged = [result for result in found if result.detail.get("judged")]
    met = sum(bool(result.met) for result in judged)
    print(f"{met} of {len(judged)} goals met", flush=True)
    return 0 if judged and met == len(judged) else 1


if __name__ == "__main__":
    sys.exit(main())
