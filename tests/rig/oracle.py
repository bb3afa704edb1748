# SPDX-License-Identifier: LGPL-2.1-or-later
"""Model disks under the load that shows whether they keep to their numbers.

Times in a model do not depend on the guest, but the guest must keep a disk busy. So the tests
slow fast drives by a factor (all their times alike). The guest's clock counts instructions: a busy
host changes no rate.
"""

import mmap
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

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
    """Rates and device time of a model disk, measured for some seconds under load."""

    def __init__(self, disk: ModelDisk, seconds: float) -> None:
        disk.reset()
        began = time.monotonic()
        time.sleep(seconds)
        total = disk.truth().total
        elapsed = time.monotonic() - began
        ios = total.rios + total.wios
        self.kbps = total.bytes / 1024 / elapsed
        self.us = 1e6 * elapsed / ios
        self.busy = total.time_ns / 1e9 / elapsed
        self.charge_us = total.time_ns / 1e3 / ios


class Direct:
    """One request at a time, from Python, with O_DIRECT."""

    def __init__(self, node: str, nbytes: int, flags: int = os.O_RDWR) -> None:
        self.fd = os.open(node, flags | os.O_DIRECT)
        self.buffer = mmap.mmap(-1, nbytes)

    def read(self, offset: int) -> None:
        os.preadv(self.fd, [self.buffer], offset)

    def write(self, offset: int) -> None:
        os.pwritev(self.fd, [self.buffer], offset)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.fd)
