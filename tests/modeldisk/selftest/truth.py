# SPDX-License-Identifier: GPL-2.0-only
"""Device time by cgroup."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

from .bench import CGROUPS, demand, disk, fio_command


@contextlib.contextmanager
def cgroups(*names: str) -> Iterator[list[Path]]:
    """cgroups with the io controller, removed at the end."""
    top = CGROUPS / "mdself.test"
    (CGROUPS / "cgroup.subtree_control").write_text("+io")
    top.mkdir()
    (top / "cgroup.subtree_control").write_text("+io")
    paths = [top / name for name in names]
    try:
        for path in paths:
            path.mkdir()
        yield paths
    finally:
        for path in [*paths, top]:
            with contextlib.suppress(FileNotFoundError):
                path.rmdir()


def owner(path: Path) -> str:
    """The name of a cgroup in the truth."""
    return "/" + str(path.relative_to(CGROUPS))


def run_in(cgroup: Path, command: list[str]) -> subprocess.Popen[str]:
    """Starts a command in a cgroup."""
    script = 'echo $$ > "$0/cgroup.procs" && exec "$@"'
    command = ["bash", "-c", script, str(cgroup), *command]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def truth_by_cgroup() -> str:
    """each cgroup is charged its own requests, bytes and time; the sum is the total"""
    with disk("hdd", order="fifo") as it, cgroups("a", "b") as (a, b):
        it.reset()
        reader = fio_command(it.node, rw="randread", bs="4k", iodepth=8, number_ios=200)
        writer = fio_command(it.node, rw="randwrite", bs="64k", iodepth=8, number_ios=100)
        processes = [run_in(a, reader), run_in(b, writer)]
        outputs = [process.communicate() for process in processes]
        for process, (_, errors) in zip(processes, outputs, strict=True):
            demand(process.returncode == 0, f"fio: {errors}")
        done = [json.loads(output)["jobs"][0] for output, _ in outputs]
        truth = it.truth()
    total, of_a, of_b = truth["total"], truth[owner(a)], truth[owner(b)]
    demand(of_a["rios"] == done[0]["read"]["total_ios"], f"reader {of_a}")
    demand(of_a["rbytes"] == done[0]["read"]["io_bytes"], f"reader {of_a}")
    demand(of_b["wios"] == done[1]["write"]["total_ios"], f"writer {of_b}")
    demand(of_b["wbytes"] == done[1]["write"]["io_bytes"], f"writer {of_b}")
    demand(of_a["wios"] == 0 and of_b["rios"] == 0, f"mixed up: {of_a} {of_b}")
    for key in ("time_ns", "rbytes", "wbytes", "rios", "wios"):
        summed = sum(counts[key] for path, counts in truth.items() if path != "total")
        demand(summed == total[key], f"{key}: owners {summed}, total {total[key]}")
    per_read, per_write = of_a["time_ns"] / of_a["rios"], of_b["time_ns"] / of_b["wios"]
    demand(per_read > 5e6 and per_write > 5e6, f"{per_read} ns a read, {per_write} ns a write")
    return f"reader {of_a['time_ns'] / 1e9:.3f} s, writer {of_b['time_ns'] / 1e9:.3f} s of time"


def truth_outlives_cgroup() -> str:
    """a removed cgroup keeps its line, the next of that path continues it, reset forgets it"""
    command = fio_command("/dev/mdself", rw="randread", bs="4k", number_ios=10)
    with disk("ssd") as it:
        for wanted in (10, 20):
            with cgroups("gone") as (gone,):
                process = run_in(gone, command)
                _, errors = process.communicate()
                demand(process.returncode == 0, f"fio: {errors}")
            got = it.truth().get(owner(gone), {}).get("rios")
            demand(got == wanted, f"{got} reads of the removed cgroup, {wanted} done")
        it.reset()
        demand(owner(gone) not in it.truth(), "still there after reset")
        demand(it.total()["rios"] == 0, "total is not zero after reset")
    return "10, then 20 reads, then nothing"
