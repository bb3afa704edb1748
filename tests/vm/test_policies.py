# SPDX-License-Identifier: LGPL-2.1-or-later
"""Policies of units in real units, files and programs.

tests/daemon/test_policies.py and test_promises.py have further tests on a fake machine.
"""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from rig import bus, scheduler, sutrod
from rig.crowd import weight_file
from rig.modeldisk import ModelDisk
from rig.shell import CommandError, run, wait_for
from rig.unit import Unit

SOON_S = 60.0
NOBODY = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"]
UNIT_FILE = Path("/run/systemd/system/rig-promised.service")
POLICY_D = Path("/etc/sutro/policy.d")


def values(unit: str) -> dict[str, int]:
    """Values of the promises of a unit, by key."""
    return {one["key"]: one["value"] for one in bus.promises(unit)}


def becomes(unit: str, wanted: dict[str, int]) -> None:
    """The promises of a unit are these soon."""
    wait_for(lambda: values(unit) == wanted, f"{unit}: {wanted}", SOON_S)


def source(unit: str) -> str:
    """The file and line of the one promise of a unit."""
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


# sources of promises


def test_unit_file_and_drop_in(leaf: ModelDisk, unit_file: Path) -> None:
    """[X-Sutro] of a unit file; a drop-in wins."""
    since = time.time()
    own = "[Service]\nExecStart=sleep infinity\nIOWeight=150\n[X-Sutro]\n"
    own += f"ReadBandwidthMin={leaf.node} "
    unit_file.write_text(own + "4M\n")
    run("systemctl", "daemon-reload")
    run("systemctl", "start", unit_file.name)
    becomes(unit_file.name, {"ReadBandwidthMin": 4_000_000})
    assert source(unit_file.name) == f"{unit_file}:5"

    unit_file.write_text(own + "5M\n")
    run("systemctl", "daemon-reload")
    becomes(unit_file.name, {"ReadBandwidthMin": 5_000_000})

    drop_in = unit_file.with_suffix(".service.d") / "50-more.conf"
    text = f"[Service]\nIOWeight=777\n[X-Sutro]\nReadBandwidthMin={leaf.node} 6M\n"
    drop_in.write_text(text)
    run("systemctl", "daemon-reload")
    becomes(unit_file.name, {"ReadBandwidthMin": 6_000_000})
    assert source(unit_file.name) == f"{drop_in}:4"
    file = f"/system.slice/{unit_file.name}"
    wait_for(lambda: weight_file(file).startswith("default 777\n"), "IOWeight=777", SOON_S)

    drop_in.unlink()
    run("systemctl", "daemon-reload")
    becomes(unit_file.name, {"ReadBandwidthMin": 5_000_000})
    assert bus.get("PolicyErrors") == []
    # systemd itself does not complain about the section.
    assert "X-Sutro" not in run("journalctl", f"--since=@{since:.0f}", "_PID=1", "--output=cat")


@pytest.mark.first
def test_policy_file(leaf: ModelDisk, units, policy_file: Path) -> None:
    """A glob is about all units that it matches, those of later as well."""
    one, other = units("glob-a"), units("other")
    text = f"[Match]\nUnit=rig-glob-*.service\n[X-Sutro]\nReadBandwidthMin={leaf.node} 4M\n"
    policy_file.write_text(text)
    run("sutroctl", "policy", "reload")
    becomes(one.unit, {"ReadBandwidthMin": 4_000_000})
    late = units("glob-b")
    becomes(late.unit, {"ReadBandwidthMin": 4_000_000})
    assert source(late.unit) == f"{policy_file}:4"
    assert values(other.unit) == {}

    policy_file.unlink()
    run("systemctl", "reload", "sutrod")
    becomes(one.unit, {})
    assert bus.get("PolicyErrors") == []


# ceilings beside systemd's


def limits(unit: Unit, one: ModelDisk) -> str:
    """The line of io.max about a disk."""
    found = [line for line in unit.read("io.max").splitlines() if line.startswith(one.devno)]
    return found[0].removeprefix(one.devno).strip() if found else ""


def test_ceiling_beside_systemd(leaf: ModelDisk, units) -> None:
    """Limits of systemd hold beside a ceiling, and alone again when the ceiling goes."""
    limit = {"IOReadBandwidthMax": f"{leaf.node} 9M", "IOWriteIOPSMax": f"{leaf.node} 77"}
    unit = units("svc", properties=limit)
    systemds = "rbps=9000000 wbps=max riops=max wiops=77"
    ours = "rbps=4000000 wbps=max riops=max wiops=77"
    assert limits(unit, leaf) == systemds
    for undo in ("reset", "stop", "kill"):
        bus.set_policy(unit.unit, ReadBandwidthMax=f"{leaf.node} 4M")
        wait_for(lambda: limits(unit, leaf) == ours, ours, SOON_S)
        if undo == "kill":
            sutrod.kill_and_wait()
            assert limits(unit, leaf) == ours
        if undo == "stop":
            run("systemctl", "stop", "sutrod")
            assert limits(unit, leaf) == systemds
            run("systemctl", "start", "sutrod")
            wait_for(lambda: limits(unit, leaf) == ours, ours, SOON_S)
        bus.call("ResetPolicy", "ss", unit.unit, "runtime")
        wait_for(lambda: limits(unit, leaf) == systemds, systemds, SOON_S)


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
        # The client sends its settings to a new sutrod again.
        run("systemctl", "restart", "sutrod")
        becomes(unit.unit, {"ReadBandwidthMin": 4_000_000})
        sutrod.kill_and_wait()
        becomes(unit.unit, {"ReadBandwidthMin": 4_000_000})
        # systemd must not start it again in this moment.
        run("systemctl", "kill", "--signal=SIGKILL", service)
        wait_for(lambda: values(unit.unit) == {}, "no promise", 60)
        # Restart=on-failure.
        becomes(unit.unit, {"ReadBandwidthMin": 4_000_000})
        run("systemctl", "stop", service)
        becomes(unit.unit, {})
    finally:
        run("systemctl", "stop", service)
        file.unlink()
        folder.rmdir()


# authorization


def test_nobody(leaf: ModelDisk, units) -> None:
    """Every user may read; only authorized users may change."""
    unit = units("svc")
    bus.set_policy(unit.unit, ReadBandwidthMin=f"{leaf.node} 4M")
    becomes(unit.unit, {"ReadBandwidthMin": 4_000_000})
    before = bus.call("GetPolicy", "s", unit.unit)
    call = ["busctl", "call", "org.sutro1", "/org/sutro1", "org.sutro1.Manager"]
    for read in (["ListPromises"], ["ListUsage"], ["GetPolicy", "s", unit.unit],
                 ["History", "sss", unit.unit, "ReadBandwidthMin", leaf.node]):  # fmt: skip
        assert run(*NOBODY, *call, *read)
    pair = ["1", "ReadBandwidthMin", f"{leaf.node} 19M"]
    for change in (
        *(["SetPolicy", "sa(ss)s", unit.unit, *pair, how] for how in ("runtime", "client")),
        ["SetPolicy", "sa(ss)s", unit.unit, *pair, "persistent"],
        ["SetPolicy", "sa(ss)s", "user-65534.slice", *pair, "runtime"],
        ["ResetPolicy", "ss", unit.unit, "runtime"],
        ["ReloadPolicies"],
        ["Dump"],
        ["UseDevices", "as", "1", leaf.node],
        ["ReleaseDevices", "as", "1", leaf.node],
    ):
        with pytest.raises(CommandError, match=r"(?i)permi|authori|denied"):
            run(*NOBODY, *call, *change)
    assert bus.call("GetPolicy", "s", unit.unit) == before
    assert scheduler.current(leaf.name) == "sutro"
    bus.call("ResetPolicy", "ss", unit.unit, "runtime")


def test_unit_without_io_accounting(leaf: ModelDisk) -> None:
    """Its floor is unobserved, not idle, until the command of the cause is run."""
    name = "rig-plain.service"

    def state() -> str:
        return "".join(one["state"] for one in bus.promises(name))

    run("systemd-run", f"--unit={name}", "--slice=rigplain.slice", "sleep", "infinity")
    try:
        bus.set_policy(name, ReadBandwidthMin=f"{leaf.node} 1M")
        wait_for(lambda: state() == "unobserved", f"{name} is unobserved", SOON_S)
        (promise,) = bus.promises(name)
        command = promise["cause"].split('run "')[1].rstrip('"')
        assert command == f"systemctl set-property {name} IOAccounting=yes"
        run(*command.split(), "--runtime")
        wait_for(lambda: state() == "idle", f"{name} is idle", SOON_S)
    finally:
        run("systemctl", "stop", name)
        bus.call("ResetPolicy", "ss", name, "runtime")
