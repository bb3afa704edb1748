# SPDX-License-Identifier: LGPL-2.1-or-later
"""Numbers of a stack with stock and with patched drivers, and a verdict on them.

instructions           for each 4 KiB, the median of all windows of a turn
instructions_vs_stock  those with the patched drivers over those with stock ones, each the mean
                       of its turns; `error_percent` is its standard error
instructions_vs_root   the same of a disk that a cgroup uses, over one that the root cgroup does

The kernel looks up and counts what a cgroup sends, and spares itself that for the root cgroup. A
driver that keeps the owner of a bio makes one of the first kind of one of the second: `price` is
the ratio to expect of that alone, if each such bio costs what a cgroup's one costs at a disk.
"""

import math
from collections.abc import Sequence
from statistics import mean, stdev

from rig.result import Result

from bench.harm.scenario import CGROUPS, METRIC, Scenario
from bench.judge import summed_up
from bench.overhead.measure import METRICS, ios
from bench.overhead.run import Count


def turn(stack: Scenario, drivers: str, counts: Sequence[Count]) -> Result:
    """Instructions for an I/O."""
    if not all(ios(count) for count in counts):
        raise RuntimeError(f"{stack.name}: no I/O within {stack.window_ms} ms")
    return summed_up(stack.name, drivers, METRIC, [METRICS[METRIC](count) for count in counts])


def ratio_of(stack: Scenario, turns: Sequence[Result], rows: Sequence[Result] = ()) -> Result:
    """One stack's, of the numbers of its turns; rows: ratios that there are already."""
    found = [[turn.value for turn in turns if turn.scheduler == name] for name in stack.pair]
    theirs, ours = (mean(values) for values in found)
    error = math.hypot(*(stdev(values) / math.sqrt(len(values)) / mean(values) for values in found))
    detail = {
        "ours": round(ours, 1), "theirs": round(theirs, 1), "error_percent": round(error * 100, 2),
    }  # fmt: skip
    for row in rows:
        if row.metric == _metric(CGROUPS) and stack.owned:
            each = float(str(row.detail["ours"])) - float(str(row.detail["theirs"]))
            detail["price"] = round(1 + stack.owned * each / theirs, 4)
    goal = next(iter(stack.goal), None) if stack.judged else None
    return Result(stack.name, stack.pair[1], _metric(stack.pair), ours / theirs, goal, detail)


def _metric(pair: tuple[str, str]) -> str:
    return f"{METRIC}_vs_{pair[0]}"
