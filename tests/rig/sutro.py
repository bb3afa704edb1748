# SPDX-License-Identifier: LGPL-2.1-or-later
"""The elevator's files of one disk: knobs in sysfs, state in debugfs, counts of the block layer."""

from __future__ import annotations

from pathlib import Path

from rig import scheduler
from rig.modeldisk import ModelDisk


def knob(disk: ModelDisk, name: str) -> Path:
    """A file in queue/iosched/."""
    return scheduler.queue(disk.name) / "iosched" / name


def debug(disk: ModelDisk, file: str) -> str:
    """Text of one of the debugfs files."""
    return Path(f"/sys/kernel/debug/block/{disk.name}/sched/{file}").read_text()


def state(disk: ModelDisk) -> dict[str, str]:
    """The leaf's state by name."""
    return dict(line.split() for line in debug(disk, "state").splitlines())


def groups(disk: ModelDisk) -> dict[str, dict[str, str]]:
    """The leaf's groups by path, in the order of the file."""
    found = {}
    for line in debug(disk, "groups").splitlines():
        path, *pairs = line.split()
        found[path] = dict(pair.split("=") for pair in pairs)
    return found


def reads(disk: ModelDisk) -> tuple[int, int]:
    """Read requests and read merges so far."""
    words = (scheduler.queue(disk.name).parent / "stat").read_text().split()
    return int(words[0]), int(words[1])
