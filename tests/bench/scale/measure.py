# SPDX-License-Identifier: LGPL-2.1-or-later
"""Numbers of a case, and verdicts on how they grow from case to case.

Those of bench/overhead/measure.py, and

    bytes           the kernel's memory, less that under none in the same case: the memory of the
                    scheduler for all groups and for itself

A verdict is on one scheduler over all sizes s0 < s1 < ... of a scenario, with c(s) instructions
for an I/O:

    cost_ratio      c(last) / c(s0)
    per_doubling    the steepest step: (c(s2) - c(s1)) / log2(s2 / s1) / c(s0), from s1 on, since
                    the first step is that from one to several. A cost of O(log n) adds the same
                    with each doubling, a cost of O(n) adds ever more. A walk over 1000 groups at
                    3 instructions each would be 0.05 to 0.08
    bytes_per_group (bytes(last) - bytes(s0)) / (last - s0)
    bytes_of_disk   bytes(s0) without its groups: the memory for the disk and for each CPU

    10 groups 10000 instructions, 100: 10200, 1000: 10400: 60 a doubling, 0.006
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from math import log2
from statistics import median

from rig.result import Result

from bench.judge import bounds, summed_up
from bench.overhead.measure import numbers
from bench.scale.run import Windows
from bench.scale.scenario import Case, Scenario

# A scheduler's numbers: by metric, then by size.
Curves = Mapping[str, Mapping[int, float]]


def case_numbers(case: Case, windows: Mapping[str, Windows]) -> Iterator[Result]:
    """All metrics of all schedulers in one case."""
    about = {"axis": case.of.axis, "size": case.size}
    found = list(numbers(case, {name: one.counts for name, one in windows.items()}))
    if "none" in windows:
        zero = median(windows["none"].bytes_)
        for name, one in windows.items():
            found.append(summed_up(case.name, name, "bytes", [b - zero for b in one.bytes_]))
    for result in found:
        result.detail.update(about)
        yield result


def cost_ratio(curves: Curves) -> float:
    """See above."""
    costs = curves["instructions"]
    return costs[max(costs)] / costs[min(costs)]


def per_doubling(curves: Curves) -> float:
    """See above."""
    costs = curves["instructions"]
    steps = list(pairwise(sorted(costs)))
    added = [(costs[b] - costs[a]) / log2(b / a) for a, b in steps[1:] or steps]
    return max(added) / costs[min(costs)]


def bytes_per_group(curves: Curves) -> float:
    """See above."""
    bytes_ = curves["bytes"]
    first, last = min(bytes_), max(bytes_)
    return (bytes_[last] - bytes_[first]) / (last - first)


def bytes_of_disk(curves: Curves) -> float:
    """See above."""
    first = min(curves["bytes"])
    return curves["bytes"][first] - first * bytes_per_group(curves)


GROWTH: Mapping[str, tuple[str, Callable[[Curves], float]]] = {
    "cost_ratio": ("instructions", cost_ratio),
    "per_doubling": ("instructions", per_doubling),
    "bytes_per_group": ("bytes", bytes_per_group),
    "bytes_of_disk": ("bytes", bytes_of_disk),
}


def verdicts(scenario: Scenario, found: Sequence[Result]) -> Iterator[Result]:
    """The growth of all schedulers that ran at two sizes; that of sutro is judged."""
    for name in dict.fromkeys(result.scheduler for result in found):
        curves: dict[str, dict[int, float]] = {}
        goals = bounds(scenario.goal, name)
        for result in found:
            if result.scheduler == name:
                curves.setdefault(result.metric, {})[int(str(result.detail["size"]))] = result.value
        for metric, (of, grown) in GROWTH.items():
            if metric.startswith("bytes") and scenario.axis == "queues":
                continue
            if len(curves.get(of, {})) < 2:
                continue
            detail = {"sizes": list(scenario.sizes)}
            yield Result(scenario.name, name, metric, grown(curves), goals.get(metric), detail)
