# SPDX-License-Identifier: LGPL-2.1-or-later
"""sutrod on a kernel without the module sutro: no cgroup has a file io.sutro.*.

Documentation/guides/without-module.rst has what holds there.
"""

import dbus
import pytest
from fakemachine import Machine, Sutrod, Systemd
from plant import SETTLES_S, divide, promise, set_policy, state


@pytest.fixture
def a(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> str:
    """The cgroup of a unit with weights, on disks with bfq and others; the daemon runs."""
    for disk in ("sda", "sdb"):
        machine.write(f"/sys/class/block/{disk}/queue/scheduler", "none mq-deadline [bfq]\n")
    machine.write("/sys/class/block/sdd/queue/scheduler", "[none] mq-deadline bfq\n")
    cgroup = systemd.start("a.service", 200, [("/dev/vg/db", 300)])
    for file in machine.root.rglob("io.sutro.*"):
        file.unlink()
    sutrod.start()
    return cgroup


def test_weights_of_a_volume(machine: Machine, sutrod: Sutrod, a: str) -> None:
    """The weight on the volume is one on both disks below, and IOWeight= one on the third."""
    lines = ["8:0 300", "8:16 300", "8:32 200", "default 100"]
    assert machine.weights(a, "io.bfq.weight") == lines
    sutrod.stop()
    assert machine.weights(a, "io.bfq.weight") == ["default 100"]
    assert not list(machine.root.rglob("io.sutro.*"))


def test_limit_of_a_volume(machine: Machine, sutrod: Sutrod, a: str) -> None:
    set_policy(sutrod, "a.service", ReadBandwidthMax="/dev/vg/db 4M")
    file = machine.at(f"/sys/fs/cgroup{a}/io.max")
    sutrod.until(lambda: file.read_text().startswith("254:0 rbps=4000000 "))


@pytest.fixture
def big(machine: Machine, systemd: Systemd, sutrod: Sutrod, a: str) -> str:
    """The cgroup of a unit of five times the weight, with nine tenths of all bytes of two disks."""
    cgroup = systemd.start("big.service", 1000)
    for file in machine.at(f"/sys/fs/cgroup{cgroup}").glob("io.sutro.*"):
        file.unlink()
    divide(machine, sutrod, {"sdc": "8:32", "sdd": "8:48"}, {a: 0.1, cgroup: 0.9})
    return cgroup


def test_shares_of_bytes(sutrod: Sutrod, a: str, big: str) -> None:
    """On leaves with bfq and without weights, the rows of `sutroctl top` have shares of bytes."""
    found = {
        (str(row["cgroup"]), str(leaf["leaf"])): float(leaf["share_got"])
        for row in sutrod.call("ListUsage")
        for leaf in row["leaves"]
    }
    for disk in ("/dev/sdc", "/dev/sdd"):
        assert found[a, disk] == pytest.approx(0.1, rel=0.01)
        assert found[big, disk] == pytest.approx(0.9, rel=0.01)


def test_floor_raises_the_weight(machine: Machine, sutrod: Sutrod, a: str, big: str) -> None:
    """On bfq, the bytes of the cgroups stand for device time: the unit receives a tenth of them."""

    def ratio() -> float:
        """Weight of the unit over that of the other one."""
        lines = [
            dict(line.split() for line in machine.weights(cgroup, "io.bfq.weight"))
            for cgroup in (a, big)
        ]
        weights = [int(line.get("8:32", line["default"])) for line in lines]
        return weights[0] / weights[1]

    sutrod.until(lambda: ratio() == 0.2)
    set_policy(sutrod, "a.service", ReadBandwidthMin="/dev/sdc 20M")
    sutrod.until(lambda: ratio() > 0.4, SETTLES_S)


def test_floor_without_weights(machine: Machine, sutrod: Sutrod, a: str, big: str) -> None:
    """On a leaf without a scheduler of weights, it is reported, until iocost has weights there."""
    set_policy(sutrod, "a.service", ReadBandwidthMin="/dev/sdd 20M")
    sutrod.until(lambda: state(sutrod, "a.service") == "unweighted", SETTLES_S)
    cause = promise(sutrod, "a.service")["cause"]
    assert "the scheduler of /dev/sdd (none) has no weights" in cause
    machine.write("/sys/fs/cgroup/io.cost.qos", "8:48 enable=1 ctrl=auto\n")
    sutrod.until(lambda: state(sutrod, "a.service") != "unweighted", 61)
    machine.write("/sys/fs/cgroup/io.cost.qos", "8:48 enable=0 ctrl=auto\n")
    sutrod.until(lambda: state(sutrod, "a.service") == "unweighted", 61 + SETTLES_S)


def test_use_names_the_package(machine: Machine, sutrod: Sutrod, a: str) -> None:
    with pytest.raises(dbus.DBusException, match="Install the package sutro-dkms"):
        sutrod.call("UseDevices", ["/dev/sdd"])
    assert machine.scheduler("sdd") == "none"
