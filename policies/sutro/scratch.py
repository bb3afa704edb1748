# SPDX-License-Identifier: LGPL-2.1-or-later
"""The file of --write: fio writes to it, and no data may be lost.

It is new or empty, a regular file, and on a file system of the device. A file that was made here
is removed at the end, and an empty one is empty again.
"""

import contextlib
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from . import reach
from .client import Client
from .errors import NoQueue, SutroError, UsageError

LEAST_BYTES = 64 << 20
MOST_BYTES = 1 << 30
PART = 0.5  # of the free space
# fio has several files with a colon between them.
ALLOWED = r"[\w./@+-]+"
NEW = "name a new file on a file system of the device"


@dataclass(frozen=True)
class Scratch:
    """The absolute path of the file without links, its size while fio runs, and its device."""

    path: str
    size_bytes: int
    device: str


def _at(path: str) -> Path:
    return Path(reach.ROOT + path)


def check(name: str) -> str:
    """The absolute path of a file that may be made; UsageError if that would destroy a file."""
    path = os.path.realpath(name)
    if not re.fullmatch(ALLOWED, path):
        raise UsageError(f"--write={name}: fio allows letters, digits and ./_@+- in a name", NEW)
    try:
        found = _at(path).lstat()
    except FileNotFoundError:
        found = None
    except OSError as error:
        raise SutroError(f"--write={name}: {error.strerror}", NEW) from None
    if found and (stat.S_ISBLK(found.st_mode) or stat.S_ISCHR(found.st_mode)):
        raise UsageError(f"--write={name} is a device: writes would destroy its data", NEW)
    if found and stat.S_ISDIR(found.st_mode):
        raise UsageError(f"--write={name} is a directory", f"{NEW}: {name}/sutro-test")
    if found and not stat.S_ISREG(found.st_mode):
        raise UsageError(f"--write={name} is no regular file", NEW)
    if found and found.st_size:
        raise UsageError(f"--write={name} has data, which writes would destroy", NEW)
    if not _at(os.path.dirname(path)).is_dir():
        raise SutroError(f"--write={name}: there is no directory {os.path.dirname(path)}", NEW)
    return path


def exists(file: Scratch) -> bool:
    """Is the file there already, empty?"""
    return _at(file.path).exists()


async def find(client: Client, name: str, node: str, or_above: bool = False) -> Scratch:
    """The file on a file system of the device `node`.

    With `or_above`, the file system may be on a device above it. SutroError if it is elsewhere, or
    has too little free space.
    """
    path = check(name)
    folder = os.path.dirname(path)
    try:
        # A file may be a mount point.
        resolved = await client.resolve(path if _at(path).exists() else folder)
    except NoQueue as error:
        raise SutroError(
            f"--write={name}: its file system is on no block device: {error.message}",
            f"name a file on a file system of {node}",
        ) from None
    device = resolved["device"]
    below = [step["device"] for step in resolved["steps"]] if or_above else []
    if node not in (device, *below):
        raise SutroError(
            f"--write={name}: its file system is on {device}, not on {node}",
            f"name a file on a file system of {node}; findmnt {node} lists its mount points",
        )
    free = os.statvfs(_at(folder))
    size = min(MOST_BYTES, int(free.f_bavail * free.f_frsize * PART))
    if size < LEAST_BYTES:
        raise SutroError(
            f"--write={name}: half of the free space of {folder} is {size >> 20} MiB, and "
            f"{LEAST_BYTES >> 20} MiB are needed",
            "make room, or name a file on another file system of the device",
        )
    return Scratch(path, size >> 20 << 20, device)


def check_folder(file: Scratch) -> None:
    """SutroError for a folder where another user can replace the file by a link."""
    for folder in Path(file.path).parents:
        found = _at(str(folder)).stat()
        is_open = found.st_mode & stat.S_IWOTH or (
            found.st_mode & stat.S_IWGRP and found.st_gid not in (0, os.getegid())
        )
        if found.st_uid not in (0, os.geteuid()) or (is_open and not found.st_mode & stat.S_ISVTX):
            raise SutroError(
                f"--write={file.path}: other users may replace files in {folder}",
                "name a file in a directory of root, such as the mount point of the file system",
            )


def _open(path: str) -> tuple[int, bool]:
    """A descriptor of the file, and whether it was made; OSError if it is no longer as checked."""
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(_at(path), flags | os.O_CREAT | os.O_EXCL, 0o600), True
    except FileExistsError:
        return os.open(_at(path), flags), False


def _clear(file: Scratch, descriptor: int, is_new: bool) -> None:
    """Remove the file if it is new, or else empty it; SutroError if that fails."""
    try:
        os.truncate(descriptor, 0)
        if is_new:
            _at(file.path).unlink(missing_ok=True)
    except OSError as error:
        raise SutroError(
            f"--write={file.path} could not be removed: {error.strerror}", "remove it by hand"
        ) from None


@contextlib.contextmanager
def kept(file: Scratch) -> Iterator[None]:
    """Make the file if it is new, with its size; at the end remove it then, or else empty it."""
    try:
        descriptor, is_new = _open(file.path)
    except OSError as error:
        raise SutroError(f"--write={file.path}: {error.strerror}", NEW) from None
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_size:
            raise UsageError(f"--write={file.path} is no longer an empty file", NEW)
        if found.st_uid not in (0, os.geteuid()) or found.st_nlink != 1:
            raise UsageError(f"--write={file.path} is a file of another user, or a link", NEW)
        try:
            # With allow_file_create=0, fio makes no file, and none larger.
            os.truncate(descriptor, file.size_bytes)
            yield
        finally:
            _clear(file, descriptor, is_new)
    finally:
        os.close(descriptor)
