# SPDX-License-Identifier: LGPL-2.1-or-later
"""Results of blktests: the files and the output of a test.

A test leaves a file for each place it ran at: `nodev` if it made its own device, `nodev_sdebug` for
a variant of it, or the name of the disk it was given. Lines are a key, a tab, a value:

    results/sda/block/005    status  fail       results/sda/block/005.out.bad   output of the test
                             reason  output     results/sda/block/005.dmesg     kernel log
                             runtime 10.2s

The reason why a test did not run is only on standard output, below its line; for a group that
cannot run at all, that is the only result:

    block/011 => sda (disable PCI device while doing I/O)        [not run]
        command setpci is not available
    throtl/***                                                   [not run]
        command bc is not available
"""

import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from bench.suites.results import EXCERPT_LINES, FAILED, NO_DISK, NOT_RUN, PASSED, Row

STATUS = {"pass": PASSED, "fail": FAILED, "not run": NOT_RUN}
HEAD = re.compile(r"\S+/(?:\d{3}|\*{3})(?: => (\S+))?( .*)\[(passed|failed|not run)\]")
# Times and counts, of the last run and of this one.
MEASURED = re.compile(r"\s+\S.*\s\.\.\.(\s|$)")


def rows(test: str, results: Path, output: str) -> list[Row]:
    """All rows of a test that has ended, from its files and its standard output."""
    printed = _by_place(output)
    found = []
    for file in sorted(results.glob(f"*/{test}")):
        place = file.relative_to(results).parts[0]
        keys = dict(line.split("\t", 1) for line in file.read_text().splitlines() if "\t" in line)
        status = STATUS.get(keys.get("status", ""), FAILED)
        lines = _of_place(printed, place, status)
        reason = keys.get("reason", "") if status == FAILED else ""
        if status == NOT_RUN:
            reason, lines = "; ".join(lines), []
        found.append(Row(test, place, status, reason, _seconds(keys), tuple(lines)))
    if found:
        return found
    reasons = [
        line for (*_, status), lines in printed.items() if status == NOT_RUN for line in lines
    ]
    if reasons:
        return [Row(test, "", NOT_RUN, "; ".join(dict.fromkeys(reasons)))]
    last = tuple(output.strip().splitlines()[-EXCERPT_LINES:])
    return [Row(test, "", FAILED, "no result", excerpt=last)]


def _by_place(output: str) -> dict[tuple[str, str, str], list[str]]:
    """The lines below each head, each once: by disk (or NO_DISK), text in brackets, and status."""
    found: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    key = None
    for line in output.splitlines():
        if head := HEAD.fullmatch(line.rstrip()):
            key = (head[1] or NO_DISK, re.sub("[ =]", "_", head[2]), head[3])
            found[key] += []
        elif (
            key
            and line.startswith(" ")
            and not MEASURED.match(line)
            and line.strip() not in found[key]
        ):
            found[key].append(line.strip())
    return found


def _of_place(
    printed: Mapping[tuple[str, str, str], list[str]], place: str, status: str
) -> list[str]:
    """The output about a place: NO_DISK_VARIANT is that of a head with (VARIANT)."""
    for (disk, brackets, kind), lines in printed.items():
        variant = place.removeprefix(disk).lstrip("_")
        if (
            kind == status
            and place.startswith(disk)
            and (not variant or f"({variant})" in brackets)
        ):
            return lines[:EXCERPT_LINES]
    return []


def _seconds(keys: Mapping[str, str]) -> float | None:
    text = keys.get("runtime", "").removesuffix("s")
    return float(text) if re.fullmatch(r"\d+(\.\d+)?", text) else None
