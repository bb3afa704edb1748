# SPDX-License-Identifier: LGPL-2.1-or-later
"""The settings as files have them, on a machine that runs or on a disk that was cut off.

A function reads a file by its path; None if there is no such file.
"""

import re
from collections.abc import Callable

Read = Callable[[str], str | None]

CONTROL = "/etc/sutro/policy.control"
POLICY = "/etc/sutro/policy.d/50-local.policy"
DROP_IN = "/etc/systemd/system.control/job.service.d/50-IOWeight.conf"
# File and key of each setting. systemd writes the last one.
PLACES = {
    "floor": (f"{CONTROL}/db.service.policy", "ReadBandwidthMin"),
    "policy": (f"{CONTROL}/batch.service.policy", "Weight"),
    "ceiling": (POLICY, "ReadBandwidthMax"),
    "weight": (DROP_IN, "IOWeight"),
}
WHOLE = re.compile(r"(#[^\0\n]*\n)*\n?(\[[\w-]+\]\n([A-Za-z]+=[^\0\n]*\n)+\n?)+")
UNITS = {"": 1, "K": 1000, "M": 1000**2, "G": 1000**3}


def values(read: Read) -> dict[str, int | None]:
    """The settings; None for one that is nowhere."""
    return {setting: _value(read(path), key) for setting, (path, key) in PLACES.items()}


def _value(text: str | None, key: str) -> int | None:
    found = re.search(rf"^{key}=(?:\S+ )?([\d.]+)([KMG]?)$", text or "", re.MULTILINE)
    return round(float(found[1]) * UNITS[found[2]]) if found else None


def problems(read: Read, allowed: dict[str, list[int]]) -> list[str]:
    """Settings without one of the values that they may have, and files that are not whole."""
    found, lines = values(read), []
    for setting, (path, _) in PLACES.items():
        text = read(path)
        if found[setting] not in allowed[setting]:
            lines.append(f"{setting} is {found[setting]}, wanted one of {allowed[setting]}")
        if not WHOLE.fullmatch(text or ""):
            lines.append(f"{path} is not whole: {text!r}")
    return lines
