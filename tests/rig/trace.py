# SPDX-License-Identifier: LGPL-2.1-or-later
"""Watch tracepoints of the kernel: each event is a dictionary of its `key=value` pairs."""

import re
from pathlib import Path
from typing import Self

TRACING = Path("/sys/kernel/tracing")
INSTANCE = TRACING / "instances/rig"
BUFFER_KB = 8192

# TASK-PID [CPU] FLAGS TIME: EVENT: TEXT
LINE = re.compile(r"^\s*\S.*-\d+\s+\[\d+\]\s+\S+\s+([\d.]+):\s+(\w+):\s*(.*)$")


class Trace:
    """Collect events of tracepoints in a `with` block: `Trace("sutro", "block/block_rq_merge")`."""

    def __init__(self, *names: str):
        self._names = names
        self._text = ""

    def __enter__(self) -> Self:
        INSTANCE.mkdir()
        (INSTANCE / "buffer_size_kb").write_text(str(BUFFER_KB))
        for name in self._names:
            (INSTANCE / "events" / name / "enable").write_text("1")
        return self

    def __exit__(self, *_: object) -> None:
        (INSTANCE / "tracing_on").write_text("0")
        self._text = (INSTANCE / "trace").read_text()
        for name in self._names:
            (INSTANCE / "events" / name / "enable").write_text("0")
        INSTANCE.rmdir()

    def events(self, name: str | None = None) -> list[dict[str, str]]:
        """The events in their order; only those of one name if that is given."""
        found = []
        for line in self._text.splitlines():
            match = LINE.match(line)
            if match and name in (None, match[2]):
                pairs = dict(re.findall(r"([\w<=]+?)=(\S+)", match[3]))
                found.append({"event": match[2], "at_s": match[1], **pairs})
        return found
