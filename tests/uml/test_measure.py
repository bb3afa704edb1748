# SPDX-License-Identifier: LGPL-2.1-or-later
"""Metrics against made-up runs whose answers are known by hand."""

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
from lab.progress import LabError
from rig.result import all_met

from uml.bench import Comparison, needed, run_all
from uml.measure import Run
from uml.scenario import BASELINE, NEIGHBOUR, Event, Goal, Group, Job, Scenario

MS = 1_000_000
JOB = Job(fio={"rw": "randread"})


def scenario(**keys) -> Scenario:
    groups = (Group("a", 200, job=(JOB,)), Group("b", 100, job=(JOB,)))
    return Scenario(**({"name": "s", "disk": {"kind": "ssd"}, "nr_requests": 64,
                        "group": groups} | keys))  # fmt: skip


def line(path: str, time_ns: float) -> str:
    return f"{path} time_ns={int(time_ns)} rbytes={int(time_ns)} wbytes=0 rios=1 wios=0\n"


def sample(at_s: float, **times_ms: float) -> dict:
    """A sample with the device time of each group (a__x is a/x)."""
    times = {f"/{key.replace('__', '/')}": ms * MS for key, ms in times_ms.items()}
    truth = line("total", sum(times.values())) + "".join(line(*item) for item in times.items())
    stat = {path: f"259:0 time_ns={int(time * 1.1)} rbytes=0\n" for path, time in times.items()}
    return {"at_s": at_s, "truths": [truth], "stat": stat}


def run(samples: list[dict], scheduler: str = "sutro", **keys) -> Run:
    return Run(scenario(**keys), scheduler, {"samples": samples, "fio": {}, "ended_s": {}})


def test_shares_are_of_the_measured_time_only() -> None:
    made = run([sample(3, a=900, b=100), sample(13, a=900 + 6000, b=100 + 4000)])
    assert made.ratio(("a", "b")) == pytest.approx(1.5)
    assert made.share(("b",)) == pytest.approx(0.4)
    # b is due a third and has two fifths.
    assert made.worst_share_error() == pytest.approx(0.4 * 3 - 1)
    assert made.charge_error() == pytest.approx(0.1)
    assert made.work() == pytest.approx(1.0)
    # (0.9 + 1.2)^2 / (2 (0.81 + 1.44))
    assert made.jain() == pytest.approx(4.41 / 4.5)


def test_each_level_is_judged_among_siblings() -> None:
    groups = (Group("p", 100), Group("p/x", 100, job=(JOB,)), Group("p/y", 300, job=(JOB,)),
              Group("q", 100, job=(JOB,)))  # fmt: skip
    made = run([sample(0, p__x=0, p__y=0, q=0), sample(1, p__x=300, p__y=300, q=400)], group=groups)
    errors = made.share_errors()
    assert errors["p"] == pytest.approx(0.2) and errors["q"] == pytest.approx(-0.2)
    assert errors["p/x"] == pytest.approx(1.0)
    assert errors["p/y"] == pytest.approx(-1 / 3)
    assert made.worst_share_error() == pytest.approx(1.0)


def by_key(runs: dict[str, Run]) -> dict[tuple[str, str | None], Run]:
    """Runs of all groups."""
    return {(scheduler, None): run for scheduler, run in runs.items()}


def series(got: Callable[[float], tuple[float, float]], end_s: float = 10) -> list[dict]:
    """Samples every 10 ms of the use of a and b until then, in seconds."""
    times = [n / 100 for n in range(int(end_s * 100) + 1)]
    return [sample(t, a=1e3 * got(t)[0], b=1e3 * got(t)[1]) for t in times]


PAUSING = (Group("a", job=(JOB,)), Group("b", job=(Job(fio={"rw": "read"}, pause_s=(4, 6)),)))


def test_latency_is_that_of_the_slowest_kind_of_request() -> None:
    jobs = [
        {"read": {"clat_ns": {}}, "write": {"clat_ns": {"percentile": {"99.000000": 2000}}},
         "sync": {"lat_ns": {"percentile": {"99.000000": 9000}}}},
        {"read": {"clat_ns": {"percentile": {"99.000000": 5000}}}, "write": {"clat_ns": {}}},
    ]  # fmt: skip
    samples = [sample(0, a=0, b=0), sample(1, a=1, b=1)]
    made = Run(
        scenario(), "sutro", {"samples": samples, "fio": {"a-0": {"jobs": jobs}}, "ended_s": {}}
    )
    assert made.latency_us("a", 99) == 9.0
    assert math.isnan(made.latency_us("b", 99)) and math.isnan(made.latency_us("a", 50))


def test_late_is_the_latency_of_the_service_curve() -> None:
    def got(t: float) -> tuple[float, float]:
        # Halves; from 4 s on a has all, 0.1 s late; from 6 s halves again, b 0.3 s late.
        a = 0.5 * min(t, 4) + max(0, min(t, 6) - 4.1) + (0 if t < 6 else min(t - 6, 0.3))
        a += 0.5 * max(0, t - 6.3)
        b = 0.5 * min(t, 4) + 0.5 * max(0, t - 6.3)
        return a, b

    made = run(series(got), group=PAUSING)
    assert made.takeover_ms(("a",)) == pytest.approx(100, abs=11)
    assert made.giveback_ms(("b",)) == pytest.approx(300, abs=11)


def test_a_group_that_never_comes_back_is_late_by_all_the_time() -> None:
    made = run(series(lambda t: (t, 0.5 * min(t, 4))), group=PAUSING)
    assert made.giveback_ms(("b",)) == pytest.approx(4000, abs=11)


def test_settled_is_when_all_later_windows_are() -> None:
    def got(t: float) -> tuple[float, float]:
        # Right until 2 s, wrong until 5 s, right again.
        wrong = max(0, min(t, 5) - 2)
        return (t - wrong) * 2 / 3 + wrong * 0.9, (t - wrong) / 3 + wrong * 0.1

    made = run(series(got), event=(Event(2.0, disk={"write_us": 1}),))
    # A window of 1 s that begins a little before 5 s has little of the wrong in it.
    assert 2.8 <= made.settle_s() <= 3.0
    never = run(series(lambda t: (t * 0.9, t * 0.1)), event=(Event(2.0, disk={"write_us": 1}),))
    assert math.isinf(never.settle_s())


def test_throughput_is_compared_with_those_that_share_at_all() -> None:
    def of(name: str, a: float, b: float) -> Run:
        return run([sample(0, a=0, b=0), sample(10, a=a, b=b)], name)

    runs = {"none": of("none", 5000, 5000), "bfq": of("bfq", 5500, 4500),
            "iocost": of("iocost", 6000, 3000), "sutro": of("sutro", 6000, 2900)}  # fmt: skip
    made = Comparison(scenario(), by_key(runs))
    # bfq is more than half as far off as none: it does not count. Bytes go by time: 8.9 s of 9.
    assert made.throughput_vs_best(runs["sutro"], ()) == pytest.approx(8.9 / 9)
    assert made.value(Goal("fair_mbps", against="none"), "sutro") == pytest.approx(0.89)


def test_speed_against_what_a_group_gets_alone() -> None:
    alone = run([sample(0, a=0), sample(5, a=5000)])
    made = Comparison(scenario(), {("sutro", "a"): alone})
    # a is entitled to two thirds. The others used the rest of its share.
    shared = run([sample(0, a=0, b=0), sample(10, a=3000, b=6000)])
    assert made.alone_or_entitled(shared, ("a",)) == pytest.approx(0.5)
    assert made.entitled_speed(shared, ("a",)) == pytest.approx(0.45)


def test_a_group_that_gets_nothing_alone_misses_its_goal() -> None:
    alone = run([sample(0, a=0), sample(5, a=0)])
    made = Comparison(scenario(), {("sutro", "a"): alone})
    shared = run([sample(0, a=0, b=0), sample(10, a=3000, b=6000)])
    found = made.alone_or_entitled(shared, ("a",))
    assert not found >= 0.95
    assert not found <= 0.95


def test_throughput_is_compared_with_those_that_protect() -> None:
    def of(name: str, a: float, b: float) -> Run:
        return run([sample(0, a=0, b=0), sample(10, a=a, b=b)], name)

    runs = {"none": of("none", 1000, 9000), "bfq": of("bfq", 6000, 3000),
            "iocost": of("iocost", 6500, 2000), "sutro": of("sutro", 6600, 1500)}  # fmt: skip
    alone = {(name, "a"): run([sample(0, a=0), sample(10, a=10000)]) for name in runs}
    made = Comparison(scenario(), {**by_key(runs), **alone})
    # a is entitled to two thirds of the 10 s. none does not protect it, so it does not count.
    assert made.throughput_vs_protecting(runs["sutro"], ("a",)) == pytest.approx(8.1 / 9)
    assert made.throughput_vs_protecting(runs["bfq"], ("a",)) == 1
    only = Comparison(
        scenario(), {("sutro", None): runs["sutro"], ("sutro", "a"): alone["bfq", "a"]}
    )
    assert only.throughput_vs_protecting(runs["sutro"], ("a",)) == 1


def test_the_runs_that_goals_need() -> None:
    goals = (Goal("fair_mbps", against="none"), Goal("p99_vs_alone", of=("a",)))
    made = scenario(schedulers=("bfq", "sutro"), goal=goals)
    names = ("none", "bfq", "sutro")
    assert needed(made) == [*((name, None) for name in names), *((name, "a") for name in names)]
    assert needed(made.under(["sutro"])) == [("sutro", None), ("sutro", "a")]


def test_a_bench_of_made_up_machines(capsys) -> None:
    """A machine that fails is a goal that is not met; the other scenarios are judged."""
    goals = (Goal("share", of=("a",), min=0.6), Goal("fair_mbps", against="none", min=0.9))
    made = scenario(schedulers=("none", "sutro"), goal=goals)

    def machine(name: str, plan: dict) -> dict:
        if name.startswith("broken"):
            raise LabError("no machine")
        ms = {"a": 6000, "b": 3000} if "-sutro" in name else {"a": 5000, "b": 5000}
        return {"samples": [sample(0, a=0, b=0), sample(10, **ms)], "fio": {}, "ended_s": {}}

    found = run_all(
        [made, replace(made, name="broken", nr_requests=65)], machine, lambda line: None, 1
    )
    judged = {(r.scenario, r.metric): r for r in found if r.counts}
    assert judged["s", "share"].value == pytest.approx(2 / 3)
    assert judged["s", "fair_mbps_vs_none"].value == pytest.approx(0.9)
    assert not judged["broken", "run"].met and not all_met(found)
    out = capsys.readouterr().out
    assert "met     share a >= 0.6: none 0.5  sutro 0.6667" in out
    assert "FAILED  sutro: no machine" in out


def test_part_of_an_entitlement_that_is_kept() -> None:
    """Before the event; a group that alone has less than its share is entitled to that."""
    event = (Event(6, {"a": 100}),)
    before = [sample(3, a=0, b=0), sample(6, a=1500, b=1500), sample(8, a=3000, b=2000)]
    made = run(before, event=event)
    busy = run([sample(3, a=0, b=0), sample(8, a=5000, b=0)])
    shallow = run([sample(3, a=0, b=0), sample(8, a=1250, b=0)])
    for alone, kept in ((busy, 0.5 / (2 / 3)), (shallow, 0.5 / 0.25)):
        comparison = Comparison(made.scenario, {("sutro", None): made, ("sutro", "a"): alone})
        assert comparison.kept(made, ("a",)) == pytest.approx(kept)


def test_entitlement_of_others_is_no_better_result() -> None:
    samples = {"bfq": 9000, "iocost": 3000, "sutro": 6000, "mq-deadline": 4000}
    runs = {
        name: run([sample(0, a=0, b=0), sample(10, a=used, b=10000 - used)], name)
        for name, used in samples.items()
    }
    busy = run([sample(0, a=0, b=0), sample(10, a=10000, b=0)])
    comparison = Comparison(scenario(), by_key(runs) | {(name, "a"): busy for name in runs})
    assert comparison.kept_vs_best(runs["sutro"], ("a",)) == pytest.approx(0.9)
    assert comparison.kept_vs_best(runs["mq-deadline"], ("a",)) == pytest.approx(0.6)


def test_p99_is_compared_with_that_beside_a_neighbour() -> None:
    def made(p99_ns: int) -> Run:
        fio = {"a-0": {"jobs": [{"read": {"clat_ns": {"percentile": {"99.000000": p99_ns}}}}]}}
        samples = [sample(0, a=0, b=0), sample(1, a=1, b=1)]
        return Run(scenario(), "sutro", {"samples": samples, "fio": fio, "ended_s": {}})

    runs = {("sutro", None): made(6000), ("sutro", NEIGHBOUR): made(2000)}
    comparison = Comparison(scenario(), runs)
    assert comparison.p99_vs_neighbour(comparison.runs["sutro"], ("a",)) == pytest.approx(3)


def test_delay_of_a_weight() -> None:
    """From 5 s on, a is due 0.75 of the time, of which 0.95 counts; it is as before for 0.4 s."""

    def got(t: float) -> tuple[float, float]:
        a = t / 2 if t < 5.4 else 2.7 + 0.75 * (t - 5.4)
        return a, t - a

    made = run(series(got), group=(Group("a", job=(JOB,)), Group("b", job=(JOB,))),
               event=(Event(5, {"a": 300}),))  # fmt: skip
    rate = 0.95 * 0.75
    assert made.weight_ms(("a",)) == pytest.approx(1e3 * (0.4 - 0.2 / rate), abs=20)


def test_series_and_figure_of_the_document() -> None:
    """Totals at each sample; the figure of the mail stands beside the goal of the same metric."""
    samples = [sample(0, a=10, b=5), sample(2, a=30, b=15)]
    samples[1]["stat"]["/a"] = "259:0 time_ns=33000000 dequeue=7"
    goals = (Goal("ratio", min=1.96), Goal("jain", min=0.9))
    keys = {"series": True, "document": {"ratio": 2.025}, "goal": goals}
    made = run(samples, **keys)
    assert made.series() == [
        {"at_s": 0, "a_ms": 10, "b_ms": 5, "a_dequeue": 0, "b_dequeue": 0},
        {"at_s": 2, "a_ms": 30, "b_ms": 15, "a_dequeue": 7, "b_dequeue": 0},
    ]
    found = list(Comparison(scenario(**keys), {("sutro", None): made}).results())
    assert found[0].detail["series"] == made.series()
    assert [one.detail.get("document") for one in found] == [None, 2.025, None]


def test_end_of_a_job_against_its_end_alone() -> None:
    """From the first sample, which is taken when the job starts."""

    def made(ended_s: float) -> Run:
        samples = [sample(11, a=0, b=0), sample(ended_s, a=1, b=1)]
        result = {"samples": samples, "fio": {}, "ended_s": {"a-0": ended_s}}
        return Run(scenario(until="a"), "sutro", result)

    runs = {("sutro", None): made(17), ("sutro", "a"): made(14)}
    comparison = Comparison(scenario(until="a"), runs)
    assert comparison.finish_vs_alone(comparison.runs["sutro"], ("a",)) == pytest.approx(2)
    assert next(comparison.results()).detail["finish_s"] == pytest.approx(6)


def test_least_busy_disk_and_what_no_group_owns() -> None:
    """Of two disks, one is busy for 0.9 s of a second, the other one for 0.6 s."""

    def at(at_s: float, *ms: int) -> dict:
        text = "total busy_ns={} rbytes=100000000\n/a rbytes=90000000\n/ rbytes=10000000\n"
        idle = "total busy_ns=0\n"
        truths = [text.format(one * MS) if one else idle for one in ms]
        return {"at_s": at_s, "truths": truths, "stat": {}}

    made = run([at(0, 0, 0), at(1, 900, 600)], group=(Group("a", job=(JOB,)),))
    assert made.least_busy() == pytest.approx(0.6)
    assert made.owned() == pytest.approx(0.9)
    assert made.throughput_mbps() == pytest.approx(180)


@pytest.mark.parametrize(
    ("median", "against", "ratio"), [(False, 0.8, 3), (True, 0.9, 5900 / 3100)]
)
def test_worst_or_middle_of_several_runs_counts(median: bool, against: float, ratio: float) -> None:
    """Each run is compared with the run of the other scheduler that has the same disks."""
    goals = (
        Goal("throughput_mbps", against="none", min=0.97), Goal("ratio", min=1.9, max=2.1),
    )  # fmt: skip
    made = scenario(schedulers=("none", "sutro"), goal=goals, runs=3, median=median, disks=2)
    # By the seed of the first disk.
    used = {1: (6000, 3000), 3: (6000, 2000), 5: (5900, 3100)}
    seeds = []

    def machine(name: str, plan: dict) -> dict:
        numbers = [dict(one) for one in plan["disks"].values()]
        seed = numbers[0].get("seed", 1)
        assert plan["seed"] == seed
        seeds.append((seed, numbers[1]["seed"]))
        a, b = used[seed] if "-sutro" in name else (5000, 5000)
        return {"samples": [sample(0, a=0, b=0), sample(10, a=a, b=b)], "fio": {}, "ended_s": {}}

    found = {one.metric: one for one in run_all([made], machine, lambda line: None, 1)
             if one.counts}  # fmt: skip
    assert sorted(set(seeds)) == [(1, 2), (3, 4), (5, 6)]
    assert found["throughput_mbps_vs_none"].value == pytest.approx(against)
    assert found["ratio"].value == pytest.approx(ratio)
    assert found["ratio"].detail["values"] == pytest.approx([2, 3, 5900 / 3100])


def test_run_is_compared_with_its_baseline(capsys) -> None:
    """bfq is compared with itself, too."""
    reading = Goal("reading", of=("mib",), max=9)
    goals = (Goal("throughput_mbps", against=BASELINE, min=1.6), reading)
    document = {"throughput_mbps_vs_baseline": 1.64}
    keys = {"baseline": ("off",), "document": document, "readings": {"mib": "count"}}
    made = scenario(schedulers=("bfq", "sutro"), goal=goals, **keys)
    assert made.under(["sutro"]).goal == goals
    ran = []

    def machine(name: str, plan: dict) -> dict:
        ran.append((name, plan["baseline"]))
        ms = {"a": 500, "b": 500} if plan["baseline"] else {"a": 900, "b": 800}
        samples = [sample(0, a=0, b=0), sample(1, **ms)]
        return {"samples": samples, "fio": {}, "ended_s": {}, "readings": {"mib": 7.0}}

    found = run_all([made], machine, lambda line: None, 1)
    assert ran == [
        ("s-bfq", []), ("s-sutro", []), ("s-bfq-baseline", ["off"]), ("s-sutro-baseline", ["off"]),
    ]  # fmt: skip
    values = {(one.scheduler, one.metric): one.value for one in found if one.goal}
    assert values["bfq", "throughput_mbps_vs_baseline"] == pytest.approx(1.7)
    assert values["sutro", "reading"] == 7
    assert [one.detail.get("document") for one in found if one.counts] == [1.64, None]
    assert "1000.00 MB/s" in capsys.readouterr().out
