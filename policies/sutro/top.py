# SPDX-License-Identifier: LGPL-2.1-or-later
"""The verb top: the present use of devices by units.

On a terminal the table is drawn over itself each second, as large as the window, until q or
Ctrl-C. A terminal that cannot move its cursor, or a pipe, gets one table after the other.
"""

import argparse
import asyncio
import contextlib
import signal
import sys
import termios
import tty
from collections.abc import Iterator
from typing import Any

from .answer import Answer, interrupted, wait
from .client import Client
from .errors import NotRunning
from .topology import Topology
from .usage import rows

Dict = dict[str, Any]

PERIOD_S = 1.0


async def top(client: Client, args: argparse.Namespace) -> Answer:
    """The present use of each device by units: promises, rates, shares and weights."""
    node = ""
    if args.device:
        path = Topology(await client.devices()).path(args.device)
        node = (await client.resolve(path))["device"]
    first = await _look(client, node)
    if args.once or getattr(args, "json", False):
        return Answer(first)
    await _follow(client, node, first)
    return Answer(None)


async def _look(client: Client, node: str) -> list[Dict]:
    found = rows(*await asyncio.gather(client.usage(), client.promises(), client.devices()))
    return [row for row in found if node in ("", row["device"])]


async def _follow(client: Client, node: str, found: list[Dict]) -> None:
    """Draw until q or Ctrl-C."""
    from . import show_promises, text

    quit_ = interrupted()
    loop = asyncio.get_running_loop()
    out = text.console()
    with _keys(quit_), show_promises.screen(out) as draw:
        # The loop's handler: a signal's own would draw in the middle of drawing.
        loop.add_signal_handler(signal.SIGWINCH, lambda: draw(found))
        note = ""
        while True:
            draw(found, note)
            if await wait(quit_, PERIOD_S):
                return
            try:
                found, note = await _look(client, node), ""
            except NotRunning as error:
                note = f"{error.message}; waiting for it"


@contextlib.contextmanager
def _keys(quit_: asyncio.Event) -> Iterator[None]:
    """While in it, the key q on a terminal sets the event."""
    if not (sys.stdin and sys.stdin.isatty() and sys.stdout.isatty()):
        yield
        return
    before = termios.tcgetattr(sys.stdin)
    loop = asyncio.get_running_loop()

    def pressed() -> None:
        typed = sys.stdin.buffer.raw.read(100)
        if not typed or set(typed) & set(b"qQ\x04"):
            quit_.set()

    tty.setcbreak(sys.stdin)
    loop.add_reader(sys.stdin, pressed)
    try:
        yield
    finally:
        loop.remove_reader(sys.stdin)
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
