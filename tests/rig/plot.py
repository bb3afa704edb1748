# SPDX-License-Identifier: LGPL-2.1-or-later
"""Pictures of benches; those of the demo: shares of device time, a panel for each scheduler."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

WINDOW_S = 0.5
STEP_S = 0.1


@dataclass(frozen=True)
class Panel:
    """Curves of one run: seconds, and for each unit its share and its entitlement."""

    title: str
    seconds: Sequence[float]
    shares: Mapping[str, Sequence[float]]
    entitled: Mapping[str, Sequence[float]]
    marks: Mapping[float, str]


@contextmanager
def figure(rows: int, columns: int, size: tuple[float, float], file: str | Path) -> Iterator[Any]:
    """The figure and its axes, which become a PNG. `size` is that of an axis."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    whole = (size[0] * columns, size[1] * rows)
    drawn, axes = pyplot.subplots(rows, columns, squeeze=False, figsize=whole)
    yield drawn, axes.flatten()
    drawn.tight_layout()
    drawn.savefig(file, dpi=90)
    pyplot.close(drawn)


def draw(title: str, panels: Sequence[Panel], file: str | Path) -> None:
    """Write a PNG: solid lines are true shares of device time, dotted lines entitlements."""
    with figure(1, len(panels), (4.2, 3.6), file) as (whole, axes):
        for axis, panel in zip(axes, panels, strict=True):
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
        axes[0].set_ylabel("share of true device time")
        axes[-1].legend(fontsize=8)
        whole.suptitle(title, fontsize=11)
