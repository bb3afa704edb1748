# SPDX-License-Identifier: LGPL-2.1-or-later
"""The virtual clock of these tests (virtualclock.c)."""

from itertools import pairwise

from fakemachine import Sutrod, Systemd
from plant import STRIPE, Plant, crowd, hold


def test_timers_fire_at_their_time(systemd: Systemd, sutrod: Sutrod, plant: Plant) -> None:
    """Steps of control are equally long on each host: no timer depends on its boot ID."""
    crowd(systemd, plant)
    sutrod.start()
    hold(sutrod)
    sutrod.elapse(8)
    history = sutrod.call("History", "db.service", "ReadBandwidthMin", STRIPE)
    times_us = [row[0] for row in history]
    assert len(times_us) > 5
    assert {after - before for before, after in pairwise(times_us)} == {1_000_000}
