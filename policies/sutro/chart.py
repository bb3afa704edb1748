# SPDX-License-Identifier: LGPL-2.1-or-later
"""Panels as a picture: PNG by matplotlib, or one HTML file that needs only a browser.

Each panel has a line of the received rate or latency over a step of the granted one. A dotted
line is the stated one, where the disks cannot grant all of it.
"""

import html as markup
import io
import math
from collections.abc import Iterator, Sequence
from typing import Protocol

from . import values
from .errors import SutroError

# Without a sample for this time there is a gap, not a line.
GAP_S = 3.0


class Panel(Protocol):
    """A promise over time: plot.Panel without its methods."""

    key: str
    title: str
    seconds: list[float]
    got: list[float]
    value: list[float]
    granted: list[float]


def runs(seconds: Sequence[float]) -> Iterator[slice]:
    """Slices of `seconds` between gaps: within each, samples are at most GAP_S apart."""
    begin = 0
    for end in range(1, len(seconds) + 1):
        if end == len(seconds) or seconds[end] - seconds[end - 1] > GAP_S:
            yield slice(begin, end)
            begin = end


def ticks(largest: float) -> list[float]:
    """Four or five round numbers from 0 up to `largest` or a little less."""
    if largest <= 0:
        return [0.0]
    power = 10.0 ** math.floor(math.log10(largest))
    step = next(m * power for m in (0.2, 0.25, 0.5, 1, 2) if largest / (m * power) < 5.0001)
    return [number * step for number in range(int(largest / step + 1e-9) + 1)]


def thinned(numbers: Sequence[float], limit: int) -> list[int]:
    """Indices of at most `limit` + 2 numbers: of each stretch the smallest and the largest."""
    if len(numbers) <= limit:
        return list(range(len(numbers)))
    kept = {0, len(numbers) - 1}
    stretch = math.ceil(2 * len(numbers) / limit)
    for begin in range(0, len(numbers), stretch):
        indices = range(begin, min(begin + stretch, len(numbers)))
        kept |= {min(indices, key=numbers.__getitem__), max(indices, key=numbers.__getitem__)}
    return sorted(kept)


def _largest(panel: Panel) -> float:
    """The upper end of the y axis: a little more than any rate or latency in the panel."""
    return 1.08 * max(*panel.got, *panel.value, 1.0)


# PNG


def need_matplotlib() -> None:
    """SutroError if the package for PNG is not installed."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise SutroError(
            "PNG needs matplotlib, which is not installed",
            "install it: apt install python3-matplotlib; or write HTML: -o FILE.html",
        ) from None


def png(panels: Sequence[Panel]) -> bytes:
    """The panels as a PNG."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot
    from matplotlib.ticker import FuncFormatter

    size = (9, 0.7 + 2.1 * len(panels))
    figure, axes = pyplot.subplots(len(panels), squeeze=False, sharex=True, figsize=size)
    for axis, panel in zip(axes[:, 0], panels, strict=True):
        for part in runs(panel.seconds):
            seconds = panel.seconds[part]
            axis.plot(seconds, panel.value[part], ":", color="grey", drawstyle="steps-post")
            axis.plot(seconds, panel.granted[part], color="C1", drawstyle="steps-post")
            axis.plot(seconds, panel.got[part], color="C0")
        # A dollar would begin a formula.
        axis.set_title(panel.title.replace("$", r"\$"), fontsize=9, loc="left")
        axis.set_ylim(0, _largest(panel))
        axis.yaxis.set_major_formatter(
            FuncFormatter(lambda number, _, key=panel.key: values.short(key, number))
        )
    axes[-1][0].set_xlabel("seconds")
    lines = axes[0][0].get_lines()[:3]
    figure.legend(lines, ["stated", "granted", "got"], ncols=3, fontsize=8, loc="upper right")
    figure.tight_layout(rect=(0, 0, 1, 0.97))
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png", dpi=100)
    pyplot.close(figure)
    return drawn.getvalue()


# HTML

WIDTH, HEIGHT = 860, 170
LEFT, RIGHT, TOP, BOTTOM = 70, 10, 8, 24
POINTS = 1600

HEAD = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>sutroctl plot</title>
<style>
  :root { color-scheme: light dark; }
  body { font: 14px sans-serif; max-width: 900px; margin: 1em auto; }
  h2 { font-size: 1em; margin: 1.2em 0 0.2em; overflow-wrap: anywhere; }
  p { margin: 0.2em 0; }
  svg { width: 100%; height: auto; }
  svg text { font-size: 11px; fill: currentColor; }
  .grid { stroke: currentColor; opacity: 0.15; }
  path { fill: none; stroke-width: 1.5; }
  .got { stroke: #1f77b4; }
  .granted { stroke: #ff7f0e; }
  .stated { stroke: currentColor; opacity: 0.6; stroke-dasharray: 2 4; }
  .key { display: inline-block; width: 2em; border-top: 3px solid; vertical-align: middle; }
</style>
</head>
<body>
<p><span class="key" style="color: #1f77b4"></span> got
<span class="key" style="color: #ff7f0e"></span> granted
<span class="key" style="border-top-style: dotted"></span> stated</p>
"""


def html(panels: Sequence[Panel]) -> bytes:
    """The panels as one HTML file."""
    first = min(panel.seconds[0] for panel in panels)
    body = "".join(_section(panel, min(first, -1.0)) for panel in panels)
    return (HEAD + body + "</body>\n</html>\n").encode()


def _section(panel: Panel, first_s: float) -> str:
    """The heading, the summary and the picture of a panel; `first_s` is the left end of time."""
    mean = sum(panel.got) / len(panel.got)
    least, most = (values.short(panel.key, number) for number in (min(panel.got), max(panel.got)))
    summary = f"got {values.short(panel.key, mean)} on average, {least} to {most}"
    return (
        f"<h2>{markup.escape(panel.title)}</h2>\n<p>{summary}</p>\n"
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{summary}">\n'
        f"{_grid(panel, first_s)}{_curves(panel, first_s)}</svg>\n"
    )


def _x(second: float, first_s: float) -> float:
    """Pixels from the left of a time in seconds, which is 0 or negative."""
    return LEFT + (WIDTH - LEFT - RIGHT) * (1 - second / first_s)


def _y(number: float, largest: float) -> float:
    """Pixels from the top of a rate or latency; `largest` is at the top."""
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * number / largest


def _grid(panel: Panel, first_s: float) -> str:
    """Lines and labels of both axes, as SVG."""
    lines = []
    for number in ticks(_largest(panel)):
        y = _y(number, _largest(panel))
        text = values.short(panel.key, number)
        lines.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" ')
        lines.append(f'y2="{y:.1f}"/><text x="{LEFT - 6}" y="{y + 4:.1f}" ')
        lines.append(f'text-anchor="end">{text}</text>\n')
    for second in ticks(-first_s):
        text = f"-{second:g} s" if second else "now"
        lines.append(f'<text x="{_x(-second, first_s):.1f}" y="{HEIGHT - 6}" ')
        lines.append(f'text-anchor="{"middle" if second else "end"}">{text}</text>\n')
    return "".join(lines)


def _curves(panel: Panel, first_s: float) -> str:
    """The three curves of a panel, as SVG."""
    largest = _largest(panel)
    curves = {"stated": panel.value, "granted": panel.granted, "got": panel.got}
    paths = []
    for name, numbers in curves.items():
        words = []
        for part in runs(panel.seconds):
            seconds, here = panel.seconds[part], numbers[part]
            # A run of one sample is a dot: a line from it to itself.
            kept = thinned(here, POINTS)
            for letter, index in zip("M" + "L" * len(kept), [*kept, kept[-1]], strict=True):
                x, y = _x(seconds[index], first_s), _y(here[index], largest)
                words.append(f"{letter}{x:.1f} {y:.1f}")
        paths.append(f'<path class="{name}" stroke-linecap="round" d="{"".join(words)}"/>\n')
    return "".join(paths)
