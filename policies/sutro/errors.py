# SPDX-License-Identifier: LGPL-2.1-or-later
"""Failures that a user can resolve: each has a sentence, and a remedy if there is one."""

import errno
from pathlib import Path


class SutroError(Exception):
    """A failure: `message` is a sentence that names the bad input, `hint` a remedy or ""."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(SutroError):
    """The command line or a file cannot be right, whatever the state of the machine."""


class BusUnavailable(SutroError):
    """There is no connection to the system bus."""


class NotRunning(SutroError):
    """A service on the bus does not run and could not be started."""


class NoAnswer(SutroError):
    """A service on the bus runs, but does not answer in time."""


class NotPermitted(SutroError):
    """The caller may read, but not change this."""


class NoSuchUnit(SutroError):
    """There is no unit, or no cgroup, of this name."""


class NoSuchPromise(SutroError):
    """The unit has no promise of this kind."""


class NoSuchPath(SutroError):
    """The path does not exist."""


class NoQueue(SutroError):
    """The path exists, but no block device with a request queue holds it."""


class OutOfReach(SutroError):
    """sutrod cannot follow the path to a block device; see reach.py."""


class TooOld(SutroError):
    """The running daemon has no such method: it is older than this program."""


class NotText(SutroError):
    """The bus cannot carry a text: it has NUL, or is not UTF-8."""


class BadPolicy(SutroError):
    """The daemon refuses a policy: a key or value is not valid."""


class Overcommitted(SutroError):
    """Floors would be more than the declared capacity of a device."""


REMEDIES = {
    errno.ENOENT: "correct the name, or make the folder that is missing",
    errno.EACCES: "run it as root (sudo), or name another file",
    errno.EPERM: "run it as root (sudo), or name another file",
    errno.EISDIR: "name a file in that folder",
    errno.ENOSPC: "make room on its file system, or name another file",
    errno.EDQUOT: "make room on its file system, or name another file",
    errno.EROFS: "name a file on a file system that can be written",
}
# Of files whose names the user cannot choose.
FIXED_REMEDIES = {
    errno.EACCES: "run it as root (sudo)",
    errno.EPERM: "run it as root (sudo)",
    errno.EEXIST: "move the file away that is in the place of the folder",
    errno.ENOTDIR: "move the file away that is in the place of the folder",
    errno.ENOSPC: "make room on its file system",
    errno.EDQUOT: "make room on its file system",
    errno.EROFS: "make its file system writable: mount -o remount,rw",
}


def of_file(
    file: str | Path,
    error: OSError,
    kind: type[SutroError] = SutroError,
    remedy: str = "",
    is_fixed: bool = False,
) -> SutroError:
    """The failure of a call on a file, with the remedy for its reason or the given one.

    `is_fixed`: the user cannot name another file.
    """
    remedies, other = REMEDIES, "name another file"
    if is_fixed:
        remedies, other = FIXED_REMEDIES, "see: journalctl -k"
    return kind(f"{file}: {error.strerror}", remedy or remedies.get(error.errno or 0, other))
