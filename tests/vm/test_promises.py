# SPDX-License-Identifier: LGPL-2.1-or-later
"""Short forms of the demo: weights on systemd units hold on stacked devices."""

from __future__ import annotations

from dataclasses import replace

import pytest
from bench.demo.measure import measure
from bench.demo.run import run
from bench.demo.scenario import SHIPPED, Book, Scenario
from bench.read import load

SCENARIOS = {scenario.name: scenario for scenario in load(Book, SHIPPED).scenario}
SHORT = ("stripe", "device-weight", "crypt-raid1", "runtime")


@pytest.mark.parametrize("name", SHORT)
def test_scenario(name: str) -> None:
    """The scenario under sutro alone meets its goals (those against stock need the demo)."""
    scenario: Scenario = replace(SCENARIOS[name], schedulers=("sutro",))
    found = []
    for one in run(scenario, print):
        found += measure(one)
    judged = [result for result in found if result.goal]
    assert judged
    assert not [str(result) for result in judged if not result.met]
