# SPDX-License-Identifier: LGPL-2.1-or-later
"""A disk of the kernel's null_blk: it stores nothing and completes as configured, so that only
the path to it is measured."""

from collections.abc import Mapping
from pathlib import Path
from typing import Self

from rig.shell import run

FOLDER = Path("/sys/kernel/config/nullb")


class NullBlk:
    """One disk for the time of a `with` statement; its keys are those of null_blk in configfs."""

    def __init__(self, name: str, keys: Mapping[str, object]):
        self.name = name
        self.keys = keys
        self._folder = FOLDER / name

    @property
    def node(self) -> str:
        """Its device node."""
        return f"/dev/{self.name}"

    @property
    def devno(self) -> str:
        """MAJOR:MINOR."""
        return (Path("/sys/block") / self.name / "dev").read_text().strip()

    def __enter__(self) -> Self:
        run("modprobe", "null_blk", "nr_devices=0")
        self._folder.mkdir()
        try:
            for key, value in self.keys.items():
                (self._folder / key).write_text(f"{value}\n")
            (self._folder / "power").write_text("1\n")
        except BaseException:
            self._folder.rmdir()
            raise
        run("udevadm", "settle")
        return self

    def __exit__(self, *_: object) -> None:
        (self._folder / "power").write_text("0\n")
        self._folder.rmdir()
