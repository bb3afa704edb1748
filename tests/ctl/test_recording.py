# SPDX-License-Identifier: LGPL-2.1-or-later
"""Recordings of top: a cut last line is no mistake, anything else that is no record is one."""

import json
import re

import pytest
from conftest import NOWHERE, sutroctl
from hypothesis import given
from hypothesis import strategies as st
from sutro.recording import Record, read
from sutro.view import ORDERS
from test_view import ROWS, row

LOST = (
    "sutroctl: /nonexistent/r: No such file or directory\n"
    "          correct the name, or make the folder that is missing\n"
)

GOOD = Record(1.7e9, ROWS).line()


def write(tmp_path, *lines):
    file = tmp_path / "r.json"
    file.write_text("\n".join(lines))
    return str(file)


def test_round_trip(tmp_path):
    file = write(tmp_path, GOOD, Record(1.7e9 + 1, ROWS[:1]).line(), GOOD[:-40])
    assert [(record.time_s, record.rows) for record in read(file)] == [
        (1.7e9, ROWS),
        (1.7e9 + 1, ROWS[:1]),
    ]


def test_fields_of_others(tmp_path):
    """They are left out, whatever they are."""
    more = GOOD.replace('"got": 20', '"got": 20, "gain": "x", "more": "\\ud800"')
    assert read(write(tmp_path, more))[0].rows == ROWS


# A field of a record, or an entry of a list, and the value that takes its place.
ANY = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(), max_size=5)
    | st.sampled_from(["\ud800", "\0", "\n", "/", ""]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)


def changed(entry, place, value):
    """A JSON value in which the part with that number is another one."""
    entry = json.loads(json.dumps(entry))
    parts = []

    def walk(one):
        for key in one if isinstance(one, dict) else range(len(one)):
            parts.append((one, key))
            if isinstance(one[key], (dict, list)):
                walk(one[key])

    walk(entry)
    inside, key = parts[place % len(parts)]
    inside[key] = value
    return entry


@given(st.integers(0, 999), ANY, st.sampled_from(sorted(ORDERS)), st.sampled_from(["-j", "--tree"]))
def test_any_value_in_a_recording(tmp_path_factory, place, value, order, option):
    """It is shown, or refused in one line with the file, the line and the field."""
    line = json.dumps(changed(json.loads(GOOD), place, value))
    file = write(tmp_path_factory.mktemp("any"), GOOD, line)
    run = sutroctl("top", "--from", file, "--batch", "--order", order, option, **NOWHERE)
    if run.status != 0:
        first, remedy = run.err.splitlines()
        assert run.status == 1 and remedy.strip() == "make one: sutroctl top --record FILE"
        where = re.escape(f"sutroctl: {file}:2: this line is not a record of sutroctl top: ")
        assert re.fullmatch(where + r"'(time|rows)\S*' is missing or not .*", first), run.err


@pytest.mark.parametrize(
    "cgroups",
    [["", "/", "/a"], ["/" + "/".join(["a"] * depth) for depth in range(1, 1500)]],
    ids=["empty", "deep"],
)
def test_tree_of_any_cgroups(tmp_path, cgroups):
    """A cgroup without a name, and more levels than Python nests calls."""
    file = write(tmp_path, Record(1.7e9, [row(cgroup) for cgroup in cgroups]).line())
    run = sutroctl("top", "--from", file, "--tree", "--once", "--json", **NOWHERE)
    assert [one["cgroup"] for one in run.json()] == cgroups
    run = sutroctl("top", "--from", file, "--depth", "1", **NOWHERE)
    assert run.status == 0 and f"(+{len(cgroups) - 1 - cgroups.count('')})" in run.out


def test_ceiling_of_infinity(tmp_path):
    file = write(tmp_path, GOOD.replace('"value": 70', '"value": null'))
    run = sutroctl("top", "--from", file, "--order", "value", **NOWHERE)
    assert (run.status, run.err) == (0, "")
    assert run.out.splitlines()[2].split()[:5] == ["x.service", "/dev/sda", "read", "infinity", "-"]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([], "there is no record"),
        ([GOOD[:30]], ":1: "),
        ([GOOD, "[]", GOOD], ":2: this line is not a record of sutroctl top"),
        (
            [GOOD, json.dumps({"time": 1, "rows": [{"unit": "x"}]}), GOOD],
            ":2: this line is not a record",
        ),
        ([GOOD.replace('"share": 0.2', '"share": "0.2"'), GOOD], ":1: this line is not a record"),
        (['{"time": null, "rows": []}'], ":1: this line is not a record"),
        (['{"time": 1e300, "rows": []}'], ":1: this line is not a record"),
        (['{"time": NaN, "rows": []}'], ":1: this line is not a record"),
        (['{"time": -1e300, "rows": []}'], ":1: this line is not a record"),
        (['{"time": 1' + 400 * "0" + ', "rows": []}'], ":1: this line is not a record"),
        ([GOOD.replace('"share": 0.2', '"share": NaN')], ":1: this line is not a record"),
        ([GOOD.replace('"got": 20', '"got": 1e999')], ":1: this line is not a record"),
        (
            [GOOD.replace('"weight": 50', '"weight": 1' + 400 * "0")],
            ":1: this line is not a record",
        ),
        (["[" * 100000], ":1: this line is not a record"),
        (
            [GOOD.replace('"got": 20', '"got": 20, "percent": "x"')],
            ":1: this line is not a record of sutroctl top: 'rows[0].lines[0].percent' is missing "
            "or not a number from 0 to 2^64\n          make one: sutroctl top --record FILE\n",
        ),
        (
            [GOOD.replace('"a.slice"', r'"\ud800"', 1)],
            ":1: this line is not a record of sutroctl top: 'rows[0].unit' is missing or not a "
            "string of UTF-8 without NUL",
        ),
        ([GOOD.replace("/a.slice", r"\u0000")], "'rows[0].cgroup' is missing or not a string"),
        ([GOOD.replace('"value": 70, ', "")], "'rows[1].lines[0].value' is missing or not a numb"),
        ([GOOD.replace('"got": 20', '"got": true')], "'rows[0].lines[0].got' is missing or not"),
        ([GOOD.replace('"time": 1', '"time": ' + 5000 * "1")], "'time' is missing or not a number"),
        # The last line is whole.
        ([GOOD, '{"time": 1, "rows": [3]}'], ":2: this line is not a record of sutroctl top: "),
    ],
)
def test_no_recording(tmp_path, lines, expected):
    file = write(tmp_path, *lines)
    run = sutroctl("top", "--from", file, **NOWHERE)
    assert (run.status, run.out) == (1, "")
    assert run.err.startswith(f"sutroctl: {file}") and expected in run.err


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["--from", "a", "--record", "b"], "exclude each other"),
        (["--from", "a", "/dev/sda"], "--filter"),
        (["--once", "-n", "3"], "--once and --iterations exclude each other"),
        (["-d", "0"], "--delay=0: allowed is 0.1 to 86400 s"),
        (["-d", "nan"], "--delay=nan"),
        (["-d", "inf"], "--delay=inf"),
        (["-n", "0"], "--iterations=0"),
        (["--depth", "0"], "--depth=0"),
    ],
)
def test_slips(args, expected):
    run = sutroctl("top", *args, **NOWHERE)
    assert (run.status, run.out) == (2, "")
    assert expected in run.err


def test_files_that_cannot_be_used(promised, tmp_path):
    run = sutroctl("top", "--from", "/nonexistent/r", **NOWHERE)
    assert run.err == LOST
    run = sutroctl("top", "--once", "--record", "/nonexistent/r")
    assert run.err == LOST


def test_a_recording_is_kept_until_the_first_record(own_bus, tmp_path):
    """Without a daemon there is none."""
    file = write(tmp_path, GOOD)
    run = sutroctl("top", "--once", "--record", file)
    assert run.status == 1 and "sutrod is not running" in run.err
    assert [record.rows for record in read(file)] == [ROWS]


def test_a_recording_replaces_a_longer_one(promised, tmp_path):
    file = write(tmp_path, *[GOOD] * 100)
    assert sutroctl("top", "--once", "--record", file).status == 0
    (record,) = read(file)
    assert record.time_s > 1.7e9
