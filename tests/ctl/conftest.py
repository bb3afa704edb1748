# SPDX-License-Identifier: LGPL-2.1-or-later
"""A private system bus with a mocked systemd and a mocked sutrod, and the real sutroctl.

The services live as long as the test run; Reset gives each test their first state.
"""

import contextlib
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import dbus
import pytest
from dbusmock import MOCK_IFACE, BusType, PrivateDBus
from hypothesis import settings

HERE = Path(__file__).parent
POLICIES = HERE.parent.parent / "policies"

settings.register_profile("busy machine", deadline=None)
settings.load_profile("busy machine")


@dataclass
class Run:
    """What a run of sutroctl left behind."""

    status: int
    out: str
    err: str

    def json(self):
        """The JSON on stdout of a run that went well."""
        assert (self.status, self.err) == (0, "")
        return json.loads(self.out)


def environment():
    """A poor, but whole environment."""
    keep = {key: os.environ.get(key, "") for key in ("PATH", "DBUS_SYSTEM_BUS_ADDRESS")}
    return keep | {"PYTHONPATH": str(POLICIES), "PYTHONDONTWRITEBYTECODE": "1", "LANG": "C.UTF-8"}


def sutroctl(*args, **more):
    """Run the command."""
    run = subprocess.run(
        [sys.executable, POLICIES / "sutroctl", *args],
        env=environment() | more,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "Traceback" not in run.stderr, run.stderr
    return Run(run.returncode, run.stdout, run.stderr)


@contextlib.contextmanager
def running(*command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, **more):
    """A program that goes on until the test stops it."""
    process = subprocess.Popen(
        [sys.executable, POLICIES / command[0], *command[1:]],
        env=environment() | more,
        stdin=stdin,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def eventually(condition, timeout_s=20):
    """Wait until something is true."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.02)


class Service:
    """A mocked service: a process that runs one template."""

    def __init__(self, bus, name, path):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "dbusmock", "--system", "-t", HERE / f"mock_{name}.py"],
            stdout=subprocess.DEVNULL,
        )
        bus.bustype.wait_for_bus_object(*path)
        # Not the process-wide connection: there is one bus after the other.
        connection = dbus.bus.BusConnection(bus.address)
        self.mock = dbus.Interface(connection.get_object(*path), MOCK_IFACE)

    def calls(self, member):
        """The arguments of each call of a method since the last Reset."""
        return [list(call[1]) for call in self.mock.GetMethodCalls(member)]

    def stop(self):
        self.process.terminate()
        self.process.wait(10)


@pytest.fixture(scope="session")
def system_bus():
    with PrivateDBus(BusType.SYSTEM) as bus:
        yield bus


@pytest.fixture(scope="session")
def systemd_process(system_bus):
    service = Service(
        system_bus, "systemd1", ("org.freedesktop.systemd1", "/org/freedesktop/systemd1")
    )
    yield service
    service.stop()


@pytest.fixture(scope="session")
def sutrod_process(system_bus):
    service = Service(system_bus, "sutro1", ("org.sutro1", "/org/sutro1"))
    yield service
    service.stop()


@pytest.fixture
def systemd(systemd_process):
    systemd_process.mock.Reset()
    systemd_process.mock.ClearCalls()
    return systemd_process


@pytest.fixture
def sutrod(systemd, sutrod_process):
    sutrod_process.mock.Reset()
    sutrod_process.mock.ClearCalls()
    return sutrod_process


@pytest.fixture
def promised(sutrod):
    """A sutrod that has promises."""
    sutrod.mock.Promise()
    return sutrod
