# SPDX-License-Identifier: LGPL-2.1-or-later
"""Promises as the daemon reports them: which of them do not hold, and their words for people.

States are open-ended: a state that is not listed here is shown unchanged, and the promise
counts as one that does not hold, so that it is not overlooked.
"""

from typing import Any

from . import values

Dict = dict[str, Any]

# "stated" is a limit: the kernel enforces it, and the daemon does not control it.
HOLDS = ("held", "idle", "stated")
# Words for people in place of a state; other states are their own words.
WORDS = {"stated": "set"}
NOT_YET = ("settling", "unknown", "unknown-capacity")

# The meaning of a key in the few letters of a column.
ABOUT = {
    "ReadBandwidthMin": "read min",
    "WriteBandwidthMin": "write min",
    "ReadIOPSMin": "read ios min",
    "WriteIOPSMin": "write ios min",
    "ReadBandwidthMax": "read max",
    "WriteBandwidthMax": "write max",
    "ReadIOPSMax": "read ios max",
    "WriteIOPSMax": "write ios max",
}
# The requests of a target; its percentile follows.
TARGETS = {"LatencyTarget": "read", "WriteLatencyTarget": "write", "FsyncLatencyTarget": "fsync"}


def fails(promise: Dict) -> bool:
    """Does a promise not hold, as far as the daemon has a verdict?"""
    return promise["state"] not in HOLDS + NOT_YET


def state_word(promise: Dict) -> str:
    """The state of a promise for people."""
    return WORDS.get(promise["state"], promise["state"])


def worst_first(promises: list[Dict]) -> list[Dict]:
    """Promises that do not hold, then those without a verdict, then the others; each by unit."""

    def rank(promise: Dict) -> tuple:
        waiting = promise["state"] not in NOT_YET
        where = (promise["unit"] or promise["cgroup"], promise["path"], promise["key"])
        return (not fails(promise), waiting, *where)

    return sorted(promises, key=rank)


def percentile(promise: Dict) -> str:
    """The percentile of a latency target as text, such as P99.9."""
    # A daemon of before has none to choose.
    return f"P{promise.get('percentile') or values.PERCENTILE_USUAL:g}"


def about(promise: Dict) -> str:
    """A key in few letters; a key that is not known here, unchanged."""
    key = promise["key"]
    return f"{TARGETS[key]} {percentile(promise)}" if key in TARGETS else ABOUT.get(key, key)


def stated(promise: Dict) -> str:
    """The value as text; of a percentage also the rate that it stands for, where that is known."""
    if promise["value"] is None:
        return "infinity"
    rate = values.short(promise["key"], promise["value"]) if promise["value"] else ""
    percent = promise.get("percent")  # which a daemon of before does not have
    return " = ".join(filter(None, (f"{percent:g}%" if percent else "", rate))) or "-"


def granted(promise: Dict) -> str:
    """The part of the value that the leaves have room for, as text: "-" for none, and for infinity.

    A part of a floor is a rate, and one of a latency target a part of the device time that the
    target needs: with half of that, reads do not take half of the time.
    """
    key, value, part = promise["key"], promise["value"], promise["granted"]
    if key in TARGETS and part < 1:
        return values.percent(part)
    whole = round(value * part) if value else 0
    return values.short(key, whole) if whole else "-"
