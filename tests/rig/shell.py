# SPDX-License-Identifier: LGPL-2.1-or-later
"""Run commands of the system; an error names the command that failed."""

import os
import shlex
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path


class CommandError(RuntimeError):
    """A command ended with a status other than 0; the text has the command and its output."""


# Only so that nothing waits for ever. In an emulated guest that counts instructions for a clock, a
# wait for the host takes no instructions: its clock may leap by a minute.
TIMEOUT_S = 600


def run(*args: str | Path, stdin: str | None = None, timeout_s: float = TIMEOUT_S) -> str:
    """Run a command to its end and return its standard output."""
    words = [str(arg) for arg in args]
    try:
        done = subprocess.run(
            words, input=stdin, capture_output=True, text=True, timeout=timeout_s, check=False
        )
    except FileNotFoundError as error:
        raise CommandError(f"{words[0]}: command not found; install its package") from error
    except subprocess.TimeoutExpired as error:
        raise CommandError(f"{shlex.join(words)}: not finished after {timeout_s} s") from error
    if done.returncode:
        text = (done.stderr.strip() or done.stdout.strip()) or "it printed nothing"
        raise CommandError(f"{shlex.join(words)}: status {done.returncode}: {text}")
    return done.stdout


def run_again(*args: str | Path, tries: int = 8, pause_s: float = 0.25) -> str:
    """Like run(), but try a few times: udev may hold a device open for a moment (a blkid probe)."""
    for left in range(tries - 1, -1, -1):
        try:
            return run(*args)
        except CommandError:
            if not left:
                raise
            time.sleep(pause_s)
    raise AssertionError("tries must be at least 1")


def wait_for(condition, what: str, timeout_s: float = 10, pause_s: float = 0.05):
    """Call condition() until it returns something true, and return that."""
    end = time.monotonic() + timeout_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() >= end:
            raise TimeoutError(f"{what}: not within {timeout_s} s")
        time.sleep(pause_s)


def in_process(work: Callable[[], object]) -> None:
    """Do some work in a process of its own, which may enter cgroups, and wait for its end."""
    pid = os.fork()
    if not pid:
        status = 1
        try:
            work()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)
    if os.waitpid(pid, 0)[1]:
        raise RuntimeError("a process failed; see above")
