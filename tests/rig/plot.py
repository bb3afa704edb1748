# SPDX-License-Identifier: LGPL-2.1-or-later
"""Draw who got which share of the device time, over time: a panel for each scheduler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

WINDOW_S = 0.5
STEP_S = 0.1


@dataclass(frozen=True)
class Panel:
    """Curves of one run: seconds, and per unit its share and what it is entitled to then."""

    title: str
    seconds: Sequence[float]
    shares: Mapping[str, Sequence[float]]
    entitled: Mapping[str, Sequence[float]]
    marks: Mapping[float, str]


def draw(title: str, panels: Sequence[Panel], file: str | Path) -> None:
    """Write a PNG: solid lines are true shares of device time, dotted lines what was asked for."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    size = (4.2 * len(panels), 3.6)
    figure, axes = pyplot.subplots(1, len(panels), sharey=True, squeeze=False, figsize=size)
    for axis, panel in zip(axes[0], panels, strict=True):
        for number, (unit, shares) in enumerate(panel.shares.items()):
            colour = f"C{number}"
            axis.plot(panel.seconds, shares, color=colour, label=unit)
            axis.plot(panel.seconds, panel.entitled[unit], ":", color=colour, linewidth=1)
        for second, what in panel.marks.items():
            axis.axvline(second, color="grey", linewidth=0.8)
            axis.annotate(what, (second, 1.01), fontsize=7, ha="center", annotation_clip=False)
        axis.set_title(panel.title, pad=14, fontsize=10)
        axis.set_xlabel("seconds")
        axis.set_ylim(0, 1)
    axes[0][0].set_ylabel("share of true device time")
    axes[0][-1].legend(fontsize=8)
    figure.suptitle(title, fontsize=11)
    figure.tight_layout()
    figure.savefig(file, dpi=90)
    pyplot.close(figure)
