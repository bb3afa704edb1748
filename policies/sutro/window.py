# SPDX-License-Identifier: LGPL-2.1-or-later
"""sutro-window: a promise that differs by time of day.

    [[promise]]
    unit = "backup.service"
    key = "ReadBandwidthMin"
    path = "/srv"
    default = "10M"

    [[promise.window]]
    from = "22:00"
    to = "06:00"
    days = ["mon", "tue", "wed", "thu", "fri"]
    value = "100M"

Windows are in local time. A window whose `to` is not after `from` ends on the next day, and its
days are those on which it begins: the one above covers Saturday until six in the morning and leaves
out the night of Sunday. Where the clock jumps forward, a window within the missing hour does not
occur; where it jumps back, a window within the repeated hour occurs twice. Of windows that
overlap the later one in the file holds.

Windows begin and end on full minutes, and so do changes between summer and winter time. So the
program reads the clock at each full minute, and needs no list of the next events: a clock that is
set, a machine that slept or another time zone of the machine is noticed at the next minute.
"""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Self
from zoneinfo import ZoneInfo

from . import fields, settings, values
from .program import Changes, Program, console

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
DAY_MINUTES = 24 * 60


def now_utc() -> datetime:
    """The time of the machine."""
    return datetime.now(UTC)


@dataclass(frozen=True)
class Window:
    """A time of day, on some days, and the value that holds in it; minutes are from midnight."""

    begin_minute: int
    end_minute: int
    days: frozenset[int]
    value: str

    def __str__(self) -> str:
        times = (self.begin_minute, self.end_minute)
        return "-".join(f"{minute // 60:02}:{minute % 60:02}" for minute in times)

    def covers(self, wall: datetime) -> bool:
        """Is the window open at this local time?"""
        minute, day = wall.hour * 60 + wall.minute, wall.weekday()
        if self.begin_minute < self.end_minute:
            return day in self.days and self.begin_minute <= minute < self.end_minute
        tonight = day in self.days and minute >= self.begin_minute
        last_night = (day - 1) % 7 in self.days and minute < self.end_minute
        return tonight or last_night


@dataclass(frozen=True)
class Timed:
    """A promise and its windows; without a default there is none outside of these."""

    unit: str
    key: str
    path: str
    default: str | None
    windows: tuple[Window, ...]

    def at(self, wall: datetime) -> tuple[str | None, str]:
        """The value at a local time (None: none), and the reason."""
        for window in reversed(self.windows):
            if window.covers(wall):
                return window.value, f"window {window}"
        return self.default, "outside of its windows"


class WindowProgram(Program):
    """Reads the clock at each full minute."""

    name = "sutro-window"
    about = "State promises that differ by time of day."

    def __init__(
        self,
        promises: list[Timed],
        zone: ZoneInfo | None = None,
        now: Callable[[], datetime] = now_utc,
        dry_run: bool = False,
    ) -> None:
        super().__init__(dry_run)
        self.promises, self._zone, self._now = promises, zone, now

    @classmethod
    def load(cls, file: str, dry_run: bool) -> Self:
        """The program of a file; UsageError for a mistake in it."""
        return cls(*read(file), dry_run=dry_run)

    async def step(self) -> float:
        """Set the promises of this minute; return the seconds until the next one."""
        time.tzset()  # /etc/localtime may be another file
        now = self._now()
        wall = now.astimezone(self._zone)
        changes: dict[str, Changes] = {}
        for promise in self.promises:
            changes.setdefault(promise.unit, {})[promise.key, promise.path] = promise.at(wall)
        for unit, unit_changes in changes.items():
            await self.state(unit, unit_changes)
        return 60 - now.second - now.microsecond / 1e6


# The file


def read(file: str) -> tuple[list[Timed], ZoneInfo | None]:
    """The promises of a file, and its time zone (None: that of the machine); UsageError."""
    top = settings.load(file)
    zone = _zone(top)
    promises: list[Timed] = []
    for table in top.tables("promise"):
        promise = _promise(table)
        if any(_same(promise, other) for other in promises):
            what = (
                "there is a [[promise]] with this unit, key and path already; add the windows to it"
            )
            raise table.wrong("unit", what)
        promises.append(promise)
    top.finish()
    if not promises:
        raise top.wrong("", "there is no [[promise]] in this file; add one, see sutro-window(1)")
    return promises, zone


def _same(one: Timed, other: Timed) -> bool:
    """Are both about the same unit, key and path?"""
    return (one.unit, one.key, one.path) == (other.unit, other.key, other.path)


def _zone(top: settings.Table) -> ZoneInfo | None:
    """The time zone of the file, None without one; UsageError for an unknown one."""
    name = top.take("timezone", str, None)
    try:
        return ZoneInfo(name) if name is not None else None
    except (OSError, ValueError, KeyError):
        what = f"timezone = '{name}' is not known: allowed is a name like Europe/Berlin"
        raise top.wrong("timezone", what) from None


def _promise(table: settings.Table) -> Timed:
    """A table [[promise]]; UsageError with the line of a mistake."""
    unit, key, path = fields.unit(table), fields.key(table, tuple(values.KINDS)), fields.path(table)
    if not path and key != "Weight":
        raise table.wrong("", f"'path' is missing here: name the device that {key} is about")
    default = table.take("default", str, None)
    if default is not None:
        default = fields.value(table, "default", key, default)
    windows = tuple(_window(inner, key) for inner in table.tables("window"))
    table.finish()
    if not windows:
        raise table.wrong("", "this [[promise]] has no [[promise.window]]; add one below it")
    return Timed(unit, key, path, default, windows)


def _window(table: settings.Table, key: str) -> Window:
    """A table [[promise.window]] for a key; UsageError with the line of a mistake."""
    begin, end = _minute(table, "from", last=23 * 60 + 59), _minute(table, "to", last=DAY_MINUTES)
    if begin == end:
        raise table.wrong("to", 'this is no time at all; the whole day is from "00:00" to "24:00"')
    days = table.take("days", list, list(DAYS))
    if not days:
        raise table.wrong(
            "days", "days is empty, so the window never opens; remove it for all days"
        )
    for day in days:
        if day not in DAYS:
            raise table.wrong("days", f"{day!r} is no day: allowed is {', '.join(DAYS)}")
    value = fields.value(table, "value", key, table.take("value", str))
    table.finish()
    return Window(begin, end, frozenset(map(DAYS.index, days)), value)


def _minute(table: settings.Table, name: str, last: int) -> int:
    """The time of day `name` in minutes from midnight, at most `last`; UsageError."""
    text = table.take(name, str)
    found = re.fullmatch(r"([0-9]{2}):([0-5][0-9])", text, re.ASCII)
    minute = int(found[1]) * 60 + int(found[2]) if found else -1
    if not 0 <= minute <= last:
        allowed = f"00:00 to {last // 60:02}:{last % 60:02}"
        raise table.wrong(name, f"{name} = '{text}' is no time of day: allowed is {allowed}")
    return minute


main = console(WindowProgram)
