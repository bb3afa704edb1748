# SPDX-License-Identifier: LGPL-2.1-or-later
"""When a measurement that awaits a job ends (inside/run.py), by a clock that only sleeps move."""

import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

INSIDE = Path(__file__).with_name("inside")
LAST_S, END_S = 0.1, 1.0


class Clock:
    """Time of the run."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


@dataclass
class Job:
    """A process that ends at end_s."""

    clock: Clock
    end_s: float
    returncode: int = 0

    def poll(self) -> int | None:
        return self.returncode if self.clock.now_s >= self.end_s else None


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, clock: Clock):
    """A run whose group /a has its last request answered at LAST_S, and /b never."""
    monkeypatch.syspath_prepend(str(INSIDE))
    import run as program

    monkeypatch.delitem(sys.modules, "run")
    monkeypatch.delitem(sys.modules, "machine")
    jobs = [{"name": "a-0", "group": "/a"}, {"name": "b-1", "group": "/b"}]
    plan = {"disks": {"d0": []}, "jobs": jobs, "groups": [], "timeout_s": 10}
    plan |= {"stat": False, "locks": False}
    one = program.Run(plan)

    def truth(_name: str) -> str:
        used_s = min(clock.now_s, LAST_S)
        return f"/a time_ns={used_s:.9f}\n/b time_ns={clock.now_s:.9f}\n"

    monkeypatch.setattr(one, "now_s", lambda: clock.now_s)
    monkeypatch.setattr(program, "truth", truth)
    monkeypatch.setattr(program.time, "sleep", clock.sleep)
    one.sample()
    return one


def test_last_sample_is_of_the_last_request(run, clock: Clock) -> None:
    """Between that and the end of the process, others have the disk alone."""
    run.running["a-0"] = Job(clock, END_S)
    run.await_end("a-0")
    first, last = run.samples
    assert first["at_s"] < LAST_S <= last["at_s"] < LAST_S + 0.02 < END_S <= run.ended["a-0"]
    assert f"/a time_ns={LAST_S:.9f}" in last["truths"][0]


def test_requests_until_the_end_of_the_job_count(run, clock: Clock) -> None:
    run.running["a-0"] = Job(clock, LAST_S / 2)
    run.await_end("a-0")
    assert LAST_S / 2 <= run.samples[-1]["at_s"]


def test_job_that_fails_fails_the_run(run, clock: Clock) -> None:
    run.running["a-0"] = Job(clock, 0, returncode=3)
    Path("/tmp/a-0.out").write_text("no such disk")
    with pytest.raises(SystemExit, match="no such disk"):
        run.await_end("a-0")
