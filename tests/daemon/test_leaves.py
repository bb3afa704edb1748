# SPDX-License-Identifier: LGPL-2.1-or-later
"""Leaves: switching their schedulers by the bus and by sutrod.conf, and the records of it."""

import re
import shutil
import signal
from typing import Any

import dbus
import pytest
from clients import calling
from fakemachine import TOP, Bus, Machine, Sutrod, Systemd, wait_until
from plant import set_policy

CONF = "/etc/sutro/sutrod.conf"
XML = (TOP / "Documentation/org.sutro1.xml").read_text()
EVERY = dbus.Array([], signature="s")
NOT_THERE = (
    '/dev/sdd: the kernel has no scheduler "sutro". Install the package sutro-dkms. If '
    '"dkms status" does not list it as installed for this kernel, install the headers of the '
    'kernel; if it does, "modprobe sutro" prints the reason.'
)
LATE = "/dev/sdd: the disk has not finished its requests in 10 s."
UNDER_WAY = "/dev/sdd: its scheduler is being switched already. Try it again in some seconds."
USE = "absolute paths or globs of devices, separated by spaces"
SECONDS = "seconds, 1 to 3600"
SIZES = "KiB, 4 to 65536, or 0 for the size of the disk"
SLOTS = "4 to 2048, or 0 for the number of the kernel"
KEYS = (
    "[Leaves] Use=, [Leaves] MaxSectorsKB=, [Leaves] NrRequests=, [Capacity] Device=, "
    "[Capacity] Admission=, [Daemon] ResyncWeight=, [Daemon] ReconcileSec="
)


def managed(sutrod: Sutrod) -> list[str]:
    """The names of the leaves that the daemon has switched."""
    return [str(node).removeprefix("/dev/") for node in sutrod.property("ManagedLeaves")]


def change(sutrod: Sutrod, method: str, *nodes: str) -> list[tuple[Any, ...]]:
    """Use or release leaves; name, scheduler, the one before and "changed" of each."""
    results = sutrod.call(f"{method}Devices", list(nodes) or EVERY)
    assert not [r["error"] for r in results if r["error"]]
    return [
        (r["leaf"].removeprefix("/dev/"), r["scheduler"], r["previous"], bool(r["changed"]))
        for r in results
    ]


@pytest.mark.parametrize("method", ["UseDevices", "ReleaseDevices"])
def test_limit_of_paths(machine: Machine, sutrod: Sutrod, method: str) -> None:
    """A call with more paths than the documents allow is refused as a whole."""
    ((limit, name),) = re.findall(r"More than (\d+) paths fail with\s+(org.*LimitsExceeded)", XML)
    machine.set_scheduler("sda", "none")
    sutrod.start()
    sutrod.call(method, int(limit) * ["/dev/sda"])
    before = managed(sutrod)
    more = ["/dev/sdb", *(int(limit) * ["/dev/sda"])]
    assert sutrod.error(method, more) == (
        name,
        f"More than {limit} paths in a call: use several calls.",
    )
    assert managed(sutrod) == before


def test_use_and_release(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    machine.set_scheduler("sda", "none")
    machine.set_scheduler("sdb", "mq-deadline")
    a = systemd.start("a.service", 200)
    sutrod.start()
    assert machine.weights(a) == ["default 100"]
    assert change(sutrod, "Use", "/dev/mapper/vg-db", "/dev/sda") == [
        ("sda", "sutro", "none", True),
        ("sdb", "sutro", "mq-deadline", True),
    ]
    sutrod.until(lambda: machine.weights(a) == ["default 200"])
    assert managed(sutrod) == ["sda", "sdb"]
    assert change(sutrod, "Use", "/dev/sdb") == [("sdb", "sutro", "sutro", False)]
    assert machine.at("/run/sutro/leaves/sdb").read_text().startswith("mq-deadline 1 used 0 0 ")
    # A restart and a crash remember the former schedulers, and a dry run changes none.
    sutrod.stop()
    assert machine.scheduler("sda") == "sutro"
    sutrod.start("--dry-run")
    assert change(sutrod, "Release", "/dev/sda") == [("sda", "sutro", "sutro", False)]
    sutrod.stop(signal.SIGKILL)
    sutrod.start()
    assert managed(sutrod) == ["sda", "sdb"]
    assert change(sutrod, "Release", "/dev/sdc") == [("sdc", "bfq", "bfq", False)]
    assert change(sutrod, "Release") == [
        ("sda", "none", "sutro", True),
        ("sdb", "mq-deadline", "sutro", True),
    ]
    assert (machine.scheduler("sda"), machine.scheduler("sdb")) == ("none", "mq-deadline")
    assert managed(sutrod) == change(sutrod, "Release") == []


def max_sectors(machine: Machine, leaf: str, kb: int | None = None, rotational: int = 0) -> int:
    """The largest request of a disk; kb: set it as a program other than sutrod does."""
    queue = f"/sys/class/block/{leaf}/queue"
    if kb is not None:
        machine.write(f"{queue}/rotational", f"{rotational}\n")
        machine.write(f"{queue}/max_sectors_kb", f"{kb}\n")
    return int(machine.at(f"{queue}/max_sectors_kb").read_text())


@pytest.mark.parametrize(
    ("conf", "before", "rotational", "in_use"),
    [
        ("", 1280, 0, 128),
        ("[Leaves]\nMaxSectorsKB=256\n", 1280, 0, 256),
        ("[Leaves]\nMaxSectorsKB=0\n", 1280, 0, 1280),
        ("", 64, 0, 64),
        ("", 1280, 1, 1280),
    ],
    ids=["default", "configured", "off", "smaller", "rotational"],
)
def test_size_of_requests(
    machine: Machine, sutrod: Sutrod, conf: str, before: int, rotational: int, in_use: int
) -> None:
    """A flash disk in use has small requests, and its own size after its release."""
    machine.set_scheduler("sdd", "mq-deadline")
    max_sectors(machine, "sdd", before, rotational)
    machine.write(CONF, conf)
    sutrod.start()
    assert change(sutrod, "Use", "/dev/sdd") == [("sdd", "sutro", "mq-deadline", True)]
    assert max_sectors(machine, "sdd") == in_use
    assert change(sutrod, "Use", "/dev/sdd") == [("sdd", "sutro", "sutro", False)]
    # A daemon that takes over has the size of its predecessor's record.
    sutrod.stop(signal.SIGKILL)
    machine.write(CONF, "")
    sutrod.start()
    assert max_sectors(machine, "sdd") == in_use
    assert change(sutrod, "Release", "/dev/sdd") == [("sdd", "mq-deadline", "sutro", True)]
    assert max_sectors(machine, "sdd") == before


def test_size_that_others_set_stays(machine: Machine, sutrod: Sutrod) -> None:
    max_sectors(machine, "sdd", 1280)
    sutrod.start()
    change(sutrod, "Use", "/dev/sdd")
    max_sectors(machine, "sdd", 512)
    change(sutrod, "Release", "/dev/sdd")
    assert max_sectors(machine, "sdd") == 512


def test_size_of_a_leaf_that_others_switched(machine: Machine, sutrod: Sutrod) -> None:
    """One that udev switched to sutro has small requests, too; one switched back has its own."""
    machine.set_scheduler("sdd", "sutro")
    max_sectors(machine, "sdd", 1280)
    sutrod.start()
    assert change(sutrod, "Use", "/dev/sdd") == [("sdd", "sutro", "sutro", False)]
    assert max_sectors(machine, "sdd") == 128
    machine.set_scheduler("sdd", "bfq")
    assert change(sutrod, "Release", "/dev/sdd") == [("sdd", "bfq", "bfq", False)]
    assert max_sectors(machine, "sdd") == 1280
    # The size before is known through further uses, until another program changes it.
    for by_hand, restored in ((128, 1280), (640, 640)):
        assert change(sutrod, "Use", "/dev/sdd") == [("sdd", "sutro", "bfq", True)]
        machine.set_scheduler("sdd", "mq-deadline")
        max_sectors(machine, "sdd", by_hand)
        assert change(sutrod, "Use", "/dev/sdd") == [("sdd", "sutro", "mq-deadline", True)]
        assert max_sectors(machine, "sdd") == 128
        assert change(sutrod, "Release", "/dev/sdd") == [("sdd", "mq-deadline", "sutro", True)]
        assert max_sectors(machine, "sdd") == restored
        machine.set_scheduler("sdd", "bfq")


def slots(machine: Machine, leaf: str, nr: int | None = None) -> int:
    """The request slots of a disk; nr: set them as a program other than sutrod does."""
    path = f"/sys/class/block/{leaf}/queue/nr_requests"
    if nr is not None:
        machine.write(path, f"{nr}\n")
    return int(machine.at(path).read_text())


@pytest.mark.parametrize(
    ("conf", "in_use"),
    [
        ("", 256),
        ("[Leaves]\nNrRequests=1024\n", 1024),
        ("[Leaves]\nNrRequests=32\n", 64),
        ("[Leaves]\nNrRequests=0\n", 64),
    ],
    ids=["default", "configured", "fewer", "off"],
)
def test_request_slots(machine: Machine, sutrod: Sutrod, conf: str, in_use: int) -> None:
    """A disk in use has enough slots, whatever another scheduler had; 64 are the kernel's."""
    machine.set_scheduler("sdd", "mq-deadline")
    slots(machine, "sdd", 512)
    machine.write(CONF, conf)
    sutrod.start()
    assert change(sutrod, "Use", "/dev/sdd") == [("sdd", "sutro", "mq-deadline", True)]
    assert slots(machine, "sdd") == in_use
    assert change(sutrod, "Use", "/dev/sdd") == [("sdd", "sutro", "sutro", False)]
    assert slots(machine, "sdd") == in_use
    assert change(sutrod, "Release", "/dev/sdd") == [("sdd", "mq-deadline", "sutro", True)]
    assert slots(machine, "sdd") == 64


def test_request_slots_of_a_leaf_that_has_the_scheduler(machine: Machine, sutrod: Sutrod) -> None:
    """sutroctl use raises too few of them; more, and those that are set by hand later, stay."""
    machine.set_scheduler("sdd", "sutro")
    slots(machine, "sdd", 64)
    sutrod.start()
    assert change(sutrod, "Use", "/dev/sdd") == [("sdd", "sutro", "sutro", False)]
    assert slots(machine, "sdd") == 256
    for by_hand in (2048, 16):
        slots(machine, "sdd", by_hand)
        sutrod.call("Reload")
        assert slots(machine, "sdd") == by_hand
    assert change(sutrod, "Use", "/dev/sdd") == [("sdd", "sutro", "sutro", False)]
    assert slots(machine, "sdd") == 256


def test_leaf_with_the_scheduler_is_released_to_none(sutrod: Sutrod) -> None:
    """A leaf is not managed before UseDevices."""
    sutrod.start()
    assert managed(sutrod) == []
    assert change(sutrod, "Use", "/dev/sda") == [("sda", "sutro", "sutro", False)]
    assert managed(sutrod) == ["sda"]
    assert change(sutrod, "Release", "/dev/sda") == [("sda", "none", "sutro", True)]


def test_another_disk_of_the_same_name_is_not_managed(machine: Machine, sutrod: Sutrod) -> None:
    sutrod.start()
    assert change(sutrod, "Use", "/dev/sdd") == [("sdd", "sutro", "none", True)]
    queue = machine.at("/sys/class/block/sdd/queue")
    shutil.copytree(queue, queue.with_name("other"))
    for diskseq, names, scheduler in ((8, [], "sutro"), (1, ["sdd"], "none")):
        machine.write("/sys/class/block/sdd/diskseq", f"{diskseq}\n")
        queue.rename(queue.with_name("spare"))
        queue.with_name("other").rename(queue)
        queue.with_name("spare").rename(queue.with_name("other"))
        sutrod.call("Reload")
        assert managed(sutrod) == names
        assert change(sutrod, "Release", "/dev/sdd")[0][1] == scheduler


def test_medium_that_changes(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    """A loop device gets another file: its queue keeps all that was set, and it can be restored."""
    a = systemd.start("a.service")
    theirs = "8:48 rbps=9000000 wbps=max riops=max wiops=max"
    machine.write(f"/sys/fs/cgroup{a}/io.max", theirs + "\n")
    machine.set_scheduler("sdd", "mq-deadline")
    max_sectors(machine, "sdd", 1280)
    machine.write(CONF, "[Leaves]\nUse=/dev/sdd\n")
    sutrod.start()
    sutrod.until(lambda: managed(sutrod) == ["sdd"])
    set_policy(sutrod, "a.service", ReadBandwidthMax="/dev/sdd 5M")
    ours = theirs.replace("9000000", "5000000")
    sutrod.until(lambda: machine.weights(a, "io.max") == [ours])
    # Without a file its size is 0. Both changes have another diskseq.
    for diskseq, sectors, names in ((2, 0, []), (3, 4096, ["sdd"])):
        machine.write("/sys/class/block/sdd/diskseq", f"{diskseq}\n")
        machine.write("/sys/class/block/sdd/size", f"{sectors}\n")
        sutrod.call("Reload")
        sutrod.settle()
        assert managed(sutrod) == names
    assert "is gone" not in sutrod.log()
    assert machine.weights(a, "io.max") == [ours]
    sutrod.stop(signal.SIGKILL)
    sutrod.start()
    assert change(sutrod, "Release") == [("sdd", "mq-deadline", "sutro", True)]
    assert max_sectors(machine, "sdd") == 1280
    sutrod.stop()
    assert machine.weights(a, "io.max") == [theirs]


def test_disk_that_is_gone_needs_no_release(machine: Machine, sutrod: Sutrod) -> None:
    """The daemon has not seen yet that it was removed."""
    sutrod.start()
    change(sutrod, "Use", "/dev/sda", "/dev/sdb")
    shutil.rmtree(machine.at("/sys/class/block/sda/queue"))
    assert change(sutrod, "Release", "/dev/sda", "/dev/sdb")[1][1] != "sutro"
    assert not machine.at("/run/sutro/leaves/sda").exists()


def test_scheduler_that_is_not_there(machine: Machine, sutrod: Sutrod) -> None:
    machine.write("/sys/class/block/sdd/queue/scheduler", "[none] bfq\n")
    machine.write(CONF, "[Leaves]\nUse=/dev/sdd\n")
    sutrod.start()
    assert sutrod.error("UseDevices", ["/dev/sdd"]) == ("NotSupported", NOT_THERE)
    # One of two works: the other's error is in its result.
    results = sutrod.call("UseDevices", ["/dev/sdc", "/dev/sdd"])
    assert [r["error"] for r in results] == ["", NOT_THERE]
    assert managed(sutrod) == ["sdc"]
    # When the module is there, a reload switches the leaf.
    machine.set_scheduler("sdd", "none")
    sutrod.call("Reload")
    sutrod.until(lambda: managed(sutrod) == ["sdc", "sdd"])


@pytest.mark.parametrize(
    ("fault", "reason"), [("ignore", "Input/"), ("fail", "Input/output error")]
)
def test_switch_that_fails(machine: Machine, sutrod: Sutrod, fault: str, reason: str) -> None:
    machine.fault("sdd/queue/scheduler", fault)
    sutrod.start()
    _, message = sutrod.error("UseDevices", ["/dev/sdd"])
    assert message.startswith(f'/dev/sdd: cannot switch to the scheduler "sutro": {reason}')
    assert managed(sutrod) == []


@pytest.mark.parametrize("scheduler", ["[none] bfq", "[none] bfq sutro"])
def test_failed_switch_is_repeated_after_a_reload_only(
    machine: Machine, sutrod: Sutrod, scheduler: str
) -> None:
    """Another disk that appears causes no attempt, and no message. A new disk gets its own."""

    def attempts(name: str = "sdd") -> tuple[int, int]:
        message = f"/dev/{name}: cannot switch" if "sutro" in scheduler else NOT_THERE
        return writes(machine, name), sutrod.log().count(message.replace("sdd", name))

    def appear(name: str, devno: str) -> None:
        machine.disk(name, devno, "none")
        sutrod.elapse(61)
        sutrod.until(lambda: name in [d["name"] for d in sutrod.call("ListDevices")])
        sutrod.settle()

    machine.write("/sys/class/block/sdd/queue/scheduler", f"{scheduler}\n")
    if "sutro" in scheduler:
        machine.fault("sdd/queue/scheduler", "fail")
    machine.write(CONF, "[Leaves]\nUse=/dev/sdd\n")
    sutrod.start()
    sutrod.until(lambda: attempts() == (1, 1))
    for number, name in enumerate(("sde", "sdf")):
        appear(name, f"8:{64 + 16 * number}")
        assert attempts() == (1, 1)
    sutrod.call("Reload")
    sutrod.until(lambda: attempts() == (2, 2))
    appear("sdg", "8:96")
    assert attempts() == (2, 2)


def writes(machine: Machine, name: str) -> int:
    """How often the scheduler of a leaf was written."""
    return sum(f"/{name}/queue/scheduler" in line for line in machine.writes())


def test_disk_that_does_not_answer(
    bus: Bus, machine: Machine, systemd: Systemd, sutrod: Sutrod
) -> None:
    """A switch waits for the requests of the disk. All other disks are served meanwhile."""
    machine.set_scheduler("sdc", "none")
    a = systemd.start("a.service", 200)
    machine.fault("sdd/queue/scheduler", "hang")
    sutrod.start()
    with calling(bus, "UseDevices", ["/dev/sdd", "/dev/sdc"]) as use:
        wait_until(lambda: writes(machine, "sdd") == 1)
        systemd.change("a.service", 300)
        sutrod.until(lambda: machine.weights(a) == ["default 300"], 1)
        assert machine.scheduler("sdc") == "sutro"
        again = sutrod.call("UseDevices", ["/dev/sda", "/dev/sdd"])
        assert [r["error"] for r in again] == ["", UNDER_WAY]
        assert not use.done()
        sutrod.elapse(10)
        errors = [r["error"] for r in use.result()]
        assert errors == ["", f'{LATE} It gets the scheduler "sutro" when it has.']
    assert managed(sutrod) == ["sda", "sdc"]
    # The disk returns, and the kernel completes the switch.
    machine.set_scheduler("sdd", "sutro")
    sutrod.settle()
    assert managed(sutrod) == ["sda", "sdc", "sdd"]
    machine.write("/faults", "")
    assert change(sutrod, "Release", "/dev/sdd") == [("sdd", "none", "sutro", True)]


def test_configured_disk_that_does_not_answer(
    machine: Machine, systemd: Systemd, sutrod: Sutrod
) -> None:
    """The start waits for it for a while. It is tried once, not with each change of devices."""
    a = systemd.start("a.service", 200)
    machine.write(CONF, "[Leaves]\nUse=/dev/sdd /dev/sdc\n")
    machine.fault("sdd/queue/scheduler", "hang")
    sutrod.spawn("--debug")
    wait_until(lambda: writes(machine, "sdc") == 1)
    sutrod.until(lambda: machine.weights(a) == ["default 200"], 1)
    assert "weights are in force" not in sutrod.log()
    sutrod.elapse(10)
    assert "weights are in force" in sutrod.log() and LATE in sutrod.log()
    assert managed(sutrod) == ["sdc"]
    sutrod.call("Reload")
    sutrod.settle()
    assert writes(machine, "sdd") == 1


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_configured_switch_that_the_end_interrupts(
    machine: Machine, sutrod: Sutrod, number: int
) -> None:
    """The next daemon switches the disk. Its successors leave it alone when others switch it."""
    machine.write(CONF, "[Leaves]\nUse=/dev/sdd\n")
    machine.fault("sdd/queue/scheduler", "hang")
    sutrod.spawn("--debug")
    wait_until(lambda: writes(machine, "sdd") == 1)
    sutrod.stop(number)
    machine.write("/faults", "")
    assert machine.scheduler("sdd") == "none"
    sutrod.start()
    assert machine.scheduler("sdd") == "sutro" and managed(sutrod) == ["sdd"]
    machine.set_scheduler("sdd", "mq-deadline")
    sutrod.settle()
    sutrod.stop(number)
    sutrod.start()
    assert machine.scheduler("sdd") == "mq-deadline" and managed(sutrod) == []


def test_many_disks_that_do_not_answer(bus: Bus, machine: Machine, sutrod: Sutrod) -> None:
    """A limited number of child processes waits for them."""
    names = [f"sd{first}{second}" for first in "ab" for second in "abcdefghij"]
    for number, name in enumerate(names):
        machine.disk(name, f"66:{16 * number}", "none")
    machine.fault("queue/scheduler", "hang")
    sutrod.start()
    with calling(bus, "UseDevices", [f"/dev/{name}" for name in names]) as use:
        wait_until(lambda: sum(writes(machine, name) for name in names) == 16)
        sutrod.elapse(5)
        assert sum(writes(machine, name) for name in names) == 16
        sutrod.elapse(5)
        wait_until(lambda: sum(writes(machine, name) for name in names) == 20)
        sutrod.elapse(10)
        with pytest.raises(dbus.DBusException, match="has not finished its requests"):
            use.result()
    # One that is stopped meanwhile ends.
    with calling(bus, "UseDevices", ["/dev/sdd"]) as use:
        wait_until(lambda: writes(machine, "sdd") == 1)
        assert sutrod.stop() == 0


def test_configuration(machine: Machine, sutrod: Sutrod) -> None:
    machine.mount("/srv", "8:48", "ext4", "/dev/sdd")
    machine.write(CONF, "[Leaves]\nUse=/srv /dev/nothing /dev/mapper/v*\n")
    sutrod.start("--dry-run")
    assert managed(sutrod) == []
    sutrod.stop()
    sutrod.start()
    assert machine.scheduler("sdd") == "sutro" and managed(sutrod) == ["sda", "sdb", "sdd"]
    machine.write(CONF, "[Leaves]\nUse=/dev/sd[cd]\n")
    sutrod.call("Reload")
    sutrod.settle()
    assert managed(sutrod) == ["sda", "sdb", "sdc", "sdd"]
    # The configuration takes neither a released leaf again nor one that was switched by hand.
    change(sutrod, "Release", "/dev/sdc")
    machine.set_scheduler("sdd", "mq-deadline")
    sutrod.call("Reload")
    assert (machine.scheduler("sdc"), machine.scheduler("sdd")) == ("bfq", "mq-deadline")
    assert managed(sutrod) == ["sda", "sdb"]
    assert change(sutrod, "Use", "/dev/sdc") == [("sdc", "sutro", "bfq", True)]


def test_device_without_an_event(machine: Machine, sutrod: Sutrod) -> None:
    """An event that was lost: the periodic comparison finds the disk, and that it went."""
    sutrod.start()
    machine.disk("sdz", "65:144")
    sutrod.elapse(61)
    assert "sdz" in {d["name"] for d in sutrod.call("ListDevices")}
    machine.unplug("sdz", "65:144")
    sutrod.elapse(61)
    assert "sdz" not in {d["name"] for d in sutrod.call("ListDevices")}


@pytest.mark.parametrize("version", [None, "0.0.9"])
def test_module_of_another_version(machine: Machine, sutrod: Sutrod, version: str | None) -> None:
    """It is reported once, and everything that the module has is used."""
    machine.at("/sys/module/sutro").mkdir(parents=True)
    if version:
        machine.write("/sys/module/sutro/version", version + "\n")
    sutrod.start()
    sutrod.call("Reload")
    sutrod.settle()
    words = f"The kernel module sutro in memory has version {version or '0'}, sutrod has "
    assert sutrod.log().count(words) == 1


def test_module_of_this_version(machine: Machine, sutrod: Sutrod) -> None:
    source = (TOP / "kernel/sutro-iosched.c").read_text()
    version = source.split('MODULE_VERSION("')[1].split('"')[0]
    machine.write("/sys/module/sutro/version", version + "\n")
    sutrod.start()
    assert sutrod.property("Version") == version
    assert "The kernel module sutro" not in sutrod.log()


def test_hangup_reloads(machine: Machine, sutrod: Sutrod) -> None:
    sutrod.start()
    machine.write(CONF, "[Leaves]\nUse=/dev/sdd\n")
    assert sutrod.process
    sutrod.process.send_signal(signal.SIGHUP)
    sutrod.until(lambda: machine.scheduler("sdd") == "sutro")


def test_order_of_configuration_files(machine: Machine, sutrod: Sutrod) -> None:
    """Drop-ins follow the file, by name; one in /etc replaces one of the vendor."""
    sutrod.start()

    def reads(file: str, text: str, use: str, seconds: int = 60) -> None:
        machine.write(file, text)
        sutrod.call("Reload")
        text = f"ReconcileSec={seconds} MaxSectorsKB=128 NrRequests=256 Use={use}"
        assert f"configuration: {text}\n" in sutrod.call("Dump")

    reads(CONF, "# nothing\n[Leaves]\nUse=/a  /b/*\nUse=/c\n; more\n", "/a /b/* /c")
    reads(CONF, "[Daemon]\nReconcileSec=5\n[Leaves]\nUse=/a\nUse=\nUse=/m\n", "/m", 5)
    reads(CONF, "[Leaves]\nUse=/m\n", "/m")
    folder = "sutro/sutrod.conf.d"
    reads(f"/usr/lib/{folder}/20-b.conf", "[Leaves]\nUse=/vb\n", "/m /vb")
    reads(f"/usr/lib/{folder}/10-a.conf", "[Leaves]\nUse=/va\n", "/m /va /vb")
    reads(f"/run/{folder}/30-c.conf", "[Leaves]\nUse=/rc\n", "/m /va /vb /rc")
    reads(f"/etc/{folder}/25-x.conf", "[Leaves]\nUse=/ex\n", "/m /va /vb /ex /rc")
    reads(f"/etc/{folder}/README", "not read\n", "/m /va /vb /ex /rc")
    reads(f"/etc/{folder}/10-a.conf", "[Leaves]\nUse=\nUse=/ea\n", "/ea /vb /ex /rc")


@pytest.mark.parametrize(
    ("text", "mistakes"),
    [
        ("[Leaves]\nUse=/dev/sda\nUse=sdb\n", [(3, "[Leaves] Use=sdb", USE)]),
        (
            "[Daemon]\n" + "".join(f"ReconcileSec={s}\n" for s in ("0", "soon", "-1", "3601")),
            [
                (line, f"[Daemon] ReconcileSec={s}", SECONDS)
                for line, s in enumerate(("0", "soon", "-1", "3601"), 2)
            ],
        ),
        (
            "[Leaves]\n" + "".join(f"MaxSectorsKB={kb}\n" for kb in ("3", "128K", "65537", "")),
            [
                (line, f"[Leaves] MaxSectorsKB={kb}", SIZES)
                for line, kb in enumerate(("3", "128K", "65537", ""), 2)
            ],
        ),
        (
            "[Leaves]\n" + "".join(f"NrRequests={n}\n" for n in ("3", "many", "2049", "-1")),
            [
                (line, f"[Leaves] NrRequests={n}", SLOTS)
                for line, n in enumerate(("3", "many", "2049", "-1"), 2)
            ],
        ),
        (
            "[Leaves]\nUser=/dev/sda\n[Leafs]\nUse=/dev/sda\n",
            [(2, "[Leaves] User=/dev/sda", KEYS), (4, "[Leafs] Use=/dev/sda", KEYS)],
        ),
        (
            "[Leaves]\nUse=/dev/sda\nnonsense\n",
            [(3, "...", "a [Section], Key=value, or a comment that begins with # or ;")],
        ),
        ("[Leaves]\nUse=/" + 400 * "x" + "\nUse=/dev/sda\n", [(2, "", "the line is too long; ")]),
    ],
    ids=["path", "seconds", "sizes", "slots", "keys", "line", "length"],
)
def test_mistakes_in_configuration_files(
    machine: Machine, sutrod: Sutrod, text: str, mistakes: list[tuple[int, str, str]]
) -> None:
    """Each mistake is reported, its assignment is ignored, and all others hold."""
    machine.write(CONF, text)
    for number in (1, 2):
        mistake = f"[Leaves]\nUse=a\nUse=/dev/{number}\nUse=/dev/3 b\n"
        machine.write(f"/etc/sutro/sutrod.conf.d/{number}.conf", mistake)
    sutrod.start()
    use = "/dev/sda " if "\nUse=/dev/sda\n" in text.replace("[Leafs]\nUse", "") else ""
    assert (
        f"ReconcileSec=60 MaxSectorsKB=128 NrRequests=256 Use={use}/dev/1 /dev/2\n"
        in sutrod.call("Dump")
    )
    lines = [line for line in sutrod.log().splitlines() if ".conf" in line]
    wanted = [(f"{CONF}:{line}: ", words, f'": {allowed}') for line, words, allowed in mistakes]
    wanted += [
        (f"{CONF}.d/{n}.conf:{line}: ", f"[Leaves] Use={words}", f'": {USE}')
        for n in (1, 2)
        for line, words in ((2, "a"), (4, "/dev/3 b"))
    ]
    assert len(lines) == len(wanted)
    for found, parts in zip(lines, wanted, strict=True):
        assert all(part in found for part in parts), found
