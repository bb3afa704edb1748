# SPDX-License-Identifier: LGPL-2.1-or-later
"""Keys and mouse clicks, from the bytes that a terminal sends.

A key is its character, or a name: "up", "enter". The mouse is reported in the SGR form (xterm's
mode 1006), `ESC [ < button ; column ; line M`, which every terminal of today has.
"""

import asyncio
import contextlib
import re
import sys
import termios
import tty
from collections.abc import Iterator
from dataclasses import dataclass

MOUSE_ON, MOUSE_OFF = "\x1b[?1000h\x1b[?1006h", "\x1b[?1006l\x1b[?1000l"

NAMES = {
    b"\x1b[A": "up",
    b"\x1b[B": "down",
    b"\x1b[C": "right",
    b"\x1b[D": "left",
    b"\x1b[H": "home",
    b"\x1b[F": "end",
    b"\x1b[1~": "home",
    b"\x1b[4~": "end",
    b"\x1b[5~": "page-up",
    b"\x1b[6~": "page-down",
    b"\r": "enter",
    b"\n": "enter",
    b"\x7f": "backspace",
    b"\x08": "backspace",
    b"\x1b": "escape",
    b"\x04": "q",
}
_ONE = re.compile(
    rb"\x1b\[<(?P<button>\d+);(?P<column>\d+);(?P<line>\d+)(?P<press>[Mm])"
    rb"|\x1b(?:\[[0-9;?]*[ -/]*[@-~]|O[@-~])"
    rb"|[\xc0-\xff][\x80-\xbf]+|.",
    re.DOTALL,
)
LEFT, WHEEL = 0, {64: "up", 65: "down"}


@dataclass(frozen=True)
class Click:
    """A press of the left button; line and column count from 0."""

    line: int
    column: int


Event = str | Click


def decode(typed: bytes) -> list[Event]:
    """The keys and clicks in bytes of a terminal; unknown sequences are left out."""
    # Cursor keys are ESC O A in the application mode of a terminal.
    typed = re.sub(rb"\x1bO([A-DHF])", b"\x1b[\\1", typed)
    found: list[Event] = []
    for one in _ONE.finditer(typed):
        if one["button"]:
            button = int(one["button"])
            if one["press"] == b"M" and button in WHEEL:
                found.append(WHEEL[button])
            elif one["press"] == b"M" and button == LEFT:
                found.append(Click(int(one["line"]) - 1, int(one["column"]) - 1))
        elif one[0] in NAMES:
            found.append(NAMES[one[0]])
        elif (text := one[0].decode(errors="replace")).isprintable():
            found.append(text)
    return found


@contextlib.contextmanager
def keyboard(events: asyncio.Queue[Event]) -> Iterator[None]:
    """Within this context, put keys and clicks on the terminal into the queue."""
    if not sys.stdin or not sys.stdin.isatty():
        yield
        return
    before = termios.tcgetattr(sys.stdin)
    loop = asyncio.get_running_loop()

    def pressed() -> None:
        # The end of the file is the end of the terminal.
        for event in decode(sys.stdin.buffer.raw.read(1024) or b"q"):
            events.put_nowait(event)

    tty.setcbreak(sys.stdin)
    loop.add_reader(sys.stdin, pressed)
    sys.stdout.write(MOUSE_ON)
    sys.stdout.flush()
    try:
        yield
    finally:
        sys.stdout.write(MOUSE_OFF)
        sys.stdout.flush()
        loop.remove_reader(sys.stdin)
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
