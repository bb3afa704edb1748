# SPDX-License-Identifier: LGPL-2.1-or-later
"""What is said about units, where it can be said, and by whom: real units, files, bus, programs."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from rig import bus
from rig.modeldisk import ModelDisk
from rig.shell import CommandError, run, wait_for
from rig.unit import Unit

SOON_S = 60.0
NOBODY = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"]
UNIT_FILE = Path("/run/systemd/system/rig-said.service")
POLICY_D = Path("/etc/sutro/policy.d")


@pytest.fixture
def leaf(disk, daemon: None) -> ModelDisk:
    """A disk in use by sutro."""
    one = disk("ssd", "ssd0", bus_kbps=20000)
    run("sutroctl", "use", one.node)
    return one


def said(unit: str) -> dict[str, int]:
    """Values of the promises of a unit, by key."""
    return {one["key"]: one["value"] for one in bus.promises(unit)}


def becomes(unit: str, wanted: dict[str, int]) -> None:
    """The promises of a unit are these soon."""
    try:
        wait_for(lambda: said(unit) == wanted, "", SOON_S)
    except TimeoutError:
        assert said(unit) == wanted


def source(unit: str) -> str:
    """Where its one promise is said."""
    (one,) = bus.promises(unit)
    return one["source"]


@pytest.fixture
def policy_file() -> Iterator[Path]:
    """A *.policy file of the administrator, which goes."""
    file = POLICY_D / "rig.policy"
    yield file
    file.unlink(missing_ok=True)


@pytest.fixture
def unit_file() -> Iterator[Path]:
    """A unit file with a drop-in folder, which go."""
    folder = UNIT_FILE.with_suffix(".service.d")
    folder.mkdir(parents=True)
    yield UNIT_FILE
    run("systemctl", "stop", UNIT_FILE.name)
    for file in [UNIT_FILE, *folder.iterdir()]:
        file.unlink(missing_ok=True)
    folder.rmdir()
    run("systemctl", "daemon-reload")


def journal(since_s: float) -> str:
    """What the daemon said since then."""
    return run("journalctl", "--unit=sutrod", f"--since=@{since_s:.0f}", "--output=cat")


# where it is said


def test_unit_file_and_drop_in(leaf: ModelDisk, unit_file: Path) -> None:
    """[X-Sutro] of a unit file; a drop-in wins; a mistake changes nothing and is told."""
    since = time.time()
    text = "[Service]\nExecStart=sleep infinity\nIOWeight=150\n[X-Sutro]\n"
    text += f"ReadBandwidthMin={leaf.node} "
    unit_file.write_text(text + "4M\n")
    run("systemctl", "daemon-reload")
    run("systemctl", "start", unit_file.name)
    becomes(unit_file.name, {"ReadBandwidthMin": 4_000_000})
    assert source(unit_file.name) == f"{unit_file}:5"

    unit_file.write_text(text + "5M\n")
    run("systemctl", "daemon-reload")
    becomes(unit_file.name, {"ReadBandwidthMin": 5_000_000})

    drop_in = unit_file.with_suffix(".service.d") / "50-more.conf"
    drop_in.write_text(f"[X-Sutro]\nReadBandwidthMin={leaf.node} 6M\n")
    run("systemctl", "daemon-reload")
    becomes(unit_file.name, {"ReadBandwidthMin": 6_000_000})
    assert source(unit_file.name) == f"{drop_in}:2"

    drop_in.write_text(f"[X-Sutro]\nReadBandwidthMin={leaf.node} 7M\nReadBandwithMin=/ 1M\n")
    run("systemctl", "daemon-reload")
    wait_for(lambda: bus.get("PolicyErrors"), "a mistake is known", SOON_S)
    (error,) = bus.get("PolicyErrors")
    assert error.startswith(f'{drop_in}:3: "')
    assert "ReadBandwithMin" in error
    assert error in journal(since)
    assert said(unit_file.name) == {"ReadBandwidthMin": 6_000_000}

    drop_in.unlink()
    run("systemctl", "daemon-reload")
    becomes(unit_file.name, {"ReadBandwidthMin": 5_000_000})
    assert bus.get("PolicyErrors") == []
    # systemd itself has nothing to say against the section.
    assert "X-Sutro" not in run("journalctl", f"--since=@{since:.0f}", "_PID=1", "--output=cat")


@pytest.mark.first
def test_policy_file(leaf: ModelDisk, units, policy_file: Path) -> None:
    """A glob is about all units that it matches, those of later as well."""
    since = time.time()
    one, other = units("glob-a"), units("other")
    good = f"[Match]\nUnit=rig-glob-*.service\n[X-Sutro]\nReadBandwidthMin={leaf.node} 4M\n"
    policy_file.write_text(good)
    run("sutroctl", "policy", "reload")
    becomes(one.unit, {"ReadBandwidthMin": 4_000_000})
    late = units("glob-b")
    becomes(late.unit, {"ReadBandwidthMin": 4_000_000})
    assert source(late.unit) == f"{policy_file}:4"
    assert said(other.unit) == {}

    policy_file.write_text(good.replace("4M", "4 parsecs"))
    assert run_fails("sutroctl", "policy", "check", str(policy_file)).startswith(
        f"{policy_file}:4:"
    )
    run_fails("sutroctl", "policy", "reload")
    (error,) = bus.get("PolicyErrors")
    assert f"{policy_file}:4:" in error and "4 parsecs" in error
    assert error in journal(since)
    becomes(one.unit, {"ReadBandwidthMin": 4_000_000})

    policy_file.unlink()
    run("systemctl", "reload", "sutrod")
    becomes(one.unit, {})
    assert bus.get("PolicyErrors") == []


def run_fails(*words: str) -> str:
    """A command that fails; all that it said."""
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_bus(leaf: ModelDisk, units) -> None:
    """At run time: before the unit is there, over a restart of the daemon, and taken back."""
    bus.set_policy("rig-late.service", "persistent", ReadBandwidthMin=f"{leaf.node} 3M")
    bus.set_policy("rig-late.service", "runtime", ReadBandwidthMin=f"{leaf.node} 4M")
    folders = ("/etc/sutro/policy.control", "/run/sutro/policy.control")
    files = [Path(folder) / "rig-late.service.policy" for folder in folders]
    try:
        assert all(file.stat().st_mode & 0o777 == 0o644 for file in files)
        unit = units("late")
        becomes(unit.unit, {"ReadBandwidthMin": 4_000_000})
        run("systemctl", "restart", "sutrod")
        becomes(unit.unit, {"ReadBandwidthMin": 4_000_000})
        assert source(unit.unit) == f"{files[1]}:{len(files[1].read_text().splitlines())}"
    finally:
        bus.call("ResetPolicy", "ss", "rig-late.service", "runtime")
        becomes("rig-late.service", {"ReadBandwidthMin": 3_000_000})
        bus.call("ResetPolicy", "ss", "rig-late.service", "persistent")
    becomes("rig-late.service", {})
    assert not any(file.exists() for file in files)


def test_unit_goes_and_comes(leaf: ModelDisk, units) -> None:
    """The policy outlives the unit; the promise does not."""
    unit = units("moody")
    bus.set_policy(unit.unit, ReadBandwidthMin=f"{leaf.node} 4M")
    becomes(unit.unit, {"ReadBandwidthMin": 4_000_000})
    unit.stop()
    becomes(unit.unit, {})
    unit.start()
    becomes(unit.unit, {"ReadBandwidthMin": 4_000_000})
    bus.call("ResetPolicy", "ss", unit.unit, "runtime")


# ceilings beside systemd's


def limits(unit: Unit, one: ModelDisk) -> str:
    """The line of io.max about a disk."""
    found = [line for line in unit.read("io.max").splitlines() if line.startswith(one.devno)]
    return found[0].removeprefix(one.devno).strip() if found else ""


def test_ceiling_beside_systemd(leaf: ModelDisk, units) -> None:
    """What systemd had written to io.max is there again when a ceiling of ours goes."""
    limit = {"IOReadBandwidthMax": f"{leaf.node} 9M", "IOWriteIOPSMax": f"{leaf.node} 77"}
    unit = units("svc", properties=limit)
    systemds = "rbps=9000000 wbps=max riops=max wiops=77"
    ours = "rbps=4000000 wbps=max riops=max wiops=max"
    assert limits(unit, leaf) == systemds
    for undo in ("reset", "stop", "kill"):
        bus.set_policy(unit.unit, ReadBandwidthMax=f"{leaf.node} 4M")
        wait_for(lambda: limits(unit, leaf) == ours, ours, SOON_S)
        if undo == "kill":
            kill_daemon()
            assert limits(unit, leaf) == ours
        if undo == "stop":
            run("systemctl", "stop", "sutrod")
            assert limits(unit, leaf) == systemds
            run("systemctl", "start", "sutrod")
            wait_for(lambda: limits(unit, leaf) == ours, ours, SOON_S)
        bus.call("ResetPolicy", "ss", unit.unit, "runtime")
        wait_for(lambda: limits(unit, leaf) == systemds, systemds, SOON_S)


def kill_daemon() -> None:
    """kill -9; returns when the next one answers."""

    def main_pid() -> int:
        return int(run("systemctl", "show", "--property=MainPID", "--value", "sutrod"))

    def answers() -> bool:
        try:
            return main_pid() not in (0, old) and bool(bus.get("Version"))
        except bus.BusError:
            return False

    old = main_pid()
    os.kill(old, signal.SIGKILL)
    wait_for(answers, "a new sutrod", 60)
    run("systemctl", "reset-failed", "sutrod")


# programs

WINDOW = """
[[promise]]
unit = "rig-svc.service"
key = "ReadBandwidthMin"
path = "{path}"
default = "3M"

[[promise.window]]
from = "00:00"
to = "24:00"
value = "4M"
"""
GUARD = """
unit = "rig-svc.service"
path = "{path}"
target = "10ms"
raise = "ReadBandwidthMin"
min = "4M"
max = "10M"
"""


@pytest.mark.parametrize(
    ("kind", "text"),
    [("window", WINDOW), ("latency-guard", GUARD)],
    ids=["window", "latency-guard"],
)
def test_program(leaf: ModelDisk, units, kind: str, text: str) -> None:
    """A program runs in its sandbox, and when it is killed its promise goes at once."""
    unit = units("svc")
    folder = Path("/etc/sutro") / kind
    file = folder / "rig.toml"
    service = f"sutro-{kind}@rig.service"
    folder.mkdir(exist_ok=True)
    file.write_text(text.format(path=leaf.node))
    try:
        run("systemctl", "start", service)
        try:
            becomes(unit.unit, {"ReadBandwidthMin": 4_000_000})
        except AssertionError as error:
            raise AssertionError(run("systemctl", "status", "--no-pager", service)) from error
        assert source(unit.unit).startswith("client :")
        # A sutrod that is new is told again.
        run("systemctl", "restart", "sutrod")
        becomes(unit.unit, {"ReadBandwidthMin": 4_000_000})
        kill_daemon()
        becomes(unit.unit, {"ReadBandwidthMin": 4_000_000})
        # Nobody may start it again in this moment.
        run("systemctl", "kill", "--signal=SIGKILL", service)
        wait_for(lambda: said(unit.unit) == {}, "no promise", 60)
        # Restart=on-failure.
        becomes(unit.unit, {"ReadBandwidthMin": 4_000_000})
        run("systemctl", "stop", service)
        becomes(unit.unit, {})
    finally:
        run("systemctl", "stop", service)
        file.unlink()
        folder.rmdir()


# who may


def test_nobody(leaf: ModelDisk, units) -> None:
    """Everybody may look; nobody without authority may change."""
    unit = units("svc")
    bus.set_policy(unit.unit, ReadBandwidthMin=f"{leaf.node} 4M")
    becomes(unit.unit, {"ReadBandwidthMin": 4_000_000})
    before = bus.call("GetPolicy", "s", unit.unit)
    call = ["busctl", "call", "org.sutro1", "/org/sutro1", "org.sutro1.Manager"]
    for read in (["ListPromises"], ["ListUsage"], ["GetPolicy", "s", unit.unit], ["Dump"],
                 ["History", "sss", unit.unit, "ReadBandwidthMin", leaf.node]):  # fmt: skip
        assert run(*NOBODY, *call, *read)
    pair = ["1", "ReadBandwidthMin", f"{leaf.node} 19M"]
    for change in (
        *(["SetPolicy", "sa(ss)s", unit.unit, *pair, how] for how in ("runtime", "client")),
        ["SetPolicy", "sa(ss)s", unit.unit, *pair, "persistent"],
        ["SetPolicy", "sa(ss)s", "user-65534.slice", *pair, "runtime"],
        ["ResetPolicy", "ss", unit.unit, "runtime"],
        ["ReloadPolicies"],
    ):
        with pytest.raises(CommandError, match=r"(?i)permi|authori|denied"):
            run(*NOBODY, *call, *change)
    assert bus.call("GetPolicy", "s", unit.unit) == before
    bus.call("ResetPolicy", "ss", unit.unit, "runtime")


def test_names_that_lead_elsewhere(leaf: ModelDisk) -> None:
    """No name, path or value reaches a file that is not meant."""
    for unit in ("../../../etc/passwd", "a/b.service", "x.service\n", ".", "", "a" * 300):
        with pytest.raises(bus.BusError, match="(?i)no name of a unit|invalid"):
            bus.set_policy(unit, ReadBandwidthMin=f"{leaf.node} 4M")
    for value in ("/dev/../etc/passwd 4M", "relative 4M", "/dev/ssd0 4M\n[Match]", "/a\x01b 4M"):
        with pytest.raises(bus.BusError, match="ReadBandwidthMin"):
            bus.set_policy("rig-x.service", ReadBandwidthMin=value)
    assert not Path("/run/sutro/policy.control/rig-x.service.policy").exists()
