# SPDX-License-Identifier: LGPL-2.1-or-later
"""`sutroctl test` from the command line to the table, with the real sutrod; testbed.py is the disk.

tests/vm/test_hardware.py runs it on model disks.
"""

import contextlib
import errno
import json
import os
import re
import shlex
import signal
import subprocess

import pytest
from conftest import HERE, NOWHERE, process, running, sutroctl
from fakemachine import PATIENCE_S, wait_until
from hardware import command, files, state
from sutro import reach
from sutro.errors import of_file
from testbed import Testbed

GOLDEN = HERE / "golden"
LEAVES = ("hda", "hdb")
MODEL = "ACME Disk 5000"


class World:
    """The machine under test, and the changes that the verb made."""

    def __init__(self, machine, sutrod):
        self.machine, self.sutrod = machine, sutrod
        self.systemctl, self.guards = [], []

    def queue(self, name, key):
        return self.machine.at(f"/sys/class/block/{name}/queue/{key}").read_text().strip()

    def schedulers(self):
        return [self.machine.scheduler(name) for name in LEAVES]

    def check_managed(self):
        """The daemon has the leaves in its care as before, once it has read their schedulers."""

        def managed():
            return set(sutroctl("status", "--json").json()["daemon"]["managed_leaves"])

        wait_until(lambda: managed() == {"/dev/hda", "/dev/hdb"})

    def write(self, path, value):
        """As the kernel: a switch loses all settings of a scheduler."""
        name = path.split("/")[4]
        if path.endswith("/queue/scheduler"):
            self.machine.set_scheduler(name, value)
            self.machine.write(f"/sys/class/block/{name}/queue/nr_requests", "62\n")
        else:
            files.at(path).parent.mkdir(parents=True, exist_ok=True)
            self.machine.write(path, value + "\n")

    def is_restored(self):
        return (
            self.schedulers() == ["sutro", "sutro"]
            and {self.queue(name, "nr_requests") for name in LEAVES} == {"99"}
            and not state.is_left()
        )

    def test(self, *words, **more):
        """Run the verb; its tools are not needed."""
        return sutroctl("test", *words, **more)


@pytest.fixture
def world(machine, sutrod, monkeypatch):
    world = World(machine, sutrod)
    for name in LEAVES:
        queue = f"/sys/class/block/{name}/queue"
        machine.write(f"{queue}/nr_requests", "99\n")
        machine.write(f"{queue}/rotational", "0\n")
        machine.write(f"/sys/class/block/{name}/device/model", MODEL + "   \n")
        machine.write(f"/sys/class/block/{name}/device/serial", "SECRET-SERIAL\n")
    monkeypatch.setattr(files, "ROOT", machine.root)
    monkeypatch.setattr(files, "write", world.write)
    monkeypatch.setattr(command, "is_root", lambda: True)
    monkeypatch.setattr(command, "NEEDED", {})
    monkeypatch.setattr(command, "Machine", Testbed)
    facts = {"kernel": "6.12.1-amd64", "machine": "x86_64", "cpus": 4}
    monkeypatch.setattr(command, "system", lambda: dict(facts))
    monkeypatch.setattr(state, "guard", world.guards.append)
    monkeypatch.setattr(state, "unguard", lambda: world.guards.append("ended"))

    def systemctl(*words):
        world.systemctl.append(words)
        return subprocess.CompletedProcess(words, 0, "", "")

    monkeypatch.setattr(state, "systemctl", systemctl)
    monkeypatch.setattr(Testbed, "fails", {})
    monkeypatch.setattr(Testbed, "stops_at", "")
    monkeypatch.setattr(Testbed, "made", [])
    return world


SHORT = ("dm-0", "--yes", "--duration", "4")
TWO = (*SHORT, "--only", "two-to-one", "--only", "one-read", "--only", "floor")


def golden(name, text):
    file = GOLDEN / f"{name}.txt"
    if os.environ.get("SUTRO_GOLDEN") == "write":
        file.write_text(text)
    assert text == file.read_text()
    assert "\x1b" not in text


# Results


def test_table(world):
    """Shares, throughput, P99 and goals; sutro keeps its weights and the floor, others do not."""
    run = world.test(*TWO)
    golden("test", run.out)
    assert max(len(line) for line in run.out.splitlines()) <= 100
    assert run.status == (1 if "MISSED" in run.out else 0)
    assert world.is_restored()


def test_json(world):
    """A record for each number, as in the benches; the file can be shown and drawn later."""
    run = world.test(*TWO, "--json")
    data = json.loads(run.out)
    assert data["device"] == "/dev/dm-0" and data["path"] == "/dev/vg0/db"
    assert data["schedulers"] == ["none", "mq-deadline", "bfq", "sutro"]
    assert set(data["unavailable"]) == {"kyber", "iocost"}
    assert [leaf["leaf"] for leaf in data["leaves"]] == ["/dev/hda", "/dev/hdb"]
    values = {
        (one["scenario"], one["scheduler"], one["metric"]): one
        for one in data["results"]
        if one["goal"]
    }
    assert values["two-to-one", "sutro", "ratio"]["value"] == pytest.approx(2, rel=0.01)
    assert values["two-to-one", "none", "ratio"]["met"] is False
    assert values["two-to-one", "none", "ratio"]["judged"] is False
    assert values["floor", "sutro", "worst_2s"]["met"] is True
    assert values["floor", "none", "worst_2s"]["met"] is False
    judged = [one for one in data["results"] if one["judged"]]
    assert (data["judged"], data["met"]) == (len(judged), sum(one["met"] for one in judged))


def test_from_file_prints_the_same(world, tmp_path):
    file = tmp_path / "result.json"
    file.write_text(world.test(*TWO, "--json").out)
    run = world.test("--from", str(file), **NOWHERE)
    golden("test", run.out)
    assert run.err == ""


def test_report(world):
    """It can be sent in: disks without serial numbers, no names of volumes, units and files."""
    run = world.test(*TWO, "--report")
    golden("test-report", run.out)
    assert MODEL in run.out and "6.12.1-amd64" in run.out
    for name in ("SECRET", "vg0", "hda", "dm-0", "/dev", "service"):
        assert name not in run.out


def test_list():
    run = sutroctl("test", "--list", **NOWHERE)
    assert (run.status, run.err) == (0, "")
    golden("test-list", run.out)
    data = sutroctl("test", "--list", "--json", **NOWHERE).json()
    assert {"name", "title", "source", "writes", "units"} == set(data[0])


def test_picture(world, tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(command.picture, "check_output", lambda name: None)
    monkeypatch.setattr(command.picture, "draw", lambda data, file: drawn.append(file))
    run = world.test(*SHORT, "--only", "two-to-one", "--plot", f"{tmp_path}/a.png")
    assert drawn == [f"{tmp_path}/a.png"] and f"the picture is in {tmp_path}/a.png" in run.out


@pytest.mark.parametrize("words", [[], ["--report"], ["--json"]])
def test_picture_that_cannot_be_drawn(world, tmp_path, monkeypatch, words):
    """The results of many minutes are printed all the same; those of a file are there anyway."""

    def draw(_data, file):
        raise of_file(f"--plot={file}", OSError(errno.ENOSPC, "No space left on device"))

    monkeypatch.setattr(command.picture, "check_output", lambda name: None)
    monkeypatch.setattr(command.picture, "draw", draw)
    file = f"{tmp_path}/a.png"
    run = world.test(*SHORT, "--only", "two-to-one", "--plot", file, *words)
    assert run.status == 1 and world.is_restored()
    assert run.err.endswith(
        f"sutroctl: --plot={file}: No space left on device\n"
        "          make room on its file system, or name another file\n"
    )
    if words == ["--json"]:
        data = json.loads(run.out)
        assert data["results"] and "plot" not in data
        (tmp_path / "data").write_text(run.out)
        run = world.test("--from", f"{tmp_path}/data", "--plot", file)
        assert (run.status, run.out) == (1, "") and "No space left" in run.err
    else:
        assert "two-to-one" in run.out and "the picture is" not in run.out


# Runs


def test_each_run_has_a_fresh_scheduler(world):
    """bfq without its heuristics, the knob of an experiment for its own runs only."""
    world.test(*SHORT, "--only", "two-to-one", "--only", "dd", "--schedulers", "sutro,bfq")
    (bed,) = Testbed.made
    assert [line for line in bed.log if not line.startswith(("start", "finish", "stop"))] == [
        "bfq",
        "sutro",
        "bfq",
        "sutro fairness=1",
    ]
    assert world.queue("hda", "iosched/low_latency") == "0"


def test_progress(world):
    run = world.test(*SHORT, "--only", "one-read", "--schedulers", "none,sutro")
    assert re.search(r"(?m)^\[1/4\] one-read, none, victim alone \(40 s left\)$", run.err)
    assert re.search(r"(?m)^\[4/4\] one-read, sutro \(10 s left\)$", run.err)


def test_floors_end_with_their_run(world, called):
    """They are policies of the connection, and are half of the rate alone."""
    world.test(*SHORT, "--only", "floor", "--schedulers", "none,sutro")
    calls = [(unit.split("-")[2], pairs, how) for unit, pairs, how in called("SetPolicy")]
    assert {(who, how) for who, _, how in calls} == {("none", "client"), ("sutro", "client")}
    rates = [pairs[0][1].removeprefix("/dev/dm-0 ") for _, pairs, _ in calls]
    assert [bool(rate) for rate in rates] == [True, False] * 2
    assert float(rates[0]) == float(rates[2]) == pytest.approx(100e6, rel=0.01)
    assert sutroctl("status", "--json").json()["promises"] == []


def test_write(world, machine):
    """The file is filled before, and removed after."""
    path = "/srv/sutro-test"
    run = world.test(*SHORT, "--only", "directions", "--write", path)
    assert f"MiB to {path}, and removes that file." in run.err
    (bed,) = Testbed.made
    assert f"--filename={path}" in bed.filled[0]
    data = json.loads(world.test(*SHORT, "--only", "directions", "--write", path, "--json").out)
    assert data["write"] == path and data["experiments"][0]["writes"]
    assert not machine.at(path).exists()


def test_a_file_that_others_may_replace(world, machine):
    """Each job of root opens the file by its name, and would write through a link of theirs."""
    folder = machine.at("/srv/shared")
    folder.mkdir()
    folder.chmod(0o777)
    run = world.test(*SHORT, "--only", "directions", "--write", "/srv/shared/new")
    assert (run.status, run.out) == (1, "")
    assert "--write=/srv/shared/new: other users may replace files in /srv/shared\n" in run.err
    assert "name a file in a directory of root" in run.err
    assert Testbed.made == [] and world.guards == [] and world.is_restored()


def test_an_empty_file_is_not_removed(world, machine):
    """The file of a test is removed at its end, so it has to be one that the test makes."""
    machine.write("/srv/empty", "")
    run = world.test(*SHORT, "--only", "directions", "--write", "/srv/empty")
    assert (run.status, run.out) == (1, "")
    assert "--write=/srv/empty is there already, and the test would remove it\n" in run.err
    assert machine.at("/srv/empty").exists()
    assert Testbed.made == [] and world.is_restored()


def test_without_a_file_writes_are_left_out(world):
    run = world.test(*SHORT)
    assert "directions" not in run.out and "--write FILE" in run.out
    assert "weights-8" in run.out


def test_iocost_has_runs_of_its_own(world, machine):
    """Where an administrator enabled it; it is disabled while others run, and enabled again."""
    qos = "/sys/fs/cgroup/io.cost.qos"
    machine.write(qos, "259:0 enable=1\n259:1 enable=1\n")
    world.test(*SHORT, "--only", "two-to-one", "--schedulers", "iocost,sutro")
    (bed,) = Testbed.made
    assert [leaf.name for leaf in bed.iocost] == ["hda", "hdb"]
    assert "iocost" in bed.log


# Restoration


def test_a_run_that_fails_is_a_missed_goal(world, monkeypatch):
    monkeypatch.setattr(Testbed, "fails", {"two-to-one-sutro": "fio: no space"})
    run = world.test(*SHORT, "--only", "two-to-one")
    assert run.status == 1 and world.is_restored()
    assert re.search(r"FAILED sutro: \S+ ended early: fio: no space", run.out)
    assert "0 of 1 goals of sutro met" in run.out


def test_a_unit_that_fails_alone(world, monkeypatch):
    """There is nothing to compare with, so no run of the experiment follows."""
    monkeypatch.setattr(Testbed, "fails", {"-alone-": "gone"})
    run = world.test(*SHORT, "--only", "floor")
    assert run.out.count("db alone: ") == 4 and world.is_restored()
    (bed,) = Testbed.made
    assert sum(line.startswith("start") for line in bed.log) == 1


SIGNALS = [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]


@contextlib.contextmanager
def stopped(monkeypatch, number, unit, ignored=False):
    """Tests that a signal ends when a unit with this text in its name runs."""
    # A job in the background of a shell ignores Ctrl-C, and under nohup SIGHUP.
    usual = {signal.SIGINT: signal.default_int_handler, signal.SIGHUP: signal.SIG_DFL}
    before = {one: signal.signal(one, handler) for one, handler in usual.items()}
    if ignored:
        signal.signal(number, signal.SIG_IGN)
    try:
        with monkeypatch.context() as now:
            now.setattr(Testbed, "stops_at", unit)
            now.setattr(Testbed, "on_stop", lambda self: os.kill(os.getpid(), number))
            yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def check_stopped(world):
    """Nothing stays behind."""
    assert world.is_restored()
    world.check_managed()
    assert world.systemctl[-1] == ("stop", "sutrotest.slice")
    assert world.guards[-1] == "ended"


@pytest.mark.parametrize(("number", "status"), SIGNALS)
def test_signals(world, monkeypatch, number, status):
    """The test ends at once; the runs before have results, and the rest is a command line."""
    words = (*SHORT, "--only", "two-to-one", "--only", "floor", "--schedulers", "none,sutro")
    with stopped(monkeypatch, number, "floor-none-db"):
        run = world.test(*words, "--json")
    check_stopped(world)
    assert run.status == status
    assert (
        f"PARTIAL: {number.name} ended the test after 3 of 5 runs; not complete: floor." in run.err
    )
    assert "The machine is restored.\n" in run.err
    data = json.loads(run.out)
    partial = data["partial"]
    assert {key: partial[key] for key in ("signal", "runs", "done", "missing")} == {
        "signal": number.name, "runs": 5, "done": 3, "missing": ["floor"],
    }  # fmt: skip
    assert [one["name"] for one in data["experiments"]] == ["two-to-one"]
    assert {one["scheduler"] for one in data["results"]} == {"none", "sutro"}
    assert data["judged"] == data["met"] > 0
    program, verb, *rest = shlex.split(partial["command"])
    assert (program, verb) == ("sutroctl", "test")
    data = json.loads(world.test(*rest, "--yes", "--json").out)
    assert [one["name"] for one in data["experiments"]] == ["floor"] and "partial" not in data


def test_partial_results_as_text(world, monkeypatch, tmp_path):
    """In the table, from the file, and in the report, it is seen that there is no more."""
    words = (*SHORT, "--only", "two-to-one", "--only", "floor", "--write", "/srv/new")
    with stopped(monkeypatch, signal.SIGINT, "two-to-one-bfq"):
        run = world.test(*words)
    said = (
        "PARTIAL: SIGINT ended the test after 2 of 9 runs; not complete: two-to-one, floor.\n"
        "To go on with these: sutroctl test dm-0 --duration=4 --only=two-to-one --only=floor "
        "--write=/srv/new\n"
    )
    assert said in run.out
    assert re.search(r"(?m)^  none +\d", run.out) and "floor: " not in run.out
    with stopped(monkeypatch, signal.SIGINT, "two-to-one-bfq"):
        run = world.test(*words, "--json")
    file = tmp_path / "partial.json"
    file.write_text(run.out)
    assert said in world.test("--from", str(file)).out
    assert "PARTIAL: 2 of 9 runs\n" in world.test("--from", str(file), "--report").out


def test_signal_before_the_first_result(world, monkeypatch):
    """There is nothing to print and nothing to draw."""
    monkeypatch.setattr(command.picture, "check_output", lambda name: None)
    with stopped(monkeypatch, signal.SIGINT, "two-to-one-none"):
        run = world.test(*SHORT, "--only", "two-to-one", "--json", "--plot", "a.svg")
    check_stopped(world)
    assert (run.status, run.out) == (130, "")
    assert run.err.endswith(
        "SIGINT ended the test.\nThe machine is restored.\nNo run has results yet.\n"
    )


def test_a_signal_behind_the_last_run(world, monkeypatch):
    """All results are there, so it ends nothing early."""
    finish = Testbed.finish

    async def last(self, jobs):
        await finish(self, jobs)
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(Testbed, "finish", last)
    run = world.test(*SHORT, "--only", "two-to-one", "--schedulers", "sutro")
    check_stopped(world)
    assert run.status == 0 and "goals of sutro met" in run.out and "PARTIAL" not in run.out


def test_signals_that_are_ignored(world, monkeypatch):
    """As under nohup."""
    with stopped(monkeypatch, signal.SIGHUP, "two-to-one-none", ignored=True):
        run = world.test(*SHORT, "--only", "two-to-one", "--schedulers", "none,sutro")
    assert run.status == 0 and "goals of sutro met" in run.out


class Killed(BaseException):
    """The process ends without a chance to restore."""


@pytest.fixture
def killed(world, monkeypatch):
    """A test that SIGKILL ended while bfq was in use."""

    def kill(self):
        raise Killed

    with monkeypatch.context() as now:
        now.setattr(Testbed, "stops_at", "two-to-one-bfq")
        now.setattr(Testbed, "on_stop", kill)
        now.setattr(state, "restore", lambda: [])
        with pytest.raises(Killed):
            world.test(*SHORT, "--only", "two-to-one")
    assert world.schedulers() == ["bfq", "bfq"] and state.is_left()
    return world


def test_restore_after_a_kill(killed):
    """The guard calls this."""
    run = killed.test("--restore", **NOWHERE)
    assert (run.status, run.out, run.err) == (0, "The machine is restored.\n", "")
    assert killed.is_restored()
    killed.check_managed()
    assert killed.systemctl[-1] == ("stop", "sutrotest.slice")
    assert killed.test("--restore", **NOWHERE).out == "Nothing to restore.\n"
    assert killed.test("--restore", "--json", **NOWHERE).json() == {"restored": False}


def test_the_next_test_restores_first(killed):
    run = killed.test(*SHORT, "--only", "two-to-one", "--json")
    assert "An earlier test has not restored all: restoring.\n" in run.err
    data = json.loads(run.out)
    assert [leaf["scheduler"] for leaf in data["leaves"]] == ["sutro", "sutro"]
    assert killed.is_restored()


def test_a_leaf_that_cannot_be_restored(killed, monkeypatch):
    """It is named with its setting; the state stays for another attempt."""

    def refuse(path, value):
        if "hdb" in path:
            raise OSError(16, "Device or resource busy")
        killed.write(path, value)

    with monkeypatch.context() as now:
        now.setattr(files, "write", refuse)
        run = killed.test("--restore", **NOWHERE)
    assert run.status == 1 and state.is_left()
    assert "/dev/hdb: queue/scheduler = sutro: Device or resource busy" in run.err
    assert killed.schedulers() == ["sutro", "bfq"]
    assert killed.test("--restore", **NOWHERE).status == 0
    assert killed.is_restored()


def test_a_damaged_state(killed):
    files.at(state.FILE).write_text('{"leaves": [')
    run = killed.test("--restore", **NOWHERE)
    assert run.status == 1 and "/run/sutro-tests/state.json" in run.err


def test_two_tests_at_once(world):
    with state.locked():
        run = world.test(*SHORT)
    assert (run.status, run.out) == (1, "") and "another test runs" in run.err
    assert Testbed.made == []


# Refusals


@pytest.mark.parametrize(
    ("words", "status", "expected"),
    [
        ([], 2, "a device is missing"),
        (["dm-0", "--list"], 2, "DEVICE and --list exclude each other"),
        (["dm-0", "-y", "--duration", "1"], 2, "--duration=1: allowed is 2 to 600 seconds"),
        (["dm-0", "-y", "--schedulers", "bfq,cfq"], 2, "no scheduler 'cfq': allowed is none, mq-"),
        (["dm-0", "-y", "--only", "two"], 2, "no scenario two; there are two-to-one, streams"),
        (["dm-0", "-y", "--only", "directions"], 2, "experiment directions writes"),
        (["dm-0", "-y", "--plot", "a.gif"], 2, "'a.gif' is no name for a picture"),
        (["dm-0", "-y", "--plot", "/no/such/a.png"], 1, "there is no directory /no/such"),
        (["dm-0"], 2, "there is no terminal to confirm the test on"),
        (["dm-0", "-y", "--write", "/dev/null"], 2, "--write=/dev/null is a device"),
        (["--from", "/no/such"], 1, "/no/such: No such file or directory"),
        (["--from", "/dev/null"], 1, "/dev/null: this is no result of a test"),
    ],
)
def test_slips(words, status, expected, monkeypatch, tmp_path):
    monkeypatch.setattr("sys.stdin", (tmp_path / "empty").open("w+"))
    monkeypatch.setattr(reach, "ROOT", "")
    run = sutroctl("test", *words, **NOWHERE)
    assert (run.status, run.out) == (status, "") and expected in run.err


def test_only_root(world, monkeypatch):
    monkeypatch.setattr(command, "is_root", lambda: False)
    run = world.test(*SHORT)
    assert run.status == 1 and "only root can switch schedulers" in run.err and "sudo" in run.err


def test_a_tool_is_missing(world, monkeypatch):
    monkeypatch.setattr(command, "NEEDED", {"no-such-fio": "fio"})
    run = world.test(*SHORT)
    assert run.status == 1
    assert "no-such-fio is not installed" in run.err and "apt install fio" in run.err


@pytest.mark.parametrize(
    ("device", "expected"),
    [
        ("nosuch", "there is no device and no file named 'nosuch'"),
        ("/proc", "/proc"),
        ("/dev/sdc", "/dev/sdc"),
    ],
)
def test_devices_that_cannot_be_tested(world, device, expected):
    run = world.test(device, "--yes")
    assert (run.status, run.out) == (1, "") and expected in run.err
    assert Testbed.made == [] and world.is_restored()


@pytest.mark.parametrize(
    ("scheduler", "expected", "remedy"),
    [
        ("kyber", "the kernel has no scheduler kyber", "leave it out"),
        ("iocost", "iocost is not enabled on /dev/hda, /dev/hdb", "io.cost.qos"),
    ],
)
def test_schedulers_that_there_are_not(world, scheduler, expected, remedy):
    run = world.test(*SHORT, "--schedulers", f"none,{scheduler}")
    assert run.status == 1 and expected in run.err and remedy in run.err


def test_a_file_elsewhere(world, machine):
    """Its file system is on another device, or on none."""
    machine.mount("/mnt", "8:16", "ext4", "/dev/sdb")
    run = world.test(*SHORT, "--write", "/mnt/new")
    assert run.status == 1 and "--write=/mnt/new: its file system is on /dev/sdb" in run.err
    run = world.test(*SHORT, "--write", "/proc/new")
    assert run.status == 1 and "its file system is on no block device" in run.err


@pytest.mark.parametrize("typed", [b"n\n", b"\n"])
def test_it_is_confirmed_first(world, typed, monkeypatch):
    """Anything but a yes changes nothing; the question names the disks and their other users."""
    ours, theirs = os.openpty()
    os.write(ours, typed)
    with os.fdopen(theirs) as terminal:
        monkeypatch.setattr("sys.stdin", terminal)
        run = world.test("dm-0")
    os.close(ours)
    assert run.status == 1 and "nothing was tested" in run.err and Testbed.made == []
    assert "switches /dev/hda, /dev/hdb between none, mq-deadline, bfq, sutro." in run.err
    assert "On the same disks: /dev/vg0/log." in run.err


def test_the_package_is_missing():
    """The verb is in the package sutro, the tests are not."""
    run = process("sutroctl", "test", "/dev/sda", **NOWHERE)
    assert (run.status, run.out) == (1, "")
    assert "the fairness tests are not installed" in run.err
    assert "apt install sutro-tests" in run.err


def test_help_without_the_package():
    with running("sutroctl", "test", "--help", **NOWHERE) as help_:
        out, err = help_.communicate(timeout=PATIENCE_S)
    assert help_.returncode == 0 and err == "" and "--schedulers" in out


def test_matplotlib_is_optional(monkeypatch):
    """A picture names the package that it needs."""
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    run = sutroctl("test", "dm-0", "-y", "--plot", "a.png", **NOWHERE)
    assert run.status == 1 and "apt install python3-matplotlib" in run.err
