# SPDX-License-Identifier: LGPL-2.1-or-later
"""Numbers of a guest, and verdicts on those of several: stock, patched, patched, stock.

instructions           for each 4 KiB, the median of all windows of a guest
instructions_vs_stock  those with the patched drivers over those with stock ones, each the mean
                       of its guests; `apart` is the most by which guests with the same drivers
                       differ, in per cent
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import mean

from rig.result import Result

from bench.harm.scenario import DRIVERS, METRIC, Harmed
from bench.overhead.measure import METRICS, ios, summed_up
from bench.overhead.run import Count


def number(stack: Harmed, drivers: str, counts: Sequence[Count]) -> Result:
    """Instructions for an I/O."""
    if not all(ios(count) for count in counts):
        raise RuntimeError(f"{stack.name}: no I/O within {stack.window_ms} ms")
    return summed_up(stack.name, drivers, METRIC, [METRICS[METRIC](count) for count in counts])


def verdicts(stacks: Sequence[Harmed], guests: Sequence[Mapping]) -> Iterator[Result]:
    """A verdict on each stack; guests are the objects of their numbers."""
    for stack in stacks:
        found: dict[str, list[float]] = {name: [] for name in DRIVERS}
        for one in guests:
            if one["scenario"] == stack.name and one["value"] is not None:
                found[one["scheduler"]].append(one["value"])
        metric = f"{METRIC}_vs_{DRIVERS[0]}"
        if not all(found.values()):
            why = {"why": "not measured with both", "judged": True}
            yield Result(stack.name, DRIVERS[1], metric, math.nan, stack.goal, why)
            continue
        theirs, ours = (mean(found[name]) for name in DRIVERS)
        apart = max((max(values) / min(values) - 1) * 100 for values in found.values())
        detail = {
            "ours": round(ours, 1), "theirs": round(theirs, 1), "apart": round(apart, 2),
            "judged": True,
        }  # fmt: skip
        yield Result(stack.name, DRIVERS[1], metric, ours / theirs, stack.goal, detail)


def show(rows: Sequence[Result], kernel: str) -> None:
    """A line for each stack."""
    heads = f"{'stock':>10}{'patched':>10}{'apart %':>9}{'ratio':>9}"
    print(f"\ninstructions for 4 KiB, Linux {kernel}\n  {'':15}{heads}")
    for row in rows:
        if "why" in row.detail:
            print(f"  {row.scenario:15}{row.detail['why']}")
            continue
        numbers = f"{row.detail['theirs']:>10.0f}{row.detail['ours']:>10.0f}"
        verdict = "met" if row.met else "MISSED"
        print(
            f"  {row.scenario:15}{numbers}{row.detail['apart']:>9}{row.value:>9.4f}  "
            f"{verdict}, goal {row.goal}"
        )
