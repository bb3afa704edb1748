# SPDX-License-Identifier: LGPL-2.1-or-later
"""One run of one scenario under one scheduler, inside User Mode Linux.

Reads /mnt/plan.json, which uml/plan.py made of a scenario: disks, their scheduler,
cgroups in the order in which they are to be made, commands with the times at which they start and
pause, and changes with their times. Writes /mnt/result.json: samples of each disk's truth and of
io.sutro.stat, and of /proc/lock_stat where the plan has `locks`; reports of fio, the end of
each command, and the numbers that the commands of `readings` printed. Nothing is judged here.

Time is virtual: it passes only while all tasks sleep, so the program itself takes none.
"""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from machine import (
    CGROUPS,
    CONTROLLERS,
    add_partition,
    leave,
    make_disk,
    plan,
    run,
    started,
    truth,
    write,
)

LOCK_STAT = Path("/proc/lock_stat")
# The disk of partitions.
FIRST = "d0"
PAUSE = (signal.SIGSTOP, signal.SIGCONT)
# How often an awaited job is looked at.
POLL_S = 0.01


class Run:
    """The plan, as it is carried out."""

    def __init__(self, plan: dict):
        self.plan = plan
        self.samples: list[dict] = []
        self.running: dict[str, subprocess.Popen] = {}
        self.ended: dict[str, float] = {}
        self.start_s = 0.0

    def now_s(self) -> float:
        """Seconds since the jobs began."""
        return time.monotonic() - self.start_s

    # ---- before ----

    def prepare(self) -> None:
        """File systems and files, on a disk without delays."""
        for command in self.plan["prepare"]:
            run("sh", "-ec", command)
        for number, at, of in self.plan["partitions"]:
            add_partition(FIRST, number, at, of)
        for disk, settings in self.plan["settings"].items():
            devno = (Path("/sys/block") / disk / "dev").read_text().strip()
            for file, value in settings:
                write(Path(file), str(value).replace("{devno}", devno))

    def make_groups(self) -> None:
        write(CGROUPS / "cgroup.subtree_control", CONTROLLERS)
        for group in self.plan["groups"]:
            folder = CGROUPS / group["path"].lstrip("/")
            folder.mkdir()
            if group["inner"]:
                write(folder / "cgroup.subtree_control", CONTROLLERS)
            for file, value in group["files"]:
                write(folder / file, value)
        for command in self.plan["baseline"]:
            run("sh", "-ec", command)

    # ---- during ----

    def begin(self, job: dict) -> None:
        """Start a command in its cgroup, as the leader of a session that can be ended whole."""
        folder = CGROUPS / job["group"].lstrip("/")
        with open(f"/tmp/{job['name']}.out", "wb") as output:
            process = started(folder, job["command"], output, start_new_session=True)
        self.running[job["name"]] = process

    def signal(self, job: dict, number: int) -> None:
        """Send a signal to a command and all processes that it started."""
        os.killpg(self.running[job["name"]].pid, number)

    def sample(self) -> None:
        """The truth and the elevator's account, at one moment."""
        stat = {}
        if self.plan["stat"]:
            for group in self.plan["groups"]:
                file = CGROUPS / group["path"].lstrip("/") / "io.sutro.stat"
                stat[group["path"]] = file.read_text()
        at_s = round(self.now_s(), 6)
        locks = LOCK_STAT.read_text() if self.plan["locks"] else ""
        truths = [truth(disk) for disk in self.plan["disks"]]
        self.samples.append({"at_s": at_s, "truths": truths, "stat": stat, "locks": locks})

    def follow(self) -> None:
        """Carry out the plan, at its times; or until a command has ended, if one is awaited."""
        todo: list[tuple[float, Callable[[], None]]] = []

        def at(when_s: float, action: Callable[[], None]) -> None:
            todo.append((when_s, action))

        for job in self.plan["jobs"]:
            at(job["start_s"], lambda job=job: self.begin(job))
            for when_s, number in zip(job["pause_s"], PAUSE, strict=False):
                at(when_s, lambda job=job, number=number: self.signal(job, number))
        for change in self.plan["changes"]:
            for file, value in change["writes"]:
                at(change["at_s"], lambda file=file, value=value: write(Path(file), value))
        for when_s in self.plan["samples_s"]:
            at(when_s, self.sample)
        self.start_s = time.monotonic()
        # Actions at the same time are done in the order of the plan.
        for when_s, action in sorted(todo, key=lambda item: item[0]):
            time.sleep(max(0.0, when_s - self.now_s()))
            action()
        if until := self.plan["until"]:
            self.await_end(until)

    def await_end(self, name: str) -> None:
        """Wait for a job; the last sample is of when its group's last request was answered.

        A program may end later, fio 0.1 s. In this time others have the disk alone."""
        job, limit_s = self.running[name], self.plan["timeout_s"]
        (group,) = {one["group"] for one in self.plan["jobs"] if one["name"] == name}
        first = now = last = self.samples[-1]
        ended = False
        while not ended and self.now_s() < limit_s:
            time.sleep(POLL_S)
            ended = job.poll() is not None
            self.sample()
            now = self.samples.pop()
            if used(now, group) != used(last, group):
                last = now
        if not ended:
            raise SystemExit(f"{name} did not end within {limit_s} s")
        if job.returncode:
            raise SystemExit(f"{name} failed ({job.returncode}); it printed:\n{printed(name)}")
        self.ended[name] = self.now_s()
        self.samples.append(now if last is first else last)

    # ---- after ----

    def readings(self) -> dict[str, float]:
        """The numbers that commands print, while jobs that do not end by themselves still run."""
        return {
            name: float(run("sh", "-ec", command))
            for name, command in self.plan["readings"].items()
        }

    def finish(self) -> dict[str, dict]:
        """End all jobs, and collect the reports that fio writes at its end.

        A job that failed before makes the run fail: the others had the disk alone since then."""
        jobs = {job["name"]: job for job in self.plan["jobs"]}
        for name, process in self.running.items():
            if code := process.poll():
                raise SystemExit(f"{name} failed ({code}); it printed:\n{printed(name)}")
            if code is None:
                self.signal(jobs[name], signal.SIGINT)
                # A job that pauses handles it when it goes on.
                self.signal(jobs[name], signal.SIGCONT)
        reports = {}
        for name, process in self.running.items():
            process.wait()
            report = Path(f"/tmp/{name}.json")
            if jobs[name]["fio"]:
                try:
                    # fio first prints that it was terminated.
                    text = report.read_text()
                    reports[name] = json.loads(text[text.index("{") :])
                except (OSError, ValueError) as error:
                    raise SystemExit(
                        f"{name}: no report of fio ({error}); it printed:\n{printed(name)}"
                    ) from error
        return reports


def printed(name: str) -> str:
    """The last lines that a job printed."""
    return Path(f"/tmp/{name}.out").read_text(errors="replace")[-2000:]


def used(sample: dict, group: str) -> list[str]:
    """The lines of the truth about a group, of all disks."""
    lines = "\n".join(sample["truths"]).splitlines()
    return [line for line in lines if line.startswith(f"{group} ")]


def main() -> None:
    """Follow the plan and leave the result."""
    one = Run(plan())
    for name, numbers in one.plan["disks"].items():
        make_disk(name, dict(numbers))
    one.prepare()
    one.make_groups()
    one.follow()
    readings = one.readings()
    reports = one.finish()
    leave({"samples": one.samples, "ended_s": one.ended, "fio": reports, "readings": readings})


if __name__ == "__main__":
    main()
