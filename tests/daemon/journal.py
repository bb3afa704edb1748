# SPDX-License-Identifier: LGPL-2.1-or-later
"""The journal of a test: a socket that receives what the daemon sends to systemd-journald."""

import re
import socket
import struct
import threading
from pathlib import Path

from fakemachine import TOP, wait_until

EVENTS = dict(re.findall(r'\[EVENT_(\w+)\] = "(\w+)"', (TOP / "daemon/host/event.c").read_text()))
ENTRIES = re.split(r"(?m)^-- ([0-9a-f]{32})$", (TOP / "dist/sutro.catalog").read_text())
CATALOG = dict(zip(ENTRIES[1::2], ENTRIES[2::2], strict=True))
MARK = b"MARK"


def parse(datagram: bytes) -> dict[str, str]:
    """The fields of a message in the protocol of sd_journal_sendv(3)."""
    fields = {}
    while datagram:
        line, _, datagram = datagram.partition(b"\n")
        name, equals, value = line.partition(b"=")
        if not equals:
            (size,) = struct.unpack_from("<Q", datagram)
            value, datagram = datagram[8 : 8 + size], datagram[9 + size :]
        fields[name.decode()] = value.decode()
    return fields


class Journal:
    """All messages with an id, in their order."""

    def __init__(self, path: Path) -> None:
        self.received: list[dict[str, str]] = []
        self.marks = 0
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(path))
        self.environment = {"JOURNAL_STREAM": "1:1", "SUTRO_JOURNAL": str(path)}
        self.path = path
        self.thread = threading.Thread(target=self.receive)
        self.thread.start()

    def receive(self) -> None:
        """Store messages until an empty one arrives: a full socket would stop the daemon."""
        while datagram := self.socket.recv(65536):
            if datagram == MARK:
                self.marks += 1
            else:
                self.received.append(parse(datagram))

    def send(self, datagram: bytes) -> None:
        """Send something behind all messages that were sent before."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.sendto(datagram, str(self.path))

    def of(self, event: str) -> list[dict[str, str]]:
        """The messages of an event; each has all fields that its catalog entry names."""
        wanted = self.marks + 1
        self.send(MARK)
        wait_until(lambda: self.marks >= wanted)
        identifier = EVENTS[event]
        found = [m for m in self.received if m["MESSAGE_ID"] == identifier]
        named = set(re.findall(r"@(\w+)@", CATALOG[identifier]))
        assert all(m["MESSAGE"] and named <= set(m) for m in found)
        return found

    def close(self) -> None:
        """End the thread."""
        self.send(b"")
        self.thread.join()
        self.socket.close()
