# SPDX-License-Identifier: LGPL-2.1-or-later
"""Draw what each scheduler costs: a panel for each scenario, a group of bars for each case."""

from collections.abc import Sequence
from pathlib import Path

from rig.plot import figure
from rig.result import Result

# The first of these that a scenario has is drawn.
LABELS = {"instructions": "instructions per I/O", "iops": "I/Os a second", "mbps": "MB/s"}


def draw(results: Sequence[Result], file: str | Path) -> None:
    """Write a PNG; the thin lines are standard deviations."""
    names = list(dict.fromkeys(_scenario(result) for result in results))
    bars = {name: mine for name in names if (mine := _bars(results, name))}
    if not bars:
        return
    colours = {name: f"C{n}" for n, name in enumerate(dict.fromkeys(r.scheduler for r in results))}
    with figure(len(bars), 1, (11, 3.2), file) as (_, axes):
        for axis, (name, rows) in zip(axes, bars.items(), strict=True):
            cases = list(dict.fromkeys(row.scenario for row in rows))
            schedulers = list(dict.fromkeys(row.scheduler for row in rows))
            width = 0.8 / len(schedulers)
            for number, scheduler in enumerate(schedulers):
                mine = [row for row in rows if row.scheduler == scheduler]
                places = [cases.index(row.scenario) + number * width for row in mine]
                values = [row.value for row in mine]
                spread = [row.value * float(str(row.detail["stdev_percent"])) / 100 for row in mine]
                look = {"label": scheduler, "color": colours[scheduler], "error_kw": {"lw": 0.7}}
                axis.bar(places, values, width, yerr=spread, **look)
            axis.set_xticks([place + 0.4 - width / 2 for place in range(len(cases))])
            axis.set_xticklabels([c.split("/", 1)[1].replace("/", ", groups: ") for c in cases])
            axis.set_ylabel(LABELS[rows[0].metric])
            axis.set_title(name, fontsize=10)
        axes[0].legend(fontsize=8, ncols=len(bars) + 2)


def _scenario(result: Result) -> str:
    return result.scenario.split("/")[0]


def _bars(results: Sequence[Result], scenario: str) -> list[Result]:
    """Instructions where they were counted, else throughput."""
    mine = [result for result in results if _scenario(result) == scenario]
    found = ([result for result in mine if result.metric == metric] for metric in LABELS)
    return next(filter(None, found), [])
