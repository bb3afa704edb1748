# SPDX-License-Identifier: LGPL-2.1-or-later
"""The clock of a daemon on a fake machine.

virtualclock.c in the daemon gets the time over a socket, and returns the time of the next timer.
The daemon handles the timers of 2.5 s of its time here:

    clock = Clock(patience_s=60)
    daemon = subprocess.Popen(command, **clock.attach())
    clock.elapse(2.5)
"""

import os
import socket
import struct
from collections.abc import Callable
from typing import Any


class Clock:
    """The clock of the daemon, which stands still unless the test moves it (virtualclock.c)."""

    def __init__(self, patience_s: float) -> None:
        # A reply of the daemon may take this long on the clock of the host.
        self.patience_s = patience_s
        self.now_ns = 10**12
        # CPU time of whatever the daemon measures, such as a call, from the next step on.
        self.cpu_ns = 1000
        self.ours: socket.socket | None = None
        self.theirs: socket.socket | None = None
        # Each is called with the seconds that will have passed when the daemon runs next.
        self.loads: list[Callable[[float], None]] = []

    def attach(self) -> dict[str, Any]:
        """The arguments of subprocess.Popen() for the next daemon."""
        self.detach()
        self.ours, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.ours.settimeout(self.patience_s)
        return {
            "pass_fds": [self.theirs.fileno()],
            "env": os.environ | {"SUTRO_CLOCK": f"{self.theirs.fileno()} {self.now_ns}"},
        }

    def detach(self) -> None:
        """Close what belongs to the last daemon."""
        for end in (self.ours, self.theirs):
            if end:
                end.close()
        self.ours = self.theirs = None

    def settle(self, hold: bool = False, look_ns: int = 0) -> int:
        """Let the daemon handle all that is there; return the time of its next timer.

        With hold it handles nothing after that until it is called again. Each of its looks at what
        is ready takes look_ns; it handles one thing after a look.
        """
        assert self.ours and self.theirs
        self.theirs.close()
        self.ours.send(struct.pack("=QQQQ", self.now_ns, hold, look_ns, self.cpu_ns))
        reply = self.ours.recv(16)
        assert reply, "the daemon has ended"
        next_ns, self.now_ns = struct.unpack("=QQ", reply)
        return int(next_ns)

    def elapse(self, seconds: float) -> None:
        """Let time pass, from one timer of the daemon to the next."""
        end_ns = self.now_ns + round(seconds * 1e9)
        while self.now_ns < end_ns:
            # A call may begin a sample at any time, but not while the counters change.
            due_ns = max(self.settle(hold=True), self.now_ns)
            before_ns, self.now_ns = self.now_ns, min(due_ns, end_ns)
            for load in self.loads:
                load((self.now_ns - before_ns) / 1e9)
        self.settle()
