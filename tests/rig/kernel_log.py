# SPDX-License-Identifier: LGPL-2.1-or-later
"""The log of a kernel: reading it in a guest, and the lines in which it complains."""

import os
import re

# What the kernel prints when it has found a bug in itself or in a module.
TROUBLE = re.compile(
    r"WARNING: |\bBUG: |\bkernel BUG at|\bOops\b|general protection|stack segment|"
    r"Unable to handle kernel|INFO: task .* blocked for more than|INFO: .*detected stall|"
    r"Kernel panic|possible (circular|recursive|irq) lock|suspicious RCU|bad unlock balance|"
    r"(KASAN|KFENCE|UBSAN|KCSAN):|refcount_t:|list_(add|del) corruption|soft lockup|"
    r"scheduling while atomic|sleeping function called"
)
# Of a report of the kernel so much is shown: registers and the stack are in it.
REPORT_LINES = 50
KERNEL_LINE = re.compile(r"^(<\d+>)?\[\s*\d+\.\d+\] ")
USERSPACE_LINE = re.compile(r"^\[\s*\d+\.\d+\] [\w.@-]+\[\d+\]: ")


def kernel_trouble(log: str) -> list[str]:
    """The lines of a kernel log that tell of a bug; messages of user space in it do not count."""
    return [
        line
        for line in log.splitlines()
        if KERNEL_LINE.match(line) and not USERSPACE_LINE.match(line) and TROUBLE.search(line)
    ]


def kernel_complaint(log: str) -> str:
    """What a kernel log tells of bugs: the first with what follows it, the others in a line each.

    Empty if it tells of none.
    """
    trouble = kernel_trouble(log)
    if not trouble:
        return ""
    lines = log.splitlines()
    first = lines.index(trouble[0])
    report = lines[first : first + REPORT_LINES]
    return "\n".join(report + [line for line in trouble if line not in report])


class KernelLog:
    """What the kernel logs from now on, without what programs write into its log."""

    def __init__(self) -> None:
        self._fd = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
        os.lseek(self._fd, 0, os.SEEK_END)

    def news(self) -> str:
        """Lines since the last call, as dmesg shows them."""
        lines = []
        while True:
            try:
                record = os.read(self._fd, 1 << 14).decode(errors="replace")
            except BlockingIOError:
                return "".join(lines)
            except BrokenPipeError:
                # Overrun: the next read goes on with the oldest record that is left.
                continue
            head, _, text = record.partition(";")
            priority, _, time_us, *_ = head.split(",")
            if int(priority) >> 3 == 0:
                line = text.split("\n", 1)[0]
                lines.append(f"[{int(time_us) / 1e6:12.6f}] {line}\n")
