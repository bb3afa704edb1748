# SPDX-License-Identifier: LGPL-2.1-or-later
"""Promises as the daemon tells of them: which do not hold, and in which words.

States are open-ended: one that this program does not know is shown as it is, and taken
for a promise that does not hold, so that nobody overlooks it.
"""

from typing import Any

Dict = dict[str, Any]

# "stated" is a ceiling: the kernel keeps it, and nothing is controlled.
HOLDS = ("held", "idle", "stated")
NOT_YET = ("settling", "unknown")

# What a key is about, in the few letters that a table has for it.
ABOUT = {
    "ReadBandwidthMin": "read min",
    "WriteBandwidthMin": "write min",
    "ReadIOPSMin": "read ios min",
    "WriteIOPSMin": "write ios min",
    "ReadBandwidthMax": "read max",
    "WriteBandwidthMax": "write max",
    "ReadIOPSMax": "read ios max",
    "WriteIOPSMax": "write ios max",
    "LatencyTarget": "read P95",
}


def fails(promise: Dict) -> bool:
    """Does it not hold, as far as the daemon has a verdict?"""
    return promise["state"] not in HOLDS + NOT_YET


def worst_first(promises: list[Dict]) -> list[Dict]:
    """Those that do not hold, then those without a verdict, then the others; each by unit."""

    def rank(promise: Dict) -> tuple:
        waiting = promise["state"] not in NOT_YET
        where = (promise["unit"] or promise["cgroup"], promise["path"], promise["key"])
        return (not fails(promise), waiting, *where)

    return sorted(promises, key=rank)


def about(key: str) -> str:
    """The key in few letters; one that is not known here as it is."""
    return ABOUT.get(key, key)


def granted(promise: Dict) -> int:
    """What of the value the leaves have room for."""
    return round(promise["value"] * promise["granted"])
