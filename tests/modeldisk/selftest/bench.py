# SPDX-License-Identifier: GPL-2.0-only
"""Disks of modeldisk and load for them; what a check may say."""

from __future__ import annotations

import contextlib
import mmap
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

CONFIG = Path("/sys/kernel/config/modeldisk")
DEBUG = Path("/sys/kernel/debug/modeldisk")
CGROUPS = Path("/sys/fs/cgroup")
TOLERANCE = 0.03
PAGE = 16384  # of flash
SECTOR = 512
BURST = 256  # writes that fit into the cache of the cache checks


class Failed(Exception):
    """A check found something else than it should."""


def expect(what: str, got: float, want: float, tolerance: float = TOLERANCE) -> str:
    """Fails unless got is within tolerance of want; returns a sentence with both."""
    error = got / want - 1
    text = f"{what} {got:.5g}, by the numbers {want:.5g} ({100 * error:+.2f} %)"
    if not abs(error) <= tolerance:
        raise Failed(text)
    return text


def demand(condition: bool, text: str) -> None:
    """Fails with text unless the condition holds."""
    if not condition:
        raise Failed(text)


class Disk:
    """A model disk: configfs, debugfs and the block device of one name."""

    def __init__(self, name: str, kind: str, **numbers: object) -> None:
        self.config = CONFIG / name
        self.debug = DEBUG / name
        self.node = f"/dev/{name}"
        self.queue = Path(f"/sys/block/{name}/queue")
        self.config.mkdir()
        self.set(kind=kind)
        self.set(**numbers)

    def set(self, **numbers: object) -> None:
        """Writes attributes in the order given."""
        for name, value in numbers.items():
            (self.config / name).write_text(str(value))

    def get(self, name: str) -> str:
        """Reads an attribute."""
        return (self.config / name).read_text().strip()

    def number(self, name: str) -> int:
        """Reads a numeric attribute."""
        return int(self.get(name))

    def online(self, scheduler: str = "none") -> None:
        """Creates the block device."""
        self.set(online=1)
        deadline = time.monotonic() + 10
        while not os.path.exists(self.node) and time.monotonic() < deadline:
            time.sleep(0.01)
        (self.queue / "scheduler").write_text(scheduler)

    def slow(self, factor: int) -> None:
        """Makes a flash drive slower in all respects."""
        for name in ("read_us", "write_us"):
            self.set(**{name: self.number(name) * factor})
        self.set(bus_kbps=self.number("bus_kbps") // factor)

    def reset(self) -> None:
        """Zeroes the truth."""
        (self.debug / "reset").write_text("1")

    def truth(self) -> dict[str, dict[str, int]]:
        """Counts by cgroup path, and "total"."""
        return {
            line.split(" time_ns=")[0]: pairs(line)
            for line in (self.debug / "truth").read_text().splitlines()
        }

    def total(self) -> dict[str, int]:
        """Counts of the whole disk."""
        return self.truth()["total"]

    def model(self) -> dict[str, int]:
        """What the model says of its answers."""
        return pairs((self.debug / "model").read_text())

    def remove(self) -> None:
        """Removes it, online or not."""
        self.config.rmdir()


def pairs(line: str) -> dict[str, int]:
    """a=1 b=2 as a dictionary."""
    return {key: int(value) for key, _, value in (w.partition("=") for w in line.split()) if value}


@contextlib.contextmanager
def disk(kind: str, **numbers: object) -> Iterator[Disk]:
    """A disk for one check, online."""
    it = Disk("mdself", kind, **numbers)
    try:
        it.online()
        yield it
    finally:
        it.remove()


@contextlib.contextmanager
def quiet_udev() -> Iterator[None]:
    """Keeps udev from reading the disks (blkid) while requests are counted."""
    running = os.path.exists("/run/udev/control")
    if running:
        subprocess.run(["udevadm", "settle"], check=True)
        subprocess.run(["udevadm", "control", "--stop-exec-queue"], check=True)
    try:
        yield
    finally:
        if running:
            subprocess.run(["udevadm", "control", "--start-exec-queue"], check=True)


def fio_command(node: str, **options: object) -> list[str]:
    """A fio command line: direct asynchronous I/O on node."""
    defaults: dict[str, object] = {
        "name": "selftest",
        "filename": node,
        "direct": 1,
        "ioengine": "libaio",
        "output-format": "json",
        "norandommap": 1,
        "allow_mounted_write": 1,
    }
    return ["fio"] + [f"--{key}={value}" for key, value in (defaults | options).items()]


@contextlib.contextmanager
def load(node: str, seconds: float = 60, cgroup: Path | None = None, **options: object):
    """fio in the background, in a cgroup if given; stopped at the end."""
    command = fio_command(node, time_based=1, runtime=seconds, **options)
    if cgroup is not None:
        script = 'echo $$ > "$0/cgroup.procs" && exec "$@"'
        command = ["bash", "-c", script, str(cgroup), *command]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.terminate()
        process.communicate()


def wait_busy(it: Disk) -> None:
    """Waits until the disk answers requests, and a little more."""
    deadline = time.monotonic() + 20
    before = it.model()["requests"]
    while it.model()["requests"] - before < 20:
        demand(time.monotonic() < deadline, "no I/O after 20 s")
        time.sleep(0.02)
    time.sleep(0.15)


class Rate:
    """What a disk did under load while the guest kept it busy.

    A guest that is stopped by a busy host takes answers late and stops asking. So the time is cut
    into windows, and those are left out in which answers were later than slack_ms (less than the
    queue holds of work), the disk had no request (with depth 1: for longer than slack_ms), or
    a look at the clock took long. Whether the disk looks fast or slow plays no part.
    """

    WINDOW_S = 0.2
    LOOK_NS = 1_000_000

    def __init__(self, it: Disk, seconds: float, slack_ms: float, depth: int = 32) -> None:
        self.late_ns = slack_ms * 1e6
        self.idle_ns = self.late_ns if depth == 1 else 0
        self.elapsed = self.kib = self.ios = self.time = 0.0
        deadline = time.monotonic() + 20 * seconds
        while self.elapsed < seconds:
            demand(
                time.monotonic() < deadline,
                f"only {self.elapsed:.1f} s of the last {20 * seconds:.0f} s were smooth: "
                "the host is too busy to measure, run this alone",
            )
            self._window(it)
        self.kbps = self.kib / self.elapsed
        self.us = 1e6 * self.elapsed / self.ios
        self.busy = self.time / self.elapsed
        self.charge_us = 1e6 * self.time / self.ios

    def _window(self, it: Disk) -> None:
        before = time.monotonic_ns()
        it.reset()
        started = time.monotonic_ns()
        time.sleep(self.WINDOW_S)
        looked = time.monotonic_ns()
        total = it.total()
        ended = time.monotonic_ns()
        model = it.model()
        if model["late_max_ns"] > self.late_ns or model["idle_max_ns"] > self.idle_ns:
            return
        if max(started - before, ended - looked) > self.LOOK_NS:
            return
        self.elapsed += (looked + ended - before - started) / 2e9
        self.kib += (total["rbytes"] + total["wbytes"]) / 1024
        self.ios += total["rios"] + total["wios"]
        self.time += total["time_ns"] / 1e9


class Direct:
    """One request at a time, from Python, with O_DIRECT."""

    def __init__(self, node: str, nbytes: int, flags: int = os.O_RDWR) -> None:
        self.fd = os.open(node, flags | os.O_DIRECT)
        self.buffer = mmap.mmap(-1, nbytes)

    def read(self, offset: int) -> None:
        os.preadv(self.fd, [self.buffer], offset)

    def write(self, offset: int) -> None:
        os.pwritev(self.fd, [self.buffer], offset)

    def __enter__(self) -> Direct:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.fd)
