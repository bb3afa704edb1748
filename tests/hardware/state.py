# SPDX-License-Identifier: LGPL-2.1-or-later
"""The machine as it was before the test, in /run/sutro-tests, and how that is restored.

    lock         held by the test while it runs; the kernel drops it when the test ends, however
    state.json   written before the first change, removed when all is restored

The transient unit sutrotest-guard waits for the end of the test's process, and restores then: also
after SIGKILL, and when the terminal closes. After a boot nothing is left to restore: schedulers of
leaves and /run begin anew, too.
"""

import fcntl
import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict

from sutro.errors import SutroError

from . import files
from .leaf import Leaf

FOLDER = "/run/sutro-tests"
FILE, LOCK = f"{FOLDER}/state.json", f"{FOLDER}/lock"
SLICE = "sutrotest.slice"
GUARD = "sutrotest-guard.service"
TIMEOUT_S = 60


@contextmanager
def locked() -> Iterator[None]:
    """Hold the lock; SutroError while another test runs."""
    files.at(FOLDER).mkdir(mode=0o700, parents=True, exist_ok=True)
    number = os.open(files.at(LOCK), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(number)
        raise SutroError(
            "another test runs on this machine", "wait for its end, or stop it with Ctrl-C"
        ) from None
    try:
        yield
    finally:
        os.close(number)


def begin(leaves: Sequence[Leaf], file: str) -> None:
    """Keep the settings of the leaves, and the name of the file that the test makes."""
    data = {
        "file": file,
        "leaves": [
            {"leaf": asdict(leaf), "settings": leaf.settings(), "iocost": leaf.has_iocost()}
            for leaf in leaves
        ],
    }
    new = files.at(f"{FILE}.new")
    new.write_text(json.dumps(data))
    new.rename(files.at(FILE))


def is_left() -> bool:
    """There is something to restore."""
    return files.at(FILE).exists()


def restore() -> list[str]:
    """Restore the machine; return what could not be restored.

    The state stays until all is restored, so that another attempt is possible.
    """
    if not is_left():
        return []
    failures = _stop_units()
    try:
        data = json.loads(files.at(FILE).read_text())
        for one in data["leaves"]:
            failures += Leaf(**one["leaf"]).restore(one["settings"], one["iocost"])
        if data["file"]:
            files.at(data["file"]).unlink(missing_ok=True)
    except (OSError, ValueError, LookupError, TypeError) as error:
        failures.append(f"{FILE}: {error}")
    if not failures:
        for path in files.at(FOLDER).glob("*.json"):
            path.unlink()
    return failures


def _stop_units() -> list[str]:
    """Stop all units of the test."""
    try:
        done = systemctl("stop", SLICE)
    except (OSError, subprocess.TimeoutExpired) as error:
        return [f"systemctl stop {SLICE}: {error}"]
    # A slice that never had a unit is not loaded.
    lost = done.returncode and "not loaded" not in done.stderr
    return [f"systemctl stop {SLICE}: {done.stderr.strip()}"] if lost else []


def systemctl(*words: str) -> subprocess.CompletedProcess[str]:
    """Run systemctl."""
    return subprocess.run(
        ["systemctl", *words], capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )


# The guard


def guard_command(program: str, pid: int) -> list[str]:
    """The call that starts a unit which restores the machine when a process has ended."""
    return [
        "systemd-run", "--quiet", "--collect", f"--unit={GUARD}", "--service-type=exec",
        f"--property=ExecStopPost={program} test --restore",
        "--", "tail", f"--pid={pid}", "--follow", "/dev/null",
    ]  # fmt: skip


def guard(program: str) -> None:
    """Start the guard of this process."""
    command = guard_command(program, os.getpid())
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SutroError(f"systemd-run: {error}", "the test needs systemd") from None
    if done.returncode:
        raise SutroError(
            f"{GUARD} cannot be started: {done.stderr.strip()}",
            f"stop another test that runs: systemctl stop {GUARD}; or see: journalctl -u {GUARD}",
        )


def unguard() -> None:
    """Stop the guard: there is nothing left to restore."""
    systemctl("stop", GUARD)
