# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tasks side by side: each result comes at its end, and an interrupt leaves no command running."""

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from lab import parallel

TESTS = Path(__file__).resolve().parents[1]

INTERRUPTED = """
import signal, sys, threading, time
from pathlib import Path
sys.path.insert(0, {tests!r})
from lab import namespace, parallel
# A program inherits that Ctrl-C is ignored, as in the background of a shell.
signal.signal(signal.SIGINT, signal.default_int_handler)
folder = Path({folder!r})
def task(name):
    namespace.run(["sh", "-c", f"echo $$ >{{folder}}/{{name}}.pid; sleep 600"], name, folder / name)
    namespace.run(["touch", str(folder / "second")], name, folder / name)
def soon():
    # The shell creates a file before it writes to it.
    while sum(pid.stat().st_size > 0 for pid in folder.glob("*.pid")) < 2:
        time.sleep(0.01)
    signal.raise_signal(signal.SIGINT)
threading.Thread(target=soon, daemon=True).start()
parallel.at_once([lambda: task("a"), lambda: task("b")])
"""


def test_results_have_the_order_of_the_tasks() -> None:
    def slow() -> str:
        time.sleep(0.1)
        return "slow"

    assert parallel.at_once([slow, lambda: "fast"]) == ["slow", "fast"]


def test_a_result_comes_when_its_task_ends() -> None:
    first_is_seen = threading.Event()

    def waiting() -> bool:
        return first_is_seen.wait(30)

    ended = []
    for number, result in parallel.as_they_end([waiting, lambda: True], 2):
        first_is_seen.set()
        ended.append((number, result))
    assert ended == [(1, True), (0, True)]


def test_no_more_tasks_run_at_a_time_than_workers() -> None:
    running, most, lock = 0, 0, threading.Lock()

    def task() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.02)
        with lock:
            running -= 1

    assert len(list(parallel.as_they_end([task] * 6, 2))) == 6
    assert most <= 2


def test_an_interrupt_ends_every_command_and_starts_no_other(tmp_path: Path) -> None:
    script = INTERRUPTED.format(tests=str(TESTS), folder=str(tmp_path))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=60)
    assert done.returncode != 0 and b"KeyboardInterrupt" in done.stderr
    pids = [path.read_text().strip() for path in tmp_path.glob("*.pid")]
    assert len(pids) == 2
    assert not [pid for pid in pids if Path("/proc", pid).exists()]
    assert not (tmp_path / "second").exists()


def test_an_interrupt_before_all_tasks_are_handed_over(tmp_path: Path) -> None:
    """The first task runs already, and ends: on a busy host it may be that far ahead."""
    script = (
        f"import sys, time; sys.path.insert(0, {str(TESTS)!r})\n"
        "from pathlib import Path\nfrom lab import namespace, parallel\n"
        f"pid = Path({str(tmp_path)!r}, 'pid')\n"
        "command = ['sh', '-c', f'echo $$ >{pid}; exec sleep 600']\n"
        "def tasks():\n"
        "    yield lambda: namespace.run(command, '', Path('/dev/null'))\n"
        "    while not pid.exists(): time.sleep(0.01)\n"
        "    raise KeyboardInterrupt\n"
        "dict(parallel.as_they_end(tasks(), 2))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=60)
    assert b"KeyboardInterrupt" in done.stderr


def test_a_failure_ends_the_others() -> None:
    script = (
        f"import sys; sys.path.insert(0, {str(TESTS)!r})\n"
        "from pathlib import Path\nfrom lab import namespace, parallel\n"
        "def bad(): raise ValueError('bad')\n"
        "parallel.at_once([bad, lambda: namespace.run(['sleep', '600'], '', Path('/dev/null'))])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=60)
    assert b"ValueError: bad" in done.stderr


def test_there_is_a_worker_on_the_smallest_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "MEMORY_GIB", 1 << 20)
    assert parallel.workers() == 1
