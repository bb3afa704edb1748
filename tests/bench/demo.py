# SPDX-License-Identifier: LGPL-2.1-or-later
"""`./lab demo`: weights of systemd units on stacked devices, stock and Sutro side by side.

Runs inside the guest: python3 -m bench.demo --out FOLDER. Prints one table, writes the same as JSON
and a picture per scenario, and ends with status 0 only if every goal of sutro is met.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from rig.plot import draw
from rig.result import Result, all_met, print_table, write_json

from bench import measure
from bench.run import Run, run
from bench.scenario import Scenario, ScenarioError, load

SHIPPED = Path(__file__).with_name("demo.toml")
COLUMNS = (
    "scenario", "stack", "scheduler", "unit", "weight", "MB/s", "time share", "asked",
    "MB/s ratio", "time ratio", "at leaves", "seconds", "disk busy", "cpu idle", "goals",
)  # fmt: skip


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="bench.demo", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("."), help="folder for JSON and PNG files")
    parser.add_argument("--json", type=Path, help="the JSON file (default: demo.json in --out)")
    parser.add_argument("--scenarios", type=Path, default=SHIPPED, help="a scenario file")
    parser.add_argument("--only", action="append", metavar="NAME", help="run only this scenario")
    parser.add_argument(
        "--schedulers", metavar="A,B", help="run under these schedulers instead of the file's"
    )
    parser.add_argument("--no-plots", action="store_true", help="draw no pictures")
    return parser.parse_args(words)


def chosen(options: argparse.Namespace) -> list[Scenario]:
    """The scenarios to run."""
    from dataclasses import replace

    scenarios = load(options.scenarios)
    names = [scenario.name for scenario in scenarios]
    unknown = set(options.only or []) - set(names)
    if unknown:
        raise ScenarioError(f"no scenario {', '.join(sorted(unknown))}; there are {names}")
    if options.only:
        scenarios = [scenario for scenario in scenarios if scenario.name in options.only]
    if options.schedulers:
        these = tuple(options.schedulers.split(","))
        scenarios = [replace(scenario, schedulers=these) for scenario in scenarios]
    return scenarios


def stack_text(scenario: Scenario) -> str:
    """The stack in few words, top first: `crypt / raid1 / 2 ssd`."""
    layers = [str(layer.get("level", layer["kind"])) for layer in reversed(scenario.layer)]
    count = sum(len(disk["names"]) for disk in scenario.disk)
    kinds = "+".join(dict.fromkeys(str(disk["kind"]) for disk in scenario.disk))
    return " / ".join([*layers, f"{count} {kinds}"])


def rows(found: Run, results: Sequence[Result]) -> Iterator[list[str]]:
    """Table rows of one run: a row per unit, for each part of the measured time."""
    scenario = found.scenario
    values = {(r.metric, r.detail.get("at"), r.detail.get("part")): r.value for r in results}
    judged = [result for result in results if result.goal]
    missed = [result for result in judged if not result.met]
    verdict = "" if not judged else f"{len(missed)} missed" if missed else "met"
    follow = {r.detail["part"]: r.value for r in results if r.metric == "follow_s"}
    for part, (from_s, to_s, weights) in enumerate(measure.parts(found)):
        shares = found.sampler.shares(from_s, to_s)
        busy = min(found.sampler.disk_busy(leaf, from_s, to_s) for leaf in found.leaves)
        for number, spec in enumerate(scenario.unit):
            leader = number == 0
            leaves = [values["device_time_ratio", leaf, part] for leaf in found.leaves]
            seconds = found.finished_s.get(spec.name, follow.get(part) if leader else None)
            yield [
                scenario.name if leader and not part else "",
                stack_text(scenario) if leader and not part else "",
                found.scheduler if leader and not part else "",
                spec.name,
                str(weights[spec.name]),
                f"{found.sampler.mbps(spec.name, from_s, to_s):.1f}",
                f"{shares[spec.name]:.3f}",
                f"{values_asked(results, part):.2f}" if leader else "",
                number_text(values["bandwidth_ratio", "logical", part]) if leader else "",
                number_text(values["device_time_ratio", "all", part]) if leader else "",
                " ".join(number_text(value) for value in leaves) if leader else "",
                "" if seconds is None else number_text(seconds),
                f"{busy:.0%}" if leader else "",
                f"{found.sampler.cpu_idle(from_s, to_s):.0%}" if leader else "",
                verdict if leader and not part else "",
            ]


def values_asked(results: Sequence[Result], part: int) -> float:
    """The ratio that was asked for in a part of the run."""
    asked = (
        r.detail["asked"] for r in results if r.detail.get("part") == part and r.detail.get("asked")
    )
    return float(str(next(asked)))


def number_text(value: float) -> str:
    """Two digits, or `never` for what did not come about."""
    return f"{value:.2f}" if math.isfinite(value) else "never"


def main(words: Sequence[str] | None = None) -> int:
    """Run the demo."""
    options = arguments(words)
    # A stop from outside takes everything down as Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        scenarios = chosen(options)
    except ScenarioError as error:
        print(f"bench.demo: {error}", file=sys.stderr)
        return 2
    options.out.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()

    def say(what: str) -> None:
        print(f"[{time.monotonic() - began:6.1f} s] {what}", flush=True)

    results: list[Result] = []
    table: list[list[str]] = []
    with painter() as paint:
        pictures = []
        for scenario in scenarios:
            say(f"{scenario.name}: {scenario.title}")
            found: list[Run] = []
            for one in run(scenario, say):
                found.append(one)
                seen = list(measure.measure(one, found))
                results += seen
                table += [*rows(one, seen), []]
            if not options.no_plots:
                panels = [measure.panel(one) for one in found]
                file = options.out / f"{scenario.name}.png"
                pictures.append(paint.submit(draw, scenario.title, panels, file))
        for picture in pictures:
            picture.result()
    write_json(results, options.json or options.out / "demo.json")
    say("done")
    print_table("", COLUMNS, table)
    report(results)
    return 0 if all_met(results) else 1


def painter() -> ProcessPoolExecutor:
    """A patient process that draws while the next scenario runs."""
    return ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), os.nice, (19,))


def report(results: Sequence[Result]) -> None:
    """Say which goals there were and which are missed."""
    judged = [result for result in results if result.goal]
    columns = ("scenario", "metric", "of", "value", "goal", "met")
    print_table(
        "Goals of sutro",
        columns,
        [
            [
                result.scenario,
                result.metric,
                " ".join(str(result.detail[key]) for key in ("at", "of") if key in result.detail),
                f"{result.value:.3f}",
                str(result.goal),
                "yes" if result.met else "NO",
            ]
            for result in judged
        ],
    )
    missed = sum(not result.met for result in judged)
    print(f"{len(judged) - missed} of {len(judged)} goals met", flush=True)


if __name__ == "__main__":
    sys.exit(main())
