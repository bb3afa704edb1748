# SPDX-License-Identifier: LGPL-2.1-or-later
"""A sutrod on a fake machine whose clock goes on by itself, for programs that poll it."""

import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fakemachine import INTERFACE, STEP_S, Bus, Machine, Sutrod


class LiveDaemon(Sutrod):
    """The daemon; its clock runs `rate` times as fast as that of the host.

    serve writes the counters of the machine at a time in seconds.
    """

    def __init__(
        self,
        bus: Bus,
        machine: Machine,
        directory: Path,
        *,
        serve: Callable[[float], None],
        rate: float,
    ) -> None:
        super().__init__(bus, machine, directory)
        self.rate = rate
        self.lock = threading.Lock()
        self.ending = threading.Event()
        self.clock.loads.append(lambda _: serve(self.clock.now_ns / 1e9))
        self.thread = threading.Thread(target=self.tick)

    def tick(self) -> None:
        """Move the clock while the daemon runs."""
        while not self.ending.wait(STEP_S / self.rate):
            with self.lock:
                if self.process and self.process.poll() is None:
                    self.clock.elapse(STEP_S)

    def start(self, *arguments: str, **environment: str) -> None:
        with self.lock:
            super().start(*arguments, **environment)

    def stop(self, number: int = signal.SIGTERM) -> int:
        with self.lock:
            return super().stop(number)

    def end(self) -> None:
        """End the clock, then the daemon."""
        self.ending.set()
        self.thread.join()
        super().end()

    def call(self, method: str, *arguments: Any) -> Any:
        """Call a method; the clock needs no help."""
        return getattr(self.proxy(), method)(*arguments, dbus_interface=INTERFACE)

    def elapse(self, seconds: float) -> None:
        with self.lock:
            super().elapse(seconds)
