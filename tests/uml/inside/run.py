# SPDX-License-Identifier: LGPL-2.1-or-later
"""One run of one scenario under one scheduler, inside User Mode Linux.

Reads /mnt/plan.json, which bench/fairness/plan.py made of a scenario: a disk, its scheduler,
cgroups in the order in which they are to be made, commands with the times at which they start and
pause, and changes with their times. Writes /mnt/result.json: samples of the disk's truth and of
io.sutro.stat, what fio reported, when each command ended. Nothing is judged here.

Time is virtual: it passes only while everybody sleeps, so nothing here costs any.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

MNT = Path("/mnt")
CGROUPS = Path("/sys/fs/cgroup")
CONFIGFS = Path("/sys/kernel/config/modeldisk")
PAUSE = (signal.SIGSTOP, signal.SIGCONT)
DEBUGFS = Path("/sys/kernel/debug/modeldisk")


def write(file: Path, text: object) -> None:
    """Write a kernel file; a refusal names the file and the value."""
    try:
        file.write_text(f"{text}\n")
    except OSError as error:
        raise SystemExit(f"{file}: {text}: {error.strerror}") from error


class Run:
    """What the plan says, being done."""

    def __init__(self, plan: dict):
        self.plan = plan
        self.disk = plan["disk"]["name"]
        self.samples: list[dict] = []
        self.running: dict[str, subprocess.Popen] = {}
        self.ended: dict[str, float] = {}
        self.start_s = 0.0

    def now_s(self) -> float:
        """Seconds since the jobs began."""
        return time.monotonic() - self.start_s

    # ---- before ----

    def make_disk(self) -> None:
        folder = CONFIGFS / self.disk
        folder.mkdir()
        for key, value in self.plan["disk"]["numbers"]:
            write(folder / key, value)
        write(folder / "online", 1)

    def prepare(self) -> None:
        """File systems and files, on a disk that nobody has to wait for."""
        for command in self.plan["prepare"]:
            done = subprocess.run(["sh", "-ec", command], capture_output=True, text=True)
            if done.returncode != 0:
                raise SystemExit(f"prepare: {command}: {done.stderr.strip()}")
        devno = (Path("/sys/block") / self.disk / "dev").read_text().strip()
        for file, value in self.plan["settings"]:
            write(Path(file), str(value).replace("{devno}", devno))

    def make_groups(self) -> None:
        write(CGROUPS / "cgroup.subtree_control", "+io +memory")
        for group in self.plan["groups"]:
            folder = CGROUPS / group["path"].lstrip("/")
            folder.mkdir()
            if group["inner"]:
                write(folder / "cgroup.subtree_control", "+io +memory")
            for file, value in group["files"]:
                write(folder / file, value)

    # ---- during ----

    def begin(self, job: dict) -> None:
        """Start a command in its cgroup, as the leader of a session that can be ended whole."""
        procs = CGROUPS / job["group"].lstrip("/") / "cgroup.procs"

        def enter() -> None:
            procs.write_text("0\n")

        output = open(f"/tmp/{job['name']}.out", "wb")
        with output:
            self.running[job["name"]] = subprocess.Popen(
                ["sh", "-c", job["command"]],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                preexec_fn=enter,
                start_new_session=True,
            )

    def signal(self, job: dict, number: int) -> None:
        """Tell a command and all that it started."""
        os.killpg(self.running[job["name"]].pid, number)

    def sample(self) -> None:
        """The truth and the elevator's account, at one moment."""
        stat = {}
        if self.plan["stat"]:
            for group in self.plan["groups"]:
                file = CGROUPS / group["path"].lstrip("/") / "io.sutro.stat"
                stat[group["path"]] = file.read_text()
        truth = (DEBUGFS / self.disk / "truth").read_text()
        self.samples.append({"at_s": round(self.now_s(), 6), "truth": truth, "stat": stat})

    def follow(self) -> None:
        """Do what the plan says, at its times; or until a command has ended, if one is awaited."""
        plan = self.plan
        todo: list[tuple[float, Callable[[], None]]] = []

        def at(when_s: float, action: Callable[[], None]) -> None:
            todo.append((when_s, action))

        for job in plan["jobs"]:
            at(job["start_s"], lambda job=job: self.begin(job))
            for when_s, number in zip(job["pause_s"], PAUSE, strict=False):
                at(when_s, lambda job=job, number=number: self.signal(job, number))
        for change in plan["changes"]:
            for file, value in change["writes"]:
                at(change["at_s"], lambda file=file, value=value: write(Path(file), value))
        for when_s in plan["samples_s"]:
            at(when_s, self.sample)
        self.start_s = time.monotonic()
        # What is due at the same time is done in the order of the plan.
        for when_s, action in sorted(todo, key=lambda item: item[0]):
            time.sleep(max(0.0, when_s - self.now_s()))
            action()
        if plan["until"]:
            limit_s = plan["timeout_s"]
            job = self.running[plan["until"]]
            while job.poll() is None and self.now_s() < limit_s:
                time.sleep(0.01)
            if job.poll() is None:
                raise SystemExit(f"{plan['until']} did not end within {limit_s} s")
            self.ended[plan["until"]] = self.now_s()
            self.sample()

    # ---- after ----

    def finish(self) -> dict[str, dict]:
        """End what runs still, and collect what fio reports when it is asked to end."""
        jobs = {job["name"]: job for job in self.plan["jobs"]}
        for name, process in self.running.items():
            if process.poll() is None:
                self.signal(jobs[name], signal.SIGINT)
        reports = {}
        for name, process in self.running.items():
            process.wait()
            report = Path(f"/tmp/{name}.json")
            if jobs[name]["fio"]:
                try:
                    # fio says first that it was asked to end.
                    text = report.read_text()
                    reports[name] = json.loads(text[text.index("{") :])
                except (OSError, ValueError) as error:
                    said = Path(f"/tmp/{name}.out").read_text(errors="replace")[-2000:]
                    raise SystemExit(
                        f"{name}: no report of fio ({error}); it said:\n{said}"
                    ) from error
        return reports


def main() -> None:
    """Follow the plan and leave the result."""
    run = Run(json.loads((MNT / "plan.json").read_text()))
    run.make_disk()
    run.prepare()
    run.make_groups()
    run.follow()
    reports = run.finish()
    result = {"samples": run.samples, "ended_s": run.ended, "fio": reports}
    (MNT / "result.json").write_text(json.dumps(result))


if __name__ == "__main__":
    main()
