# SPDX-License-Identifier: LGPL-2.1-or-later
"""Declared capacities: the promised part of them, and the admission of settings beyond them."""

import os
from typing import Any

import dbus
import pytest
from clients import calling
from fakemachine import Bus, Machine, Sutrod, Systemd, paused, wait_until
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

CONF = "/etc/sutro/sutrod.conf"
VOLUME = "Device=/dev/vg/db read=400M write=300M write-iops=2K\n"
M = 1_000_000


def configure(machine: Machine, text: str) -> None:
    machine.write(CONF, f"[Capacity]\n{text}")


def set_policy(sutrod: Sutrod, unit: str, *assignments: str, lifetime: str = "runtime") -> None:
    pairs = dbus.Array([tuple(one.split("=", 1)) for one in assignments], signature="(ss)")
    sutrod.call("SetPolicy", unit, pairs, lifetime)


def refused(sutrod: Sutrod, unit: str, *assignments: str, lifetime: str = "runtime") -> str:
    pairs = dbus.Array([tuple(one.split("=", 1)) for one in assignments], signature="(ss)")
    name, text = sutrod.error("SetPolicy", unit, pairs, lifetime)
    assert name == "Overcommitted", text
    return text


def promised(sutrod: Sutrod, key: str = "ReadBandwidthMin") -> tuple[int, int]:
    """The promised part of the capacity, and the rest."""
    (row,) = (row for row in sutrod.call("ListCapacities") if row["key"] == key)
    return int(row["promised"]), int(row["left"])


@pytest.fixture
def volume(machine: Machine, systemd: Systemd) -> None:
    """The stripe, mounted; two units; capacities."""
    machine.mount("/srv", "254:0", "ext4", "/dev/mapper/vg-db")
    for unit in ("db.service", "web.service"):
        systemd.start(unit)
    configure(machine, VOLUME)


def test_what_is_promised(machine: Machine, volume: None, sutrod: Sutrod) -> None:
    """Floors by any path to the device, in percent, of files, and of units that do not run."""
    sutrod.start()
    rows: list[dict[str, Any]] = list(sutrod.call("ListCapacities"))
    assert [(r["path"], r["device"], r["key"], r["capacity"], r["left"]) for r in rows] == [
        ("/dev/vg/db", "/dev/dm-0", "ReadBandwidthMin", 400 * M, 400 * M),
        ("/dev/vg/db", "/dev/dm-0", "WriteBandwidthMin", 300 * M, 300 * M),
        ("/dev/vg/db", "/dev/dm-0", "WriteIOPSMin", 2000, 2000),
    ]
    assert promised(sutrod) == (0, 400 * M)
    set_policy(sutrod, "db.service", "ReadBandwidthMin=/dev/mapper/vg-db 100M")
    assert promised(sutrod) == (100 * M, 300 * M)
    text = "[Match]\nUnit=web.service\n[X-Sutro]\nReadBandwidthMin=/srv 25%\n"
    machine.write("/etc/sutro/policy.d/web.policy", text)
    sutrod.call("ReloadPolicies")
    sutrod.settle()
    assert promised(sutrod) == (200 * M, 200 * M)
    set_policy(sutrod, "later.service", "ReadBandwidthMin=/srv 50M", "ReadBandwidthMax=/srv 90M")
    set_policy(sutrod, "later.service", "WriteIOPSMin=/srv 500", lifetime="client")
    assert promised(sutrod) == (250 * M, 150 * M)
    assert promised(sutrod, "WriteIOPSMin") == (500, 1500)
    # Not on this device, not a floor.
    set_policy(sutrod, "db.service", "ReadBandwidthMin=/dev/sda 70M", "LatencyTarget=/srv 5ms")
    assert promised(sutrod) == (250 * M, 150 * M)
    sutrod.call("ResetPolicy", "later.service", "runtime")
    assert promised(sutrod) == (200 * M, 200 * M)


def test_refuse(machine: Machine, volume: None, sutrod: Sutrod) -> None:
    """The sum never exceeds the capacity, whatever is set in whichever way."""
    configure(machine, VOLUME + "Admission=refuse\n")
    sutrod.start()
    set_policy(sutrod, "db.service", "ReadBandwidthMin=/srv 300M")
    text = refused(sutrod, "web.service", "ReadBandwidthMin=/dev/vg/db 101M")
    assert text == (
        "web.service: ReadBandwidthMin: /dev/vg/db can promise 400M, of which 300M are promised; "
        "with this setting it would be 401M. Lower a floor, or set Admission=warn in sutrod.conf."
    )
    assert sutrod.call("GetPolicy", "web.service") == []
    for lifetime in ("persistent", "runtime", "client"):
        refused(sutrod, "web.service", "ReadBandwidthMin=/srv 26%", lifetime=lifetime)
        refused(sutrod, "later.service", "ReadBandwidthMin=/srv 400M", lifetime=lifetime)
    assert promised(sutrod) == (300 * M, 100 * M)
    # All or nothing, and writes have a capacity of their own.
    refused(sutrod, "web.service", "Weight=200", "WriteBandwidthMin=/srv 301M")
    assert sutrod.call("GetPolicy", "web.service") == []
    set_policy(sutrod, "web.service", "ReadBandwidthMin=/srv 100M", "WriteBandwidthMin=/srv 300M")
    # A change of a unit's own floor counts once.
    set_policy(sutrod, "db.service", "ReadBandwidthMin=/srv 290M")
    set_policy(sutrod, "db.service", "ReadBandwidthMin=/srv 300M")
    refused(sutrod, "db.service", "ReadBandwidthMin=/srv 301M")
    assert promised(sutrod) == (400 * M, 0)
    set_policy(sutrod, "db.service", "ReadBandwidthMin=")
    set_policy(sutrod, "later.service", "ReadBandwidthMin=/srv 300M")
    assert promised(sutrod) == (400 * M, 0)


def test_two_paths_to_one_device(machine: Machine, volume: None, sutrod: Sutrod) -> None:
    """The device has one capacity, that of the later line; a scheduler would count it twice."""
    configure(machine, VOLUME + "Device=/srv read=350M read-iops=9K\nAdmission=refuse\n")
    sutrod.start()
    rows = [(r["path"], r["key"], int(r["capacity"])) for r in sutrod.call("ListCapacities")]
    assert rows == [
        ("/dev/vg/db", "WriteBandwidthMin", 300 * M),
        ("/dev/vg/db", "WriteIOPSMin", 2000),
        ("/srv", "ReadBandwidthMin", 350 * M),
        ("/srv", "ReadIOPSMin", 9000),
    ]
    text = (
        "ReadBandwidthMin of Device=/dev/vg/db in sutrod.conf does not hold: Device=/srv is the "
        "same device, and is declared later. Remove one of them."
    )
    assert sutrod.log().count(text) == 1
    assert sutrod.log().count("does not hold") == 1
    set_policy(sutrod, "db.service", "ReadBandwidthMin=/dev/vg/db 50%")
    assert promised(sutrod) == (175 * M, 175 * M)
    assert "/srv can promise 350M" in refused(sutrod, "web.service", "ReadBandwidthMin=/srv 176M")
    sutrod.call("Reload")
    sutrod.settle()
    assert sutrod.log().count("does not hold") == 2


def test_hidden_floor_counts(machine: Machine, volume: None, sutrod: Sutrod) -> None:
    """A client that lowers a lasting floor frees nothing: the floor is back when it ends."""
    configure(machine, VOLUME + "Admission=refuse\n")
    text = "[Match]\nUnit=db.service\n[X-Sutro]\nReadBandwidthMin=/srv 300M\n"
    machine.write("/etc/sutro/policy.d/db.policy", text)
    sutrod.start()
    set_policy(sutrod, "db.service", "ReadBandwidthMin=/srv 10M", lifetime="client")
    assert promised(sutrod) == (300 * M, 100 * M)
    refused(sutrod, "web.service", "ReadBandwidthMin=/srv 101M")
    set_policy(sutrod, "web.service", "ReadBandwidthMin=/srv 100M")
    sutrod.call("ResetPolicy", "db.service", "client")
    assert promised(sutrod) == (400 * M, 0)


def test_one_stream_serves_two_floors(machine: Machine, volume: None, sutrod: Sutrod) -> None:
    """One by the device, and one by its mount point."""
    configure(machine, VOLUME + "Admission=refuse\n")
    sutrod.start()
    floors = ("ReadBandwidthMin=/srv 300M", "ReadBandwidthMin=/dev/mapper/vg-db 200M")
    set_policy(sutrod, "db.service", *floors)
    assert promised(sutrod) == (300 * M, 100 * M)


def test_refuse_before_systemd_has_answered(
    machine: Machine, volume: None, systemd: Systemd, sutrod: Sutrod
) -> None:
    """The second of two settings in a row finds the first one, also with "any"."""
    configure(machine, VOLUME + "Admission=refuse\n")
    machine.write("/sys/fs/cgroup/system.slice/web.service/io.stat", "254:0 rbytes=1 wbytes=0\n")
    sutrod.start()
    with paused(systemd.bus.systemd.process):
        set_policy(sutrod, "db.service", "ReadBandwidthMin=/srv 300M")
        refused(sutrod, "web.service", "ReadBandwidthMin=any 101M")
        set_policy(sutrod, "web.service", "ReadBandwidthMin=any 100M")
        refused(sutrod, "later.service", "ReadBandwidthMin=/srv 1M")
        assert promised(sutrod) == (400 * M, 0)
    sutrod.settle()
    assert promised(sutrod) == (400 * M, 0)


def test_refuse_while_another_setting_is_written(
    bus: Bus, machine: Machine, volume: None, sutrod: Sutrod
) -> None:
    """An admitted setting has its capacity before its file is on the disk, and until it fails."""
    configure(machine, VOLUME + "Admission=refuse\n")
    sutrod.start()
    set_policy(sutrod, "db.service", "WriteBandwidthMin=/srv 200M", lifetime="persistent")
    machine.fault("etc/sutro/policy.control/.new", "hang")
    floors = [("ReadBandwidthMin", "/srv 300M"), ("WriteBandwidthMin", "/srv 100M")]
    with calling(bus, "SetPolicy", "db.service", floors, "persistent") as done:
        wait_until(machine.at("/etc/sutro/policy.control/.new").exists)
        for lifetime in ("runtime", "client"):
            text = refused(sutrod, "web.service", "ReadBandwidthMin=/srv 101M", lifetime=lifetime)
            assert "of which 300M are promised" in text
        refused(sutrod, "db.service", "WriteBandwidthMin=/srv 301M")
        # The write may fail: the floor that it lowers still counts.
        refused(sutrod, "web.service", "WriteBandwidthMin=/srv 101M")
        set_policy(sutrod, "web.service", "ReadBandwidthMin=/srv 100M")
        assert promised(sutrod) == (100 * M, 300 * M)
        assert not done.done()
        sutrod.elapse(10)
        with pytest.raises(dbus.DBusException, match="was not on the disk"):
            done.result()
    set_policy(sutrod, "web.service", "ReadBandwidthMin=/srv 400M")
    assert promised(sutrod) == (400 * M, 0)


def test_less_is_never_refused(machine: Machine, volume: None, sutrod: Sutrod) -> None:
    """After the capacity was lowered, settings that promise less are accepted."""
    sutrod.start()
    set_policy(sutrod, "db.service", "ReadBandwidthMin=/srv 400M")
    configure(machine, "Device=/dev/vg/db read=200M\nAdmission=refuse\n")
    sutrod.call("Reload")
    assert promised(sutrod) == (400 * M, 0)
    set_policy(sutrod, "db.service", "Weight=300")
    set_policy(sutrod, "db.service", "ReadBandwidthMin=/srv 300M")
    refused(sutrod, "db.service", "ReadBandwidthMin=/srv 301M")
    assert promised(sutrod) == (300 * M, 0)


# Capacities, and each path to the devices.
ROOM = {
    ("/dev/vg/db", "ReadBandwidthMin"): 400 * M,
    ("/dev/vg/db", "WriteBandwidthMin"): 300 * M,
    ("/dev/sdc", "ReadBandwidthMin"): 100 * M,
    ("/dev/sdc", "WriteIOPSMin"): 2000,
}
PATHS = {"/srv": "/dev/vg/db", "/dev/mapper/vg-db": "/dev/vg/db", "/dev/sdc": "/dev/sdc"}
# A running unit, two that do not run, and a cgroup by its path.
UNITS = ("db.service", "web.service", "later.service", "/batch/job_7")
# Those of clients end with the daemon.
LIFETIMES = ("persistent", "runtime", "client")
WHOSE = st.tuples(st.sampled_from(UNITS), st.sampled_from(LIFETIMES))
FLOOR = st.tuples(
    st.sampled_from(sorted({key for _, key in ROOM})),
    st.sampled_from(sorted(PATHS)),
    st.sampled_from([25, 50, 100]) | st.integers(1, 5).map(lambda part: part / 4),
)
STEP = st.one_of(
    st.tuples(st.just("set"), WHOSE, st.lists(FLOOR, min_size=1, max_size=3)),
    st.tuples(st.just("drop"), WHOSE, FLOOR),
    st.tuples(st.just("reset"), WHOSE),
    st.tuples(st.just("restart")),
)
# The floors of each unit and lifetime, by key and path.
Floors = dict[tuple[str, str], dict[tuple[str, str], int]]


def room(key: str, path: str) -> int:
    return ROOM.get((PATHS[path], key), 0)


def total(floors: Floors) -> dict[tuple[str, str], int]:
    """The sum of the largest floors of all units, in force or not, by device and key."""
    most: dict[tuple[str, str, str], int] = {}
    for (unit, _), mine in floors.items():
        for (key, path), rate in mine.items():
            name = (unit, PATHS[path], key)
            most[name] = max(most.get(name, 0), rate)
    sums = dict.fromkeys(ROOM, 0)
    for (_, device, key), rate in most.items():
        if (device, key) in sums:
            sums[device, key] += rate
    return sums


def check_steps(sutrod: Sutrod, steps: list[tuple[Any, ...]]) -> None:
    """No sum exceeds its capacity, and a setting is refused only if one would."""
    floors: Floors = {(unit, lifetime): {} for unit in UNITS for lifetime in LIFETIMES}
    for whose in floors:
        sutrod.call("ResetPolicy", *whose)
    for verb, *more in steps:
        if verb == "restart":
            sutrod.stop()
            sutrod.start()
            for unit in UNITS:
                floors[unit, "client"] = {}
        elif verb == "reset":
            sutrod.call("ResetPolicy", *more[0])
            floors[more[0]] = {}
        elif verb == "drop":
            (unit, lifetime), (dropped, _, _) = more
            set_policy(sutrod, unit, f"{dropped}=", lifetime=lifetime)
            kept = {n: rate for n, rate in floors[unit, lifetime].items() if n[0] != dropped}
            floors[unit, lifetime] = kept
        else:
            (unit, lifetime), wanted = more
            after, texts = dict(floors[unit, lifetime]), []
            for key, path, part in wanted:
                # A whole number is a percentage, and other numbers a part as a rate.
                capacity = room(key, path) or 400 * M
                rate = int(capacity * (part / 100 if isinstance(part, int) else part))
                after[key, path] = rate
                texts.append(f"{key}={path} {f'{part}%' if isinstance(part, int) else rate}")
            would = total(floors | {(unit, lifetime): after})
            if any(would[name] > ROOM[name] for name in ROOM):
                refused(sutrod, unit, *texts, lifetime=lifetime)
            else:
                set_policy(sutrod, unit, *texts, lifetime=lifetime)
                floors[unit, lifetime] = after
        rows = {(r["path"], r["key"]): r for r in sutrod.call("ListCapacities")}
        assert {name: row["promised"] for name, row in rows.items()} == total(floors)
        assert all(row["promised"] <= row["capacity"] == ROOM[n] for n, row in rows.items())


def test_random_settings_never_exceed_the_capacity(
    machine: Machine, volume: None, sutrod: Sutrod
) -> None:
    """Settings of a unit may have three lifetimes: the end of one puts another one in force."""
    lines = (
        "Device=/dev/vg/db read=400M write=300M\n"
        "Device=/dev/sdc read=100M write-iops=2K\n"
        "Admission=refuse\n"
    )
    configure(machine, lines)
    sutrod.start()
    rules = settings(
        max_examples=300 if "SUTRO_LONG" in os.environ else 30,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    rules(given(steps=st.lists(STEP, min_size=4, max_size=14))(check_steps))(sutrod=sutrod)


def test_warn_is_the_default(machine: Machine, volume: None, sutrod: Sutrod) -> None:
    sutrod.start()
    set_policy(sutrod, "db.service", "ReadBandwidthMin=/srv 401M")
    assert promised(sutrod) == (401 * M, 0)
    line = "db.service: ReadBandwidthMin: /dev/vg/db can promise 400M, and 401M are promised now."
    assert line in sutrod.log()


def test_a_mistake_is_reported_as_one(machine: Machine, volume: None, sutrod: Sutrod) -> None:
    configure(machine, VOLUME + "Admission=refuse\n")
    sutrod.start()
    pairs = dbus.Array([("ReadBandwidthMin", "/srv 900M"), ("Mass", "7")], signature="(ss)")
    assert sutrod.error("SetPolicy", "db.service", pairs, "runtime")[0] == "BadPolicy"


@pytest.mark.parametrize(
    "line",
    [
        "Device=db read=1M",
        "Device=/dev/vg/db",
        "Device=/dev/vg/db read=0",
        "Device=/dev/vg/db read=1M read=2M",
        "Device=/dev/vg/db size=1M",
        "Device=/dev/vg/db read=2000T",
        "Admission=deny",
    ],
)
def test_mistakes(machine: Machine, volume: None, sutrod: Sutrod, line: str) -> None:
    """A mistake is reported in the journal, with the allowed form; other lines are in force."""
    configure(machine, f"{VOLUME}{line}\n")
    sutrod.start()
    assert f'sutrod.conf:3: "[Capacity] {line}": ' in sutrod.log()
    assert promised(sutrod) == (0, 400 * M)


def test_path_of_any_bytes(machine: Machine, volume: None, sutrod: Sutrod) -> None:
    """The bus carries UTF-8 only: the line is a mistake, and all others are in force."""
    configure(machine, f"{VOLUME}Device=/srv/\udcff read=1M\n")
    sutrod.start()
    assert 'sutrod.conf:3: "[Capacity] Device=/srv/? read=1M": a path, then' in sutrod.log()
    assert promised(sutrod) == (0, 400 * M)


@pytest.mark.parametrize("kind", ["link", "folder"])
def test_file_that_cannot_be_read(
    machine: Machine, volume: None, sutrod: Sutrod, kind: str
) -> None:
    """It is reported, and drop-ins hold."""
    configure(machine, "")
    machine.at(CONF).unlink()
    if kind == "link":
        machine.link(CONF, "nothing")
    else:
        machine.at(CONF).mkdir()
    machine.write("/etc/sutro/sutrod.conf.d/50.conf", f"[Capacity]\n{VOLUME}")
    sutrod.start()
    reason = {"link": "No such file or directory", "folder": "Is a directory"}[kind]
    assert f"{CONF}: {reason}, ignoring." in sutrod.log()
    assert promised(sutrod) == (0, 400 * M)


def test_empty_line_removes_all(machine: Machine, volume: None, sutrod: Sutrod) -> None:
    configure(machine, f"{VOLUME}Device=\nDevice=/dev/sda read=1M\nDevice=/dev/sda read-iops=5\n")
    sutrod.start()
    rows = sutrod.call("ListCapacities")
    assert [(r["path"], r["key"], r["capacity"]) for r in rows] == [("/dev/sda", "ReadIOPSMin", 5)]
