# SPDX-License-Identifier: LGPL-2.1-or-later
"""Verdicts on runs of promises: numbers of made-up samples, and the verdict on them."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rig.bus import Signal
from rig.modeldisk import Truth, Usage
from rig.sampler import Sample, Sampler

from bench.iocost import random_iops
from bench.promises.measure import Seen, judge, vs_without
from bench.promises.run import Contest, Happened, Run
from bench.promises.scenario import SHIPPED, Book, Event, Goal, Scenario, UnitSpec
from bench.promises.setups import Bfq, Place, Setup
from bench.read import load
from bench.stacks import StackSpec

STACK = StackSpec(name="stack", disk=({"names": ["s0"], "kind": "ssd"},))
JOB = {"rw": "randread", "bs": "64k", "iodepth": 16}
C = 100e6
BEGIN_S = 10.0


def scenario(*units: tuple[str, float | None], **keys: object) -> Scenario:
    """Units by name and floor."""
    specs = tuple(UnitSpec(name, JOB, floor=floor) for name, floor in units)
    return Scenario(name="made-up", title="Made up", stack=STACK, unit=specs, **keys)


DB = scenario(("db", 0.5), ("noise", None))


def sampled(of: Scenario, to_s: float, **rates: list[tuple[float, float]]) -> Sampler:
    """Samples of units that get a rate in bytes/s from a moment (after BEGIN_S) on.

    A unit with a rate after none has just begun: its requests were all sent at once.
    """
    sampler = Sampler([], [], "")
    sent = dict.fromkeys(rates, 0.0)
    before = dict.fromkeys(rates, 0.0)
    step_s = 0.1
    for step in range(round((to_s + 1) / step_s) + 1):
        at_s = step * step_s - 1
        totals = {("idle",): step, ("jiffies",): step}
        for name, parts in rates.items():
            rate = next((r for from_s, r in reversed(parts) if from_s <= at_s + 1e-9), 0.0)
            if rate and not before[name]:
                sent[name] += of.find(name).in_flight
            sent[name] += rate * step_s
            before[name] = rate
            totals["sent", name] = round(sent[name])
        sampler.samples.append(Sample(BEGIN_S + at_s, totals))
    return sampler


def ran(
    of: Scenario = DB,
    to_s: float = 9.0,
    happened: tuple[tuple[float, Event], ...] = (),
    signals: tuple[Signal, ...] = (),
    scheduler: str = "sutro",
    **rates: list[tuple[float, float]],
) -> Run:
    """A run in which things happened at moments after BEGIN_S."""
    done = tuple(Happened(e, BEGIN_S + at_s, BEGIN_S + at_s + 0.05) for at_s, e in happened)
    return Run(
        of, scheduler, {unit.name: C for unit in of.unit}, sampled(of, to_s, **rates),
        {"s0": Truth()}, BEGIN_S, BEGIN_S + to_s, done, signals, 0,
    )  # fmt: skip


def changed(at_s: float, unit: str, state: str) -> Signal:
    arguments = (f"rig-{unit}.service", "ReadBandwidthMin", "/dev/s0", state, "")
    return Signal(BEGIN_S + at_s, "PromiseChanged", arguments)


# ---- holding ----


@given(st.floats(0.02, 3.0))
def test_a_constant_rate(part: float) -> None:
    """Two seconds of a constant rate are that rate, whatever was on its way at the beginning."""
    seen = Seen(ran(db=[(0, part * 0.5 * C)]))
    assert seen.worst("db") == pytest.approx(part, rel=1e-3)
    held = seen.first_hold_s("db", BEGIN_S)
    assert held <= 0.15 if part > 0.98 else held == math.inf if part < 0.96 else True


@given(st.floats(0.3, 5.0), st.floats(0.1, 0.9))
def test_a_floor_that_holds_late(late_s: float, part: float) -> None:
    """It holds from the first half second that has 97 %: a little before the rate is whole."""
    seen = Seen(ran(db=[(0, part * 0.5 * C), (late_s, 0.5 * C)]))
    assert late_s - 0.5 <= seen.first_hold_s("db", BEGIN_S) <= late_s + 0.15


def test_what_was_only_sent_does_not_hold_a_floor() -> None:
    """1 MiB on its way at once is no half second of 1.5 MB/s if then nothing is done."""
    small = scenario(("db", 0.02))
    seen = Seen(ran(small, db=[(0, 1.0)]))
    assert seen.first_hold_s("db", BEGIN_S) == math.inf
    assert seen.done("db", BEGIN_S + 5) < 10


@given(st.floats(3.5, 6.0), st.floats(0.0, 0.5))
def test_the_worst_two_seconds_are_found(at_s: float, part: float) -> None:
    """Two seconds of less, anywhere after the first three."""
    low = [(0, 0.5 * C), (round(at_s, 1), part * 0.5 * C + 1), (round(at_s, 1) + 2, 0.5 * C)]
    assert Seen(ran(db=low)).worst("db") == pytest.approx(part, abs=0.01)


def test_the_first_three_seconds_are_no_part_of_the_worst() -> None:
    assert Seen(ran(db=[(0, 1.0), (2.9, 0.5 * C)])).worst("db") == pytest.approx(1, abs=0.01)


def test_a_run_too_short_to_tell_meets_nothing() -> None:
    worst = Seen(ran(to_s=4, db=[(0, 0.5 * C)])).worst("db")
    assert math.isnan(worst) and not Goal("worst_2s", min=0.1).met(worst)


def test_a_disk_that_changed_has_five_seconds() -> None:
    event = Event(4, disk={"s0": {"bus_kbps": 1}})
    slow = [(0, 0.5 * C), (4, 0.1 * C), (8.5, 0.5 * C)]
    seen = Seen(ran(to_s=14, happened=((4, event),), db=slow))
    assert seen.worst("db") == pytest.approx(1, abs=0.01)
    changed_s = seen.disk_changed_s()
    assert changed_s == pytest.approx(BEGIN_S + 4.05)
    assert seen.first_hold_s("db", changed_s) == pytest.approx(4.4, abs=0.15)
    later = [(0, 0.5 * C), (4, 0.1 * C), (11, 0.5 * C)]
    assert Seen(ran(to_s=14, happened=((4, event),), db=later)).worst("db") < 0.3


def test_a_new_floor_counts_from_its_setting() -> None:
    event = Event(5, floor={"db": 0.25})
    got = [(0, 0.5 * C), (5, 0.25 * C)]
    run = ran(to_s=12, happened=((5, event),), db=got)
    assert Seen(run).worst("db") == pytest.approx(1, abs=0.03)
    assert Seen(ran(to_s=12, db=got)).worst("db") == pytest.approx(0.5, abs=0.03)


# ---- pausing ----

PAUSES = (("stop", "start"), ("freeze", "thaw"))


@pytest.mark.parametrize(("away", "back"), PAUSES)
def test_a_unit_that_pauses(away: str, back: str) -> None:
    happened = ((4, Event(4, **{away: ("db",)})), (9, Event(9, **{back: ("db",)})))
    db = [(0, 0.5 * C), (4, 0.0), (9.5, 0.2 * C), (10.1, 0.5 * C)]
    noise = [(0, 0.5 * C), (4.2, 0.98 * C), (9.5, 0.5 * C)]
    seen = Seen(ran(to_s=14, happened=happened, db=db, noise=noise))
    assert seen.others_while_idle("db") == pytest.approx(0.98, abs=0.005)
    returned_s = seen.first_hold_s("db", seen.came_s("db"))
    assert 0.3 <= returned_s <= 0.75
    assert seen.worst("db") == pytest.approx(1, abs=0.02), "not judged while it is away"
    lazy = [(0, 0.5 * C), (4.2, 0.6 * C), (9.5, 0.5 * C)]
    idle = Seen(ran(to_s=14, happened=happened, db=db, noise=lazy)).others_while_idle("db")
    assert idle == pytest.approx(0.6, abs=0.005)


# ---- reports, writes, sums ----


def test_reports_of_a_state() -> None:
    signals = (
        changed(-1, "db", "settling"),
        changed(0.8, "db", "held"),
        changed(1.5, "other", "infeasible"),
    )
    seen = Seen(ran(db=[(0, C)], signals=signals))
    assert seen.reported_s("db", "held") == pytest.approx(0.8)
    assert seen.reported_s("db", "infeasible") == math.inf
    assert len(seen.reports("db", "infeasible")) == 0
    assert Seen(ran(db=[(0, C)], signals=(changed(0, "db", "held"),))).reported_s("db", "held") == 0


def test_a_report_counts_from_the_change_of_a_disk() -> None:
    event = Event(4, disk={"s0": {"bus_kbps": 1}})
    signals = (changed(1, "db", "infeasible"), changed(5, "db", "infeasible"))
    seen = Seen(ran(happened=((4, event),), db=[(0, C)], signals=signals))
    assert seen.reported_s("db", "infeasible") == pytest.approx(0.95)


def test_writes() -> None:
    written = tuple(Signal(BEGIN_S + at_s, "WeightChanged", ()) for at_s in (-2.0, 1.0, 2.0, 99.0))
    run = ran(db=[(0, C)], signals=written)
    assert Seen(run).writes() == 2
    assert Seen(replace(run, signals=(), rewritten=3)).writes() == 3, "the files know, too"


def test_aggregate_over_that_without() -> None:
    run = ran(db=[(0, 0.5 * C)], noise=[(0, 0.4 * C)])
    without = ran(DB.without(), to_s=5, db=[(0, 0.1 * C)], noise=[(0, 0.9 * C)])
    assert vs_without(run, without) == pytest.approx(0.9, abs=0.005)
    assert math.isnan(vs_without(run, None))


def test_the_rest_is_what_more_important_floors_leave() -> None:
    units = (
        UnitSpec("a", JOB, floor=0.7, importance=2),
        UnitSpec("b", JOB, floor=0.7, importance=1),
    )
    run = ran(replace(DB, unit=units), a=[(0, 0.7 * C)], b=[(0, 0.24 * C)])
    assert Seen(run).rest_share("b") == pytest.approx(0.8, abs=0.005)
    assert Seen(run).rest_share("a") == pytest.approx(0.7, abs=0.005)


# ---- verdicts ----

GOALS = (Goal("hold_s", max=3), Goal("worst_2s", min=0.95), Goal("return_s", max=1))


def test_judging_sutro_and_others_alike_but_only_sutro_counts() -> None:
    of = replace(DB, schedulers=("sutro", "bfq", "iocost"), goal=GOALS)
    runs = {
        "sutro": ran(of, db=[(0, 0.5 * C)], noise=[(0, 0.4 * C)]),
        "bfq": ran(of, scheduler="bfq", db=[(0, 0.3 * C)], noise=[(0, 0.4 * C)]),
    }
    found = list(judge(Contest(of, runs, None, {"iocost": "it broke"})))
    goals = {(r.scheduler, r.metric): r for r in found if r.goal}
    assert goals["sutro", "worst_2s"].met and goals["sutro", "hold_s"].met
    assert not goals["bfq", "worst_2s"].met and goals["bfq", "hold_s"].value == math.inf
    assert ("sutro", "return_s") not in goals, "nobody returned"
    assert not goals["iocost", "run"].met and goals["iocost", "run"].detail["why"] == "it broke"
    assert {r.scheduler for r in goals.values() if r.judged} == {"sutro"}
    objects = [json.loads(json.dumps(result.as_object())) for result in found]
    for keys in objects:
        assert {"scenario", "scheduler", "metric", "value", "goal", "met"} <= set(keys)
    db = next(o for o in objects if o["metric"] == "mbps" and o["of"] == "db")
    assert (db["floor_mbps"], db["capacity_mbps"]) == (50, 100)


def test_a_goal_for_a_unit_that_did_not_return_is_missed() -> None:
    of = replace(DB, goal=(Goal("return_s", max=1, of="db"),))
    (result,) = [r for r in judge(Contest(of, {"sutro": ran(of, db=[(0, C)])}, None, {})) if r.goal]
    assert math.isnan(result.value) and not result.met


# ---- what is set up by hand ----


@given(st.lists(st.floats(0.05, 1.0), min_size=1, max_size=3), st.integers(1, 5))
def test_parts_are_the_floors_and_the_rest_by_weight(floors: list[float], others: int) -> None:
    promised = [(f"p{n}", floor) for n, floor in enumerate(floors)]
    of = scenario(*promised, *((f"o{n}", None) for n in range(others)))
    setup = Setup(Place([], {}, {}), of, {}, {})
    parts = setup.parts(dict(promised))
    assert {name: parts[name] for name, _ in promised} == dict(promised)
    rest = [parts[f"o{n}"] for n in range(others)]
    assert min(rest) > 0 and max(rest) == pytest.approx(min(rest))
    assert sum(rest) == pytest.approx(max(0.02, 1 - sum(floors)))


def test_weights_of_bfq_are_in_the_ratio_of_the_parts(tmp_path: Path) -> None:
    class Folder:
        def __init__(self, name: str):
            self.name, self.folder = name, tmp_path / name
            self.folder.mkdir()

    of = scenario(("db", 0.6), *((f"o{n}", None) for n in range(4)))
    units = [Folder(unit.name) for unit in of.unit]
    Bfq(Place([], {}, {}), of, {}, {}).started(units, {"db": 0.6})
    found = [(unit.folder / "io.bfq.weight").read_text() for unit in units]
    assert found == ["600", "100", "100", "100", "100"]


def test_random_requests_of_an_hdd_without_their_transfer() -> None:
    """128 KiB in 5 ms at 100 MiB/s: 1.21 ms more than 4 KiB take, so 264 of those a second."""
    usage = Usage(rbytes=100 << 17, rios=100, busy_ns=500_000_000)
    hdd = {"kind": "hdd", "bandwidth_kbps": 102400}
    assert random_iops(Truth(usage), hdd) == pytest.approx(1 / (0.005 - 124 / 102400), rel=1e-6)
    assert random_iops(Truth(usage), {"kind": "ssd"}) == 0
    assert random_iops(Truth(), hdd) == 0


def test_every_shipped_scenario_is_judged_when_all_went_wrong() -> None:
    """A bench that measured nothing has met nothing."""
    for of in load(Book, SHIPPED).scenario:
        failed = dict.fromkeys(of.schedulers, "no stack")
        found = list(judge(Contest(of, {}, None, failed)))
        assert len(found) == len(of.schedulers) and not any(result.met for result in found)


# ---- the sampler ----


def test_totals_go_on_when_a_unit_gets_a_new_cgroup() -> None:
    class Texts:
        name, cgroup = "db", "/db"

        def __init__(self, *numbers: int | None):
            self.numbers = list(numbers)

        def read(self, file: str) -> str:
            number = self.numbers.pop(0)
            if number is None:
                raise FileNotFoundError(file)
            return f"8:0 rbytes={number} wbytes=0 rios=1 wios=0"

    unit = Texts(100, 300, None, 50, 80)
    sampler = Sampler([], [unit], "8:0")
    for _ in range(5):
        sampler.samples.append(sampler._take())
    assert [sample.sent("db") for sample in sampler.samples] == [100, 300, 300, 350, 380]
