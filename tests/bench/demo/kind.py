# SPDX-License-Identifier: LGPL-2.1-or-later
"""The demo: a row for each unit under each scheduler, and a picture for each scenario."""

import multiprocessing
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack

from rig.plot import draw
from rig.result import Result

from bench import show
from bench.demo import measure
from bench.demo.run import run
from bench.demo.scenario import SHIPPED, Book, Scenario
from bench.judge import Say, verdicts
from bench.program import Kind, Options

# Time ratios: at all leaves together, then at each.
COLUMNS = (
    "scheduler", "unit", "weight", "MB/s", "time share", "asked", "MB/s ratio", "time ratios",
    "seconds", "disk busy", "cpu idle",
)  # fmt: skip


def results(book: Book, options: Options, say: Say) -> Iterator[list[Result]]:
    """The results of each scenario."""
    with ExitStack() as undo:
        if options.out:
            options.out.mkdir(parents=True, exist_ok=True)
            # A patient process that draws while the next scenario runs.
            spawn = multiprocessing.get_context("spawn")
            paint = undo.enter_context(ProcessPoolExecutor(1, spawn, os.nice, (19,)))
        for scenario in book.runs():
            say(f"{scenario.name}: {stack_text(scenario)}")
            found: list[Result] = []
            panels = []
            for one in run(scenario, say):
                found += measure.measure(one)
                panels.append(measure.panel(one))
            if options.out:
                file = options.out / f"{scenario.name}.png"
                undo.callback(paint.submit(draw, scenario.title, panels, file).result)
            yield [*found, *verdicts(scenario.name, scenario.goal, found)]


def stack_text(scenario: Scenario) -> str:
    """The stack in few words, top first: `crypt / raid1 / 2 ssd`."""
    spec = scenario.stack
    layers = [str(layer.get("level", layer["kind"])) for layer in reversed(spec.layer)]
    kinds = "+".join(dict.fromkeys(str(disk["kind"]) for disk in spec.disk))
    return " / ".join([*layers, f"{len(spec.disks())} {kinds}"])


def table(found: Sequence[Result]) -> None:
    """A row for each unit under each scheduler, in each part of the measured time."""
    values: dict[tuple[object, ...], list[float]] = {}
    for r in found:
        key = (r.metric, r.scheduler, r.detail.get("part"), r.detail.get("of"))
        values.setdefault(key, []).append(r.value)
    rows: list[list[str]] = []
    for unit in (result for result in found if result.metric == "mbps"):
        name, about = unit.scheduler, unit.detail
        part, times = about["part"], about.get("pair")
        ended = values.get(("completion_s", name, None, about["of"]))
        seconds = ended or (values.get(("follow_s", name, part, None)) if times else None)
        cells = [
            str(about["of"]), str(about["weight"]), f"{unit.value:.1f}",
            f"{about['time_share']:.3f}", f"{about['asked']:.2f}" if times else "",
        ]  # fmt: skip
        for metric in ("bandwidth_ratio", "device_time_ratio"):
            texts = map(show.number, values.get((metric, name, part, times), ()) if times else ())
            cells.append(" ".join(texts))
        cells.append(show.number(seconds[0]) if seconds else "")
        for metric in ("disk_busy", "cpu_idle"):
            cells.append(f"{values[metric, name, None, None][0]:.0%}" if times else "")
        begins = times and not part
        rows += [[]] * bool(begins and rows)
        rows.append([name if begins else "", *cells])
    show.table(COLUMNS, rows)


KIND = Kind(Book, SHIPPED, results, table)
