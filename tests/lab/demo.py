# SPDX-License-Identifier: LGPL-2.1-or-later
"""`./lab demo`: the scenarios of tests/bench/demo.toml, in as many guests as the host carries.

The clock of a guest counts instructions and skips idle time, so two guests side by side disturb
each other's figures no more than any other work of the host does.

    guest 1    runtime, reader-writer     guest 2    stripe, device-weight, crypt-raid1
"""

import argparse
import json
import re
import shutil
import threading
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from bench import book, read
from bench.demo import scenario
from bench.program import RAN
from rig import result

from . import guest, keys, parallel, report
from .cache import Cache
from .progress import LabError, step
from .roots import KERNEL
from .setup import SOURCE, has_place, in_guest, prepare

# Lines of a guest: the beginning of something, and the summary of its own part.
PROGRESS = re.compile(r"\[ *[0-9.]+ s\] (.*)")
SUMMARY = re.compile(r"\d+ of \d+ goals met")
# Guesses, only to balance the guests: setting a scheduler up, and a job that is waited for.
SETUP_S, AWAITED_S = 4.0, 10.0


def demo(cache: Cache, options: argparse.Namespace) -> int:
    """Run the scenarios, show their tables, copy JSON and pictures out."""
    has_place(options.json, options.out)
    try:
        chosen = read.load(scenario.Book, scenario.SHIPPED).only(options.names).runs()
    except read.ScenarioError as error:
        raise LabError(str(error)) from error
    parts = balanced(chosen, min(parallel.workers(), len(chosen)))
    commit = keys.commit(SOURCE)
    # The artefacts are made once; each guest has a folder of its own.
    setups = [prepare(cache, f"demo-{number}") for number, _ in enumerate(parts, 1)]
    tasks = [partial(_run, setup, names) for setup, names in zip(setups, parts, strict=True)]
    ran = all(status in RAN for status in parallel.at_once(tasks))
    place = options.out or cache.run_dir / "demo"
    place.mkdir(parents=True, exist_ok=True)
    found = [one for setup in setups for one in _gathered(setup.folder / "out", place)]
    result.write_objects(found, place / "demo.json")
    if options.json:
        shutil.copyfile(place / "demo.json", options.json)
    report.keep(cache, "demo", ["./lab", "demo", *options.names], commit, KERNEL, found)
    step(f"demo: the numbers as JSON and a picture per scenario are in {place}")
    line, status = result.summary(found)
    print(line, flush=True)
    return status if ran else 1


def balanced(scenarios: Sequence[book.Scenario], count: int) -> list[list[str]]:
    """Names for each of `count` guests, in the order of the file: the longest goes first."""
    parts: list[list[str]] = [[] for _ in range(count)]
    loads = [0.0] * count
    for one in sorted(scenarios, key=seconds, reverse=True):
        least = loads.index(min(loads))
        parts[least].append(one.name)
        loads[least] += seconds(one)
    order = [one.name for one in scenarios]
    return [sorted(part, key=order.index) for part in parts]


def seconds(one: book.Scenario) -> float:
    """About how long a scenario takes."""
    measured = AWAITED_S if getattr(one, "until", "") else getattr(one, "measure_s", 0.0)
    return len(one.schedulers) * (SETUP_S + getattr(one, "ramp_s", 0.0) + measured)


def _run(setup: guest.Setup, names: Sequence[str]) -> int:
    words = ["--out", "/mnt/out", "--json", "/mnt/out/demo.json", "--", *names]
    blocks = Blocks()
    status = in_guest(setup, "demo", words, None, blocks.echo)
    blocks.flush()
    return status


def _gathered(folder: Path, place: Path) -> list[dict]:
    """Copy the pictures of a guest; its numbers."""
    for picture in folder.glob("*.png"):
        shutil.copyfile(picture, place / picture.name)
    numbers = folder / "demo.json"
    return json.loads(numbers.read_text()) if numbers.exists() else []


class Blocks:
    """An echo that prints the table of a scenario at once: guests write at the same time."""

    _printing = threading.Lock()

    def __init__(self) -> None:
        self._rest = ""
        self._lines: list[str] = []

    def echo(self, text: str) -> None:
        """Take output as it comes."""
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            if found := PROGRESS.match(line):
                self.flush()
                step(f"demo: {found[1]}")
            elif not SUMMARY.fullmatch(line):
                self._lines.append(line)

    def flush(self) -> None:
        """Print the lines since the last progress line."""
        if any(self._lines):
            with self._printing:
                print("\n".join(self._lines), flush=True)
        self._lines = []
