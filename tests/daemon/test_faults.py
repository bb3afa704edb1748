# SPDX-License-Identifier: LGPL-2.1-or-later
"""One system call of the daemon fails (faults.c): it goes on, or it ends with a message.

Each case is a life of the daemon in which another call fails: it continues after a daemon that was
killed, sets policies, switches disks, follows a change of a unit, and stops. If it ends early,
systemd's part follows: sutrod --restore and another start. Then what is configured has to be in
force within a minute, and after the stop nothing of it is left. State files are whole at any time.

All calls of distinct kinds fail in the suite "long"; the first tier has a random sample.
"""

import contextlib
import os
import random
import re
import shutil
import signal
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import dbus
from conftest import new_machine
from fakemachine import PATIENCE_S, Bus, Sutrod, Systemd, wait_until
from test_restore import restore

SAMPLE = 12
A, B = "a.service", "b.service"
WEIGHTS = "io.sutro.weight"
MAX = "254:0 rbps=%s wbps=9000000 riops=max wiops=max"
# Settings of the predecessor, and those of the daemon: a limit, a class, weights, disks.
SETTINGS = (
    ("5M", "idle", 300, 700, ["/dev/sdd"]),
    ("6M", "rt", 400, 800, ["/dev/sdd", "/dev/sde"]),
)
CHANGED = {
    (A, WEIGHTS): ["8:0 400", "8:16 400", "default 200"],
    (A, "io.sutro.class"): ["default rt"],
    (A, "io.max"): [MAX % 6_000_000],
    (A, "io.bfq.weight"): ["8:32 200", "default 100"],
    (B, WEIGHTS): ["default 800"],
    (B, "io.bfq.weight"): ["8:32 800", "default 100"],
}
ORIGINAL = {
    (A, WEIGHTS): ["default 100"],
    (A, "io.sutro.class"): ["default be"],
    (A, "io.max"): [MAX % "max"],
    (A, "io.bfq.weight"): ["default 100"],
    (B, WEIGHTS): ["default 100"],
    (B, "io.bfq.weight"): ["default 100"],
}
# A line of a record: a device, a cgroup and a value; without a value it drops the former lines.
RECORD = re.compile(r"(\d+:\d+ )?/[^\t\n]*(\t[^\t\n]+)?")
LEAF = re.compile(r"(none|mq-deadline) 1 (switching|used|released) \d+ \d+ \d+\n")
CONTROL = re.compile(r"# [^\0]*\[X-Sutro\]\n([A-Za-z]+=.*\n)+", re.DOTALL)


# The ordinal of the call that fails, or a name before the ordinal among the calls of that name.
Fault = int | str


class Life:
    """A machine, and a daemon of which a system call fails."""

    def __init__(self, bus: Bus, directory: Path) -> None:
        bus.allow(True)
        directory.mkdir()
        self.machine = new_machine(directory)
        self.machine.disk("sde", "8:64", "mq-deadline")
        self.systemd = Systemd(bus, self.machine)
        self.sutrod = Sutrod(bus, self.machine, directory)
        self.log = directory / "calls"
        self.systemd.start(A, 200)
        self.systemd.start(B, 200)
        self.machine.write(f"/sys/fs/cgroup/system.slice/{A}/io.max", MAX % "max" + "\n")

    def become(self, predecessor: Path) -> None:
        """Take over the files of a machine whose daemon was killed."""
        shutil.rmtree(self.machine.root)
        # The socket of varlink cannot be copied; the daemon makes it anew.
        sockets = shutil.ignore_patterns("io.sutro.Status")
        shutil.copytree(predecessor, self.machine.root, symlinks=True, ignore=sockets)

    def state(self) -> dict[tuple[str, str], list[str]]:
        """Lines of the files that the daemon writes."""
        return {
            (unit, file): self.machine.weights(f"/system.slice/{unit}", file)
            for unit, file in CHANGED
        }

    def is_alive(self) -> bool:
        """The daemon has not ended."""
        return bool(self.sutrod.process and self.sutrod.process.poll() is None)

    def zombies(self) -> list[str]:
        """Child processes that ended, and that the daemon has not waited for."""
        states = {}
        for pid in self.sutrod.children().split():
            with contextlib.suppress(FileNotFoundError):
                states[pid] = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        return [pid for pid, state in states.items() if state == "Z"]

    def try_to(self, step: Callable[..., Any], *arguments: Any) -> None:
        """Do something that the fault may prevent, or that needs a daemon."""
        if not self.is_alive():
            return
        try:
            step(*arguments)
        except dbus.DBusException:
            pass
        except (AssertionError, OSError):
            # It ends. A test that waits for it in vain fails here.
            assert self.sutrod.process
            self.sutrod.process.wait(PATIENCE_S)

    def configure(self, which: int) -> None:
        """Set these faults; faults that were set before stay."""
        limit, io_class, weight, unit_weight, disks = SETTINGS[which]
        runtime = [("ReadBandwidthMax", f"/dev/mapper/vg-db {limit}"), ("Class", io_class)]
        persistent = [("Weight", f"/dev/mapper/vg-db {weight}")]
        call = self.sutrod.call
        self.try_to(call, "SetPolicy", A, runtime, "runtime")
        self.try_to(call, "SetPolicy", A, persistent, "persistent")
        self.try_to(call, "UseDevices", disks)
        self.try_to(self.systemd.change, B, unit_weight)
        self.try_to(self.sutrod.elapse, 2)

    def start_again(self) -> None:
        """The steps of systemd after a failure of the service."""
        assert self.sutrod.process
        status = self.sutrod.process.returncode
        assert status == 1, f"ended with status {status}"
        complaint = self.sutrod.log().splitlines()
        assert [
            line for line in complaint if re.search(r"[Cc]annot|[Oo]ut of memory|--root=", line)
        ]
        self.check_files()
        assert restore(self.machine, result="exit-code") == 0
        self.sutrod.start()

    def check_files(self) -> None:
        """Each state file is whole: as before a change, or as after it."""
        for path in self.machine.at("/run/sutro").rglob("*"):
            if not path.is_file() or path.suffix == ".new" or path.name == "crashes":
                continue
            text = path.read_text()
            if path.parent.name == "leaves":
                assert LEAF.fullmatch(text), (path, text)
            elif path.parent.name == "policy.control":
                assert CONTROL.fullmatch(text), (path, text)
            else:
                lines = text.splitlines(keepends=True)
                assert all(RECORD.fullmatch(line[:-1]) and line[-1] == "\n" for line in lines), path
        for path in self.machine.at("/etc/sutro").rglob("*.policy"):
            assert CONTROL.fullmatch(path.read_text()), path

    def live(self, fault: Fault) -> None:
        """A whole life with a fault; 0: without one."""
        self.sutrod.spawn("--debug", SUTRO_FAULTS=f"{fault} {self.log}")
        self.try_to(self.sutrod.elapse, 1)
        self.configure(1)
        if not self.is_alive():
            self.start_again()
        self.check_files()
        # Calls that failed are made again, and the periodic comparison finds what is missing.
        self.configure(1)
        self.try_to(self.sutrod.elapse, 61)
        if not self.is_alive():
            self.start_again()
            self.configure(1)
        self.try_to(self.sutrod.elapse, 2)
        if not self.is_alive():
            self.start_again()
            self.configure(1)
            self.sutrod.elapse(2)
        wait_until(lambda: not self.zombies())
        assert self.state() == CHANGED
        assert [self.machine.scheduler(name) for name in ("sdd", "sde")] == ["sutro", "sutro"]
        self.sutrod.stop()
        self.check_files()
        assert restore(self.machine, "--release", result="success") == 0
        assert self.state() == ORIGINAL
        assert [self.machine.scheduler(name) for name in ("sdd", "sde")] == ["none", "mq-deadline"]


def prepare(bus: Bus, directory: Path) -> Path:
    """A machine whose daemon was killed."""
    life = Life(bus, directory)
    life.sutrod.start()
    life.configure(0)
    life.sutrod.stop(signal.SIGKILL)
    life.sutrod.end()
    return life.machine.root


def lives(bus: Bus, directory: Path, predecessor: Path, faults: Iterable[Fault]) -> None:
    """A life with each of the faults, all of them before a failure is reported."""
    failures = {}
    for fault in faults:
        life = Life(bus, directory / str(fault).replace(" ", "-"))
        life.become(predecessor)
        try:
            life.live(fault)
        except (AssertionError, dbus.DBusException, OSError) as error:
            call = life.log.read_text() if fault else "none\n"
            failures[fault] = f"{call}{type(error).__name__}: {error}"
        finally:
            life.sutrod.end()
    assert not failures, "\n".join(f"{fault}: {text}" for fault, text in failures.items())


def distinct_calls(log: Path, root: Path) -> list[int]:
    """The ordinals of the first and the last call of each kind about each file."""
    found: dict[str, list[int]] = {}
    for line in log.read_text().splitlines():
        ordinal, call = line.split(" ", 1)
        what = re.sub(r"\d{3,}", "N", call.replace(str(root), ""))
        found[what] = [*found.get(what, [])[:1], int(ordinal)]
    return sorted({ordinal for pair in found.values() for ordinal in pair})


def test_calls_that_fail(bus: Bus, tmp_path: Path) -> None:
    """A sample of the calls in the first tier, all distinct ones in the suite "long"."""
    predecessor = prepare(bus, tmp_path / "predecessor")
    lives(bus, tmp_path, predecessor, [0])
    calls = distinct_calls(tmp_path / "0/calls", tmp_path / "0")
    assert len(calls) > 200
    if not os.environ.get("SUTRO_LONG"):
        calls = random.Random(1).sample(calls, SAMPLE)
    lives(bus, tmp_path, predecessor, calls)


def begun(bus: Bus, folder: Path, function: str, weight: str, fault: int) -> Life:
    """A daemon with a policy, of which this call of a function fails; 0: none does."""
    life = Life(bus, folder / str(fault))
    life.sutrod.start(SUTRO_FAULTS=f"{function} {fault} {life.log}")
    life.sutrod.call("SetPolicy", A, [("Weight", weight)], "runtime")
    life.sutrod.settle()
    return life


def test_policy_that_cannot_be_read_back(bus: Bus, tmp_path: Path) -> None:
    """SetPolicy fails and names the command. The last version stays in force until then."""
    file = f"/run/sutro/policy.control/{A}.policy"

    def values(life: Life) -> list[str]:
        return [str(p["value"]) for p in life.sutrod.call("GetPolicy", A)]

    begin = partial(begun, bus, tmp_path, "openat", "300")
    whole = begin(0)
    whole.sutrod.call("SetPolicy", A, [("Weight", "400")], "runtime")
    whole.sutrod.end()
    # The child process reads the file before it writes it, and the daemon after that.
    target = str(whole.machine.at(file))
    *_, last = (line.split() for line in whole.log.read_text().splitlines() if target in line)
    life = begin(int(last[0]))
    try:
        message = life.sutrod.error("SetPolicy", A, [("Weight", "400")], "runtime")[1]
        assert life.log.read_text().split() == [*last[:2], str(life.machine.at(file))]
        assert message.startswith(f"{A}: the policy is on the disk, but cannot be read back")
        assert "Too many open files" in message
        assert '"sutroctl policy reload"' in message
        assert "Weight=400" in life.machine.at(file).read_text()
        assert values(life) == ["300"]
        life.sutrod.call("ReloadPolicies")
        assert values(life) == ["400"]
    finally:
        life.sutrod.end()


def test_calls_that_fail_to_systemd(bus: Bus, tmp_path: Path) -> None:
    """Settings of the unit stay, and the next periodic comparison requests them again."""
    begin = partial(begun, bus, tmp_path, "sendmsg", "/dev/sda 300")
    whole = begin(0)
    before = len(whole.log.read_text().splitlines())
    whole.systemd.change(A, 400)
    whole.sutrod.elapse(1)
    calls = [line.split() for line in whole.log.read_text().splitlines()[before:]]
    whole.sutrod.end()
    # The last call answers the test, on another connection.
    requests = [int(ordinal) for ordinal, _, target in calls if target != calls[-1][2]]
    assert len(requests) >= 5
    for request in requests:
        life = begin(request)
        try:
            life.systemd.change(A, 400)
            life.try_to(life.sutrod.elapse, 1)
            if not life.is_alive():
                life.start_again()
            life.sutrod.elapse(61)
            assert life.machine.weights(f"/system.slice/{A}") == ["8:0 300", "default 400"]
        finally:
            life.sutrod.end()


def test_calls_that_fail_after_fork(bus: Bus, tmp_path: Path) -> None:
    """The daemon waits for it all the same, and has no zombie."""
    predecessor = prepare(bus, tmp_path / "predecessor")
    lives(bus, tmp_path, predecessor, ["pidfd_open 1", "pidfd_open 2"])
