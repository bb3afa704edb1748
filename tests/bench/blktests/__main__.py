# SPDX-License-Identifier: LGPL-2.1-or-later
"""Run tests of blktests inside the guest under one scheduler; print a line for each.

After each test, the results go to --out: rows.json, and kernel/GROUP-NNN.log. The file `now` names
the running test, for the host, if the guest does not survive it. Exit status 0: all tests have
ended, passed or not. 3: one is stuck, and the guest is of no use any more.
"""

import argparse
import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rig.kernel_log import KernelLog

from bench.blktests.run import Stuck, prepare, run
from bench.suites.results import STUCK, text

CLONE = Path("/root/blktests")


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="bench.blktests", description=__doc__)
    parser.add_argument("tests", nargs="+", metavar="GROUP/NNN")
    parser.add_argument("--clone", type=Path, required=True, help="of blktests; it is copied")
    parser.add_argument("--scheduler", required=True)
    parser.add_argument("--seconds", type=int, required=True, help="for tests that can run on")
    parser.add_argument("--limit", type=float, required=True, help="seconds to kill a test after")
    parser.add_argument("--out", type=Path, required=True, help="folder for what came out")
    return parser.parse_args(words)


def kept(clone: Path, out: Path, test: str) -> None:
    """Keep what a test has left in files: temporary ones are not among them."""
    target = out / "results" / test.replace("/", "-")
    shutil.copytree(
        clone / "results", target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("tmpdir.*")
    )


def main(words: Sequence[str] | None = None) -> int:
    """Run the tests."""
    options = arguments(words)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    shutil.copytree(options.clone, CLONE, symlinks=True)
    (options.out / "kernel").mkdir(exist_ok=True)
    began, log, found, held = time.monotonic(), KernelLog(), [], None
    prepare(options.scheduler)
    for test in options.tests:
        (options.out / "now").write_text(test)
        try:
            rows = run(CLONE, test, options.scheduler, options.seconds, options.limit)
        except Stuck as stuck:
            rows, held = stuck.rows, stuck.held
        (options.out / "kernel" / f"{test.replace('/', '-')}.log").write_text(log.news())
        kept(CLONE, options.out, test)
        found += rows
        objects = [row.as_object() for row in found]
        (options.out / "rows.json").write_text(json.dumps(objects, indent=1) + "\n")
        for row in rows:
            print(f"[{time.monotonic() - began:6.1f} s] {text(row, options.scheduler)}", flush=True)
        if held:
            # Without taking down what cannot be taken down.
            os._exit(STUCK)
    (options.out / "now").unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
