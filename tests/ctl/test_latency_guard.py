# SPDX-License-Identifier: LGPL-2.1-or-later
"""sutro-latency-guard: the step as a pure function, in a closed loop, and its file."""

import pytest
from conftest import check_mistake
from hypothesis import given
from hypothesis import strategies as st
from sutro import counters
from sutro.latency_guard import (
    EASE_BELOW,
    PATIENCE_LEAST_S,
    PATIENCE_MOST_S,
    RAISE_MOST,
    SETTLE_S,
    Goal,
    State,
    read,
    step,
)

GOALS = st.builds(
    lambda target, least, span: Goal(target, least, least + span),
    st.integers(1, 10**7),
    st.integers(1, 10**9),
    st.integers(1, 10**9),
)
# Around the target, in parts of it; None is a second without reads.
SAMPLES = st.lists(st.none() | st.floats(0, 5), max_size=300)


def p99(goal, part):
    return 0 if part is None else max(round(goal.target_us * part), 1)


def after(goal, samples, state=None):
    """The states after each of some samples."""
    states = [state or State(goal.least)]
    for part in samples:
        states.append(step(goal, states[-1], p99(goal, part)))
    return states


@given(GOALS, SAMPLES)
def test_bounds_and_pace(goal, samples):
    """In bounds always; never faster than settling; never up by more than twice."""
    states = after(goal, samples)
    changed = [n for n in range(1, len(states)) if states[n].level != states[n - 1].level]
    for state in states:
        assert goal.least <= state.level <= goal.most
        assert PATIENCE_LEAST_S <= state.patience_s <= PATIENCE_MOST_S
    for earlier, later in zip(changed, changed[1:], strict=False):
        assert later - earlier > SETTLE_S
    for n in changed:
        assert states[n].why, "each change has a reason"
        assert states[n].level <= max(states[n - 1].level * RAISE_MOST, states[n - 1].level + 1) + 1


@given(GOALS, SAMPLES)
def test_up_only_above_the_target_and_down_only_below_the_band(goal, samples):
    states = after(goal, samples)
    for before, now, part in zip(states, states[1:], samples, strict=False):
        sample = p99(goal, part)
        if now.level > before.level:
            assert sample > goal.target_us
        if now.level < before.level:
            assert 0 < sample < EASE_BELOW * goal.target_us


@given(GOALS, SAMPLES, st.integers(1, 50))
def test_a_second_without_reads_changes_nothing(goal, samples, count):
    state = after(goal, samples)[-1]
    assert {one.level for one in after(goal, [None] * count, state)} == {state.level}


@given(GOALS, SAMPLES, st.lists(st.floats(EASE_BELOW, 1), min_size=1, max_size=100))
def test_inside_the_band_nothing_moves(goal, samples, band):
    state = after(goal, samples)[-1]
    inside = [part for part in band if EASE_BELOW * goal.target_us <= p99(goal, part)]
    inside = [part for part in inside if p99(goal, part) <= goal.target_us]
    assert {one.level for one in after(goal, inside, state)} == {state.level}


@given(GOALS, SAMPLES)
def test_lasting_misses_lead_to_the_top_and_are_logged_once(goal, samples):
    state = after(goal, samples)[-1]
    rest = after(goal, [1.5 if goal.target_us > 9 else 5] * 600, state)
    assert rest[-1].level == goal.most
    levels = [one.level for one in rest]
    assert levels == sorted(levels)
    assert sum("max is reached" in one.why for one in rest[1:]) + state.spent == 1


@given(GOALS, SAMPLES)
def test_lasting_calm_leads_to_the_bottom(goal, samples):
    if goal.target_us < 10:
        return
    state = after(goal, samples)[-1]
    rest = after(goal, [0.1] * (22 * (PATIENCE_MOST_S + SETTLE_S + 1)), state)
    levels = [one.level for one in rest]
    assert levels[-1] == goal.least and levels == sorted(levels, reverse=True)
    assert rest[-1].patience_s == PATIENCE_LEAST_S


@given(GOALS, SAMPLES, st.floats(1.01, 5), st.floats(1, 3))
def test_farther_above_is_raised_by_no_less(goal, samples, part, more):
    state = after(goal, samples)[-1]
    near, far = (step(goal, state, p99(goal, by)).level for by in (part, part * more))
    if p99(goal, part) > goal.target_us:
        assert far >= near


def test_what_was_given_back_too_soon_is_tried_later_each_time():
    """No saw: 15 s of calm before the first step down, 30 after the first failure, 60 ..."""
    goal = Goal(10_000, 100, 5000)
    state, waits = State(4000), []
    for _ in range(6):
        calm = after(goal, [0.5] * (PATIENCE_MOST_S + SETTLE_S), state)
        eased = next(n for n, one in enumerate(calm) if one.level < state.level)
        waits.append(eased - state.settle_s)
        state = after(goal, [1.3] * (SETTLE_S + 2), calm[eased])[-1]
    assert waits == [15, 30, 60, 120, 240, 240]


def test_steps_down_that_last_make_it_quicker_again():
    goal = Goal(10_000, 100, 5000)
    states = after(goal, [0.5] * 1000, State(4000, patience_s=120))
    moves = [n for n in range(1, 1001) if states[n].level != states[n - 1].level]
    waits = [b - a - SETTLE_S for a, b in zip([-SETTLE_S, *moves], moves, strict=False)]
    assert waits[:6] == [120, 120, 60, 30, 15, 15]


def test_at_the_bottom_nothing_is_remembered():
    goal = Goal(10_000, 100, 5000)
    calm = after(goal, [0.5] * PATIENCE_MOST_S, State(100, patience_s=PATIENCE_MOST_S))
    assert (calm[-1].level, calm[-1].patience_s) == (100, PATIENCE_LEAST_S)


def test_one_outlier_is_not_enough():
    goal = Goal(10_000, 100, 5000)
    assert {one.level for one in after(goal, [0.9, 4.0] * 50)} == {100}


def test_the_worked_example():
    """The one in the header of the module."""
    goal = Goal(10_000, 100, 5000)
    samples = [2.4, 2.6] + [1.5] * SETTLE_S + [1.5, 1.5]
    assert [one.level for one in after(goal, samples)] == [100, 100, 200, 200, 200, 200, 200, 300]
    calm = after(goal, [0.91] * 9 + [0.3] * PATIENCE_LEAST_S, after(goal, samples)[-1])
    assert [one.level for one in calm[-2:]] == [300, 100]


@pytest.mark.parametrize("others", [1, 4, 30])
@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_closed_loop(others, noise):
    """P99 of a unit that shares a disk with others by weight, as a model of a fair scheduler.

    Its reads take the longer, the smaller its share: 2 ms alone, target 6 ms. The share that
    gives 6 ms is a third. It has to be reached within a minute, and then to be kept without
    a saw: in the following half hour the target may be missed for a minute in all.
    """
    goal = Goal(6000, 100, 10000)
    state, missed = State(goal.least), []
    for second in range(2000):
        share = state.level / (state.level + 100 * others)
        wobble = 1 + noise * (1 if second % 7 in (2, 3) else -1)
        sample = round(2000 / share * wobble)
        missed.append(sample > goal.target_us)
        state = step(goal, state, sample)
    assert sum(missed[60:]) <= 60
    assert state.level < 4 * 50 * others + 2 * (goal.most - goal.least) / 20, (
        "no more than it takes"
    )
    # The others leave: all is given back within half an hour.
    for _ in range(1800):
        state = step(goal, state, 2000)
    assert state.level == goal.least


# Readings.


@pytest.fixture
def cgroups(tmp_path, monkeypatch):
    """A tree of cgroups; a function that writes the reads of one by latency."""
    monkeypatch.setattr(counters, "ROOT", tmp_path)

    def write(cgroup, counts, devno="8:16"):
        file = tmp_path / f"sys/fs/cgroup{cgroup}/io.sutro.stat"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"8:0 rlat=7,7\n{devno} rios=5 rlat={','.join(map(str, counts))}\n")

    return write


def readings(write, *all_counts, cgroup="/db.service"):
    """The return values of latencies() after each of some states of the file."""
    found = []
    for counts in all_counts:
        write(cgroup, counts)
        found.append(counters.latencies("/db.service", ["/dev/8:16"]))
    return found


def test_one_cgroup_and_those_below_are_read(cgroups, monkeypatch):
    """The other units of the machine are not."""
    for cgroup in ("", "/other.service", "/db.service", "/db.service/a", "/db.service/a/b"):
        cgroups(cgroup, [0, 1])
    opened = []
    text = counters._text
    monkeypatch.setattr(counters, "_text", lambda path: opened.append(path) or text(path))
    found = counters.latencies("/db.service", ["/dev/8:16"])
    assert len(found) == 3 == len(opened)
    assert all("/db.service/" in path for path in opened)
    assert counters.p99_us(found, {}) == 24, "of half an octave from 2^14 ns"


def test_a_cgroup_that_is_removed(cgroups):
    cgroups("/db.service", [1])
    with pytest.raises(FileNotFoundError):
        counters.latencies("/gone.service", ["/dev/8:16"])
    with pytest.raises(FileNotFoundError):
        counters.has_counters("/gone.service")
    assert counters.has_counters("/db.service")


def test_p99_of_the_reads_between_two_readings(cgroups):
    """Earlier reads do not count, and a counter that began anew counts from 0."""
    before, slow, same, anew = readings(
        cgroups, [1000, 0, 0], [1000, 0, 5], [1000, 0, 5], [0, 3, 0]
    )
    assert counters.p99_us(slow, before) == 32
    assert counters.p99_us(same, slow) == 0
    assert counters.p99_us(anew, same) == 24


@given(st.lists(st.integers(0, 2**20), min_size=40, max_size=40).filter(any))
def test_p99_is_the_upper_bound_of_its_bucket(counts):
    """99 % of the reads are not slower; without its bucket it is fewer."""
    p99 = counters.p99_us({("/db", "/dev/sda"): counts}, {})
    ends = [(1 << (14 + n // 2)) * (1.5 if n % 2 else 1) // 1000 for n in range(40)]
    number = ends.index(p99)
    assert sum(counts[: number + 1]) >= 0.99 * sum(counts) > sum(counts[:number]) or number == 0


GOOD = """\
unit = "db"
path = "/dev/vg0/db"
target = "10ms"
raise = "Weight"
min = "100"
max = "5000"
"""


def test_good_file(tmp_path):
    file = tmp_path / "guard.toml"
    file.write_text(GOOD)
    goal = Goal(10_000, 100, 5000)
    assert read(str(file)) == ("db.service", "Weight", "/dev/vg0/db", goal)


@pytest.mark.parametrize(
    ("good", "bad", "line", "expected"),
    [
        ('"db"', '""', 1, "the unit name is empty"),
        ('path = "/dev/vg0/db"\n', "", 1, "'path' is missing here: name the device whose reads"),
        ('"10ms"', '"10mm"', 3, "'10mm' is no value for LatencyTarget: allowed is a time"),
        ('"10ms"', "10", 3, "target = 10: allowed is a string"),
        ('"10ms"', '"10ms P95"', 3, "the percentile is always P99: leave it out"),
        ('"Weight"', '"WriteIOPSMin"', 4, "raise = 'WriteIOPSMin' is not known: allowed is Wei"),
        ('"100"', '"0"', 5, "'0' is no value for Weight"),
        ('"5000"', '"50000"', 6, "'50000' is no value for Weight: allowed is a whole number"),
        ('"5000"', '"100"', 6, "max = '100' is not above min = '100'"),
        ('max = "5000"', 'maximum = "5000"', 1, "'max' is missing here"),
    ],
)
def test_file_with_a_mistake(tmp_path, good, bad, line, expected):
    check_mistake(read, tmp_path / "guard.toml", GOOD.replace(good, bad), line, expected)


def test_percentages_are_no_bounds(tmp_path):
    """A policy has them for floors, but the guard multiplies a rate."""
    for bound, line in (("100", 5), ("5000", 6)):
        text = GOOD.replace('"Weight"', '"ReadBandwidthMin"').replace(f'"{bound}"', '"10%"')
        expected = "'10%' is no value for ReadBandwidthMin: allowed is bytes per second"
        check_mistake(read, tmp_path / "guard.toml", text, line, expected)
