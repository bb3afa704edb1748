# SPDX-License-Identifier: LGPL-2.1-or-later
"""Verbs that go on until Ctrl-C: on a terminal, on a dumb one, and in a pipe."""

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
from conftest import running, sutroctl, write_policy
from fakemachine import PATIENCE_S, wait_until
from shapes import POLICY_SET, WATCH, fits


class Terminal:
    """A pseudo terminal, what was written to it, and a key to press."""

    def __init__(self, lines, columns):
        self.ours, self.theirs = pty.openpty()
        self.resize(lines, columns)
        self.text = ""

    def resize(self, lines, columns):
        fcntl.ioctl(self.ours, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def expect(self, pattern):
        """Read until a pattern appears in what is new; return that."""
        start, deadline = len(self.text), time.monotonic() + PATIENCE_S
        while not re.search(pattern, self.text[start:], re.DOTALL):
            left = deadline - time.monotonic()
            assert left > 0, f"no {pattern!r} in {self.text[start:][:2000]!r}"
            if select.select([self.ours], [], [], left)[0]:
                self.text += os.read(self.ours, 65536).decode()
        return self.text[start:]

    def press(self, key):
        os.write(self.ours, key)

    def close(self):
        os.close(self.ours)
        os.close(self.theirs)


@pytest.fixture
def terminal():
    made = Terminal(24, 120)
    yield made
    made.close()


def on(terminal, *args, term="xterm"):
    return running("sutroctl", *args, stdin=terminal.theirs, stdout=terminal.theirs, TERM=term)


def test_top_on_a_terminal(promised, terminal):
    """The table is drawn over itself, follows the window's size, and q leaves the screen."""
    with on(terminal, "top") as top:
        first = terminal.expect("q: quit")
        assert "\x1b[?1049h" in first and "infeasible" in first
        terminal.resize(5, 120)
        top.send_signal(signal.SIGWINCH)
        assert "lines more" in terminal.expect("lines more: name a DEVICE")
        terminal.press(b"xq")
        terminal.expect(re.escape("\x1b[?1049l"))
        assert top.wait(PATIENCE_S) == 0
    assert termios.tcgetattr(terminal.theirs)[3] & termios.ICANON, "the terminal is as before"


def test_top_waits_for_a_daemon_that_went(promised, terminal):
    with on(terminal, "top") as top:
        terminal.expect("q: quit")
        promised.stop()
        terminal.expect("sutrod is not running; waiting for it")
        promised.start()
        assert "db.service" in terminal.expect("q: quit")
        top.send_signal(signal.SIGINT)
        assert top.wait(PATIENCE_S) == 0


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
    said = [re.sub(r"^\d\d:\d\d:\d\d ", "", line).strip() for line in lines]
    assert said[:9] == said[9:]
    assert [line.rpartition(", ")[2] for line in said[:3]] == [
        *("unresolved", "unattributed", "infeasible")
    ]
    assert said[2] == "web.service ReadBandwidthMin=/srv 19.2M of 80.0M: got 41.7M, infeasible"
    assert said[6] == "db.service LatencyTarget=/srv 10.0ms: got 6.19ms, held"


def test_watch_json(promised):
    """An object a line, also after a daemon's absence, in which no line is made up."""
    with running("sutroctl", "watch", "--json") as watch:
        records = [json.loads(watch.stdout.readline()) for _ in range(18)]
        promised.stop()
        assert watch.stderr.readline() == "sutroctl: sutrod is not running; waiting for it\n"
        time.sleep(2)  # Two of the questions of watch, which have no answer.
        back = time.time()
        promised.start()
        later = json.loads(watch.stdout.readline())
        watch.send_signal(signal.SIGINT)
        assert watch.wait(PATIENCE_S) == 0
    for record in [*records, later]:
        fits(record, WATCH)
    assert 0.5 < records[9]["time"] - records[0]["time"] < 5
    assert later["time"] > back - 0.01


def test_watch_with_a_reader_that_has_had_enough(promised):
    with running("sutroctl", "watch") as watch:
        watch.stdout.readline()
        watch.stdout.close()
        assert watch.wait(PATIENCE_S) == 1
        assert watch.stderr.read() == ""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_policy_set_client_ends_with_it(promised, number):
    """A statement of a client holds as long as the client, and Ctrl-C ends it."""
    said = "ReadBandwidthMin=/srv 5M"
    command = ("sutroctl", "--json", "policy", "set", "web", said, "--client")
    with running(*command) as client:
        wait_until(lambda: promised.held("web.service") == [said])
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
