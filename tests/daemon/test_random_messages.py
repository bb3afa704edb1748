# SPDX-License-Identifier: LGPL-2.1-or-later
"""Random messages of two clients of the varlink socket, some of which are no JSON.

Each reply is a valid one, a call of a usual form has exactly one, others than these clients are
served afterwards, and nothing on the machine has changed. test_random_calls.py has the bus, and
explains SUTRO_FUZZ_SECONDS.
"""

import contextlib
import json
import re

from fakemachine import Machine, Sutrod, Systemd
from hypothesis import strategies as st
from test_random_calls import TEXT, fuzz, snapshot
from test_varlink import INTERFACE, METHODS, METRICS, Link, link

SERVICE = "org.varlink.service"
CALLS = [
    *(f"{INTERFACE}.{name}" for name in (*METHODS, "NoSuchMethod")),
    *(f"{METRICS}.List", f"{METRICS}.Describe", f"{SERVICE}.GetInfo", "io.sutro.Other.List"),
]
# sd-varlink closes a connection that calls these.
ODD = ["", "ListDevices", f"{SERVICE}.GetInterfaceDescription", ".", f"{INTERFACE}."]
ERROR = r"(org\.varlink\.service|io\.sutro\.Status|io\.systemd)\.[A-Z]\w+"
VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=8,
)
USUAL = st.fixed_dictionaries({"method": st.sampled_from(CALLS), "parameters": st.just({})})
UNUSUAL = st.fixed_dictionaries(
    {"method": st.sampled_from([*CALLS, *ODD]) | VALUE},
    optional={
        "parameters": st.sampled_from([{}, {"interface": INTERFACE}]) | VALUE,
        "more": st.just(True) | VALUE,
        "oneway": st.just(True) | VALUE,
        "upgrade": VALUE,
        "else": VALUE,
    },
)
BYTES = st.binary(max_size=200) | st.integers(0, 5000).map(lambda depth: depth * b'{"a":')
MESSAGE = USUAL | USUAL | UNUSUAL | BYTES
LEAVES = None
EXAMPLE = st.lists(st.tuples(st.sampled_from([0, 0, 1]), MESSAGE) | st.just(LEAVES), max_size=24)


class Client(Link):
    """A connection, with the number of calls before the first message that may end it."""

    def __init__(self, sutrod: Sutrod) -> None:
        super().__init__(sutrod)
        self.usual, self.is_usual = 0, True

    def put(self, message: dict | bytes) -> None:
        """Send a message; the daemon may have closed the connection."""
        self.is_usual &= (
            isinstance(message, dict)
            and message["method"] in CALLS
            and message == {"method": message["method"], "parameters": {}}
        )
        self.usual += self.is_usual
        text = message if isinstance(message, bytes) else json.dumps(message).encode()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.socket.sendall(text + b"\0")

    def check(self) -> None:
        """Read what has come; each reply is valid, and each usual call has its own."""
        self.socket.setblocking(False)
        with contextlib.suppress(BlockingIOError, ConnectionResetError):
            while received := self.socket.recv(65536):
                self.buffer += received
        *replies, rest = self.buffer.split(b"\0")
        assert not rest
        for reply in map(json.loads, replies):
            assert reply.keys() <= {"parameters", "error", "continues"}, reply
            assert isinstance(reply.get("parameters", {}), dict), reply
            assert "error" not in reply or re.fullmatch(ERROR, reply["error"]), reply
        assert len(replies) >= self.usual
        assert not self.is_usual or len(replies) == self.usual


def test_random_messages(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    systemd.start("a.service", 200)
    sutrod.start()
    before = snapshot(machine)

    def check(example: list[tuple[int, dict | bytes] | None]) -> None:
        clients = [Client(sutrod), Client(sutrod)]
        for entry in example:
            if entry is LEAVES:
                clients[1].socket.close()
                clients[1] = Client(sutrod)
            else:
                clients[entry[0]].put(entry[1])
        sutrod.settle()
        sutrod.elapse(1.5)
        for client in clients:
            client.check()
            client.socket.close()
        sutrod.settle()
        with link(sutrod) as other:
            assert other.call("ListUnits")["parameters"]["units"]
        assert snapshot(machine) == before

    fuzz(EXAMPLE, check)
