# SPDX-License-Identifier: LGPL-2.1-or-later
"""Stacks of devices: their kinds, their leaves, their names, and the paths that lead to them."""

from pathlib import Path

import dbus
import pytest
from fakemachine import Machine, Sutrod, Systemd
from plant import set_policy

# Layers of two devices, each of which stands on both of the layer below.
LAYERS = 24
BLOCK = "/sys/devices/virtual/block"
LVM = "LVM-" + 32 * "a" + 32 * "b"
# Device-mapper devices: slaves, name, uuid, and the kind and leaves that follow.
MAPPED = [
    ("sda1", "vg-lin", LVM, "linear", "sda"),
    ("sda1 sdb1", "vg-st", LVM, "striped", "sda sdb"),
    ("sda1 sdb1", "vg-span", LVM, "linear", "sda sdb"),
    ("md127", "luks", "CRYPT-LUKS2-x-luks", "crypt", "sda sdb"),
    ("sda1", "vg-pool_tdata", LVM + "-tdata", "linear", "sda"),
    ("dm-4 sdb1", "vg-pool-tpool", LVM + "-tpool", "thin-pool", "sda sdb"),
    ("dm-5", "vg-thin", LVM, "thin", "sda sdb"),
    ("sda1", "vg-m_mimage_0", LVM, "linear", "sda"),
    ("dm-7", "vg-m", LVM, "mirror", "sda"),
    ("sda1", "vg-c_corig", LVM + "-real", "linear", "sda"),
    ("dm-9 sdb1", "vg-c", LVM, "cache", "sda sdb"),
    ("sda1", "vg-snap-cow", LVM + "-cow", "linear", "sda"),
    ("dm-11 dm-0", "vg-snap", LVM, "snapshot", "sda"),
    ("sda sdb", "mpatha", "mpath-3600", "multipath", "dm-13"),
    ("", "zero", "", "unknown", ""),
    ("sda1", "my--vg-my--lv", LVM, "linear", "sda"),
    # A slave that is missing.
    ("sda sdz", "x", "", "linear", "sda"),
]
ARRAYS = ["linear", "raid0", "raid1", "raid10", "raid4", "raid5", "raid6"]
LOOPS = [
    ("/srv/disk.img", "loop0 sda sdb"),
    ("/run/ram.img", "loop1"),
    ("/srv/gone.img (deleted)", "loop2 sda sdb"),
    ("/dev/sdb1", "loop3 sdb"),
    # By their paths each file is on the other device: the edge that closes the cycle is left out.
    ("/dev/loop5", "loop4 loop5"),
    ("/dev/loop4", "loop5"),
]
# A path, and the device or the error that it leads to.
PATHS = {
    "/dev/sda": "sda",
    "/dev/mapper/vg-st": "dm-1",
    "/dev/vg/st": "dm-1",
    "/dev//vg/../sda1": "sda1",
    "/srv/": "dm-1",
    "/srv/www/index.html": "dm-1",
    "/srvother": "sda2",
    "/": "sda2",
    # btrfs: an anonymous number, and the source has the name of the device.
    "/data/sub vol": "dm-3",
    "/data": "sda2",
    # The last mount hides those before.
    "/hidden": "sdc",
    "/run/ram.img": "NoQueue",
    "/net": "NoQueue",
    "/broken": "NoQueue",
    # Outside of /dev no file is looked up: links are not followed, and no user can probe for files.
    "/nowhere": "sda2",
    "/srv/secret/../../data/sub vol/x": "dm-3",
    "/a": "sda2",
    "/out": "sda2",
    "/dev/sda/x": "NoSuchPath",
    "/dev/round": "NoSuchPath",
    # Users may make links in file systems below /dev, and a link may lead out of /dev.
    "/dev/shm/link": "NoQueue",
    "/dev/away": "NoQueue",
}


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine with all kinds of stacks."""
    m = Machine(tmp_path.resolve() / "machine")
    for n, (name, scheduler) in enumerate([("sda", "bfq"), ("sdb", "sutro"), ("sdc", "none")]):
        m.disk(name, f"8:{16 * n}", scheduler, diskseq=7)
    m.disk("cciss!c0d0", "104:0")
    for disk, name, devno in (("sda", "sda1", 1), ("sda", "sda2", 2), ("sdb", "sdb1", 17)):
        m.partition(disk, name, f"8:{devno}")
    m.raid("md127", "9:127", "sda2 sdb1", "raid1")
    for n, level in enumerate(ARRAYS):
        m.raid(f"md{n}", f"9:{n}", "sda sdb sdc", level)
    for n, (slaves, label, uuid, _, _) in enumerate(MAPPED):
        m.mapped(f"dm-{n}", f"254:{n}", slaves, label, uuid)
    m.write(f"{BLOCK}/dm-1/queue/optimal_io_size", "131072\n")
    m.at(f"{BLOCK}/dm-13/mq").mkdir()
    m.disk("bcache0", "251:0", slaves="sda1 sdc")
    m.write(f"{BLOCK}/bcache0/bcache/x", "\n")
    for n, (file, _) in enumerate(LOOPS):
        m.disk(f"loop{n}", f"7:{n}")
        m.write(f"{BLOCK}/loop{n}/loop/backing_file", file + "\n")
    m.disk("loop9", "7:9", sectors=0)
    m.write(f"{BLOCK}/loop9/loop/backing_file", "\n")
    # Devices that vanish while sysfs is read.
    m.link("/sys/class/block/sdq", "../../devices/gone")
    m.write("/sys/class/block/bad/dev", "garbage\n")
    for file in ("/srv/disk.img", "/run/ram.img", "/srv/www/index.html", "/srvother"):
        m.write(file, "x")
    for path, target in (
        ("/dev/vg/st", "../dm-1"),
        ("/dev/my-vg/my-lv", "../dm-15"),
        ("/a", "b"),
        ("/b", "a"),
        ("/out", "/etc"),
        ("/dev/round", "round"),
        ("/dev/away", "/srv/disk.img"),
        ("/dev/shm/link", "../sda"),
    ):
        m.link(path, target)
    for point, devno, kind, source in (
        ("/", "8:2", "ext4", "/dev/sda2"),
        ("/run", "0:25", "tmpfs", "tmpfs"),
        ("/srv", "254:1", "ext4", "/dev/mapper/vg-st"),
        ("/data/sub vol", "0:45", "btrfs", "/dev/mapper/luks"),
        ("/hidden", "254:1", "ext4", "/dev/mapper/vg-st"),
        ("/hidden", "8:32", "ext4", "/dev/sdc"),
        ("/net", "0:50", "nfs", "server:/export"),
        ("/broken", "0:51", "btrfs", "/dev/none"),
        ("/dev", "0:6", "devtmpfs", "udev"),
        ("/dev/shm", "0:26", "tmpfs", "tmpfs"),
    ):
        m.mount(point, devno, kind, source)
    mounts = m.at("/proc/1/mountinfo")
    mounts.write_text(mounts.read_text().replace("sub vol", "sub\\040vol"))
    return m


def test_topology(machine: Machine, sutrod: Sutrod) -> None:
    sutrod.start()
    devices = {str(d["name"]): d for d in sutrod.call("ListDevices")}
    wanted = {f"dm-{n}": (kind, leaves) for n, (*_, kind, leaves) in enumerate(MAPPED)}
    wanted |= {f"md{n}": (level, "sda sdb sdc") for n, level in enumerate(ARRAYS)}
    wanted |= {f"loop{n}": ("loop", leaves) for n, (_, leaves) in enumerate(LOOPS)}
    wanted |= {name: ("disk", name) for name in ("sda", "sdb", "sdc")}
    wanted["cciss!c0d0"] = ("disk", "")
    wanted |= {"sda1": ("partition", "sda"), "sda2": ("partition", "sda")}
    wanted |= {"sdb1": ("partition", "sdb"), "md127": ("raid1", "sda sdb")}
    wanted |= {"bcache0": ("bcache", "sda sdc")}
    # Neither a loop device without a file nor one that has gone.
    assert set(devices) == set(wanted)
    for name, (kind, leaves) in wanted.items():
        assert devices[name]["kind"] == kind, name
        if leaves:
            found = sutrod.call("ResolvePath", str(devices[name]["node"]))[1]
            assert sorted(leaf.removeprefix("/dev/") for leaf in found) == leaves.split(), name
    assert devices["cciss!c0d0"]["node"] == "/dev/cciss/c0d0"
    assert set(devices["dm-15"]["aliases"]) == {"/dev/mapper/my--vg-my--lv", "/dev/my-vg/my-lv"}
    # A layer inside a volume has no /dev/VG/LV.
    assert list(devices["dm-5"]["aliases"]) == ["/dev/mapper/vg-pool-tpool"]
    assert [devices[name]["leaf"] for name in ("sda", "sda1", "dm-0")] == [1, 0, 0]
    assert [devices[name]["scheduler"] for name in ("sda", "sdb")] == ["bfq", "sutro"]
    assert devices["sda"]["size_bytes"] == 2**30


def test_native_nvme_multipath(tmp_path: Path, sutrod: Sutrod, systemd: Systemd) -> None:
    """The head stands on disks without a node or a number: their queues have the scheduler."""
    machine = sutrod.machine = systemd.machine = Machine(tmp_path.resolve() / "other")
    for cgroup in ("/init.scope", "/system.slice"):
        machine.cgroup(cgroup)
    machine.disk("sda", "8:0", "sutro")
    machine.disk("nvme0n1", "259:1")
    machine.at(f"{BLOCK}/nvme0n1/queue/scheduler").unlink()
    machine.partition("nvme0n1", "nvme0n1p1", "259:2")
    for path in ("nvme0c0n1", "nvme0c3n1"):
        for file, text in (("size", "2097152"), ("hidden", "1"), ("diskseq", "9")):
            machine.write(f"{BLOCK}/{path}/{file}", text + "\n")
        machine.set_scheduler(path, "none", f"{BLOCK}/{path}")
        machine.link(f"/sys/class/block/{path}", f"../../devices/virtual/block/{path}")
    # A device without number and "hidden" belongs to no topology.
    machine.write("/sys/class/block/odd/size", "8\n")
    machine.mount("/proc", "0:22", "proc", "proc")
    a = systemd.start("a.service", 300, [("/dev/nvme0n1", 700)])
    sutrod.start()
    device, leaves, _ = sutrod.call("ResolvePath", "/dev/nvme0n1p1")
    assert (device, leaves) == ("/dev/nvme0n1p1", ["/dev/nvme0c0n1", "/dev/nvme0c3n1"])
    kinds = {d["name"]: (d["kind"], d["leaf"]) for d in sutrod.call("ListDevices")}
    assert kinds["nvme0n1"] == ("multipath", False)
    assert kinds["nvme0c3n1"] == ("disk", True)
    # Calls about other paths do not read all devices again.
    machine.write(f"{BLOCK}/nvme0n1/size", "8\n")
    assert sutrod.error("ResolvePath", "/proc")[0] == "NoQueue"
    sizes = {d["name"]: d["size_bytes"] for d in sutrod.call("ListDevices")}
    assert sizes["nvme0n1"] == 1 << 30
    # The default line holds there; no line can name a disk without a number.
    sutrod.call("UseDevices", ["/dev/nvme0n1"])
    sutrod.until(lambda: machine.scheduler("nvme0c3n1") == "sutro")
    sutrod.until(lambda: machine.weights(a) == ["default 300"])
    (leaf, _) = sutrod.call("Explain", "a.service", "/dev/nvme0n1")["leaves"]
    assert (leaf["asked"], leaf["written"]) == (700, "default 300")
    assert leaf["error"].startswith("a path of NVMe multipath can have no weight of its own")
    # Nor a floor or a target: the default line is that of all disks.
    head = "/dev/nvme0n1 "
    set_policy(sutrod, "a.service", ReadBandwidthMin=head + "1M", LatencyTarget=head + "5ms")
    for b, settings in (
        ("b.service", {"ReadBandwidthMin": "/dev/nvme0n1p1 1M", "ReadBandwidthMax": head + "5M"}),
        ("any.service", {"ReadBandwidthMin": "any 10%", "LatencyTarget": "any 5ms"}),
    ):
        cgroup = systemd.start(b, 100)
        machine.write(f"/sys/fs/cgroup{cgroup}/io.stat", "259:1 rbytes=4096 wbytes=0\n")
        set_policy(sutrod, b, **settings)
    sutrod.elapse(5)
    seen = {(p["unit"], p["key"]): p for p in sutrod.call("ListPromises")}
    for key in (
        ("a.service", "ReadBandwidthMin"),
        ("a.service", "LatencyTarget"),
        ("b.service", "ReadBandwidthMin"),
    ):
        assert seen[key]["state"] == "unweighted", key
        assert "/dev/nvme0c0n1 is a path of NVMe multipath" in seen[key]["cause"]
    assert seen["any.service", "ReadBandwidthMin"]["state"] == "idle"
    assert seen["any.service", "LatencyTarget"]["state"] == "idle"
    states = {(p[0], p[2]): p[5] for p in sutrod.call("ListPromiseStates")}
    assert states == {key: p["state"] for key, p in seen.items()}
    fit, devices = sutrod.call("CheckPolicies", dbus.Array([], signature="(ss)"))
    assert fit == "unknown"
    reasons = {d["device"]: d["reason"] for d in devices}
    assert reasons["/dev/nvme0n1"] == seen["a.service", "ReadBandwidthMin"]["cause"]
    assert machine.weights(a) == ["default 300"]
    assert machine.weights(a, "io.sutro.latency") == ["default max"]
    # A floor on any volume holds on the other disks of the unit, and names those it leaves out.
    machine.write(
        f"/sys/fs/cgroup{cgroup}/io.stat",
        "259:1 rbytes=4096 wbytes=0\n8:0 rbytes=4096 wbytes=0\n",
    )
    sutrod.elapse(3)
    rows = [p for p in sutrod.call("ListPromises") if p["unit"] == "any.service"]
    assert [p["device"] for p in rows] == ["", "", "/dev/sda", "/dev/sda"]
    left_out = "no floor or latency target holds on /dev/nvme0n1, which the unit uses"
    assert [p["cause"].startswith(left_out) for p in rows] == [True, True, False, False]


def test_layers_that_share_devices(tmp_path: Path, sutrod: Sutrod, systemd: Systemd) -> None:
    """As in fuzz-topology/deep: with each layer the number of ways down doubles, 2^24 here."""
    machine = sutrod.machine = systemd.machine = Machine(tmp_path.resolve() / "other")
    for cgroup in ("/init.scope", "/system.slice"):
        machine.cgroup(cgroup)
    slaves = ""
    for layer in range(LAYERS + 1):
        names = [f"{side}{layer}" for side in "ab"]
        for minor, name in enumerate(names):
            devno = f"{10 + layer}:{minor}"
            machine.disk(name, devno, slaves=slaves) if slaves else machine.disk(name, devno, "bfq")
        slaves = " ".join(names)
    machine.mount("/proc", "0:22", "proc", "proc")
    a = systemd.start("a.service")
    sutrod.start()
    device, leaves, steps = sutrod.call("ResolvePath", f"/dev/a{LAYERS}")
    assert (device, leaves) == (f"/dev/a{LAYERS}", ["/dev/a0", "/dev/b0"])
    assert len(steps) == 2 * LAYERS + 1
    assert [step["level"] for step in steps if step["device"] == "/dev/b0"] == [LAYERS]

    # The disk is used, and no device above it is.
    def read(_seconds: float) -> None:
        rbytes = sutrod.clock.now_ns // 1000
        text = f"10:0 rbytes={rbytes} wbytes=0 rios={rbytes // 4096} wios=0\n"
        machine.write(f"/sys/fs/cgroup{a}/io.stat", text)

    sutrod.clock.loads.append(read)
    assert [row["device"] for row in sutrod.call("ListUsage")] == ["/dev/a0"]


def test_paths(machine: Machine, sutrod: Sutrod) -> None:
    sutrod.start()
    for path, target in PATHS.items():
        if target.startswith("No"):
            assert sutrod.error("ResolvePath", path)[0] == target
        else:
            assert sutrod.call("ResolvePath", path)[0] == f"/dev/{target}", path


def test_mounts_of_users(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    """Users make long lines of mountinfo by FUSE; their number and length is no error."""
    for cgroup in ("/init.scope", "/system.slice"):
        machine.cgroup(cgroup)
    mounts = machine.at("/proc/1/mountinfo")
    line = "36 35 0:99 / /home/me/{} rw - fuse {} rw\n"
    long = mounts.read_text() + "".join(
        line.format(n, "\\040" * size) for n in range(400) for size in (10, 4095, 5000)
    )
    assert len(long) > 8 << 20
    mounts.write_text(long)
    a = systemd.start("a.service", 300, [("/srv/www", 700)])
    sutrod.start()
    for path, target in (("/srv/www", "dm-1"), ("/data/sub vol", "dm-3"), ("/hidden", "sdc")):
        assert sutrod.call("ResolvePath", path)[0] == f"/dev/{target}"
    assert sutrod.error("ResolvePath", "/home/me/399/x")[0] == "NoQueue"
    set_policy(sutrod, "a.service", ReadBandwidthMax="/srv 5M")
    limit = "254:1 rbps=5000000 wbps=max riops=max wiops=max"
    sutrod.until(lambda: machine.weights(a, "io.max") == [limit])
    assert machine.weights(a) == ["8:16 700", "default 300"]
    # While the file cannot be read, paths lead where they led.
    mounts.unlink()
    mounts.mkdir()
    systemd.change("a.service", 200, [("/srv/www", 600)])
    sutrod.call("ReloadPolicies")
    sutrod.until(lambda: machine.weights(a) == ["8:16 600", "default 200"])
    assert machine.weights(a, "io.max") == [limit]
    assert sutrod.call("ResolvePath", "/srv/www")[0] == "/dev/dm-1"
    mounts.rmdir()
    mounts.write_text("36 35 8:32 / /srv rw - ext4 /dev/sdc rw\n")
    assert sutrod.call("ResolvePath", "/srv/www")[0] == "/dev/sdc"
