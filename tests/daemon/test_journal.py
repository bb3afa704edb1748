# SPDX-License-Identifier: LGPL-2.1-or-later
"""Changes of state in the journal: each is reported once, with its fields and its catalog entry."""

import os
import re

import dbus
import pytest
from clients import client_of
from fakemachine import NAME, TOP, Bus, Machine, Sutrod, Systemd
from journal import Journal
from plant import set_policy

CONF = "/etc/sutro/sutrod.conf"
REFUSE = "[Capacity]\nDevice=/dev/sdd read=400M\nAdmission=refuse\n"
RECONCILE_S = 60
HOUR_S = 3600
# After a disk got the elevator.
FIRST_SAVE_S = 300


@pytest.fixture
def data(machine: Machine) -> None:
    """sdd is mounted at /data."""
    machine.mount("/", "8:32", "ext4", "/dev/sdc")
    machine.mount("/data", "8:48", "ext4", "/dev/sdd")


def subset(messages: list[dict[str, str]], *names: str) -> list[tuple[str, ...]]:
    """Some fields of each message, without their prefix SUTRO_."""
    return [tuple(m["SUTRO_" + name] for name in names) for m in messages]


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize("subject", ["db.service", "/batch"])
def test_path_without_a_disk(
    machine: Machine, systemd: Systemd, sutrod: Sutrod, journal: Journal, subject: str
) -> None:
    """A path on no disk is reported once per setting, and once when it is on a disk."""
    if subject == "/batch":
        machine.cgroup(subject)
    else:
        systemd.start(subject)
    setting = (subject, "ReadBandwidthMax", "/data/none")
    sutrod.start(**journal.environment)
    set_policy(sutrod, subject, ReadBandwidthMax="/data/none 5M")
    sutrod.until(lambda: bool(journal.of("PATH_UNRESOLVED")))
    set_policy(sutrod, subject, Class="idle")
    sutrod.call("ReloadPolicies")
    sutrod.call("Reload")
    sutrod.elapse(3 * RECONCILE_S)
    unresolved = journal.of("PATH_UNRESOLVED")
    assert subset(unresolved, "UNIT", "SETTING", "PATH") == [setting]
    assert unresolved[0]["PRIORITY"] == "4"
    assert not journal.of("PATH_RESOLVED")

    machine.write("/data/none", "")
    sutrod.until(lambda: bool(journal.of("PATH_RESOLVED")), 2 * RECONCILE_S)
    sutrod.call("Reload")
    sutrod.elapse(3 * RECONCILE_S)
    resolved = journal.of("PATH_RESOLVED")
    assert subset(resolved, "UNIT", "SETTING", "PATH") == [setting]
    assert resolved[0]["PRIORITY"] == "6"

    machine.at("/data/none").unlink()
    sutrod.call("Reload")
    sutrod.until(lambda: len(journal.of("PATH_UNRESOLVED")) == 2)


@pytest.mark.usefixtures("data")
def test_path_of_a_weight_of_systemd(
    machine: Machine, systemd: Systemd, sutrod: Sutrod, journal: Journal
) -> None:
    """The setting is named as in the unit file."""
    systemd.start("a.service", device_weights=[("/data/none", 300)])
    sutrod.start(**journal.environment)
    sutrod.until(lambda: bool(journal.of("PATH_UNRESOLVED")))
    systemd.change("a.service", 200, [("/data/none", 300)])
    sutrod.elapse(3)
    expected = [("a.service", "IODeviceWeight", "/data/none")]
    assert subset(journal.of("PATH_UNRESOLVED"), "UNIT", "SETTING", "PATH") == expected


@pytest.mark.usefixtures("data")
def test_paths_of_proposals_are_not_reported(
    machine: Machine, systemd: Systemd, sutrod: Sutrod, journal: Journal
) -> None:
    """Proposed files and the admission of settings report paths to their caller only."""
    systemd.start("db.service")
    machine.write(CONF, REFUSE)
    sutrod.start(**journal.environment)
    for path in ("/data", "/data/none"):
        text = f"[Match]\nUnit=db.service\n[X-Sutro]\nReadBandwidthMin={path} 5M\n"
        sutrod.call("CheckPolicies", [("/etc/sutro/policy.d/a.policy", text)])
        sutrod.elapse(1)
    set_policy(sutrod, "db.service", ReadBandwidthMin="/data 5M")
    sutrod.elapse(1)
    assert not journal.of("PATH_UNRESOLVED") + journal.of("PATH_RESOLVED")


def overcommit(machine: Machine, rate: str) -> None:
    """A file with a floor of db on /data."""
    text = f"[Match]\nUnit=db.service\n[X-Sutro]\nReadBandwidthMin=/data {rate}\n"
    machine.write("/etc/sutro/policy.d/db.policy", text)


@pytest.mark.usefixtures("data")
def test_capacity_that_files_exceed(
    machine: Machine, systemd: Systemd, sutrod: Sutrod, journal: Journal
) -> None:
    """Reported once at the start and after a change of files, and once when the floors fit."""
    systemd.start("db.service")
    machine.write(CONF, REFUSE)
    overcommit(machine, "500M")
    sutrod.start(**journal.environment)
    (message,) = journal.of("CAPACITY_EXCEEDED")
    assert message["SUTRO_DEVICE"] == "/dev/sdd" and message["PRIORITY"] == "4"
    assert "ReadBandwidthMin: 500M of 400M are promised" in message["MESSAGE"]
    overcommit(machine, "600M")
    sutrod.call("Reload")
    sutrod.elapse(3 * RECONCILE_S)
    assert len(journal.of("CAPACITY_EXCEEDED")) == 1 and not journal.of("CAPACITY_KEPT")
    overcommit(machine, "400M")
    sutrod.call("ReloadPolicies")
    sutrod.until(lambda: bool(journal.of("CAPACITY_KEPT")), 2 * RECONCILE_S)
    machine.write(CONF, REFUSE.replace("400M", "300M"))
    sutrod.call("Reload")
    sutrod.until(lambda: len(journal.of("CAPACITY_EXCEEDED")) == 2)
    sutrod.elapse(3 * RECONCILE_S)
    assert subset(journal.of("CAPACITY_KEPT"), "DEVICE") == [("/dev/sdd",)]
    assert len(journal.of("CAPACITY_EXCEEDED")) == 2


@pytest.mark.usefixtures("data")
def test_capacity_that_a_setting_exceeds(
    machine: Machine, systemd: Systemd, sutrod: Sutrod, journal: Journal
) -> None:
    """With Admission=warn, each such setting is reported, and its end."""
    systemd.start("db.service")
    machine.write(CONF, REFUSE.replace("refuse", "warn"))
    sutrod.start(**journal.environment)
    set_policy(sutrod, "db.service", ReadBandwidthMin="/data 401M")
    sutrod.elapse(3 * RECONCILE_S)
    (message,) = journal.of("CAPACITY_EXCEEDED")
    assert "db.service" in message["MESSAGE"]
    set_policy(sutrod, "db.service", ReadBandwidthMin="/data 400M")
    sutrod.until(lambda: bool(journal.of("CAPACITY_KEPT")), 2 * RECONCILE_S)
    assert len(journal.of("CAPACITY_EXCEEDED")) == 1


@pytest.mark.usefixtures("data")
def test_capacity_that_a_failed_setting_would_exceed(
    machine: Machine, systemd: Systemd, sutrod: Sutrod, journal: Journal
) -> None:
    """A setting that does not come in force exceeds nothing, so nothing fits again either."""
    systemd.start("db.service")
    machine.write(CONF, REFUSE.replace("refuse", "warn"))
    sutrod.start(**journal.environment)
    machine.fault("policy.control/.new", "full")
    floor = [("ReadBandwidthMin", "/data 401M")]
    text = sutrod.error("SetPolicy", "db.service", floor, "runtime")[1]
    assert text == "db.service: cannot keep the policy: No space left on device."
    sutrod.elapse(3 * RECONCILE_S)
    assert not journal.of("CAPACITY_EXCEEDED") and not journal.of("CAPACITY_KEPT")
    machine.write("/faults", "")
    set_policy(sutrod, "db.service", ReadBandwidthMin="/data 401M")
    sutrod.elapse(3 * RECONCILE_S)
    (message,) = journal.of("CAPACITY_EXCEEDED")
    assert message["SUTRO_UNIT"] == "db.service" and not journal.of("CAPACITY_KEPT")


@pytest.mark.usefixtures("data")
def test_path_on_a_dead_file_server(
    machine: Machine, systemd: Systemd, sutrod: Sutrod, journal: Journal
) -> None:
    """A second lookup without an answer is not reported, one after an answer is."""
    systemd.start("db.service")
    machine.write("/srv/dead/x", "")
    machine.write("/faults", "/srv/dead/x hang\n")
    sutrod.start(**journal.environment)
    set_policy(sutrod, "db.service", ReadBandwidthMax="/srv/dead/x 5M")
    for _ in range(2):
        sutrod.elapse(6)
        assert subset(journal.of("LOOKUP_TIMEOUT"), "PATH") == [("/srv/dead/x",)]
        assert subset(journal.of("PATH_UNRESOLVED"), "PATH") == [("/srv/dead/x",)]
        sutrod.call("ReloadPolicies")
    sutrod.elapse(6)
    machine.write("/faults", "")
    sutrod.call("ReloadPolicies")
    sutrod.until(lambda: len(journal.of("PATH_RESOLVED")) == 1)
    machine.write("/faults", "/srv/dead/x hang\n")
    sutrod.call("ReloadPolicies")
    sutrod.elapse(6)
    assert len(journal.of("LOOKUP_TIMEOUT")) == 2


@pytest.mark.parametrize("lifetime", ["persistent", "runtime", "client"])
@pytest.mark.parametrize("subject", ["db.service", "/batch/job_7"])
def test_policy_over_the_bus(sutrod: Sutrod, journal: Journal, lifetime: str, subject: str) -> None:
    """A change is reported with its user and its settings; a call that changes nothing is not."""
    sutrod.start(**journal.environment)
    for _ in range(2):
        set_policy(sutrod, subject, lifetime, Weight="300", ReadBandwidthMax="/data  5M")
    set_policy(sutrod, subject, lifetime, ReadBandwidthMax="/data 5M", Weight="300")
    set_policy(sutrod, subject, lifetime, Weight="200")
    assert sutrod.error("SetPolicy", subject, [("Weight", "0")], lifetime)[0] == "BadPolicy"
    messages = journal.of("POLICY_SET")
    assert subset(messages, "UNIT", "LIFETIME", "UID", "SETTINGS") == [
        (subject, lifetime, str(os.getuid()), "Weight=300, ReadBandwidthMax=/data  5M"),
        (subject, lifetime, str(os.getuid()), "Weight=200"),
    ]
    client = sutrod.bus.connection.get_unique_name()
    assert {m["SUTRO_CLIENT"] for m in messages} == {client}
    assert not journal.of("POLICY_RESET")
    for _ in range(2):
        sutrod.call("ResetPolicy", subject, lifetime)
    reset = journal.of("POLICY_RESET")
    assert subset(reset, "UNIT", "LIFETIME", "CLIENT", "UID") == [
        (subject, lifetime, client, str(os.getuid()))
    ]


def test_beginning_and_end(sutrod: Sutrod, journal: Journal) -> None:
    """The start is reported when weights are in force, and the end when they are restored."""
    sutrod.start(**journal.environment)
    (started,) = journal.of("STARTED")
    version = re.search(r"version: '([0-9.]+)',\n  license", (TOP / "meson.build").read_text())
    assert version and started["SUTRO_VERSION"] == version[1] == sutrod.property("Version")
    assert not journal.of("STOPPED")
    sutrod.stop()
    assert len(journal.of("STARTED")) == len(journal.of("STOPPED")) == 1
    assert not journal.of("RESTARTS")


def test_reloads(machine: Machine, sutrod: Sutrod, journal: Journal) -> None:
    """Each successful one is reported, that of policies with its user."""
    sutrod.start(**journal.environment)
    assert not journal.of("POLICIES_RELOADED") and not journal.of("RELOADED")
    sutrod.call("ReloadPolicies")
    (message,) = journal.of("POLICIES_RELOADED")
    client = sutrod.bus.connection.get_unique_name()
    assert subset([message], "CLIENT", "UID") == [(client, str(os.getuid()))]
    assert not journal.of("RELOADED")
    sutrod.call("Reload")
    assert len(journal.of("RELOADED")) == len(journal.of("POLICIES_RELOADED")) == 1


def test_leaf_is_used_and_released(machine: Machine, sutrod: Sutrod, journal: Journal) -> None:
    """Both have the leaf, and its schedulers before and after."""
    sutrod.start(**journal.environment)
    sutrod.call("UseDevices", ["/dev/sdd"])
    sutrod.call("ReleaseDevices", ["/dev/sdd"])
    messages = journal.of("LEAF_SWITCHED")
    assert subset(messages, "LEAF", "PREVIOUS", "SCHEDULER") == [
        ("/dev/sdd", "none", "sutro"),
        ("/dev/sdd", "sutro", "none"),
    ]


def test_leaf_that_others_switch(machine: Machine, sutrod: Sutrod, journal: Journal) -> None:
    """A switch by another program is reported once; one away from sutro is a warning."""
    sutrod.start(**journal.environment)
    sutrod.call("UseDevices", ["/dev/sdd"])
    assert not journal.of("LEAF_SWITCHED_BY_OTHERS")
    for number, scheduler in enumerate(("none", "bfq", "sutro"), 1):
        machine.set_scheduler("sdd", scheduler)
        sutrod.until(lambda n=number: len(journal.of("LEAF_SWITCHED_BY_OTHERS")) == n)
    sutrod.call("Reload")
    sutrod.elapse(2 * RECONCILE_S)
    messages = journal.of("LEAF_SWITCHED_BY_OTHERS")
    assert subset(messages, "LEAF", "PREVIOUS", "SCHEDULER") == [
        ("/dev/sdd", "sutro", "none"),
        ("/dev/sdd", "none", "bfq"),
        ("/dev/sdd", "bfq", "sutro"),
    ]
    assert [one["PRIORITY"] for one in messages] == ["4", "6", "6"]
    assert len(journal.of("LEAF_SWITCHED")) == 1


def costs_of_sdd(machine: Machine, scheduler: str = "sutro") -> None:
    """A disk with an identifier has measured costs, which can be saved."""
    machine.set_scheduler("sdd", scheduler)
    folder = "/sys/devices/virtual/block/sdd"
    machine.write(f"{folder}/queue/iosched/costs", "version 1\nread 4096 29629\n")
    machine.write(f"{folder}/wwid", "eui.1\n")


@pytest.mark.parametrize("scheduler", ["sutro", "none"])
def test_costs_that_are_ignored(
    machine: Machine, sutrod: Sutrod, journal: Journal, scheduler: str
) -> None:
    """A damaged file of a disk is reported with the disk.

    The message is one of a child process, also when the daemon has sent messages before.
    """
    costs_of_sdd(machine, scheduler)
    machine.write("/sys/devices/virtual/block/sdd/queue/iosched/costs", "version 1\n")
    machine.write("/var/lib/sutro/costs/_eui.1", "damaged\n")
    sutrod.start(**journal.environment)
    if scheduler == "none":
        assert journal.of("STARTED")
        sutrod.call("UseDevices", ["/dev/sdd"])
    sutrod.until(lambda: subset(journal.of("COSTS_IGNORED"), "LEAF") == [("/dev/sdd",)])


def test_costs_of_a_disk_that_cannot_be_saved(
    machine: Machine, sutrod: Sutrod, journal: Journal
) -> None:
    """The file is named; the message has the disk, the folder and the consequence."""
    costs_of_sdd(machine)
    machine.write("/var/lib/sutro", "a file")
    sutrod.start(**journal.environment)
    sutrod.elapse(FIRST_SAVE_S - 5)
    sutrod.until(lambda: bool(journal.of("COSTS_NOT_SAVED")))
    message = journal.of("COSTS_NOT_SAVED")[0]
    assert message["SUTRO_FILE"] == str(machine.at("/var/lib/sutro/costs/_eui.1"))
    assert message["MESSAGE"].startswith("/dev/sdd: cannot save costs of requests in ")
    assert message["MESSAGE"].endswith(" After a boot they are measured again.")
    assert message["PRIORITY"] == "4"


def test_costs_on_a_file_system_that_hangs(
    machine: Machine, sutrod: Sutrod, journal: Journal
) -> None:
    """It delays nothing else, and the folder is named."""
    costs_of_sdd(machine)
    machine.fault("costs/.new", "hang")
    sutrod.start(**journal.environment)
    sutrod.elapse(HOUR_S)
    assert sutrod.property("ManagedLeaves") == []
    sutrod.until(lambda: bool(journal.of("COSTS_NOT_SAVED")), 120)
    (message,) = journal.of("COSTS_NOT_SAVED")
    assert message["SUTRO_FILE"] == str(machine.at("/var/lib/sutro/costs"))
    assert message["MESSAGE"].startswith("Cannot save costs of requests in ")


@pytest.mark.usefixtures("data")
def test_costs_of_floors_that_cannot_be_saved(
    machine: Machine, systemd: Systemd, sutrod: Sutrod, journal: Journal
) -> None:
    """Reported once, and again after a save without a failure."""
    systemd.start("db.service")
    machine.at("/run/sutro/learnt").mkdir(parents=True)
    sutrod.start(**journal.environment)
    set_policy(sutrod, "db.service", ReadBandwidthMin="/dev/mapper/vg-db 5M")
    sutrod.until(lambda: bool(journal.of("COSTS_NOT_SAVED")), 60)
    sutrod.elapse(60)
    file = machine.at("/run/sutro/learnt")
    assert subset(journal.of("COSTS_NOT_SAVED"), "FILE") == [(str(file),)]
    file.rmdir()
    sutrod.until(file.is_file, 60)
    file.unlink()
    file.mkdir()
    sutrod.until(lambda: len(journal.of("COSTS_NOT_SAVED")) == 2, 60)


def test_varlink_that_cannot_be_served(machine: Machine, sutrod: Sutrod, journal: Journal) -> None:
    """The bus is served without it."""
    machine.write("/run/sutro/io.sutro.Status/x", "")
    sutrod.start(**journal.environment)
    (message,) = journal.of("VARLINK_FAILED")
    assert message["SUTRO_FILE"] == str(machine.at("/run/sutro/io.sutro.Status"))
    assert message["PRIORITY"] == "4"


def set_level(sutrod: Sutrod, level: str) -> None:
    """As systemctl service-log-level does."""
    control = sutrod.bus.connection.get_object(NAME, "/org/freedesktop/LogControl1")
    interface = "org.freedesktop.LogControl1"
    control.Set(interface, "LogLevel", level, dbus_interface=dbus.PROPERTIES_IFACE)


def test_level_of_the_log(sutrod: Sutrod, journal: Journal) -> None:
    """Each change is reported, whatever the level; the same level again is none."""
    sutrod.start(**journal.environment)
    for level in ("info", "err", "err", "emerg", "debug"):
        set_level(sutrod, level)
    client = sutrod.bus.connection.get_unique_name()
    assert subset(journal.of("LOG_LEVEL_SET"), "LEVEL", "PREVIOUS", "CLIENT") == [
        ("info", "debug", client),
        ("err", "info", client),
        ("emerg", "err", client),
        ("debug", "emerg", client),
    ]


def test_cgroup_that_cannot_be_watched(
    machine: Machine, systemd: Systemd, sutrod: Sutrod, journal: Journal
) -> None:
    """One message stands for all cgroups without a watch, until a scan without a failure."""
    folder = machine.at(f"/sys/fs/cgroup{systemd.start('a.service')}")
    machine.fault("a.service", "unwatchable")
    sutrod.start(**journal.environment)
    sutrod.elapse(2 * RECONCILE_S)
    (message,) = journal.of("WATCH_FAILED")
    assert (message["SUTRO_FILE"], message["PRIORITY"]) == (str(folder), "4")
    assert "raise fs.inotify.max_user_watches" in message["MESSAGE"]


def test_disks_that_cannot_be_watched(machine: Machine, sutrod: Sutrod, journal: Journal) -> None:
    """As for cgroups; the comparison finds another scheduler."""
    fault = "sdc/queue/scheduler unwatchable sdd/queue/scheduler unwatchable\n"
    machine.write("/faults", fault)
    sutrod.start(**journal.environment)
    sutrod.call("Reload")
    (message,) = journal.of("WATCH_FAILED")
    assert message["SUTRO_FILE"].endswith("/sdc/queue/scheduler")
    assert "raise fs.inotify.max_user_watches" in message["MESSAGE"]
    machine.write("/faults", "")
    sutrod.call("Reload")
    machine.write("/faults", fault)
    sutrod.call("Reload")
    assert len(journal.of("WATCH_FAILED")) == 2


def test_long_policy_over_the_bus(sutrod: Sutrod, journal: Journal) -> None:
    """A message has the first settings of a long list, and the number of the others."""
    sutrod.start(**journal.environment)
    pairs = [("Weight", f"/{'x' * 200}{n} 300") for n in range(100)]
    sutrod.call("SetPolicy", "db.service", dbus.Array(pairs, signature="(ss)"), "runtime")
    (message,) = journal.of("POLICY_SET")
    assert len(message["MESSAGE"]) < 2048
    assert message["SUTRO_SETTINGS"].endswith(" and 95 more")


def test_policy_of_a_client_that_leaves(bus: Bus, sutrod: Sutrod, journal: Journal) -> None:
    """The end of its settings is reported."""
    sutrod.start(**journal.environment)
    client = client_of(bus, "db.service", Weight="300")
    name = client.get_unique_name()
    client.close()
    sutrod.until(lambda: bool(journal.of("POLICY_RESET")))
    expected = [("db.service", "client", name)]
    assert subset(journal.of("POLICY_RESET"), "UNIT", "LIFETIME", "CLIENT") == expected


@pytest.mark.parametrize("method", ["ReleaseDevices", "Reload"])
def test_removed_disk(machine: Machine, sutrod: Sutrod, journal: Journal, method: str) -> None:
    """A disk in use that is removed is reported once; a disk that was released is not."""
    machine.disk("sde", "8:64", "none")
    sutrod.start(**journal.environment)
    sutrod.call("UseDevices", ["/dev/sdd", "/dev/sde"])
    sutrod.call("ReleaseDevices", ["/dev/sde"])
    machine.unplug("sdd", "8:48")
    machine.unplug("sde", "8:64")
    for _ in range(2):
        sutrod.call(method, *([dbus.Array([], signature="s")] if "Release" in method else []))
        sutrod.elapse(2 * RECONCILE_S)
    assert subset(journal.of("LEAF_GONE"), "LEAF") == [("/dev/sdd",)]


def test_disk_in_the_place_of_another(machine: Machine, sutrod: Sutrod, journal: Journal) -> None:
    """A disk with the name of a disk in use is another one."""
    sutrod.start(**journal.environment)
    sutrod.call("UseDevices", ["/dev/sdd"])
    machine.unplug("sdd", "8:48")
    machine.disk("sdd", "8:48", "none", diskseq=2)
    sutrod.call("Reload")
    assert subset(journal.of("LEAF_GONE"), "LEAF") == [("/dev/sdd",)]


def set_size(machine: Machine, kb: int) -> None:
    """Set the largest request of sdd, a flash disk."""
    machine.write("/sys/class/block/sdd/queue/rotational", "0\n")
    machine.write("/sys/class/block/sdd/queue/max_sectors_kb", f"{kb}\n")


def test_size_of_requests(machine: Machine, sutrod: Sutrod, journal: Journal) -> None:
    """Each change of the limit is reported, and a call that changes nothing is not."""
    set_size(machine, 1280)
    sutrod.start(**journal.environment)
    for method in ("Use", "Use", "Release", "Release"):
        sutrod.call(f"{method}Devices", ["/dev/sdd"])
    sizes = [("/dev/sdd", "128"), ("/dev/sdd", "1280")]
    assert subset(journal.of("SIZE_SET"), "LEAF", "SIZE_KB") == sizes
    assert not journal.of("SIZE_NOT_SET")


def set_slots(machine: Machine, nr: int) -> None:
    """Set the request slots of sdd."""
    machine.write("/sys/class/block/sdd/queue/nr_requests", f"{nr}\n")


def test_request_slots(machine: Machine, sutrod: Sutrod, journal: Journal) -> None:
    """A raise is reported once."""
    set_slots(machine, 64)
    sutrod.start(**journal.environment)
    for method in ("Use", "Use", "Release"):
        sutrod.call(f"{method}Devices", ["/dev/sdd"])
    assert subset(journal.of("SLOTS_RAISED"), "LEAF", "SLOTS") == [("/dev/sdd", "256")]
    assert not journal.of("SLOTS_NOT_RAISED")


def test_request_slots_that_the_kernel_refuses(
    machine: Machine, sutrod: Sutrod, journal: Journal
) -> None:
    """The disk is in use all the same."""
    set_slots(machine, 64)
    machine.fault("queue/nr_requests", "ignore")
    sutrod.start(**journal.environment)
    (used,) = sutrod.call("UseDevices", ["/dev/sdd"])
    assert (used["scheduler"], used["previous"], used["changed"]) == ("sutro", "none", True)
    refused = journal.of("SLOTS_NOT_RAISED")
    assert subset(refused, "LEAF", "SLOTS", "WANTED_SLOTS") == [("/dev/sdd", "64", "256")]
    assert refused[0]["PRIORITY"] == "4"
    assert refused[0]["MESSAGE"].startswith("/dev/sdd: nr_requests stays 64, wanted 256.")
    assert not journal.of("SLOTS_RAISED")


def test_size_that_the_disk_refuses(machine: Machine, sutrod: Sutrod, journal: Journal) -> None:
    """A refusal is reported once, also by the next daemon, and again for another size."""
    set_size(machine, 1280)
    machine.fault("queue/max_sectors_kb", "ignore")
    sutrod.start(**journal.environment)
    (used,) = sutrod.call("UseDevices", ["/dev/sdd"])
    assert (used["scheduler"], used["previous"], used["changed"]) == ("sutro", "none", True)
    sutrod.call("UseDevices", ["/dev/sdd"])
    sutrod.stop()
    sutrod.start(**journal.environment)
    sutrod.call("UseDevices", ["/dev/sdd"])
    refused = [("/dev/sdd", "1280", "128")]
    assert subset(journal.of("SIZE_NOT_SET"), "LEAF", "SIZE_KB", "WANTED_KB") == refused
    (message,) = journal.of("SIZE_NOT_SET")
    assert message["PRIORITY"] == "4"
    assert message["MESSAGE"].startswith("/dev/sdd: max_sectors_kb stays 1280, wanted 128.")
    set_size(machine, 512)
    sutrod.call("UseDevices", ["/dev/sdd"])
    refused.append(("/dev/sdd", "512", "128"))
    assert subset(journal.of("SIZE_NOT_SET"), "LEAF", "SIZE_KB", "WANTED_KB") == refused
    # Nothing was changed, so the release restores nothing.
    sutrod.call("ReleaseDevices", ["/dev/sdd"])
    assert not journal.of("SIZE_SET")
    assert len(journal.of("SIZE_NOT_SET")) == 2
