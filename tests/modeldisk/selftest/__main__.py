# SPDX-License-Identifier: GPL-2.0-only
"""Run the checks, as root where modeldisk.ko is loaded: `python3 -m selftest` beside the folder."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

from . import CHECKS
from .bench import CONFIG, Failed, quiet_udev


def run_check(check: Callable[[], str], suite: ElementTree.Element) -> bool:
    """Runs a check, prints its line and adds it to the suite; true when it passed."""
    start = time.monotonic()
    error = None
    try:
        text = check()
    except (Failed, OSError, subprocess.SubprocessError, KeyError) as failure:
        error = text = f"{type(failure).__name__}: {failure}"
    seconds = time.monotonic() - start
    title = (check.__doc__ or check.__name__).strip()
    print(f"{'FAIL' if error else 'ok  '} {seconds:5.1f} s  {title}: {text}", flush=True)
    case = ElementTree.SubElement(
        suite, "testcase", classname="modeldisk", name=check.__name__, time=f"{seconds:.3f}"
    )
    if error:
        ElementTree.SubElement(case, "failure", message=error)
    else:
        ElementTree.SubElement(case, "system-out").text = text
    return error is None


def main() -> int:
    """Runs the checks."""
    parser = argparse.ArgumentParser(description="Checks modeldisk against its parameters.")
    parser.add_argument("--junit", type=Path, metavar="FILE", help="write JUnit XML")
    parser.add_argument("check", nargs="*", help="names of checks (default: all)")
    args = parser.parse_args()
    unknown = set(args.check) - {check.__name__ for check in CHECKS}
    if unknown:
        parser.error(f"no such check: {', '.join(sorted(unknown))}")
    if not CONFIG.is_dir():
        sys.exit(f"selftest: {CONFIG} is missing: load modeldisk.ko, mount configfs and debugfs")

    suite = ElementTree.Element("testsuite", name="modeldisk")
    failures = 0
    began = time.monotonic()
    with quiet_udev():
        for check in CHECKS:
            if not args.check or check.__name__ in args.check:
                failures += not run_check(check, suite)
    suite.set("tests", str(len(suite)))
    suite.set("failures", str(failures))
    if args.junit:
        ElementTree.ElementTree(suite).write(args.junit, encoding="utf-8", xml_declaration=True)
    took = time.monotonic() - began
    print(f"{len(suite) - failures} passed, {failures} failed, {took:.0f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
