# SPDX-License-Identifier: LGPL-2.1-or-later
"""Pairs that a seed draws."""

import pytest
from rig.result import Result

from uml import drawn_pairs, plan
from uml.protect import LATENCY, PROTECTING, SERVICE
from uml.scenario import SCHEDULERS, Goal

COUNT = 60


def test_seed_and_number_are_one_pair() -> None:
    assert drawn_pairs.book(3, COUNT) == drawn_pairs.book(3, COUNT)
    assert drawn_pairs.book(3, COUNT).scenario[:5] == drawn_pairs.book(3, 5).scenario
    assert drawn_pairs.book(3, 1).scenario[0].group != drawn_pairs.book(4, 1).scenario[0].group


def test_pairs_differ_and_make_plans() -> None:
    made = drawn_pairs.book(1, COUNT).scenario
    victims = [scene.group[0] for scene in made]
    jobs = [job for victim in victims for job in victim.job]
    assert {scene.disk["kind"] for scene in made} == {"hdd", "ssd", "nvme"}
    assert any(victim.class_ == "rt" for victim in victims)
    assert any(job.fio.get("fsync") for job in jobs) and any(job.start_s for job in jobs)
    assert any(job.fio.get("thinktime") for job in jobs) and any(len(v.job) > 1 for v in victims)
    for scene in made:
        scene.check()
        count = sum(len(group.job) for group in scene.group)
        for scheduler in scene.schedulers:
            assert len(plan.make(scene, scheduler, random_iops=200)["jobs"]) == count


def test_jobs_take_turns() -> None:
    """Where a group changes its work, at any moment either the first or the second part runs."""
    made = drawn_pairs.book(1, COUNT).scenario
    changing = [g for s in made for g in s.group if any(job.start_s for job in g.job)]
    assert changing
    for group in changing:
        first = [job for job in group.job if not job.start_s]
        for at_s, is_first in ((1.0, True), (6.0, False), (11.0, True)):
            runs = [job for job in group.job if job.runs(at_s)]
            assert runs == [job for job in group.job if (job in first) == is_first]


def test_goals() -> None:
    """A victim that is sensitive has three; with a small share, less of its rate is due."""
    made = drawn_pairs.book(1, COUNT).scenario
    for scene in made:
        metrics = [goal.metric for goal in scene.goal]
        assert (LATENCY in metrics) == drawn_pairs.is_sensitive(scene.group[0])
        assert metrics[0] == SERVICE and metrics[-1] == PROTECTING
        share = scene.entitled(0)["victim"]
        is_cheap = scene.group[0].class_ == "rt" or share >= 0.25
        assert scene.goal[0].min == pytest.approx(0.95 if is_cheap else 0.95 * 4 * share)
    assert {len(scene.goal) for scene in made} == {2, 3}


def test_summary_of_all_pairs() -> None:
    def row(scheduler: str, metric: str, value: float) -> Result:
        goal = Goal(metric, max=2.0) if metric == LATENCY else Goal(metric, min=0.9)
        return Result("random-1-0", scheduler, metric, value, goal)

    found = [row("sutro", SERVICE, value) for value in (0.8, 0.95, 1.0, 1.0)]
    found += [row("sutro", LATENCY, 1.5), row("sutro", PROTECTING, 0.7)]
    found += [row("sutro", PROTECTING, 1.0), row("bfq", SERVICE, 0.1)]
    found += [row(name, LATENCY, 9.0) for name in SCHEDULERS[:1]]
    total = {(one.scheduler, one.metric): one for one in drawn_pairs.summary(1, found)}
    values = {key: one.value for key, one in total.items()}
    assert values == pytest.approx(
        {
            ("sutro", f"pairs_with_{SERVICE}"): 0.75,
            ("sutro", f"pairs_with_{LATENCY}"): 1.0,
            ("sutro", f"median_{PROTECTING}"): 0.85,
            ("bfq", f"pairs_with_{SERVICE}"): 0.0,
            ("none", f"pairs_with_{LATENCY}"): 0.0,
        }
    )
    assert [key for key, one in total.items() if one.counts] == [
        ("sutro", f"pairs_with_{name}") for name in (SERVICE, LATENCY)
    ] + [("sutro", f"median_{PROTECTING}")]
