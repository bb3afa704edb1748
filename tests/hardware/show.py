# SPDX-License-Identifier: LGPL-2.1-or-later
"""Results as text for people: a table and a line for each goal, for each experiment.

The functions read the data of the verb, which a file of --json has, too.
"""

from collections.abc import Iterable
from typing import Any

from rich.text import Text
from sutro.text import BAD, FAINT, GOOD, NAME, Output, columns, size

Dict = dict[str, Any]

# Of more units a row has the shares of the first ones.
SHOWN_UNITS = 4
NO_TRUTH = (
    "A disk does not report the device time of a unit. Shares of sutro and iocost are the "
    "elevator's own account; others are bytes of equal jobs, or progress: the rate over the rate "
    "alone."
)


def number(value: float | None) -> str:
    """Four digits; a dash for a number that there cannot be."""
    return "-" if value is None else f"{value:.4g}"


def experiments(out: Output, data: list[Dict]) -> None:
    """The answer of --list."""
    table = columns("NAME", "FROM", "EXPERIMENT")
    for one in data:
        text = one["title"] + (" (needs --write FILE)" if one["writes"] else "")
        table.add_row(Text(one["name"], style=NAME), one["source"], text)
    out.print(table)


def leaf_text(leaf: Dict) -> str:
    """A leaf in a few words, without a serial number."""
    words = [leaf["model"] or leaf["kind"], "rotational" if leaf["rotational"] else "flash"]
    return f"{', '.join(words)}, {size(leaf['size_bytes'])}, nr_requests {leaf['nr_requests']}"


def results(out: Output, data: Dict) -> None:
    """All experiments, then the sum."""
    out.print(Text.assemble((data["path"], NAME), f" ({data['device']}), Linux {data['kernel']}"))
    for leaf in data["leaves"]:
        out.print(f"  {leaf['leaf']}: {leaf_text(leaf)}, scheduler {leaf['scheduler']}")
    for one in data["experiments"]:
        records = [record for record in data["results"] if record["scenario"] == one["name"]]
        out.print()
        out.print(Text.assemble((one["name"], NAME), f": {one['title']}"))
        _table(out, one, records)
        _goals(out, records)
    out.print()
    for scheduler, why in data["unavailable"].items():
        out.print(f"{scheduler} was not run: {why}")
    for note in data["notes"]:
        # One may be a command line to copy.
        out.print(note, soft_wrap=True)
    style = GOOD if data["met"] == data["judged"] else BAD
    out.print(Text(f"{data['met']} of {data['judged']} goals of sutro met", style=style))
    if data.get("plot"):
        out.print(f"the picture is in {data['plot']}")
    out.hint(NO_TRUTH)


def values(records: Iterable[Dict], metric: str) -> dict[tuple[str, str], Dict]:
    """Records of a metric without a goal, by scheduler and unit."""
    return {
        (one["scheduler"], one.get("of", "")): one
        for one in records
        if one["metric"] == metric and one["goal"] is None
    }


def _table(out: Output, experiment: Dict, records: list[Dict]) -> None:
    """A row for each scheduler: throughput, shares of the units, P99 of the first one."""
    mbps, shares, p99 = (values(records, name) for name in ("mbps", "share", "p99_us"))
    names = experiment["units"]
    shown = names[:SHOWN_UNITS]
    table = columns(
        "  SCHEDULER", ">MB/s", *(f">{name}" for name in shown), "BY", f">P99 {names[0]}"
    )
    due = {name: next((s["due"] for (_, of), s in shares.items() if of == name), None)
           for name in shown}  # fmt: skip
    if shares:
        table.add_row("  entitled", "", *map(number_3, due.values()), style=FAINT)
    for scheduler in dict.fromkeys(scheduler for scheduler, _ in mbps):
        first = shares.get((scheduler, shown[0]), {})
        latency = p99.get((scheduler, names[0]))
        table.add_row(
            Text(f"  {scheduler}", style=NAME),
            f"{mbps[scheduler, '']['value'] or 0:.1f}",
            *(number_3(shares.get((scheduler, name), {}).get("value")) for name in shown),
            first.get("by", "-"),
            f"{latency['value'] / 1000:.3g} ms" if latency and latency["value"] else "-",
        )
    out.print(table)


def number_3(value: float | None) -> str:
    """A share."""
    return "-" if value is None else f"{value:.3f}"


def goal_lines(records: Iterable[Dict]) -> list[tuple[str, str, str]]:
    """Verdict, goal, and the values of all schedulers."""
    by_goal: dict[str, list[Dict]] = {}
    for one in records:
        if one["goal"] and "why" not in one:
            what = " ".join(filter(None, (one["metric"], one.get("of"), one["goal"])))
            by_goal.setdefault(what, []).append(one)
    lines = []
    for what, mine in by_goal.items():
        judged = [one for one in mine if one["judged"]]
        verdict = "" if not judged else "met" if all(one["met"] for one in judged) else "MISSED"
        shown = "  ".join(f"{one['scheduler']} {number(one['value'])}" for one in mine)
        lines.append((verdict, what, shown))
    return lines


def failures(records: Iterable[Dict]) -> list[str]:
    """Runs that did not come to their end."""
    return [f"{one['scheduler']}: {one['why']}" for one in records if "why" in one]


def _goals(out: Output, records: list[Dict]) -> None:
    for verdict, what, shown in goal_lines(records):
        style = {"met": GOOD, "MISSED": BAD}.get(verdict, FAINT)
        out.print(Text.assemble("  ", (f"{verdict:7}", style), f"{what}: {shown}"))
    for failure in failures(records):
        out.print(Text.assemble("  ", ("FAILED ", BAD), failure))
