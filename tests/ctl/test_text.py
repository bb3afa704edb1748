# SPDX-License-Identifier: LGPL-2.1-or-later
"""Numbers as text."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sutro.text import percent, scheduler, size


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "0.98 KiB"),
        (2**20, "1.00 MiB"),
        (20 * 2**30, "20.0 GiB"),
        (999.9 * 2**30, "0.98 TiB"),
        (2**64 - 1, "16.0 EiB"),
    ],
)
def test_size(count, text):
    assert size(count) == text


@given(st.integers(0, 2**63))
def test_size_is_short_and_near(count):
    text = size(count)
    assert len(text) <= 8
    number, unit = re.fullmatch(r"([0-9.]+) ([KMGTPE]?i?B)", text).groups()
    power = "BKMGTPE".index(unit[0])
    assert float(number) * 1024**power == pytest.approx(count, rel=0.006, abs=0.5)


@pytest.mark.parametrize(
    ("share", "text"),
    [(0, "-"), (0.0001, "<0.1 %"), (0.0005, "0.1 %"), (2 / 3, "66.7 %"), (1, "100.0 %")],
)
def test_percent(share, text):
    assert percent(share) == text


@pytest.mark.parametrize(
    ("more", "text"),
    [({}, "sutro"), ({"managed": True, "hung": False}, "sutro*"), ({"hung": True}, "sutro (hung)")],
)
def test_scheduler_with_its_state(more, text):
    """A daemon that is older than sutroctl does not report every state."""
    assert scheduler({"scheduler": "sutro"} | more).plain == text
