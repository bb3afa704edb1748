# SPDX-License-Identifier: LGPL-2.1-or-later
"""The daemon with a real systemd: the settings of an administrator reach the leaves.

tests/daemon/test_daemon.py, test_leaves.py and test_bus.py have further tests on a fake machine,
and test_policies.py has the unit file with a drop-in.
"""

import os
import re
import subprocess
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from rig import bus, scheduler, sutrod
from rig.cgroup import Subtree
from rig.modeldisk import ModelDisk
from rig.shell import run, wait_for
from rig.unit import CGROUP_ROOT, PREFIX

SUTRO = "io.sutro.weight"
BFQ = "io.bfq.weight"

# From a change in systemd to the cgroup file: milliseconds, unless the host of the guest is busy.
SOON_S = 60.0

STRIPE = {"kind": "striped", "name": "str", "over": ["ssd0", "ssd1"]}


def weights(folder: Path, file: str = SUTRO) -> dict[str, int]:
    """A weight file as a dictionary; empty if the cgroup has gone."""
    try:
        lines = (folder / file).read_text().splitlines()
    except FileNotFoundError:
        return {}
    return {key: int(value) for key, value in (line.split() for line in lines)}


def becomes(folder: Path, wanted: dict[str, int], file: str = SUTRO) -> None:
    """The weight file has these contents soon, and still a moment later."""
    wait_for(lambda: weights(folder, file) == wanted, f"{folder}: {wanted}", SOON_S)
    time.sleep(0.3)
    assert weights(folder, file) == wanted


@pytest.fixture
def stripe(disk, stack, daemon: None):
    """An LVM stripe over two disks that sutro uses."""
    made = stack([disk("ssd", f"ssd{n}") for n in range(2)], STRIPE)
    bus.use(made.top)
    return made


def number(name: str) -> str:
    """MAJ:MIN of a disk."""
    return (Path("/sys/block") / name / "dev").read_text().strip()


# IOWeight=


@pytest.mark.first
def test_services(leaf: ModelDisk, units) -> None:
    """200 is 200."""
    started = {weight: units(f"svc{weight}", weight=weight) for weight in (1, 99, 200, 666, 10000)}
    for weight, unit in started.items():
        becomes(unit.folder, {"default": weight})


@pytest.mark.first
def test_slice(leaf: ModelDisk, units) -> None:
    """A slice has its weight, and its service its own."""
    unit = units("svc", weight=300, parent="rig-outer.slice")
    run("systemctl", "set-property", "--runtime", "rig-outer.slice", "IOWeight=700")
    becomes(unit.folder.parent, {"default": 700})
    becomes(unit.folder, {"default": 300})


def test_scope(leaf: ModelDisk) -> None:
    """A scope, made by a process for itself."""
    name = f"{PREFIX}scope.scope"
    words = ["systemd-run", "--quiet", "--scope", f"--unit={name}", "-p", "IOWeight=450"]
    process = subprocess.Popen([*words, "sleep", "60"])
    try:
        becomes(CGROUP_ROOT / "system.slice" / name, {"default": 450})
    finally:
        run("systemctl", "stop", name)
        process.wait(10)


@pytest.mark.first
def test_changed_at_run_time(leaf: ModelDisk, units) -> None:
    """set-property, and back to nothing."""
    # systemd removes the files when no unit in the slice has a weight any more.
    units("other", weight=150)
    unit = units("svc", weight=200)
    becomes(unit.folder, {"default": 200})
    unit.set(IOWeight=250)
    becomes(unit.folder, {"default": 250})
    unit.set(IOWeight="")
    becomes(unit.folder, {"default": 100})


def test_delegated_tree(leaf: ModelDisk) -> None:
    """Cgroups of a container manager: their io.weight counts, at each level."""
    with Subtree("containers", weight=150) as tree:
        inner = tree.child("one")
        innermost = inner.child("deep")
        inner.write("io.weight", "default 250")
        innermost.write("io.weight", "default 33")
        becomes(tree.folder, {"default": 150})
        becomes(inner.folder, {"default": 250})
        becomes(innermost.folder, {"default": 33})
        inner.write("io.weight", "default 275")
        becomes(inner.folder, {"default": 275})


# IODeviceWeight=


@pytest.mark.first
def test_device_weight_on_stack(stripe, units) -> None:
    """A weight on a volume becomes a weight on each of its leaves."""
    unit = units("svc", device_weights={stripe.top: 300})
    becomes(unit.folder, {"default": 100, number("ssd0"): 300, number("ssd1"): 300})
    unit.set(IODeviceWeight=f"{stripe.top} 350")
    becomes(unit.folder, {"default": 100, number("ssd0"): 350, number("ssd1"): 350})


# bfq


def test_bfq_ratio(disk, daemon: None, units) -> None:
    """On a bfq leaf the weights keep the configured ratio, unlike systemd's own numbers."""
    one = disk("ssd", "ssd0", "bfq")
    heavy = units("heavy", weight=2000)
    light = units("light", weight=500)

    def is_four_to_one() -> bool:
        got = [weights(unit.folder, BFQ).get(one.devno, 0) for unit in (heavy, light)]
        return min(got) > 0 and max(got) <= 1000 and got[0] == 4 * got[1]

    wait_for(is_four_to_one, "bfq weights 4:1", SOON_S)
    run("systemctl", "stop", "sutrod")
    assert one.devno not in weights(heavy.folder, BFQ)
    assert one.devno not in weights(light.folder, BFQ)


# stop, restart, kill, things that vanish


@pytest.mark.first
def test_kill(stripe, units) -> None:
    """kill -9: weights stay, changes made meanwhile are seen by the next one, stop restores."""
    unit = units("svc", weight=200, device_weights={stripe.top: 300})
    wanted = {"default": 200, number("ssd0"): 300, number("ssd1"): 300}
    becomes(unit.folder, wanted)
    for weight in (210, 220, 230):
        old = sutrod.main_pid()
        sutrod.kill()
        assert weights(unit.folder)[number("ssd0")] == 300
        unit.set(IOWeight=weight)
        sutrod.comes_back(old)
        becomes(unit.folder, {**wanted, "default": weight})
    assert sorted(bus.get("ManagedLeaves")) == ["/dev/ssd0", "/dev/ssd1"]
    run("systemctl", "stop", "sutrod")
    assert weights(unit.folder) == {"default": 100}


@pytest.mark.first
def test_leaf_vanishes_and_comes_back(disk, daemon: None, units) -> None:
    """An unplugged leaf is forgotten, another one goes on; a leaf that comes gets its weights."""
    disks = [disk("ssd", f"ssd{n}") for n in range(2)]
    bus.use(*[one.node for one in disks])
    gone, stays = disks[0].devno, disks[1].devno
    unit = units("svc", weight=200, device_weights={"/dev/ssd0": 300, "/dev/ssd1": 400})
    becomes(unit.folder, {"default": 200, gone: 300, stays: 400})
    disks[0].unplug()
    becomes(unit.folder, {"default": 200, stays: 400})
    wait_for(lambda: bus.get("ManagedLeaves") == ["/dev/ssd1"], "one managed leaf", SOON_S)
    disks[0].set(online=1)
    wait_for(lambda: os.path.exists(disks[0].node), disks[0].node)
    bus.use(disks[0].node)
    becomes(unit.folder, {"default": 200, disks[0].devno: 300, stays: 400})


def test_elevator_changed_by_hand(leaf: ModelDisk, units) -> None:
    """Someone selects another elevator and then sutro again: the weights are there again."""
    unit = units("svc", weight=200, device_weights={leaf.node: 300})
    becomes(unit.folder, {"default": 200, leaf.devno: 300})
    scheduler.select(leaf.name, "none")
    scheduler.select(leaf.name, "sutro")
    becomes(unit.folder, {"default": 200, leaf.devno: 300})


def test_stack_changes_under_a_unit(disk, stack, daemon: None, units) -> None:
    """A linear volume is extended to a second disk: the statement reaches the new leaf as well."""
    disks = [disk("ssd", f"ssd{n}") for n in range(2)]
    sectors = 64 * 2048
    table = f"0 {sectors} linear {{0}} 0"
    made = stack(disks, {"kind": "dm", "name": "grow", "over": ["ssd0"], "table": table})
    bus.use(*[one.node for one in disks])
    unit = units("svc", device_weights={made.top: 300})
    becomes(unit.folder, {"default": 100, disks[0].devno: 300})
    longer = f"{table.format(disks[0].node)}\n{sectors} {sectors} linear {disks[1].node} 0"
    run("dmsetup", "load", "grow", "--table", longer)
    run("dmsetup", "resume", "grow")
    run("udevadm", "settle")
    becomes(unit.folder, {"default": 100, disks[0].devno: 300, disks[1].devno: 300})


def test_service_is_hardened(daemon: None) -> None:
    """systemd's own judgement of the unit; the network namespace is its own, /sys the machine's."""
    text = run("systemd-analyze", "security", "--no-pager", "sutrod.service")
    level = re.search(r"exposure level for sutrod.service: ([0-9.]+)", text)
    assert level and float(level.group(1)) <= 1.5, text[-300:]
    pid = run("systemctl", "show", "--property=MainPID", "--value", "sutrod.service").strip()
    own, other = (Path(f"/proc/{one}/ns/net").readlink() for one in (pid, "self"))
    assert own != other
    own, other = (os.stat(f"/proc/{one}/root/sys/block").st_dev for one in (pid, "self"))
    assert own == other


def test_mount_below_tmp(leaf: ModelDisk, units) -> None:
    """The service has a /tmp of its own, and finds mounts below that of the machine."""
    run("mkfs.ext4", "-q", leaf.node)
    with TemporaryDirectory(dir="/tmp") as folder:
        run("mount", leaf.node, folder)
        try:
            unit = units("svc", device_weights={folder: 300})
            becomes(unit.folder, {"default": 100, leaf.devno: 300})
        finally:
            run("umount", folder)


def test_mount_after_the_setting(leaf: ModelDisk, units) -> None:
    """A mount makes no uevent; the setting is in force before the comparison of each minute."""
    run("mkfs.ext4", "-q", leaf.node)
    with TemporaryDirectory(dir="/tmp") as folder:
        unit = units("svc", device_weights={folder: 300})
        becomes(unit.folder, {"default": 100})
        run("mount", leaf.node, folder)
        wanted = {"default": 100, leaf.devno: 300}
        try:
            wait_for(lambda: weights(unit.folder) == wanted, f"{unit.folder}: {wanted}", 20)
        finally:
            run("umount", folder)


def test_no_event_starts_the_daemon(leaf: ModelDisk, daemon: None) -> None:
    """The socket for events of udev ends with the service, and starts again with it."""
    units = ("sutrod.service", "sutrod-uevents.socket")
    wanted = ["inactive", "inactive"]

    def states() -> list[str]:
        return [run("systemctl", "show", "-P", "ActiveState", one).strip() for one in units]

    assert states() == ["active", "active"]
    run("systemctl", "stop", "sutrod.service")
    wait_for(lambda: states() == wanted, "the service and its socket to end", SOON_S)
    run("udevadm", "trigger", "--settle", "--action=change", f"/sys/block/{leaf.name}")
    assert states() == wanted
    run("systemctl", "start", "sutrod.service")
    assert states() == ["active", "active"]
    run("systemctl", "kill", "--signal=KILL", "sutrod.service")
    wait_for(lambda: states() == ["active", "active"], "the daemon after a crash", SOON_S)
