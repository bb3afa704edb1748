# SPDX-License-Identifier: LGPL-2.1-or-later
"""Two cgroups, a and b, with the same reads: their device time by the files of weights.

plan.json has `disk`, its numbers, and `steps`, each with `name`, `settle_s` from the last write to
the measurement, and lists of [FILE, TEXT]:

    before   is written to new cgroups; FILE is below the root of cgroups, or an absolute path
    during   is written while both read
    shows    FILE has to hold TEXT in the end

{devno} in a text stands for the disk; !ERROR after it is the refusal that the write has to meet.
result.json: for each step `truth`, that of the disk after the last write, and `differ`, a line for
each write or file that was not as it had to be.
"""

import errno
import os
import signal
import subprocess
import time
from collections.abc import Iterable

from machine import (
    BLOCK,
    CGROUPS,
    CONTROLLERS,
    DEBUGFS,
    leave,
    make_disk,
    plan,
    started,
    truth,
    write,
)

DISK, GROUPS = "d0", ("a", "b")
READ = (
    f"exec env LD_PRELOAD=/mnt/fio-clock.so fio --name=read --filename=/dev/{DISK} --rw=randread "
    "--bs=64k --iodepth=32 --direct=1 --ioengine=libaio --thread --time_based --runtime=1000 "
    "--clocksource=clock_gettime"
)
START_S, MEASURE_S = 1.0, 3.0


class Step:
    """One step, in new cgroups."""

    def __init__(self, step: dict):
        self.step = step
        self.devno = (BLOCK / DISK / "dev").read_text().strip()
        self.differ: list[str] = []

    def text(self, template: str) -> str:
        return template.replace("{devno}", self.devno)

    def write(self, files: Iterable[tuple[str, str]]) -> None:
        """Each has to succeed, or to be refused as it states."""
        for name, template in files:
            text, _, expected = self.text(template).partition(" !")
            got = ""
            try:
                (CGROUPS / name).write_text(f"{text}\n")
            except OSError as error:
                got = errno.errorcode[error.errno or 0]
            if got != expected:
                self.differ.append(f"{name}: {text}: {got or 'accepted'}, not {expected or 'so'}")

    def measured(self) -> str:
        """The truth of the time after the last write."""
        jobs = [started(CGROUPS / group, READ, start_new_session=True) for group in GROUPS]
        time.sleep(START_S)
        self.write(self.step["during"])
        time.sleep(self.step["settle_s"])
        write(DEBUGFS / DISK / "reset", 1)
        time.sleep(MEASURE_S)
        found = truth(DISK)
        self.end(jobs)
        return found

    def end(self, jobs: list[subprocess.Popen]) -> None:
        for job in jobs:
            if job.poll() is not None:
                raise SystemExit(f"{self.step['name']}: fio ended early ({job.returncode})")
            os.killpg(job.pid, signal.SIGKILL)
        for job in jobs:
            job.wait()

    def run(self) -> dict:
        for group in GROUPS:
            (CGROUPS / group).mkdir()
        self.write(self.step["before"])
        found = self.measured()
        for name, template in self.step["shows"]:
            if (got := (CGROUPS / name).read_text()) != f"{self.text(template)}\n":
                self.differ.append(f"{name}: {got!r}, not {self.text(template)!r}")
        for group in GROUPS:
            (CGROUPS / group).rmdir()
        return {"name": self.step["name"], "truth": found, "differ": self.differ}


def main() -> None:
    """Take all steps and leave the result."""
    todo = plan()
    make_disk(DISK, todo["disk"])
    write(CGROUPS / "cgroup.subtree_control", CONTROLLERS)
    leave({"steps": [Step(step).run() for step in todo["steps"]]})


if __name__ == "__main__":
    main()
