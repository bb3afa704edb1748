# SPDX-License-Identifier: LGPL-2.1-or-later
"""A client of the QEMU guest agent: run a command in the guest and get its status and output.

One JSON object per line each way over a socket. The agent may not be up yet and may have answers
of an earlier conversation in its queue, so connect() repeats guest-sync with fresh numbers until
the last of them comes back.
"""

import base64
import json
import secrets
import select
import socket
import time
from collections.abc import Callable

from .progress import LabError

POLL_S = 0.1
# A busy emulated guest may think for seconds before it answers.
ANSWER_S = 60.0


class GuestGone(LabError):
    """The guest ended or stopped answering while something was expected of it."""


class Agent:
    """The agent at the other end of a connected socket."""

    def __init__(self, channel: socket.socket):
        self._channel = channel
        self._buffer = b""

    def connect(self, timeout_s: float, still_alive: Callable[[], None]) -> None:
        """Wait until the agent answers; still_alive() raises when waiting has become pointless."""
        deadline = time.monotonic() + timeout_s
        first = number = secrets.randbits(48)
        heard = False
        while time.monotonic() < deadline:
            still_alive()
            until = time.monotonic() + 1.0
            # Before the agent is up, about a hundred questions fill the channel. Once it has begun
            # to answer them, no further question is needed.
            if not heard and select.select([], [self._channel], [], 0)[1]:
                number += 1
                self._send({"execute": "guest-sync", "arguments": {"id": number}})
            while (answer := self._receive(until)) is not None:
                found = answer.get("return")
                if found == number:
                    return
                heard = heard or (isinstance(found, int) and first < found < number)
        raise GuestGone(f"the guest's agent did not answer within {timeout_s:.0f} s")

    def call(self, command: str, **arguments: object) -> object:
        """Send one command of the agent's protocol, and return its result."""
        self._send({"execute": command, "arguments": arguments})
        answer = self._receive(time.monotonic() + ANSWER_S)
        if answer is None:
            raise GuestGone(f"the guest's agent did not answer {command} within {ANSWER_S:.0f} s")
        if "error" in answer:
            raise LabError(f"the guest's agent refused {command}: {answer['error'].get('desc')}")
        return answer["return"]

    def start(self, argv: list[str], *, capture: bool = False) -> int:
        """Start a command in the guest, and return its process id there."""
        result = self.call("guest-exec", path=argv[0], arg=argv[1:], **{"capture-output": capture})
        assert isinstance(result, dict)
        return int(result["pid"])

    def poll(self, pid: int) -> tuple[int, str] | None:
        """Exit status (128 + signal) and captured output of a command; None while it runs."""
        result = self.call("guest-exec-status", pid=pid)
        assert isinstance(result, dict)
        if not result["exited"]:
            return None
        status = result["exitcode"] if "exitcode" in result else 128 + result.get("signal", 0)
        parts = (base64.b64decode(result.get(k, "")) for k in ("out-data", "err-data"))
        return status, b"".join(parts).decode(errors="replace")

    def run(self, argv: list[str], timeout_s: float = 60.0) -> tuple[int, str]:
        """Run a short command, and return its exit status and output."""
        pid = self.start(argv, capture=True)
        deadline = time.monotonic() + timeout_s
        while (result := self.poll(pid)) is None:
            if time.monotonic() > deadline:
                raise LabError(
                    f"`{' '.join(argv)}` did not end in the guest within {timeout_s:.0f} s"
                )
            time.sleep(POLL_S)
        return result

    def _send(self, message: dict[str, object]) -> None:
        # The timeout of the last answer may have been next to nothing.
        self._channel.settimeout(ANSWER_S)
        try:
            self._channel.sendall(json.dumps(message).encode() + b"\n")
        except OSError as error:
            raise GuestGone("the guest ended") from error

    def _receive(self, deadline: float) -> dict | None:
        """The next answer, None at the deadline. Other text is noise of a restart."""
        while True:
            line, newline, rest = self._buffer.partition(b"\n")
            if newline:
                self._buffer = rest
                try:
                    answer = json.loads(line.lstrip(b"\xff"))
                except ValueError:
                    continue
                if isinstance(answer, dict):
                    return answer
                continue
            remaining_s = deadline - time.monotonic()
            if remaining_s <= 0:
                return None
            self._channel.settimeout(remaining_s)
            try:
                data = self._channel.recv(65536)
            except TimeoutError:
                return None
            except OSError as error:
                raise GuestGone("the guest ended") from error
            if not data:
                raise GuestGone("the guest ended")
            self._buffer += data
