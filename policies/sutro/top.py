# SPDX-License-Identifier: LGPL-2.1-or-later
"""The verb top: the present use of devices by units.

Records come from the daemon, or from a file; a view arranges their rows. On a terminal the table
is drawn over itself, and keys and clicks change the view. A terminal that cannot move its cursor,
or a pipe, gets one table after the other, or with --json an object a line.
"""

import argparse
import asyncio
import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from . import recording
from .answer import Answer, answered, interrupted, wait, wants_json
from .client import Client
from .errors import NotRunning, SutroError, UsageError
from .keys import Click, Event, keyboard
from .recording import Record
from .topology import Topology
from .usage import rows
from .view import PROCESSES, View

Dict = dict[str, Any]

# A call; that of the page of processes has the name of the page.
LOOK = "look"
PERIOD_LEAST_S, PERIOD_MOST_S = 0.1, 86400
# Signals among the keys. The terminal has to be left as it was before, also after those.
RESIZED, INTERRUPTED, TERMINATED, SUSPENDED = "resized", "interrupted", "terminated", "suspended"
SIGNALS = {
    signal.SIGINT: INTERRUPTED,
    signal.SIGTERM: TERMINATED,
    signal.SIGTSTP: SUSPENDED,
    signal.SIGWINCH: RESIZED,
}


class Source(Protocol):
    """The origin of records."""

    async def look(self, step: int) -> Record | None:
        """The record `step` after the last one; None after the last record of all."""

    async def processes(self, row: Dict) -> list[Dict]:
        """The processes of the unit of a row."""


class Live:
    """The use of devices now; `node` of "" is all devices."""

    def __init__(self, client: Client, node: str) -> None:
        self._client, self._node = client, node
        self._last = Record(0.0)

    async def look(self, step: int = 1) -> Record:
        """The present record; without a daemon the last one, with a note."""
        client = self._client
        try:
            found = rows(*await asyncio.gather(client.usage(), client.promises(), client.devices()))
        except NotRunning as error:
            if not self._last.time_s:
                raise
            self._last.note = f"{error.message}; waiting for it"
            return self._last
        here = [row for row in found if self._node in ("", row["device"])]
        self._last = Record(round(time.time(), 3), here)
        return self._last

    async def processes(self, row: Dict) -> list[Dict]:
        """The processes of the cgroup of a row, as systemd lists them."""
        return await self._client.processes(row["unit"], row["cgroup"])


class Recorded:
    """The records of a file."""

    def __init__(self, records: list[Record]) -> None:
        self._records = records
        self._index = -1

    async def look(self, step: int = 1) -> Record | None:
        """Another record of the file, None after the last one."""
        if self._index + step >= len(self._records):
            return None
        self._index = max(self._index + step, 0)
        record = self._records[self._index]
        clock = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(record.time_s))
        record.note = f"{clock}, record {self._index + 1} of {len(self._records)}"
        return record

    async def processes(self, row: Dict) -> list[Dict]:
        """SutroError: no record has processes."""
        raise SutroError("a recording has no processes", "see them without --from")


def check(args: argparse.Namespace) -> None:
    """Find mistakes on the command line before any call; UsageError."""
    if not PERIOD_LEAST_S <= args.delay <= PERIOD_MOST_S:
        allowed = f"{PERIOD_LEAST_S} to {PERIOD_MOST_S} s"
        raise UsageError(f"--delay={args.delay:g}: allowed is {allowed}")
    if args.iterations is not None and args.iterations < 1:
        raise UsageError(f"--iterations={args.iterations}: must be at least 1")
    if args.once and (args.iterations or 1) > 1:
        raise UsageError("--once and --iterations exclude each other", "omit one of them")
    if args.depth is not None and args.depth < 1:
        raise UsageError(f"--depth={args.depth}: must be at least 1")
    if args.source and args.record:
        raise UsageError("--from and --record exclude each other", "omit one of them")
    if args.source and args.device:
        raise UsageError("a recording has all devices", "use --filter instead of DEVICE")


async def top(client: Client | None, args: argparse.Namespace) -> Answer:
    """The present use of each device by units: promises, rates, shares and weights."""
    view = View(
        order=args.order,
        reverse=args.reverse,
        filter=args.filter,
        active=args.active,
        tree=args.tree or args.depth is not None,
        depth=args.depth,
        period_s=args.delay,
        of_device=bool(args.device),
    )
    source = await _source(client, args)
    # Before the file, which keeps an earlier recording when there is no daemon.
    first = await source.look(1)
    assert first
    with _record(args.record) as keep:
        keep(first)
        batch = args.batch or wants_json(args) or not _has_cursor()
        as_list = wants_json(args) and not (args.batch or args.iterations or args.source)
        if args.once or as_list:
            shown = view.arrange(first.rows)
            if not shown and not wants_json(args):
                print(view.empty())
                return Answer(None)
            return Answer([placed.row for placed in shown])
        following = _print if batch else _interact
        return Answer(None, status=await following(source, view, first, keep, args))


def _has_cursor() -> bool:
    """Is stdout a terminal that can move its cursor?"""
    return sys.stdout.isatty() and os.environ.get("TERM", "") not in ("", "dumb", "unknown")


async def _source(client: Client | None, args: argparse.Namespace) -> Source:
    """The daemon, or the file of --from."""
    if args.source:
        return Recorded(recording.read(args.source))
    assert client
    node = ""
    if args.device:
        path = Topology(await client.devices(), args.host).path(args.device)
        node = (await client.resolve(path))["device"]
    return Live(client, node)


@contextlib.contextmanager
def _record(file: str | None) -> Iterator[Any]:
    """A context whose function writes a record to the file, if there is one."""
    if not file:
        yield lambda record: None
        return
    with recording.create(file) as write:
        # A record of the past has a note: it is there already.
        yield lambda record: record.note or write(record)


async def _print(
    source: Source, view: View, record: Record | None, keep: Any, args: argparse.Namespace
) -> int:
    """One table or JSON object after the other, until Ctrl-C or the last iteration; 0."""
    from . import show_top, text

    quit_ = interrupted()
    out = text.console(legend=not args.no_legend)
    looks = 0
    while record:
        shown = view.arrange(record.rows)
        if wants_json(args):
            arranged = {"time": record.time_s, "rows": [placed.row for placed in shown]}
            print(json.dumps(arranged), flush=True)
        else:
            show_top.below(out, view, record.note)
        looks += 1
        if looks == args.iterations:
            return 0
        # In a pipe a recording is printed at once.
        if await wait(quit_, 0 if args.source else view.period_s):
            return 0
        record = await answered(quit_, source.look(1))
        if record:
            keep(record)
    return 0


async def _interact(
    source: Source, view: View, record: Record, keep: Any, args: argparse.Namespace
) -> int:
    """Draw, and follow keys and clicks, until q, a signal or the last iteration; the status.

    Keys and signals have their effect while the answer of a call is awaited, too.
    """
    from . import show_top, text

    events: asyncio.Queue[Event] = asyncio.Queue()
    loop = asyncio.get_running_loop()
    for number in filter(lambda one: signal.getsignal(one) is not signal.SIG_IGN, SIGNALS):
        # The loop's handlers: those of a signal itself would draw in the middle of drawing.
        loop.add_signal_handler(number, events.put_nowait, SIGNALS[number])
    out = text.console(legend=not args.no_legend)
    looks, due = 1, loop.time() + view.period_s
    calls: dict[str, asyncio.Task[Any]] = {}
    processes: list[Dict] | str | None = None
    with contextlib.ExitStack() as terminal:

        def take() -> show_top.Screen:
            screen = terminal.enter_context(show_top.screen(out))
            terminal.enter_context(keyboard(events))
            # After Ctrl-Z new ones: the time limits of calls go on while this program is stopped.
            terminal.callback(_cancel, calls)
            return screen

        screen, has_changed = take(), True
        while not view.ended:
            if has_changed:
                view.arrange(record.rows)
                screen.draw(view, record, processes)
            is_waiting = view.paused or LOOK in calls
            event = await _next(events, None if is_waiting else due - loop.time(), calls.values())
            page = view.page
            if isinstance(event, Click):
                screen.click(view, event)
            elif event == INTERRUPTED:
                return 0
            elif event == TERMINATED:
                return 128 + signal.SIGTERM
            elif event == SUSPENDED:
                terminal.close()
                _stop(events)
                screen = take()
            elif event:
                view.press(event)
            ended = {name: calls.pop(name).result() for name in [*calls] if calls[name].done()}
            has_changed = event is not None or bool(ended)
            if LOOK in ended:
                looks, due = looks + 1, loop.time() + view.period_s
                if latest := ended[LOOK]:
                    keep(latest)
                    record = latest
                else:
                    view.paused = True
            processes = ended.get(PROCESSES, processes)
            if LOOK not in calls and (view.step or not view.paused and loop.time() >= due):
                if looks == args.iterations:
                    return 0
                calls[LOOK] = loop.create_task(source.look(view.step or 1))
                view.step = 0
            if view.page == PROCESSES and page != PROCESSES:
                _cancel(calls, PROCESSES)
                processes = None
            is_due = page != PROCESSES or LOOK in ended
            if view.page == PROCESSES and is_due and PROCESSES not in calls:
                calls[PROCESSES] = loop.create_task(_processes(source, view))
    return 0


def _cancel(calls: dict[str, asyncio.Task[Any]], *names: str) -> None:
    """End calls, by default all of them, and take them out."""
    for name in [*calls]:
        if not names or name in names:
            call = calls.pop(name)
            # asyncio prints a failure that is not retrieved.
            if not call.cancel() and not call.cancelled():
                call.exception()


def _stop(events: asyncio.Queue[Event]) -> None:
    """Stop as any program after Ctrl-Z; return when the shell lets the job go on."""
    loop = asyncio.get_running_loop()
    loop.remove_signal_handler(signal.SIGTSTP)
    signal.raise_signal(signal.SIGTSTP)
    loop.add_signal_handler(signal.SIGTSTP, events.put_nowait, SUSPENDED)


async def _next(
    events: asyncio.Queue[Event], seconds: float | None, calls: Iterable[asyncio.Task[Any]] = ()
) -> Event | None:
    """The next event; None after that time, or when one of the calls has ended."""
    if not events.empty():
        return events.get_nowait()
    event = asyncio.ensure_future(events.get())
    await asyncio.wait(
        [event, *calls],
        timeout=seconds and max(seconds, 0),
        return_when=asyncio.FIRST_COMPLETED,
    )
    if event.done():
        return event.result()
    event.cancel()
    return None


async def _processes(source: Source, view: View) -> list[Dict] | str:
    """The processes of the selected row, or the reason why there are none to show."""
    row = view.current()
    if not row:
        return "the unit has gone"
    try:
        return await source.processes(row)
    except SutroError as error:
        return error.message
