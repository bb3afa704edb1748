# SPDX-License-Identifier: LGPL-2.1-or-later
"""The device time that each group of a scenario shall receive: weighted max-min along the tree.

A group with jobs is due its weight's part of the device time of its parent, or its demand if that
is less. Siblings share the remainder by weight. The demand is the device time that the group uses
alone. Example, 1.0 s, weights 200, 100 and 100, demands 0.1, 1 and 1 s: the first group is due
0.1 s, the others 0.45 s each.

Deep groups. A demand of FULL of the device or more has no bound: more requests of other groups in
the queue do not reduce it.

Groups with few requests. A smaller demand is that of a group that waits for each request. It is
entitled to a part of the whole device, idle or not, at most. It is due a part of the used time at
least, with a lower demand. Any device time between is right. The lower demand is

  - for a group that protection serves (kernel/sutro-protect.c), up to PRICE times its share of the
    demand. Such a group is favoured, and no deep group has a share as large as its own.
  - for others, the demand with a wait for other requests at the device before each request. The
    device is kept full for deep groups, so that wait is BUSY times its latency, or two requests of
    another group. With a cycle of T alone and a wait of Q, the rate falls to T / (T + Q).

Idle time. While the device idles for a group with few requests, others lose throughput, which other
metrics judge. The deep groups share the remaining used time, in proportion to their dues of the
whole device. Example, weights 400 and twice 300: the first group uses 0.5 of the device alone and
0.4 here, the others 0.15 each: all are right.

Whole requests. A group is served in whole requests, and a phase may begin and end within one. So a
difference of one request of the group is no error.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from .protect import PRICE
from .scenario import Scenario

FULL = 0.85
# As kernel/sutro-cost.c keeps the device busy: latencies, seconds at least, and requests.
BUSY = 11 / 4
DEPTH_S = 1e-3
REQUESTS = 2


@dataclass(frozen=True)
class Load:
    """A group in a phase. Device times are per second.

    alone: device time alone; cycle_s: requests in flight over requests per second, alone
    used: device time with the others; request_s: device time of one request with the others
    """

    alone: float
    cycle_s: float
    used: float
    request_s: float


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


def _is_favoured(scenario: Scenario, at_s: float, active: Mapping[str, object], name: str) -> bool:
    """At no level less than the mean of the active siblings, and at the highest level with other
    ones more than their mean.

    Such a group is protected beside all others; sutro-favoured.c has others that are protected,
    too.
    """
    weights, parents = scenario.weights(at_s), dict(scenario.siblings())

    def is_active(of: str) -> bool:
        return of in active or any(is_active(group.name) for group in parents.get(of, ()))

    more = False
    while name:
        above = name.rpartition("/")[0]
        others = [weights[g.name] for g in parents[above] if g.name != name and is_active(g.name)]
        if others:
            mean = sum(others) / len(others)
            if weights[name] < mean:
                return False
            more = weights[name] > mean
        name = above
    return more


def _lower_demand(scenario: Scenario, at_s: float, loads: Mapping[str, Load], name: str) -> float:
    """The device time that a group with few requests uses at least, if its share allows that."""
    load, entitled = loads[name], scenario.entitled(at_s)
    deep = [other for other, of in loads.items() if of.alone >= FULL]
    if _is_favoured(scenario, at_s, loads, name) and all(
        entitled[other] < entitled[name] for other in deep
    ):
        return load.alone * min(1.0, PRICE * entitled[name])
    latency_s = min(of.cycle_s for of in loads.values())
    request_s = max((of.request_s for other, of in loads.items() if other != name), default=0.0)
    wait_s = max(DEPTH_S, BUSY * latency_s, REQUESTS * request_s)
    return load.alone * load.cycle_s / (load.cycle_s + wait_s)


def bounds(
    scenario: Scenario, at_s: float, loads: Mapping[str, Load], elsewhere: float = 0.0
) -> dict[str, tuple[float, float]]:
    """The least and the most device time a second that each group shall receive.

    elsewhere: device time of requests that belong to none of the groups
    """
    total = sum(load.used for load in loads.values())
    whole = max(1.0, total + elsewhere) - elsewhere
    few = [name for name, load in loads.items() if load.alone < FULL]
    most = {name: loads[name].alone if name in few else math.inf for name in loads}
    least = most | {name: _lower_demand(scenario, at_s, loads, name) for name in few}
    low = fair_shares(scenario, at_s, least, total)
    high = fair_shares(scenario, at_s, most, whole)
    found = {name: (min(low[name], high[name]), high[name]) for name in few}

    kept = {name: min(max(loads[name].used, one[0]), one[1]) for name, one in found.items()}
    due = fair_shares(scenario, at_s, most | kept, whole)
    of_deep = sum(due[name] for name in loads if name not in few)
    rest = max(total - sum(kept.values()), 0.0)
    for name in loads:
        if name not in few:
            part = due[name] * rest / of_deep
            found[name] = (part, part)
    return found


def error(received: float, least: float, most: float, request: float = 0.0) -> float:
    """The part of the nearer bound by which a group received more or less than between them, and
    than a request beyond. Anything received where nothing is due is an infinite part."""
    beyond = max(received - most - request, 0.0)
    short = max(least - received - request, 0.0)
    if beyond and not most:
        return math.inf
    return max(beyond / most if beyond else 0.0, short / least if short else 0.0)
