# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests of others under one scheduler: guests, until every test has had its turn.

A test that hangs takes what it holds with it, and one that the kernel does not survive takes all:
both are failures, and the tests after it get a new guest.

    guest 1    block/001 ... block/019 hangs     guest 2    block/020 ...
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.suites import results
from bench.suites.results import Row
from rig import result
from rig.kernel_log import kernel_trouble

from .progress import step


@dataclass
class Found:
    """The results of a scheduler: rows, and complaints of its kernel by test."""

    rows: list[Row] = field(default_factory=list)
    complaints: dict[str, list[str]] = field(default_factory=dict)

    def complained(self, test: str, log: Iterable[str]) -> None:
        """Add what was not there before: a console has everything since the boot."""
        known = {line for lines in self.complaints.values() for line in lines}
        lines = kernel_trouble("\n".join(log))
        if new := [line for line in lines if line not in known]:
            self.complaints[test] = new


# Runs tests in a new guest and adds their results; returns how many tests have had their turn.
Turn = Callable[[list[str], Found], int]


def under(scheduler: str, wanted: Sequence[str], turn: Turn) -> Found:
    """Run all tests under a scheduler."""
    found, left = Found(), list(wanted)
    while left:
        step(f"bench: {scheduler}: {len(left)} tests of {len(wanted)}")
        left = left[turn(left, found) :]
    return found


def compared(before: Found, after: Found, json: Path | None) -> int:
    """Print and write the comparison of both schedulers; the exit status."""
    cases = results.cases(before.rows, after.rows)
    complaints = results.new_complaints(before.complaints, after.complaints)
    print(f"{'':24}{results.BASELINE:13}{results.OURS}")
    for case in cases:
        print(case.text())
    for line in complaints:
        print(f"the kernel under {results.OURS}: {line}")
    numbers = results.judged(cases, complaints)
    if json:
        result.write_json(numbers, json)
    print(results.summary(cases))
    passed = any(case.verdict == results.PASSED for case in cases)
    return 0 if passed and result.all_met(numbers) else 1
