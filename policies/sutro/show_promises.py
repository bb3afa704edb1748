# SPDX-License-Identifier: LGPL-2.1-or-later
"""Promises and policies as text for people; see show.py for the manner."""

from typing import Any

from rich.table import Table
from rich.text import Text

from . import values
from .promises import (
    ABOUT,
    NOT_YET,
    TARGETS,
    about,
    fails,
    granted,
    percentile,
    state_word,
    stated,
)
from .text import BAD, FAINT, GOOD, NAME, Output, columns
from .values import percent

Dict = dict[str, Any]

PENDING = "yellow"
MEASURED_AT = {
    "volume": "at the device itself",
    "leaves": "at its leaves, because BPF is not available",
}


def state(promise: Dict) -> Text:
    """The state of a promise, coloured by whether it holds."""
    style = BAD if fails(promise) else PENDING if promise["state"] in NOT_YET else GOOD
    return Text(state_word(promise), style=style)


def number(key: str, value: float | None) -> str:
    """A value in the unit of its key as text, "-" for 0 and for infinity."""
    return values.short(key, value) if value else "-"


def mistakes(out: Output, data: Dict) -> None:
    """Mistakes in policy files, and for each file whether an earlier version is in force."""
    for error in data["policy_errors"]:
        out.print(Text.assemble(("mistake ", BAD), error))
    for one in data["mistaken_files"]:
        holds = "its last good version stays in force"
        none = "nothing of it is in force, as it has no earlier version"
        out.print(f"{one['file']}: {holds if one['last_good'] else none}", style=FAINT)


# status, explain


def promises(out: Output, found: list[Dict]) -> None:
    """A line for each promise, and why it does not hold."""
    table = columns("UNIT", "GUARANTEE", "PATH", ">VALUE", ">GRANTED", ">GOT", "STATE")
    for promise in found:
        key = promise["key"]
        table.add_row(
            Text(promise["unit"] or promise["cgroup"], style=NAME),
            about(promise),
            promise["path"],
            stated(promise),
            granted(promise),
            number(key, promise["got"]),
            state(promise),
        )
    out.print(table)
    for promise in found:
        if promise["cause"]:
            who = f"{promise['unit'] or promise['cgroup']} {about(promise)}"
            out.print(Text.assemble((f"{who}: ", NAME), promise["cause"]))


def capacities(out: Output, found: list[Dict]) -> None:
    """A line for each declared rate, with the promised part."""
    table = columns("DEVICE", "FLOORS", ">CAPACITY", ">PROMISED", ">LEFT")
    for one in found:
        key, over = one["key"], one["promised"] > one["capacity"]
        table.add_row(
            Text(one["path"], style=NAME),
            ABOUT.get(key, key),
            values.short(key, one["capacity"]),
            Text(number(key, one["promised"]), style=BAD if over else ""),
            number(key, one["left"]),
        )
    out.print(table)


def measured(out: Output, data: Dict) -> None:
    """The rates, and the part that is kept."""
    table = columns("FLOORS", ">MEASURED", ">CAPACITY")
    for one in data["measured"]:
        key = one["key"]
        table.add_row(ABOUT[key], *(values.short(key, one[k]) for k in ("measured", "capacity")))
    out.print(table)
    if data["file"]:
        out.print(Text.assemble("kept for ", (data["path"], NAME), f" in {data['file']}"))
    else:
        out.print("nothing is kept", style=FAINT)


def explained(out: Output, found: list[Dict]) -> None:
    """Each promise of a unit, with its need of each leaf."""
    for promise in found:
        key = promise["key"]
        out.print()
        line = Text.assemble((key, NAME), f"={promise['path']} ")
        exact = promise["value"] is not None and not promise.get("percent")
        exact = exact and key in values.KINDS
        value = values.text(key, promise["value"]) if exact else stated(promise)
        if key in TARGETS and percentile(promise) != f"P{values.PERCENTILE_USUAL}":
            value += f" {percentile(promise)}"
        line.append(f"{value}  ")
        line.append(state(promise))
        out.print(line.append(f"  got {number(key, promise['got'])}"))
        if promise["cause"]:
            out.print("  because " + promise["cause"])
        if promise["state"] == "stated":
            out.print(Text("  the kernel enforces it, and sutrod does not measure it", style=FAINT))
        if measured := MEASURED_AT.get(promise.get("measured_at", "")):
            out.print(Text(f"  measured {measured}", style=FAINT))
        if promise["granted"] < 1 and promise["device"]:
            of = "of the time that it needs" if key in TARGETS else "of the value"
            rate = "" if key in TARGETS else f"{granted(promise)}, "
            out.print(f"  granted {rate}{percent(promise['granted'])} {of}")
        if promise["reserve"]:
            out.print(f"  {reserved(promise)}")
        if promise["amplification"]:
            bytes_ = f"{promise['amplification']:.2f} bytes at the leaves"
            out.print(f"  {bytes_} for each byte of the unit")
        line = f"  set in {promise['source']}, importance {promise['importance']}"
        out.print(line, style=FAINT)
        if promise["leaves"]:
            out.print(_needs(promise))


def reserved(promise: Dict) -> str:
    """The time that is reserved for a floor, and its price for other units."""
    part = f"{percent(promise['reserve'])} of the time of its leaves is reserved for it"
    priced = [leaf for leaf in promise["leaves"] if leaf["price"]]
    prices = [f"{percent(leaf['price'])} of {leaf['leaf']}" for leaf in priced]
    return f"{part}, which costs other units {', '.join(prices) or 'nothing'}"


def _needs(promise: Dict) -> Table:
    """The table of the leaves of a promise, with the need of each; a target has no cost."""
    key = promise["key"]
    headers = (">NEEDED", ">ALLOTTED", ">GOT", ">WEIGHT", *(() if key in TARGETS else (">COST",)))
    table = columns("  LEAF", "SCHEDULER", *headers)
    for leaf in promise["leaves"]:
        table.add_row(
            Text("  " + leaf["leaf"], style=NAME),
            leaf["scheduler"],
            percent(leaf["share_needed"]),
            percent(leaf["share_allotted"]),
            percent(leaf["share_got"]),
            str(leaf["weight"]),
            *(() if key in TARGETS else (_cost(key, leaf["cost_ns"]),)),
        )
    return table


def _cost(key: str, cost_ns: float) -> str:
    """Device time for a MiB, or for one operation."""
    per, what = (2**20, "MiB") if "Bandwidth" in key else (1, "io")
    return f"{values.short('LatencyTarget', cost_ns * per / 1000)}/{what}" if cost_ns else "-"


# policy


def _settings(out: Output, entries: list[Dict]) -> None:
    """Print the table of settings; a star marks those in force."""
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


def policy(out: Output, data: Dict) -> None:
    """The settings of each unit; a star marks those in force."""
    if not data["note"] and not any(unit["policy"] for unit in data["units"]):
        out.print("No policy is set. Set one: sutroctl policy set UNIT KEY=VALUE")
    for unit in data["units"]:
        if unit["policy"]:
            out.print(Text(unit["unit"], style=NAME))
            _settings(out, unit["policy"])
    if any(unit["policy"] for unit in data["units"]):
        out.hint("* in force")
    if data["note"]:
        out.print(data["note"])
    mistakes(out, data)


def files(out: Output, data: list[Dict]) -> None:
    """Each file below its name, as of systemctl cat."""
    for index, file in enumerate(data):
        out.print("\n" * (index > 0) + f"# {file['file']}", style=FAINT, soft_wrap=True)
        out.out(file["text"].rstrip("\n"))


VERDICTS = {"fits": ("fits", GOOD), "does-not-fit": ("does not fit", BAD)}


def fits(out: Output, data: Dict) -> None:
    """For each device: whether its floors fit, the reason, and the need of each floor."""
    if not data["devices"]:
        out.print("No unit has a floor: the devices have room.")
    for device in data["devices"]:
        verdict, style = VERDICTS.get(device["verdict"], (device["verdict"], PENDING))
        out.print(Text.assemble((device["path"], NAME), "  ", (verdict, style)))
        out.print(Text(f"  {device['reason']}"))
        headers = (">FLOOR", ">CAPACITY", ">SHARE", ">GRANTED")
        table = columns("  UNIT", "GUARANTEE", *headers, "SET IN")
        for floor in device["floors"]:
            table.add_row(
                Text("  " + floor["unit"], style=NAME),
                about(floor),
                stated(floor),
                number(floor["key"], floor["rate_alone"]),
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


def policy_set(out: Output, data: Dict) -> None:
    """The new settings, and those in force since."""
    for pair in data["said"]:
        line = Text.assemble((data["unit"], NAME), f": {pair['key']}")
        if pair["value"]:
            line.append(f"={pair['value']}")
            line.append(f"  ({LIFETIMES[data['lifetime']]})", style=FAINT)
        out.print(line if pair["value"] else line.append(" is removed"))
    if data["policy"]:
        _settings(out, data["policy"])
        out.hint("* in force")
    if data["note"]:
        out.print(data["note"])


def policy_reload(out: Output, data: Dict) -> None:
    """Mistakes in the files, or a line if there are none."""
    mistakes(out, data)
    if not data["policy_errors"]:
        out.print("All policy files were read again, and the sections [X-Sutro] of units that run.")


# plot


def plot(out: Output, data: Dict) -> None:
    """The file, and the promises in it."""
    out.print(Text.assemble((data["file"], NAME), f": {len(data['panels'])} promises"))
    for panel in data["panels"]:
        out.print(f"  {panel['unit']} {panel['key']}={panel['path']}, {panel['samples']} samples")
