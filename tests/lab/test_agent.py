# SPDX-License-Identifier: LGPL-2.1-or-later
"""The client of the guest agent against an agent that is late, as on a busy machine."""

import json
import select
import socket
import threading
import time

from lab.agent import Agent


def test_an_agent_that_is_very_late() -> None:
    """Questions fill the channel while no agent reads; it answers all of them when it comes."""
    ours, theirs = socket.socketpair()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)  # the least there is: a few questions
    agent = Agent(ours)
    full = threading.Event()

    def answer() -> None:
        full.wait()
        for line in theirs.makefile("r"):
            time.sleep(1.2)  # longer than one question is waited for
            number = json.loads(line)["arguments"]["id"]
            theirs.sendall(json.dumps({"return": number}).encode() + b"\n")

    def still_alive() -> None:
        if not select.select([], [ours], [], 0)[1]:
            full.set()

    threading.Thread(target=answer, daemon=True).start()
    agent.connect(60, still_alive)
    assert full.is_set()
    ours.close()
