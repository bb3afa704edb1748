# SPDX-License-Identifier: LGPL-2.1-or-later
"""Results of tests, from JUnit's XML: passed and failed tests, with reasons.

There are two outcomes. A test that was skipped, or ended in an error, has failed. A stage that left
no readable report, or had a bad exit status and no failure in its report, is a failed test itself:
a test that did not run must not look like success.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from rig.result import Result

from .progress import tail

BAD = ("failure", "error", "skipped")
# A line of `pytest -v`: the test, its outcome, the part of all tests that have ended.
PYTEST_LINE = re.compile(r"(?:\.\./)*\S*/(\S+\.py::.*\S) (PASSED|FAILED|ERROR|SKIPPED)\s+\[(.*)\]")


@dataclass
class Results:
    """The outcome of some tests: names of those that passed, texts of those that failed by name."""

    passed: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)

    def add(self, other: Results) -> None:
        """Take in the outcome of other tests."""
        self.passed += other.passed
        self.failed |= other.failed

    def line(self) -> str:
        """The summary that ./lab test ends with."""
        return f"{len(self.passed)} passed, {len(self.failed)} failed"

    def all_passed(self) -> bool:
        """True if there were tests and none failed."""
        return bool(self.passed) and not self.failed


def judged(cases: Iterable[tuple[str, str]]) -> Results:
    """Names of tests, each with the reason of its failure; a name may come more than once."""
    found = list(cases)
    passed = [name for name, text in found if not text]
    return Results(passed, {name: text for name, text in found if text})


def reason(row: Result) -> str:
    """Why a number of a bench is a failure; nothing if its goal is met."""
    missed = f"{row.metric} is {row.value:g}, wanted {row.goal}; {row.detail}"
    return "" if row.met else missed


def read(report: Path) -> Results:
    """The results in one JUnit file. A file that is missing or broken is one failed test."""
    results = Results()
    try:
        cases = ET.parse(report).getroot().iter("testcase")
    except (OSError, ET.ParseError) as error:
        results.failed[report.stem] = f"no report: {error}"
        return results
    for case in cases:
        name = ".".join(filter(None, (case.get("classname"), case.get("name"))))
        bad = [child for child in case if child.tag in BAD]
        if not bad:
            results.passed.append(name)
            continue
        # A test may fail and then err in its teardown, twice under one name.
        texts = [results.failed.pop(name, "")]
        for child in bad:
            texts += [f"{child.tag}: {child.get('message') or ''}", child.text or ""]
        texts += [(case.findtext(stream) or "") for stream in ("system-out", "system-err")]
        results.failed[name] = "\n".join(text.strip() for text in texts if text.strip())
    return results


def read_stage(report: Path, status: int, log: Path) -> Results:
    """The results of a stage that ended with a status and left a report."""
    results = read(report)
    if not results.passed and set(results.failed) <= {report.stem}:
        why = results.failed.get(report.stem, "no test ran")
        ended = f"{why}; ended with status {status}; see {log}"
        results.failed[report.stem] = "\n".join([ended, *tail(log)])
    if status != 0 and not results.failed:
        results.failed[report.stem] = f"ended with status {status}; see {log}"
    return results


def read_meson(build: Path, status: int, log: Path) -> Results:
    """The results of `meson test` in a build folder.

    A test NAME that leaves a JUnit file NAME.xml beside its build products (pytest does) counts as
    the tests in that file; it counts itself only if it failed and they did not.
    """
    outer = read(build / "meson-logs" / "testlog.junit.xml")
    inner = {path.stem: path for path in build.rglob("*.xml") if "meson-" not in str(path.parent)}
    results = Results()
    for name in outer.passed:
        path = inner.get(_short(name))
        found = read(path) if path else Results([name])
        results.add(found if found.passed or found.failed else Results([], {name: "no test ran"}))
    for name, text in outer.failed.items():
        path = inner.get(_short(name))
        found = read(path) if path else Results()
        if not found.failed:
            found.failed[name] = text
        results.add(found)
    if not results.passed and not results.failed:
        results.failed["meson"] = f"no test ran; see {log}"
    if status != 0 and not results.failed:
        results.failed["meson"] = f"ended with status {status}; see {log}"
    return results


def _short(name: str) -> str:
    """In the report of meson, NAME is `suite.NAME` or `project:suite / NAME`."""
    return name.rsplit(".", 1)[-1].rsplit(" / ", 1)[-1]
