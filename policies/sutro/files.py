# SPDX-License-Identifier: LGPL-2.1-or-later
"""Files that other programs may read at any time."""

import contextlib
import os
import stat
import tempfile
from pathlib import Path

from .errors import SutroError, of_file


def replace(file: str | Path, text: bytes, is_fixed: bool = False) -> None:
    """Replace a file as a whole, or create it; SutroError if that fails, as of of_file().

    A link is followed. A file keeps its mode and owner, a new one has mode 0644. A FIFO and a
    character device, such as /dev/stdout, are written to. After a power cut there is the old file
    or the new one, and after the return of this function the new one.
    """
    try:
        _replace(file, text)
    except OSError as error:
        raise of_file(file, error, is_fixed=is_fixed) from None


def _replace(file: str | Path, text: bytes) -> None:
    """As replace(); OSError if a call fails."""
    try:
        # The kernel follows the link here, with its checks of links in /tmp.
        before = os.stat(file)
    except FileNotFoundError:
        before = None
    if before and (stat.S_ISCHR(before.st_mode) or stat.S_ISFIFO(before.st_mode)):
        Path(file).write_bytes(text)
        return
    if before and not stat.S_ISREG(before.st_mode):
        raise SutroError(f"{file}: this is no regular file", "name another file")
    target = os.path.realpath(file)
    # Without a suffix that readers of the folder look for.
    descriptor, new = tempfile.mkstemp(prefix=".sutro-", dir=os.path.dirname(target))
    try:
        with open(descriptor, "wb") as output:
            output.write(text)
            if before:
                with contextlib.suppress(PermissionError):
                    os.chown(descriptor, before.st_uid, before.st_gid)
            os.chmod(descriptor, stat.S_IMODE(before.st_mode) if before else 0o644)
            output.flush()
            os.fsync(descriptor)
        os.rename(new, target)
    except OSError:
        os.unlink(new)
        raise
    _sync_folder(os.path.dirname(target))


def _sync_folder(folder: str) -> None:
    """Return when the names in a folder are at the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
