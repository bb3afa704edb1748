# SPDX-License-Identifier: LGPL-2.1-or-later
"""The daemon with a real systemd: what an administrator states is what the leaves get."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path

import pytest
from rig import bus, scheduler
from rig.cgroup import Group, Subtree
from rig.modeldisk import ModelDisk
from rig.shell import run, wait_for
from rig.unit import CGROUP_ROOT, PREFIX, Unit

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
    """The weight file says this soon, and says it still a moment later."""
    try:
        wait_for(lambda: weights(folder, file) == wanted, "", SOON_S)
    except TimeoutError:
        assert weights(folder, file) == wanted
    time.sleep(0.3)
    assert weights(folder, file) == wanted


@pytest.fixture
def leaf(disk, daemon: None) -> ModelDisk:
    """A disk in use by sutro."""
    one = disk("ssd", "ssd0")
    run("sutroctl", "use", one.node)
    assert scheduler.current("ssd0") == "sutro"
    return one


@pytest.fixture
def stripe(disk, stack, daemon: None):
    """An LVM stripe over two disks that sutro uses."""
    made = stack([disk("ssd", f"ssd{n}") for n in range(2)], STRIPE)
    run("sutroctl", "use", made.top)
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
    import subprocess

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
    # systemd takes the files away when nobody in the slice states a weight any more.
    units("other", weight=150)
    unit = units("svc", weight=200)
    becomes(unit.folder, {"default": 200})
    unit.set(IOWeight=250)
    becomes(unit.folder, {"default": 250})
    unit.set(IOWeight="")
    becomes(unit.folder, {"default": 100})


def test_started_before_the_leaf_is_used(disk, daemon: None, units) -> None:
    """Weights stated before the elevator is there count when it comes."""
    unit = units("svc", weight=321)
    one = disk("ssd", "ssd0")
    run("sutroctl", "use", one.node)
    becomes(unit.folder, {"default": 321})


def test_unit_file_and_reload(leaf: ModelDisk, units) -> None:
    """A drop-in on disk counts after daemon-reload."""
    unit = units("svc", weight=200)
    drop_in = Path(f"/run/systemd/system/{unit.unit}.d/50-weight.conf")
    drop_in.parent.mkdir(parents=True)
    try:
        drop_in.write_text("[Service]\nIOWeight=777\n")
        run("systemctl", "daemon-reload")
        becomes(unit.folder, {"default": 777})
    finally:
        drop_in.unlink()
        drop_in.parent.rmdir()
        run("systemctl", "daemon-reload")


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


def test_device_weight_on_mount_point(disk, stack, daemon: None, units) -> None:
    """A weight on a mount point."""
    made = stack([disk("ssd", "ssd0")], {"kind": "ext4", "name": "fs", "over": ["ssd0"]})
    run("sutroctl", "use", made.top)
    unit = units("svc", weight=200, device_weights={made.top: 900})
    becomes(unit.folder, {"default": 200, number("ssd0"): 900})


def test_two_stacks_on_a_leaf(disk, stack, daemon: None, units) -> None:
    """Two volumes share ssd1: the larger statement counts; one that names the leaf beats both."""
    disks = [disk("ssd", f"ssd{n}") for n in range(3)]
    for one in disks:
        one.hurry()
    half = 128 * 2048
    two = f"0 {half // 2} linear {{0}} 0\n{half // 2} {half // 2} linear {{1}} 0"
    made = stack(
        disks,
        {"kind": "dm", "name": "left", "over": ["ssd0", "ssd1"], "table": two},
        {
            "kind": "dm",
            "name": "right",
            "over": ["ssd1", "ssd2"],
            "table": f"0 {half // 2} linear {{0}} {half}\n{half // 2} {half // 2} linear {{1}} 0",
        },
    )
    run("sutroctl", "use", made.nodes["left"], made.nodes["right"])
    both = {made.nodes["left"]: 400, made.nodes["right"]: 250}
    unit = units("svc", weight=150, device_weights=both)
    a, b, c = (number(f"ssd{n}") for n in range(3))
    becomes(unit.folder, {"default": 150, a: 400, b: 400, c: 250})
    # Two statements with one call: systemd takes a list.
    named = {**both, "/dev/ssd1": 120}
    other = units("other", weight=150, device_weights=named)
    becomes(other.folder, {"default": 150, a: 400, b: 120, c: 250})


def test_device_weight_on_nothing(leaf: ModelDisk, units) -> None:
    """A path that is not there changes nothing, and the journal says so; once there it counts."""
    unit = units("svc", weight=220, device_weights={"/dev/mapper/later": 500})
    becomes(unit.folder, {"default": 220})
    assert "/dev/mapper/later" in run("journalctl", "--unit=sutrod", "--output=cat", "--lines=50")
    sectors = run("blockdev", "--getsz", leaf.node).strip()
    run("dmsetup", "create", "later", "--table", f"0 {sectors} linear {leaf.node} 0")
    try:
        becomes(unit.folder, {"default": 220, leaf.devno: 500})
    finally:
        run("dmsetup", "remove", "later")
    becomes(unit.folder, {"default": 220})


# bfq


def test_bfq_ratio(disk, daemon: None, units) -> None:
    """On a bfq leaf the weights keep the ratio asked for, which systemd's own numbers do not."""
    one = disk("ssd", "ssd0")
    scheduler.select(one.name, "bfq")
    heavy = units("heavy", weight=2000)
    light = units("light", weight=500)

    def is_four_to_one() -> bool:
        got = [weights(unit.folder, BFQ).get(one.devno, 0) for unit in (heavy, light)]
        return min(got) > 0 and max(got) <= 1000 and got[0] == 4 * got[1]

    try:
        wait_for(is_four_to_one, "", SOON_S)
    except TimeoutError:
        assert weights(heavy.folder, BFQ) == weights(light.folder, BFQ)
    run("systemctl", "stop", "sutrod")
    assert one.devno not in weights(heavy.folder, BFQ)
    assert one.devno not in weights(light.folder, BFQ)


def test_bfq_device_weight(disk, stack, daemon: None, units) -> None:
    """IODeviceWeight= on a volume whose leaves run bfq."""
    made = stack([disk("ssd", f"ssd{n}") for n in range(2)], STRIPE)
    for name in ("ssd0", "ssd1"):
        scheduler.select(name, "bfq")
    heavy = units("heavy", device_weights={made.top: 300})
    light = units("light", device_weights={made.top: 100})

    def in_force(folder: Path, name: str) -> int:
        """A disk without a line of its own has the default."""
        said = weights(folder, BFQ)
        return said.get(number(name), said.get("default", 0))

    def is_three_to_one() -> bool:
        return all(
            in_force(heavy.folder, name) == 3 * in_force(light.folder, name) > 0
            for name in ("ssd0", "ssd1")
        )

    wait_for(is_three_to_one, "bfq weights 3:1 on both leaves", SOON_S)


# stop, restart, kill, things that vanish


@pytest.mark.first
def test_stop_restores(stripe, units) -> None:
    """Stopping the daemon takes back every weight it wrote."""
    unit = units("svc", weight=200, device_weights={stripe.top: 300})
    becomes(unit.folder, {"default": 200, number("ssd0"): 300, number("ssd1"): 300})
    run("systemctl", "stop", "sutrod")
    assert weights(unit.folder) == {"default": 100}


def test_restart_continues(stripe, units) -> None:
    """After a restart all is as before, without a moment of being told again."""
    unit = units("svc", weight=200, device_weights={stripe.top: 300})
    wanted = {"default": 200, number("ssd0"): 300, number("ssd1"): 300}
    becomes(unit.folder, wanted)
    run("systemctl", "restart", "sutrod")
    becomes(unit.folder, wanted)
    assert scheduler.current("ssd0") == "sutro"
    assert sorted(bus.get("ManagedLeaves")) == ["/dev/ssd0", "/dev/ssd1"]


@pytest.mark.first
def test_kill(stripe, units) -> None:
    """kill -9: weights stay, changes made meanwhile are seen by the next one, stop restores."""
    unit = units("svc", weight=200, device_weights={stripe.top: 300})
    wanted = {"default": 200, number("ssd0"): 300, number("ssd1"): 300}
    becomes(unit.folder, wanted)
    for weight in (210, 220, 230):
        pid = int(run("systemctl", "show", "--property=MainPID", "--value", "sutrod"))
        os.kill(pid, signal.SIGKILL)
        assert weights(unit.folder)[number("ssd0")] == 300
        unit.set(IOWeight=weight)

        def started_again(old: int = pid) -> bool:
            now = run("systemctl", "show", "--property=MainPID,ActiveState", "sutrod")
            return f"MainPID={old}\n" not in now and "ActiveState=active" in now

        wait_for(started_again, "sutrod started again", 60)
        becomes(unit.folder, {**wanted, "default": weight})
        run("systemctl", "reset-failed", "sutrod")
    assert sorted(bus.get("ManagedLeaves")) == ["/dev/ssd0", "/dev/ssd1"]
    run("systemctl", "stop", "sutrod")
    assert weights(unit.folder) == {"default": 100}


def test_kill_before_stop_of_unit(leaf: ModelDisk, units) -> None:
    """A unit that ends while the daemon is dead leaves nothing that troubles the next one."""
    unit = units("svc", weight=200)
    becomes(unit.folder, {"default": 200})
    pid = int(run("systemctl", "show", "--property=MainPID", "--value", "sutrod"))
    os.kill(pid, signal.SIGKILL)
    unit.stop()
    wait_for(lambda: answers() and unit.unit not in bus.units(), "a daemon that knows no svc", 60)
    run("systemctl", "reset-failed", "sutrod")


def answers() -> bool:
    """The daemon is on the bus."""
    try:
        return bool(bus.get("Version"))
    except bus.BusError:
        return False


@pytest.mark.first
def test_units_vanish(leaf: ModelDisk) -> None:
    """Thirty short units come and go; the daemon stays well and silent about it."""
    pid = run("systemctl", "show", "--property=MainPID", "--value", "sutrod")
    for n in range(30):
        Unit(f"brief{n}", "exec true", weight=100 + n, properties={"Type": "oneshot"})
        run(
            "systemd-run", "--quiet", "--collect", f"--unit={PREFIX}brief{n}",
            "-p", f"IOWeight={100 + n}", "true",
        )  # fmt: skip
    wait_for(lambda: not any("brief" in name for name in bus.units()), "no brief units", 60)
    assert run("systemctl", "show", "--property=MainPID", "--value", "sutrod") == pid
    errors = run("journalctl", "--unit=sutrod", "--priority=err", "--output=cat", "--since=-60")
    assert "brief" not in errors


@pytest.mark.first
def test_leaf_vanishes(disk, daemon: None, units) -> None:
    """An unplugged leaf is forgotten; another one goes on."""
    disks = [disk("ssd", f"ssd{n}") for n in range(2)]
    run("sutroctl", "use", *[one.node for one in disks])
    gone, stays = disks[0].devno, disks[1].devno
    unit = units("svc", weight=200, device_weights={"/dev/ssd0": 300, "/dev/ssd1": 400})
    becomes(unit.folder, {"default": 200, gone: 300, stays: 400})
    disks[0].unplug()
    becomes(unit.folder, {"default": 200, stays: 400})
    wait_for(lambda: bus.get("ManagedLeaves") == ["/dev/ssd1"], "one managed leaf", SOON_S)


def test_leaf_comes_back(disk, daemon: None, units) -> None:
    """A disk that is plugged in again gets the device weights that name it."""
    one = disk("ssd", "ssd0")
    run("sutroctl", "use", one.node)
    unit = units("svc", device_weights={"/dev/ssd0": 300})
    becomes(unit.folder, {"default": 100, one.devno: 300})
    one.unplug()
    becomes(unit.folder, {"default": 100})
    one.set(online=1)
    wait_for(lambda: os.path.exists(one.node), one.node)
    run("sutroctl", "use", one.node)
    becomes(unit.folder, {"default": 100, one.devno: 300})


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
    run("sutroctl", "use", *[one.node for one in disks])
    unit = units("svc", device_weights={made.top: 300})
    becomes(unit.folder, {"default": 100, disks[0].devno: 300})
    longer = f"{table.format(disks[0].node)}\n{sectors} {sectors} linear {disks[1].node} 0"
    run("dmsetup", "load", "grow", "--table", longer)
    run("dmsetup", "resume", "grow")
    run("udevadm", "settle")
    becomes(unit.folder, {"default": 100, disks[0].devno: 300, disks[1].devno: 300})


# the bus


def test_list_units(leaf: ModelDisk, units) -> None:
    """ListUnits says what systemd says."""
    unit = units("svc", weight=230, device_weights={leaf.node: 300})
    wait_for(lambda: unit.unit in bus.units(), unit.unit, SOON_S)
    known = bus.units()[unit.unit]
    assert known["cgroup"] == unit.cgroup
    assert (known["weight"], known["weight_set"]) == (230, True)
    assert known["device_weights"] == [[leaf.node, 300]]


def test_explain(stripe, units) -> None:
    """Explain: what was asked, by what, what was written, what is read back, what was got."""
    from rig.unit import fio

    job = fio(stripe.top, "randread", "64k", 32)
    unit = units("svc", job, weight=200, device_weights={stripe.top: 300})
    becomes(unit.folder, {"default": 200, number("ssd0"): 300, number("ssd1"): 300})
    time.sleep(2.5)
    said = bus.explain(unit.unit, stripe.top)
    assert said["cgroup"] == unit.cgroup
    assert said["device"] == os.path.realpath(stripe.top)
    assert {one["leaf"] for one in said["leaves"]} == {"/dev/ssd0", "/dev/ssd1"}
    for one in said["leaves"]:
        assert (one["backend"], one["asked"]) == ("sutro", 300)
        assert stripe.top in one["reason"]
        assert one["file"].endswith(SUTRO)
        assert one["written"].split()[-1] == one["read_back"].split()[-1] == "300"
        # It is alone on the disk.
        assert one["hweight"] == pytest.approx(1, abs=0.02)
        assert one["got"] == pytest.approx(1, abs=0.02)
        assert one["time_ns"] > 0 and one["rbytes"] > 0 and one["wbytes"] == 0


def test_explain_unknown_unit(leaf: ModelDisk) -> None:
    """A unit that is not there is named."""
    for unit in ("nothing.service", "", "../../etc", "/no/such/cgroup", "/../.."):
        with pytest.raises(bus.BusError, match="(?i)no such unit|no unit|unknown|not"):
            bus.explain(unit, leaf.node)


def test_release(disk, daemon: None) -> None:
    """Use and release give the scheduler back that was there before."""
    one = disk("ssd", "ssd0")
    before = scheduler.current("ssd0")
    used = bus.call("UseDevices", "as", "1", one.node)
    assert [(r["leaf"], r["scheduler"], r["previous"], r["changed"]) for r in used] == [
        (one.node, "sutro", before, True)
    ]
    assert bus.devices()["ssd0"]["managed"]
    again = bus.call("UseDevices", "as", "1", one.node)
    assert [r["changed"] for r in again] == [False]
    bus.call("ReleaseDevices", "as", "1", one.node)
    assert scheduler.current("ssd0") == before
    assert bus.get("ManagedLeaves") == []


def test_use_nothing(daemon: None) -> None:
    """A path that cannot be used is named."""
    for path in ("/nowhere", "/proc"):
        with pytest.raises(bus.BusError, match=re.escape(path)):
            bus.call("UseDevices", "as", "1", path)


def test_dump(leaf: ModelDisk, units) -> None:
    """Dump is text that names leaves, units and weights."""
    unit = units("svc", weight=231)
    becomes(unit.folder, {"default": 231})
    text = bus.call("Dump")
    for word in ("ssd0", unit.unit, "231"):
        assert word in text


def test_off_until_asked(disk, daemon: None) -> None:
    """A new disk keeps its scheduler."""
    one = disk("ssd", "ssd0")
    time.sleep(1)
    assert scheduler.current(one.name) != "sutro"


def test_dry_run(disk, daemon: None, units) -> None:
    """--dry-run computes and writes nothing."""
    run("systemctl", "stop", "sutrod")
    one = disk("ssd", "ssd0")
    scheduler.select(one.name, "sutro")
    main = run("systemctl", "show", "--property=ExecStart", "sutrod")
    binary = re.search(r"path=(\S+)", main).group(1)
    dry = units("dry", f"exec {binary} --dry-run", properties={"Type": "notify"}, weight=None)
    svc = units("svc", weight=200)
    wait_for(answers, "a dry daemon on the bus", 60)
    assert bus.get("DryRun") is True
    wait_for(lambda: svc.unit in bus.units(), svc.unit, SOON_S)
    time.sleep(1)
    assert weights(svc.folder) == {"default": 100}
    assert bus.explain(svc.unit, one.node)["leaves"][0]["asked"] == 200
    dry.stop()


def test_no_weights_on_root(leaf: ModelDisk) -> None:
    """The daemon leaves the root cgroup alone."""
    assert not (Group.root().folder / SUTRO).exists()


def test_service_is_hardened() -> None:
    """systemd's own judgement of the unit."""
    text = run("systemd-analyze", "security", "--no-pager", "sutrod.service")
    level = re.search(r"exposure level for sutrod.service: ([0-9.]+)", text)
    assert level and float(level.group(1)) <= 2.5, text[-300:]
