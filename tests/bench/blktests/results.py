# SPDX-License-Identifier: LGPL-2.1-or-later
"""Results of blktests, and the comparison of two schedulers by them.

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

A test that passes under the first scheduler must pass under sutro, and one that fails under sutro
must fail under the first one, too. The kernel log may have only the complaints that it had there.
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rig.result import Goal, Result

BASELINE, OURS = "mq-deadline", "sutro"
PASSED, FAILED, NOT_RUN = "passed", "failed", "not run"
STATUS = {"pass": PASSED, "fail": FAILED, "not run": NOT_RUN}
VALUE = {PASSED: 1.0, FAILED: 0.0, NOT_RUN: math.nan}
NO_DISK = "nodev"
# Exit status in the guest: one test is stuck, and the guest is of no use any more.
STUCK = 3
HEAD = re.compile(r"\S+/(?:\d{3}|\*{3})(?: => (\S+))?( .*)\[(passed|failed|not run)\]")
# Times and counts, of the last run and of this one.
MEASURED = re.compile(r"\s+\S.*\s\.\.\.(\s|$)")
# Lines that are kept of the output of a failed test.
EXCERPT_LINES = 12
# Parts in which equal complaints differ: times, addresses, numbers of processes.
ACCIDENTAL = re.compile(r"^\[[^]]*\]|0x[0-9a-f]+|\b[0-9a-f]{16}\b|\d+|\[[\w: -]*\]")


@dataclass(frozen=True)
class Row:
    """How a test ended at one place, under one scheduler."""

    test: str
    place: str
    status: str
    reason: str = ""
    seconds: float | None = None
    excerpt: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """block/001 for one that made its own device, else with the variant or the disk."""
        place = self.place.removeprefix(NO_DISK).lstrip("_")
        return f"{self.test} {place}".rstrip()

    def as_object(self) -> dict[str, object]:
        """For JSON; from_object() undoes it."""
        return asdict(self)


def from_object(keys: Mapping) -> Row:
    """The row of a JSON object."""
    return Row(**{**keys, "excerpt": tuple(keys["excerpt"])})


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


@dataclass(frozen=True)
class Case:
    """A test at a place under both schedulers; None: there it did not come to that."""

    name: str
    before: Row | None
    after: Row | None

    @property
    def is_new_failure(self) -> bool:
        """Does sutro fail what mq-deadline does not, or not get to what passes there?"""
        before, after = _status(self.before), _status(self.after)
        return (after == FAILED and before != FAILED) or (before == PASSED and after != PASSED)

    @property
    def verdict(self) -> str:
        """The one thing that this case counts as."""
        if self.is_new_failure:
            return "new failure"
        if _status(self.before) == FAILED:
            return "failed before"
        return _status(self.after)

    def results(self) -> list[Result]:
        """The numbers of both schedulers; that of sutro has a goal unless nothing was run."""
        judged = self.is_new_failure or _status(self.before) == _status(self.after) == PASSED
        goal = Goal("passed", min=1) if judged else None
        return [_result(self.name, BASELINE, self.before, None),
                _result(self.name, OURS, self.after, goal)]  # fmt: skip

    def text(self) -> str:
        """A line of the table."""
        shown = [row for row in (self.after, self.before) if row and row.status != PASSED]
        why = "; ".join(dict.fromkeys(row.reason for row in shown if row.reason))
        line = f"{self.name:24}{_status(self.before):13}{_status(self.after):9}{why}"
        return f"{line}  NEW FAILURE" if self.is_new_failure else line.rstrip()


def _status(row: Row | None) -> str:
    return row.status if row else NOT_RUN


def _result(name: str, scheduler: str, row: Row | None, goal: Goal | None) -> Result:
    detail: dict[str, object] = {"status": _status(row), "reason": row.reason if row else ""}
    if row and row.seconds is not None:
        detail["seconds"] = row.seconds
    if row and row.excerpt:
        detail["excerpt"] = list(row.excerpt)
    return Result(name, scheduler, "passed", VALUE[_status(row)], goal, detail)


def cases(before: Iterable[Row], after: Iterable[Row]) -> list[Case]:
    """Both schedulers side by side, in the order of names."""
    first, second = ({row.name: row for row in rows} for rows in (before, after))
    return [Case(name, first.get(name), second.get(name)) for name in sorted({*first, *second})]


def new_complaints(
    before: Mapping[str, Sequence[str]], after: Mapping[str, Sequence[str]]
) -> list[str]:
    """Lines of the kernel, by test, that the same test did not provoke under mq-deadline."""
    found = []
    for test, lines in after.items():
        known = {ACCIDENTAL.sub("", line) for line in before.get(test, ())}
        found += [f"{test}: {line}" for line in lines if ACCIDENTAL.sub("", line) not in known]
    return found


def judged(found: Sequence[Case], complaints: Sequence[str]) -> list[Result]:
    """All numbers, and the goal that the kernel log has no new complaints."""
    goal = Goal("complaints", max=0)
    detail: dict[str, object] = {"lines": list(complaints)}
    printed = Result("kernel log", OURS, "complaints", len(complaints), goal, detail)
    return [*(result for case in found for result in case.results()), printed]


def summary(found: Sequence[Case]) -> str:
    """The last line."""
    verdicts = [case.verdict for case in found]
    counts = {word: verdicts.count(word) for word in (PASSED, NOT_RUN, "failed before")}
    count = f"{counts[PASSED]} passed under both, {counts[NOT_RUN]} not run, "
    if counts["failed before"]:
        count += f"{counts['failed before']} failed under {BASELINE}, "
    new = verdicts.count("new failure")
    return f"{count}{new} new failure{'' if new == 1 else 's'}"
