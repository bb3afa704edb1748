# SPDX-License-Identifier: LGPL-2.1-or-later
"""Verbs that go on until Ctrl-C: on a terminal, on a dumb one, and in a pipe."""

import contextlib
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import termios
import time

import pytest
from conftest import NOWHERE, process, running, sutroctl, write_policy
from fakemachine import PATIENCE_S, paused, wait_until
from shapes import POLICY_SET, TOP, WATCH, fits
from sutro.keys import MOUSE_OFF, MOUSE_ON

# Times of records are rounded to 1 ms.
ROUNDED_S = 0.001


class Terminal:
    """A pseudo terminal, its output, and keys to press."""

    def __init__(self, lines, columns):
        self.ours, self.theirs = pty.openpty()
        self.resize(lines, columns)
        self.text = ""

    def resize(self, lines, columns):
        fcntl.ioctl(self.ours, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def expect(self, pattern):
        """Read until a pattern appears in the new output; return that output."""
        start, deadline = len(self.text), time.monotonic() + PATIENCE_S
        while not re.search(pattern, self.text[start:], re.DOTALL):
            left = deadline - time.monotonic()
            assert left > 0, f"no {pattern!r} in {self.text[start:][:2000]!r}"
            if select.select([self.ours], [], [], left)[0]:
                self.text += os.read(self.ours, 65536).decode()
        return self.text[start:]

    def press(self, key):
        os.write(self.ours, key)

    def rest(self):
        """The output that was not yet read."""
        text = b""
        while select.select([self.ours], [], [], 0)[0]:
            text += os.read(self.ours, 65536)
        return text.decode()

    def close(self):
        os.close(self.ours)
        os.close(self.theirs)


@pytest.fixture
def terminal():
    made = Terminal(24, 120)
    yield made
    made.close()


def on(terminal, *args, term="xterm", **more):
    ends = {"stdin": terminal.theirs, "stdout": terminal.theirs}
    return running("sutroctl", *args, **ends, TERM=term, **more)


def test_top_on_a_terminal(promised, terminal):
    """The table is drawn over itself, follows the window's size, and q leaves the screen."""
    with on(terminal, "top") as top:
        first = terminal.expect("q: quit")
        assert "\x1b[?1049h" in first and "infeasible" in first
        terminal.resize(5, 120)
        top.send_signal(signal.SIGWINCH)
        terminal.expect("lines more.*q: quit")
        terminal.press(b"xq")
        terminal.expect(re.escape("\x1b[?1049l"))
        assert top.wait(PATIENCE_S) == 0
    assert termios.tcgetattr(terminal.theirs)[3] & termios.ICANON, "the terminal is as before"


def test_keys_of_top(promised, terminal):
    """Sort, filter, tree, pause and the pages of a unit, by the bytes that a terminal sends."""
    with on(terminal, "top") as top:
        terminal.expect("by state  every 1 s")
        terminal.press(b">r")
        terminal.expect("by unit, reversed")
        terminal.press(b"/db.serv\r")
        text = terminal.expect("only 'db.serv'")
        assert "web.service" not in text.rpartition("show only: db.serv_")[2]
        terminal.press(b"p\r")
        assert "got 63.1M of 60.0M" in terminal.expect("paused.*got 63.1M of 60.0M.*q: quit")
        terminal.press(b"\r")
        terminal.expect("4001  /usr/sbin/db.service --serve.*4002  worker: 1")
        terminal.press(b"\x7f\x1b[D?")
        terminal.expect("Left Right.*in the tree")
        terminal.press(b"xq")
        assert top.wait(PATIENCE_S) == 0


def test_mouse_of_top(promised, terminal):
    """A click on a head sorts by its column, one on a row selects it, and the wheel moves on."""
    with on(terminal, "top") as top:
        screen = terminal.expect("by state  every 1 s")
        assert MOUSE_ON in screen + terminal.text
        terminal.press(b"\x1b[<0;2;1M\x1b[<0;2;1m")
        terminal.expect("by unit  every")
        terminal.press(b"\x1b[<0;2;1M")
        terminal.expect("by unit, reversed")
        # web.service is the first now, and the line below its name is its second one.
        terminal.press(b"\x1b[<0;2;3M\r")
        assert "web.service" in terminal.expect("web.service.*80.0M.*q: quit")
        terminal.press(b"\x1bq")
        assert top.wait(PATIENCE_S) == 0
    assert MOUSE_OFF in terminal.rest()


def test_record_and_replay(promised, terminal, tmp_path):
    """A recording shows again what was seen; the last record stays until q."""
    file = tmp_path / "night"
    run = process("sutroctl", "top", "--batch", "-n", "3", "-d", "0.2", "--record", file)
    assert (run.status, run.err) == (0, "")
    replay = process("sutroctl", "top", "--from", file, **NOWHERE)
    tables = [part.partition("\n")[2] for part in re.split("(?m)^(?=.*record . of 3$)", replay.out)]
    assert "".join(tables) == run.out and len(tables) == 4
    with on(terminal, "top", "--from", file, "-d", "0.1") as top:
        terminal.expect("record 3 of 3.*paused")
        terminal.press(b",")
        terminal.expect("record 2 of 3")
        terminal.press(b"\r\r")
        terminal.expect("a recording has no processes")
        terminal.press(b"q")
        assert top.wait(PATIENCE_S) == 0


def test_top_ends_after_iterations(promised, terminal):
    with on(terminal, "top", "-n", "2", "-d", "0.1") as top:
        terminal.expect(re.escape("\x1b[?1049l"))
        assert top.wait(PATIENCE_S) == 0


def test_top_json_lines(promised):
    """An object a line, with the rows that the options leave."""
    words = "top --json=short -n 2 -d 0.1 --order unit --filter SERVICE --active"
    run = process("sutroctl", *words.split())
    records = [json.loads(line) for line in run.out.splitlines()]
    assert len(records) == 2 and records[0]["time"] < records[1]["time"]
    for record in records:
        fits(record["rows"], TOP)
        names = [row["unit"] for row in record["rows"]]
        assert names == sorted(names) and set(names) == {"db.service", "job.service", "web.service"}


def test_top_waits_for_a_daemon_that_went(promised, terminal):
    with on(terminal, "top") as top:
        terminal.expect("q: quit")
        promised.stop()
        terminal.expect("sutrod is not running; waiting for it")
        promised.start()
        assert "db.service" in terminal.expect("q: quit")
        top.send_signal(signal.SIGINT)
        assert top.wait(PATIENCE_S) == 0


def is_whole(terminal):
    """Does it have echo and lines, as a shell needs them?"""
    wanted = termios.ICANON | termios.ECHO
    return termios.tcgetattr(terminal.theirs)[3] & wanted == wanted


LEFT = re.escape(MOUSE_OFF) + ".*" + re.escape("\x1b[?25h\x1b[?1049l") + "$"


def test_top_that_is_terminated(promised, terminal):
    """As by timeout(1): the shell gets its screen back, without reports of the mouse."""
    with on(terminal, "top") as top:
        terminal.expect("q: quit")
        top.send_signal(signal.SIGTERM)
        terminal.expect(LEFT)
        assert top.wait(PATIENCE_S) == 128 + signal.SIGTERM
        assert top.stderr.read() == "" and is_whole(terminal)


def test_top_that_is_suspended(promised, terminal):
    """After Ctrl-Z the shell has the terminal, and after fg the table is drawn anew."""
    with on(terminal, "top", group=0) as top:
        terminal.expect("q: quit")
        for _ in range(2):
            top.send_signal(signal.SIGTSTP)
            terminal.expect(LEFT)
            wait_until(lambda: os.waitpid(top.pid, os.WNOHANG | os.WUNTRACED)[1] != 0)
            assert is_whole(terminal)
            top.send_signal(signal.SIGCONT)
            terminal.expect(re.escape("\x1b[?1049h") + ".*q: quit")
        assert not is_whole(terminal)
        terminal.press(b"q")
        assert top.wait(PATIENCE_S) == 0


@contextlib.contextmanager
def without_answers(sutrod):
    """A sutrod that is stopped while a program has sent it calls, with a period of 0.1 s."""
    with sutrod.lock, paused(sutrod.process):
        time.sleep(1)
        yield


@pytest.mark.parametrize(
    ("end", "status"),
    [(signal.SIGINT, 0), (b"q", 0), (signal.SIGTERM, 128 + signal.SIGTERM)],
)
def test_top_ends_while_sutrod_does_not_answer(promised, terminal, end, status):
    """At once, not with the error that there was no answer."""
    with on(terminal, "top", "-d", "0.1") as top:
        terminal.expect("q: quit")
        with without_answers(promised):
            terminal.press(b"?")
            terminal.expect("Left Right.*in the tree")
            if isinstance(end, bytes):
                terminal.press(b"x" + end)
            else:
                top.send_signal(end)
            terminal.expect(LEFT)
            assert (top.wait(PATIENCE_S), top.stderr.read()) == (status, "")
        assert is_whole(terminal)


def test_top_is_suspended_while_sutrod_does_not_answer(promised, terminal):
    with on(terminal, "top", "-d", "0.1", group=0) as top:
        terminal.expect("q: quit")
        with without_answers(promised):
            top.send_signal(signal.SIGTSTP)
            terminal.expect(LEFT)
            wait_until(lambda: os.waitpid(top.pid, os.WNOHANG | os.WUNTRACED)[1] != 0)
            top.send_signal(signal.SIGCONT)
            terminal.expect(re.escape("\x1b[?1049h") + ".*q: quit")
        terminal.press(b"r")
        terminal.expect("reversed.*q: quit")
        terminal.press(b"q")
        assert (top.wait(PATIENCE_S), top.stderr.read()) == (0, "")


def test_processes_while_systemd_does_not_answer(promised, terminal):
    """The keys have their effects, and the list comes with the answer."""
    with on(terminal, "top", "--filter", "db.serv", "-d", "0.1") as top:
        terminal.expect("q: quit")
        with paused(promised.bus.systemd.process):
            terminal.press(b"\r\r")
            terminal.expect("db.service.*/system.slice/db.service.*q: quit")
            terminal.press(b"r")
            terminal.expect("by state, reversed")
            assert "did not answer" not in terminal.text
        terminal.expect("4001  /usr/sbin/db.service --serve")
        terminal.press(b"q")
        assert (top.wait(PATIENCE_S), top.stderr.read()) == (0, "")


@pytest.mark.parametrize("words", ["top --batch -d 0.1", "top --json=short -b -d 0.1", "watch"])
def test_ctrl_c_while_sutrod_does_not_answer(promised, words):
    with running("sutroctl", *words.split()) as program:
        program.stdout.readline()
        with without_answers(promised):
            time.sleep(1)  # the period of watch
            program.send_signal(signal.SIGINT)
            assert program.wait(PATIENCE_S) == 0
        assert program.stderr.read() == ""


def test_top_on_a_dumb_terminal(promised, terminal):
    """One table after the other, without a word to the cursor."""
    with on(terminal, "top", term="dumb") as top:
        text = terminal.expect("UNIT.*infeasible.*UNIT.*UNIT")
        top.send_signal(signal.SIGINT)
        assert top.wait(PATIENCE_S) == 0
    assert "\x1b" not in text


def test_watch(promised):
    with running("sutroctl", "watch") as watch:
        lines = [watch.stdout.readline() for _ in range(18)]
        watch.send_signal(signal.SIGINT)
        assert watch.wait(PATIENCE_S) == 0
    shown = [re.sub(r"^\d\d:\d\d:\d\d ", "", line).strip() for line in lines]
    assert shown[:9] == shown[9:]
    assert [line.rpartition(", ")[2] for line in shown[:3]] == [
        *("unresolved", "unattributed", "infeasible")
    ]
    assert shown[2] == "web.service ReadBandwidthMin=/srv 19.2M of 80.0M: got 41.7M, infeasible"
    assert shown[6] == "db.service LatencyTarget=/srv 10.0ms: got 6.19ms, held"


def test_granted_time_of_a_target(promised):
    """A target with a quarter of the time that it needs is not shown as one of 2.5 ms."""
    promised.call("SetPolicy", "db.service", [("ReadBandwidthMin", "/dev/vg0/db 100G")], "runtime")
    promised.elapse(5)
    (target,) = (p for p in promised.call("ListPromises") if p["key"] == "LatencyTarget")
    assert 0 < target["granted"] < 1
    part = f"{100 * target['granted']:.1f} %"
    value, got = "10.0ms", "6.19ms"
    row = rf"read P95 .*{value} +{part} +{got}"
    assert re.search(row, sutroctl("status").out)
    assert re.search(row, sutroctl("top", "--once").out)
    text = sutroctl("explain", "db").out
    assert f"\n  granted {part} of the time that it needs\n" in text
    with running("sutroctl", "watch") as watch:
        lines = [watch.stdout.readline() for _ in range(9)]
    shown = f"LatencyTarget=/srv {value}, granted {part}: got {got}, "
    assert any(shown in line for line in lines), lines


def test_watch_json(promised):
    """An object a line, also after a daemon's absence, in which no line is made up."""
    with running("sutroctl", "watch", "--json") as watch:
        records = [json.loads(watch.stdout.readline()) for _ in range(18)]
        promised.stop()
        assert watch.stderr.readline() == "sutroctl: sutrod is not running; waiting for it\n"
        gone = time.time() + ROUNDED_S
        time.sleep(2)  # Two of the questions of watch, which have no answer.
        back = time.time() - ROUNDED_S
        promised.start()
        # A slow machine may have left time for more rounds before the daemon ended.
        while records[-1]["time"] < back:
            records.append(json.loads(watch.stdout.readline()))
        watch.send_signal(signal.SIGINT)
        assert watch.wait(PATIENCE_S) == 0
    for record in records:
        fits(record, WATCH)
    assert records[0]["time"] == records[8]["time"] < records[9]["time"]
    assert not [record for record in records if gone < record["time"] < back]


def test_watch_with_a_reader_that_has_had_enough(promised):
    with running("sutroctl", "watch") as watch:
        watch.stdout.readline()
        watch.stdout.close()
        assert watch.wait(PATIENCE_S) == 1
        assert watch.stderr.read() == ""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_policy_set_client_ends_with_it(promised, number):
    """A statement of a client holds as long as the client, and Ctrl-C ends it."""
    assignment = "ReadBandwidthMin=/srv 5M"
    command = ("sutroctl", "--json", "policy", "set", "web", assignment, "--client")
    with running(*command) as client:
        wait_until(lambda: promised.held("web.service") == [assignment])
        client.send_signal(number)
        out, err = client.communicate(timeout=PATIENCE_S)
    assert "Traceback" not in err
    if number == signal.SIGINT:
        assert client.returncode == 0
        fits(json.loads(out), POLICY_SET)
    wait_until(lambda: promised.held("web.service") == [])


def test_policy_set_client_with_a_mistake(promised):
    run = sutroctl("policy", "set", "web", "Mass=7", "--client")
    assert (run.status, run.out) == (1, "")
    assert run.err.startswith('sutroctl: web.service: "Mass": one of ReadBandwidthMin')


def test_watch_waits_for_the_first_promise(machine, sutrod):
    with running("sutroctl", "watch") as watch:
        assert "there is no promise yet; waiting for one" in watch.stderr.readline()
        write_policy(machine, "/etc/sutro/policy.d/db.policy")
        sutrod.call("ReloadPolicies")
        assert "db.service" in watch.stdout.readline()
