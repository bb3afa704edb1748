# SPDX-License-Identifier: LGPL-2.1-or-later
"""Model disks under the load that shows whether they keep to their numbers.

Times in a model do not depend on the guest, but the guest must keep a disk busy. So the tests
slow fast drives by a factor (all their times alike), and take rates while the guest runs smoothly.
"""

from __future__ import annotations

import mmap
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rig import scheduler
from rig.modeldisk import ModelDisk
from rig.shell import wait_for
from rig.udev import quiet_udev
from rig.unit import fio

PAGE = 16384  # of flash


@contextmanager
def ready(kind: str, **numbers: object) -> Iterator[ModelDisk]:
    """A model disk without a scheduler, which udev leaves alone."""
    with ModelDisk("judged", kind, numbers) as disk:
        scheduler.select(disk.name, "none")
        with quiet_udev():
            yield disk


@contextmanager
def loaded(disk: ModelDisk, rw: str, bs: str, iodepth: int = 1, **more: object) -> Iterator[None]:
    """fio in the background; the disk answers requests when the body begins."""
    job = fio(disk.node, rw, bs, iodepth, **more)
    process = subprocess.Popen(["sh", "-c", job], stdout=subprocess.DEVNULL)
    try:
        before = disk.model()["requests"]
        wait_for(lambda: disk.model()["requests"] - before >= 20, "I/O", 60, 0.02)
        time.sleep(0.15)
        yield
    finally:
        process.terminate()
        process.wait()


class Rate:
    """The work of a disk under load while the guest kept it busy.

    A guest that is stopped by a busy host takes answers late and stops sending. So the time is cut
    into windows, and those are left out in which answers were later than slack_ms (less than the
    queue holds of work), the disk had no request (with depth 1: for longer than slack_ms), or
    a look at the clock took long. Whether the disk looks fast or slow plays no part.
    """

    WINDOW_S = 0.2
    LOOK_NS = 1_000_000

    def __init__(self, disk: ModelDisk, seconds: float, slack_ms: float, depth: int = 32) -> None:
        self.late_ns = slack_ms * 1e6
        self.idle_ns = self.late_ns if depth == 1 else 0
        self.elapsed = self.kib = self.ios = self.time = 0.0
        end_s = time.monotonic() + 20 * seconds
        while self.elapsed < seconds:
            assert time.monotonic() < end_s, f"only {self.elapsed:.1f} s were smooth: a busy host?"
            self._window(disk)
        self.kbps = self.kib / self.elapsed
        self.us = 1e6 * self.elapsed / self.ios
        self.busy = self.time / self.elapsed
        self.charge_us = 1e6 * self.time / self.ios

    def _window(self, disk: ModelDisk) -> None:
        before = time.monotonic_ns()
        disk.reset()
        started = time.monotonic_ns()
        time.sleep(self.WINDOW_S)
        looked = time.monotonic_ns()
        total = disk.truth().total
        ended = time.monotonic_ns()
        model = disk.model()
        if model["late_max_ns"] > self.late_ns or model["idle_max_ns"] > self.idle_ns:
            return
        if max(started - before, ended - looked) > self.LOOK_NS:
            return
        self.elapsed += (looked + ended - before - started) / 2e9
        self.kib += total.bytes / 1024
        self.ios += total.rios + total.wios
        self.time += total.time_ns / 1e9


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
