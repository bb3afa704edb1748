# SPDX-License-Identifier: LGPL-2.1-or-later
"""org.sutro1: every member, its errors, and who may call it."""

import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from concurrent.futures import ThreadPoolExecutor

import pytest
from clients import heard
from fakemachine import (
    INTERFACE,
    NAME,
    PATH,
    PATIENCE_S,
    SUTROD,
    TOP,
    Bus,
    Machine,
    Sutrod,
    Systemd,
    arrive,
    happens,
    paused,
    wait_until,
)

NOBODY = 65534

# Calls a method as another user and prints the name of the error, if any.
CALLER = """
import os, sys, dbus
if os.getuid() == 0:
    os.setgid({uid}); os.setuid({uid})
bus = dbus.bus.BusConnection(os.environ["DBUS_SYSTEM_BUS_ADDRESS"])
proxy = bus.get_object("{name}", "{path}", introspect=False)
try:
    proxy.get_dbus_method(sys.argv[1], "{interface}")(*map(eval, sys.argv[2:]))
    print("ok")
except dbus.DBusException as e:
    print(e.get_dbus_name(), e.get_dbus_message())
"""


def call_as_nobody(method: str, *arguments: str) -> str:
    """The result of a call without privilege; without root, the test's own user has none."""
    program = CALLER.format(uid=NOBODY, name=NAME, path=PATH, interface=INTERFACE)
    done = subprocess.run(
        [sys.executable, "-c", program, method, *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    )
    return done.stdout.strip()


def interface_of(xml: str) -> list[str]:
    """The interface without comments and blanks."""
    tree = ET.fromstring(xml)
    found = [i for i in tree.iter("interface") if i.get("name") == INTERFACE]
    assert len(found) == 1
    return [
        f"{e.tag} {sorted(e.attrib.items())}" for e in found[0].iter() if isinstance(e.tag, str)
    ]


def test_documented_interface(sutrod: Sutrod, bus: Bus) -> None:
    """Binary, bus and Documentation/org.sutro1.xml have the same interface."""
    printed = subprocess.run(
        [SUTROD, "--bus-introspect"], capture_output=True, text=True, timeout=PATIENCE_S, check=True
    ).stdout
    documented = (TOP / "Documentation/org.sutro1.xml").read_text()
    assert interface_of(printed) == interface_of(documented)
    sutrod.start()
    proxy = bus.connection.get_object(NAME, PATH, introspect=False)
    live = proxy.Introspect(dbus_interface="org.freedesktop.DBus.Introspectable")
    assert interface_of(live) == interface_of(documented)


def test_every_member_is_documented() -> None:
    """A comment stands before each method, signal and property."""
    lines = (TOP / "Documentation/org.sutro1.xml").read_text().splitlines()
    for i, line in enumerate(lines):
        if line.strip().startswith(("<method", "<signal", "<property")):
            assert lines[i - 1].strip().endswith("-->"), line


def test_device_without_a_uevent(machine: Machine, sutrod: Sutrod) -> None:
    """A node is there before its uevent is."""
    sutrod.start()
    machine.disk("sdz", "65:144")
    machine.disk("sdy", "65:128")
    assert sutrod.call("ResolvePath", "/dev/sdz")[0] == "/dev/sdz"
    used = sutrod.call("UseDevices", ["/dev/sdz", "/dev/sdy"])
    assert {one["leaf"] for one in used} == {"/dev/sdy", "/dev/sdz"}


@pytest.mark.parametrize("devno", ["65:144", "65:160"])
def test_disk_that_was_exchanged(machine: Machine, sutrod: Sutrod, devno: str) -> None:
    """A disk goes, and another one has its name, and perhaps its number, before the uevent."""
    machine.disk("sdz", "65:144")
    machine.mount("/srv/data", "65:144", "ext4", "/dev/sdz")
    sutrod.start()
    assert sutrod.call("ResolvePath", "/srv/data")[0] == "/dev/sdz"
    machine.unplug("sdz", "65:144")
    machine.disk("sdz", devno, sectors=8, diskseq=2)
    machine.write("/proc/1/mountinfo", "")
    machine.mount("/srv/data", devno, "ext4", "/dev/sdz")
    assert sutrod.call("ResolvePath", "/srv/data")[0] == "/dev/sdz"
    known = {d["name"]: d for d in sutrod.call("ListDevices")}["sdz"]
    assert (known["devno"], known["size_bytes"]) == (devno, 4096)


@pytest.mark.parametrize(
    ("path", "error", "words"),
    [
        ("/dev/nothing", "NoSuchPath", "/dev/nothing: No such file or directory."),
        ("dev/sda", "NoSuchPath", '"dev/sda" is no absolute path, it has to begin with "/".'),
        ("", "NoSuchPath", '"" is no absolute path'),
        pytest.param("/" + 5000 * "x", "NoSuchPath", "File name too long.", id="long"),
        ("/run/file", "NoQueue", "/run/file is not on a block device with a request queue"),
        ("/dev/dm-1", "NoQueue", "/dev/dm-1 is not on a block device with a request queue"),
    ],
)
def test_bad_paths(machine: Machine, sutrod: Sutrod, path: str, error: str, words: str) -> None:
    machine.mount("/run", "0:25", "tmpfs", "tmpfs")
    machine.write("/run/file", "x")
    machine.stripe("dm-1", "254:1", "", "zero")
    sutrod.start()
    for method, arguments in (("ResolvePath", (path,)), ("UseDevices", ([path],))):
        name, message = sutrod.error(method, *arguments)
        assert (name, words in message) == (error, True), message
    if path:
        assert sutrod.error("Explain", "system.slice", path)[0] == error


def test_resolve_shows_no_files(machine: Machine, sutrod: Sutrod) -> None:
    """A user learns the device of the mount, not which files are in a closed directory."""
    machine.mount("/data", "8:48", "ext4", "/dev/sdd")
    machine.write("/data/closed/file", "")
    machine.link("/data/closed/link", "/dev/sda")
    sutrod.start()
    for name in ("file", "link", "none"):
        resolved = sutrod.call("ResolvePath", f"/data/closed/{name}")
        assert [str(word) for word in resolved[0:1]] == ["/dev/sdd"]


class Load:
    """Two cgroups that use sda 3 : 1, and one of them alone sdc, as their counters show it."""

    def __init__(self, machine: Machine, large: str, small: str) -> None:
        self.machine = machine
        self.cgroups = ((large, 3), (small, 1))
        self.alone = (large, "/system.slice", "/")
        self.seconds = 10.0
        self.serve(0)

    def serve(self, seconds: float) -> None:
        """Count what was done in some time."""
        self.seconds += seconds
        step = int(self.seconds * 100)
        for cgroup, factor in self.cgroups:
            self.machine.write(
                f"/sys/fs/cgroup{cgroup}/io.sutro.stat",
                f"8:0 time_ns={factor * step * 10**6} rbytes={factor * step * 4096} "
                "wbytes=0 rios=1 wios=0 wait_ns=0 idle_ns=0 queued=1 dequeue=0 lag_ns=-5\n",
            )
        for cgroup in self.alone:
            self.machine.write(
                f"/sys/fs/cgroup{cgroup}/io.stat",
                f"8:32 rbytes={step} wbytes=0 rios=1 wios=0 dbytes=0 dios=0\n",
            )


def test_explain_without_loop_devices(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    """Weights count on the disks below them: a host with many images sees these disks only."""
    machine.mount("/srv", "8:0", "ext4", "/dev/sda")
    machine.write("/srv/image", "")
    machine.disk("loop0", "7:0")
    machine.write("/sys/devices/virtual/block/loop0/loop/backing_file", "/srv/image\n")
    systemd.start("a.service", 300)
    sutrod.start()

    def leaves(path: str) -> list[str]:
        return [leaf["leaf"] for leaf in sutrod.call("Explain", "a.service", path)["leaves"]]

    assert "/dev/sda" in leaves("") and "/dev/loop0" not in leaves("")
    assert "/dev/loop0" in leaves("/dev/loop0")


def test_explain(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    a = systemd.start("a.service", 300, [("/dev/mapper/vg-db", 600)])
    b = systemd.start("b.service", 200)
    sutrod.clock.loads.append(Load(machine, a, b).serve)
    sutrod.start()
    # The first call waits for a second sample: it never shows a share of nothing.
    e = sutrod.call("Explain", "a.service", "/dev/mapper/vg-db")
    every = {leaf["leaf"]: leaf for leaf in sutrod.call("Explain", "a.service", "")["leaves"]}
    assert (e["unit"], e["cgroup"], e["device"]) == ("a.service", a, "/dev/dm-0")
    assert (e["weight"], e["weight_set"]) == (300, True)
    assert [(str(p), int(w)) for p, w in e["device_weights"]] == [("/dev/mapper/vg-db", 600)]
    sda, sdb = e["leaves"]
    assert (sda["leaf"], sda["devno"], sda["scheduler"]) == ("/dev/sda", "8:0", "sutro")
    assert (sda["backend"], sda["asked"]) == ("sutro", 600)
    assert sda["reason"] == (
        "IODeviceWeight=/dev/mapper/vg-db 600 of a.service, whose device is on this disk"
    )
    assert sda["file"] == str(machine.at(f"/sys/fs/cgroup{a}/io.sutro.weight"))
    assert (sda["written"], sda["read_back"]) == ("8:0 600", "8:0 600")
    assert sda["hweight"] == pytest.approx(600 / 800)
    assert sda["got"] == pytest.approx(0.75)
    assert sda["time_ns"] > 0 and sda["rbytes"] > 0
    assert (sdb["leaf"], sdb["hweight"], sdb["got"]) == ("/dev/sdb", 1, 0)
    assert set(every) == {"/dev/sda", "/dev/sdb", "/dev/sdc", "/dev/sdd"}
    assert every["/dev/sdc"]["backend"] == "bfq"
    assert every["/dev/sdc"]["got"] == 1
    assert every["/dev/sdc"]["written"] == "8:32 300"
    assert (every["/dev/sdd"]["backend"], every["/dev/sdd"]["file"]) == ("none", "")
    name, message = sutrod.error("Explain", "nothing.service", "")
    assert name == "NoSuchUnit" and message.startswith(
        'There is no unit "nothing.service" with a control group.'
    )
    assert sutrod.error("Explain", "/no/cgroup", "")[0] == "NoSuchUnit"
    assert sutrod.error("Explain", "", "")[0] == "NoSuchUnit"
    assert sutrod.error("Explain", "/../../etc", "")[0] == "NoSuchUnit"


def test_authority(bus: Bus, machine: Machine, sutrod: Sutrod) -> None:
    sutrod.start()
    bus.allow(False)
    for method, argument in (
        ("UseDevices", '["/dev/sdd"]'),
        ("ReleaseDevices", '["/dev/sdd"]'),
        ("Reload", None),
    ):
        answer = call_as_nobody(method, *([argument] if argument else []))
        assert answer.startswith("org.freedesktop.DBus.Error.AccessDenied "), answer
        assert "org.sutro1.manage-devices" in answer
    assert machine.scheduler("sdd") == "none"
    bus.allow(True)
    assert call_as_nobody("UseDevices", '["/dev/sdd"]') == "ok"
    assert machine.scheduler("sdd") == "sutro"
    # An error of the method itself comes through polkit as well.
    assert call_as_nobody("UseDevices", '["/nothing"]').startswith("org.sutro1.Error.NoSuchPath ")


def test_details_for_polkit(bus: Bus, sutrod: Sutrod) -> None:
    """Rules of administrators can permit calls about some units only."""
    sutrod.start()
    with bus.monitored("CheckAuthorization") as calls:
        arguments = ("'db.service'", "[('Weight', '300')]", "'runtime'")
        assert call_as_nobody("SetPolicy", *arguments) == "ok"
        assert call_as_nobody("UseDevices", '["/dev/sdd"]') == "ok"
        arrive(calls, 2)
    words = "Authentication is required to change I/O promises of $(unit)."
    assert [call.get_args_list()[2] for call in calls] == [
        {"method": "SetPolicy", "unit": "db.service", "polkit.message": words},
        {"method": "UseDevices"},
    ]


def test_dump_needs_authority(bus: Bus, sutrod: Sutrod) -> None:
    sutrod.start()
    bus.allow(False)
    assert "AccessDenied Not authorized for org.sutro1.dump" in call_as_nobody("Dump")
    bus.allow(True)
    assert call_as_nobody("Dump") == "ok"


def test_dump_does_not_stop_the_daemon(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    """A file whose open() never returns stands for one of very many files."""
    # On bfq the daemon itself reads the files of all siblings.
    machine.set_scheduler("sdc", "none")
    a, b = systemd.start("a.service", 200), systemd.start("b.service", 200)
    sutrod.start()
    sutrod.settle()
    workers = sutrod.children()
    endless = machine.at(f"/sys/fs/cgroup{a}/io.sutro.weight")
    endless.unlink()
    os.mkfifo(endless)
    with ThreadPoolExecutor(1) as pool:
        dump = pool.submit(call_as_nobody, "Dump")
        wait_until(lambda: sutrod.children() != workers)
        systemd.change("b.service", 300)
        sutrod.until(lambda: machine.weights(b) == ["default 300"])
        assert not dump.done()
        sutrod.elapse(20)
        assert "Timeout The state was not complete after 20 s; try again." in dump.result()
    endless.unlink()
    wait_until(lambda: sutrod.children() == workers)


def test_path_on_a_dead_file_server(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    """Neither the daemon nor, after a while, the caller waits for it."""
    a = systemd.start("a.service", 200)
    machine.mount("/srv/dead", "0:50", "nfs", "server:/export")
    machine.fault("/srv/dead/x", "hang")
    sutrod.start()
    assert sutrod.error("ResolvePath", "/srv/dead/x")[0] == "NoQueue"
    assert sutrod.error("Explain", "a.service", "/srv/dead/x")[0] == "NoQueue"
    workers = sutrod.children()
    with ThreadPoolExecutor(1) as pool:
        use = pool.submit(call_as_nobody, "UseDevices", '["/srv/dead/x"]')
        wait_until(lambda: sutrod.children() != workers)
        systemd.change("a.service", 300)
        sutrod.until(lambda: machine.weights(a) == ["default 300"], 1)
        assert not use.done()
        sutrod.elapse(5)
        assert "Timeout /srv/dead/x: the path could not be looked up in 5 s." in use.result()


def test_links_of_an_authorized_caller_are_followed(machine: Machine, sutrod: Sutrod) -> None:
    machine.mount("/", "8:32", "ext4", "/dev/sdc")
    machine.mount("/data", "8:48", "ext4", "/dev/sdd")
    machine.link("/srv/link", "../data")
    sutrod.start()
    assert [r["leaf"] for r in sutrod.call("UseDevices", ["/srv/link"])] == ["/dev/sdd"]
    assert sutrod.error("UseDevices", ["/srv/none"])[0] == "NoSuchPath"


def test_without_polkit(bus: Bus, machine: Machine, sutrod: Sutrod) -> None:
    """The error names what is missing."""
    bus.polkit.terminate()
    bus.polkit.process.wait()
    sutrod.start()
    assert call_as_nobody("UseDevices", '["/dev/sdd"]') == (
        "org.freedesktop.DBus.Error.AccessDenied Not authorized for org.sutro1.manage-devices: "
        "polkitd, which permits it to other users than root, does not run (package polkitd). "
        "Root always is."
    )
    assert machine.scheduler("sdd") == "none"


# Calls Reload as another user, perhaps one with a dialog for passwords, and prints the error.
INTERACTIVE_CALLER = """
import os, dbus
if os.getuid() == 0:
    os.setgid({uid}); os.setuid({uid})
bus = dbus.bus.BusConnection(os.environ["DBUS_SYSTEM_BUS_ADDRESS"])
call = dbus.lowlevel.MethodCallMessage("{name}", "{path}", "{interface}", "Reload")
call.set_allow_interactive_authorization({interactive})
try:
    bus.send_message_with_reply_and_block(call, {patience_s})
    print("ok")
except dbus.DBusException as e:
    print(e.get_dbus_name())
"""


@pytest.mark.parametrize(("interactive", "limit_s"), [(True, 300), (False, 25)])
@pytest.mark.parametrize("in_time", [True, False])
def test_time_for_a_password(
    bus: Bus, sutrod: Sutrod, interactive: bool, limit_s: int, in_time: bool
) -> None:
    """The daemon waits for polkit while the user types the password."""
    sutrod.start()
    names = {"uid": NOBODY, "name": NAME, "path": PATH, "interface": INTERFACE}
    program = INTERACTIVE_CALLER.format(**names, interactive=interactive, patience_s=PATIENCE_S)
    with bus.monitored("CheckAuthorization") as calls, ThreadPoolExecutor(1) as pool:
        command = [sys.executable, "-c", program]
        with paused(bus.polkit.process):
            caller = pool.submit(subprocess.check_output, command, text=True, timeout=PATIENCE_S)
            arrive(calls, 1)
            sutrod.elapse(limit_s - 1)
            assert not caller.done()
            if not in_time:
                sutrod.elapse(2)
                assert caller.result().strip() == "org.freedesktop.DBus.Error.AccessDenied"
        if in_time:
            assert caller.result().strip() == "ok"
        assert calls[0].get_args_list()[3] == int(interactive)


def test_reading_is_open(sutrod: Sutrod) -> None:
    sutrod.start()
    for method, arguments in (
        ("ListDevices", []),
        ("ListUnits", []),
        ("ResolvePath", ["'/dev/sda'"]),
        ("Explain", ["'system.slice'", "''"]),
    ):
        assert sutrod.over_time(call_as_nobody, method, *arguments) == "ok"


def test_weight_changed(machine: Machine, systemd: Systemd, sutrod: Sutrod, bus: Bus) -> None:
    a = systemd.start("a.service", 200, [("/dev/sda", 300)])
    machine.write(f"/sys/fs/cgroup{a}/io.bfq.weight", "default 109\n")
    which = "a.service, which names this disk"
    with heard(bus, "WeightChanged") as changes:
        sutrod.start()
        happens(lambda: len(changes) >= 3)
    assert sorted(changes) == [
        (a, "", 100, 200, "IOWeight=200 of a.service"),
        (a, "/dev/sda", 100, 300, f"IODeviceWeight=/dev/sda 300 of {which}"),
        (a, "/dev/sdc", 109, 200, "IOWeight=200 of a.service"),
    ]


def test_dump(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    a = systemd.start("a.service", 200, [("/dev/mapper/vg-db", 300), ("/nowhere", 5)])
    sutrod.start()
    text = sutrod.call("Dump")
    for words in (
        f"sutrod {sutrod.property('Version')}\n",
        "sda            8:0    disk         1073741824 bytes leaf, scheduler sutro\n",
        "on sda sdb /dev/mapper/vg-db /dev/vg/db\n",
        f"  {a}  unit, weight 200\n",
        "    on /dev/mapper/vg-db 300 (/dev/dm-0)\n",
        "    on /nowhere 5 (leads nowhere)\n",
        "sda: sutro, weight 300 (IODeviceWeight=/dev/mapper/vg-db 300 of a.service, whose device "
        'is on this disk), line "8:0 300", read back "8:0 300"\n',
    ):
        assert words in text, words


def test_names_of_any_bytes(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    """A user may give delegated cgroups such names; a reply with such bytes ends the connection."""
    odd = "/system.slice/" + os.fsdecode(b"\xff\x1b[2J")
    machine.cgroup(odd)
    sutrod.start()
    assert "/system.slice/??[2J" in sutrod.call("Dump")

    def read(_seconds: float) -> None:
        line = f"8:32 rbytes={sutrod.clock.now_ns} wbytes=0 rios=1 wios=0\n"
        machine.write(f"/sys/fs/cgroup{odd}/io.stat", line)

    sutrod.clock.loads.append(read)
    assert "/system.slice/??[2J" in [row["cgroup"] for row in sutrod.call("ListUsage")]


def test_device_and_policy_file_of_any_bytes(machine: Machine, sutrod: Sutrod) -> None:
    """Root may give them such names; devices and mistakes are shown all the same."""
    odd = os.fsdecode(b"\xff\x1b[2J")
    machine.mapped("dm-1", "254:1", "sdb", odd, "LVM-" + 64 * "b")
    machine.write(f"/etc/sutro/policy.d/{odd}.policy", "[X-Sutro]\nWeight=no\n")
    sutrod.start()
    assert {d["name"]: list(d["aliases"]) for d in sutrod.call("ListDevices")}["dm-1"] == []
    assert "dm-1 " in sutrod.call("Dump")
    ((file, is_good),) = sutrod.property("MistakenPolicyFiles")
    assert (file.endswith("/etc/sutro/policy.d/??[2J.policy"), bool(is_good)) == (True, False)
    assert file in sutrod.property("PolicyErrors")[0]


def test_cut_within_a_character(sutrod: Sutrod) -> None:
    """An error that quotes a name, cut to 255 bytes, is sent all the same."""
    sutrod.start()
    name, message = sutrod.error("GetPolicy", 254 * "a" + "ä")
    assert (name, "no name of a unit" in message) == ("BadPolicy", True)
    assert sutrod.error("GetPolicy", "\x1b[2J")[1].startswith('"?[2J"')


def test_bad_start(machine: Machine, systemd: Systemd, sutrod: Sutrod, bus: Bus) -> None:
    address = {"DBUS_SYSTEM_BUS_ADDRESS": "unix:path=/nowhere"}
    assert sutrod.spawn(**address).wait(PATIENCE_S) == 1
    assert "Cannot connect to the system bus: No such file or directory" in sutrod.log()
    sutrod.start()
    first = sutrod.process
    assert sutrod.spawn().wait(PATIENCE_S) == 1
    assert "Is another sutrod running?" in sutrod.log()
    sutrod.process = first


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["--version"], 0, "sutrod 0.1.0"),
        (["--help"], 0, "--dry-run"),
        (["--nonsense"], 1, "nonsense'\nSee sutrod --help."),
        (["now"], 1, 'sutrod takes no argument "now"; see --help.'),
        (["--check"], 1, "--check needs the names of"),
        (["--check", "/does/not/exist.policy"], 1, "/does/not/exist.policy: no such file"),
        (["--root=/does/not/exist"], 1, "--root=/does/not/exist: No such file or directory"),
    ],
)
def test_command_line(arguments: list[str], status: int, words: str) -> None:
    done = subprocess.run([SUTROD, *arguments], capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == status
    assert words in done.stdout + done.stderr
