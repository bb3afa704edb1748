# SPDX-License-Identifier: LGPL-2.1-or-later
"""The program of a bench in a guest: `python3 -m bench KIND`; a kind is a file bench/KIND/kind.py.

Exit status 0: there are goals, and each is met. 1: one is not. 2: nothing was run. 3: there is no
goal among what was run.
"""

import argparse
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rig.result import Result, summary, write_objects

from bench import show
from bench.book import Book
from bench.judge import Say
from bench.read import ScenarioError, load

Options = argparse.Namespace
NO_GOAL = 3
# All was run, whether there are goals or not.
RAN = (0, NO_GOAL)


@dataclass(frozen=True)
class Kind:
    """The parts that a kind of bench adds: its file, how scenarios run, how numbers are shown."""

    book: type[Book]
    shipped: Path
    # Gives the results of each case as it ends.
    results: Callable[[Book, Options, Say], Iterator[list[Result]]]
    show: Callable[[Sequence[Result]], None]
    draw: Callable[[Sequence[Result], Path], None] | None = None
    options: Callable[[argparse.ArgumentParser], object] = lambda parser: None


def arguments(name: str, kind: Kind, words: Sequence[str]) -> Options:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog=f"bench {name}", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="scenarios of the file (all)")
    parser.add_argument("--scenarios", type=Path, default=kind.shipped, help="another file")
    parser.add_argument("--scheduler", action="append", dest="schedulers", metavar="NAME",
                        default=[], help="only this one (may be given again)")  # fmt: skip
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers as JSON, too")
    parser.add_argument("--out", type=Path, metavar="DIR", help="draw pictures there, too")
    kind.options(parser)
    return parser.parse_args(words)


def main(name: str, kind: Kind, words: Sequence[str]) -> int:
    """Run a bench."""
    options = arguments(name, kind, words)
    # A stop from outside takes everything down as Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    began = time.monotonic()

    def say(what: str) -> None:
        print(f"[{time.monotonic() - began:6.1f} s] {what}", flush=True)

    try:
        book = load(kind.book, options.scenarios).only(options.names, options.schedulers)
        found = list(_shown(kind, book, options, say))
    except ScenarioError as error:
        print(f"bench {name}: {error}", file=sys.stderr)
        return 2
    if options.out and kind.draw and found:
        kind.draw(found, options.out / f"{name}.png")
    line, status = summary([result.as_object() for result in found])
    print(f"\n{line}", flush=True)
    return status if any(result.counts for result in found) else NO_GOAL


def _shown(kind: Kind, book: Book, options: Options, say: Say) -> Iterator[Result]:
    """All results; they are printed as they come, and those of a run that is stopped are kept."""
    titles = {one.name: one.title for one in book.runs()}
    objects: list[dict[str, object]] = []
    last = ""
    for results in kind.results(book, options, say):
        name = results[0].scenario.partition("/")[0]
        if name != last:
            print(f"\n{name}: {titles[name]}")
        last = name
        kind.show(results)
        show.goals(results)
        objects += [result.as_object() for result in results]
        if options.json:
            write_objects(objects, options.json)
        yield from results
