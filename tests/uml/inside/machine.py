# SPDX-License-Identifier: LGPL-2.1-or-later
"""Kernel files, commands, model disks and jobs in cgroups, for all programs in the machine.

A program reads its plan from /mnt/plan.json and leaves its result in /mnt/result.json.
"""

import ctypes
import fcntl
import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

MNT = Path("/mnt")
BLOCK = Path("/sys/block")
CGROUPS = Path("/sys/fs/cgroup")
CONFIGFS = Path("/sys/kernel/config/modeldisk")
DEBUGFS = Path("/sys/kernel/debug/modeldisk")
SECTOR_BYTES, PAGE_BYTES = 512, 4096
# <linux/blkpg.h>
BLKPG, BLKPG_ADD_PARTITION = 0x1269, 1
# Of cgroup.subtree_control.
CONTROLLERS = "+io +memory"


def plan() -> dict[str, Any]:
    return json.loads((MNT / "plan.json").read_text())


def leave(result: Mapping[str, object]) -> None:
    (MNT / "result.json").write_text(json.dumps(result))


def write(file: Path, text: object) -> None:
    """Write a kernel file; a refusal names the file and the value."""
    try:
        file.write_text(f"{text}\n")
    except OSError as error:
        raise SystemExit(f"{file}: {text}: {error.strerror}") from error


def run(*words: str, check: bool = True, stdin: str = "") -> str:
    """Run a command and return its output; a failure ends the program."""
    done = subprocess.run(words, input=stdin, capture_output=True, text=True)
    if check and done.returncode != 0:
        raise SystemExit(f"{' '.join(words)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def make_disk(name: str, numbers: Mapping[str, object]) -> None:
    """A model disk; its kind comes first, which loads defaults."""
    folder = CONFIGFS / name
    folder.mkdir()
    for key, value in numbers.items():
        write(folder / key, value)
    write(folder / "online", 1)


class Partition(ctypes.Structure):
    """struct blkpg_partition of <linux/blkpg.h>."""

    _fields_ = (
        ("start", ctypes.c_longlong),
        ("length", ctypes.c_longlong),
        ("pno", ctypes.c_int),
        ("names", ctypes.c_char * 128),
    )


class PartitionCall(ctypes.Structure):
    """struct blkpg_ioctl_arg."""

    _fields_ = (
        ("op", ctypes.c_int),
        ("flags", ctypes.c_int),
        ("datalen", ctypes.c_int),
        ("data", ctypes.POINTER(Partition)),
    )


def add_partition(disk: str, number: int, at: int, of: int) -> None:
    """One of `of` equal parts of a disk, /dev/DISKpNUMBER; nothing is written to the disk."""
    size = int((BLOCK / disk / "size").read_text()) * SECTOR_BYTES // of // PAGE_BYTES * PAGE_BYTES
    one = Partition(start=size * at, length=size, pno=number)
    call = PartitionCall(BLKPG_ADD_PARTITION, 0, ctypes.sizeof(one), ctypes.pointer(one))
    with open(f"/dev/{disk}", "rb") as device:
        fcntl.ioctl(device, BLKPG, call)


def truth(name: str) -> str:
    return (DEBUGFS / name / "truth").read_text()


def started(
    folder: Path, command: str, output: IO[bytes] | int = subprocess.DEVNULL, **keys: Any
) -> subprocess.Popen:
    """A shell command in a cgroup."""
    return subprocess.Popen(
        ["sh", "-c", command],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        preexec_fn=lambda: (folder / "cgroup.procs").write_text("0\n"),
        **keys,
    )
