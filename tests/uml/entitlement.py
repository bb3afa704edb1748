# SPDX-License-Identifier: LGPL-2.1-or-later
"""The device time that each group of a scenario shall receive: weighted max-min along the tree.

A group with jobs is due its weight's part of the device time of its parent, or its demand if that
is less. Siblings share the remainder by weight. The demand is the device time that the group uses
alone. Example, 1.0 s, weights 200, 100 and 100, demands 0.1, 1 and 1 s: the first group is due
0.1 s, the others 0.45 s each.

A demand of FULL of the device or more has no bound: more requests of other groups in the queue do
not reduce it. A smaller demand is that of a group with few requests in flight, which protection
(kernel/sutro-window.c) serves up to PRICE times the group's share of the demand. So there is a
lower demand, and any device time between those that follow from both demands is right.
"""

import math
from collections.abc import Mapping

from .protect import PRICE
from .scenario import Scenario

FULL = 0.85


def fair_shares(scenario: Scenario, at_s: float, demand: Mapping[str, float], total: float) -> dict:
    """Parts of a total for groups with jobs; a group without demand receives nothing."""
    weights, parents = scenario.weights(at_s), dict(scenario.siblings())
    due: dict[str, float] = {}

    def wanted(name: str) -> float:
        inside = parents.get(name, ())
        return sum(wanted(group.name) for group in inside) if inside else demand.get(name, 0.0)

    def fill(parent: str, part: float) -> None:
        hungry = [group.name for group in parents[parent] if wanted(group.name) > 0]
        while hungry:
            whole = sum(weights[name] for name in hungry)
            content = [n for n in hungry if wanted(n) <= part * weights[n] / whole]
            for name in content or hungry:
                share = wanted(name) if content else part * weights[name] / whole
                if name in parents:
                    fill(name, share)
                else:
                    due[name] = share
            if not content:
                return
            part -= sum(wanted(name) for name in content)
            hungry = [name for name in hungry if name not in content]

    fill("", total)
    return due


def bounds(
    scenario: Scenario, at_s: float, alone: Mapping[str, float], total: float
) -> dict[str, tuple[float, float]]:
    """The least and the most of a total that each group shall receive.

    alone: device time a second of each group alone; total: of all groups together.
    """
    entitled = scenario.entitled(at_s)
    most = {name: used if used < FULL else math.inf for name, used in alone.items()}
    least = {name: used * min(1.0, PRICE * entitled[name]) for name, used in most.items()}
    found = [fair_shares(scenario, at_s, demand, total) for demand in (least, most)]
    return {name: tuple(sorted(one[name] for one in found)) for name in found[0]}


def error(received: float, least: float, most: float) -> float:
    """The part of the nearer bound by which a group received more or less; 0 between them."""
    return max(received / most - 1, 1 - received / least, 0.0)
