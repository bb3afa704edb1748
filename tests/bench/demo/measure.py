# SPDX-License-Identifier: LGPL-2.1-or-later
"""Numbers of a run.

| metric | meaning |
| --- | --- |
| mbps | bandwidth of a unit at the logical device, with its share of the true device time |
| bandwidth_ratio | first unit's bandwidth at the logical device over the second's |
| device_time_ratio | the same of true device time: at each leaf, and at all of them together |
| worst_share_error | largest distance of a unit's true share from its entitlement, over that |
| aggregate_mbps | bandwidth of all units at the logical device |
| follow_s | from the request of new weights until true shares are, and stay, within 10 % of them |
| completion_s | how long the unit ran for which the scenario waited |
| disk_busy | part of the time that the least busy leaf worked |
| cpu_idle | idle part of the CPU: if it is small, the run has measured the CPU, not the disks |

Goals `against` another scheduler are on the ratio of sutro's number to that one's.

With events in a scenario the ratios are taken before and after each (`part` 0, 1, ...), beginning
a second after it.
"""

import math
from collections.abc import Iterator

from rig.plot import STEP_S, WINDOW_S, Panel
from rig.result import Result

from bench.demo.run import Run
from bench.judge import bounds, ratio

# Shares have followed when each window of this length is this near to the entitlement.
FOLLOW_WINDOW_S = 0.5
FOLLOW_TOLERANCE = 0.10
SETTLE_S = 1.0


def parts(run: Run) -> list[tuple[float, float, dict[str, int]]]:
    """The measured time cut at the events: from, to and the weights in force."""
    starts = [run.from_s, *(at_s + SETTLE_S for at_s in run.event_s)]
    ends = [*run.event_s, run.to_s]
    at = [0.0, *(event.at_s for event in run.scenario.event)]
    weights = [run.scenario.weights(at_s) for at_s in at]
    return list(zip(starts, ends, weights, strict=True))


def aggregate_mbps(run: Run) -> float:
    """Bandwidth of all units together at the logical device."""
    units = run.scenario.unit
    return sum(run.sampler.mbps(unit.name, run.from_s, run.to_s) for unit in units)


def follow_s(run: Run, event: int) -> float:
    """Seconds from an event until the shares follow for good; infinite if they never do."""
    asked_s = run.event_s[event]
    end_s = [*run.event_s[event + 1 :], run.to_s][0]
    wanted = run.scenario.entitled(run.scenario.event[event].at_s)
    steps = int((end_s - FOLLOW_WINDOW_S - asked_s) / STEP_S)
    for step in range(steps, -1, -1):
        start_s = asked_s + step * STEP_S
        got = run.sampler.shares(start_s, start_s + FOLLOW_WINDOW_S)
        off = max(abs(got[name] / share - 1) for name, share in wanted.items())
        if off > FOLLOW_TOLERANCE:
            # The window after this one is the first of those that are all right.
            return (step + 1) * STEP_S if step < steps else math.inf
    return 0.0


def measure(run: Run) -> Iterator[Result]:
    """All numbers of a run."""
    scenario = run.scenario
    goals = bounds(scenario.goal, run.scheduler)

    def result(metric: str, value: float, **detail: object) -> Result:
        return Result(scenario.name, run.scheduler, metric, value, goals.get(metric), detail)

    first, second = (unit.name for unit in scenario.unit[:2])
    for number, (from_s, to_s, weights) in enumerate(parts(run)):
        sampler, asked = run.sampler, weights[first] / weights[second]
        about = {"of": f"{first}:{second}", "asked": asked, "part": number}
        mbps = {name: sampler.mbps(name, from_s, to_s) for name in (first, second)}
        value = ratio(mbps[first], mbps[second])
        yield result("bandwidth_ratio", value, at="logical", **about)
        for leaf in (None, *run.leaves):
            times = [sampler.time_ns(name, from_s, to_s, leaf) for name in (first, second)]
            yield result("device_time_ratio", ratio(*times), at=leaf or "all", **about)
        shares, whole = sampler.shares(from_s, to_s), sum(weights.values())
        for name, weight in weights.items():
            mine = {"of": name, "part": number, "weight": weight, "time_share": shares[name]}
            pair = {"pair": about["of"], "asked": asked} if name == first else {}
            yield result("mbps", sampler.mbps(name, from_s, to_s), **mine, **pair)
        off = max(abs(shares[name] * whole / weight - 1) for name, weight in weights.items())
        yield result("worst_share_error", off, part=number)
    yield result("aggregate_mbps", aggregate_mbps(run))
    for number in range(len(run.event_s)):
        yield result("follow_s", follow_s(run, number), part=number + 1)
    for name, seconds in run.finished_s.items():
        yield result("completion_s", seconds, of=name)
    busy = [run.sampler.disk_busy(leaf, run.from_s, run.to_s) for leaf in run.leaves]
    yield result("disk_busy", min(busy))
    yield result("cpu_idle", run.sampler.cpu_idle(run.from_s, run.to_s))


def panel(run: Run) -> Panel:
    """Curves of a run for its picture; second 0 is when measuring began."""
    begin_s = run.sampler.samples[0].at_s
    count = int((run.to_s - WINDOW_S - begin_s) / STEP_S) + 1
    starts = [begin_s + step * STEP_S for step in range(max(count, 1))]
    seen = [run.sampler.shares(at_s, at_s + WINDOW_S) for at_s in starts]
    seconds = [at_s + WINDOW_S / 2 - run.from_s for at_s in starts]
    due = [run.scenario.entitled(second) for second in seconds]
    names = [unit.name for unit in run.scenario.unit]
    return Panel(
        run.scheduler,
        seconds,
        {name: [shares[name] for shares in seen] for name in names},
        {name: [shares[name] for shares in due] for name in names},
        {at_s - run.from_s: "new weights" for at_s in run.event_s},
    )
