# SPDX-License-Identifier: LGPL-2.1-or-later
"""Everything that may happen to an elevator at any moment, under load, in an order drawn by a seed.

Two disks are read and written by fio, directly and through the page cache, in cgroups that come and
go. Meanwhile elevators are switched, weights, classes, knobs and nr_requests change, and disks are
pulled and put back. The kernel is the one that checks itself: what goes wrong is in its log.

plan.json: `seed`, `seconds` (virtual). result.json: how often each thing was done, and refused.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import subprocess
import time
from collections import Counter
from pathlib import Path

MNT = Path("/mnt")
CGROUPS = Path("/sys/fs/cgroup")
CONFIGFS = Path("/sys/kernel/config/modeldisk")
# Slow enough that minutes of virtual time are few requests.
DISKS = {
    "d0": {"kind": "hdd", "size_mb": 256},
    "d1": {"kind": "ssd", "size_mb": 256, "read_us": 8000, "write_us": 20000, "bus_kbps": 5400,
           "hw_queues": 2},
}  # fmt: skip
SCHEDULERS = ("sutro", "sutro", "sutro", "none", "bfq", "mq-deadline", "kyber")
MAX_GROUPS = 8
# Half a minute, in which any request is done that is going to be.
WAIT_STEPS = 3000
WAIT_STEP_S = 0.01
# A load that never waits would stop the clock: what needs no disk time pauses.
LOADS = (
    "--rw=randread --bs=4k --iodepth=16 --direct=1",
    "--rw=randrw --bs=16k --iodepth=8 --direct=1",
    "--rw=write --bs=64k --iodepth=4 --direct=1",
    "--rw=read --bs=128k --ioengine=psync --direct=0 --thinktime=2000",
    "--rw=randwrite --bs=4k --ioengine=psync --direct=0 --fsync=32 --thinktime=500",
    "--rw=randtrim --bs=64k --iodepth=4 --direct=1 --thinktime=2000",
)


class Stress:
    """The state of the disks and cgroups, and all that may be done to it."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.done: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.groups: dict[str, subprocess.Popen] = {}
        self.on: dict[str, str] = {}
        self.made = 0

    def write(self, file: Path, value: object) -> None:
        """A write that may be refused: the disk may be gone, the elevator another."""
        try:
            file.write_text(f"{value}\n")
        except OSError as error:
            self.refused[f"{file.name}: {error.strerror}"] += 1

    def disk(self) -> str:
        return self.random.choice(sorted(DISKS))

    def queue(self) -> Path:
        return Path("/sys/block") / self.disk() / "queue"

    def group(self) -> Path:
        return CGROUPS / self.random.choice(sorted(self.groups) or ["."])

    def devno(self) -> str:
        with contextlib.suppress(OSError):
            return (Path("/sys/block") / self.disk() / "dev").read_text().strip()
        return "259:0"

    # ---- what happens ----

    def make_group(self) -> None:
        """A cgroup with a load; every third has a parent of its own."""
        if len(self.groups) >= MAX_GROUPS:
            return
        self.made += 1
        name = f"g{self.made}"
        if self.made % 3 == 0:
            (CGROUPS / f"p{self.made}").mkdir()
            (CGROUPS / f"p{self.made}" / "cgroup.subtree_control").write_text("+io +memory\n")
            name = f"p{self.made}/{name}"
        folder = CGROUPS / name
        folder.mkdir()
        load, disk = self.random.choice(LOADS), self.disk()
        command = (
            f"fio --name=x --filename=/dev/{disk} --ioengine=libaio --time_based "
            f"--runtime=100000 --clocksource=clock_gettime --randseed={self.made} "
            f"--output=/dev/null --allow_file_create=0 --size=64m {load}"
        )
        self.on[name] = disk
        self.groups[name] = subprocess.Popen(
            ["sh", "-c", f"exec env LD_PRELOAD=/mnt/fio-clock.so {command}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=lambda: (folder / "cgroup.procs").write_text("0\n"),
        )

    def kill_group(self) -> None:
        """End a cgroup in the middle of its requests, and remove it at once if that is possible."""
        if not self.groups:
            return
        name = self.random.choice(sorted(self.groups))
        self.kill_load(name)
        self.groups.pop(name).wait()
        folder = CGROUPS / name
        for _ in range(WAIT_STEPS):
            with contextlib.suppress(OSError):
                folder.rmdir()
                break
            time.sleep(WAIT_STEP_S)
        else:
            raise SystemExit(
                f"{name} still has processes: {(folder / 'cgroup.events').read_text()}"
            )
        if folder.parent != CGROUPS:
            folder.parent.rmdir()

    def kill_load(self, name: str) -> None:
        """What runs in a cgroup, without waiting for it to be gone."""
        (CGROUPS / name / "cgroup.kill").write_text("1\n")

    def switch(self) -> None:
        self.write(self.queue() / "scheduler", self.random.choice(SCHEDULERS))

    def weight(self) -> None:
        value = str(self.random.choice((1, 10, 100, 333, 10000, 0, 10001, "default")))
        where = self.random.choice(("", f"{self.devno()} "))
        self.write(self.group() / "io.sutro.weight", where + value)

    def set_class(self) -> None:
        where = self.random.choice(("", f"{self.devno()} "))
        value = self.random.choice(("rt", "be", "idle", "default", "best"))
        self.write(self.group() / "io.sutro.class", where + value)

    def knob(self) -> None:
        folder = self.queue() / "iosched"
        with contextlib.suppress(OSError):
            names = sorted(path.name for path in folder.iterdir())
            name = self.random.choice(names)
            words = (folder / name).read_text().replace("[", "").replace("]", "").split()
            if words and not words[0].isdigit():
                self.write(folder / name, self.random.choice(words))
            else:
                self.write(folder / name, self.random.choice((0, 1, 2, 8, 500, 20000)))

    def slots(self) -> None:
        self.write(self.queue() / "nr_requests", self.random.choice((4, 32, 64, 256, 1000)))

    def read_stat(self) -> None:
        """Statistics of one and all, and whatever debugfs shows of the queue."""
        (CGROUPS / "io.sutro.active").read_text()
        with contextlib.suppress(OSError):
            (self.group() / "io.sutro.stat").read_text()
            for file in sorted(Path("/sys/kernel/debug/block", self.disk()).rglob("*")):
                with contextlib.suppress(OSError):
                    if file.is_file() and os.access(file, os.R_OK):
                        file.read_text(errors="replace")

    def pull(self) -> None:
        """Take a disk away under load, and put it back. fio would read nothing from it for ever."""
        disk = self.disk()
        self.write(CONFIGFS / disk / "online", 0)
        for name in [name for name in self.groups if self.on[name] == disk]:
            self.kill_load(name)
        time.sleep(self.random.choice((0.0, 0.05)))
        self.write(CONFIGFS / disk / "online", 1)
        self.write(Path("/sys/block") / disk / "queue/scheduler", "sutro")

    def run(self, seconds: float) -> None:
        """Do this and that, most of it often, pulling disks seldom."""
        actions = {
            self.make_group: 6, self.kill_group: 4, self.switch: 3, self.weight: 6,
            self.set_class: 3, self.knob: 4, self.slots: 2, self.read_stat: 2, self.pull: 1,
        }  # fmt: skip
        end_s = time.monotonic() + seconds
        while time.monotonic() < end_s:
            (action,) = self.random.choices(list(actions), list(actions.values()))
            # The last line of the output tells what a machine that hangs was doing.
            print(f"{seconds - end_s + time.monotonic():.3f} {action.__name__}")
            action()
            self.done[action.__name__] += 1
            time.sleep(self.random.choice((0.0, 0.001, 0.02, 0.1, 0.3)))


def main() -> None:
    """Set up, stress, take everything down again."""
    plan = json.loads((MNT / "plan.json").read_text())
    (CGROUPS / "cgroup.subtree_control").write_text("+io +memory\n")
    for name, numbers in DISKS.items():
        (CONFIGFS / name).mkdir()
        for key, value in numbers.items():
            (CONFIGFS / name / key).write_text(f"{value}\n")
        (CONFIGFS / name / "online").write_text("1\n")
        (Path("/sys/block") / name / "queue/scheduler").write_text("sutro\n")
    stress = Stress(plan["seed"])
    stress.run(plan["seconds"])
    served = {
        name: Path("/sys/kernel/debug/modeldisk", name, "truth").read_text() for name in DISKS
    }
    while stress.groups:
        stress.kill_group()
    for name in DISKS:
        (CONFIGFS / name / "online").write_text("0\n")
        (CONFIGFS / name).rmdir()
    result = {"done": stress.done, "refused": stress.refused, "truth": served}
    (MNT / "result.json").write_text(json.dumps(result))


if __name__ == "__main__":
    main()
