# SPDX-License-Identifier: LGPL-2.1-or-later
"""Paths in policies: links are followed, and the daemon waits for no file server."""

import dbus
import pytest
from clients import calling
from fakemachine import STEP_S, Bus, Machine, Sutrod, Systemd
from plant import set_policy

CONF = "/etc/sutro/sutrod.conf"
REFUSE = "[Capacity]\nDevice=/dev/sdd read=400M\nAdmission=refuse\n"
SDC, SDD = (f"{devno} rbps=5000000 wbps=max riops=max wiops=max" for devno in ("8:32", "8:48"))


@pytest.fixture
def db(machine: Machine, systemd: Systemd) -> str:
    """The cgroup of a unit; sdc has the root, sdd is mounted at /data, where /srv/link leads."""
    machine.mount("/", "8:32", "ext4", "/dev/sdc")
    machine.mount("/data", "8:48", "ext4", "/dev/sdd")
    machine.link("/srv/link", "../data")
    return systemd.start("db.service")


def test_path_on_a_dead_file_server(
    machine: Machine, systemd: Systemd, sutrod: Sutrod, db: str
) -> None:
    """Its setting waits, all others are in force at once; the next Reload looks it up again."""
    a = systemd.start("a.service", 200)
    machine.fault("/srv/dead/x", "hang")
    sutrod.start()
    set_policy(sutrod, "db.service", ReadBandwidthMax="/srv/dead/x 5M")
    set_policy(sutrod, "a.service", ReadBandwidthMax="/data 5M")
    systemd.change("a.service", 300)
    sutrod.until(lambda: machine.weights(a) == ["default 300"], 1)
    sutrod.until(lambda: machine.weights(a, "io.max") == [SDD], 1)
    sutrod.elapse(5)
    assert "/srv/dead/x could not be looked up within 5 s" in sutrod.log()
    sutrod.until(lambda: machine.weights(db, "io.max") == [], 1)
    # It is given up, and the others are looked up.
    set_policy(sutrod, "a.service", ReadBandwidthMax="/srv/link 5M")
    sutrod.until(lambda: machine.weights(a, "io.max") == [SDD], 1)
    machine.at("/srv/dead").mkdir()
    machine.write("/srv/dead/x", "")
    machine.write("/faults", "")
    sutrod.elapse(60)
    assert machine.weights(db, "io.max") == []
    sutrod.call("ReloadPolicies")
    sutrod.until(lambda: machine.weights(db, "io.max") == [SDC], 1)


def test_links_of_policies_are_followed(machine: Machine, sutrod: Sutrod, db: str) -> None:
    """A link that leads elsewhere is found by Reload; a path without a file has no effect."""
    sutrod.start()
    set_policy(sutrod, "db.service", ReadBandwidthMax="/srv/link 5M")
    sutrod.until(lambda: machine.weights(db, "io.max") == [SDD])
    machine.at("/srv/link").unlink()
    machine.link("/srv/link", "..")
    sutrod.call("Reload")
    sutrod.until(lambda: machine.weights(db, "io.max") == [SDC])
    set_policy(sutrod, "db.service", ReadBandwidthMax="")
    set_policy(sutrod, "db.service", ReadBandwidthMax="/data/none 5M")
    sutrod.until(lambda: "/data/none has no effect until" in sutrod.log())
    assert machine.weights(db, "io.max") == []
    # The periodic comparison finds the file.
    machine.write("/data/none", "")
    sutrod.until(lambda: machine.weights(db, "io.max") == [SDD], 120)


def test_mount_over_the_path_of_a_setting(
    machine: Machine, systemd: Systemd, sutrod: Sutrod, db: str
) -> None:
    """A mount makes no uevent: the periodic comparison finds it, and its end."""
    bare = machine.at("/proc/1/mountinfo").read_text()
    a = systemd.start("a.service", 200, [("/srv/disk", 300)])
    machine.write("/srv/disk/file", "")
    sutrod.start()
    set_policy(sutrod, "db.service", ReadBandwidthMax="/srv/disk 5M")
    sutrod.until(lambda: machine.weights(db, "io.max") == [SDC])
    assert machine.weights(a, "io.bfq.weight") == ["8:32 300", "default 100"]
    machine.mount("/srv/disk", "8:48", "ext4", "/dev/sdd")
    sutrod.until(lambda: machine.weights(db, "io.max") == [SDD], 120)
    assert machine.weights(a, "io.bfq.weight") == ["8:32 200", "default 100"]
    machine.write("/proc/1/mountinfo", bare)
    sutrod.until(lambda: machine.weights(db, "io.max") == [SDC], 120)
    assert machine.weights(a, "io.bfq.weight") == ["8:32 300", "default 100"]


def test_admission_follows_links(bus: Bus, machine: Machine, sutrod: Sutrod, db: str) -> None:
    """A setting counts on the device that its link leads to, at its first call."""
    machine.write(CONF, REFUSE)
    sutrod.start()
    pairs = dbus.Array([("ReadBandwidthMin", "/srv/link 401M")], signature="(ss)")
    for lifetime in ("runtime", "client"):
        assert sutrod.error("SetPolicy", "db.service", pairs, lifetime)[0] == "Overcommitted"
    machine.fault("/srv/dead/x", "hang")
    pairs = dbus.Array([("ReadBandwidthMin", "/srv/dead/x 1M")], signature="(ss)")
    with calling(bus, "SetPolicy", "db.service", pairs, "runtime") as done:
        while not done.done():
            # No time passes for the daemon while polkit has its question.
            sutrod.settle()
            bus.ping("org.freedesktop.PolicyKit1")
            sutrod.elapse(STEP_S)
        with pytest.raises(dbus.DBusException, match="/srv/dead/x: the path could not be looked"):
            done.result()
    set_policy(sutrod, "db.service", ReadBandwidthMin="/srv/link 1M", Weight="300")
    text = "[Match]\nUnit=db.service\n[X-Sutro]\nReadBandwidthMin=/srv/deeper 5M\n"
    machine.link("/srv/deeper", "link")
    _, devices = sutrod.call("CheckPolicies", [("/etc/sutro/policy.d/a.policy", text)])
    assert [d["device"] for d in devices] == ["/dev/sdd"]


def test_paths_of_units_that_do_not_run(machine: Machine, sutrod: Sutrod, db: str) -> None:
    """Their floors count on the device of the link, also long after they were set."""
    machine.write(CONF, REFUSE)
    sutrod.start()
    for lifetime, unit in (("runtime", "later.service"), ("client", "client.service")):
        pairs = dbus.Array([("ReadBandwidthMin", "/srv/link 150M")], signature="(ss)")
        sutrod.call("SetPolicy", unit, pairs, lifetime)
    sutrod.elapse(190)
    pairs = dbus.Array([("ReadBandwidthMin", "/dev/sdd 101M")], signature="(ss)")
    assert sutrod.error("SetPolicy", "db.service", pairs, "runtime")[0] == "Overcommitted"


def test_paths_of_no_setting_are_not_looked_up(machine: Machine, sutrod: Sutrod, db: str) -> None:
    """The periodic comparison drops the path of a setting that is gone, and no other."""
    sutrod.start()
    set_policy(sutrod, "db.service", ReadBandwidthMax="/srv/old/x 5M")
    sutrod.elapse(1)
    set_policy(sutrod, "db.service", ReadBandwidthMax="")
    set_policy(sutrod, "db.service", ReadBandwidthMax="/srv/link 5M")
    # A path that was in use since the last comparison is kept until the next one.
    sutrod.elapse(130)
    machine.write("/faults", "/srv/old/x hang\n/srv/link hang\n")
    sutrod.call("ReloadPolicies")
    sutrod.elapse(11)
    assert "/srv/link could not be looked up within 5 s" in sutrod.log()
    assert "/srv/old/x could not be looked up within 5 s" not in sutrod.log()
