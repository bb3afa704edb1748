# SPDX-License-Identifier: LGPL-2.1-or-later
"""A weight as people type it.

Decimal digits only: systemd reads a leading zero as octal, and this program must not mean another
number than systemd, so such a weight is refused.
"""

import re

from .errors import UsageError

WEIGHT_MIN = 1
WEIGHT_MAX = 10000
WEIGHT_DEFAULT = 100

ALLOWED = f"a whole number from {WEIGHT_MIN} to {WEIGHT_MAX}, or 'default'"


def parse_weight(text: str) -> int | None:
    """The weight in `text`, None for "default"; UsageError for any other text."""
    if text == "default":
        return None
    if not re.fullmatch(r"0|-?[1-9][0-9]*", text, re.ASCII):
        raise UsageError(f"weight '{text}' is not a number: allowed is {ALLOWED}")
    # The length decides first: Python refuses to convert thousands of digits.
    if len(text) > len(str(WEIGHT_MAX)) or not WEIGHT_MIN <= int(text) <= WEIGHT_MAX:
        raise UsageError(f"weight '{text}' is out of range: allowed is {ALLOWED}")
    return int(text)
