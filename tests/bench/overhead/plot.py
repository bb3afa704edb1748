# SPDX-License-Identifier: LGPL-2.1-or-later
"""Draw what each scheduler costs: a panel for each scenario, a group of bars for each case."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rig.result import Result

# The first of these that a scenario has is drawn.
LABELS = {"instructions": "instructions per I/O", "iops": "I/Os a second", "mbps": "MB/s"}


def draw(results: Sequence[Result], file: str | Path) -> None:
    """Write a PNG; the thin lines are standard deviations."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    bars = {name: _bars(results, name) for name in _scenarios(results)}
    figure, axes = pyplot.subplots(len(bars), 1, squeeze=False, figsize=(11, 3.2 * len(bars)))
    for axis, (name, rows) in zip(axes[:, 0], bars.items(), strict=True):
        cases = list(dict.fromkeys(row.scenario for row in rows))
        schedulers = list(dict.fromkeys(row.scheduler for row in rows))
        width = 0.8 / len(schedulers)
        for number, scheduler in enumerate(schedulers):
            mine = {row.scenario: row for row in rows if row.scheduler == scheduler}
            places = [place + number * width for place, case in enumerate(cases) if case in mine]
            values = [mine[case].value for case in cases if case in mine]
            errors = [
                mine[case].value * float(str(mine[case].detail["stdev"])) / 100
                for case in cases
                if case in mine
            ]
            axis.bar(places, values, width, yerr=errors, label=scheduler, error_kw={"lw": 0.7})
        axis.set_xticks([place + 0.4 - width / 2 for place in range(len(cases))])
        axis.set_xticklabels([case.split("/", 1)[1].replace("/", ", groups: ") for case in cases])
        axis.set_ylabel(LABELS[rows[0].metric])
        axis.set_title(name, fontsize=10)
    axes[0][0].legend(fontsize=8, ncols=len(bars) + 2)
    figure.tight_layout()
    figure.savefig(file, dpi=90)
    pyplot.close(figure)


def _scenarios(results: Sequence[Result]) -> list[str]:
    return list(dict.fromkeys(result.scenario.split("/")[0] for result in results))


def _bars(results: Sequence[Result], scenario: str) -> list[Result]:
    """Instructions where they were counted, else throughput."""
    mine = [result for result in results if result.scenario.split("/")[0] == scenario]
    found = ([result for result in mine if result.metric == metric] for metric in LABELS)
    return next(filter(None, found), [])
