# SPDX-License-Identifier: LGPL-2.1-or-later
"""Control groups that systemd did not make: a delegated subtree, as a container manager has one.

The subtree hangs below a transient service with `Delegate=`: systemd neither minds it nor
takes the io controller away from it.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
from pathlib import Path

from rig.shell import wait_for
from rig.unit import CGROUP_ROOT, Unit

# Controllers that a subtree is delegated, and gives to its children.
CONTROLLERS = ("io", "memory")


class Group:
    """One cgroup of the delegated subtree."""

    def __init__(self, folder: Path):
        self.folder = folder
        self._running: list[subprocess.Popen] = []

    @classmethod
    def root(cls) -> Group:
        """The root of the tree."""
        return cls(CGROUP_ROOT)

    @property
    def cgroup(self) -> str:
        """Its path below the root of the cgroup tree."""
        return "/" + str(self.folder.relative_to(CGROUP_ROOT))

    @property
    def id(self) -> str:
        """Its number as the kernel prints it in traces: the inode number of its folder."""
        return str(self.folder.stat().st_ino)

    def read(self, file: str) -> str:
        """Text of one of its files."""
        return (self.folder / file).read_text()

    def write(self, file: str, text: object) -> None:
        """Write one of its files; a refusal of the kernel is an OSError with its errno."""
        (self.folder / file).write_text(f"{text}\n")

    def child(self, name: str) -> Group:
        """Make a cgroup inside; this one can then hold no processes."""
        control = self.folder / "cgroup.subtree_control"
        if not {*CONTROLLERS} <= {*control.read_text().split()}:
            control.write_text(" ".join(f"+{name}" for name in CONTROLLERS))
        folder = self.folder / name
        folder.mkdir()
        return Group(folder)

    def run(self, command: str) -> subprocess.Popen:
        """Start a shell command in this cgroup; it is killed when the subtree goes."""
        enter = f"echo $$ > {shlex.quote(str(self.folder))}/cgroup.procs || exit 99\n"
        process = subprocess.Popen(
            ["/bin/sh", "-c", enter + command],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        )  # fmt: skip
        self._running.append(process)
        return process

    def kill(self) -> None:
        """End all that runs in it, and wait for the ones it started."""
        with contextlib.suppress(OSError):
            (self.folder / "cgroup.kill").write_text("1")
        for process in self._running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        self._running.clear()

    def remove(self) -> None:
        """Remove it with all that is in it; one that has gone already is gone."""
        self.kill()
        if self.folder.exists():
            for inside in [path for path in self.folder.iterdir() if path.is_dir()]:
                Group(inside).remove()
            wait_for(lambda: self._rmdir(), f"{self.folder} still has processes")

    def _rmdir(self) -> bool:
        try:
            self.folder.rmdir()
        except FileNotFoundError:
            return True
        except OSError:
            return False
        return True


def ended(process: subprocess.Popen, timeout_s: float = 600) -> str:
    """Wait for the end of a command, which must succeed; return its output."""
    printed, _ = process.communicate(timeout=timeout_s)
    assert process.returncode == 0, printed
    return printed


class Subtree(Group):
    """A delegated subtree for the time of a `with` statement.

    Not with all controllers: the first and the last cgroup with cpuset patch the code of the page
    allocator, and two emulated CPUs survive that only mostly.
    """

    def __init__(self, name: str = "subtree", weight: int = 100):
        properties = {"Delegate": " ".join(CONTROLLERS), "DelegateSubgroup": "main"}
        self.unit = Unit(name, "exec sleep infinity", weight, properties=properties)
        super().__init__(self.unit.folder)
        self._children: list[Group] = []

    def __enter__(self) -> Subtree:
        self.unit.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()
        self.unit.stop()

    def clear(self) -> None:
        """Remove all groups in it."""
        for group in self._children:
            group.remove()
        self._children.clear()

    def child(self, name: str) -> Group:
        group = super().child(name)
        self._children.append(group)
        return group
