# SPDX-License-Identifier: LGPL-2.1-or-later
"""Data races in a kernel log, as KCSAN reports them, and which of them are ours.

A report stands between two lines of `=`:

    [   31.4] ==================================================================
    [   31.4] BUG: KCSAN: data-race in sutro_limit_depth / sutro_settle
    [   31.4]
    [   31.4] write to 0xffff888003a1c0e8 of 4 bytes by task 118 on cpu 0:
    [   31.4]  sutro_settle+0x1b2/0x640
    [   31.4]  ...
    [   31.4] ==================================================================

It is ours if a function of ours is on either stack. The block layer has races of its own, which
are counted, and not judged. So is the flag PF_BLOCK_TS of a task: it falls when the task is
preempted, maybe while it looks at another of its flags, and KCSAN sees that it fell, and not why.
And so is the CPU on which a hardware queue runs next: blk_mq_hctx_next_cpu() changes it without a
lock, whichever scheduler runs its queue twice at a time, and any value of it will do.
"""

import re
from dataclasses import dataclass

STAMP = re.compile(r"^\[\s*\d+\.\d+\] ?")
TITLE = re.compile(r"BUG: KCSAN: (.*)")
RULE = re.compile(r"={60,}$")
OURS = re.compile(r"\bsutro_\w+")
UNSEEN = re.compile(r"^race at unknown origin", re.MULTILINE)
CHANGE = re.compile(r"^value changed: (0x\w+) -> (0x\w+)", re.MULTILINE)
PF_BLOCK_TS = 0x20000000
# blk_mq_hctx_next_cpu() is inlined into its caller, whose other accesses are atomic or under RCU.
_NEXT_CPU = "(blk_mq_delay_run_hw_queue|blk_mq_hctx_next_cpu)"
NEXT_CPU = re.compile(f"data-race in {_NEXT_CPU} / {_NEXT_CPU}$")


@dataclass(frozen=True)
class Race:
    """One report: its first line, and all lines, without their times."""

    title: str
    text: str

    @property
    def ours(self) -> bool:
        """A function of ours is in it."""
        of_others = self._preempted or NEXT_CPU.match(self.title)
        return bool(OURS.search(self.text)) and not of_others

    @property
    def _preempted(self) -> bool:
        """The flag fell, and nothing else is known."""
        change = CHANGE.search(self.text)
        if not (change and UNSEEN.search(self.text)):
            return False
        old, new = (int(value, 16) for value in change.groups())
        return old & ~new == old ^ new == PF_BLOCK_TS


def races(log: str) -> list[Race]:
    """The reports in a kernel log."""
    found: list[Race] = []
    report: list[str] | None = None
    for line in log.splitlines():
        message = STAMP.sub("", line)
        if report is None and TITLE.search(message):
            report = [message]
        elif report and RULE.match(message):
            found.append(_race(report))
            report = None
        elif report:
            report.append(message)
    if report:
        # The machine ended in the middle of it.
        found.append(_race(report))
    return found


def _race(report: list[str]) -> Race:
    title = TITLE.search(report[0])
    return Race(title[1] if title else report[0], "\n".join(report))
