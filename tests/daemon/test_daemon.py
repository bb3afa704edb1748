# SPDX-License-Identifier: LGPL-2.1-or-later
"""The writes of sutrod, on a fake machine with a mock of systemd."""

import signal

import dbus
import pytest
from fakemachine import PATIENCE_S, Bus, Machine, Sutrod, Systemd, arrive, wait_until


def test_every_level(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    machine.cgroup("/user.slice")
    systemd.unit("user.slice", "/user.slice", 500)
    a = systemd.start("a.service", 200)
    b = systemd.start("b.service")
    inner = systemd.start("app.slice", 10000, slice="/user.slice")
    scope = systemd.start("run.scope", 1, slice=inner)
    sutrod.start()
    assert machine.weights("/user.slice") == ["default 500"]
    assert machine.weights("/system.slice") == ["default 100"]
    assert machine.weights(a) == ["default 200"]
    assert machine.weights(b) == ["default 100"]
    assert machine.weights(inner) == ["default 10000"]
    assert machine.weights(scope) == ["default 1"]
    units = {u["unit"]: u for u in sutrod.call("ListUnits")}
    names = "init.scope system.slice user.slice a.service b.service app.slice run.scope"
    assert set(units) == set(names.split())
    assert (units["a.service"]["weight"], units["a.service"]["weight_set"]) == (200, True)
    assert (units["b.service"]["weight"], units["b.service"]["weight_set"]) == (100, False)
    assert units["run.scope"]["cgroup"] == "/user.slice/app.slice/run.scope"


def test_only_differences_are_written(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    """Cgroups with default weights have none of the writes."""
    a = systemd.start("a.service", 200)
    sutrod.start()
    files = f"/sys/fs/cgroup{a}"
    assert sorted(machine.writes()) == [
        f"{files}/io.bfq.weight 8:32 200",
        f"{files}/io.sutro.weight default 200",
    ]
    sutrod.call("Reload")
    sutrod.elapse(1)
    assert len(machine.writes()) == 2


def test_device_weight_on_a_stack(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    machine.mount("/srv", "8:32", "ext4", "/dev/sdc")
    a = systemd.start("a.service", 200, [("/dev/mapper/vg-db", 300), ("/srv", 40)])
    sutrod.start()
    assert machine.weights(a) == ["8:0 300", "8:16 300", "default 200"]
    assert machine.weights(a, "io.bfq.weight") == ["8:32 40", "default 100"]
    systemd.change("a.service", 200, [("/dev/mapper/vg-db", 300), ("/dev/sdb", 7)])
    sutrod.until(lambda: machine.weights(a) == ["8:0 300", "8:16 7", "default 200"])
    systemd.change("a.service", 200)
    sutrod.until(lambda: machine.weights(a) == ["default 200"])


def test_two_stacks_on_a_leaf(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    """The larger statement holds on the shared leaf; one that names the leaf beats both."""
    machine.set_scheduler("sdd", "sutro")
    machine.stripe("dm-1", "254:1", "sdb sdd", "right")
    both = [("/dev/mapper/vg-db", 400), ("/dev/mapper/right", 250)]
    a = systemd.start("a.service", 150, both)
    b = systemd.start("b.service", 150, [*both, ("/dev/sdb", 120)])
    sutrod.start()
    assert machine.weights(a) == ["8:0 400", "8:16 400", "8:48 250", "default 150"]
    assert machine.weights(b) == ["8:0 400", "8:16 120", "8:48 250", "default 150"]


def test_bfq_ratio_above_its_range(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    a, b = systemd.start("a.service", 3000), systemd.start("b.service", 1000)
    sutrod.start()
    assert machine.weights(a, "io.bfq.weight") == ["8:32 999", "default 100"]
    assert machine.weights(b, "io.bfq.weight") == ["8:32 333", "default 100"]
    # A third one beside them changes their scale.
    c = systemd.start("c.service", 4000)
    sutrod.until(lambda: machine.weights(c, "io.bfq.weight") == ["8:32 1000", "default 100"])
    sutrod.until(lambda: machine.weights(b, "io.bfq.weight") == ["8:32 250", "default 100"])
    systemd.vanish("c.service")
    sutrod.until(lambda: machine.weights(b, "io.bfq.weight") == ["8:32 333", "default 100"])
    systemd.change("a.service", 100)
    sutrod.until(lambda: machine.weights(b, "io.bfq.weight") == ["8:32 1000", "default 100"])
    systemd.change("b.service", 100)
    sutrod.until(lambda: machine.weights(b, "io.bfq.weight") == ["default 100"])
    assert machine.weights(a, "io.bfq.weight") == ["default 100"]


def test_more_units_than_the_bus_takes_calls(
    machine: Machine, systemd: Systemd, sutrod: Sutrod
) -> None:
    """The bus refuses the 129th call without a reply, and each unit takes several."""
    paths = [systemd.start(f"u{i}.service", 101 + i, [("/dev/sdb", 9)]) for i in range(150)]
    sutrod.start()
    for i, path in enumerate(paths):
        assert machine.weights(path) == ["8:16 9", f"default {101 + i}"]


def test_set_property_is_followed(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    """systemd sends no signal for IOWeight=; the write of io.weight is what shows it."""
    a = systemd.start("a.service", 200)
    sutrod.start()
    systemd.change("a.service", 700)
    assert sutrod.until(lambda: machine.weights(a) == ["default 700"]) == 0
    systemd.change("a.service")
    assert sutrod.until(lambda: machine.weights(a) == ["default 100"]) == 0


def test_iocost(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    """A leaf of blk-iocost has its lines in io.weight, beside those of systemd and of others."""
    machine.set_scheduler("sdd", "mq-deadline")
    machine.write(
        "/sys/fs/cgroup/io.cost.qos",
        "8:32 enable=0 ctrl=auto\n8:48 enable=1 ctrl=user rpct=0\n",
    )
    machine.stripe("dm-1", "254:1", "sda sdc sdd", "all")
    a = systemd.start("a.service", 200, [("/dev/mapper/all", 300), ("/dev/sdc", 50)])
    sutrod.start()
    assert machine.weights(a) == ["8:0 300", "default 200"]
    assert machine.weights(a, "io.bfq.weight") == ["8:32 50", "default 100"]
    assert machine.weights(a, "io.weight") == ["8:48 300", "default 200"]
    kept = machine.at("/run/sutro/iocost")
    assert kept.read_text() == f"8:48 {a}\tdefault / 300\n"
    (leaf,) = sutrod.call("Explain", "a.service", "/dev/sdd")["leaves"]
    assert (leaf["backend"], leaf["written"], leaf["read_back"]) == ("iocost", *2 * ["8:48 300"])
    assert leaf["file"] == str(machine.at(f"/sys/fs/cgroup{a}/io.weight"))
    # A successor that has only the records takes back the daemon's lines, and no others.
    sutrod.stop(signal.SIGKILL)
    machine.write(f"/sys/fs/cgroup{a}/io.weight", "default 200\n8:48 300\n8:99 5\n")
    sutrod.start()
    assert sutrod.stop() == 0
    assert machine.weights(a, "io.weight") == ["8:99 5", "default 200"]
    assert kept.read_text() == ""


def test_iocost_of_a_stack_is_changed(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    """The kernel takes no line for a stack: systemd leaves io.weight as the daemon wrote it."""
    machine.set_scheduler("sdd", "mq-deadline")
    machine.write("/sys/fs/cgroup/io.cost.qos", "8:48 enable=1 ctrl=user rpct=0\n")
    machine.stripe("dm-1", "254:1", "sda sdd", "all")
    a = systemd.start("a.service", 200, [("/dev/mapper/all", 300)])
    sutrod.start()
    file = f"/sys/fs/cgroup{a}/io.weight"
    for weight in (500, 700):
        sutrod.settle()
        systemd.change("a.service", 200, [("/dev/mapper/all", weight)], write=False)
        machine.write(file, machine.at(file).read_text())
        wanted = [f"8:48 {weight}", "default 200"]
        sutrod.until(lambda w=wanted: machine.weights(a, "io.weight") == w, 1)


@pytest.mark.parametrize("is_seen", [True, False])
@pytest.mark.parametrize("new", ["8:48 700\n", ""])
def test_owner_changes_an_overridden_line_of_iocost(
    machine: Machine, systemd: Systemd, sutrod: Sutrod, new: str, is_seen: bool
) -> None:
    """systemctl set-property changes IODeviceWeight=; the stop restores the new value.

    The last change may come just before the daemon ends.
    """
    machine.set_scheduler("sdd", "mq-deadline")
    machine.write("/sys/fs/cgroup/io.cost.qos", "8:48 enable=1 ctrl=user rpct=0\n")
    a = systemd.start("a.service", 200, [("/dev/sdd", 300)])
    machine.write(f"/sys/fs/cgroup{a}/io.weight", "default 200\n8:48 300\n")
    sutrod.start()
    weight = dbus.Array([("Weight", "/dev/sdd 500")], signature="(ss)")
    sutrod.call("SetPolicy", "a.service", weight, "runtime")
    sutrod.until(lambda: machine.weights(a, "io.weight") == ["8:48 500", "default 200"])
    machine.write(f"/sys/fs/cgroup{a}/io.weight", f"default 200\n{new}")
    if is_seen:
        sutrod.until(lambda: machine.weights(a, "io.weight") == ["8:48 500", "default 200"])
    assert sutrod.stop() == 0
    assert machine.weights(a, "io.weight") == sorted([*new.splitlines(), "default 200"])


def test_controller_turned_off(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    """The last weight of a slice is unset: systemd takes the files away instead of writing one."""
    a = systemd.start("a.service", 450)
    sutrod.start()
    systemd.change("a.service", write=False)
    for file in machine.at(f"/sys/fs/cgroup{a}").glob("io.*"):
        file.unlink()
    machine.write("/sys/fs/cgroup/system.slice/cgroup.subtree_control", "memory pids\n")
    sutrod.until(lambda: not sutrod.call("Explain", "a.service", "")["weight_set"])
    explained = sutrod.call("Explain", "a.service", "")
    assert explained["weight"] == 100
    assert {leaf["file"] for leaf in explained["leaves"]} == {""}
    writes = machine.writes()
    systemd.change("a.service", 700, signal=True, write=False)
    sutrod.elapse(1)
    assert machine.writes() == writes


def test_signals_of_systemd(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    a = systemd.start("a.service", 200)
    sutrod.start()
    systemd.change("a.service", 300, signal=True, write=False)
    sutrod.until(lambda: machine.weights(a) == ["default 300"])
    systemd.change("a.service", 400, write=False)
    systemd.emit("UnitNew", "so", "a.service", dbus.ObjectPath(systemd.object_path("a.service")))
    sutrod.until(lambda: machine.weights(a) == ["default 400"])
    # daemon-reload: a unit file was edited.
    systemd.change("a.service", 500, write=False)
    systemd.emit("Reloading", "b", True)
    sutrod.settle()
    assert machine.weights(a) == ["default 400"]
    systemd.emit("Reloading", "b", False)
    sutrod.until(lambda: machine.weights(a) == ["default 500"])


def test_systemd_loads_its_units_anew(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    """daemon-reload: all units are removed and new again, and nothing happened to them."""
    a = systemd.start("a.service", 200, [("/dev/sda", 300)])
    sutrod.start()
    assert machine.weights(a) == ["8:0 300", "default 200"]
    writes = len(machine.writes())
    path = dbus.ObjectPath(systemd.object_path("a.service"))
    systemd.emit("Reloading", "b", True)
    systemd.emit("UnitRemoved", "so", "a.service", path)
    systemd.emit("UnitNew", "so", "a.service", path)
    sutrod.settle()
    systemd.emit("Reloading", "b", False)
    sutrod.settle()
    assert machine.weights(a) == ["8:0 300", "default 200"]
    assert len(machine.writes()) == writes
    # Later it is removed in earnest.
    systemd.emit("UnitRemoved", "so", "a.service", path)
    sutrod.until(lambda: machine.weights(a) == ["default 200"])


def test_systemd_is_away(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    """daemon-reexec: for a moment systemd does not answer; the settings stay."""
    a = systemd.start("a.service", 200, [("/dev/sda", 300)])
    sutrod.start()
    systemd.bus.systemd.terminate()
    machine.write(f"/sys/fs/cgroup{a}/io.weight", "default 200\n")
    sutrod.elapse(5)
    assert machine.weights(a) == ["8:0 300", "default 200"]


def test_start_while_systemd_is_away(bus: Bus, systemd: Systemd, sutrod: Sutrod) -> None:
    """The daemon is ready when no answer is to come, also if the last one is an error."""
    systemd.start("a.service", 200)
    bus.systemd.terminate()
    sutrod.start()
    assert "systemd does not answer about a.service" in sutrod.log()


def test_systemd_starts_again(bus: Bus, machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    a = systemd.start("a.service", 200)
    sutrod.start()
    bus.systemd.terminate()
    bus.systemd = bus.mock_systemd()
    again = Systemd(bus, machine)
    again.unit("a.service", a, 900)
    again.emit("Reloading", "b", False)
    sutrod.until(lambda: machine.weights(a) == ["default 900"])


@pytest.mark.parametrize(
    ("name", "warnings"),
    [
        ("org.freedesktop.systemd1.AlreadySubscribed", 0),
        ("org.freedesktop.DBus.Error.AccessDenied", 1),
    ],
)
def test_systemd_refuses_to_send_signals(
    systemd: Systemd, sutrod: Sutrod, name: str, warnings: int
) -> None:
    """After daemon-reexec systemd still has its subscribers, and refuses to add them again."""
    systemd.control.Fail("Subscribe", name, "No.")
    sutrod.start()
    sutrod.settle()
    assert sutrod.log().count("systemd refuses to send signals: No.") == warnings


@pytest.mark.parametrize("weight", [0, 10001, 2**63])
def test_garbage_from_the_bus(
    machine: Machine, systemd: Systemd, sutrod: Sutrod, weight: int
) -> None:
    a = systemd.start("a.service", weight, [("/dev/sda", weight), ("/dev/sdb", 20)])
    sutrod.start()
    assert machine.weights(a) == ["8:16 20", "default 100"]
    assert f"a.service: IOWeight={weight} is not in 1..10000" in sutrod.log()
    assert f"a.service: IODeviceWeight=/dev/sda {weight} is not in 1..10000" in sutrod.log()


def test_unknown_paths(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    """A path that does not resolve is ignored until it does."""
    machine.mount("/run", "0:25", "tmpfs", "tmpfs")
    a = systemd.start("a.service", 200, [("/dev/mapper/new", 300), ("/run", 50)])
    sutrod.start()
    assert machine.weights(a) == ["default 200"]
    assert "/dev/mapper/new" in sutrod.log()
    machine.stripe("dm-1", "254:1", "sdb", "new")
    sutrod.call("Reload")
    sutrod.until(lambda: machine.weights(a) == ["8:16 300", "default 200"])


def test_units_come_and_go(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    sutrod.start()
    a = systemd.start("a.service", 200)
    sutrod.until(lambda: machine.weights(a) == ["default 200"])
    systemd.vanish("a.service")
    sutrod.until(lambda: "a.service" not in [u["unit"] for u in sutrod.call("ListUnits")])
    assert sutrod.error("Explain", "a.service", "")[0] == "NoSuchUnit"
    systemd.start("a.service", 300)
    sutrod.until(lambda: machine.weights(a) == ["default 300"])


def test_unit_that_systemd_does_not_know(machine: Machine, sutrod: Sutrod) -> None:
    """A cgroup that only looks like a unit is mirrored like any other."""
    machine.cgroup("/system.slice/fake.service", 77)
    sutrod.start()
    assert machine.weights("/system.slice/fake.service") == ["default 77"]
    assert sutrod.error("Explain", "fake.service", "")[0] == "NoSuchUnit"


def test_question_that_answers_itself(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    """systemd announces a unit that it loads only because of a request by sutrod."""
    machine.cgroup("/system.slice/fake.service", 77)
    sutrod.start()
    # Each request for a unit that systemd does not have leaves lines in the log.
    lines = sutrod.log().count("fake.service: ")
    assert lines
    for name in ("fake.service", "other.service"):
        path = dbus.ObjectPath(systemd.object_path(name))
        systemd.emit("UnitNew", "so", name, path)
        systemd.emit("UnitRemoved", "so", name, path)
    sutrod.settle()
    assert sutrod.log().count("fake.service: ") == lines
    assert "other.service: " not in sutrod.log()
    assert machine.weights("/system.slice/fake.service") == ["default 77"]


def test_hundreds_of_units(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    sutrod.start()
    names = [f"u{i}.service" for i in range(150)]
    for i, name in enumerate(names):
        systemd.start(name, 101 + i)
        if i % 3 == 2:
            systemd.vanish(names[i - 1])
    left = [n for i, n in enumerate(names) if i % 3 != 1 or i == len(names) - 1]
    for name in left:
        want = [f"default {101 + names.index(name)}"]
        sutrod.until(lambda n=name, w=want: machine.weights(f"/system.slice/{n}") == w)
    listed = {u["unit"] for u in sutrod.call("ListUnits")}
    assert listed == {"init.scope", "system.slice", *left}


def test_stop_restores(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    a = systemd.start("a.service", 200, [("/dev/mapper/vg-db", 300)])
    box = f"{a}/box"
    machine.cgroup(box, 700)
    sutrod.start()
    assert machine.weights(a, "io.bfq.weight") == ["8:32 200", "default 100"]
    assert sutrod.stop() == 0
    for path in (a, box, "/system.slice"):
        assert machine.weights(path) == ["default 100"]
        assert machine.weights(path, "io.bfq.weight") == ["default 100"]
    assert machine.weights(a, "io.weight") == ["default 200"]
    assert machine.weights(box, "io.weight") == ["default 700"]
    # The schedulers stay.
    assert machine.scheduler("sda") == "sutro"


def test_kill_and_restart(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    a = systemd.start("a.service", 200, [("/dev/mapper/vg-db", 300)])
    b = systemd.start("b.service", 50)
    sutrod.start()
    sutrod.stop(signal.SIGKILL)
    assert machine.weights(a) == ["8:0 300", "8:16 300", "default 200"]
    # Changes while no daemon runs.
    systemd.change("a.service", 210)
    systemd.vanish("b.service")
    c = systemd.start("c.service", 60)
    before = len(machine.writes())
    sutrod.start()
    assert machine.weights(a) == ["default 210"]
    assert machine.weights(c) == ["default 60"]
    assert not [w for w in machine.writes()[before:] if b in w]
    sutrod.stop(signal.SIGKILL)
    sutrod.start()
    sutrod.stop()
    assert machine.weights(a) == machine.weights(c) == ["default 100"]


def test_kill_at_any_moment(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    """Whenever the first daemon is killed, the second one brings all lines to their values."""
    paths = [systemd.start(f"u{i}.service", 101 + i, [("/dev/sdb", 9)]) for i in range(40)]
    for count in (0, 1, 2, 30, 81, 100):
        sutrod.spawn()
        wait_until(lambda n=count: len(machine.writes()) >= n)
        sutrod.stop(signal.SIGKILL)
    sutrod.start()
    for i, path in enumerate(paths):
        assert machine.weights(path) == ["8:16 9", f"default {101 + i}"]
    sutrod.stop()
    for path in paths:
        assert machine.weights(path) == ["default 100"]
        assert machine.weights(path, "io.bfq.weight") == ["default 100"]


def test_dry_run_writes_nothing(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    a = systemd.start("a.service", 200, [("/dev/mapper/vg-db", 300)])
    sutrod.start("--dry-run")
    assert sutrod.property("DryRun")
    log = sutrod.log()
    assert f'{a}: would write "default 200" to io.sutro.weight: IOWeight=200 of a.service' in log
    assert f'{a}: would write "8:0 300" to io.sutro.weight' in log
    r = sutrod.call("UseDevices", ["/dev/sdd"])
    assert not r[0]["changed"]
    systemd.change("a.service", 300)
    sutrod.until(lambda: '"default 300"' in sutrod.log())
    kept = "/etc/sutro/policy.control/a.service.policy"
    machine.write(kept, "[Match]\nUnit=a.service\n[X-Sutro]\nWeight=7\n")
    for arguments in (("SetPolicy", "a.service", [("Weight", "9")]), ("ResetPolicy", "a.service")):
        assert "--dry-run" in sutrod.error(*arguments, "persistent")[1]
    assert "Weight=7" in machine.at(kept).read_text()
    sutrod.stop()
    assert machine.writes() == []
    assert not machine.at("/run/sutro").exists()


def test_read_back_mismatch(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    """A write without its effect is logged once, and not repeated for ever."""
    a = systemd.start("a.service", 200)
    machine.fault(f"{a}/io.sutro.weight", "ignore")
    sutrod.start()
    assert 'wrote "default 200" to io.sutro.weight, but read back "default 100".' in sutrod.log()
    sutrod.elapse(1)
    assert len([w for w in machine.writes() if a in w and "sutro" in w]) == 1
    assert 'io.sutro.weight "default 100" -> ' not in sutrod.log()
    machine.write("/faults", "")
    machine.write(f"/sys/fs/cgroup{a}/io.weight", "default 200\n")
    sutrod.until(lambda: machine.weights(a) == ["default 200"])


def test_failing_write(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    a, b = systemd.start("a.service", 200), systemd.start("b.service", 300)
    machine.fault(f"{a}/io.sutro.weight", "fail")
    sutrod.start()
    assert f'{a}: cannot write "default 200" to io.sutro.weight: Input/output error.' in (
        sutrod.log()
    )
    assert machine.weights(b) == ["default 300"]
    (leaf,) = sutrod.call("Explain", "a.service", "/dev/sda")["leaves"]
    assert leaf["error"] == (
        'the kernel refused "default 200" for io.sutro.weight: Input/output error'
    )
    (leaf,) = sutrod.call("Explain", "b.service", "/dev/sda")["leaves"]
    assert leaf["error"] == ""
    machine.write("/faults", "")
    systemd.change("a.service", 400)
    sutrod.until(lambda: machine.weights(a) == ["default 400"])


def test_written_over(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    """systemd writes the default of io.bfq.weight, which clears our line there."""
    a = systemd.start("a.service", 200, [("/dev/sda", 300)])
    sutrod.start()
    machine.write(f"/sys/fs/cgroup{a}/io.bfq.weight", "default 109\n")
    sutrod.until(lambda: machine.weights(a, "io.bfq.weight") == ["8:32 200", "default 109"])
    for text in ("default 5\n8:0 8\n", "default 0\n8:0 10001\nx\n"):
        machine.write(f"/sys/fs/cgroup{a}/io.sutro.weight", text)
        sutrod.until(lambda: machine.weights(a) == ["8:0 300", "default 200"])
    sutrod.stop()
    assert machine.weights(a, "io.bfq.weight") == ["default 109"]


def test_scheduler_switched_by_hand(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    a = systemd.start("a.service", 200, [("/dev/sdd", 30)])
    sutrod.start()
    assert machine.weights(a) == ["default 200"]
    machine.set_scheduler("sdd", "sutro")
    sutrod.until(lambda: machine.weights(a) == ["8:48 30", "default 200"])
    machine.set_scheduler("sda", "bfq")
    sutrod.until(
        lambda: machine.weights(a, "io.bfq.weight") == ["8:0 200", "8:32 200", "default 100"]
    )


def test_scheduler_switched_before_its_watch(
    machine: Machine, systemd: Systemd, sutrod: Sutrod
) -> None:
    """Disks are read, then watched. A switch in between makes no event."""
    a = systemd.start("a.service", 200, [("/dev/sdd", 30)])
    machine.fault("sdd/queue/scheduler", "unwatched")
    sutrod.start()
    sutrod.until(lambda: machine.weights(a) == ["8:48 30", "default 200"], 1)


def test_scheduler_switched_there_and_back(
    machine: Machine, systemd: Systemd, sutrod: Sutrod
) -> None:
    """Two switches, of which one event is left: the kernel has forgotten the weights in silence."""
    a = systemd.start("a.service", 200, [("/dev/sda", 30)])
    sutrod.start()
    assert machine.weights(a) == ["8:0 30", "default 200"]
    machine.replace(f"/sys/fs/cgroup{a}/io.sutro.weight", "default 200\n")
    machine.set_scheduler("sda", "sutro")
    sutrod.until(lambda: machine.weights(a) == ["8:0 30", "default 200"])


def test_periodic_comparison(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    """A change without an event is found: here a file behind a new inode, which has no watch."""
    machine.write("/etc/sutro/sutrod.conf", "[Daemon]\nReconcileSec=1\n")
    a = systemd.start("a.service", 200)
    sutrod.start()
    machine.replace(f"/sys/fs/cgroup{a}/io.sutro.weight", "default 9\n")
    sutrod.until(lambda: machine.weights(a) == ["default 200"])


@pytest.mark.parametrize("name", ["io.service", "_x.service"])
def test_unit_with_an_escaped_cgroup(
    machine: Machine, systemd: Systemd, sutrod: Sutrod, name: str
) -> None:
    """systemd prefixes cgroups whose names could be those of the kernel's files."""
    cgroup = f"/system.slice/_{name}"
    systemd.unit(name, cgroup, 300)
    machine.cgroup(cgroup, 300)
    sutrod.start()
    assert machine.weights(cgroup) == ["default 300"]
    assert sutrod.call("Explain", name, "")["cgroup"] == cgroup
    sutrod.call("SetPolicy", name, [("Weight", "700")], "runtime")
    sutrod.until(lambda: machine.weights(cgroup) == ["default 700"])


def test_reload_of_systemd_requests_units_once(
    bus: Bus, machine: Machine, systemd: Systemd, sutrod: Sutrod
) -> None:
    """systemd removes all units and announces them anew, then it signals the end of the reload."""
    names = [f"u{number}.service" for number in range(20)]
    for name in names:
        systemd.start(name, 200)
    sutrod.start()
    sutrod.settle()
    with bus.monitored("Get") as calls:
        systemd.emit("Reloading", "b", True)
        for name in names:
            path = dbus.ObjectPath(systemd.object_path(name))
            systemd.emit("UnitRemoved", "so", name, path)
            systemd.emit("UnitNew", "so", name, path)
            sutrod.settle()
        assert not calls
        systemd.emit("Reloading", "b", False)
        sutrod.settle()
        # Five properties of each unit, and of init.scope and system.slice.
        arrive(calls, 5 * 22)
        sutrod.elapse(1)
        sutrod.settle()
    assert len(calls) == 5 * 22


def test_lost_bus(bus: Bus, machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    """Without the bus the daemon ends, to be started again, and the weights stay."""
    a = systemd.start("a.service", 200)
    sutrod.start()
    bus.process.terminate()
    bus.process.wait()
    assert sutrod.process
    assert sutrod.process.wait(PATIENCE_S) != 0
    assert machine.weights(a) == ["default 200"]


def test_watchdog(systemd: Systemd, sutrod: Sutrod) -> None:
    """The daemon reports within each 0.4 s of its clock."""
    sutrod.start(WATCHDOG_USEC="400000")
    for _ in range(3):
        sutrod.elapse(0.4)
        assert sutrod.notified() == b"WATCHDOG=1"
