# SPDX-License-Identifier: LGPL-2.1-or-later
"""A policy program: sets promises while it runs.

Its promises have the lifetime "client": the daemon removes them when the connection ends, however
it ends, so a program that is killed leaves nothing in force. A sutrod that restarts has lost them,
and the program sets them again:

    connect -> set all -> step -> sleep -> step -> ...
       ^          ^-- a new sutrod started   |
       '--------- the bus or sutrod ended ---'

A program is a subclass: load() reads its file, step() reads the clock or the state of the machine,
sets what follows from it, and returns the seconds until the next step.
Clocks are parameters, so that a test need not sleep.
"""

import argparse
import asyncio
import contextlib
import signal
import sys
from collections.abc import Callable
from typing import Any, Self

from . import __version__, values
from .answer import awaited, wait
from .client import Client
from .connection import BROKE, BROKE_REMEDY
from .errors import BusUnavailable, NotRunning, SutroError, UsageError

# Time between two attempts to reach the bus and sutrod: about that of a restart of either.
RETRY_S = 1.0
# A program that is stopped waits for the answer of a call for this long.
STOP_S = 1.0

# The settings of a unit: by key and path ("" where the key takes none), the text of the value.
Settings = dict[tuple[str, str], str]
# New values (None: none), each with the reason for the log.
Changes = dict[tuple[str, str], tuple[str | None, str]]


def log(text: str) -> None:
    """Write a line to the journal, or to the terminal."""
    print(text, file=sys.stderr, flush=True)


class Program:
    """The life of a program around its step()."""

    name = "sutro-program"
    about = ""
    host = ""  # "" is this machine
    ending = "ending: its promises end with it"  # for the log

    def __init__(self, dry_run: bool = False) -> None:
        self.dry_run = dry_run
        self.client: Client | Any = None
        self._settings: dict[str, Settings] = {}
        self._keys: dict[str, dict[str, None]] = {}  # by unit, in order: all that were ever set
        self._found: set[str] = set()  # units that were looked up
        self._wake = asyncio.Event()
        self._stop = asyncio.Event()
        self._stopping = self._restarted = self._lost = False

    # Methods of a subclass.

    @classmethod
    def load(cls, file: str, dry_run: bool) -> Self:
        """The program of a file; UsageError for a mistake in it."""
        raise NotImplementedError

    async def step(self) -> float:
        """Set the promises that hold now; return the seconds until the next step."""
        raise NotImplementedError

    # Methods for a subclass.

    async def state(self, unit: str, changes: Changes) -> None:
        """Change the settings of a unit, all or nothing; without a difference nothing is sent.

        Each change is logged with its reason. SutroError if the daemon refuses a setting.
        """
        before = self._settings.get(unit, {})
        new = {where: value for where, (value, _) in changes.items()}
        after = {where: value for where, value in (before | new).items() if value is not None}
        if after == before:
            return
        for key, _ in after:
            self._keys.setdefault(unit, {})[key] = None
        await self._send(unit, after)
        self._settings[unit] = after
        verb = "would be" if self.dry_run else "is now"
        for where, (value, why) in changes.items():
            if value != before.get(where):
                old, name = before.get(where, "nothing"), "=".join(filter(None, where))
                log(f"{unit}: {name} {verb} {value or 'nothing'} (was {old}): {why}")

    def promise_changed(self, unit: str, key: str, path: str, state: str, cause: str) -> None:
        """The state of a promise changed: log it, if this program has set it."""
        if (key, path) in self._settings.get(unit, {}):
            log(f"{unit}: {key}={path} is {state}" + (f": {cause}" if cause else ""))

    async def state_again(self) -> None:
        """Set all promises again in a new sutrod; a dry run has set none."""
        if self.dry_run:
            return
        for unit, settings in self._settings.items():
            await self._send(unit, settings)
            log(f"{unit}: stated again, because sutrod or the bus is a new one")

    def stop(self) -> None:
        """End, as after SIGTERM."""
        self._stopping = True
        self._wake.set()
        self._stop.set()

    async def run(self) -> None:
        """Work until stopped, and STOP_S after that at most: a call may have no answer for longer.

        The connection is closed in each case.
        """
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
        work = asyncio.ensure_future(self._work())
        stopped = asyncio.ensure_future(self._stop.wait())
        try:
            await asyncio.wait((work, stopped), return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait((work,), timeout=STOP_S)
        finally:
            stopped.cancel()
            work.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await work
        log(self.ending)

    async def _work(self) -> None:
        """Connect, step until stopped, connect again when sutrod or the bus has ended."""
        complained = ""
        while not self._stopping:
            try:
                async with Client(self.host) as self.client:
                    await self._serve()
                    complained = ""
            except (BusUnavailable, NotRunning) as error:
                if error.message != complained:
                    log(f"{error.message}; waiting for it")
                complained = error.message
                await wait(self._wake, RETRY_S)

    # The rest.

    async def _send(self, unit: str, settings: Settings) -> None:
        """Set all settings of a unit anew: each key is reset first."""
        if self.dry_run:
            return
        assignments: list[tuple[str, str]] = []
        for key in self._keys.get(unit, ()):
            assignments.append((key, ""))
            for (set_key, path), value in settings.items():
                if set_key == key:
                    assignments.append((key, f"{values.quoted(path)} {value}" if path else value))
        await self.client.set_policy(unit, assignments, "client")

    async def _log_missing(self) -> None:
        """Log each unit that does not exist, once: the name may be a slip."""
        for unit in self._settings.keys() - self._found:
            self._found.add(unit)
            with contextlib.suppress(SutroError):  # without systemd none is known
                if note := await awaited(self.client, unit, not self.host):
                    log(f"{unit}: {note}")

    async def _serve(self) -> None:
        """Step on one connection until stopped; BusUnavailable when the connection ends."""

        def restarted() -> None:
            self._restarted = True
            self._wake.set()

        def lost(_task: asyncio.Task) -> None:
            self._lost = True
            self._wake.set()

        self._restarted, self._lost = True, False
        await self.client.on_sutrod_started(restarted)
        await self.client.on_promise_changed(self.promise_changed)
        closed = asyncio.ensure_future(self.client.closed())
        closed.add_done_callback(lost)
        try:
            while not self._stopping:
                self._wake.clear()
                if self._lost:
                    raise BusUnavailable(BROKE, BROKE_REMEDY)
                if self._restarted:
                    self._restarted = False
                    await self.state_again()
                delay_s = await self.step()
                await self._log_missing()
                await wait(self._wake, delay_s)
        finally:
            closed.remove_done_callback(lost)
            closed.cancel()


def main(program: type[Program], argv: list[str] | None = None) -> int:
    """Run the command line of a program; return the exit status."""
    parser = argparse.ArgumentParser(
        prog=program.name, description=program.about, epilog=f"See {program.name}(1)."
    )
    parser.add_argument("file", metavar="FILE", help="settings of the program, in TOML")
    parser.add_argument("--dry-run", action="store_true", help="log the changes, make none")
    parser.add_argument("--version", action="version", version=f"{program.name} {__version__}")
    args = parser.parse_args(argv)
    if not args.file:
        parser.error("the name of the file is empty")

    async def run() -> None:
        await program.load(args.file, args.dry_run).run()

    try:
        asyncio.run(run())
    except SutroError as error:
        log(f"{program.name}: {error.message}")
        if error.hint:
            log(f"{' ' * len(program.name)}  {error.hint}")
        return 2 if isinstance(error, UsageError) else 1
    return 0


def console(program: type[Program]) -> Callable[[], int]:
    """The entry point of a program."""
    return lambda: main(program)
