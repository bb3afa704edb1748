# SPDX-License-Identifier: LGPL-2.1-or-later
"""Bandwidth floors in the whole daemon, on disks that serve by weight (plant.py)."""

import signal
from typing import Any

import pytest
from clients import heard
from fakemachine import Bus, Machine, Sutrod, Systemd, happens
from plant import (
    LOGICAL,
    MB,
    SETPOINT,
    SETTLES_S,
    STRIPE,
    TICK_S,
    Plant,
    crowd,
    divide,
    hold,
    promise,
    set_policy,
    state,
)


def test_floor_holds(machine: Machine, systemd: Systemd, sutrod: Sutrod, plant: Plant) -> None:
    db = crowd(systemd, plant)
    sutrod.start()
    assert plant.mbps("db", 1) < 4  # 100 of 4100 of 100 MB/s
    hold(sutrod)
    sutrod.elapse(1)
    assert plant.mbps("db", 1) == pytest.approx(SETPOINT * 60, rel=0.01)
    seen = promise(sutrod, "db.service")
    assert (seen["value"], seen["device"], seen["cause"]) == (60 * MB, "/dev/dm-0", "")
    assert "/run/sutro/policy.control/db.service.policy:" in seen["source"]
    for leaf in seen["leaves"]:
        assert leaf["share_needed"] == pytest.approx(0.6, abs=0.05)
    # Those under no policy have what systemd gave them.
    assert machine.weights("/system.slice/big0.service") == ["default 1000"]
    assert sutrod.property("ControlStepUSec") > 0
    assert "floors and targets kept: 1, last step of control: " in sutrod.call("Dump")
    # Gone with the promise.
    sutrod.call("ResetPolicy", "db.service", "runtime")
    sutrod.until(lambda: machine.weights(db) == ["default 100"])
    assert sutrod.call("ListPromises") == []
    assert sutrod.property("ControlStepUSec") == 0


def test_floor_raises_each_level_above_it(systemd: Systemd, sutrod: Sutrod, plant: Plant) -> None:
    """The levels fall back when the daemon stops."""
    slice_ = systemd.start("app.slice", 100)
    db = systemd.start("db.service", 100, slice=slice_)
    plant.add("slice", slice_)
    plant.add("db", db)
    plant.add("near", systemd.start("near.service", 1000, slice=slice_))
    plant.add("big", systemd.start("big.service", 1000))
    sutrod.start()
    set_policy(sutrod, "db.service", ReadBandwidthMin=f"{STRIPE} 70M")
    for cgroup in (slice_, db):
        sutrod.until(lambda c=cgroup: any(w.startswith("8:0 ") for w in plant.machine.weights(c)))
    assert sutrod.stop() == 0
    assert plant.machine.weights(slice_) == plant.machine.weights(db) == ["default 100"]


def test_infeasible_is_reported(systemd: Systemd, sutrod: Sutrod, plant: Plant) -> None:
    crowd(systemd, plant)
    sutrod.start()
    set_policy(sutrod, "db.service", ReadBandwidthMin=f"{STRIPE} 90M", Importance="200")
    set_policy(sutrod, "big0.service", ReadBandwidthMin=f"{STRIPE} 60M", Importance="100")
    sutrod.until(lambda: state(sutrod, "big0.service") == "infeasible", SETTLES_S)
    low = promise(sutrod, "big0.service")
    assert "need 1" in low["cause"] and "/dev/sd" in low["cause"]
    assert low["granted"] < 0.2
    sutrod.until(lambda: state(sutrod, "db.service") == "held", SETTLES_S)
    set_policy(sutrod, "db.service", ReadBandwidthMin=f"{STRIPE} 20M")
    sutrod.until(lambda: state(sutrod, "big0.service") == "held", SETTLES_S)


def test_part_of_the_device(systemd: Systemd, sutrod: Sutrod, plant: Plant) -> None:
    """No rate until something is known of the device, then one that follows the device."""
    crowd(systemd, plant, running=False)
    sutrod.start()
    set_policy(sutrod, "db.service", ReadBandwidthMin=f"{STRIPE} 12.5%")
    sutrod.until(lambda: state(sutrod, "db.service") == "unknown-capacity", SETTLES_S)
    seen = promise(sutrod, "db.service")
    assert (seen["value"], seen["percent"]) == (0, 12.5)
    assert "the capacity of /dev/dm-0 for requests of this unit is unknown" in seen["cause"]
    set_policy(sutrod, "db.service", ReadBandwidthMin=f"{STRIPE} 30%")
    plant.readers["db"].running = True
    sutrod.until(lambda: state(sutrod, "db.service") == "held", SETTLES_S)
    sutrod.elapse(1)
    assert plant.mbps("db", 1) == pytest.approx(SETPOINT * 30, rel=0.02)

    for speed, falls in ((25 * MB, True), (50 * MB, False)):
        plant.speed, rates = speed, []
        for _ in range(int(SETTLES_S / TICK_S)):
            sutrod.elapse(TICK_S)
            rates.append(promise(sutrod, "db.service")["value"])
        assert rates == sorted(rates, reverse=falls)
        assert rates[-1] == pytest.approx(0.3 * 2 * speed, rel=0.01)
    # The value survives a restart of the daemon, and a change of the floor.
    assert sutrod.stop() == 0
    plant.readers["db"].running = False
    sutrod.start()
    sutrod.elapse(1)
    assert promise(sutrod, "db.service")["value"] == pytest.approx(30 * MB, rel=0.01)
    set_policy(sutrod, "db.service", ReadBandwidthMin=f"{STRIPE} 40%")
    sutrod.until(lambda: promise(sutrod, "db.service")["percent"] == 40)
    sutrod.elapse(1)
    assert promise(sutrod, "db.service")["value"] == pytest.approx(40 * MB, rel=0.01)


def test_floor_on_any_volume(systemd: Systemd, sutrod: Sutrod, plant: Plant) -> None:
    """A floor on any volume holds on the volumes that the unit has used, except named ones."""
    crowd(systemd, plant, running=False)
    sutrod.start()
    set_policy(sutrod, "db.service", ReadBandwidthMin="any 60M")
    sutrod.until(lambda: state(sutrod, "db.service") == "idle")
    assert promise(sutrod, "db.service")["path"] == "any"
    plant.readers["db"].running = True
    sutrod.until(lambda: state(sutrod, "db.service") == "held", SETTLES_S)
    seen = promise(sutrod, "db.service")
    assert (seen["value"], seen["device"], seen["path"]) == (60 * MB, "/dev/dm-0", STRIPE)
    sutrod.elapse(1)
    assert plant.mbps("db", 1) == pytest.approx(SETPOINT * 60, rel=0.01)
    set_policy(sutrod, "db.service", ReadBandwidthMin=f"{STRIPE} 20%")
    sutrod.until(lambda: promise(sutrod, "db.service")["value"] == 20 * MB, SETTLES_S)


def test_killed_and_started_again(systemd: Systemd, sutrod: Sutrod, plant: Plant) -> None:
    db = crowd(systemd, plant)
    sutrod.start()
    hold(sutrod, lifetime="persistent")
    sutrod.elapse(6)  # The daemon saves costs now and then.
    sutrod.stop(9)
    before = plant.readers["db"].bytes
    plant.serve(1)
    assert plant.readers["db"].bytes - before > 0.97 * 60 * MB
    sutrod.start()
    assert plant.mbps("db", 2) > 0.97 * 60
    assert any(line.startswith("8:0 ") for line in plant.machine.weights(db))


def test_restart_leaves_all_lines_alone(
    machine: Machine, systemd: Systemd, sutrod: Sutrod, plant: Plant
) -> None:
    """systemd answers about slices first and about floors in the end: their lines stay."""
    slices = {name: systemd.start(f"of-{name}.slice", 100) for name in ("db", "job")}
    for n in range(60):
        systemd.start(f"u{n}.service")
    raised = list(slices.values())
    plant.add("big", systemd.start("big.service", 1000))
    for name, folder in slices.items():
        raised.append(systemd.start(f"{name}.service", 100, slice=folder))
        plant.add(f"slice-{name}", folder)
        plant.add(name, raised[-1])
        plant.add(f"near-{name}", systemd.start(f"near-{name}.service", 1000, slice=slices[name]))
    sutrod.start()
    for unit in ("db.service", "job.service"):
        set_policy(sutrod, unit, "persistent", ReadBandwidthMin=f"{STRIPE} 30M")

    def lines() -> list[list[str]]:
        return [machine.weights(cgroup) for cgroup in raised]

    sutrod.until(lambda: all(line[0].startswith("8:0 ") for line in lines()))
    # The daemon saves costs now and then.
    sutrod.elapse(6)
    sutrod.stop(signal.SIGKILL)
    before, writes = lines(), machine.writes()
    sutrod.start()
    assert machine.writes() == writes
    sutrod.elapse(TICK_S / 2)
    assert lines() == before


def test_section_of_a_unit_file(systemd: Systemd, sutrod: Sutrod, plant: Plant) -> None:
    file = "/etc/systemd/system/db.service"
    plant.machine.write(
        file,
        f"[Service]\nExecStart=/bin/db\n[X-Sutro]\nReadBandwidthMin={STRIPE} 60M\nImportance=7\n",
    )
    systemd.start("db.service", 100, fragment=file)
    sutrod.start()
    seen = promise(sutrod, "db.service")
    assert (seen["value"], seen["importance"]) == (60 * MB, 7)
    assert seen["source"].endswith(f"{file}:4")


def test_each_floor_has_its_counter(systemd: Systemd, sutrod: Sutrod, plant: Plant) -> None:
    crowd(systemd, plant)
    rates = {"rbytes": 7 * MB, "wbytes": 5 * MB, "rios": 300, "wios": 200}
    sutrod.start()
    keys = ("ReadBandwidthMin", "WriteBandwidthMin", "ReadIOPSMin", "WriteIOPSMin")
    set_policy(sutrod, "db.service", **dict.fromkeys(keys, f"{STRIPE} 100"))

    def count(_seconds: float) -> None:
        seconds = sutrod.clock.now_ns / 1e9 - 1000
        line = " ".join(f"{name}={int(rate * seconds)}" for name, rate in rates.items())
        plant.machine.write("/sys/fs/cgroup/system.slice/db.service/io.stat", f"{LOGICAL} {line}\n")

    sutrod.clock.loads.append(count)
    sutrod.elapse(SETTLES_S)
    got = {p["key"]: int(p["got"]) for p in sutrod.call("ListPromises")}
    wanted = dict(zip(keys, rates.values(), strict=True))
    assert got == pytest.approx(wanted, rel=0.01)


def test_history_and_usage(systemd: Systemd, sutrod: Sutrod, plant: Plant) -> None:
    crowd(systemd, plant)
    sutrod.start()
    hold(sutrod)

    def rows() -> list[Any]:
        return list(sutrod.call("History", "db.service", "ReadBandwidthMin", STRIPE))

    sutrod.until(lambda: len(rows()) >= 3)
    sutrod.until(lambda: rows()[-1][1] == pytest.approx(SETPOINT * 60 * MB, rel=0.001), SETTLES_S)
    assert rows()[-1][2] == 60 * MB
    # Steady by now. A rate is reported to the nearest unit, not to the one below it.
    sutrod.elapse(10)
    for _ in range(8):
        sutrod.elapse(1)
        assert abs(promise(sutrod, "db.service")["got"] - rows()[-1][1]) <= 0.5

    def usage() -> dict[str, Any]:
        return {row["unit"]: row for row in sutrod.call("ListUsage") if row["unit"]}["db.service"]

    assert usage()["device"] == "/dev/dm-0"
    sutrod.until(
        lambda: usage()["rbytes_per_s"] == pytest.approx(SETPOINT * 60 * MB, rel=0.001), SETTLES_S
    )
    assert sutrod.error("History", "db.service", "ReadIOPSMin", STRIPE)[0] == "NoSuchPromise"
    assert sutrod.error("History", "no.service", "ReadIOPSMin", STRIPE)[0] == "NoSuchUnit"


def test_mount_point(machine: Machine, systemd: Systemd, sutrod: Sutrod, plant: Plant) -> None:
    machine.mount("/srv", LOGICAL, "ext4", "/dev/mapper/vg-db")
    machine.write("/srv/data/file", "")
    crowd(systemd, plant)
    sutrod.start()
    hold(sutrod, "/srv/data")
    seen = promise(sutrod, "db.service")
    assert (seen["path"], seen["device"]) == ("/srv/data", "/dev/dm-0")


def test_loop_on_a_file_system(systemd: Systemd, sutrod: Sutrod, plant: Plant) -> None:
    plant.machine.mount("/srv", LOGICAL, "ext4", "/dev/mapper/vg-db")
    plant.machine.write("/srv/image", "")
    plant.machine.disk("loop0", "7:0")
    plant.machine.write("/sys/devices/virtual/block/loop0/loop/backing_file", "/srv/image\n")
    plant.logical = "7:0"
    crowd(systemd, plant)
    sutrod.start()
    hold(sutrod, "/dev/loop0")
    assert {leaf["leaf"] for leaf in promise(sutrod, "db.service")["leaves"]} == {
        "/dev/loop0",
        "/dev/sda",
        "/dev/sdb",
    }


def test_partition(machine: Machine, systemd: Systemd, sutrod: Sutrod, plant: Plant) -> None:
    """A partition has no line in io.stat, which counts its requests at the disk."""
    machine.partition("sda", "sda1", "8:1")
    db = crowd(systemd, plant)
    sutrod.start()
    hold(sutrod, "/dev/sda1", floor="30M")

    def needed() -> float:
        (leaf,) = promise(sutrod, "db.service")["leaves"]
        return leaf["share_needed"]

    sutrod.until(lambda: needed() == pytest.approx(0.6, abs=0.05), SETTLES_S)
    # No promise needs the other disk.
    assert [line.split()[0] for line in machine.weights(db)] == ["8:0", "default"]


def test_path_that_appears_later(systemd: Systemd, sutrod: Sutrod, plant: Plant) -> None:
    crowd(systemd, plant)
    sutrod.start()
    set_policy(sutrod, "db.service", ReadBandwidthMin="/dev/mapper/vg-late 60M")
    sutrod.until(lambda: state(sutrod, "db.service") == "unresolved")
    assert promise(sutrod, "db.service")["leaves"] == []
    plant.logical = "254:7"
    plant.machine.stripe("dm-7", "254:7", "sda sdb", "vg-late")
    sutrod.call("Reload")
    sutrod.until(lambda: state(sutrod, "db.service") == "held", SETTLES_S)
    # The device is removed, and with it its setpoint.
    plant.machine.at("/dev/mapper/vg-late").unlink()
    plant.machine.at("/sys/class/block/dm-7").unlink()
    sutrod.call("Reload")
    sutrod.until(lambda: state(sutrod, "db.service") == "unresolved")
    sutrod.until(
        lambda: plant.machine.weights("/system.slice/db.service") == ["default 100"], SETTLES_S
    )


def test_weight_written_by_hand(systemd: Systemd, sutrod: Sutrod, plant: Plant) -> None:
    db = crowd(systemd, plant)
    sutrod.start()
    hold(sutrod)
    # The daemon reads and writes the file when all of it was written.
    sutrod.clock.settle(hold=True)
    plant.machine.write(f"/sys/fs/cgroup{db}/io.sutro.weight", "default 100\n8:0 1\n8:16 1\n")
    sutrod.until(lambda: "8:0 1" not in plant.machine.weights(db))
    sutrod.until(lambda: "8:16 1" not in plant.machine.weights(db))


def test_own_writes_cause_no_request(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    """Weights of iocost go to io.weight, which systemd writes, too: its writes cause a request."""
    machine.set_scheduler("sda", "none")
    machine.write("/sys/fs/cgroup/io.cost.qos", "8:0 enable=1 ctrl=auto\n")
    db = systemd.start("db.service", 100)
    big = systemd.start("big.service", 1000)
    sutrod.start()
    set_policy(sutrod, "db.service", ReadBandwidthMin="/dev/sda 60M")
    divide(machine, sutrod, {"sda": "8:0"}, {db: 0.1, big: 0.9})

    def lines() -> list[str]:
        """The weights that follow from the rates."""
        return [line for line in machine.weights(db, "io.weight") if line.startswith("8:0 ")]

    sutrod.until(lambda: bool(lines()), SETTLES_S)
    first = lines()
    sutrod.until(lambda: lines() != first, SETTLES_S)
    sutrod.settle()
    question = f"{db}: io.weight was written, requesting its settings."
    assert question not in sutrod.log()
    systemd.change("db.service", 300)
    sutrod.until(lambda: question in sutrod.log())
    explained = sutrod.call("Explain", "db.service", "")
    assert explained["weight"] == 300


def test_unit_goes_and_comes(systemd: Systemd, sutrod: Sutrod, plant: Plant) -> None:
    crowd(systemd, plant)
    sutrod.start()
    for _ in range(3):
        hold(sutrod)
        reader = plant.readers.pop("db")
        systemd.vanish("db.service")
        sutrod.until(lambda: sutrod.call("ListPromises") == [])
        assert sutrod.error("History", "db.service", "ReadBandwidthMin", STRIPE)[0] == "NoSuchUnit"
        assert systemd.start("db.service", 100) == reader.cgroup
        plant.add("db", reader.cgroup)


def test_setpoints_are_not_signalled(
    bus: Bus, systemd: Systemd, sutrod: Sutrod, plant: Plant
) -> None:
    """Setpoints change several times in a second; only weights from settings are signalled."""
    crowd(systemd, plant)
    with heard(bus, "WeightChanged") as changes:
        sutrod.start()
        hold(sutrod)
        set_policy(sutrod, "big0.service", Weight="77")
        sutrod.until(lambda: sutrod.call("Explain", "big0.service", "")["weight"] == 77)
        happens(lambda: any("77" in change[4] for change in changes))
    assert not [change for change in changes if "ReadBandwidthMin=" in change[4]]


def test_unit_without_io_controller(
    machine: Machine, systemd: Systemd, sutrod: Sutrod, plant: Plant
) -> None:
    """Its requests are not counted: the floor is unobserved, not idle, until they are."""
    controllers = f"/sys/fs/cgroup{crowd(systemd, plant, running=False)}/cgroup.controllers"
    machine.write(controllers, "cpu memory pids\n")
    sutrod.start()
    set_policy(sutrod, "db.service", ReadBandwidthMin=f"{STRIPE} 60M")
    sutrod.until(lambda: state(sutrod, "db.service") == "unobserved", SETTLES_S)
    cause = promise(sutrod, "db.service")["cause"]
    assert "io controller is not enabled for db.service" in cause
    assert 'run "systemctl set-property db.service IOAccounting=yes"' in cause
    machine.write(controllers, "cpu io memory pids\n")
    sutrod.until(lambda: state(sutrod, "db.service") == "idle", SETTLES_S)
    assert promise(sutrod, "db.service")["cause"] == ""
