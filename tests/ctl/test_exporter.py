# SPDX-License-Identifier: LGPL-2.1-or-later
"""The exporter as a service: its socket, formats, log and clients.

test_metrics.py has the values of the metrics.
"""

import contextlib
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request

import pytest
from conftest import NOWHERE, POLICIES, environment
from fakemachine import PATIENCE_S
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from samples import samples, value
from sutro.exporter import Handler, Server

OPENMETRICS = "application/openmetrics-text; version=1.0.0"

AS_SYSTEMD = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()))
os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
"""


def start_exporter(*program, **more):
    """The program with a socket as systemd hands it over, and its address.

    `program`: words for Python, instead of the name of the program.
    """
    listening = socket.create_server(("127.0.0.1", 0))
    port, fd = listening.getsockname()[1], listening.fileno()
    process = subprocess.Popen(
        [sys.executable, "-c", AS_SYSTEMD, str(fd), *(program or (POLICIES / "sutro-exporter",))],
        env=environment() | more,
        pass_fds=[fd],
        stderr=subprocess.PIPE,
        text=True,
    )
    listening.close()
    return process, f"http://127.0.0.1:{port}"


def stop(process):
    """End the program; returns its log."""
    process.terminate()
    return process.communicate(timeout=PATIENCE_S)[1]


@pytest.fixture
def exporter(promised):
    process, address = start_exporter()
    yield address
    assert stop(process) == ""


def get(address, accept=""):
    request = urllib.request.Request(address, headers={"Accept": accept})
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as reply:
        return reply.headers["Content-Type"], reply.read().decode()


def test_exporter(exporter):
    """Both formats; another path is an error, after which the next scrape is served."""
    kind, text = get(exporter + "/metrics")
    assert kind.startswith("text/plain") and value(samples(text), "sutro_up") == 1
    with pytest.raises(urllib.error.HTTPError) as caught:
        get(exporter + "/")
    assert caught.value.code == 404
    kind, text = get(exporter + "/metrics", OPENMETRICS)
    assert kind.startswith("application/openmetrics-text") and text.endswith("# EOF\n")
    values = samples(text, parse_openmetrics)
    assert value(values, "sutro_promise_broken", unit="web.service", key="ReadBandwidthMin") == 1


def test_exporter_logs_why_sutrod_does_not_answer():
    """Once, not with each scrape."""
    process, address = start_exporter(**NOWHERE)
    for _ in range(2):
        assert "sutro_up 0.0" in get(address + "/metrics")[1]
    assert stop(process) == (
        "sutro-exporter: there is no system bus at unix:path=/nonexistent/bus (No such file or "
        "directory); start it: systemctl start dbus, or correct DBUS_SYSTEM_BUS_ADDRESS\n"
    )


def test_exporter_survives_a_client_that_leaves(exporter):
    host, port = exporter.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as rude:
        rude.sendall(b"GET /metrics HTTP/1.1\r\nHos")
    assert "sutro_up 1.0" in get(exporter + "/metrics")[1]


def test_exporter_does_not_wait_for_a_slow_client(monkeypatch):
    """Its bytes come one by one, each before the timeout of the socket, until others are served."""
    monkeypatch.setattr(Handler, "timeout", 0.5)
    listening = socket.create_server(("127.0.0.1", 0))
    server = threading.Thread(target=Server(listening, None, idle_s=0.5).run)
    server.start()
    sending, served = threading.Event(), threading.Event()

    def send():
        with contextlib.suppress(OSError), socket.create_connection(where) as slow:
            slow.sendall(b"GET /slow HTTP/1.1\r\nX: ")
            while not served.wait(0.1):
                sending.set()
                slow.sendall(b"x")

    where = listening.getsockname()
    slow = threading.Thread(target=send)
    slow.start()
    assert sending.wait(PATIENCE_S)
    try:
        with pytest.raises(urllib.error.HTTPError) as caught:
            get(f"http://127.0.0.1:{where[1]}/")
        assert caught.value.code == 404
    finally:
        served.set()
    for thread in (slow, server):
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
    listening.close()


def listen(address: str) -> subprocess.CompletedProcess[str]:
    """An exporter that ends because it cannot listen."""
    return subprocess.run(
        [sys.executable, POLICIES / "sutro-exporter", "--listen", address],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )


@pytest.mark.parametrize("address", ["nonsense", "127.0.0.1:http", "127.0.0.1:70000", "\u200b:1"])
def test_exporter_with_an_address_that_cannot_be(address):
    run = listen(address)
    assert run.returncode == 2 and f"'{address}' is no ADDRESS:PORT" in run.stderr


def test_exporter_with_an_address_in_use():
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = "{}:{}".format(*other.getsockname())
        run = listen(address)
    assert (run.returncode, run.stdout) == (1, "")
    assert run.stderr.startswith(f"sutro-exporter: {address}: Address already in use")
    assert run.stderr.endswith("name another address: --listen 127.0.0.1:PORT\n")
