# SPDX-License-Identifier: LGPL-2.1-or-later
"""Numbers of a stack with stock and with patched drivers, and a verdict on them.

instructions           for each 4 KiB, the median of all windows of a turn
instructions_vs_stock  those with the patched drivers over those with stock ones, each the mean
                       of its turns; `error` is the standard error of that, in per cent
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import mean, stdev

from rig.dkms import kernel
from rig.result import Result

from bench.harm.drivers import DRIVERS, PATCHED, STOCK
from bench.harm.scenario import METRIC, Harmed
from bench.overhead.measure import METRICS, ios, summed_up
from bench.overhead.run import Count


def number(stack: Harmed, drivers: str, counts: Sequence[Count]) -> Result:
    """Instructions for an I/O."""
    if not all(ios(count) for count in counts):
        raise RuntimeError(f"{stack.name}: no I/O within {stack.window_ms} ms")
    return summed_up(stack.name, drivers, METRIC, [METRICS[METRIC](count) for count in counts])


def verdict(stack: Harmed, turns: Sequence[Result]) -> Result:
    """One stack's, of the numbers of its turns."""
    found = [[turn.value for turn in turns if turn.scheduler == name] for name in DRIVERS]
    theirs, ours = (mean(values) for values in found)
    error = math.hypot(*(stdev(values) / math.sqrt(len(values)) / mean(values) for values in found))
    detail = {
        "ours": round(ours, 1), "theirs": round(theirs, 1), "error": round(error * 100, 2),
        "judged": True,
    }  # fmt: skip
    return Result(stack.name, PATCHED, f"{METRIC}_vs_{STOCK}", ours / theirs, stack.goal, detail)


def failed(stack: Harmed, error: Exception) -> Result:
    """What could not be measured does not meet its goal."""
    why = {"why": str(error), "judged": True}
    return Result(stack.name, PATCHED, f"{METRIC}_vs_{STOCK}", math.nan, stack.goal, why)


def show(rows: Sequence[Result]) -> None:
    """A line for each stack."""
    heads = f"{'stock':>10}{'patched':>10}{'+- %':>9}{'ratio':>9}"
    print(f"\ninstructions for 4 KiB, Linux {kernel()}\n  {'':15}{heads}")
    for row in rows:
        if "why" in row.detail:
            print(f"  {row.scenario:15}FAILED {row.detail['why']}")
            continue
        numbers = f"{row.detail['theirs']:>10.0f}{row.detail['ours']:>10.0f}"
        word = "met" if row.met else "MISSED"
        print(
            f"  {row.scenario:15}{numbers}{row.detail['error']:>9}{row.value:>9.4f}  "
            f"{word}, goal {row.goal}"
        )
