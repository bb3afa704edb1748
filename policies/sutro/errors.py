# SPDX-License-Identifier: LGPL-2.1-or-later
"""Failures that a user can resolve: each has a sentence, and a remedy if there is one."""


class SutroError(Exception):
    """A failure: a sentence that names the bad input, and a remedy."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(SutroError):
    """The command line cannot be right, whatever the state of the machine."""


class BusUnavailable(SutroError):
    """There is no system bus."""


class NotRunning(SutroError):
    """A service on the bus does not run and could not be started."""


class NotPermitted(SutroError):
    """The caller may read, but not change this."""


class NoSuchUnit(SutroError):
    """No unit, or no cgroup, of this name."""


class NoSuchPromise(SutroError):
    """The unit has no promise of this kind."""


class NoSuchPath(SutroError):
    """Nothing lies at this path."""


class NoQueue(SutroError):
    """The path exists, but no block device with a request queue stands behind it."""


class TooOld(SutroError):
    """The running daemon has no such method."""


class BadPolicy(SutroError):
    """The daemon refuses a policy."""


class Overcommitted(SutroError):
    """Floors would be more than the declared capacity of a device."""
