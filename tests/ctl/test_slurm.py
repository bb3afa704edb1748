# SPDX-License-Identifier: LGPL-2.1-or-later
"""sutro-slurm: floors of jobs from prolog to epilog, and their drains."""

import asyncio
import errno
import os
import re
import socket
import struct
import subprocess
import sys
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

import dbus
import pytest
from conftest import HERE, NOWHERE, POLICIES, environment, process
from fakemachine import PATIENCE_S, wait_until
from sutro import journal, slurm
from sutro.errors import NoAnswer, NotRunning, SutroError, UsageError

SCOPE = "/system.slice/n1_slurmstepd.scope"
JOB = f"{SCOPE}/job_7"
EXTRA = "sutro:read=/srv:60M,write=/srv:20M"
FLOORS = ["ReadBandwidthMin=/srv 60M", "WriteBandwidthMin=/srv 20M"]


@pytest.mark.parametrize(
    ("extra", "parsed"),
    [
        ("sutro:read=/a:60M", [("ReadBandwidthMin", "/a", 60 * 10**6)]),
        ("sutro:write=/dev/vg/a-b:1G", [("WriteBandwidthMin", "/dev/vg/a-b", 10**9)]),
        (
            "sutro:read=/a_b:1000000,read=/a:1000T",
            [("ReadBandwidthMin", "/a_b", 10**6), ("ReadBandwidthMin", "/a", 10**15)],
        ),
    ],
)
def test_parse(extra, parsed):
    assert slurm.parse(extra) == parsed


@pytest.mark.parametrize(
    "parts",
    "|read|read=/a|read=:1M|riops=/a:1M|read=a:1M|read=/:1M|read=/a/:1M|read=/a/../b:1M|"
    "read=/a__b:1M|read=/_a:1M|read=/a b:1M|read=/a:1.5G|read=/a:999K|read=/a:60m|read=/a:1M,|"
    "read=/a:1M,read=/a:2M|read=/a:1M\n|read=/ä:1M|read=any:1M|read=/a:30%".split("|"),
)
def test_mistakes(parts):
    """A text that the Lua refuses is refused here, too, with the accepted form."""
    with pytest.raises(UsageError) as caught:
        slurm.parse(f"sutro:{parts}")
    assert "sutro:KIND=PATH:RATE" in caught.value.hint


def in_force(sutrod, cgroup=JOB):
    """KEY=VALUE of the settings in force."""
    return [f"{e['key']}={e['value']}" for e in sutrod.call("GetPolicy", cgroup) if e["in_force"]]


@pytest.fixture
def records(tmp_path):
    """The folder of records, which the first prolog makes."""
    return tmp_path / "records"


def names(records):
    """The records that are there."""
    return [record.name for record in records.iterdir()]


def reset_all(records):
    """Let the service run until it has reset the floors of all records."""

    async def watch():
        program = slurm.Watch(records)
        running = asyncio.ensure_future(program.run())
        await asyncio.to_thread(wait_until, lambda: not names(records))
        program.stop()
        await running

    asyncio.run(watch())


def test_prolog_and_epilog(sutrod, records):
    asyncio.run(slurm.prolog(JOB, "color=red", records))
    assert not records.exists()
    asyncio.run(slurm.prolog(JOB, EXTRA, records))
    assert in_force(sutrod) == FLOORS
    other = JOB + "7"
    asyncio.run(slurm.prolog(other, EXTRA, records))
    asyncio.run(slurm.epilog(JOB, records))
    assert (in_force(sutrod), in_force(sutrod, other)) == ([], FLOORS)
    # Once more, and for a job without floors: nothing to do.
    asyncio.run(slurm.epilog(JOB, records))
    assert names(records) == ["n1:77"]
    asyncio.run(slurm.epilog(other, records))
    with pytest.raises(UsageError):
        asyncio.run(slurm.prolog("/system.slice/db.service", EXTRA, records))
    assert names(records) == []


def test_restart_of_the_daemon(sutrod, records):
    """Floors outlive it; a job that ends without a daemon leaves nothing behind."""
    asyncio.run(slurm.prolog(JOB, EXTRA, records))
    sutrod.stop()
    sutrod.start()
    assert in_force(sutrod) == FLOORS
    sutrod.stop()
    asyncio.run(slurm.epilog(JOB, records))
    assert names(records) == ["n1:7.ended"]
    sutrod.start()
    assert in_force(sutrod) == FLOORS

    reset_all(records)
    assert in_force(sutrod) == []


def test_epilog_that_sutrod_refuses(sutrod, records, monkeypatch, capsys):
    """It succeeds, since slurmd drains the node of a failing one; the service resets the floors."""
    seen = []
    asyncio.run(slurm.prolog(JOB, EXTRA, records))

    async def refused(_client, _unit, _lifetime):
        seen.extend(names(records))
        raise NoAnswer("sutrod does not answer within 25 s")

    with monkeypatch.context() as patch:
        patch.setattr(slurm.Client, "reset_policy", refused)
        asyncio.run(slurm.epilog(JOB, records))
    expected = f"{JOB}: sutrod does not answer within 25 s; its floors are reset later\n"
    assert capsys.readouterr().err == expected
    # Also an epilog that is killed while it waits leaves a record for the service.
    assert seen == ["n1:7.ended"] == names(records)
    assert in_force(sutrod) == FLOORS


def test_job_that_runs_again(sutrod, records):
    """A record of its first run does not take its floors."""
    records.mkdir()
    (records / "n1:7.ended").write_text(f"{JOB}\n")
    asyncio.run(slurm.prolog(JOB, EXTRA, records))
    assert names(records) == ["n1:7"]
    assert in_force(sutrod) == FLOORS


def test_record_that_another_program_removes(tmp_path, monkeypatch):
    """The service goes on, before the reset and after it."""
    (tmp_path / "n1:7.ended").write_text(f"{JOB}\n")
    reset = []

    async def removed(cgroup, _lifetime):
        reset.append(cgroup)
        (tmp_path / "n1:7.ended").unlink()

    program = slurm.Watch(tmp_path)
    program.client = Promises()
    program.client.reset_policy = removed
    asyncio.run(program.step())
    gone = tmp_path / "n1:7.ended"
    monkeypatch.setattr(Path, "glob", lambda _folder, _pattern: [gone])
    asyncio.run(program.step())
    assert reset == [JOB]


@pytest.mark.parametrize("text", [b"", b"\xff\n", b"/a*\n", b"/a\0\n"])
def test_a_record_without_a_cgroup(sutrod, records, capsys, text):
    """The service logs it, removes it, and goes on with the others."""
    asyncio.run(slurm.prolog(JOB, EXTRA, records))
    bad, good = records / "5.ended", records / "n1:7"
    bad.write_bytes(text)
    good.rename(f"{good}.ended")

    reset_all(records)
    assert in_force(sutrod) == []
    assert f"{bad} names no cgroup and is removed: " in capsys.readouterr().err


def test_a_file_that_cannot_be_written(monkeypatch, tmp_path, capsys):
    """A sentence names it."""

    async def epilog(_cgroup):
        (tmp_path / "gone" / "record").touch()

    monkeypatch.setattr(slurm, "epilog", epilog)
    assert slurm.main(["epilog", JOB]) == 1
    expected = f"sutro-slurm: {tmp_path}/gone/record: No such file or directory\n"
    expected += "             correct the name, or make the folder that is missing\n"
    assert capsys.readouterr().err == expected


def test_a_record_is_whole_or_not_there(sutrod, records, monkeypatch):
    """The prolog fails on a full file system, and leaves no empty record."""

    def full(_descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(SutroError, match="n1:7: No space left"):
        asyncio.run(slurm.prolog(JOB, EXTRA, records))
    assert names(records) == [] == in_force(sutrod)


def test_reset_before_the_package_is_removed(sutrod, records):
    """No epilog will reset the floors of jobs that run, nor the service those of ended ones."""
    asyncio.run(slurm.reset(records))
    for cgroup in (JOB, JOB + "7"):
        asyncio.run(slurm.prolog(cgroup, EXTRA, records))
    sutrod.stop()
    asyncio.run(slurm.epilog(JOB, records))
    with pytest.raises(NotRunning):
        asyncio.run(slurm.reset(records))
    assert sorted(names(records)) == ["n1:7.ended", "n1:77"]
    sutrod.start()
    asyncio.run(slurm.reset(records))
    assert names(records) == [] == in_force(sutrod) + in_force(sutrod, JOB + "7")


@pytest.mark.parametrize(
    ("words", "status", "expected"),
    [
        (["reset"], 0, ""),
        (["prolog", "/a", EXTRA], 2, "'/a' is no cgroup of a Slurm job"),
        (["prolog", "/\udcff" + JOB, EXTRA], 2, "is no cgroup of a Slurm job"),
        (["epilog", "/\udcff" + JOB], 2, "is no cgroup of a Slurm job"),
        (["prolog", JOB, "color=red"], 0, ""),
        (["epilog", JOB], 0, ""),
    ],
)
def test_command(sutrod, words, status, expected):
    run = process("sutro-slurm", *words)
    assert (run.status, expected in run.err) == (status, True)


@dataclass
class Promises:
    """A client with promises, which the test changes."""

    rows: list = field(default_factory=list)

    async def promises(self):
        return self.rows


def row(state, cgroup=JOB):
    """A row of ListPromises."""
    floor = {"key": "ReadBandwidthMin", "path": "/srv", "cause": "need 1.5 of /dev/sda"}
    return floor | {"cgroup": cgroup, "state": state}


def test_lasting_infeasible_drains_the_node(tmp_path):
    drained, now_s = [], 0.0
    fail = False

    def drain(node, reason):
        if fail:
            raise SutroError("scontrol cannot drain")
        drained.append((node, reason))

    program = slurm.Watch(tmp_path, drain, lambda: now_s)
    program.client = Promises()

    def look(seconds, *rows):
        nonlocal now_s
        now_s += seconds
        program.client.rows = list(rows)
        asyncio.run(program.step())

    other = row("infeasible", "/system.slice/db.service")
    look(0, row("infeasible"), other)
    look(29, row("infeasible"), other)
    # It held in between.
    look(0.5, row("held"), other)
    look(1, row("infeasible"), other)
    look(29, row("infeasible"), other)
    assert drained == []
    fail = True
    look(1, row("infeasible"))
    fail = False
    for _ in range(2):
        look(5, row("infeasible"))
    assert drained == [
        (
            "n1",
            "sutro: ReadBandwidthMin=/srv of job 7 is infeasible: need 1.5 of /dev/sda",
        )
    ]
    look(5)
    look(5, row("infeasible"))
    look(30, row("infeasible"))
    assert len(drained) == 2


class Commands:
    """scontrol and scancel that record their words; those with a word of `fail` fail."""

    TASK = "JobId=7 ArrayJobId=7 ArrayTaskId=3 JobName=a"

    def __init__(self, folder):
        self.folder, self.fail = folder, folder / "fail"
        for name in ("scontrol", "scancel"):
            script = folder / name
            script.write_text(
                f"""#!/bin/sh
                {{ printf "%s|" {name} "$@"; echo; }} >>{folder}/called
                case "$*" in *"show job"*) cat {folder}/job;; esac
                for word in $(cat {self.fail}); do
                    case "{name} $*" in *$word*) echo "no $word" >&2; exit 1;; esac
                done
                """
            )
            script.chmod(0o755)
        for name in ("fail", "job", "called"):
            (folder / name).write_text("")

    def called(self):
        """The words of the commands since the last call."""
        lines = (self.folder / "called").read_text().splitlines()
        (self.folder / "called").write_text("")
        return [line.split("|")[:-1] for line in lines]


@pytest.fixture
def commands(tmp_path, monkeypatch):
    folder = tmp_path / "commands"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    return Commands(folder)


@pytest.mark.parametrize("job", [JOB, "/system.slice/slurmstepd.scope/job_7"])
def test_pattern_of_the_guide(job):
    """It matches the cgroup of a job with and without several slurmd on a machine."""
    text = (HERE.parent.parent / "Documentation/guides/slurm.rst").read_text()
    (pattern,) = re.findall(r"^ *Cgroup=(.*)$", text, re.MULTILINE)
    assert fnmatch(job, pattern) and slurm.JOB.fullmatch(job)


def test_drain(commands):
    """scontrol gets one argument each, and its failure is a sentence."""
    slurm.drain("n1", "a reason")
    assert commands.called() == [
        ["scontrol", "update", "nodename=n1", "state=drain", "reason=a reason"]
    ]
    commands.fail.write_text("drain")
    with pytest.raises(SutroError, match="scontrol cannot drain n1: no drain"):
        slurm.drain("n1", "a reason")


# Texts of jobs: the comment that the job gets.
BAD = {
    "sutro:read=/srv": "'read=/srv' is malformed; allowed is sutro:KIND=PATH:RATE",
    "sutro:read=/s\nrv:60M": "'/s\\nrv' is no path for Slurm; allowed is sutro:KIND=PATH:RATE",
    "sutro:read=/srv:60M,write=/scrtach:20M": "'/scrtach' is out of reach of sutrod: "
    "it does not exist; mount a volume there",
    "sutro:read=/run:60M": "'/run' is out of reach of sutrod: it lies on tmpfs, "
    "which has no block device; mount a volume there",
    "sutro:read=/home:60M": "'/home' is out of reach of sutrod: it lies on nfs4, "
    "which has no block device; mount a volume there",
}


@pytest.fixture
def mounts(machine):
    machine.mount("/run", "0:25", "tmpfs", "tmpfs")
    machine.mount("/home", "0:60", "nfs4", "server:/home")


@pytest.mark.parametrize("extra", BAD)
def test_prolog_holds_a_job_with_a_bad_text(mounts, commands, tmp_path, extra):
    """The prolog succeeds without a bus, so slurmd does not drain the node."""
    process = ["rooted.py", tmp_path / "machine", POLICIES / "sutro-slurm", "prolog", JOB, extra]
    run = subprocess.run(
        [sys.executable, HERE / process[0], *process[1:]],
        env=environment() | NOWHERE,
        capture_output=True,
        text=True,
    )
    assert (run.returncode, run.stdout) == (0, "")
    comment = f"sutro on n1: {BAD[extra]}"
    assert run.stderr.startswith(f"job 7 is held, unless it has ended: {comment}")
    show, update, hold = commands.called()
    assert show == ["scontrol", "--oneliner", "show", "job", "7"]
    assert update[:3] == ["scontrol", "update", "jobid=7"]
    assert update[3].startswith(f"admincomment={comment}")
    assert hold == ["scontrol", "requeuehold", "Incomplete", "7"]


def test_prolog_without_a_daemon(machine, own_bus, commands, monkeypatch, tmp_path):
    """A job with a good text is not held for a fault of the node: the prolog fails."""
    monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", own_bus.address)
    with pytest.raises(NotRunning):
        asyncio.run(slurm.prolog(JOB, "sutro:read=/srv:60M", tmp_path / "records"))
    assert commands.called() == []


def test_hold_of_a_task(commands, capsys):
    """The number of a task may stand for its whole array."""
    (commands.folder / "job").write_text(f"JobId=8 ArrayJobId=7 ArrayTaskId=2 \n{commands.TASK}\n")
    slurm.hold("7", "a reason")
    assert [words[-1] for words in commands.called()[1:]] == ["admincomment=a reason", "7_3"]
    slurm.hold("8", "a reason")
    assert commands.called()[2] == ["scontrol", "requeuehold", "Incomplete", "7_2"]
    assert capsys.readouterr().err.startswith("job 7_3 is held, unless it has ended: a reason\n")


def test_hold_of_a_job_whose_name_is_not_utf8(commands, capsys):
    """The prolog succeeds: a user chooses the name, and a failure would drain the node."""
    (commands.folder / "job").write_bytes(commands.TASK.encode() + b"\xff\n")
    slurm.hold("7", "a reason")
    assert commands.called()[2] == ["scontrol", "requeuehold", "Incomplete", "7_3"]


def test_hold_of_a_job_that_cannot_wait(commands, capsys):
    """It is cancelled; a failure of both is one of the prolog."""
    commands.fail.write_text("update requeuehold")
    slurm.hold("7", "a reason")
    assert commands.called()[3:] == [["scancel", "7"]]
    assert capsys.readouterr().err.splitlines() == [
        "job 7 gets no comment: no update",
        "job 7 is cancelled, because it cannot be held (no requeuehold): a reason",
    ]
    commands.fail.write_text("requeuehold scancel")
    with pytest.raises(SutroError, match="no scancel"):
        slurm.hold("7", "a reason")


class Journal:
    """A socket in the place of that of systemd-journald."""

    def __init__(self, folder, monkeypatch):
        monkeypatch.setattr(journal, "SOCKET", str(folder / "journal"))
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(journal.SOCKET)
        self.socket.settimeout(PATIENCE_S)

    def receive(self):
        """The fields of the next message."""
        fields, data = {}, self.socket.recv(65536)
        while data:
            name, _, data = data.partition(b"\n")
            (size,) = struct.unpack_from("<Q", data)
            assert data[8 + size : 9 + size] == b"\n"
            fields[name.decode()], data = data[8 : 8 + size].decode(), data[9 + size :]
        return fields


def test_hold_in_the_journal(commands, capsys, tmp_path, monkeypatch):
    """Held or cancelled: a message with an id, and a line in the log of slurmd."""
    messages = Journal(tmp_path, monkeypatch)
    for fail, text in (("", "held, unless"), ("requeuehold", "cancelled, because")):
        commands.fail.write_text(fail)
        slurm.hold("7", "a reason")
        message = messages.receive()
        assert message["MESSAGE_ID"] == journal.JOB_REFUSED and message["PRIORITY"] == "5"
        assert (message["SUTRO_JOB"], message["SUTRO_REASON"]) == ("7", "a reason")
        assert message["MESSAGE"].startswith(f"job 7 is {text}")
        assert capsys.readouterr().err == message["MESSAGE"] + "\n"


@pytest.mark.parametrize("is_journal", [True, False])
def test_drain_in_the_journal(tmp_path, monkeypatch, capfd, is_journal):
    """Standard error of the service is the journal: the line is not written there again."""
    messages, now_s = Journal(tmp_path, monkeypatch), 0.0
    st = os.fstat(sys.stderr.fileno())
    monkeypatch.setenv("JOURNAL_STREAM", f"{st.st_dev}:{st.st_ino if is_journal else 0}")
    program = slurm.Watch(tmp_path / "records", lambda *_: None, lambda: now_s)
    program.client = Promises()
    program.client.rows = [row("infeasible")]
    for _ in range(2):
        asyncio.run(program.step())
        now_s += slurm.DRAIN_AFTER_S
    message = messages.receive()
    assert message["MESSAGE_ID"] == journal.NODE_DRAINED and message["PRIORITY"] == "4"
    assert [message["SUTRO_" + name] for name in ("NODE", "JOB", "CGROUP")] == ["n1", "7", JOB]
    assert message["MESSAGE"].startswith("n1 is drained: sutro: ReadBandwidthMin=/srv of job 7")
    assert capfd.readouterr().err == ("" if is_journal else message["MESSAGE"] + "\n")


def test_command_that_hangs(commands, monkeypatch):
    """A controller that does not answer does not stop the prolog or the service."""
    (commands.folder / "scontrol").write_text("#!/bin/sh\nexec sleep 60\n")
    monkeypatch.setattr(slurm, "COMMAND_LIMIT_S", 0.2)
    with pytest.raises(SutroError, match="cannot drain n1: scontrol does not end within 0.2 s"):
        slurm.drain("n1", "a reason")


def test_hold_without_slurm(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SutroError, match="scontrol: No such file or directory"):
        slurm.hold("7", "a reason")


def test_prolog_without_floors():
    """It ends before it looks at the node."""
    for extra in ("", "color=red"):
        environment = {"SLURM_JOB_EXTRA": extra, "SLURM_JOB_ID": "7"}
        run = subprocess.run([POLICIES / "slurm/prolog"], env=environment, capture_output=True)
        assert (run.returncode, run.stdout, run.stderr) == (0, b"", b"")


@pytest.mark.parametrize("name", ["prolog", "epilog"])
def test_commands_of_a_slurm_elsewhere(tmp_path, name):
    """A prolog of the site has them in its PATH; slurmd itself sets none."""
    script = tmp_path / name
    script.write_text((POLICIES / "slurm" / name).read_text().replace("/sys/fs/", f"{tmp_path}/"))
    (tmp_path / "cgroup/system.slice/slurmstepd.scope").mkdir(parents=True)
    tools = tmp_path / "slurm/bin"
    tools.mkdir(parents=True)
    (tools / "scontrol").write_text("#!/bin/sh\necho found\n")
    (tools / "sutro-slurm").write_text("#!/bin/sh\nscontrol && ls / >/dev/null\n")
    for tool in tools.iterdir():
        tool.chmod(0o755)
    job = {"SLURM_JOB_ID": "7", "SLURM_JOB_EXTRA": EXTRA}
    run = subprocess.run(
        ["/bin/sh", script], env=job | {"PATH": str(tools)}, capture_output=True, text=True
    )
    assert (run.stdout, run.returncode) == ("found\n", 0), run.stderr


CONF = "/etc/sutro/sutrod.conf"
SERVICE = "db.service"


def pairs(*assignments):
    """KEY=VALUE as the pairs of SetPolicy."""
    return dbus.Array([tuple(one.split("=", 1)) for one in assignments], "(ss)")


def test_job_beyond_the_capacity(machine, sutrod, records, monkeypatch):
    """It is held with the reason, and leaves no record. A prolog that fails drains the node."""
    machine.write(CONF, "[Capacity]\nDevice=/srv read=100M\nAdmission=refuse\n")
    sutrod.call("Reload")
    sutrod.call("SetPolicy", SERVICE, pairs("ReadBandwidthMin=/srv 50M"), "runtime")
    held = []
    monkeypatch.setattr(slurm, "hold", lambda job, reason: held.append((job, reason)))
    asyncio.run(slurm.prolog(JOB, EXTRA, records))
    ((job, reason),) = held
    assert job == "7" and reason.startswith("sutro on n1: ") and "scontrol release" in reason
    assert "/srv can promise 100M, of which 50M are promised" in reason
    assert (in_force(sutrod), names(records)) == ([], [])
    sutrod.call("ResetPolicy", SERVICE, "runtime")
    asyncio.run(slurm.prolog(JOB, EXTRA, records))
    assert in_force(sutrod) == FLOORS
