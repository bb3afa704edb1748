# SPDX-License-Identifier: LGPL-2.1-or-later
"""Whether a guest has booted, by the output of systemctl in it."""

import base64
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lab.agent import Agent
from lab.guest import expect_running
from lab.progress import LabError, explain

FAILED = """mnt-src.mount loaded failed failed /mnt/src
systemd-udevd.service loaded failed failed Rule-based Manager for Device Events and Files
"""


@contextmanager
def guest(status: int, state: str, failed: str) -> Iterator[Agent]:
    """The agent of a guest in which systemctl ends with a status and prints a state."""
    ours, theirs = socket.socketpair()
    answers = {"is-system-running": (status, state), "--failed": (0, failed)}

    def serve() -> None:
        started: list[str] = []
        for line in theirs.makefile("r"):
            arguments = json.loads(line)["arguments"]
            if "pid" in arguments:
                code, text = answers[started[arguments["pid"]]]
                out = base64.b64encode(text.encode()).decode()
                reply = {"exited": True, "exitcode": code, "out-data": out}
            else:
                started.append(arguments["arg"][0])
                reply = {"pid": len(started) - 1}
            theirs.sendall(json.dumps({"return": reply}).encode() + b"\n")

    threading.Thread(target=serve, daemon=True).start()
    yield Agent(ours)
    ours.close()


def test_a_guest_that_runs() -> None:
    with guest(0, "running\n", "") as agent:
        expect_running(agent, Path("console.log"))


@pytest.mark.parametrize("status", [0, 1])
@pytest.mark.parametrize(
    ("state", "failed", "units"),
    [
        ("maintenance\n", FAILED, "mnt-src.mount, systemd-udevd.service"),
        ("degraded\n", FAILED, "mnt-src.mount, systemd-udevd.service"),
        ("", "", "none"),
    ],
)
def test_a_guest_that_does_not(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    status: int,
    state: str,
    failed: str,
    units: str,
) -> None:
    """The error names the state, the failed units and the log of the console."""
    console = tmp_path / "console.log"
    console.write_text("You are in emergency mode.\n")
    with guest(status, state, failed) as agent, pytest.raises(LabError) as refused:
        expect_running(agent, console)
    assert f"its state is {state.strip() or 'unknown'}, not running" in str(refused.value)
    assert str(refused.value).endswith(f"failed units: {units}")
    explain(refused.value)
    printed = capsys.readouterr().err
    assert "You are in emergency mode." in printed and f"the whole log is {console}" in printed
