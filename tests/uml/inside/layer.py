# SPDX-License-Identifier: LGPL-2.1-or-later
"""The common base of layers.py: model disks with sutro, and suspension of dm."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from pathlib import Path

from machine import BLOCK, CONFIGFS, make_disk, truth, write
from rig import shell
from rig.modeldisk import parse_truth
from stress import dmsetup

# Slow enough that a virtual second is few requests.
NUMBERS = {"kind": "ssd", "read_us": 2000, "write_us": 4000, "bus_kbps": 20000}
TOP = "/dev/mapper/top"
STEP_S = 0.02
wait_for = partial(shell.wait_for, timeout_s=600, pause_s=STEP_S)


def sectors(node: str) -> int:
    return int((BLOCK / Path(node).name / "size").read_text())


class Layer(ABC):
    """Disks and the layers on them; `changes` are the events that may happen to it."""

    # MiB of each disk.
    disks: tuple[int, ...] = (16,)
    top = TOP

    def __init__(self) -> None:
        self.nodes = [f"/dev/d{number}" for number in range(len(self.disks))]
        self.mismatches = 0
        self.changes: list[Callable[[], None]] = [self.suspend]

    @abstractmethod
    def make(self) -> None:
        """Set it up on the disks, which are there."""

    def suspend(self) -> None:
        dmsetup("suspend", "top")
        time.sleep(STEP_S)
        dmsetup("resume", "top")

    def check(self) -> None:  # noqa: B027 - some layers have nothing to check
        """Check the layer while no task uses it."""

    def remove(self) -> None:
        dmsetup("remove", "--retry", "top")

    # ---- disks ----

    def plug(self) -> None:
        for number, size_mb in enumerate(self.disks):
            make_disk(f"d{number}", {**NUMBERS, "size_mb": size_mb})
            self.use(f"d{number}")

    def use(self, name: str) -> None:
        write(BLOCK / name / "queue/scheduler", "sutro")

    def unplug(self) -> int:
        """Take the disks away; returns what they served for cgroups."""
        owned = 0
        for name in (Path(node).name for node in self.nodes):
            owners = parse_truth(truth(name)).owners
            owned += sum(usage.bytes for owner, usage in owners.items() if owner != "/")
            write(CONFIGFS / name / "online", 0)
            (CONFIGFS / name).rmdir()
        return owned
