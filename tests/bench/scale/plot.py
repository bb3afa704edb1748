# SPDX-License-Identifier: LGPL-2.1-or-later
"""Draw how what each scheduler costs grows: a panel for each scenario and metric, a line for each
scheduler."""

from collections.abc import Sequence
from pathlib import Path

from rig.plot import figure
from rig.result import Result

from bench.overhead.plot import LABELS

DRAWN = {**LABELS, "bytes": "KiB for all groups"}
# If the largest value is this many times the smallest, the scale is logarithmic.
APART = 10
AXES = {"idle": "idle groups", "busy": "busy groups", "queues": "hardware queues, CPUs"}


def draw(results: Sequence[Result], file: str | Path) -> None:
    """Write a PNG; the thin bars are standard deviations."""
    panels = list(dict.fromkeys(_panel(r) for r in results if _drawn(r, results)))
    if not panels:
        return
    with figure(len(panels), 1, (9, 3.4), file) as (_, axes):
        for axis, panel in zip(axes, panels, strict=True):
            mine = [r for r in results if "size" in r.detail and _panel(r) == panel]
            for name in dict.fromkeys(result.scheduler for result in mine):
                line = [result for result in mine if result.scheduler == name]
                sizes = [float(str(result.detail["size"])) for result in line]
                scale = 1024 if panel[1] == "bytes" else 1
                values = [result.value / scale for result in line]
                errors = [
                    abs(value) * float(str(result.detail["stdev_percent"])) / 100
                    for value, result in zip(values, line, strict=True)
                ]
                axis.errorbar(sizes, values, errors, marker="o", ms=3, elinewidth=0.7, label=name)
            axis.set_xscale("log")
            axis.set_xticks(sizes, [f"{size:,.0f}" for size in sizes])
            axis.set_xlabel(AXES[str(mine[0].detail["axis"])])
            axis.set_ylabel(DRAWN[panel[1]])
            if far_apart([result.value for result in mine]):
                axis.set_yscale("log")
            else:
                axis.set_ylim(bottom=0)
            axis.set_title(panel[0], fontsize=10)
        axes[0].legend(fontsize=8)


def far_apart(values: Sequence[float]) -> bool:
    """Whether the least would look like nothing on a straight axis, though it is more."""
    return 0 < APART * min(values) < max(values)


def _panel(result: Result) -> tuple[str, str]:
    return result.scenario.split("/")[0], result.metric


def _drawn(result: Result, results: Sequence[Result]) -> bool:
    """Instructions where they were counted, else throughput; memory where groups grow."""
    if "size" not in result.detail or result.metric not in DRAWN:
        return False
    if result.metric == "bytes":
        return result.detail["axis"] != "queues"
    counted = any(_panel(r) == (_panel(result)[0], "instructions") for r in results)
    return result.metric == ("instructions" if counted else "iops")
