# SPDX-License-Identifier: LGPL-2.1-or-later
"""When a measurement that awaits a job ends (inside/run.py); the job is a process of this host."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

INSIDE = Path(__file__).with_name("inside")
LAST_S, END_S = 0.1, 1.0


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch):
    """A run whose group /a has its last request answered at LAST_S, and /b never."""
    monkeypatch.syspath_prepend(str(INSIDE))
    import run as program

    monkeypatch.delitem(sys.modules, "run")
    monkeypatch.delitem(sys.modules, "machine")
    jobs = [{"name": "a-0", "group": "/a"}, {"name": "b-1", "group": "/b"}]
    plan = {"disk": {"name": "d0"}, "jobs": jobs, "groups": [], "stat": False, "timeout_s": 10}
    one = program.Run(plan)
    one.start_s = time.monotonic()

    def truth(name: str) -> str:
        now = one.now_s()
        return f"/a time_ns={min(now, LAST_S):.9f}\n/b time_ns={now:.9f}\n"

    monkeypatch.setattr(program, "truth", truth)
    return one


def awaited(run, command: str) -> None:
    run.sample()
    run.running["a-0"] = subprocess.Popen(["sh", "-c", command])
    run.await_end("a-0")


def test_last_sample_is_of_the_last_request(run) -> None:
    """Between that and the end of the process, others have the disk alone."""
    awaited(run, f"sleep {END_S}")
    first, last = run.samples
    assert first["at_s"] < LAST_S <= last["at_s"] < END_S <= run.ended["a-0"]
    assert f"/a time_ns={LAST_S:.9f}" in last["truth"]


def test_requests_until_the_end_of_the_job_count(run) -> None:
    awaited(run, f"sleep {LAST_S / 2}")
    assert LAST_S / 2 <= run.samples[-1]["at_s"]


def test_job_that_fails_fails_the_run(run) -> None:
    Path("/tmp/a-0.out").write_text("no such disk")
    with pytest.raises(SystemExit, match="no such disk"):
        awaited(run, "exit 3")
