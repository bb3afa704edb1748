# SPDX-License-Identifier: LGPL-2.1-or-later
"""sutro-window: the settings at each time, over midnight and over summer time; and its file."""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from conftest import check_mistake
from hypothesis import given
from hypothesis import strategies as st
from sutro.errors import UsageError
from sutro.window import DAYS, Timed, Window, WindowProgram, read

BERLIN = ZoneInfo("Europe/Berlin")
MINUTE = timedelta(minutes=1)


def window(begin, end, value="100M", days=DAYS):
    def minute(text):
        return int(text[:2]) * 60 + int(text[3:])

    return Window(minute(begin), minute(end), frozenset(map(DAYS.index, days)), value)


def open_minutes(one, first, last, zone=UTC):
    """All minutes of real time from `first` to before `last` in which a window is open."""
    count = int((last - first) / MINUTE)
    times = (first + n * MINUTE for n in range(count))
    return [time for time in times if one.covers(time.astimezone(zone))]


def utc(*numbers):
    return datetime(*numbers, tzinfo=UTC)


# 2026-03-02 is a Monday.


def test_over_midnight_the_day_is_that_of_the_begin():
    night = window("22:00", "06:00", days=("mon", "fri"))
    opened = open_minutes(night, utc(2026, 3, 2), utc(2026, 3, 9))
    assert len(opened) == 2 * 8 * 60
    edges = [time for time in opened if time - MINUTE not in opened]
    assert edges == [utc(2026, 3, 2, 22), utc(2026, 3, 6, 22)]
    assert opened[8 * 60 - 1] == utc(2026, 3, 3, 5, 59) and opened[-1] == utc(2026, 3, 7, 5, 59)


def test_sunday_night_ends_on_monday():
    night = window("23:30", "00:30", days=("sun",))
    opened = open_minutes(night, utc(2026, 3, 2), utc(2026, 3, 16))
    edges = [time for time in opened if time - MINUTE not in opened]
    assert edges == [utc(2026, 3, 2), utc(2026, 3, 8, 23, 30), utc(2026, 3, 15, 23, 30)]
    assert utc(2026, 3, 9, 0, 29) in opened and len(opened) == 30 + 60 + 30


def test_time_zone_that_changes(monkeypatch):
    """The running program follows the zone of the machine, with a file without one."""
    stated = []

    async def state(_unit, changes):
        ((value, _),) = changes.values()
        stated.append(value)

    timed = Timed("web.service", "ReadBandwidthMin", "/srv", None, (window("22:00", "06:00"),))
    program = WindowProgram([timed], now=lambda: utc(2026, 3, 2, 15))
    program.state = state
    try:
        for zone in ("UTC", "Asia/Tokyo", "Europe/Berlin"):
            monkeypatch.setenv("TZ", zone)
            asyncio.run(program.step())
    finally:
        monkeypatch.undo()
        time.tzset()
    assert stated == [None, "100M", None]


def test_whole_day():
    assert len(open_minutes(window("00:00", "24:00"), utc(2026, 3, 2), utc(2026, 3, 4))) == 2880


@pytest.mark.parametrize(
    ("begin", "end", "spring", "autumn"),
    [
        # In Berlin 02:00 to 03:00 is missing on 2026-03-29 and comes twice on 2026-10-25.
        ("22:00", "06:00", 7 * 60, 9 * 60),
        ("02:15", "02:45", 0, 60),
        ("01:30", "02:30", 30, 30 + 60),
        ("02:30", "03:30", 30, 60 + 30),
        ("04:00", "05:00", 60, 60),
    ],
)
def test_summer_time(begin, end, spring, autumn):
    """The clock on the wall counts: a night is an hour shorter in spring, longer in autumn."""
    one = window(begin, end)
    for month, day, length in ((3, 29, spring), (10, 25, autumn)):
        noon = datetime(2026, month, day, 12, tzinfo=BERLIN)
        # From noon to noon in real time: 23 or 25 hours.
        first = datetime(2026, month, day - 1, 12, tzinfo=BERLIN).astimezone(UTC)
        assert len(open_minutes(one, first, noon.astimezone(UTC), BERLIN)) == length


@given(st.integers(0, 1439), st.integers(1, 1440), st.frozensets(st.integers(0, 6), min_size=1))
def test_a_week_has_each_window_once_per_day(begin, end, days):
    """The oracle walks each day's window minute by minute."""
    if begin == end:
        return
    one = Window(begin, end, days, "1")
    length = (end - begin) % 1440 or 1440
    week = 7 * 1440
    expected = {(day * 1440 + begin + n) % week for day in days for n in range(length)}
    monday = datetime(2026, 3, 2)
    got = {n for n in range(week) if one.covers(monday + n * MINUTE)}
    assert got == expected


def test_the_later_window_holds():
    day, noon = window("06:00", "20:00", "1M"), window("12:00", "13:00", "2M")
    timed = Timed("a.service", "ReadBandwidthMin", "/srv", None, (day, noon))
    at = {hour: timed.at(datetime(2026, 3, 2, hour))[0] for hour in (5, 6, 12, 13, 20)}
    assert at == {5: None, 6: "1M", 12: "2M", 13: "1M", 20: None}


# The program


class Daemon:
    """Notes what is set."""

    def __init__(self):
        self.calls = []

    async def set_policy(self, unit, assignments, lifetime):
        self.calls.append((unit, assignments, lifetime))


def walk(promises, first, hours, zone=BERLIN):
    """Run a program over some hours, as fast as it requests; its calls with their times."""
    clock = [first]
    program = WindowProgram(promises, zone, now=lambda: clock[0])
    program.client = daemon = Daemon()
    calls = []

    async def run():
        while clock[0] < first + timedelta(hours=hours):
            count = len(daemon.calls)
            delay = await program.step()
            assert 0 < delay <= 60
            calls.extend((clock[0].astimezone(zone), *entry) for entry in daemon.calls[count:])
            clock[0] += timedelta(seconds=delay)

    asyncio.run(run())
    return calls


def test_program_sets_promises_at_each_boundary_only(capfd):
    night = Timed(
        "backup.service", "ReadBandwidthMin", "/srv", "10M", (window("22:00", "06:00", "100M"),)
    )
    first = datetime(2026, 3, 28, 20, 17, 31, 250000, tzinfo=BERLIN)
    calls = walk([night], first, 36)
    reset = ("ReadBandwidthMin", "")
    assert [(when.strftime("%d %H:%M:%S"), what[1]) for when, _, what, _ in calls] == [
        ("28 20:17:31", ("ReadBandwidthMin", "/srv 10M")),
        ("28 22:00:00", ("ReadBandwidthMin", "/srv 100M")),
        ("29 06:00:00", ("ReadBandwidthMin", "/srv 10M")),
        ("29 22:00:00", ("ReadBandwidthMin", "/srv 100M")),
        ("30 06:00:00", ("ReadBandwidthMin", "/srv 10M")),
    ]
    assert all(what[0] == reset and how == "client" for _, _, what, how in calls)
    assert capfd.readouterr().err.splitlines()[1] == (
        "backup.service: ReadBandwidthMin=/srv is now 100M (was 10M): window 22:00-06:00"
    )


def test_without_default_nothing_is_set_outside(capfd):
    one = Timed("a.service", "Weight", "", None, (window("12:00", "13:00", "500"),))
    calls = walk([one], datetime(2026, 3, 2, 11, tzinfo=BERLIN), 3)
    assert [what for _, _, what, _ in calls] == [
        [("Weight", ""), ("Weight", "500")],
        [("Weight", "")],
    ]
    assert "Weight is now nothing (was 500): outside of its windows" in capfd.readouterr().err


def test_promises_of_a_unit_are_set_in_one_call():
    """One call sets all promises of a unit, and a path with a blank is quoted."""
    noon = (window("12:00", "13:00", "5M"),)
    promises = [
        Timed("a.service", key, path, "1M", noon)
        for key in ("ReadBandwidthMin", "WriteBandwidthMin")
        for path in ("/srv", "/a b")
    ]
    calls = walk(promises, datetime(2026, 3, 2, 12, tzinfo=BERLIN), 0.5)
    assert len(calls) == 1 and calls[0][2] == [
        ("ReadBandwidthMin", ""),
        ("ReadBandwidthMin", "/srv 5M"),
        ("ReadBandwidthMin", '"/a b" 5M'),
        ("WriteBandwidthMin", ""),
        ("WriteBandwidthMin", "/srv 5M"),
        ("WriteBandwidthMin", '"/a b" 5M'),
    ]


# The file

GOOD = """\
timezone = "Europe/Berlin"

[[promise]]
unit = "backup"
key = "ReadBandwidthMin"
path = "/srv"
default = "10M"

[[promise.window]]
from = "22:00"
to = "06:00"
days = ["mon", "sun"]
value = "100M"

[[promise.window]]
from = "12:00"
to = "24:00"
value = "1.5G"

[[promise]]
unit = "db.service"
key = "Weight"
window = [{from = "00:00", to = "01:00", value = "500"}]
"""


def write(tmp_path, text):
    file = tmp_path / "window.toml"
    file.write_text(text)
    return str(file)


def test_good_file(tmp_path):
    promises, zone = read(write(tmp_path, GOOD))
    assert zone == BERLIN
    windows = (window("22:00", "06:00", "100M", ("mon", "sun")), window("12:00", "24:00", "1.5G"))
    assert promises == [
        Timed("backup.service", "ReadBandwidthMin", "/srv", "10M", windows),
        Timed("db.service", "Weight", "", None, (window("00:00", "01:00", "500"),)),
    ]


@pytest.mark.parametrize(
    ("good", "bad", "line", "expected"),
    [
        ('"Europe/Berlin"', '"Europe/Atlantis"', 1, "timezone = 'Europe/Atlantis' is not known"),
        ('"Europe/Berlin"', '"../../etc/passwd"', 1, "is not known: allowed is a name like"),
        ('"backup"', '"basic.target"', 4, "unit 'basic.target' has no cgroup"),
        ('"backup"', "5", 4, "unit = 5: allowed is a string"),
        ('"backup"', r'"a\u0000"', 4, r"unit = 'a\x00': allowed is a name without NUL"),
        ('"backup"', 5000 * "9", 4, "a number has too many digits"),
        ('key = "Read', 'key = "Reed', 5, "key = 'ReedBandwidthMin' is not known: allowed is"),
        ('path = "/srv"', 'path = "srv"', 6, "path = 'srv': allowed is an absolute path"),
        ('path = "/srv"', 'path = "/a/../b"', 6, "path = '/a/../b': allowed is an absolute path"),
        ('path = "/srv"', 'path = "/a\\u0007"', 6, "allowed is an absolute path"),
        (
            'path = "/srv"\n',
            "",
            3,
            "'path' is missing here: name the device that ReadBandwidthMin is about",
        ),
        ('"10M"', '"10X"', 7, "'10X' is no value for ReadBandwidthMin: allowed is bytes per"),
        ('"22:00"', '"24:00"', 10, "from = '24:00' is no time of day: allowed is 00:00 to 23:59"),
        ('"06:00"', '"6:00"', 11, "to = '6:00' is no time of day: allowed is 00:00 to 24:00"),
        ('"06:00"', '"22:00"', 11, 'the whole day is from "00:00" to "24:00"'),
        ('["mon", "sun"]', "[]", 12, "days is empty"),
        ('["mon", "sun"]', '["Mon"]', 12, "'Mon' is no day: allowed is mon, tue"),
        ('["mon", "sun"]', '"mon"', 12, "days = 'mon': allowed is a list"),
        ('"100M"', '"0"', 13, "'0' is no value for ReadBandwidthMin"),
        ('from = "12:00"\n', "", 15, "'from' is missing here"),
        ('value = "1.5G"', 'valve = "1.5G"', 15, "'value' is missing here"),
        ('value = "1.5G"', 'value = "1G"\nwert = 1', 19, "'wert' is not known here: allowed is fr"),
        ('value = "500"', 'value = "0500"', 23, "'0500' is no value for Weight"),
        ("window = [", "window = 5 # [", 23, "window = 5: allowed is a list"),
        ("window = [{", "window = [] # [{", 20, "this [[promise]] has no [[promise.window]]"),
        ('"db.service"\nkey = "Weight"', '"db.service"\nkey = ', 22, "Invalid value"),
        ('[[promise]]\nunit = "db', '[[premise]]\nunit = "db', 20, "'premise' is not known here"),
    ],
)
def test_file_with_a_mistake(tmp_path, good, bad, line, expected):
    assert GOOD.count(good) >= 1
    check_mistake(read, tmp_path / "window.toml", GOOD.replace(good, bad, 1), line, expected)


def test_line_of_a_window_of_a_later_promise(tmp_path):
    """Windows are counted from the start in each promise."""
    again = GOOD.split("\n", 2)[2].split("[[promise]]")[1].replace('"backup"', '"late"')
    text = GOOD + "[[promise]]" + again.replace('"12:00"', '"12:60"')
    line = text.splitlines().index('from = "12:60"') + 1
    check_mistake(read, tmp_path / "w.toml", text, line, "from = '12:60' is no time of day")


def test_same_promise_twice(tmp_path):
    again = (
        '[[promise]]\nunit = "db"\nkey = "Weight"\nwindow = [{from="01:00",to="02:00",value="5"}]\n'
    )
    with pytest.raises(UsageError, match=":25: there is a .* already"):
        read(write(tmp_path, GOOD + again))


@pytest.mark.parametrize("text", ["", "# nothing\n", 'timezone = "UTC"\n'])
def test_file_without_settings(tmp_path, text):
    with pytest.raises(UsageError, match=r":1: there is no \[\[promise\]\] in this file"):
        read(write(tmp_path, text))


def test_file_that_cannot_be_read(tmp_path):
    with pytest.raises(UsageError, match="/nonexistent: No such file or directory"):
        read("/nonexistent")
    (tmp_path / "binary").write_bytes(b"a = 1\nb = '\xff'\n")
    with pytest.raises(UsageError, match="binary:2: this is not UTF-8"):
        read(str(tmp_path / "binary"))
    (tmp_path / "large").write_bytes(b"#" * (1 << 21))
    with pytest.raises(UsageError, match="is larger than 1048576 bytes"):
        read(str(tmp_path / "large"))


@given(st.data())
def test_any_line_that_is_lost_or_doubled_is_refused_or_read(tmp_path_factory, data):
    """Any file is read, or refused with its name and a line."""
    lines = GOOD.splitlines()
    for _ in range(data.draw(st.integers(1, 3))):
        index = data.draw(st.integers(0, len(lines) - 1))
        lines[index : index + 1] = data.draw(
            st.sampled_from([[], [lines[index]] * 2, [lines[index][:-1]], ["x = 1", lines[index]]])
        )
    file = tmp_path_factory.mktemp("window") / "w.toml"
    file.write_text("\n".join(lines))
    try:
        read(str(file))
    except UsageError as error:
        name, line, _ = error.message.split(":", 2)
        assert name == str(file) and 1 <= int(line) <= len(lines) + 1
