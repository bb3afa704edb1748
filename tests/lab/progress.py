# SPDX-License-Identifier: LGPL-2.1-or-later
"""Progress lines with elapsed time, and the one exception that ends a run with an explanation."""

import sys
import time
from pathlib import Path

STARTED_S = time.monotonic()
TAIL_LINES = 30


class LabError(Exception):
    """A failure that the user reads: one sentence, and the log where the rest of it lies."""

    def __init__(self, message: str, log: Path | None = None):
        super().__init__(message)
        self.log = log


def step(text: str) -> None:
    """Print the time since the start and the next step to stderr; results go to stdout."""
    elapsed_s = int(time.monotonic() - STARTED_S)
    # One write: stages report from several threads.
    sys.stderr.write(f"[{elapsed_s // 60:2d}:{elapsed_s % 60:02d}] {text}\n")
    sys.stderr.flush()


def tail(log: Path, lines: int = TAIL_LINES) -> list[str]:
    """The last lines of a log, harmless to print; none if there is no log."""
    try:
        text = log.read_text(errors="replace")
    except OSError:
        return []
    printable = "".join(c if c.isprintable() or c in "\n\t" else "" for c in text)
    return [line.rstrip() for line in printable.splitlines() if line.strip()][-lines:]


def explain(error: LabError) -> None:
    """Print the failed step, the end of its log, and the path of the whole log."""
    print(f"lab: {error}", file=sys.stderr)
    if error.log is None:
        return
    for line in tail(error.log):
        print(f"  | {line}", file=sys.stderr)
    print(f"lab: the whole log is {error.log}", file=sys.stderr, flush=True)
