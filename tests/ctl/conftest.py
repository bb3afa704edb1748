# SPDX-License-Identifier: LGPL-2.1-or-later
"""The real sutroctl and the real sutrod, on a fake machine (fakemachine.py):

/dev/vg0/db  dm-0 striped ---- hda, hdb          (sutro, sutro), mounted at /srv
/dev/vg0/log dm-1 linear  ---- hdb
/dev/mapper/secret dm-2 crypt - md0 raid1 - sda1, sdb   (bfq, none), sda1 is a partition
sdc, a drive without a medium

The clock of the daemon is virtual and runs CLOCK_RATE times as fast as that of sutroctl.
"""

import contextlib
import io
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import dbus
import pytest
from dbusmock import MOCK_IFACE, BusType, SpawnedMock
from fakemachine import (
    INTERFACE,
    NAME,
    PATH,
    PATIENCE_S,
    SUTROD,
    UNSET,
    Machine,
    Systemd,
)
from hypothesis import HealthCheck, settings
from livedaemon import LiveDaemon
from privatebus import PrivateBus
from sutro import client, connection, counters, reach, textfile
from sutro import sutroctl as command
from sutro.errors import UsageError

HERE = Path(__file__).parent
# The exporter that is installed, and the one that the tests run, which has sanitizers.
PLAIN_EXPORTER = Path(SUTROD).with_name("sutro-exporter")
EXPORTER = Path(os.environ.get("SUTRO_EXPORTER", PLAIN_EXPORTER))
POLICIES = HERE.parent.parent / "policies"
NOWHERE = {"DBUS_SYSTEM_BUS_ADDRESS": "unix:path=/nonexistent/bus"}
CLOCK_RATE = 25
# Of the daemon's clock, after which floors and targets have their states.
SETTLES_S = 40

# No random case has a limit on the clock of the host.
UNTIMED = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
# A change must not fail for a case that another one has missed: the first tier has the same cases
# in each run. "meson test --suite long" sets HYPOTHESIS_PROFILE=long, and looks for others.
settings.register_profile("short", **UNTIMED, max_examples=25, derandomize=True)
settings.register_profile("long", **UNTIMED, max_examples=1000)
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
    # sutroctl runs the exporter.
    keep["PATH"] = f"{EXPORTER.parent}:{keep['PATH']}"
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


def process(program, *args, stdin=None, **more):
    """Run a program of policies/ as a process, to its end."""
    run = subprocess.run(
        [sys.executable, POLICIES / program, *args],
        env=environment() | more,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    return Run(run.returncode, run.stdout, run.stderr)


def check_mistake(read, file, text, line, expected):
    """Reading a file with this text is refused: the line, and the mistake there."""
    file.write_text(text)
    with pytest.raises(UsageError) as caught:
        read(str(file))
    assert caught.value.message.startswith(f"{file}:{line}: "), caught.value.message
    assert expected in caught.value.message


@contextlib.contextmanager
def running(
    *command, root=None, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, group=None, **more
):
    """A program that goes on until the test stops it; with a root, on the files of that machine.

    With a group of 0, it has a process group of its own, as a job of a shell has.
    """
    before = [HERE / "rooted.py", root] if root else []
    process = subprocess.Popen(
        [sys.executable, *before, POLICIES / command[0], *command[1:]],
        env=environment() | more,
        stdin=stdin,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        process_group=group,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def machine(tmp_path):
    machine = Machine(tmp_path.resolve() / "machine")
    gib = 2 * 2**20
    for name, devno, scheduler, size in (
        ("hda", "259:0", "sutro", 10),
        ("hdb", "259:1", "sutro", 10),
        ("sda", "8:0", "bfq", 21),
        ("sdb", "8:16", "none", 20),
        ("sdc", "8:32", "none", 0),
    ):
        machine.disk(name, devno, scheduler, sectors=size * gib)
    machine.partition("sda", "sda1", "8:1")
    machine.stripe("dm-0", "254:0", "hda hdb", "vg0-db")
    machine.stripe("dm-1", "254:1", "hdb", "vg0-log")
    machine.raid("md0", "9:0", "sda1 sdb", "raid1", 20 * gib)
    machine.mapped("dm-2", "254:2", "md0", "secret", "CRYPT-LUKS2-x-secret", 20 * gib)
    machine.mount("/srv", "254:0", "ext4", "/dev/mapper/vg0-db")
    machine.write("/srv/db/file", "")
    machine.mount("/proc", "0:5", "proc", "proc")
    for cgroup in ("/init.scope", "/system.slice", "/payload"):
        machine.cgroup(cgroup)
    return machine


@pytest.fixture
def systemd(bus, machine):
    systemd = Systemd(bus, machine)
    systemd.unit("backup.service", "", 50, active=False)
    for slice_, weight in (("batch.slice", 20), ("user-1000.slice", UNSET)):
        systemd.start(slice_, weight, slice="/")
    systemd.start("db.service", 300, [("/dev/vg0/db", 400)], dropins=[DROPIN])
    systemd.start("web.service")
    systemd.start("idle.service")
    systemd.start("job.service", slice="/batch.slice")
    # Nothing beside it sets a weight, so systemd has enabled no io controller for it.
    systemd.unit("log.service", "/job.slice/log.service")
    systemd.start("job.slice", slice="/")
    machine.at("/sys/fs/cgroup/job.slice/log.service").mkdir()
    return systemd


# A line of io.stat after its device.
IO_STAT = "rbytes={} wbytes=20 rios=3 wios=4 dbytes=5 dios=6"

# cgroup: {leaf or device: (part of a leaf's time, bytes read, bytes written in a second)}
USE = {
    "/system.slice/db.service": {
        "259:0": (0.7931, 31_550_000, 1536),
        "259:1": (0.8012, 31_550_000, 0),
        "254:0": (0, 63_100_000, 1536),
    },
    "/system.slice/web.service": {
        "259:0": (0.2067, 20_850_000, 450_000),
        "259:1": (0.1988, 20_850_000, 450_000),
        "254:0": (0, 41_700_000, 900_000),
    },
    "/batch.slice/job.service": {
        "259:0": (0.0002, 4096, 0),
        "8:0": (0, 29_500_000, 7_905_280),
        "8:16": (0, 0, 7_905_280),
        "254:2": (0, 29_500_000, 7_905_280),
    },
    "/batch.slice": {"8:0": (0, 29_500_000, 7_905_280)},
    "/": {"8:0": (0, 29_500_000, 7_905_280)},
    "/payload": {"259:1": (0.0001, 0, 300_000)},
}

DROPIN = "/etc/systemd/system/db.service.d/sutro.conf"
CONF = "/etc/sutro/sutrod.conf"
# File: unit and its settings.
POLICIES_OF = {
    "/etc/sutro/policy.d/db.policy": (
        *("db", "ReadBandwidthMin=/dev/vg0/db 60M", "WriteBandwidthMin=/dev/vg0/db 10M"),
        "LatencyTarget=/srv 10ms",
    ),
    "/etc/sutro/policy.d/web.policy": (
        *("web", "ReadBandwidthMin=/srv 80M", "WriteBandwidthMin=/srv 1.5M"),
    ),
    "/etc/sutro/policy.d/job.policy": (
        *("job", "WriteIOPSMin=/dev/mapper/secret 5000", "ReadBandwidthMax=/dev/mapper/secret 30M"),
    ),
    "/etc/sutro/policy.d/idle.policy": (
        *("idle", "ReadBandwidthMin=/mnt/backup 5M", "ReadIOPSMin=/dev/vg0/log 100"),
    ),
    "/usr/lib/sutro/policy.d/50-services.policy": ("db", "Importance=50"),
}


def write_policy(machine, file):
    unit, *assignments = POLICIES_OF[file]
    text = ["[Match]", f"Unit={unit}.service", "[X-Sutro]", *assignments, ""]
    machine.write(file, "\n".join(text))


def serve(machine, now_s):
    """Write the counters at a time of units that always use the same."""
    # Bucket 17 of the latencies of reads ends at 6.29 ms.
    rest = f"wait_ns={int(now_s * 8e9)} backlog_ns={int(now_s * 1e9)} queued=8 "
    rest += f"rlat={17 * '0,'}{int(now_s * 100)}\n"
    for cgroup, devices in USE.items():
        stats = {"io.sutro.stat": "", "io.stat": ""}
        for devno, (part, read, written) in devices.items():
            line = f"{devno} rbytes={int(read * now_s)} wbytes={int(written * now_s)} "
            line += f"rios={int(read * now_s / 4096)} wios={int(written * now_s / 4096)}"
            if part:
                stats["io.sutro.stat"] += f"{line} time_ns={int(part * now_s * 1e9)} {rest}"
            else:
                stats["io.stat"] += line + "\n"
        for file, text in stats.items():
            machine.write(f"/sys/fs/cgroup{cgroup}/{file}", text)


class Daemon(LiveDaemon):
    """The daemon, and the settings that clients hold."""

    def held(self, unit):
        """The settings of clients for a unit: KEY=VALUE."""
        entries = self.call("GetPolicy", unit)
        return [f"{e['key']}={e['value']}" for e in entries if e["source"].startswith("client")]


@pytest.fixture
def without_module(machine, bus):
    """No file of the module, no daemon, and reads of db.service on the device of a volume."""
    for path in ("/system.slice/db.service", "/system.slice/app.service/worker", "/user.slice"):
        machine.cgroup(path)
    for file in machine.root.rglob("io.sutro.*"):
        file.unlink()
    for name in ("hda", "hdb"):
        machine.set_scheduler(name, "bfq")
    machine.disk("dm-9", "254:9", slaves="hda")
    text = f"259:0 {IO_STAT}\n254:9 {IO_STAT}\n"
    for cgroup, rbytes in {"": 99, "/system.slice": 70, "/system.slice/db.service": 10}.items():
        machine.write(f"/sys/fs/cgroup{cgroup}/io.stat", text.format(rbytes, rbytes))
    return machine


@pytest.fixture
def daemon(bus, machine, systemd, tmp_path):
    """The daemon, not yet started."""
    bus.allow(True)
    daemon = Daemon(
        bus, machine, tmp_path, serve=lambda now_s: serve(machine, now_s), rate=CLOCK_RATE
    )
    daemon.thread.start()
    yield daemon
    daemon.end()


@pytest.fixture
def sutrod(daemon):
    """A sutrod that manages hda and hdb, without policies."""
    daemon.start()
    daemon.call("UseDevices", ["/dev/hda", "/dev/hdb"])
    return daemon


@pytest.fixture
def promised(machine, sutrod):
    """A sutrod that keeps promises."""
    for file in POLICIES_OF:
        write_policy(machine, file)
    machine.write(DROPIN, "[X-Sutro]\nImportance=200\n")
    sutrod.call("ReloadPolicies")
    sutrod.elapse(SETTLES_S)
    return sutrod


@pytest.fixture
def declared(promised):
    """The same, with a capacity of /srv."""
    promised.machine.write(CONF, "[Capacity]\nDevice=/srv read=150M write=20M\n")
    promised.call("Reload")
    return promised


@pytest.fixture(autouse=True)
def called(monkeypatch, tmp_path):
    """Calls of sutroctl() by member; paths in the replies and counters are the machine's."""
    calls = []
    root, call = str(tmp_path.resolve() / "machine"), client.Client.call

    async def recorded(self, service, path, interface, member, signature="", *body):
        calls.append((member, connection.plain(list(body))))
        reply = await call(self, service, path, interface, member, signature, *body)
        return json.loads(json.dumps(reply).replace(root, ""))

    monkeypatch.setattr(client.Client, "call", recorded)
    monkeypatch.setattr(reach, "ROOT", root)
    monkeypatch.setattr(counters, "ROOT", Path(root))
    monkeypatch.setattr(textfile, "EXPORTER", (*textfile.EXPORTER, f"--root={root}"))
    return lambda member: [body for name, body in calls if name == member]


ANSWER = """[{"node": "/dev/hda", "name": "hda", "devno": "259:0", "kind": "disk", "leaf": True,
"slaves": dbus.Array([], "s"), "aliases": dbus.Array([], "s"), "managed": False,
"hung": False, "size_bytes": 4096, "scheduler": "sutro"}]"""
UNIT = """{"unit": "db.service", "cgroup": "/db.service", "weight": 100, "weight_set": False,
"device_weights": dbus.Array([], "(st)")}"""
ANSWERS = {
    "ListDevices": ("", "aa{sv}", ANSWER),
    "ListUnits": ("", "aa{sv}", f"[{UNIT}]"),
    "ListPromises": ("", "aa{sv}", "[]"),
    "ListResyncs": ("", "aa{sv}", "[]"),
    "ListUsage": ("", "aa{sv}", "[]"),
    "Explain": ("ss", "a{sv}", UNIT + ' | {"device": "", "leaves": dbus.Array([], "a{sv}")}'),
    "UseDevices": ("as", "aa{sv}", "[]"),
    "ReleaseDevices": ("as", "aa{sv}", "[]"),
    "GetPolicy": ("s", "aa{sv}", "[]"),
    "SetPolicy": ("sa(ss)s", "", "None"),
    "ReloadPolicies": ("", "", "None"),
    "Dump": ("", "s", "''"),
}


class BrokenDaemon:
    """A mock of org.sutro1 that always has the same answers, or errors that no sutrod has."""

    def __init__(self):
        self.service = SpawnedMock.spawn_for_name(
            NAME, PATH, INTERFACE, BusType.SYSTEM, subprocess.DEVNULL, subprocess.DEVNULL
        )
        self.mock = dbus.Interface(self.service.obj, MOCK_IFACE)
        for member, (takes, returns, answer) in ANSWERS.items():
            self.mock.AddMethod("", member, takes, returns, f"ret = {answer}")
        properties = {"Version": "0.0.9", "DryRun": False}
        properties["ManagedLeaves"] = dbus.Array([], signature="s")
        self.mock.AddProperties(INTERFACE, properties)

    def fail(self, member, name, text):
        """Let a method answer with an error from now on."""
        takes, returns, _ = ANSWERS[member]
        error = f"raise dbus.exceptions.DBusException({text!r}, name={name!r})"
        self.mock.AddMethod("", member, takes, returns, error)

    def policies(self):
        """The arguments of all calls of SetPolicy."""
        return [arguments for _, arguments in self.mock.GetMethodCalls("SetPolicy")]

    def stop(self):
        """End the service."""
        self.service.process.kill()
        self.service.process.wait()


@pytest.fixture
def broken(bus, systemd):
    daemon = BrokenDaemon()
    yield daemon
    daemon.stop()


@pytest.fixture
def own_bus(monkeypatch):
    """A bus of its own without services."""
    monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", "")
    bus = PrivateBus()
    yield bus
    bus.stop()
