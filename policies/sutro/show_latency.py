# SPDX-License-Identifier: LGPL-2.1-or-later
"""Histograms of latencies as text for people; see show.py for the manner."""

from typing import Any

from rich.bar import Bar
from rich.text import Text

from . import values
from .promises import fails
from .text import BAD, FAINT, GOOD, NAME, Output, columns
from .values import percent

Dict = dict[str, Any]

PERCENTILES = {"p50_us": "P50", "p90_us": "P90", "p95_us": "P95", "p99_us": "P99"}
PERCENTILES["p99_9_us"] = "P99.9"
BAR_COLUMNS = 40
SOURCES = {
    "volume": "measured at the device",
    "leaves": "measured at the leaves, because BPF is not available",
}


def _time(us: float) -> str:
    """A time in us as text."""
    return values.short("LatencyTarget", us)


def _octaves(buckets: list[Dict]) -> list[Dict]:
    """The buckets put together: a line for each power of two, also for those without requests."""
    found: dict[int, float] = {}
    for bucket in buckets:
        # The first bucket begins at 0; it is wide as one power of two.
        octave = int(bucket["to_us"] * 1000 - 1).bit_length()
        found[octave] = found.get(octave, 0) + bucket["requests"]
    return [
        {"to_us": 2**octave / 1000, "requests": found.get(octave, 0)}
        for octave in range(min(found, default=0), max(found, default=-1) + 1)
    ]


def _target(target: Dict) -> Text:
    """The line of a latency target."""
    line = Text(f"  target {target['path']} {_time(target['value'])} ")
    line.append(f"P{target['percentile']:g}: got {_time(target['got'])}, ")
    return line.append(target["state"], style=BAD if fails(target) else GOOD)


def latency(out: Output, data: Dict) -> None:
    """For each device and kind of request: percentiles, targets, and a histogram."""
    for number, row in enumerate(data["rows"]):
        if number:
            out.print()
        title = Text.assemble((f"{row['name']} {row['op']}", NAME))
        title.append(f"  {row['requests']} requests, {SOURCES.get(row['source'], row['source'])}")
        out.print(title)
        for target in row["targets"]:
            out.print(_target(target))
        if row["requests"]:
            shown = (f"{name} {_time(row[key])}" for key, name in PERCENTILES.items())
            out.print("  " + "  ".join(shown))
            _histogram(out, row)


def _histogram(out: Output, row: Dict) -> None:
    """Print a line for each power of two of the latency."""
    octaves = _octaves(row["buckets"])
    most = max(octave["requests"] for octave in octaves)
    table = columns(">  UP TO", ">REQUESTS", ">SHARE", "")
    for octave in octaves:
        table.add_row(
            Text(_time(octave["to_us"]), style=FAINT),
            f"{octave['requests']:.0f}",
            percent(octave["requests"] / row["requests"]),
            Bar(most, 0, octave["requests"], width=BAR_COLUMNS),
        )
    out.print(table)
