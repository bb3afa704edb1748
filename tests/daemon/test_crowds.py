# SPDX-License-Identifier: LGPL-2.1-or-later
"""Weights are written and other users are served, whatever one user calls."""

import shutil
import signal
from concurrent.futures import ThreadPoolExecutor

import dbus
import dbus.lowlevel
import pytest
from fakemachine import INTERFACE, NAME, PATH, Bus, Machine, Sutrod, Systemd, wait_until

REFUSED = "org.freedesktop.DBus.Error.LimitsExceeded"
# With this number of units, ListUnits takes about 1 ms.
UNITS = 300
# Much longer than a weight waits; and more than the second of CPU time that a user has saved.
SOME_CALLS, MANY_CALLS = 800, 4000


@pytest.fixture
def crowd(systemd: Systemd) -> str:
    """Many units; the cgroup of a.service, which is one of them."""
    for i in range(UNITS):
        systemd.start(f"u{i}.service")
    return systemd.start("a.service", 200)


def flood(bus: Bus, calls: int) -> None:
    """Send calls at once, and wait for no reply."""
    for _ in range(calls):
        call = dbus.lowlevel.MethodCallMessage(NAME, PATH, INTERFACE, "ListUnits")
        call.set_no_reply(True)
        bus.connection.send_message(call)
    bus.connection.flush()


def is_refused(sutrod: Sutrod) -> bool:
    """Is a call of this user refused because of its other calls?"""
    try:
        sutrod.call("GetPolicy", "a.service")
    except dbus.DBusException as e:
        assert e.get_dbus_name() == REFUSED
        return True
    return False


def test_weights_do_not_wait_for_calls(
    bus: Bus, machine: Machine, sutrod: Sutrod, crowd: str
) -> None:
    """The clock is that of the machine: a weight waits 50 ms at most, the calls take longer."""
    box = f"{crowd}/box"
    machine.cgroup(box, 300)
    sutrod.start(SUTRO_CLOCK="")
    flood(bus, SOME_CALLS)
    with ThreadPoolExecutor(1) as pool:
        last = pool.submit(bus.ping, NAME)
        machine.write(f"/sys/fs/cgroup{box}/io.weight", "default 700\n")
        wait_until(lambda: machine.weights(box) == ["default 700"])
        assert not last.done()
    # The ping is behind all calls of its connection.
    assert last.result() is None


def test_daemon_does_not_wait_for_the_bus(bus: Bus, sutrod: Sutrod) -> None:
    """The bus answers nothing while it is stopped, as while it has much to do for others."""
    sutrod.start()
    sutrod.settle()
    assert sutrod.process
    sutrod.process.send_signal(signal.SIGSTOP)
    other = dbus.bus.BusConnection(bus.address)
    other.send_message(dbus.lowlevel.MethodCallMessage(NAME, PATH, INTERFACE, "ListUnits"))
    # The bus answers in order: it has passed the call on.
    other.get_name_owner(NAME)
    bus.process.send_signal(signal.SIGSTOP)
    try:
        sutrod.process.send_signal(signal.SIGCONT)
        # A call that waits for the bus would not end, for its time limit is on the virtual clock.
        sutrod.clock.settle()
    finally:
        bus.process.send_signal(signal.SIGCONT)
    # Its calls are run in their order when the bus has named the user.
    assert other.call_blocking(NAME, PATH, INTERFACE, "ListUnits", "", ())


def test_user_has_a_quarter_of_the_time(bus: Bus, sutrod: Sutrod, crowd: str) -> None:
    """The clock of the daemon stands still, so what was used is not refilled."""
    sutrod.start()
    assert not is_refused(sutrod)
    flood(bus, MANY_CALLS)
    assert is_refused(sutrod)
    sutrod.elapse(4)
    assert not is_refused(sutrod)


def write_often(machine: Machine, cgroup: str, times: int) -> None:
    """Write two files in turn, for equal events in a row are one."""
    for i in range(times):
        for file in ("io.weight", "cgroup.procs"):
            machine.write(f"/sys/fs/cgroup{cgroup}/{file}", f"default {i % 99 + 1}\n")


def test_delegated_cgroup_that_changes_all_the_time(
    machine: Machine, systemd: Systemd, sutrod: Sutrod
) -> None:
    """After 1000 events it is compared periodically; others are followed as before."""
    a = systemd.start("a.service", 200)
    box = systemd.start("box.service", 50) + "/box"
    machine.cgroup(box, 300)
    sutrod.start()
    write_often(machine, box, 600)
    sutrod.settle()
    assert f"{box}: more than 1000 events" in sutrod.log()
    machine.write(f"/sys/fs/cgroup{box}/io.weight", "default 444\n")
    systemd.change("a.service", 700)
    assert sutrod.until(lambda: machine.weights(a) == ["default 700"]) == 0
    assert machine.weights(box) != ["default 444"]
    sutrod.elapse(61)
    assert machine.weights(box) == ["default 444"]
    # It is watched again.
    machine.write(f"/sys/fs/cgroup{box}/io.weight", "default 555\n")
    assert sutrod.until(lambda: machine.weights(box) == ["default 555"]) == 0


def test_overflow_of_a_delegated_cgroup(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    """Only events of that cgroup are lost, and the periodic comparison finds the changes."""
    a = systemd.start("a.service", 200)
    box = systemd.start("box.service", 50) + "/box"
    machine.cgroup(box, 300)
    sutrod.start()
    sutrod.settle()
    assert sutrod.process
    sutrod.process.send_signal(signal.SIGSTOP)
    write_often(machine, box, 6000)
    # Made again while events are lost: another directory of the same name.
    shutil.rmtree(machine.at(f"/sys/fs/cgroup{box}"))
    machine.cgroup(box, 333)
    systemd.change("a.service", 700)
    sutrod.process.send_signal(signal.SIGCONT)
    sutrod.until(lambda: machine.weights(a) == ["default 700"], 0)
    sutrod.until(lambda: machine.weights(box) == ["default 333"], 3)
    machine.write(f"/sys/fs/cgroup{box}/io.weight", "default 555\n")
    assert sutrod.until(lambda: machine.weights(box) == ["default 555"]) == 0


def test_calls_that_wait_are_limited(bus: Bus, sutrod: Sutrod) -> None:
    """Each waits for the second sample; one user may have 32 of them."""
    sutrod.start()
    for _ in range(32):
        call = dbus.lowlevel.MethodCallMessage(NAME, PATH, INTERFACE, "ListUsage")
        call.set_no_reply(True)
        bus.connection.send_message(call)
    bus.connection.flush()
    with pytest.raises(dbus.DBusException, match="too much time of sutrod"):
        sutrod.proxy().get_dbus_method("ListUsage", INTERFACE)()
    sutrod.elapse(2)
    assert sutrod.call("ListUsage") == []
