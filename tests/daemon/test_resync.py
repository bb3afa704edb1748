# SPDX-License-Identifier: LGPL-2.1-or-later
"""Resyncs of RAID arrays: a competitor with a name and a weight of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dbus
import pytest
from fakemachine import Machine, Sutrod, Systemd
from plant import MB, SETTLES_S, promise, set_policy, state

SLICE, ROOT = (f"/sys/fs/cgroup{cgroup}/cgroup.procs" for cgroup in ("/resync.slice", ""))
CONF = "/etc/sutro/sutrod.conf"
THREAD = 4711


@pytest.fixture
def array(machine: Machine) -> Callable[..., None]:
    """Make an array on sda and sdb whose thread runs an action, among other threads."""

    def make(name: str = "md0", level: str = "raid1", action: str = "check") -> None:
        if not machine.at(f"/sys/class/block/{name}").exists():
            machine.disk(name, "9:0", slaves="sda sdb")
        machine.write(f"/sys/devices/virtual/block/{name}/md/level", level + "\n")
        machine.write(f"/sys/devices/virtual/block/{name}/md/sync_action", action + "\n")

    machine.write(ROOT, "2\n4710\n4711\n4712\n")
    for thread, comm in ((2, "kthreadd"), (4710, "md0_raid1"), (4711, "md0_resync")):
        machine.write(f"/proc/{thread}/comm", comm + "\n")
    return make


@pytest.fixture
def slice_(machine: Machine, systemd: Systemd) -> str:
    """The unit resync.slice."""
    systemd.unit("resync.slice", "/resync.slice")
    machine.cgroup("/resync.slice")
    machine.write(SLICE, "")
    return "/resync.slice"


def resync(sutrod: Sutrod) -> dict[str, Any]:
    """The only resync."""
    (one,) = sutrod.call("ListResyncs")
    return dict(one)


def weights(sutrod: Sutrod) -> dict[str, int]:
    """The weight of the resync on each leaf."""
    return {str(leaf["leaf"]): int(leaf["weight"]) for leaf in resync(sutrod)["leaves"]}


def policy(sutrod: Sutrod) -> list[tuple[str, bool]]:
    """The weights of the slice, the weakest source first, and whether they are in force."""
    entries = sutrod.call("GetPolicy", "resync.slice")
    assert {str(entry["key"]) for entry in entries} == {"Weight"}
    return [(str(entry["value"]), bool(entry["in_force"])) for entry in entries]


def test_weight_of_resyncs(
    machine: Machine, sutrod: Sutrod, slice_: str, array: Callable[..., None]
) -> None:
    """The thread is moved when the resync begins; a stop of the daemon moves it back."""
    array(action="idle")
    machine.write(CONF, "[Daemon]\nResyncWeight=30\nResyncWeight=/dev/sdb 40\n")
    sutrod.start()
    assert sutrod.call("ListResyncs") == []
    assert machine.at(SLICE).read_text() == ""
    array(action="check")
    sutrod.call("Reload")
    sutrod.until(lambda: machine.at(SLICE).read_text() == f"{THREAD}\n")
    sutrod.until(lambda: machine.weights(slice_) == ["8:16 40", "default 30"])
    seen = resync(sutrod)
    assert (seen["device"], seen["name"], seen["action"]) == ("/dev/md0", "md0", "check")
    assert (seen["cgroup"], seen["note"]) == ("/resync.slice", "")
    assert weights(sutrod) == {"/dev/sda": 30, "/dev/sdb": 40}
    explained = sutrod.call("Explain", "resync.slice", "/dev/sdb")
    assert "ResyncWeight= in sutrod.conf" in explained["leaves"][0]["reason"]
    assert policy(sutrod) == [("30", True), ("/dev/sdb 40", True)]
    # A policy of the unit is stronger.
    set_policy(sutrod, "resync.slice", Weight="77")
    sutrod.until(lambda: machine.weights(slice_) == ["8:16 40", "default 77"])
    assert policy(sutrod) == [("30", False), ("/dev/sdb 40", True), ("77", True)]
    machine.write(ROOT, "2\n4710\n4712\n")
    assert sutrod.stop() == 0
    assert machine.at(ROOT).read_text().startswith(f"{THREAD}\n")


def test_without_a_weight_the_thread_stays(
    machine: Machine, sutrod: Sutrod, slice_: str, array: Callable[..., None]
) -> None:
    """It is named all the same; a reload of the configuration moves it back, too."""
    array()
    sutrod.start()
    seen = resync(sutrod)
    assert (seen["cgroup"], weights(sutrod)) == ("/", {"/dev/sda": 0, "/dev/sdb": 0})
    assert "ResyncWeight= in sutrod.conf gives it a weight" in seen["note"]
    machine.write(CONF, "[Daemon]\nResyncWeight=30\n")
    sutrod.call("Reload")
    assert resync(sutrod)["cgroup"] == "/resync.slice"
    machine.write(ROOT, "2\n4710\n4712\n")
    machine.write(CONF, "[Daemon]\nResyncWeight=30\nResyncWeight=\n")
    sutrod.call("Reload")
    assert resync(sutrod)["cgroup"] == "/"
    assert machine.at(ROOT).read_text().startswith(f"{THREAD}\n")


def test_slice_that_is_not_there(
    machine: Machine, sutrod: Sutrod, array: Callable[..., None]
) -> None:
    array()
    machine.write(CONF, "[Daemon]\nResyncWeight=30\n")
    sutrod.start()
    assert resync(sutrod)["cgroup"] == "/"
    sutrod.call("Reload")
    assert sutrod.log().count('run "systemctl start resync.slice"') == 1


@pytest.mark.parametrize(
    ("level", "action", "note"),
    [
        ("raid1", "resync", ""),
        ("raid1", "repair", "writes of blocks that differ are charged to the root cgroup"),
        ("raid10", "recover", ""),
        ("raid10", "resync", "writes of blocks that differ are charged to the root cgroup"),
        ("raid5", "recover", "no weight has an effect; sync_speed_max of the array limits it"),
        ("raid6", "check", "no weight has an effect; sync_speed_max of the array limits it"),
    ],
)
def test_requests_that_the_weight_is_not_about(
    machine: Machine,
    sutrod: Sutrod,
    slice_: str,
    array: Callable[..., None],
    level: str,
    action: str,
    note: str,
) -> None:
    """Each level of RAID has requests that the weight does not affect."""
    array(level=level, action=action)
    machine.write(CONF, "[Daemon]\nResyncWeight=30\n")
    sutrod.start()
    seen = resync(sutrod)
    assert seen["action"] == action
    assert seen["note"].endswith(note) and bool(seen["note"]) == bool(note)


def test_volumes_of_lvm(machine: Machine, systemd: Systemd, sutrod: Sutrod, slice_: str) -> None:
    """The threads of all volumes of LVM have one name, and no files in sysfs."""
    machine.write(ROOT, "41\n42\n")
    machine.stripe("dm-5", "254:5", "dm-6 dm-7", "vg-raid")
    for number in (6, 7):
        machine.stripe(f"dm-{number}", f"254:{number}", "sda", f"vg-raid_rimage_{number - 6}")
    for thread in (41, 42):
        machine.write(f"/proc/{thread}/comm", "mdX_resync\n")
    sutrod.start()
    found = [(r["device"], r["name"], r["action"]) for r in sutrod.call("ListResyncs")]
    assert found == [("", "mdX", "resync")] * 2


def test_mistake(machine: Machine, sutrod: Sutrod) -> None:
    machine.write(CONF, "[Daemon]\nResyncWeight=fast\n")
    sutrod.start()
    wanted = '[Daemon] ResyncWeight=fast": a weight of 1 to 10000, or a path and a weight'
    assert wanted in sutrod.log()


def test_advice_names_the_resync(
    machine: Machine, systemd: Systemd, sutrod: Sutrod, array: Callable[..., None]
) -> None:
    """A unit that waits at the array has few requests at the disks; more depth is no remedy."""
    array(action="resync")
    db = systemd.start("db.service", 100)
    big = systemd.start("big.service", 100)
    sums = {"db": 0.0, "big": 0.0, "wait": 0.0}

    def serve(seconds: float) -> None:
        for name, rate in (("db", 4 * MB), ("big", 40 * MB)):
            sums[name] += seconds * rate
        sums["wait"] += seconds
        for cgroup, name, wait in ((db, "db", 0.4), (big, "big", 1.0)):
            done, wait_ns = int(sums[name]), int(sums["wait"] * wait * 1e9)
            count = f"rbytes={done} wbytes=0 rios={done // 65536} wios=0"
            text = f"time_ns={done * 20} {count} wait_ns={wait_ns} backlog_ns={wait_ns}"
            lines = "".join(f"{devno} {text} queued=1\n" for devno in ("8:0", "8:16"))
            machine.write(f"/sys/fs/cgroup{cgroup}/io.sutro.stat", lines)
            machine.write(f"/sys/fs/cgroup{cgroup}/io.stat", f"9:0 {count}\n")

    sutrod.clock.loads.append(serve)
    sutrod.start()
    set_policy(sutrod, "db.service", ReadBandwidthMin="/dev/md0 20M")
    sutrod.until(lambda: state(sutrod, "db.service") == "limited", 2 * SETTLES_S)
    cause = promise(sutrod, "db.service")["cause"]
    assert "the resync of /dev/md0 uses the same disks" in cause
    assert "raise its queue depth" not in cause


def test_random_files_of_arrays(machine: Machine, sutrod: Sutrod, slice_: str) -> None:
    """Nothing that md or a task may be called ends the daemon."""
    machine.disk("md0", "9:0", slaves="sda")
    machine.write("/sys/devices/virtual/block/md0/md/sync_action", "")
    machine.write(ROOT, "4711\nnonsense\n99999999999999999999\n12\n")
    for thread, comm in ((4711, "_resync"), (12, "")):
        machine.write(f"/proc/{thread}/comm", comm)
    machine.write(CONF, "[Daemon]\nResyncWeight=30\n")
    sutrod.start()
    assert isinstance(sutrod.call("ListResyncs"), dbus.Array)
