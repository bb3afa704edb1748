# SPDX-License-Identifier: LGPL-2.1-or-later
"""Results of tests of others under one scheduler, and the comparison of two schedulers.

A test that passes under the first scheduler must pass under sutro, and one that fails under sutro
must fail under the first one, too. The kernel log may have only the complaints that it had there.

    generic/001    passed       passed
    generic/003    not run      not run   no reflinks on ext4
    generic/475    failed       failed    did not end within 900 s
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

from rig.result import Goal, Result

BASELINE, OURS = "mq-deadline", "sutro"
PASSED, FAILED, NOT_RUN = "passed", "failed", "not run"
VALUE = {PASSED: 1.0, FAILED: 0.0, NOT_RUN: math.nan}
NO_DISK = "nodev"
# Exit status in the guest: one test is stuck, and the guest is of no use any more.
STUCK = 3
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


def text(row: Row, scheduler: str) -> str:
    """A line as a test ends, and lines of its output if it failed."""
    took = f" in {row.seconds:.1f} s" if row.seconds is not None else ""
    why = f": {row.reason}" if row.reason else ""
    lines = [f"{scheduler}: {row.name} {row.status}{took}{why}", *(f"  | {x}" for x in row.excerpt)]
    return "\n".join(lines)


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
