# SPDX-License-Identifier: LGPL-2.1-or-later
"""A test that a signal ends: it restores the machine, and shows the runs that came to their end.

    SIGINT after 5 of 12 runs -> run stopped -> machine restored -> results of 5 runs, status 130

The rest is a command line: with it, the experiments that are not complete are run from their
begin. Signals that were ignored stay ignored, as under nohup(1).
"""

import argparse
import asyncio
import shlex
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Self

from .plan import Step

Dict = dict[str, Any]

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stops:
    """The first of SIGNALS cancels the task inside `async with`, which ends without an error then.

    `number` is that signal, None without one.
    """

    def __init__(self) -> None:
        self.number: signal.Signals | None = None

    async def __aenter__(self) -> Self:
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        self._caught = [one for one in SIGNALS if signal.getsignal(one) is not signal.SIG_IGN]
        for number in self._caught:
            self._loop.add_signal_handler(number, self._stop, number)
        return self

    def _stop(self, number: signal.Signals) -> None:
        if self._task and not self.number:
            self.number = number
            self._task.cancel()

    async def __aexit__(self, kind: object, *_: object) -> bool:
        for number in self._caught:
            self._loop.remove_signal_handler(number)
        if not self.number or not self._task:
            return False
        if kind is not asyncio.CancelledError:
            # The signal came after the last wait, and would cancel the next one.
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0)
        self._task.uncancel()
        return kind is asyncio.CancelledError


@contextmanager
def undisturbed() -> Iterator[None]:
    """A second Ctrl-C does not end the restoration."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def partial(
    number: signal.Signals, steps: Sequence[Step], done: Sequence[Step], args: argparse.Namespace
) -> Dict:
    """The part of the data about the runs that were not done."""
    missing = list(dict.fromkeys(one.experiment.name for one in steps if one not in done))
    words = ["sutroctl", "test", args.device, f"--duration={args.duration}"]
    words += [f"--only={name}" for name in missing]
    words += [f"--schedulers={args.schedulers}"] if args.schedulers else []
    words += [f"--write={args.write}"] if args.write else []
    return {
        "signal": number.name,
        "runs": len(steps),
        "done": len(done),
        "missing": missing,
        "command": shlex.join(words),
    }


def notes(data: Dict) -> list[str]:
    """The lines for people about partial data."""
    return [
        f"PARTIAL: {data['signal']} ended the test after {data['done']} of {data['runs']} runs; "
        f"not complete: {', '.join(data['missing'])}.",
        f"To go on with these: {data['command']}",
    ]
