# SPDX-License-Identifier: LGPL-2.1-or-later
"""The exporter as a service: its socket, formats, log and command line.

test_metrics.py has the values of the metrics, and tests/unit/test-exporter-http.c slow clients.
"""

import contextlib
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import EXPORTER, NOWHERE, environment
from fakemachine import PATIENCE_S, paused, wait_until
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from samples import samples, value

OPENMETRICS = "application/openmetrics-text; version=1.0.0"
# scrape_timeout= of Prometheus, unless it is set.
SCRAPE_S = 10.0

# The number of a socket, how often it is passed, and the program.
AS_SYSTEMD = """
import os, sys
for number in range(int(sys.argv[2])):
    os.dup2(int(sys.argv[1]), 3 + number)
os.environ.update(LISTEN_FDS=sys.argv[2], LISTEN_PID=str(os.getpid()))
os.execv(sys.argv[3], sys.argv[3:])
"""


def start_exporter(root, program=EXPORTER, **more):
    """The program with a socket as systemd hands it over, and its address."""
    listening = socket.create_server(("127.0.0.1", 0))
    port, fd = listening.getsockname()[1], listening.fileno()
    process = subprocess.Popen(
        [sys.executable, "-c", AS_SYSTEMD, str(fd), "1", program, f"--root={root}"],
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
    process, address = start_exporter(promised.machine.root)
    yield address
    assert stop(process) == ""


def get(address, accept=""):
    request = urllib.request.Request(address, headers={"Accept": accept})
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as reply:
        return reply.headers["Content-Type"], reply.read().decode()


@contextlib.contextmanager
def get_later(address):
    """Send a request; a function that returns the text of the answer."""
    with ThreadPoolExecutor(1) as pool:
        reply = pool.submit(get, address)
        yield lambda: reply.result(PATIENCE_S)[1]


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
    process, address = start_exporter("", **NOWHERE)
    for _ in range(2):
        assert "sutro_up 0.0" in get(address + "/metrics")[1]
    assert stop(process) == (
        "sutro-exporter: there is no system bus at unix:path=/nonexistent/bus (No such file or "
        "directory); start it: systemctl start dbus, or correct DBUS_SYSTEM_BUS_ADDRESS\n"
    )


def test_exporter_logs_a_daemon_that_hangs(promised):
    """It is down long before Prometheus gives up, and that it answers again is logged, too."""
    process, address = start_exporter(promised.machine.root)
    with promised.lock, paused(promised.process):
        assert "sutro_up 0.0" in get(address + "/metrics")[1]
    assert "sutro_up 1.0" in get(address + "/metrics")[1]
    first, second = stop(process).splitlines()
    (seconds,) = re.findall(
        "^sutro-exporter: sutrod did not answer within ([0-9]+) s; see: systemctl status sutrod$",
        first,
    )
    assert int(seconds) <= SCRAPE_S / 2
    assert second == "sutro-exporter: sutrod answers again"


def test_clients_of_an_exporter_whose_daemon_hangs(promised):
    """They wait for the daemon together, not one after the other."""
    process, address = start_exporter(promised.machine.root)
    with promised.lock, paused(promised.process), ThreadPoolExecutor(6) as pool:
        began = time.monotonic()
        replies = [pool.submit(get, address + "/metrics") for _ in range(6)]
        assert all("sutro_up 0.0" in reply.result(PATIENCE_S)[1] for reply in replies)
        # Six calls that wait for 5 s each take 30.
        assert time.monotonic() - began < 2 * SCRAPE_S
    assert "sutro_up 1.0" in get(address + "/metrics")[1]
    assert len(stop(process).splitlines()) == 2


def test_exporter_logs_a_bus_that_closes_the_connection(tmp_path):
    """As dbus-daemon does with users that it cannot look up."""
    with socket.socket(socket.AF_UNIX) as bus:
        bus.bind(str(tmp_path / "bus"))
        bus.listen()
        address = f"unix:path={tmp_path}/bus"
        process, exporter = start_exporter("", DBUS_SYSTEM_BUS_ADDRESS=address)
        with get_later(exporter + "/metrics") as reply:
            bus.accept()[0].close()
            assert 'sutro_down_info{reason="bus-unavailable"} 1.0' in reply()
    log = stop(process)
    assert log.startswith(f"sutro-exporter: the system bus at {address} closed the connection of ")
    assert log.endswith("dbus-daemon refuses users of DynamicUser=\n")


def test_exporter_with_an_address_that_is_none():
    process, address = start_exporter("", DBUS_SYSTEM_BUS_ADDRESS="nonsense")
    assert 'sutro_down_info{reason="bus-unavailable"} 1.0' in get(address + "/metrics")[1]
    log = stop(process)
    assert log.startswith("sutro-exporter: there is no system bus at nonsense (")
    assert log.endswith("correct DBUS_SYSTEM_BUS_ADDRESS\n")


def test_exporter_ends_with_ctrl_c():
    process, address = start_exporter("", **NOWHERE)
    get(address + "/metrics")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0


# The command line.


def run(*words: str) -> subprocess.CompletedProcess[str]:
    """The exporter, which ends by itself."""
    return subprocess.run(
        [EXPORTER, *words],
        env=environment() | NOWHERE,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "localhost"])
def test_exporter_listens_without_systemd(host):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host.strip("[]"), 0), family=family) as other:
        port = other.getsockname()[1]
    process = subprocess.Popen(
        [EXPORTER, "--listen", f"{host}:{port}"],
        env=environment() | NOWHERE,
        stderr=subprocess.PIPE,
        text=True,
    )
    address = f"http://{host}:{port}/metrics"
    try:
        wait_until(lambda: is_there(address))
        assert "sutro_up 0.0" in get(address)[1]
    finally:
        stop(process)


def is_there(address):
    """Does the exporter listen already?"""
    try:
        get(address)
    except urllib.error.URLError:
        return False
    return True


@pytest.mark.parametrize(
    "address",
    ["nonsense", "127.0.0.1:http", "127.0.0.1:70000", "127.0.0.1:-1", "\u200b:1", "[::1]", "a b:1"],
)
def test_exporter_with_an_address_that_cannot_be(address):
    done = run("--listen", address)
    assert done.returncode == 2 and f"'{address}' is no ADDRESS:PORT" in done.stderr


def test_exporter_with_an_address_in_use():
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = "{}:{}".format(*other.getsockname())
        done = run("--listen", address)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"sutro-exporter: {address}: Address already in use")
    assert done.stderr.endswith("name another address: --listen 127.0.0.1:PORT\n")


@pytest.mark.parametrize(
    "kind, number", [(socket.SOCK_STREAM, 2), (socket.SOCK_STREAM, 1), (socket.SOCK_DGRAM, 1)]
)
def test_exporter_with_other_sockets_than_one_that_listens(kind, number):
    """It ends: clients of these sockets would wait, whatever address it listens on."""
    with socket.socket(type=kind) as passed:
        passed.bind(("127.0.0.1", 0))
        if number > 1:
            passed.listen()
        done = subprocess.run(
            [sys.executable, "-c", AS_SYSTEMD, str(passed.fileno()), str(number), EXPORTER],
            env=environment() | NOWHERE,
            pass_fds=[passed.fileno()],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "sutro-exporter: systemd passes other sockets than one with ListenStream=\n"
        "                correct it: systemctl edit sutro-exporter.socket\n"
    )


def test_exporter_prints_its_version_and_help():
    done = run("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, "sutro-exporter 0.1.0\n", "")
    for option in ("--help", "-h"):
        done = run(option)
        assert (done.returncode, done.stderr) == (0, "") and "--listen ADDRESS:PORT" in done.stdout


@pytest.mark.parametrize("words", [["--nonsense"], ["--listen"], ["nonsense"]])
def test_exporter_with_words_that_cannot_be(words):
    done = run(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(("sutro-exporter", str(EXPORTER)))
    assert "--help" in done.stderr


def test_exporter_with_too_many_open_files():
    """Metrics without cgroups would be wrong: there are none."""
    done = subprocess.run(
        ["sh", "-c", 'ulimit -n 4; exec "$0" --once', EXPORTER],
        env=environment() | NOWHERE,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "sutro-exporter: cannot print: Too many open files\n"


@pytest.mark.parametrize("word", ["--once", "--version", "--help"])
def test_exporter_prints_on_a_full_disk(word):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [EXPORTER, word],
            env=environment() | NOWHERE,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=PATIENCE_S,
        )
    assert done.returncode == 1
    assert done.stderr == "sutro-exporter: cannot print: No space left on device\n"
