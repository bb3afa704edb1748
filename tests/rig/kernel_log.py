# SPDX-License-Identifier: LGPL-2.1-or-later
"""The log of a kernel: reading it in a guest, and the lines in which it complains."""

import os
import re

# Messages of the kernel about a bug in itself or in a module.
TROUBLE = re.compile(
    r"WARNING: |\bBUG: |\bkernel BUG at|\bOops\b|general protection|stack segment|"
    r"Unable to handle kernel|INFO: task .* blocked for more than|INFO: .*detected stall|"
    r"Kernel panic|possible (circular|recursive|irq) lock|suspicious RCU|bad unlock balance|"
    r"(KASAN|KFENCE|UBSAN|KCSAN):|refcount_t:|list_(add|del) corruption|soft lockup|"
    r"scheduling while atomic|sleeping function called"
)
# Lines of a report of the kernel that are shown: registers and the stack are in them.
REPORT_LINES = 50
KERNEL_LINE = re.compile(r"^(<\d+>)?\[\s*\d+\.\d+\] ")
USERSPACE_LINE = re.compile(r"^\[\s*\d+\.\d+\] [\w.@-]+\[\d+\]: ")


def kernel_trouble(log: str) -> list[str]:
    """The lines of a kernel log that report a bug; messages of user space do not count."""
    return [
        line
        for line in log.splitlines()
        if KERNEL_LINE.match(line) and not USERSPACE_LINE.match(line) and TROUBLE.search(line)
    ]


def kernel_complaint(log: str) -> str:
    """The bugs in a kernel log: the first with the lines that follow it, the others in a line each.

    Empty if there is none.
    """
    trouble = kernel_trouble(log)
    if not trouble:
        return ""
    lines = log.splitlines()
    first = lines.index(trouble[0])
    report = lines[first : first + REPORT_LINES]
    return "\n".join(report + [line for line in trouble if line not in report])


class KernelLog:
    """The log of the kernel from now on, without messages of programs."""

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
