# SPDX-License-Identifier: LGPL-2.1-or-later
"""A bus that breaks at each stage of a connection."""

import asyncio
import contextlib
import re
import socket
import threading

import pytest
from conftest import PATIENCE_S, process
from dbus_next import Message, MessageType
from sutro import client, connection
from sutro.errors import SutroError

HELLO_REPLY = Message(
    message_type=MessageType.METHOD_RETURN,
    sender="org.freedesktop.DBus",
    destination=":1.1",
    serial=1,
    reply_serial=1,
    signature="s",
    body=[":1.1"],
)


class FragileBus:
    """A bus that serves one connection up to a stage, then sends `last` and closes it."""

    def __init__(self, path, stage, last=b""):
        self.address = f"unix:path={path}"
        self._stage, self._last = stage, last
        self._stopped = threading.Event()
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(path))
        self._socket.listen()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self):
        connection, _ = self._socket.accept()
        with connection, contextlib.suppress(OSError):
            if self._stage == "accept":
                return
            stream = connection.makefile("rb", buffering=0)
            while (line := stream.readline().strip()) != b"BEGIN":
                if self._stage == "auth":
                    return
                answer = b"OK " + b"0" * 32 if b"AUTH" in line else b"ERROR"
                connection.send(answer + b"\r\n")
            connection.recv(4096)
            if self._stage == "silent hello":
                self._stopped.wait(PATIENCE_S)
            if self._stage.endswith("hello"):
                return
            connection.send(HELLO_REPLY._marshall())
            connection.recv(4096)
            if self._stage == "silence":
                self._stopped.wait(PATIENCE_S)
            connection.send(self._last)

    def stop(self):
        self._stopped.set()
        self._thread.join(PATIENCE_S)
        self._socket.close()


@pytest.mark.parametrize(
    ("stage", "last", "expected"),
    [
        ("accept", b"", "the system bus at "),
        ("auth", b"", "the system bus at "),
        ("hello", b"", "the system bus at "),
        ("call", b"", "the connection to the system bus broke"),
        ("call", b"no D-Bus message at all", "the connection to the system bus broke"),
    ],
)
def test_bus_that_breaks(tmp_path, stage, last, expected):
    bus = FragileBus(tmp_path / "bus", stage, last)
    run = process("sutroctl", "status", DBUS_SYSTEM_BUS_ADDRESS=bus.address)
    bus.stop()
    assert (run.status, run.out) == (1, "")
    assert run.err.startswith("sutroctl: " + expected) and "Traceback" not in run.err
    assert "see: journalctl -u dbus" in run.err


@pytest.mark.parametrize(
    ("stage", "expected"),
    [
        ("silent hello", r"there is no system bus at .* \(no answer\)"),
        ("silence", "sutrod did not answer Dump within 0 s"),
    ],
)
def test_bus_that_does_not_answer(tmp_path, monkeypatch, stage, expected):
    bus = FragileBus(tmp_path / "bus", stage)
    monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", bus.address)

    def hurry():
        monkeypatch.setattr(connection, "ANSWER_TIMEOUT_S", 0.3)
        monkeypatch.setattr(connection, "PASSWORD_TIMEOUT_S", 0.3)

    async def ask():
        if stage == "silent hello":
            hurry()
        # The other bus answers Hello, which takes long on a busy host.
        async with client.Client() as caller:
            hurry()
            await caller.dump()

    with pytest.raises(SutroError, match=expected) as caught:
        asyncio.run(ask())
    assert re.search("systemctl start dbus|journalctl -u sutrod", caught.value.hint)
    bus.stop()
