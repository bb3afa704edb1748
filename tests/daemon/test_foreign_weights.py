# SPDX-License-Identifier: LGPL-2.1-or-later
"""Weights of cgroups that are no units, which container runtimes and others have written."""

import shutil
import signal

import dbus
import pytest
from fakemachine import Machine, Sutrod, Systemd, restore


def test_foreign_cgroups(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    """A container tree below a delegated unit, and a cgroup beside all slices."""
    outer = systemd.start("c.service", 50)
    box = f"{outer}/box.service"
    machine.cgroup(box, 700)
    machine.cgroup(f"{box}/inner", 30)
    machine.cgroup("/elsewhere", 60)
    sutrod.start()
    assert machine.weights(outer) == ["default 50"]
    assert machine.weights(box) == ["default 700"]
    assert machine.weights(f"{box}/inner") == ["default 30"]
    assert machine.weights("/elsewhere") == ["default 60"]
    machine.write(f"/sys/fs/cgroup{box}/io.weight", "default 800\n8:0 5\n")
    assert sutrod.until(lambda: machine.weights(box) == ["8:0 5", "default 800"]) == 0
    machine.cgroup(f"{box}/late/deep", 20)
    sutrod.until(lambda: machine.weights(f"{box}/late/deep") == ["default 20"])
    shutil.rmtree(machine.at(f"/sys/fs/cgroup{box}/late"))
    machine.cgroup(f"{box}/late/deep", 21)
    sutrod.until(lambda: machine.weights(f"{box}/late/deep") == ["default 21"])
    e = sutrod.call("Explain", box, "/dev/sda")
    assert (e["unit"], e["cgroup"], e["weight"]) == ("", box, 800)
    assert e["leaves"][0]["reason"] == f"io.weight /dev/sda 5 of {box}, which names this disk"
    (other,) = sutrod.call("Explain", box, "/dev/sdb")["leaves"]
    assert (other["asked"], other["reason"]) == (800, f"io.weight 800 of {box}")


def test_cgroup_with_the_name_of_a_unit(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    """A unit has one cgroup. Another one of its name, in a folder named as a slice, has its own."""
    nginx = systemd.start("nginx.service", 200)
    sutrod.start()
    machine.cgroup("/box.slice")
    machine.cgroup("/box.slice/nginx.service", 333)
    sutrod.until(lambda: machine.weights("/box.slice/nginx.service") == ["default 333"], 61)
    assert machine.weights(nginx) == ["default 200"]
    # The comparison does not disturb the unit itself.
    sutrod.elapse(61)
    systemd.change("nginx.service", 700)
    sutrod.until(lambda: machine.weights(nginx) == ["default 700"])
    assert machine.weights("/box.slice/nginx.service") == ["default 333"]


def test_weights_of_container_runtimes(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    """runc writes io.bfq.weight, also of the scope that systemd made for it."""
    pod = systemd.start("pod.slice", 50)
    scope = systemd.start("runc.scope", slice=pod)
    box = f"{pod}/box"
    machine.cgroup(box)
    for cgroup, weight in ((scope, 300), (box, 700)):
        machine.write(f"/sys/fs/cgroup{cgroup}/io.bfq.weight", f"default {weight}\n")
    sutrod.start()
    for cgroup, weight in ((scope, 300), (box, 700)):
        assert machine.weights(cgroup, "io.bfq.weight") == [f"default {weight}"]
        assert machine.weights(cgroup) == [f"default {weight}"]
        (leaf,) = sutrod.call("Explain", cgroup, "/dev/sdc")["leaves"]
        assert leaf["asked"] == weight
        assert leaf["reason"].startswith(f"io.bfq.weight {weight} of ")
    # A later write is followed, and IOWeight= is stronger.
    machine.write(f"/sys/fs/cgroup{box}/io.bfq.weight", "default 40\n")
    assert sutrod.until(lambda: machine.weights(box) == ["default 40"]) == 0
    systemd.change("runc.scope", 200)
    sutrod.until(lambda: machine.weights(scope, "io.bfq.weight") == ["8:32 200", "default 300"])
    # A runtime without bfq writes io.weight.
    machine.write(f"/sys/fs/cgroup{box}/io.weight", "default 60\n")
    sutrod.until(lambda: machine.weights(box) == ["default 60"])
    assert machine.weights(box, "io.bfq.weight") == ["8:32 60", "default 40"]


def test_device_lines_of_container_runtimes(
    machine: Machine, systemd: Systemd, sutrod: Sutrod
) -> None:
    """docker run --blkio-weight-device: runc writes "8:32 300" to io.bfq.weight."""
    scope = systemd.start("runc.scope")
    box = systemd.start("pod.slice") + "/box"
    machine.cgroup(box)
    names = {scope: "runc.scope", box: box}
    for cgroup in names:
        machine.write(f"/sys/fs/cgroup{cgroup}/io.bfq.weight", "default 100\n8:32 300\n")

    def is_in_force(weight: int) -> bool:
        return all(f"8:32 {weight}" in machine.weights(c, "io.bfq.weight") for c in names)

    sutrod.start()
    for cgroup, name in names.items():
        (leaf,) = sutrod.call("Explain", cgroup, "/dev/sdc")["leaves"]
        assert leaf["asked"] == 300
        assert leaf["reason"] == f"io.bfq.weight /dev/sdc 300 of {name}, which names this disk"
    assert is_in_force(300)
    # A policy is stronger, also after a crash, and a later write is the new weight.
    for name in names.values():
        weight = dbus.Array([("Weight", "/dev/sdc 500")], signature="(ss)")
        sutrod.call("SetPolicy", name, weight, "runtime")
    sutrod.until(lambda: is_in_force(500))
    sutrod.stop(signal.SIGKILL)
    sutrod.start()
    for cgroup in names:
        machine.write(f"/sys/fs/cgroup{cgroup}/io.bfq.weight", "default 100\n8:32 400\n")
    sutrod.until(lambda: is_in_force(500))
    for name in names.values():
        sutrod.call("ResetPolicy", name, "runtime")
    sutrod.until(lambda: is_in_force(400))

    def asked() -> set[int]:
        leaves = [sutrod.call("Explain", cgroup, "/dev/sdc")["leaves"] for cgroup in names]
        return {leaf["asked"] for (leaf,) in leaves}

    for cgroup in names:
        machine.write(f"/sys/fs/cgroup{cgroup}/io.bfq.weight", "default 100\n8:32 50\n")
    sutrod.until(lambda: asked() == {50})
    assert sutrod.stop() == 0
    for cgroup in names:
        assert machine.weights(cgroup, "io.bfq.weight") == ["8:32 50", "default 100"]


@pytest.mark.parametrize("devno", ["8:32", "8:64"])
def test_disk_under_the_name_of_another(
    machine: Machine, systemd: Systemd, sutrod: Sutrod, devno: str
) -> None:
    """The kernel drops the lines of a removed disk; the next one of its name has no weight yet."""
    scope = systemd.start("runc.scope", 200)
    box = systemd.start("pod.slice") + "/box"
    machine.cgroup(box, 200)
    for cgroup in (scope, box):
        machine.write(f"/sys/fs/cgroup{cgroup}/io.bfq.weight", "default 200\n8:32 300\n")
    systemd.start("own.service", 200, [("/dev/sdc", 300)])

    def asked(unit: str) -> list[int]:
        return [leaf["asked"] for leaf in sutrod.call("Explain", unit, "/dev/sdc")["leaves"]]

    units = ("runc.scope", box, "own.service")
    sutrod.start()
    assert [asked(unit) for unit in units] == 3 * [[300]]
    machine.unplug("sdc", "8:32")
    for cgroup in (scope, box):
        # The kernel announces no change of the file.
        file = machine.at(f"/sys/fs/cgroup{cgroup}/io.bfq.weight")
        file.with_name("new").write_text("default 200\n")
        file.with_name("new").rename(file)
    machine.disk("sdc", devno, "bfq", diskseq=2)
    # These calls find the new disk, as an event of udev does.
    assert [asked(unit) for unit in units] == [[200], [200], [300]]
    for cgroup in (scope, box):
        assert machine.weights(cgroup, "io.bfq.weight") == ["default 200"]
    # A line for the new disk is followed.
    machine.write(f"/sys/fs/cgroup{box}/io.bfq.weight", f"default 200\n{devno} 400\n")
    sutrod.until(lambda: asked(box) == [400])


def test_weight_of_a_disk_that_was_exchanged(
    machine: Machine, systemd: Systemd, sutrod: Sutrod
) -> None:
    """The daemon has withdrawn a line of others. It is not restored for another disk."""
    a = systemd.start("a.service", 100, [("/dev/sda", 300)])
    machine.write(f"/sys/fs/cgroup{a}/io.bfq.weight", "default 100\n8:32 50\n")
    sutrod.start()
    assert machine.weights(a, "io.bfq.weight") == ["default 100"]
    machine.unplug("sdc", "8:32")
    machine.disk("sdc", "8:32", "bfq", diskseq=2)
    sutrod.elapse(61)
    assert sutrod.stop() == 0
    assert machine.weights(a, "io.bfq.weight") == ["default 100"]


@pytest.mark.parametrize("next_one", ["daemon", "restore"])
@pytest.mark.parametrize("is_exchanged", [True, False])
def test_weight_of_a_disk_that_was_exchanged_without_a_daemon(
    machine: Machine, systemd: Systemd, sutrod: Sutrod, next_one: str, *, is_exchanged: bool
) -> None:
    """The line that was withdrawn is not restored for another disk, but with another medium it is.

    The kernel keeps lines with the queue of a disk: a card reader has one for all cards.
    """
    a = systemd.start("a.service", 100, [("/dev/sda", 300)])
    machine.write(f"/sys/fs/cgroup{a}/io.bfq.weight", "default 100\n8:32 50\n")
    sutrod.start()
    assert machine.weights(a, "io.bfq.weight") == ["default 100"]
    sutrod.stop(signal.SIGKILL)
    if is_exchanged:
        machine.unplug("sdc", "8:32")
        machine.disk("sdc", "8:32", "bfq", diskseq=2)
    else:
        machine.write("/sys/class/block/sdc/diskseq", "2\n")
    if next_one == "daemon":
        sutrod.start()
        assert sutrod.stop() == 0
    else:
        assert restore(machine) == 0
    line = [] if is_exchanged else ["8:32 50"]
    assert sorted(machine.weights(a, "io.bfq.weight")) == [*line, "default 100"]


def test_compressed_device_line_of_systemd(
    machine: Machine, systemd: Systemd, sutrod: Sutrod
) -> None:
    """systemd writes IODeviceWeight= to io.bfq.weight, compressed."""
    a = systemd.start("a.service", 200, [("/dev/sdc", 300)])
    lines = ["8:32 118", "default 109"]
    machine.write(f"/sys/fs/cgroup{a}/io.bfq.weight", "\n".join(reversed(lines)) + "\n")
    sutrod.start()
    assert machine.weights(a, "io.bfq.weight") == ["8:32 300", "default 109"]
    assert sutrod.stop() == 0
    assert machine.weights(a, "io.bfq.weight") == lines


def test_io_weight_of_a_scope(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    """Without bfq, runc writes io.weight of the scope that systemd made, which has no IOWeight=."""
    scope = systemd.start("runc.scope")
    machine.write(f"/sys/fs/cgroup{scope}/io.weight", "default 1920\n")
    sutrod.start()
    assert machine.weights(scope) == ["default 1920"]
    (leaf,) = sutrod.call("Explain", scope, "/dev/sdc")["leaves"]
    assert leaf["reason"] == "io.weight 1920 of runc.scope"
    machine.write(f"/sys/fs/cgroup{scope}/io.weight", "default 40\n")
    sutrod.until(lambda: machine.weights(scope) == ["default 40"])
    # IOWeight= is stronger. Without it systemd writes the default.
    systemd.change("runc.scope", 200)
    sutrod.until(lambda: machine.weights(scope) == ["default 200"])
    systemd.change("runc.scope")
    sutrod.until(lambda: machine.weights(scope) == ["default 100"])


@pytest.mark.parametrize("text", ["default 0", "default 10001", "default -1", "lots", ""])
def test_garbage_in_io_weight(
    machine: Machine, systemd: Systemd, sutrod: Sutrod, text: str
) -> None:
    box = systemd.start("c.service", 50) + "/box"
    machine.cgroup(box, 700)
    sutrod.start()
    assert machine.weights(box) == ["default 700"]
    machine.write(f"/sys/fs/cgroup{box}/io.weight", text + "\n8:16 20\n")
    sutrod.until(lambda: machine.weights(box) == ["8:16 20", "default 100"])
    if text:
        sutrod.until(lambda: f"{box}: ignoring 1 invalid line(s) of io.weight." in sutrod.log())
