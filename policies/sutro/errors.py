# SPDX-License-Identifier: LGPL-2.1-or-later
"""Failures that people can do something about: what happened, and what to do next."""


class SutroError(Exception):
    """A failure with a sentence that names the bad input and, if there is one, a way out."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(SutroError):
    """The command line cannot be right, whatever the state of the machine."""


class BusUnavailable(SutroError):
    """There is no system bus to ask."""


class NotRunning(SutroError):
    """The service asked does not run and could not be started."""


class NotPermitted(SutroError):
    """The caller may read, but not change this."""


class NoSuchUnit(SutroError):
    """No unit, or no cgroup, of this name."""


class NoSuchPromise(SutroError):
    """Nothing of this kind is being kept for the unit."""


class NoSuchPath(SutroError):
    """Nothing lies at this path."""


class NoQueue(SutroError):
    """The path exists, but no block device with a request queue stands behind it."""


class TooOld(SutroError):
    """The daemon that runs does not know what it was asked."""


class BadPolicy(SutroError):
    """The daemon does not take what a policy says."""
