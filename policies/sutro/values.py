# SPDX-License-Identifier: LGPL-2.1-or-later
"""The keys of a policy, and their values as people type them.

Sizes are those of systemd with base 1000 (200M, 1.5G), times the spans of systemd (5ms, 1s 500us).
The daemon checks all values itself; this module is for programs that have to find a mistake
before it matters (a window at night), and for showing numbers as they are typed.

    parse("ReadBandwidthMin", "1.5G") == 1500000000
    parse("LatencyTarget", "1s 500us") == 1000500
    text("ReadBandwidthMin", 1500000000) == "1.5G"
    short("ReadBandwidthMin", 203412345) == "203M"
"""

import re
import shlex
from fractions import Fraction
from itertools import pairwise

from .errors import UsageError

BYTES, COUNT, TIME, WEIGHT = "bytes", "count", "time", "weight"

# Those with a number for a unit on a device; Class= and Importance= have none.
KINDS = {
    "ReadBandwidthMin": BYTES,
    "WriteBandwidthMin": BYTES,
    "ReadBandwidthMax": BYTES,
    "WriteBandwidthMax": BYTES,
    "ReadIOPSMin": COUNT,
    "WriteIOPSMin": COUNT,
    "ReadIOPSMax": COUNT,
    "WriteIOPSMax": COUNT,
    "LatencyTarget": TIME,
    "WriteLatencyTarget": TIME,
    "FsyncLatencyTarget": TIME,
    "Weight": WEIGHT,
}

KEYS = (*KINDS, "Class", "Importance")
FLOORS = tuple(key for key in KINDS if key.endswith("Min"))
CEILINGS = tuple(key for key in KINDS if key.endswith("Max"))
CEILING_OF = {floor: floor.removesuffix("Min") + "Max" for floor in FLOORS}
TARGETS = tuple(key for key in KINDS if key.endswith("LatencyTarget"))

# Values that the daemon allows, see sutro.policy(5).
RATE_MOST = 10**15
PERCENT_LEAST, PERCENT_MOST = 1, 100
LATENCY_MOST_US = 60 * 10**6
PERCENTILE_LEAST, PERCENTILE_MOST, PERCENTILE_USUAL = 50, Fraction("99.9"), 95
INFINITY = 2**64 - 1

ALLOWED = {
    BYTES: "bytes per second, such as 200M or 1.5G, at most 1000T",
    COUNT: "operations per second, such as 500 or 2K, at most 1000T",
    TIME: "a time from 1us to 1min, such as 5ms; a plain number is seconds",
    WEIGHT: "a whole number from 1 to 10000",
}

SUFFIXES = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
SIZES = SUFFIXES | {"B": 1, "P": 10**15}
TIMES_US = {
    **dict.fromkeys(("us", "usec", "µs", "μs"), 1),
    **dict.fromkeys(("ms", "msec"), 10**3),
    **dict.fromkeys(("", "s", "sec", "second", "seconds"), 10**6),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60 * 10**6),
}
# Longer texts are no meaningful numbers, and slow to read.
LONGEST = 40

PART = r"([0-9]+(?:\.[0-9]+)?)[ \t]*([A-Za-zµμ]*)[ \t]*"


def _sum(text: str, units: dict[str, int], most: int) -> int | None:
    """The sum of "1s 500us" in the smallest unit, None if it is none; the units have to fall."""
    parts = re.findall(PART, text)
    if re.sub(PART, "", text) or any(unit not in units for _, unit in parts):
        return None
    factors = [units[unit] for _, unit in parts]
    if any(later >= earlier for earlier, later in pairwise(factors)):
        return None
    whole = sum(int(Fraction(number) * units[unit]) for number, unit in parts)
    return whole if whole <= most else None


def _weight(text: str) -> int | None:
    """A weight from 1 to 10000, None for any other text."""
    return int(text) if re.fullmatch(r"[1-9][0-9]{0,4}", text) and int(text) <= 10000 else None


def parse(key: str, text: str) -> int:
    """The number of `text` as a value of `key`: bytes or operations per second, us, a weight.

    UsageError with the allowed values for any other text.
    """
    kind, text = KINDS[key], text.strip(" \t")
    if key in CEILINGS and text == "infinity":
        return INFINITY
    number = None
    if len(text) <= LONGEST and kind == WEIGHT:
        number = _weight(text)
    elif len(text) <= LONGEST:
        number = _sum(text, *((TIMES_US, LATENCY_MOST_US) if kind == TIME else (SIZES, RATE_MOST)))
    if not number:
        allowed = ALLOWED[kind] + ("; infinity: no limit" if key in CEILINGS else "")
        raise UsageError(f"'{text[:LONGEST]}' is no value for {key}: allowed is {allowed}")
    return number


def _check_percentile(key: str, text: str) -> None:
    """UsageError if `text` is no percentile from 50 to 99.9."""
    number = re.fullmatch(r"[0-9]{1,3}(\.[0-9])?", text)
    if not number or not PERCENTILE_LEAST <= Fraction(text) <= PERCENTILE_MOST:
        raise UsageError(
            f"'P{text[:LONGEST]}' is no percentile for {key}: allowed is P{PERCENTILE_LEAST} to "
            f"P{float(PERCENTILE_MOST)}, with at most one decimal"
        )


def check(key: str, text: str) -> None:
    """UsageError if `text` is no value of `key`.

    A floor may be a percentage, which is no number yet; a target may have a percentile.
    """
    text = text.strip(" \t")
    if key in TARGETS and (found := re.fullmatch(r"(.*)[ \t]P([0-9.]*)", text)):
        _check_percentile(key, found[2])
        text = found[1]
    if key not in FLOORS or not text.endswith("%"):
        parse(key, text)
        return
    number = re.fullmatch(r"([0-9]{1,3}(?:\.[0-9]{1,2})?)%", text)
    if not number or not PERCENT_LEAST <= Fraction(number[1]) <= PERCENT_MOST:
        raise UsageError(
            f"'{text[:LONGEST]}' is no value for {key}: allowed is {PERCENT_LEAST}% to "
            f"{PERCENT_MOST}% of the capacity of the device, with at most two decimals"
        )


def text(key: str, number: int) -> str:
    """`number`, in the unit of `key`, as it is typed: exactly."""
    if number == INFINITY:
        return "infinity"
    if KINDS[key] == WEIGHT:
        return str(number)
    if KINDS[key] == TIME:
        for unit, us in (("s", 10**6), ("ms", 10**3)):
            if number % us == 0:
                return f"{number // us}{unit}"
        return f"{number}us"
    for suffix, factor in reversed(SUFFIXES.items()):
        # 1500K is 1.5M: one decimal reads better than three more digits.
        if number >= factor and number * 10 % factor == 0:
            whole, tenth = divmod(number * 10 // factor, 10)
            return f"{whole}.{tenth}".removesuffix(".0") + suffix
    return str(number)


def short(key: str, number: float) -> str:
    """`number`, in the unit of `key`, in about three digits."""
    kind = KINDS.get(key, COUNT)
    if number == INFINITY:
        return "infinity"
    if kind == WEIGHT:
        return f"{number:.0f}"
    steps = [("us", 1), ("ms", 10**3), ("s", 10**6)] if kind == TIME else list(SUFFIXES.items())
    # The last step takes what is too large for the others.
    name, factor = next((s for s in steps if number < 999.5 * s[1]), steps[-1])
    scaled = number / factor
    digits = 0 if factor == 1 else 2 if scaled < 9.995 else 1 if scaled < 99.95 else 0
    return f"{scaled:.{digits}f}{name}"


def percent(share: float) -> str:
    """A share of 0 to 1 as text; a share too small for the digits is not shown as none."""
    if not share:
        return "-"
    if share < 0.0005:
        return "<0.1 %"
    return f"{100 * share:.1f} %"


def path(text: str) -> str:
    """The path that a value begins with, without its quotes; "" for a value without a path."""
    try:
        words = shlex.split(text)
    except ValueError:  # a quote without an end
        return ""
    return words[0] if words and words[0].startswith("/") else ""


def place(text: str) -> str:
    """The path that a value is about, or "any"; "" for a value that is about the whole unit."""
    return "any" if text.split()[:1] == ["any"] else path(text)


def rate(key: str, text: str) -> int:
    """The rate in a value of a floor or limit; 0 for a part of the device, which is no rate."""
    number = " ".join(shlex.split(text)[1:])
    return 0 if number.endswith("%") else parse(key, number)


def quoted(path: str) -> str:
    """A path as the first word of a value: quoted if it has blanks, quotes or backslashes."""
    if re.fullmatch(r"[^\s\"'\\]+", path):
        return path
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
