# SPDX-License-Identifier: LGPL-2.1-or-later
"""Keep udev quiet: it reads each device that was closed after a write."""

from collections.abc import Iterator
from contextlib import contextmanager

from rig.shell import run


@contextmanager
def quiet_udev() -> Iterator[None]:
    """udev handles no event until the body ends."""
    run("udevadm", "settle", "--timeout=60")
    run("udevadm", "control", "--stop-exec-queue")
    try:
        yield
    finally:
        run("udevadm", "control", "--start-exec-queue")
