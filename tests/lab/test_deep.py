# SPDX-License-Identifier: LGPL-2.1-or-later
"""Reasons for which the stage deep fails, in the kernel log and in the files of the
stress test."""

import copy

import pytest
from uml.robustness import CHANGES, STARVED

from lab.deep import KCSAN, LOCKDEP, ONLINE, judged_log, judged_result
from lab.races import races

RULE = "[   31.417650] " + "=" * 66
SELFTEST = "[    0.120833] kcsan: selftest: 3/3 tests passed"


def report(title: str, *functions: str, end: str = RULE) -> str:
    """A report as KCSAN prints it."""
    stack = "".join(f"[   31.418221]  {name}+0x1b2/0x640\n" for name in functions)
    return (
        f"{RULE}\n[   31.417702] BUG: KCSAN: {title}\n[   31.417811] \n"
        "[   31.417859] write to 0xffff888003a1c0e8 of 4 bytes by task 118 on cpu 0:\n"
        f"{stack}[   31.420113] \n[   31.420141] value changed: 0x00000001 -> 0x00000002\n"
        "[   31.420200] Reported by Kernel Concurrency Sanitizer on:\n"
        "[   31.420233] CPU: 1 UID: 0 PID: 118 Comm: fio Not tainted 6.12.117 #1\n" + end
    )


OURS = report("data-race in sutro_limit_depth / sutro_settle", "sutro_settle", "ret_from_fork")
CALLED = report("data-race in rb_next / rb_erase", "rb_erase", "sutro_activate", "do_syscall_64")
THEIRS = report("data-race in blk_mq_run_hw_queue / bfq_insert", "bfq_insert", "do_syscall_64")


WRITER = "write to 0xffff888003a1c0e8 of 4 bytes by task 118 on cpu 0:"
UNSEEN = "race at unknown origin, with read to 0xffff888003ff992c of 4 bytes by task 94 on cpu 1:"
FLAGS = OURS.replace(WRITER, UNSEEN).replace("0x00000001 -> 0x00000002", "0x20400140 -> 0x00400140")

RUN = "blk_mq_delay_run_hw_queue"
NEXT_CPU = report(f"data-race in {RUN} / {RUN}", RUN, "blk_mq_run_hw_queues", "sutro_completed")


def test_next_cpu_of_a_hardware_queue(capsys: pytest.CaptureFixture[str]) -> None:
    results = judged_log("\n".join((SELFTEST, NEXT_CPU)))
    assert not results.failed
    assert "1 data races of others" in capsys.readouterr().err


def test_preempted_task_loses_a_flag(capsys: pytest.CaptureFixture[str]) -> None:
    results = judged_log("\n".join((SELFTEST, FLAGS)))
    assert not results.failed
    assert "1 data races of others" in capsys.readouterr().err


@pytest.mark.parametrize(
    "ours",
    [
        *(OURS, CALLED, OURS.removesuffix(RULE)),
        NEXT_CPU.replace(f"/ {RUN}", "/ sutro_completed"),
        NEXT_CPU.replace(f"in {RUN} /", "in rb_erase /"),
        FLAGS.replace(UNSEEN, WRITER),
        FLAGS.replace("-> 0x00400140", "-> 0x00000140"),
        FLAGS.replace("0x20400140 -> 0x00400140", "0x00400140 -> 0x20400140"),
    ],
)
def test_our_race_fails(ours: str) -> None:
    results = judged_log("\n".join((SELFTEST, THEIRS, ours, "[   40.0] all well")))
    assert set(results.failed) == {"deep.races"}
    assert "BUG: KCSAN: data-race in" in results.failed["deep.races"]
    assert "bfq_insert" not in results.failed["deep.races"]


def test_race_of_others_is_counted_only(capsys: pytest.CaptureFixture[str]) -> None:
    results = judged_log("\n".join((SELFTEST, THEIRS, THEIRS)))
    assert not results.failed
    assert "2 data races of others" in capsys.readouterr().err


def test_log_is_divided() -> None:
    found = races("\n".join((SELFTEST, OURS, "[   32.0] between", THEIRS)))
    assert [(race.title, race.ours) for race in found] == [
        ("data-race in sutro_limit_depth / sutro_settle", True),
        ("data-race in blk_mq_run_hw_queue / bfq_insert", False),
    ]


@pytest.mark.parametrize(
    "line",
    [
        "[   12.3] WARNING: possible circular locking dependency detected",
        "[   12.3] BUG: sleeping function called from invalid context at mm/slab.h:320",
        "[   12.3] BUG: using smp_processor_id() in preemptible [00000000] code: fio/118",
        "[   12.3] list_add corruption. next->prev should be prev",
    ],
)
@pytest.mark.parametrize("beside", ["", THEIRS, THEIRS.removesuffix(RULE)])
def test_complaint_fails(line: str, beside: str) -> None:
    results = judged_log("\n".join((SELFTEST, beside, line, RULE, beside)))
    assert results.failed == {"deep.kernel log": line}


@pytest.mark.parametrize("line", ["", SELFTEST.replace("3/3", "2/3")])
def test_kernel_without_kcsan_fails(line: str) -> None:
    assert set(judged_log(line).failed) == {"deep.kcsan.selftest"}


GOOD = {
    "done": dict.fromkeys(CHANGES, 3), "refused": {}, "left": {"in_flight": 0, "dying": 0},
    "failed": dict.fromkeys(STARVED, 5), "queues": [1, 2],
    "truth": {"d0": "total time_ns=5 rbytes=4096 wbytes=0 rios=1 wios=0 meta_rbytes=0\n"},
    "files": {
        KCSAN: "enabled: 1\nused_watchpoints: 1\nsetup_watchpoints: 50000\ndata_races: 3\n",
        LOCKDEP: " lock-classes:      1059 [max: 8192]\n debug_locks:                  1\n",
        ONLINE: "0-1\n",
    },
}  # fmt: skip


def test_good_end_passes() -> None:
    results = judged_result(GOOD)
    assert not results.failed
    assert len(results.passed) == 9


@pytest.mark.parametrize(
    ("place", "value", "failed"),
    [
        (("left", "in_flight"), 1, "deep.stress.in_flight"),
        (("done", "pull"), 0, "deep.stress.undone"),
        (("failed", "starve_dispatch"), 0, "deep.stress.unfailed"),
        (("queues",), [2], "deep.stress.one_number"),
        (("files", KCSAN), "enabled: 1\nsetup_watchpoints: 12\n", "deep.kcsan.watched"),
        (("files", KCSAN), "", "deep.kcsan.watched"),
        (("files", LOCKDEP), " debug_locks:                  0\n", "deep.lockdep"),
        (("files", ONLINE), "0\n", "deep.cpus"),
    ],
)
def test_bad_end_fails(place: tuple[str, ...], value: object, failed: str) -> None:
    result = copy.deepcopy(GOOD)
    *where, last = place
    part = result
    for key in where:
        part = part[key]
    part[last] = value
    assert set(judged_result(result).failed) == {failed}
