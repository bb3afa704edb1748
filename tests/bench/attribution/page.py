# SPDX-License-Identifier: LGPL-2.1-or-later
"""The measured tables of Documentation/attribution.rst, out of the JSON of several runs.

    python3 -m bench.attribution.page ../Documentation/attribution.rst stock.json patched.json

in tests/ writes a table for each kernel between the two marks in the page and leaves the rest as it
is. A cell is the share of the owner, before and, if that is another one, with the patches:
`0 → 100`.
Below each table stands why a share cannot be whole, and who was charged beside the root cgroup.
"""

import json
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from bench.attribution.run import MEASURED, METRIC
from bench.attribution.scenario import MODES, OPS, SHIPPED, Book, Scenario
from bench.read import load

BEGIN, END = ".. begin of what was measured", ".. end of what was measured"
# A share below this is a loss.
WHOLE = 0.99
Object = Mapping[str, object]


def read(files: Iterable[Path]) -> list[Object]:
    """The objects of JSON files; of those about the same thing the last one counts."""
    found: dict[tuple, Object] = {}
    for file in files:
        for one in json.loads(file.read_text()):
            if one["metric"] == METRIC:
                keys = ("kernel", "scheduler", "scenario", "op", "mode")
                found[tuple(one[key] for key in keys)] = one
    return list(found.values())


def replaced(page: str, tables: str) -> str:
    """The page with these tables between its marks."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no {BEGIN!r} and {END!r}")
    return f"{before}{begin}\n\n{tables}\n{end}{after}"


def tables(objects: Sequence[Object], specs: Sequence[Scenario]) -> str:
    """The section of each kernel."""
    return "\n".join(
        line
        for kernel in sorted({str(one["kernel"]) for one in objects}, key=_version)
        for line in _section(kernel, [one for one in objects if one["kernel"] == kernel], specs)
    )


def _version(kernel: str) -> list[int]:
    return [int(part) for part in kernel.split(".")]


def _section(kernel: str, mine: Sequence[Object], specs: Sequence[Scenario]) -> Iterator[str]:
    title = f"Linux {kernel}"
    yield from (title, "-" * len(title), "")
    heads = [f"{op}, {mode}" for op in OPS for mode in MODES]
    yield from (".. list-table::", "   :header-rows: 1", "   :widths: 40 15 15 15 15", "")
    yield from _row(["stack", *heads])
    for spec in specs:
        rows = [one for one in mine if one["scenario"] == spec.name]
        if any(one["status"] == MEASURED for one in rows):
            cells = [_cell(rows, op, mode) for op in OPS for mode in MODES]
        elif rows:
            cells = [str(rows[0]["reason"]), *[""] * (len(heads) - 1)]
        else:
            continue
        yield from _row([spec.title, *cells])
    yield ""
    lost = [one for one in mine if one["status"] == MEASURED and _share(one) < WHOLE]
    yield from _listed("Not whole for a reason:", (_why(one) for one in lost if one["reason"]))
    yield from _listed("Not charged to the root cgroup:", (_whom(one) for one in lost))


def _row(cells: Sequence[str]) -> Iterator[str]:
    for number, cell in enumerate(cells):
        yield f"   {'*' if not number else ' '} - {cell}".rstrip()


def _cell(rows: Sequence[Object], op: str, mode: str) -> str:
    """Per cent before, and after if that is another number."""
    found = {one["scheduler"]: one for one in rows if (one["op"], one["mode"]) == (op, mode)}
    shares = [percent(found[name]["value"]) for name in ("stock", "patched") if name in found]
    return " → ".join(dict.fromkeys(shares))


def percent(share: object) -> str:
    """A share, never rounded to more than it is."""
    if not isinstance(share, int | float):
        return ""
    return f"{math.floor(share * 1000) / 10:g}"


def _share(one: Object) -> float:
    share = one["value"]
    return float(share) if isinstance(share, int | float) else math.inf


def _listed(head: str, lines: Iterable[str]) -> Iterator[str]:
    """A list with a head, each line once; nothing if there is none."""
    found = [f"* {line}" for line in dict.fromkeys(lines) if line]
    if found:
        yield from (head, "", *found, "")


def _why(one: Object) -> str:
    return f"{one['scenario']}, {one['op']}: {one['reason']}"


def _whom(one: Object) -> str:
    """Other cgroups that were charged one per cent or more."""
    charged = one["charged_bytes"]
    least = (1 - WHOLE) * sum(charged.values())
    names = [n for n, number in charged.items() if n not in (one["owner"], "/") and number >= least]
    amounts = ", ".join(
        f"``{name}`` {percent(charged[name] / sum(charged.values()))}" for name in names
    )
    return (
        f"{one['scenario']}, {one['op']} {one['mode']}, {one['scheduler']}: {amounts}"
        if amounts
        else ""
    )


def main(words: Sequence[str]) -> int:
    """Put the tables of JSON files into a page."""
    if len(words) < 2:
        print("usage: bench.attribution.page PAGE JSON...", file=sys.stderr)
        return 2
    page, files = Path(words[0]), [Path(word) for word in words[1:]]
    page.write_text(replaced(page.read_text(), tables(read(files), load(Book, SHIPPED).scenario)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
