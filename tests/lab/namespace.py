# SPDX-License-Identifier: LGPL-2.1-or-later
"""Processes that leave nothing behind: children that die with the lab, and namespaces.

The lab works as root and as a user. Commands that need root's powers over a Debian tree (chroot,
mounts, files of many owners) run in a mount and pid namespace; for a user it is also a user
namespace, in which the user is root and the ranges of /etc/subuid are all other users. All mounts
are made in there, so the kernel takes them away with the last process, however that process ended.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from .progress import LabError

# Debian gives users a PATH without the folders of mount and chroot.
ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "LC_ALL": "C.UTF-8",
    "DEBIAN_FRONTEND": "noninteractive",
    "TZ": "UTC",
}

# A process in the middle of a large write may take this long to die.
NAMESPACE_END_S = 10.0

# Set when the lab is about to end: no thread starts another command.
_ending = threading.Event()


def is_root() -> bool:
    """True for the real root user."""
    return os.geteuid() == 0


def namespaced(argv: Sequence[str]) -> list[str]:
    """The command line that runs argv as root of fresh mount and pid namespaces."""
    users = [] if is_root() else ["--user", "--map-root-user", "--map-auto"]
    spaces = ["--mount", "--pid", "--fork", "--kill-child", "--propagation", "private"]
    return ["unshare", *users, *spaces, "--", *argv]


def dies_with_us(argv: Sequence[str]) -> list[str]:
    """The command line that runs argv so that the kernel kills it if the lab dies first."""
    return ["setpriv", "--pdeathsig", "KILL", "--", *argv]


def run(
    argv: Sequence[str],
    what: str,
    log: Path,
    *,
    check: bool = True,
    timeout_s: float | None = None,
) -> int:
    """Run a command to its end with its output appended to log; the exit status.

    With check, a failure raises LabError. An early end of the wait (Ctrl-C, a signal, the
    timeout) kills the command, and with it its namespaces.
    """
    with started(argv, what, log, "ab") as process:
        try:
            status = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise LabError(f"{what} did not end within {timeout_s:.0f} s", log) from None
    if check and status != 0:
        raise LabError(f"{what} failed with status {status}", log)
    return status


@contextlib.contextmanager
def started(
    argv: Sequence[str], what: str, log: Path, mode: str = "wb", pass_fds: Sequence[int] = ()
) -> Iterator[subprocess.Popen]:
    """A command whose output goes to log, killed at the end of the body if it still runs."""
    refuse_when_ending(what)
    with open(log, mode) as output:
        process = subprocess.Popen(
            dies_with_us(argv),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=ENVIRONMENT,
            pass_fds=pass_fds,
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                _end(process)


def _end(process: subprocess.Popen) -> None:
    """Kill a command, and return when the namespaces it made are gone, too.

    unshare waits for the first process of a pid namespace, which is not dead before all others
    are: so that one is killed first. If unshare were, they might outlive us by a moment.
    """
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        for child in children.read_text().split():
            os.kill(int(child), signal.SIGKILL)
            process.wait(NAMESPACE_END_S)
    process.kill()
    process.wait()


def refuse_when_ending(what: str) -> None:
    """Raise a LabError instead of starting a command when the lab is about to end."""
    if _ending.is_set():
        raise LabError(f"{what}: not started, because the lab is ending")


def end_all() -> None:
    """Kill the commands that other threads wait for, and let them start no other."""
    _ending.set()
    for task in Path("/proc/self/task").iterdir():
        children = []
        # A thread may end meanwhile.
        with contextlib.suppress(OSError):
            children = (task / "children").read_text().split()
        for child in children:
            with contextlib.suppress(OSError):
                inside = Path(f"/proc/{child}/task/{child}/children").read_text().split()
                for process in (*inside, child):
                    os.kill(int(process), signal.SIGKILL)


def remove_tree(path: Path) -> None:
    """Remove a folder, also when it holds files of the subordinate users of a user."""
    try:
        shutil.rmtree(path)
    except PermissionError:
        subprocess.run(
            namespaced(["rm", "-rf", "--one-file-system", str(path)]), env=ENVIRONMENT, check=True
        )
