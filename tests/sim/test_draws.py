# SPDX-License-Identifier: GPL-2.0-only
"""Random pairs of draws.py: how many of them meet their goals.

DRAWS pairs are judged. MISSED has the numbers of those that miss their goals. `draws.py FIRST
COUNT` prints more of them.
"""

import draws
import pytest

DRAWS = 24
MISSED = {8, 9}


@pytest.mark.parametrize("number", range(DRAWS))
def test_received(number: int) -> None:
    """The lesser of alone and entitled, and the latency; the others are not shut out."""
    scene = draws.draw(number)
    got = draws.receive(scene)
    assert got.is_met() == (number not in MISSED), (got, draws.describe(scene))
    assert got.others > 0
