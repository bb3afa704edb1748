# SPDX-License-Identifier: LGPL-2.1-or-later
"""Policy programs as processes: their settings, and that no setting outlives them."""

import asyncio
import re
import signal

import pytest
from conftest import NOWHERE, POLICIES, BrokenDaemon, process, running
from fakemachine import PATIENCE_S, arrive, wait_until
from sutro.connection import ANSWER_TIMEOUT_S
from sutro.program import Program

WINDOW = """\
[[promise]]
unit = "web"
key = "ReadBandwidthMin"
path = "/srv"
[[promise.window]]
from = "00:00"
to = "24:00"
value = "5M"
"""
GUARD = """\
unit = "web"
path = "/srv"
target = "10ms"
raise = "ReadBandwidthMin"
min = "5M"
max = "80M"
"""
FILES = {"sutro-window": WINDOW, "sutro-latency-guard": GUARD}
SAID = ["ReadBandwidthMin=/srv 5M"]


@pytest.fixture
def file(tmp_path):
    def write(program, text=None):
        path = tmp_path / f"{program}.toml"
        path.write_text(text or FILES[program])
        return str(path)

    return write


@pytest.mark.parametrize("program", FILES)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_settings_end_with_the_program(sutrod, file, program, number):
    """Also when it is killed with -9: the daemon sees the connection end."""
    with running(program, file(program)) as process:
        # The line comes after the daemon's answer.
        first = process.stderr.readline()
        assert sutrod.held("web.service") == SAID
        process.send_signal(number)
        _, log = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == (-9 if number == signal.SIGKILL else 0)
        wait_until(lambda: sutrod.held("web.service") == [])
    assert "Traceback" not in log
    assert first.startswith("web.service: ReadBandwidthMin=/srv is now 5M (was nothing): ")
    if number != signal.SIGKILL:
        assert log.endswith("ending: its promises end with it\n")


@pytest.mark.parametrize("program", FILES)
def test_an_empty_name(program):
    run = process(program, "")
    assert run.status == 2 and f"{program}: error: the name of the file is empty" in run.err


@pytest.mark.parametrize("program", FILES)
def test_dry_run(sutrod, file, program):
    with running(program, "--dry-run", file(program)) as process:
        assert "ReadBandwidthMin=/srv would be 5M (was nothing)" in process.stderr.readline()
        process.terminate()
        assert process.wait(PATIENCE_S) == 0
        assert sutrod.held("web.service") == []


def test_dry_run_sets_nothing_again(capsys):
    """It tries again each second while there is no sutrod."""
    program = Program(dry_run=True)
    asyncio.run(program.state("web.service", {("Weight", "/srv"): ("300", "for a test")}))
    asyncio.run(program.state_again())
    (line,) = capsys.readouterr().err.splitlines()
    assert line == "web.service: Weight=/srv would be 300 (was nothing): for a test"


def guard(sutrod, file, unit="web"):
    """A guard that raises its unit, on the files of the machine."""
    text = GUARD.replace('"10ms"', '"4ms"').replace('"web"', f'"{unit}"')
    path = file("sutro-latency-guard", text)
    return running("sutro-latency-guard", path, root=sutrod.machine.root)


def test_guard_raises_and_gives_up_nothing_too_soon(sutrod, file):
    """From the counters of the machine; the numbers are test_latency_guard.py's."""
    with guard(sutrod, file) as process:
        assert next(line for line in process.stderr if "over" in line) == (
            "web.service: ReadBandwidthMin=/srv is now 7863750 (was 5M): "
            "P99 6.29ms is over 4.00ms\n"
        )
        assert sutrod.held("web.service") == ["ReadBandwidthMin=/srv 7863750"]


@pytest.mark.parametrize("program", FILES)
def test_settings_of_a_cgroup(sutrod, file, program):
    """A path is no name of a unit; the guard reads the counters of that cgroup."""
    text = FILES[program].replace('"web"', '"/payload"').replace('"10ms"', '"4ms"')
    with running(program, file(program, text), root=sutrod.machine.root) as process:
        assert process.stderr.readline().startswith("/payload: ReadBandwidthMin=/srv is now 5M ")
        assert sutrod.held("/payload") == SAID
        if program == "sutro-latency-guard":
            line = next(line for line in process.stderr if "over" in line)
            assert "P99 6.29ms is over 4.00ms" in line


def test_guard_reads_its_unit_alone(bus, sutrod, file):
    """ListUsage would read the cgroups of all units."""
    with bus.monitored("ListUsage") as calls, guard(sutrod, file) as process:
        next(line for line in process.stderr if "over" in line)
        sutrod.call("ListUsage")
        arrive(calls, 1)
    assert len(calls) == 1, "the call of this test alone"


def test_guard_of_a_unit_without_counters(sutrod, file):
    """It is logged once; the guard goes on."""
    with guard(sutrod, file, "log") as process:
        line = next(line for line in process.stderr if "io.sutro.stat" in line)
        assert line.startswith("log.service: its cgroup has no io.sutro.stat")
        assert process.poll() is None


def test_guard_of_a_path_that_leads_nowhere(sutrod, file):
    text = GUARD.replace('"/srv"', '"/dev/vg9/lost"')
    with running("sutro-latency-guard", file("sutro-latency-guard", text)) as process:
        process.stderr.readline()
        assert process.stderr.readline() == (
            "web.service: /dev/vg9/lost: No such file or directory.\n"
        )
        assert process.poll() is None


@pytest.mark.parametrize("program", FILES)
@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        ("wbe", "wbe.service: there is no unit 'wbe.service'; the setting takes effect when "),
        ("/gone", "/gone: there is no cgroup '/gone'; the setting takes effect when there is one"),
    ],
)
def test_a_unit_that_does_not_exist(sutrod, file, program, unit, expected):
    """It is logged once, with a name that may be meant."""
    text = FILES[program].replace('"web"', f'"{unit}"')
    with running(program, file(program, text), root=sutrod.machine.root) as process:
        process.stderr.readline()
        line = process.stderr.readline()
        assert line.startswith(expected)
        assert "did you mean web.service?" in line or unit == "/gone"
        assert process.poll() is None


@pytest.mark.parametrize("unit", ["backup.service", "/gone"])
def test_guard_of_a_unit_that_does_not_run(sutrod, file, unit):
    """It is logged once; the guard goes on."""
    with guard(sutrod, file, unit) as process:
        expected = f"{unit}: it does not run, so no latency is known\n"
        assert next(line for line in process.stderr if "does not run" in line) == expected
        process.terminate()
        _, log = process.communicate(timeout=PATIENCE_S)
    assert "does not run" not in log


@pytest.mark.parametrize("program", FILES)
def test_program_logs_how_its_promises_fare(broken, file, program):
    with running(program, file(program)) as process:
        process.stderr.readline()
        for path in ("/other", "/srv"):
            broken.mock.EmitSignal(
                "org.sutro1.Manager",
                "PromiseChanged",
                "sssss",
                ["web.service", "ReadBandwidthMin", path, "limited", "one request at a time"],
            )
        assert process.stderr.readline() == (
            "web.service: ReadBandwidthMin=/srv is limited: one request at a time\n"
        )


@pytest.mark.parametrize("program", FILES)
def test_sutrod_that_comes_late_and_restarts(daemon, file, program):
    """The program waits for the daemon, and sets its promises after each start."""
    with running(program, file(program)) as process:
        assert process.stderr.readline() == "sutrod is not running; waiting for it\n"
        for _ in range(3):
            daemon.start()
            wait_until(lambda: daemon.held("web.service") == SAID)
            daemon.stop()
        process.terminate()
        assert process.wait(PATIENCE_S) == 0
        assert "Traceback" not in process.stderr.read()


@pytest.mark.parametrize("program", FILES)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_stop_during_a_call(bus, broken, file, program, number):
    """The program ends long before the call on a daemon that does not answer would fail."""
    with bus.monitored("SetPolicy") as calls, running(program, file(program)) as process:
        broken.service.process.send_signal(signal.SIGSTOP)
        arrive(calls, 1)
        process.send_signal(number)
        _, log = process.communicate(timeout=ANSWER_TIMEOUT_S / 2)
    assert process.returncode == 0
    assert log == "ending: its promises end with it\n"


def test_bus_that_goes_away(own_bus, file):
    broken = BrokenDaemon()
    with running("sutro-window", file("sutro-window")) as process:
        wait_until(broken.policies)
        own_bus.stop()
        broken.stop()
        lines = iter(process.stderr.readline, "")
        assert any("; waiting for it" in line for line in lines)
        assert process.poll() is None
        process.terminate()
        assert process.wait(PATIENCE_S) == 0


@pytest.mark.parametrize("program", FILES)
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("org.sutro1.Error.BadPolicy", "ReadBandwidthMin: no"),
        ("org.freedesktop.DBus.Error.AccessDenied", "sutrod does not permit this: Read"),
        ("org.freedesktop.DBus.Error.UnknownMethod", "the running sutrod has no"),
    ],
)
def test_daemon_that_refuses(broken, file, program, name, expected):
    broken.fail("SetPolicy", name, "ReadBandwidthMin: no")
    with running(program, file(program)) as process:
        _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1
    assert err.startswith(f"{program}: {expected}") and "Traceback" not in err


@pytest.mark.parametrize("program", FILES)
def test_file_with_a_mistake(file, program):
    """Before any call, and with the status that systemd does not restart."""
    path = file(program, FILES[program].replace('"/srv"', '"srv"'))
    done = process(program, path, **NOWHERE)
    assert (done.status, done.out) == (2, "")
    line = FILES[program].splitlines().index('path = "/srv"') + 1
    assert done.err == (
        f"{program}: {path}:{line}: path = 'srv': allowed is an absolute path without ..\n"
    )


@pytest.mark.parametrize("program", FILES)
def test_usage(program):
    assert process(program).status == 2
    assert process(program, "--version").out == f"{program} 0.1.0\n"
    man = POLICIES.parent / "Documentation" / "man" / f"{program}.1"
    options = set(re.findall(r"--[a-z-]+", process(program, "--help").out))
    text = man.read_text().replace("\\-", "-")
    assert [option for option in options if f"{option}" not in text] == []
