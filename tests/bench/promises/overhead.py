# SPDX-License-Identifier: LGPL-2.1-or-later
"""The cost of the daemon on a large machine: 1,000 units that all have used 16 disks.

The units are slices: they have weights and cgroups as services have, and cost a guest nothing. One
task walks through their cgroups and reads a block of each disk in each, so that every cgroup has
counters of every disk. Some units stay active on all disks, some are promised something on all.

    cpu_percent   CPU time of sutrod's cgroup, user and system, over the time measured
    user_percent  the part of it outside of the kernel
    rss_mib       VmRSS of sutrod at its end
    step_ms       CPU time for each of four samples a second: the upper bound of a control step,
                  with reading all counters and answering the bus
"""

import mmap
import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from rig import scheduler as elevators
from rig.modeldisk import ModelDisk
from rig.result import Result
from rig.shell import in_process, run, wait_for
from rig.unit import CGROUP_ROOT, fio

from bench.judge import Say, bounds
from bench.promises.scenario import Overhead

PARENT = "rigload"
UNIT_FILES = Path("/run/systemd/system")
POLICIES = Path("/run/sutro/policy.d")
SAMPLES_PER_S = 4
# A unit that has used nothing for 15 s is dormant for the control law.
SETTLE_S = 20.0
BLOCK = 4096
# Loads of units and reads of disks: small enough for the slowest CPU.
ACTIVE = {"rw": "randread", "bs": "4k", "iodepth": 1, "rate_iops": 20}
PROMISE = "100K"


def overhead(spec: Overhead, say: Say) -> Iterator[Result]:
    """Make it all, measure, take it away."""
    names = [f"{PARENT}-{number:05d}.slice" for number in range(spec.units)]
    with ExitStack() as undo:
        say(f"{spec.name}: {spec.leaves} disks, {spec.units} units")
        disks = [undo.enter_context(_disk(number)) for number in range(spec.leaves)]
        nodes = [disk.node for disk in disks]
        undo.enter_context(elevators.chosen("sutro", [d.name for d in disks], *nodes))
        undo.enter_context(_slices(names))
        undo.enter_context(_policy(names[: spec.promised], nodes))
        say(f"{spec.name}: each unit uses each disk")
        in_process(partial(_touch, names, nodes))
        undo.enter_context(_active(names[: spec.active], nodes))
        wait_for(lambda: _all_used(disks, spec.active), "all active units use all disks", 120)
        time.sleep(SETTLE_S)
        say(f"{spec.name}: measuring")
        before_s, user_before_s = _cpu_s("usage"), _cpu_s("user")
        begin_s = time.monotonic()
        time.sleep(spec.measure_s)
        used_s, elapsed_s = _cpu_s("usage") - before_s, time.monotonic() - begin_s
        values = {
            "cpu_percent": 100 * used_s / elapsed_s,
            "user_percent": 100 * (_cpu_s("user") - user_before_s) / elapsed_s,
            "rss_mib": _rss_mib(),
            "step_ms": 1000 * used_s / elapsed_s / SAMPLES_PER_S,
        }
    about = {"units": spec.units, "leaves": spec.leaves, "promised": spec.promised}
    goals = bounds(spec.goal, "sutro")
    for metric, value in values.items():
        yield Result(spec.name, "sutro", metric, value, goals.get(metric), dict(about))


def _disk(number: int) -> ModelDisk:
    return ModelDisk(f"load{number:02d}", "ssd", {"size_mb": 16})


def _cgroup(name: str) -> Path:
    return CGROUP_ROOT / f"{PARENT}.slice" / name


@contextmanager
def _slices(names: Sequence[str]) -> Iterator[None]:
    """Slices with weights of their own, started."""
    files = [UNIT_FILES / name for name in names]
    UNIT_FILES.mkdir(parents=True, exist_ok=True)
    try:
        for number, file in enumerate(files):
            file.write_text(f"[Slice]\nIOWeight={100 + number % 900}\n")
        run("systemctl", "daemon-reload")
        run("systemctl", "start", *names)
        yield
    finally:
        run("systemctl", "stop", f"{PARENT}.slice")
        for file in files:
            file.unlink(missing_ok=True)
        run("systemctl", "daemon-reload")


@contextmanager
def _policy(names: Sequence[str], nodes: Sequence[str]) -> Iterator[None]:
    """One policy file: a floor on each disk for each of these units."""
    file = POLICIES / "90-rig-load.policy"
    if not names:
        yield
        return
    POLICIES.mkdir(parents=True, exist_ok=True)
    floors = "\n".join(f"ReadBandwidthMin={node} {PROMISE}" for node in nodes)
    file.write_text(f"[Match]\nUnit={' '.join(names)}\n[X-Sutro]\n{floors}\n")
    try:
        run("sutroctl", "policy", "reload")
        yield
    finally:
        file.unlink()
        run("sutroctl", "policy", "reload")


def _touch(names: Sequence[str], nodes: Sequence[str]) -> None:
    """Read a block of each disk in each cgroup, in a process that walks through them."""
    page = mmap.mmap(-1, BLOCK)
    files = [os.open(node, os.O_RDONLY | os.O_DIRECT) for node in nodes]
    for name in names:
        (_cgroup(name) / "cgroup.procs").write_text("0")
        for file in files:
            os.preadv(file, [page], 0)


@contextmanager
def _active(names: Sequence[str], nodes: Sequence[str]) -> Iterator[None]:
    """Units that go on using all disks."""
    running = []
    try:
        for seed, name in enumerate(names, start=1):
            enter = f"echo $$ > {_cgroup(name)}/cgroup.procs && "
            words = ["/bin/sh", "-c", enter + fio(":".join(nodes), **ACTIVE, seed=seed)]
            running.append(subprocess.Popen(words, stdout=subprocess.DEVNULL))
        yield
        ended = [process.args for process in running if process.poll() is not None]
        if ended:
            raise RuntimeError(f"a load ended early: {ended[0]}")
    finally:
        for process in running:
            process.kill()
        for process in running:
            process.wait()


def _all_used(disks: Sequence[ModelDisk], active: int) -> bool:
    """Each disk was read by this many units since their round, more than a block each."""
    return all(
        sum(use.rios > 1 for use in disk.truth().owners.values()) >= active for disk in disks
    )


def _cpu_s(kind: str) -> float:
    text = (CGROUP_ROOT / "system.slice/sutrod.service/cpu.stat").read_text()
    return int(dict(line.split() for line in text.splitlines())[f"{kind}_usec"]) / 1e6


def _rss_mib() -> float:
    pid = run("systemctl", "show", "--property=MainPID", "--value", "sutrod.service").strip()
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    words = next(line.split() for line in lines if line.startswith("VmRSS:"))
    return int(words[1]) / 1024
