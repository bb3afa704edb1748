# SPDX-License-Identifier: LGPL-2.1-or-later
"""The process of sutrod: whether it runs and answers, and how it is killed."""

import os
import signal

from rig import bus
from rig.shell import run, wait_for


def main_pid() -> int:
    """Of sutrod, 0 if it does not run."""
    return int(run("systemctl", "show", "--property=MainPID", "--value", "sutrod"))


def answers() -> bool:
    """The daemon is on the bus."""
    try:
        return bool(bus.get("Version"))
    except bus.BusError:
        return False


def kill() -> None:
    """kill -9, at once."""
    os.kill(main_pid(), signal.SIGKILL)


def comes_back(old: int) -> None:
    """Wait until systemd has started another one, and that one answers."""
    wait_for(lambda: main_pid() not in (0, old) and answers(), "a new sutrod", 60)


def kill_and_wait() -> None:
    """kill -9; returns when the next one answers."""
    old = main_pid()
    kill()
    comes_back(old)
