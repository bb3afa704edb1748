# SPDX-License-Identifier: LGPL-2.1-or-later
"""Lines of a guest's kernel log that fail a run, and the part of them that is shown."""

import pytest
from rig.kernel_log import REPORT_LINES, kernel_complaint, kernel_trouble


@pytest.mark.parametrize(
    "line",
    [
        "[   12.345678] WARNING: CPU: 1 PID: 42 at block/blk-mq.c:123 foo+0x1/0x2 [sutro]",
        "[   12.345678] WARNING: possible circular locking dependency detected",
        "[   12.345678] BUG: kernel NULL pointer dereference, address: 0000000000000008",
        "[  112.345678] Oops: Oops: 0002 [#1] PREEMPT SMP NOPTI",
        "[  112.345678] INFO: task fio:123 blocked for more than 120 seconds.",
        "[    1.000000] watchdog: BUG: soft lockup - CPU#0 stuck for 26s! [fio:12]",
        "[    1.000000] list_add corruption. next->prev should be prev",
        "[    1.000000] rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:",
        "[    1.000000] refcount_t: underflow; use-after-free.",
        "[    1.000000] Kernel panic - not syncing: Fatal exception",
    ],
)
def test_bug_is_found(line: str) -> None:
    assert kernel_trouble(f"[    0.5] usb: all well\n{line}\n") == [line]


@pytest.mark.parametrize(
    "line",
    [
        "[    0.000000] Linux version 6.12.117+deb13-amd64",
        "[    5.000000] systemd[1]: WARNING: not the kernel's",
        "WARNING: printed by a program",
        "[    2.000000] clocksource: Marking clocksource 'tsc' as unstable",
        "[    2.000000] EXT4-fs (vda): mounted filesystem r/w without journal",
    ],
)
def test_other_lines_are_not(line: str) -> None:
    assert kernel_trouble(line) == []


def test_a_report_is_shown_with_its_text() -> None:
    before = "[    0.5] usb: all well"
    report = ["[    1.0] WARNING: at a.c:1 a+0x1/0x2", "[    1.0] RIP: 0010:a+0x1/0x2"]
    assert kernel_complaint("\n".join([before, *report])) == "\n".join(report)
    assert kernel_complaint(before) == ""


def test_of_the_second_report_a_line_is_shown() -> None:
    report = ["[    1.0] BUG: one"] + ["[    1.0] Code: 90"] * (REPORT_LINES - 1)
    second = ["[    2.0] BUG: two", "[    2.0] Code: 90"]
    assert kernel_complaint("\n".join(report + second)) == "\n".join([*report, second[0]])
