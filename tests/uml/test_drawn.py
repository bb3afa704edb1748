# SPDX-License-Identifier: LGPL-2.1-or-later
"""Scenarios that a seed draws, and the entitlements of their groups."""

import math
import random
from dataclasses import replace

import pytest
from rig.result import Result

from uml import drawn, entitlement, plan
from uml.bench import Comparison, needed
from uml.entitlement import Load
from uml.measure import Run
from uml.scenario import Event, Group, Scenario
from uml.test_measure import JOB, line, scenario
from uml.test_measure import sample as sample_of_one

COUNT = 60


def test_seed_and_number_are_one_scenario() -> None:
    assert drawn.book(3, COUNT) == drawn.book(3, COUNT)
    assert drawn.book(3, COUNT).scenario[:5] == drawn.book(3, 5).scenario
    assert drawn.fairness(3, 7).group != drawn.fairness(4, 7).group


def test_drawn_scenarios_differ_and_make_plans() -> None:
    made = drawn.book(1, COUNT).scenario
    assert {scene.disk["kind"] for scene in made} == {"hdd", "ssd", "nvme"}
    assert any("over_provision_percent" in scene.disk for scene in made)
    assert any("/" in group.name for scene in made for group in scene.group)
    assert any(job.pause_s for scene in made for group in scene.group for job in group.job)
    events = [event for scene in made for event in scene.event]
    assert any(event.weight for event in events) and any(event.disk for event in events)
    for scene in made:
        scene.check()
        jobs = sum(len(group.job) for group in scene.group)
        for scheduler in scene.schedulers:
            assert len(plan.make(scene, scheduler, random_iops=200)["jobs"]) == jobs


def test_runs_of_a_drawn_scenario() -> None:
    """Under each scheduler, and each group alone under none."""
    scene = drawn.fairness(1, 0)
    alone = [("none", group.name) for group in scene.leaves()]
    assert needed(scene) == [*((name, None) for name in ("bfq", "iocost", "sutro")), *alone]


THREE = (Group("a", 200, job=(JOB,)), Group("b", job=(JOB,)), Group("c", job=(JOB,)))


def test_remainder_of_a_small_demand_goes_to_siblings_by_weight() -> None:
    scene = scenario(group=THREE)
    due = entitlement.fair_shares(scene, 0, {"a": 0.1, "b": 1.0, "c": 1.0}, 1.0)
    assert due == pytest.approx({"a": 0.1, "b": 0.45, "c": 0.45})
    # The rest of a is too much for b, and c has the remainder.
    due = entitlement.fair_shares(scene, 0, {"a": 0.1, "b": 0.3, "c": 1.0}, 1.0)
    assert due == pytest.approx({"a": 0.1, "b": 0.3, "c": 0.6})
    assert entitlement.fair_shares(scene, 0, {"b": 1.0}, 1.0) == {"b": 1.0}


def test_small_demand_inside_a_group_stays_there() -> None:
    groups = (Group("p", 300), Group("p/x", 100, job=(JOB,)), Group("p/y", 100, job=(JOB,)),
              Group("q", 100, job=(JOB,)))  # fmt: skip
    due = entitlement.fair_shares(
        scenario(group=groups), 0, {"p/x": 0.05, "p/y": 1.0, "q": 1.0}, 1.0
    )
    assert due == pytest.approx({"p/x": 0.05, "p/y": 0.7, "q": 0.25})


def served(weights: list[int], wanted: list[float], total: float) -> list[float]:
    """Fair shares by another way: one quantum after the other, to the hungry group that is
    furthest behind."""
    quantum, got = total / 20000, [0.0] * len(weights)
    for _ in range(20000):
        hungry = [n for n, want in enumerate(wanted) if got[n] < want]
        if not hungry:
            break
        got[min(hungry, key=lambda n: got[n] / weights[n])] += quantum
    return got


@pytest.mark.parametrize("seed", range(12))
def test_fair_shares_are_those_of_small_quanta(seed: int) -> None:
    """At two levels: children divide the time of their parent in the same way."""
    rng = random.Random(seed)
    tree = {f"p{n}": [f"p{n}/g{m}" for m in range(rng.randint(1, 3))] for n in range(3)}
    weight = {name: rng.randint(50, 1000) for parent in tree for name in (parent, *tree[parent])}
    demand = {
        name: rng.choice((0.05, 0.2, math.inf)) for inside in tree.values() for name in inside
    }
    groups = [
        group
        for parent, inside in tree.items()
        for group in (
            Group(parent, weight[parent]),
            *(Group(name, weight[name], job=(JOB,)) for name in inside),
        )
    ]
    total = rng.choice((0.7, 1.0, 1.2))
    due = entitlement.fair_shares(scenario(group=tuple(groups)), 0, demand, total)
    parents = served(
        [weight[name] for name in tree],
        [sum(demand[name] for name in inside) for inside in tree.values()],
        total,
    )
    for part, inside in zip(parents, tree.values(), strict=True):
        expected = served([weight[n] for n in inside], [demand[n] for n in inside], part)
        assert [due[name] for name in inside] == pytest.approx(expected, abs=2e-3)


def load(alone: float, used: float, cycle_s: float = 1e-3, request_s: float = 1e-4) -> Load:
    return Load(alone, cycle_s, used, request_s)


PAIR = (Group("a", 100, job=(JOB,)), Group("b", 900, job=(JOB,)))


def test_favoured_group_has_a_part_of_its_demand() -> None:
    """The share of a is a tenth: four tenths of its demand are enough, and all of it is right."""
    groups = (Group("a", 100, job=(JOB,)), *(Group(f"b{n}", 90, job=(JOB,)) for n in range(10)))
    deep = {f"b{n}": load(1.0, 0.097) for n in range(10)}
    found = entitlement.bounds(scenario(group=groups), 0, {"a": load(0.05, 0.03)} | deep)
    assert found["a"] == pytest.approx((0.02, 0.05))
    assert found["b0"] == pytest.approx((0.097, 0.097))


def test_group_that_is_not_protected_waits_for_full_device() -> None:
    """A cycle of 1 ms alone, and 4 ms with two requests of b ahead: a quarter of its demand."""
    loads = {"a": load(0.04, 0.03), "b": load(1.0, 0.97, cycle_s=0.1, request_s=1.5e-3)}
    found = entitlement.bounds(scenario(group=PAIR), 0, loads)
    assert found["a"] == pytest.approx((0.01, 0.04))
    # No request of b is long: it is the latency of the device that keeps a waiting.
    loads["b"] = load(1.0, 0.97, cycle_s=0.1)
    found = entitlement.bounds(scenario(group=PAIR), 0, loads)
    assert found["a"] == pytest.approx((0.04 / (1 + 11 / 4), 0.04))


def test_group_beside_deep_one_of_larger_share_is_not_protected() -> None:
    """The weight of a is more than the mean, but c is not held back for it."""
    groups = (*(Group(n, w, job=(JOB,)) for n, w in (("a", 300), ("b", 50), ("c", 400))),)
    loads = {"a": load(0.1, 0.05), "b": load(1.0, 0.1), "c": load(1.0, 0.8)}
    assert entitlement.bounds(scenario(group=groups), 0, loads)["a"][0] < 0.05
    loads["c"] = load(0.2, 0.2)
    assert entitlement.bounds(scenario(group=groups), 0, loads)["a"][0] == pytest.approx(0.1)


def test_deep_groups_share_the_remaining_time() -> None:
    """A group with few requests uses its two fifths of the device, and 0.3 of the time is idle."""
    groups = (*(Group(n, w, job=(JOB,)) for n, w in (("a", 400), ("b", 300), ("c", 300))),)
    loads = {"a": load(0.5, 0.4), "b": load(1.0, 0.15), "c": load(1.0, 0.15)}
    found = entitlement.bounds(scenario(group=groups), 0, loads)
    assert found["a"] == pytest.approx((0.28, 0.4))
    assert found["b"] == found["c"] == pytest.approx((0.15, 0.15))
    # More than its part of the whole is too much, and the others lack that time.
    loads["a"] = load(0.5, 0.5)
    found = entitlement.bounds(scenario(group=groups), 0, loads)
    assert found["a"][1] == pytest.approx(0.4)
    assert found["b"] == pytest.approx((0.2, 0.2))


def test_error_is_beyond_a_whole_request() -> None:
    for received, error in ((0.03, 0.0), (0.01, 0.5), (0.06, 0.2)):
        assert entitlement.error(received, 0.02, 0.05) == pytest.approx(error)
    assert entitlement.error(0.01, 0.02, 0.05, request=0.005) == pytest.approx(0.25)
    assert entitlement.error(0.06, 0.02, 0.05, request=0.01) == 0.0
    assert entitlement.error(0.06, 0.0, 0.0) == math.inf


def sample(at_s: float, **times_ms: float) -> dict:
    """A sample with a request for each ms of device time."""
    one = sample_of_one(at_s, **times_ms)
    for name, time_ms in times_ms.items():
        told = line(f"/{name}", 1e6 * time_ms)
        counted = told.replace("rios=1", f"rios={int(time_ms)}")
        one["truths"] = [text.replace(told, counted) for text in one["truths"]]
    return one


def compared(scene: Scenario, used: list[dict], **alone: list[dict]) -> Comparison:
    def made(scheduler: str, samples: list[dict]) -> Run:
        return Run(scene, scheduler, {"samples": samples, "fio": {}, "ended_s": {}})

    runs = {("sutro", None): made("sutro", used)}
    return Comparison(
        scene, runs | {("none", name): made("none", each) for name, each in alone.items()}
    )


def test_each_phase_is_judged_once_it_is_settled() -> None:
    """Weights 2:1 until 4 s, then 1:1; wrong for 1 s after the change, by 10 % later."""
    scene = scenario(warmup_s=0, measure_s=8, event=(Event(4, weight={"a": 100}),))
    times = range(9)
    busy = [sample(t, a=1000 * t, b=1000 * t) for t in times]

    def a(t: int) -> float:
        return 2 / 3 * min(t, 4) + 0.9 * max(0, min(t, 5) - 4) + 0.55 * max(0, t - 5)

    used = [sample(t, a=1000 * a(t), b=1000 * (t - a(t))) for t in times]
    found = compared(scene, used, a=busy, b=busy)
    assert found.runs["sutro"].phases(2) == [(0, 4), (6, 8)]
    errors = found.fair_share_errors(found.runs["sutro"])
    # Less a request of 1 ms in 2 s.
    assert errors == pytest.approx({"a": 0.099, "b": 0.099}, abs=1e-6)


def test_group_is_due_nothing_while_it_pauses() -> None:
    pausing = replace(JOB, pause_s=(4, 8))
    scene = scenario(
        group=(Group("a", 100, job=(JOB,)), Group("b", 100, job=(pausing,))),
        warmup_s=0, measure_s=8,
    )  # fmt: skip
    used = [
        sample(t, a=500 * min(t, 4) + 1000 * max(0, t - 4), b=500 * min(t, 4)) for t in range(9)
    ]
    busy = [sample(t, a=1000 * t, b=1000 * min(t, 4)) for t in range(9)]
    found = compared(scene, used, a=busy, b=busy)
    assert found.fair_share_error(found.runs["sutro"]) == pytest.approx(0, abs=1e-6)


def test_requests_sent_before_a_pause_belong_to_no_group() -> None:
    """b pauses at 4 s and leaves a second of work, which a does not have alone with the device."""
    pausing = replace(JOB, pause_s=(4, 8))
    scene = scenario(
        group=(Group("a", 100, job=(JOB,)), Group("b", 100, job=(pausing,))),
        warmup_s=0, measure_s=8,
    )  # fmt: skip
    used = [sample(t, a=500 * t, b=500 * t) for t in range(9)]
    busy = [sample(t, a=1000 * t, b=1000 * min(t, 5)) for t in range(9)]
    found = compared(scene, used, a=busy, b=busy)
    assert found.fair_share_error(found.runs["sutro"]) == pytest.approx(0, abs=1e-6)


def test_summary_of_all_scenarios() -> None:
    values = {"sutro": (0.01, 0.02, 0.09), "bfq": (0.3, 0.01, 0.02)}
    found = [
        Result(f"random-1-{number}", scheduler, "fair_share_error", value)
        for scheduler, of in values.items()
        for number, value in enumerate(of)
    ]
    total = {(one.scheduler, one.metric.partition("_")[0]): one for one in drawn.summary(1, found)}
    assert {key: one.value for key, one in total.items()} == {
        ("sutro", "worst"): 0.09, ("sutro", "median"): 0.02,
        ("bfq", "worst"): 0.3, ("bfq", "median"): 0.02,
    }  # fmt: skip
    assert {one.counts for key, one in total.items() if key[0] == "bfq"} == {False}
    assert all(one.met and one.counts for key, one in total.items() if key[0] == "sutro")
    assert not total["bfq", "worst"].met and not math.isnan(total["bfq", "worst"].value)
