# SPDX-License-Identifier: LGPL-2.1-or-later
"""Answers about the daemon, stacks and weights as text for people."""

from typing import Any

from rich.console import Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from . import show_promises, units
from .text import BAD, FAINT, GOOD, NAME, Output, columns, scheduler, size, used
from .topology import label
from .values import percent

Dict = dict[str, Any]

NO_SETTING = "no weight is set: 100, the default"


def settings(unit: Dict) -> list[str]:
    """The weights of the unit as they are stated: of policies, and of its files and drop-ins."""
    policies = {entry["path"]: entry for entry in unit["policy_weights"]}
    weights = [{"path": "", "weight": unit["weight"]}] if unit["weight_set"] else []
    found = []
    for entry in weights + unit["device_weights"]:
        stated = f"{entry['path']} {entry['weight']}".lstrip()
        if stronger := policies.get(entry["path"]):
            found.append(f"Weight={stated}, {stronger['source']}")
        else:
            found.append(f"IO{'Device' * bool(entry['path'])}Weight={stated}")
    return found


def resyncs(out: Output, found: list[Dict]) -> None:
    """A line for each resync: array, weight, and the requests that the weight does not apply to."""
    for resync in found:
        line = Text.assemble("resync of ", (resync["device"] or "a volume of LVM", NAME))
        line.append(f" ({resync['action']})" if resync["action"] != "resync" else "")
        moved = resync["cgroup"] != "/"
        line.append(f" in {resync['cgroup'].lstrip('/')}" if moved else "")
        weights = (f"{leaf['weight']} on {leaf['leaf']}" for leaf in resync["leaves"] if moved)
        line.append("".join(f", weight {weight}" for weight in weights))
        out.print(line.append(f": {resync['note']}" if resync["note"] else ""))


# status


def status(out: Output, data: Dict) -> None:
    """The daemon, promises, capacities, leaves, and the units that set a weight."""
    daemon = data["daemon"]
    line = Text.assemble("sutrod ", (daemon["version"], NAME), ", running")
    if daemon["dry_run"]:
        line.append(", dry run: nothing is written", style=BAD)
    out.print(line)
    if data["promises"] is None:
        out.print(
            "It is older than sutroctl and has no promises; update it: systemctl restart sutrod"
        )
    show_promises.mistakes(out, data)
    out.print()
    if data["promises"]:
        show_promises.promises(out, data["promises"])
        out.print()
    if data["capacities"]:
        show_promises.capacities(out, data["capacities"])
        out.print()
    if data["resyncs"]:
        resyncs(out, data["resyncs"])
        out.print()

    table = columns("LEAF", "KIND", "SCHEDULER", ">SIZE", "UNDER")
    for leaf in data["leaves"]:
        table.add_row(
            Text(leaf["node"], style=NAME),
            leaf["kind"],
            scheduler(leaf),
            size(leaf["size_bytes"]),
            " ".join(leaf["stacks"]) or "-",
        )
    out.print(table)
    if any(leaf["managed"] for leaf in data["leaves"]):
        out.hint("* switched by Sutro; 'sutroctl release' restores the former scheduler")
    if any(leaf.get("hung") for leaf in data["leaves"]):
        out.hint("(hung): requests of the leaf do not complete; see journalctl --dmesg")
    if not any(leaf["scheduler"] == "sutro" for leaf in data["leaves"]):
        out.hint("no leaf uses sutro; switch one: sutroctl use DEVICE")
    out.print()

    if not data["units"]:
        out.print("No unit sets a weight; all weigh 100. Set one: sutroctl set UNIT WEIGHT")
        return
    table = columns("UNIT", ">WEIGHT", "DEVICE WEIGHTS")
    for unit in data["units"]:
        weights = (f"{entry['path']} {entry['weight']}" for entry in unit["device_weights"])
        weight = Text(str(unit["weight"]), style="" if unit["weight_set"] else FAINT)
        name = Text(unit["unit"] or unit["cgroup"], style=NAME)
        table.add_row(name, weight, "\n".join(weights) or "-")
    out.print(table)


# tree


def _device_line(device: Dict) -> Text:
    """Name, kind, scheduler and size of a device."""
    name = label(device)
    line = Text.assemble((name, NAME))
    if name != device["node"]:
        line.append(f"  {device['name']}", style=FAINT)
    line.append(f"  {device['kind']}  ")
    if device["leaf"]:
        line.append(scheduler(device))
        line.append("  ")
    return line.append(size(device["size_bytes"]))


def _depths(rows: list[Dict]) -> list[int]:
    """How deep each row lies under others of the list; rows are sorted by cgroup."""
    depths: list[int] = []
    above: list[str] = []
    for row in rows:
        while above and not row["cgroup"].startswith(above[-1].rstrip("/") + "/"):
            above.pop()
        depths.append(len(above))
        above.append(row["cgroup"])
    return depths


def _entitled(leaf: Dict) -> str:
    """The entitled share of a leaf, "-" where the scheduler has no weights."""
    return "-" if leaf["backend"] == "none" else percent(leaf["hweight"])


def _unit_table(rows: list[Dict]) -> Table:
    """The units on a leaf, indented by the depth of their cgroups."""
    table = columns("UNIT", ">WEIGHT", ">ENTITLED", ">GOT", ">READ/s", ">WRITTEN/s")
    for row, depth in zip(rows, _depths(rows), strict=True):
        table.add_row(
            "  " * depth + (row["unit"] or row["cgroup"]),
            str(row["asked"]),
            _entitled(row),
            percent(row["got"]),
            used(row["rbytes"]),
            used(row["wbytes"]),
        )
    return table


def tree(out: Output, data: list[Dict]) -> None:
    """Each stack as a tree; under each leaf the units that use it or state a weight for it."""
    if not data:
        out.print("There is no block device.")
    shown: set[str] = set()

    def grow(device: Dict, branch: Tree) -> None:
        for child in device["children"]:
            grow(child, branch.add(describe(child)))

    def describe(device: Dict) -> Text | Group:
        line = _device_line(device)
        if not device["leaf"] or not device["units"]:
            return line
        if device["node"] in shown:
            return line.append("  (units: see above)", style=FAINT)
        shown.add(device["node"])
        return Group(line, Padding(_unit_table(device["units"]), (0, 0, 0, 2)))

    for top in data:
        root = Tree(describe(top), guide_style=FAINT)
        grow(top, root)
        out.print(root)


# explain


def _written_table(leaves: list[Dict], usage: bool) -> Table:
    """For each leaf the weight, the line in the file, and the shares; with `usage`, the rates."""
    headers = ["LEAF", "SCHEDULER", ">WEIGHT", "LINE SET", "LINE READ", ">ENTITLED"]
    table = columns(*headers, *([">GOT", ">READ/s", ">WRITTEN/s"] if usage else []))
    for leaf in leaves:
        cells = [
            Text(leaf["leaf"], style=NAME),
            scheduler(leaf),
            str(leaf["asked"]),
            leaf["written"] or "-",
            Text(leaf["read_back"] or "-", style=GOOD if leaf["settled"] else BAD),
            _entitled(leaf),
        ]
        if usage:
            cells += [percent(leaf["got"]), used(leaf["rbytes"]), used(leaf["wbytes"])]
        table.add_row(*cells)
    return table


def _grouped(out: Output, title: str, leaves: list[Dict], key: str) -> None:
    """One line per distinct value of `key`, with its leaves if it does not name them."""
    groups: dict[str, list[str]] = {}
    for leaf in leaves:
        if leaf[key]:
            groups.setdefault(leaf[key], []).append(leaf["leaf"])
    for value, nodes in groups.items():
        names = len(groups) > 1 and not set(nodes) <= set(value.split())
        suffix = f"  ({' '.join(nodes)})" if names else ""
        out.print(Text.assemble((f"{title:<9}", FAINT), value, (suffix, FAINT)))


def _lacks_file(leaf: Dict) -> bool:
    """Does the unit lack a file for weights of the leaf, because its io controller is off?"""
    return leaf["backend"] != "none" and not leaf["file"]


def _advice(out: Output, unit: str, leaves: list[Dict]) -> None:
    """Print what is wrong with the weights of a unit, and how to mend it."""
    without_file = [leaf for leaf in leaves if _lacks_file(leaf)]
    if any(leaf["reason"].startswith("Weight=") for leaf in without_file):
        out.print(f"The weight of {unit} has no effect: {units.without_io(unit)}")
    elif without_file:
        why = units.without_io(unit)
        if not unit.startswith("/"):
            why = (
                "neither it nor a unit of the same slice sets one; "
                f"to change this: sutroctl set {units.word(unit)} 100"
            )
        out.print(f"{unit} has no weight of its own: {why}")
    bare = [leaf["leaf"] for leaf in leaves if leaf["backend"] == "none"]
    if bare:
        out.print(
            f"Weights have no effect on {' '.join(bare)}, because the scheduler there has no "
            f"weights; to change this: sutroctl use {' '.join(bare)}"
        )
    for leaf in leaves:
        if leaf["error"] or not leaf["settled"]:
            why = leaf["error"] or "the cgroup file does not have the line that sutrod wrote"
            out.print(f"{leaf['leaf']}: {why}", style=BAD)


def _class_advice(out: Output, unit: str, class_: str, leaves: list[Dict]) -> None:
    """Print where the class of a unit has no effect, and how to change this."""
    if class_ and any(_lacks_file(leaf) for leaf in leaves):
        out.print(f"Class={class_} of {unit} has no effect: {units.without_io(unit)}")
        return
    bare = " ".join(leaf["leaf"] for leaf in leaves if leaf["scheduler"] != "sutro")
    if class_ and bare:
        out.print(
            f"Class={class_} of {unit} has no effect on {bare}, because only the scheduler sutro "
            f"has classes; to change this: sutroctl use {bare}"
        )


def _leaves(out: Output, explanation: Dict, usage: bool) -> None:
    """Print the leaves of a unit, with reasons, files and advice."""
    leaves = explanation["leaves"]
    out.print(_written_table(leaves, usage))
    _grouped(out, "because", leaves, "reason")
    _grouped(out, "in file", leaves, "file")
    _advice(out, explanation["unit"] or explanation["cgroup"], leaves)


def _relation(path: str, device: str) -> str:
    """The relation of a path to its device, "" if they are the same."""
    if path == device:
        return ""
    return f" is {device}" if path.startswith("/dev/") else f" is on {device}"


def explain(out: Output, data: Dict) -> None:
    """The unit's settings, the path, and for each leaf the weight, the file and the shares."""
    title = Text.assemble((data["unit"] or data["cgroup"], NAME))
    if data["unit"]:
        title.append(f"  {data['cgroup']}", style=FAINT)
    out.print(title)
    for setting in settings(data) or [NO_SETTING]:
        out.print("  " + setting)
    if data["class"]:
        out.print(f"  Class={data['class']}")
    for above in data["slices"]:
        text = ", ".join(settings(above)) or NO_SETTING
        out.print(Text.assemble("  in ", (above["unit"] or above["cgroup"], NAME), f": {text}"))
    if data["steps"]:
        out.print()
        out.print(Text.assemble((data["path"], NAME), _relation(data["path"], data["device"])))
        for step in data["steps"]:
            out.print(Padding(step["text"], (0, 0, 0, 2 * (step["level"] + 1))))
    out.print()
    _leaves(out, data, usage=True)
    _class_advice(out, data["unit"] or data["cgroup"], data["class"], data["leaves"])
    resyncs(out, data["resyncs"])
    show_promises.explained(out, data["promises"] or [])


# set


def set_(out: Output, data: Dict) -> None:
    """The new weight, and the lines of the cgroup files on the leaves."""

    def text_of(weight: int | None) -> str:
        return "default" if weight is None else str(weight)

    name = f"IODeviceWeight={data['path']} " if data["path"] else "IOWeight="
    how = "until reboot" if data["runtime"] else "kept over reboots"
    line = Text.assemble((data["unit"], NAME), f": {name}", (text_of(data["weight"]), NAME))
    out.print(line.append(f"  (was {text_of(data['previous'])}; {how})", style=FAINT))
    if data["explanation"] is None:
        out.print(data["note"] or "The unit is not active; the weight takes effect when it starts.")
        return
    if data["dry_run"]:
        out.print("sutrod runs with --dry-run: it writes nothing.", style=BAD)
    if data["note"]:
        out.print(data["note"])
    # Shares of the last second follow from the former weight.
    _leaves(out, data["explanation"], usage=False)


# use, release


def switched(out: Output, results: list[Dict]) -> None:
    """The scheduler of each leaf before and after, or the error."""
    if not results:
        out.print("Nothing to do: Sutro has switched no leaf.")
        return
    table = columns("LEAF", "SCHEDULER", "BEFORE", "")
    for result in results:
        note = result["error"] or ("" if result["changed"] else "unchanged")
        table.add_row(
            Text(result["leaf"], style=NAME),
            scheduler(result),
            result["previous"] or "-",
            Text(note, style=BAD if result["error"] else FAINT),
        )
    out.print(table)


def dump(out: Output, data: Dict) -> None:
    """The text of the daemon, unchanged."""
    out.out(data["dump"].rstrip("\n"))


def log_level(out: Output, data: Dict) -> None:
    """The level of the log."""
    out.print(data["level"])
