# SPDX-License-Identifier: LGPL-2.1-or-later
"""The verb plot: rates of promises over time beside the promised ones; a panel for each.

The samples come from the daemon, which keeps the last ten minutes, or from a file that
`sutroctl watch --json` wrote. Times are in seconds before the newest sample of all panels.
"""

import argparse
import asyncio
import contextlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import chart, objects, units
from .answer import Answer
from .client import Client
from .errors import NoSuchPromise, NoSuchUnit, SutroError, UsageError, of_file
from .files import replace
from .objects import NUMBER, STRING, Kind, Optional, is_number
from .promises import TARGETS, worst_first

Dict = dict[str, Any]

SUFFIXES = (".html", ".png")
# Matplotlib takes minutes for some hundred panels above each other.
PNG_PANELS_MOST = 64


@dataclass
class Panel:
    """One promise over time: at each second, the rate or latency got, stated and granted.

    `unit` is the cgroup where the promise is of a cgroup by its path.

    Numbers are in the unit of the key: bytes or operations per second, or us.
    """

    unit: str
    key: str
    path: str
    seconds: list[float] = field(default_factory=list)
    got: list[float] = field(default_factory=list)
    value: list[float] = field(default_factory=list)
    granted: list[float] = field(default_factory=list)

    @property
    def title(self) -> str:
        """The promise as in a policy file."""
        return f"{self.unit}  {self.key}={self.path}"

    def add(self, second: float, got: float, value: float, granted: float) -> None:
        """Add a sample; `granted`, 0 to 1, is a part of a floor, or of the time for a target."""
        self.seconds.append(second)
        self.got.append(got)
        self.value.append(value)
        self.granted.append(value if self.key in TARGETS else value * granted)


def check_output(name: str) -> None:
    """UsageError for another suffix, SutroError without the package for PNG."""
    suffix = Path(name).suffix
    if suffix not in SUFFIXES:
        allowed = " or ".join(SUFFIXES)
        raise UsageError(f"'{name}' is no name for a plot: allowed is one in {allowed}")
    if suffix == ".png":
        chart.need_matplotlib()


async def plot(client: Client | None, args: argparse.Namespace) -> Answer:
    """Draw the rates of promises over time."""
    output = Path(args.output)
    panels = _recorded(args.source) if client is None else await _remembered(client)
    panels = _chosen(panels, args.unit)
    if output.suffix == ".png" and len(panels) > PNG_PANELS_MOST:
        raise SutroError(
            f"a PNG has room for {PNG_PANELS_MOST} promises, and there are {len(panels)}",
            "name some units, or a file that ends in .html",
        )
    _count_back(panels)
    draw = chart.png if output.suffix == ".png" else chart.html
    replace(output, draw(panels))
    drawn = [
        {"unit": one.unit, "key": one.key, "path": one.path, "samples": len(one.seconds)}
        for one in panels
    ]
    return Answer({"file": str(output), "panels": drawn})


async def _remembered(client: Client) -> list[Panel]:
    """The samples that the daemon keeps of each promise."""

    async def one(promise: Dict) -> Panel:
        key, path = promise["key"], promise["path"]
        panel = Panel(promise["unit"] or promise["cgroup"], key, path)
        # Limits and promises without a device have no samples.
        with contextlib.suppress(NoSuchPromise):
            for monotonic_us, *sample in await client.history(panel.unit, key, path):
                panel.add(monotonic_us / 1e6, *sample)
        return panel

    return await asyncio.gather(*map(one, worst_first(await client.promises())))


NUMBERS = ("time", "got", "value", "granted")
SAMPLE = {"unit": STRING, "cgroup": Optional(STRING, ""), "key": STRING, "path": STRING}
SAMPLE |= dict.fromkeys(NUMBERS, NUMBER)
# An earlier version wrote no cgroup; null is a limit of infinity.
SAMPLE |= {"value": Kind(f"{NUMBER.expected}, or null", lambda v: v is None or is_number(v))}


def _recorded(file: str) -> list[Panel]:
    """The samples in a file of `watch --json`; SutroError with the line of a mistake."""
    panels: dict[tuple[str, str, str], Panel] = {}
    try:
        with open(file, encoding="utf-8", newline="\n") as stream:
            for number, line in enumerate(stream, 1):
                # A recording that was killed ends within a line.
                if line.strip() and (sample := _sample(line, f"{file}:{number}")):
                    owner = sample["unit"] or sample["cgroup"]
                    name = (owner, sample["key"], sample["path"])
                    panel = panels.setdefault(name, Panel(*name))
                    panel.add(*(sample[name] for name in NUMBERS))
    except OSError as error:
        raise of_file(file, error) from None
    except UnicodeDecodeError:
        raise SutroError(
            f"{file}: this is not UTF-8 text", "make one: sutroctl watch --json >FILE"
        ) from None
    return list(panels.values())


def _sample(line: str, where: str) -> Dict | None:
    """The sample of a line; SutroError for a line that is not a sample.

    None for a line that was cut off, and for a limit of infinity, which has no curve.
    """
    expected = "expected the output of sutroctl watch --json"
    try:
        entry = objects.parse(line)
    except objects.NotJSON:
        if not line.endswith("\n"):
            return None
        raise SutroError(f"{where}: '{line.strip()[:60]}' is not JSON; {expected}") from None
    try:
        sample = objects.checked(entry, SAMPLE)
    except objects.WrongField as error:
        text = str(error) if isinstance(entry, dict) else "this line is not a JSON object"
        raise SutroError(f"{where}: {text}; {expected}") from None
    return None if sample["value"] is None else sample


def _chosen(panels: list[Panel], wanted: list[str]) -> list[Panel]:
    """The panels of some units (none named: of all) that have samples.

    NoSuchUnit for a unit without a promise, SutroError if there is nothing to draw.
    """
    known = {panel.unit for panel in panels}
    for unit in wanted:
        if unit not in known:
            meant = units.near(unit, known)
            hint = f"did you mean {' or '.join(meant)}?" if meant else "see: sutroctl status"
            raise NoSuchUnit(f"there is no promise for '{unit}'", hint)
    found = [panel for panel in panels if panel.seconds and (not wanted or panel.unit in wanted)]
    if not found:
        raise SutroError(
            "there is nothing to draw: no promise has a sample yet",
            "a promise is recorded from the second in which it is set",
        )
    return found


def _count_back(panels: list[Panel]) -> None:
    """Change times to seconds before the newest sample."""
    newest = max(panel.seconds[-1] for panel in panels)
    for panel in panels:
        panel.seconds = [second - newest for second in panel.seconds]
