# SPDX-License-Identifier: LGPL-2.1-or-later
"""Promises, policies and their use as text for people; see show.py for the manner."""

import contextlib
import itertools
from collections.abc import Callable, Iterator
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.segment import Segment, Segments
from rich.table import Table
from rich.text import Text

from . import values
from .promises import ABOUT, NOT_YET, TARGETS, about, fails, granted, percentile, stated
from .text import BAD, FAINT, GOOD, NAME, columns, percent

Dict = dict[str, Any]
Draw = Callable[..., None]

PENDING = "yellow"
MEASURED_AT = {
    "volume": "at the device itself",
    "leaves": "as the sum over its leaves, without BPF",
}
# In a window with fewer columns the leaves would leave no room for names.
WITH_LEAVES = 96


def _state(promise: Dict) -> Text:
    style = BAD if fails(promise) else PENDING if promise["state"] in NOT_YET else GOOD
    return Text(promise["state"], style=style)


def _number(key: str, number: float) -> str:
    return values.short(key, number) if number else "-"


def _granted(promise: Dict) -> str:
    return _number(promise["key"], granted(promise))


def mistakes(out: Console, errors: list[str]) -> None:
    """Mistakes in policy files."""
    for error in errors:
        out.print(Text.assemble(("mistake ", BAD), error))
    if errors:
        out.print("The last good version of such a file stays in force.", style=FAINT)


# status, explain


def promises(out: Console, found: list[Dict]) -> None:
    """A line for each promise, and why it does not hold."""
    table = columns("UNIT", "PROMISE", "PATH", ">VALUE", ">GRANTED", ">GOT", "STATE")
    for promise in found:
        key = promise["key"]
        table.add_row(
            Text(promise["unit"] or promise["cgroup"], style=NAME),
            about(promise),
            promise["path"],
            stated(promise),
            _granted(promise),
            _number(key, promise["got"]),
            _state(promise),
        )
    out.print(table)
    for promise in found:
        if promise["cause"]:
            who = f"{promise['unit'] or promise['cgroup']} {about(promise)}"
            out.print(Text.assemble((f"{who}: ", NAME), promise["cause"]))


def capacities(out: Console, found: list[Dict]) -> None:
    """A line for each declared rate, with the promised part."""
    table = columns("DEVICE", "FLOORS", ">CAPACITY", ">PROMISED", ">LEFT")
    for one in found:
        key, over = one["key"], one["promised"] > one["capacity"]
        table.add_row(
            Text(one["path"], style=NAME),
            ABOUT.get(key, key),
            values.short(key, one["capacity"]),
            Text(_number(key, one["promised"]), style=BAD if over else ""),
            _number(key, one["left"]),
        )
    out.print(table)


def measured(out: Console, data: Dict) -> None:
    """The rates, and the part that is kept."""
    table = columns("FLOORS", ">MEASURED", ">CAPACITY")
    for one in data["measured"]:
        key = one["key"]
        table.add_row(ABOUT[key], *(values.short(key, one[k]) for k in ("measured", "capacity")))
    out.print(table)
    if data["file"]:
        out.print(Text.assemble("kept for ", (data["path"], NAME), f" in {data['file']}"))
    else:
        out.print("dry run: nothing is kept", style=FAINT)


def explained(out: Console, found: list[Dict]) -> None:
    """Each promise of a unit, with its need of each leaf."""
    for promise in found:
        key = promise["key"]
        out.print()
        line = Text.assemble((key, NAME), f"={promise['path']} ")
        exact = key in values.KINDS and not promise.get("percent")
        value = values.text(key, promise["value"]) if exact else stated(promise)
        if key in TARGETS and percentile(promise) != f"P{values.PERCENTILE_USUAL}":
            value += f" {percentile(promise)}"
        line.append(f"{value}  ")
        line.append(_state(promise))
        out.print(line.append(f"  got {_number(key, promise['got'])}"))
        if promise["cause"]:
            out.print("  because " + promise["cause"])
        if measured := MEASURED_AT.get(promise.get("measured_at", "")):
            out.print(Text(f"  measured {measured}", style=FAINT))
        if promise["granted"] < 1 and promise["device"]:
            out.print(f"  granted {_granted(promise)}: {percent(promise['granted'])} of it")
        if promise["reserve"]:
            out.print(f"  {_reserve(promise)}")
        if promise["amplification"]:
            out.print(f"  {promise['amplification']:.2f} bytes at the leaves for each byte")
        line = f"  set in {promise['source']}, importance {promise['importance']}"
        out.print(line, style=FAINT)
        if promise["leaves"]:
            out.print(_needs(promise))


def _reserve(promise: Dict) -> str:
    part = f"{percent(promise['reserve'])} of the time of its leaves is reserved for it"
    prices = [f"{percent(leaf['price'])} of {leaf['leaf']}" for leaf in promise["leaves"]]
    return f"{part}, which costs other units {', '.join(prices)}"


def _needs(promise: Dict) -> Table:
    headers = (">NEEDED", ">ALLOTTED", ">GOT", ">WEIGHT", ">COST")
    table = columns("  LEAF", "SCHEDULER", *headers)
    for leaf in promise["leaves"]:
        table.add_row(
            Text("  " + leaf["leaf"], style=NAME),
            leaf["scheduler"],
            percent(leaf["share_needed"]),
            percent(leaf["share_allotted"]),
            percent(leaf["share_got"]),
            str(leaf["weight"]),
            _cost(promise["key"], leaf["cost_ns"]),
        )
    return table


def _cost(key: str, cost_ns: float) -> str:
    """Device time for a MiB, or for one operation."""
    per, what = (2**20, "MiB") if "Bandwidth" in key else (1, "io")
    return f"{values.short('LatencyTarget', cost_ns * per / 1000)}/{what}" if cost_ns else "-"


# top


def _usage_table(rows: list[Dict], width: int) -> Table:
    headers = ["UNIT", "DEVICE", "", ">VALUE", ">GRANTED", ">GOT", "STATE"]
    with_leaves = width >= WITH_LEAVES
    table = columns(*headers, *(["LEAF", ">SHARE", ">WEIGHT"] if with_leaves else []))
    for column in table.columns[2:]:
        column.no_wrap = True  # names of units and devices fold, and nothing else
    for row in rows:
        count = max(len(row["lines"]), len(row["leaves"]) if with_leaves else 1)
        for number in range(count):
            first = number == 0
            table.add_row(
                Text(row["unit"] or row["cgroup"], style=NAME) if first else "",
                row["name"] if first else "",
                *_line_cells(row["lines"], number),
                *(_leaf_cells(row["leaves"], number) if with_leaves else []),
            )
    return table


def _line_cells(lines: list[Dict], number: int) -> list[str | Text]:
    if number >= len(lines):
        return [""] * 5
    line = lines[number]
    key = line["key"] or "ReadBandwidthMin"
    return [
        line["about"],
        _number(key, line["value"]),
        _granted(line | {"key": key}),
        _number(key, line["got"]),
        _state(line) if line["state"] else "",
    ]


def _leaf_cells(leaves: list[Dict], number: int) -> list[str]:
    if number >= len(leaves):
        return [""] * 3
    leaf = leaves[number]
    return [leaf["leaf"].removeprefix("/dev/"), percent(leaf["share"]), str(leaf["weight"])]


def _usage(out: Console, rows: list[Dict]) -> Table | str:
    if not rows:
        return "No unit used a device in the last second, and nothing is promised."
    return _usage_table(rows, out.width)


def top(out: Console, rows: list[Dict]) -> None:
    """One table."""
    out.print(_usage(out, rows))


@contextlib.contextmanager
def screen(out: Console) -> Iterator[Draw]:
    """A context whose function draws rows and a note over the former ones."""
    if not out.is_terminal or out.is_dumb_terminal:
        yield lambda rows, note="": _print_below(out, rows, note)
        return
    with Live(console=out, screen=True, auto_refresh=False) as live:
        yield lambda rows, note="": live.update(_fitted(out, rows, note), refresh=True)


def _print_below(out: Console, rows: list[Dict], note: str) -> None:
    if note:
        out.print(note)
    with out.capture() as text:
        top(out, rows)
    # rich fills each line of a table to its full width
    out.file.write("".join(line.rstrip() + "\n" for line in text.get().splitlines()) + "\n")
    out.file.flush()


def _fitted(out: Console, rows: list[Dict], note: str) -> Segments:
    """As many lines as the window has; the last one has the number of missing ones."""
    lines = out.render_lines(_usage(out, rows))
    room = max(out.size.height - 1, 1)
    if len(lines) > room:
        note = note or f"{len(lines) - room} lines more: name a DEVICE, or use --once"
    style = out.get_style(BAD if note else FAINT)
    foot = [Segment((note or "q: quit")[: out.width], style)]
    shown = lines[:room] + [[]] * (room - len(lines))
    return Segments(itertools.chain(*(line + [Segment.line()] for line in shown), foot))


# policy


def _settings(out: Console, entries: list[Dict]) -> None:
    table = columns("", "KEY", "VALUE", "SET IN")
    for entry in entries:
        style = "" if entry["in_force"] else FAINT
        table.add_row(
            Text("  *" if entry["in_force"] else "   ", style=GOOD),
            Text(entry["key"], style=style),
            Text(entry["value"], style=style),
            Text(entry["source"], style=style),
        )
    out.print(table)


def policy(out: Console, data: Dict) -> None:
    """The settings of each unit; a star marks those in force."""
    if not any(unit["policy"] for unit in data["units"]):
        out.print("No policy is set. Set one: sutroctl policy set UNIT KEY=VALUE")
    for unit in data["units"]:
        if unit["policy"]:
            out.print(Text(unit["unit"], style=NAME))
            _settings(out, unit["policy"])
    if any(unit["policy"] for unit in data["units"]):
        out.print("* in force", style=FAINT)
    mistakes(out, data["policy_errors"])


VERDICTS = {"fits": ("fits", GOOD), "does-not-fit": ("does not fit", BAD)}


def fits(out: Console, data: Dict) -> None:
    """For each device: whether its floors fit, the reason, and the need of each floor."""
    if not data["devices"]:
        out.print("No unit has a floor: the devices have room.")
    for device in data["devices"]:
        verdict, style = VERDICTS.get(device["verdict"], (device["verdict"], PENDING))
        out.print(Text.assemble((device["path"], NAME), "  ", (verdict, style)))
        out.print(Text(f"  {device['reason']}"))
        headers = (">FLOOR", ">CAPACITY", ">SHARE", ">GRANTED")
        table = columns("  UNIT", "PROMISE", *headers, "SET IN")
        for floor in device["floors"]:
            table.add_row(
                Text("  " + floor["unit"], style=NAME),
                about(floor),
                stated(floor),
                _number(floor["key"], floor["rate_alone"]),
                percent(floor["share"]),
                percent(floor["granted"]),
                Text(floor["source"], style=FAINT),
            )
        out.print(table)


LIFETIMES = {
    "persistent": "kept over reboots",
    "runtime": "until reboot",
    "client": "until Ctrl-C",
}


def policy_set(out: Console, data: Dict) -> None:
    """The new settings, and those in force since."""
    for pair in data["said"]:
        line = Text.assemble((data["unit"], NAME), f": {pair['key']}")
        if pair["value"]:
            line.append(f"={pair['value']}")
            line.append(f"  ({LIFETIMES[data['lifetime']]})", style=FAINT)
        out.print(line if pair["value"] else line.append(" is removed"))
    if data["policy"]:
        _settings(out, data["policy"])
        out.print("* in force", style=FAINT)
    if data["note"]:
        out.print(data["note"])


def policy_reload(out: Console, data: Dict) -> None:
    """Mistakes in the files, or a line if there are none."""
    mistakes(out, data["policy_errors"])
    if not data["policy_errors"]:
        out.print("All policies were read again.")


# plot


def plot(out: Console, data: Dict) -> None:
    """The file, and the promises in it."""
    out.print(Text.assemble((data["file"], NAME), f": {len(data['panels'])} promises"))
    for panel in data["panels"]:
        out.print(f"  {panel['unit']} {panel['key']}={panel['path']}, {panel['samples']} samples")
