# SPDX-License-Identifier: LGPL-2.1-or-later
"""A private system bus with a mocked systemd and a mocked sutrod, and the real sutroctl.

The services live as long as the test run; Reset gives each test their first state.
"""

import contextlib
import io
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import dbus
import pytest
from dbusmock import MOCK_IFACE, BusType
from hypothesis import settings
from privatebus import PrivateBus
from sutro import sutroctl as command

HERE = Path(__file__).parent
POLICIES = HERE.parent.parent / "policies"
SUTROD = ("org.sutro1", "/org/sutro1")
SYSTEMD = ("org.freedesktop.systemd1", "/org/freedesktop/systemd1")
NOWHERE = {"DBUS_SYSTEM_BUS_ADDRESS": "unix:path=/nonexistent/bus"}
# For what happens at once on an idle machine.
PATIENCE_S = 60

# "meson test --suite long" sets HYPOTHESIS_PROFILE=long.
settings.register_profile("short", deadline=None, max_examples=25)
settings.register_profile("long", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "short"))


@dataclass
class Run:
    """Status and output of a run of sutroctl."""

    status: int
    out: str
    err: str

    def __post_init__(self):
        assert "Traceback" not in self.err, self.err

    def json(self):
        """The JSON on stdout of a run without errors."""
        assert (self.status, self.err) == (0, "")
        return json.loads(self.out)


def environment():
    """A small environment that is enough for a program."""
    keep = {key: os.environ.get(key, "") for key in ("PATH", "DBUS_SYSTEM_BUS_ADDRESS")}
    return keep | {"PYTHONPATH": str(POLICIES), "PYTHONDONTWRITEBYTECODE": "1", "LANG": "C.UTF-8"}


def sutroctl(*args, **more):
    """Run the command line in this process: ten times as fast as a process of its own."""
    out, err = io.StringIO(), io.StringIO()
    with (
        patch.dict(os.environ, environment() | more, clear=True),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            status = command.main(list(args))
        except SystemExit as exit_:
            status = exit_.code
    return Run(status, out.getvalue(), err.getvalue())


def process(program, *args, **more):
    """Run a program of policies/ as a process, to its end."""
    run = subprocess.run(
        [sys.executable, POLICIES / program, *args],
        env=environment() | more,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
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


def eventually(condition):
    """Wait until something is true."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"not true after {PATIENCE_S} s"
        time.sleep(0.02)


class Service:
    """A mocked service: a process that runs one template."""

    def __init__(self, bus, template, service):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "dbusmock", "--system", "-t", HERE / template],
            stdout=subprocess.DEVNULL,
        )
        # Not the process-wide connection: there is one bus after the other.
        self.connection = dbus.bus.BusConnection(bus.address)
        self.connection.set_exit_on_disconnect(False)
        self.name = service[0]
        BusType.SYSTEM.wait_for_bus_object(*service)
        self.mock = dbus.Interface(self.connection.get_object(*service), MOCK_IFACE)

    def calls(self, member):
        """The arguments of each call of a method since the last Reset."""
        return [list(call[1]) for call in self.mock.GetMethodCalls(member)]

    def reset(self):
        """Back to the first state, without calls."""
        self.mock.Reset()
        self.mock.ClearCalls()
        return self

    def stop(self):
        """End the process; the bus has noticed it."""
        self.process.kill()
        self.process.wait()
        eventually(lambda: not self.connection.name_has_owner(self.name))


@pytest.fixture(scope="session")
def system_bus():
    bus = PrivateBus()
    yield bus
    bus.stop()


@pytest.fixture
def own_bus(monkeypatch):
    """A bus of its own without services."""
    monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", "")
    bus = PrivateBus()
    yield bus
    bus.stop()


@pytest.fixture(scope="session")
def systemd_process(system_bus):
    return Service(system_bus, "mock_systemd1.py", SYSTEMD)


@pytest.fixture(scope="session")
def sutrod_process(system_bus):
    return Service(system_bus, "mock_sutro1.py", SUTROD)


@pytest.fixture
def systemd(systemd_process):
    return systemd_process.reset()


@pytest.fixture
def sutrod(systemd, sutrod_process):
    return sutrod_process.reset()


@pytest.fixture
def promised(sutrod):
    """A sutrod that has promises."""
    sutrod.mock.Promise()
    return sutrod
