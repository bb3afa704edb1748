# SPDX-License-Identifier: LGPL-2.1-or-later
"""Weights are written and other users are served, whatever one user calls."""

import os
import shutil
import signal

import dbus
import dbus.lowlevel
import pytest
from clients import send
from dbus.mainloop.glib import DBusGMainLoop
from fakemachine import INTERFACE, NAME, PATH, Bus, Machine, Sutrod, Systemd, arrive, paused
from journal import Journal

REFUSED = "org.freedesktop.DBus.Error.LimitsExceeded"
# The bus allows a connection 128 calls that have no reply yet.
CALLS = 120
# A user has saved a second of CPU time, which may be overdrawn by one call.
CALL_MS, SAVED_CALLS = 10, 101
# A weight waits for other work for 50 ms at most. The daemon looks at what is ready before a call.
WAIT_MS, LOOK_MS = 50, 1
# The calls of this time, and one before the daemon notices that the weight was written.
CALLS_BEFORE = WAIT_MS // LOOK_MS + 1


def is_refused(sutrod: Sutrod, member: str = "") -> bool:
    """Is a call of this user, or a read of a property, refused because of its other calls?"""
    try:
        if not member:
            sutrod.call("GetPolicy", "a.service")
        elif member == "all":
            sutrod.proxy().GetAll(INTERFACE, dbus_interface=dbus.PROPERTIES_IFACE)
        else:
            sutrod.property(member)
    except dbus.DBusException as e:
        assert e.get_dbus_name() == REFUSED
        return True
    return False


def new_listener(bus: Bus) -> tuple[dbus.bus.BusConnection, list[dbus.lowlevel.Message]]:
    """A connection that has called nothing, and the messages of sutrod to it."""
    caller = dbus.bus.BusConnection(bus.address, mainloop=DBusGMainLoop())
    owner = caller.get_name_owner(NAME)
    sent: list[dbus.lowlevel.Message] = []

    def on_message(_connection: dbus.bus.BusConnection, message: dbus.lowlevel.Message) -> None:
        if message.get_sender() == owner:
            sent.append(message)

    caller.add_message_filter(on_message)
    return caller, sent


def listener(bus: Bus) -> tuple[dbus.bus.BusConnection, list[dbus.lowlevel.Message]]:
    """A connection, and the messages of sutrod to it in the order of their arrival."""
    caller, sent = new_listener(bus)
    # The user of a connection is looked up at its first call.
    caller.call_blocking(NAME, PATH, INTERFACE, "ListUnits", "", ())
    sent.clear()
    return caller, sent


def test_weights_do_not_wait_for_calls(
    bus: Bus, machine: Machine, systemd: Systemd, sutrod: Sutrod
) -> None:
    """A weight is written after the calls of 50 ms, although many more came before it.

    The order of replies and signals is that in which the daemon sent them, and its time passes by
    its work alone.
    """
    box = systemd.start("a.service", 200) + "/box"
    machine.cgroup(box, 300)
    sutrod.start()
    caller, sent = listener(bus)
    caller.add_match_string(f"type='signal',interface='{INTERFACE}',member='WeightChanged'")
    sutrod.settle()
    sutrod.clock.settle(hold=True)
    for _ in range(CALLS):
        send(caller, "ListUnits")
    machine.write(f"/sys/fs/cgroup{box}/io.weight", "default 700\n")
    sutrod.clock.settle(look_ns=LOOK_MS * 1_000_000)
    assert machine.weights(box) == ["default 700"]
    arrive(sent, CALLS + 1)
    members = [message.get_member() for message in sent]
    assert members.index("WeightChanged") <= CALLS_BEFORE
    caller.close()


def go_on_without_the_bus(bus: Bus, sutrod: Sutrod) -> None:
    """The daemon, which was stopped, goes on while the bus is stopped."""
    assert sutrod.process
    with paused(bus.process):
        sutrod.process.send_signal(signal.SIGCONT)
        # A call that waits for the bus would not end, for its time limit is on the virtual clock.
        sutrod.clock.settle()


def test_daemon_does_not_wait_for_the_bus(bus: Bus, sutrod: Sutrod) -> None:
    """The bus answers nothing while it is stopped, as while it has much to do for others."""
    sutrod.start()
    sutrod.settle()
    assert sutrod.process
    sutrod.process.send_signal(signal.SIGSTOP)
    other = dbus.bus.BusConnection(bus.address)
    send(other, "ListUnits")
    go_on_without_the_bus(bus, sutrod)
    # Its calls are run in their order when the bus has named the user.
    assert other.call_blocking(NAME, PATH, INTERFACE, "ListUnits", "", ())


def known_client(bus: Bus, sutrod: Sutrod) -> dbus.bus.BusConnection:
    """A connection whose user the daemon has looked up."""
    client = dbus.bus.BusConnection(bus.address)
    client.call_blocking(NAME, PATH, INTERFACE, "ListUnits", "", ())
    sutrod.settle()
    return client


def send_weight(client: dbus.bus.BusConnection) -> None:
    """Send a setting that ends with the connection, and wait for no reply."""
    send(client, "SetPolicy", "sa(ss)s", "a.service", [("Weight", "700")], "client")


def test_setting_of_a_client_does_not_wait_for_the_bus(
    bus: Bus, systemd: Systemd, sutrod: Sutrod
) -> None:
    """The daemon follows the connection of the client, and the bus answers later."""
    systemd.start("a.service", 200)
    sutrod.start()
    client = known_client(bus, sutrod)
    assert sutrod.process
    # The daemon has the answer of polkit before the bus is stopped, and handles it after that.
    with paused(bus.polkit.process):
        send_weight(client)
        sutrod.settle()
        sutrod.process.send_signal(signal.SIGSTOP)
    bus.ping("org.freedesktop.PolicyKit1")
    go_on_without_the_bus(bus, sutrod)
    sutrod.settle()
    assert [entry["value"] for entry in sutrod.call("GetPolicy", "a.service")] == ["700"]
    client.close()
    sutrod.until(lambda: not sutrod.call("GetPolicy", "a.service"))


def test_client_that_leaves_before_it_is_followed(
    bus: Bus, systemd: Systemd, sutrod: Sutrod
) -> None:
    """Its setting ends although the daemon reads the call after the client has left."""
    systemd.start("a.service", 200)
    sutrod.start()
    client = known_client(bus, sutrod)
    sutrod.clock.settle(hold=True)
    send_weight(client)
    name = client.get_unique_name()
    client.close()
    bus.released(name)
    sutrod.settle()
    bus.ping("org.freedesktop.PolicyKit1")
    sutrod.settle()
    assert not sutrod.call("GetPolicy", "a.service")


def test_end_while_polkit_decides(bus: Bus, sutrod: Sutrod) -> None:
    """The daemon frees a call that waits for polkit; its sanitizer counts what is left."""
    sutrod.start()
    client = known_client(bus, sutrod)
    with paused(bus.polkit.process):
        send_weight(client)
        sutrod.settle()
        sutrod.stop()
    client.close()


def test_user_has_a_quarter_of_the_time(systemd: Systemd, sutrod: Sutrod) -> None:
    """CPU time of calls is saved up again in four times the time, up to a second."""
    systemd.start("a.service", 200)
    sutrod.start()
    sutrod.clock.cpu_ns = CALL_MS * 1_000_000
    sutrod.settle()

    def calls() -> int:
        return next(n for n in range(2 * SAVED_CALLS) if is_refused(sutrod))

    assert calls() == SAVED_CALLS
    sutrod.elapse(0.0039 * CALL_MS)
    assert calls() == 0
    sutrod.elapse(0.0001 * CALL_MS)
    assert calls() == 1
    sutrod.elapse(0.004 * CALL_MS * SAVED_CALLS)
    assert calls() == SAVED_CALLS
    sutrod.elapse(60)
    assert calls() == SAVED_CALLS


@pytest.mark.parametrize("member", ["ManagedLeaves", "PolicyErrors", "MistakenPolicyFiles", "all"])
def test_properties_are_charged_as_methods(systemd: Systemd, sutrod: Sutrod, member: str) -> None:
    """Those that list devices or policies. A constant one has no cost, and is always readable."""
    systemd.start("a.service", 200)
    sutrod.start()
    sutrod.clock.cpu_ns = CALL_MS * 1_000_000
    sutrod.settle()
    calls = next((n for n in range(2 * SAVED_CALLS) if is_refused(sutrod, member)), None)
    assert calls == SAVED_CALLS
    assert is_refused(sutrod)
    assert not is_refused(sutrod, "Version")
    assert not is_refused(sutrod, "DryRun")
    sutrod.elapse(0.004 * CALL_MS)
    assert not is_refused(sutrod, member)


def test_properties_are_as_before(sutrod: Sutrod) -> None:
    """All of them have the same value alone and together, and unknown ones the error of D-Bus."""
    sutrod.start()
    proxy = sutrod.proxy()
    values = proxy.GetAll(INTERFACE, dbus_interface=dbus.PROPERTIES_IFACE)
    assert set(values) == {
        "Version",
        "DryRun",
        "ManagedLeaves",
        "PolicyErrors",
        "MistakenPolicyFiles",
        "ControlStepUSec",
    }
    assert {name: sutrod.property(name) for name in values} == values
    assert proxy.GetAll("", dbus_interface=dbus.PROPERTIES_IFACE) == values
    for interface, name in ((INTERFACE, "Nothing"), ("org.sutro1.Nothing", "PolicyErrors")):
        with pytest.raises(dbus.DBusException) as caught:
            proxy.Get(interface, name, dbus_interface=dbus.PROPERTIES_IFACE)
        assert caught.value.get_dbus_name() == "org.freedesktop.DBus.Error.UnknownProperty"


def test_samples_are_charged_to_their_callers(systemd: Systemd, sutrod: Sutrod) -> None:
    """One call starts samples for 10 s."""
    systemd.start("a.service", 200)
    sutrod.start()
    sutrod.clock.cpu_ns = 400_000_000
    sutrod.settle()
    sutrod.call("ListUsage")
    sutrod.elapse(6)
    assert is_refused(sutrod)
    sutrod.elapse(60)
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


def test_watches_of_a_delegated_unit(
    machine: Machine, systemd: Systemd, sutrod: Sutrod, journal: Journal
) -> None:
    """Of over 500 cgroups in a unit, some have no watch: the comparison finds their changes.

    This is reported once.
    """
    a = systemd.start("a.service", 200)
    service = systemd.start("box.service", 50)
    boxes = [f"{service}/{number}" for number in range(510)]
    sutrod.start(**journal.environment)
    for box in boxes:
        machine.cgroup(box, 300)
    sutrod.settle()
    (message,) = journal.of("WATCHES_LIMITED")
    assert (message["SUTRO_CGROUP"], message["PRIORITY"]) == (service, "6")
    assert message["MESSAGE"].startswith(f"{service}: more than 500 cgroups below it")
    for weight, box in ((700, boxes[0]), (800, boxes[-1])):
        systemd.change("a.service", weight)
        machine.write(f"/sys/fs/cgroup{box}/io.weight", "default 444\n")
        assert sutrod.until(lambda w=weight: machine.weights(a) == [f"default {w}"]) == 0
    assert sutrod.until(lambda: machine.weights(boxes[0]) == ["default 444"]) == 0
    assert machine.weights(boxes[-1]) != ["default 444"]
    sutrod.elapse(61)
    assert machine.weights(boxes[-1]) == ["default 444"]
    assert len(journal.of("WATCHES_LIMITED")) == 1
    # Removed cgroups leave their watches to others, with the next comparison.
    for box in boxes[:20]:
        shutil.rmtree(machine.at(f"/sys/fs/cgroup{box}"))
    sutrod.elapse(61)
    machine.write(f"/sys/fs/cgroup{boxes[-1]}/io.weight", "default 555\n")
    assert sutrod.until(lambda: machine.weights(boxes[-1]) == ["default 555"]) == 0


def test_siblings_are_written_when_their_scale_changes(
    machine: Machine, systemd: Systemd, sutrod: Sutrod
) -> None:
    """Weights of siblings above 1000, the limit of bfq, are scaled together, and others stay."""
    file = "io.bfq.weight"
    a, b = systemd.start("a.service", 200), systemd.start("b.service", 600)
    sutrod.start()
    sutrod.until(lambda: "8:32 600" in machine.weights(b, file))
    # Without an event: the file shows whether the daemon looks at it.
    machine.replace(f"/sys/fs/cgroup{b}/{file}", "default 100\n")
    systemd.change("a.service", 400)
    sutrod.until(lambda: "8:32 400" in machine.weights(a, file))
    assert machine.weights(b, file) == ["default 100"]
    systemd.change("a.service", 3000)
    sutrod.until(lambda: "8:32 1000" in machine.weights(a, file), 1)
    assert "8:32 200" in machine.weights(b, file)
    systemd.vanish("a.service")
    sutrod.until(lambda: "8:32 600" in machine.weights(b, file), 1)


BATCH = 200
BOXES = 1500


def many_boxes(machine: Machine, systemd: Systemd, weight: int = 300) -> list[str]:
    """The cgroups that a service has made."""
    service = systemd.start("box.service", 50)
    boxes = [f"{service}/{number}" for number in range(BOXES)]
    for box in boxes:
        machine.cgroup(box, weight)
    return boxes


def looks(sutrod: Sutrod, seconds: float = 0) -> int:
    """The looks of the loop at what is ready, until it is idle after this time."""
    before_ns = sutrod.clock.now_ns
    passed_ns = round(seconds * 1e9)
    sutrod.clock.now_ns += passed_ns
    sutrod.clock.settle(look_ns=1)
    return sutrod.clock.now_ns - before_ns - passed_ns


def test_comparison_of_many_cgroups(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    """The daemon looks at what is ready after each 200 cgroups, and finds all changes.

    It searches for directories, looks at the cgroups in its tree, and compares their files.
    """
    machine.write("/etc/sutro/sutrod.conf", "[Daemon]\nReconcileSec=20\n")
    sutrod.start()
    sutrod.settle()
    sutrod.elapse(0.1)
    few = looks(sutrod, 20)
    boxes = many_boxes(machine, systemd)
    sutrod.settle()
    sutrod.elapse(20)
    machine.write(f"/sys/fs/cgroup{boxes[-1]}/io.weight", "default 444\n")
    assert looks(sutrod, 20) >= few + 3 * (BOXES // BATCH)
    assert machine.weights(boxes[-1]) == ["default 444"]


def test_requests_about_many_cgroups(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    """After a reload of systemd, settings are read and files compared 200 cgroups at a time."""
    boxes = many_boxes(machine, systemd)
    sutrod.start()
    sutrod.settle()
    machine.replace(f"/sys/fs/cgroup{boxes[-1]}/io.sutro.weight", "default 5\n")
    sutrod.clock.settle(hold=True)
    systemd.emit("Reloading", "b", False)
    sutrod.bus.ping("org.freedesktop.systemd1")
    assert looks(sutrod) >= 2 * (BOXES // BATCH)
    sutrod.settle()
    assert machine.weights(boxes[-1]) == ["default 300"]


@pytest.mark.parametrize("what", ["samples", "a scan"])
def test_calls_between_parts_of_a_walk(
    bus: Bus, machine: Machine, systemd: Systemd, sutrod: Sutrod, what: str
) -> None:
    """Calls are answered between two parts of a sample, and of a search for cgroups.

    The order of messages is that in which the daemon sent them: a call has a turn after each
    part, and ListUsage is answered after the last part of its sample. WeightChanged follows the
    last part of the search.
    """
    machine.write("/etc/sutro/sutrod.conf", "[Daemon]\nReconcileSec=20\n")
    boxes = many_boxes(machine, systemd)
    sutrod.start()
    caller, sent = listener(bus)
    sutrod.settle()
    if what == "samples":
        send(caller, "ListUsage")
        seconds, parts = 1.0, BOXES // BATCH
        sutrod.settle()
    else:
        caller.add_match_string(f"type='signal',interface='{INTERFACE}',member='WeightChanged'")
        machine.replace(f"/sys/fs/cgroup{boxes[-1]}/io.sutro.weight", "default 5\n")
        seconds, parts = 20.0, 2 * (BOXES // BATCH)
    sutrod.clock.settle(hold=True)
    assert not sent
    for _ in range(parts):
        send(caller, "ResolvePath", "s", "/dev/sda")
    sutrod.clock.now_ns += round(seconds * 1e9)
    sutrod.clock.settle(look_ns=1)
    arrive(sent, parts + 1)
    is_resolved = [message.get_signature() == "sasaa{sv}" for message in sent]
    assert is_resolved.index(False) >= parts - 1
    caller.close()


@pytest.mark.parametrize("member", ["ListUsage", "Explain"])
def test_samples_that_take_long(
    bus: Bus, machine: Machine, systemd: Systemd, sutrod: Sutrod, member: str
) -> None:
    """With so many cgroups that a sample takes 4 s, calls are answered after the second one."""
    many_boxes(machine, systemd)
    sutrod.start()
    caller, sent = listener(bus)
    sutrod.settle()
    send(caller, member, *(("ss", "box.service", "") if member == "Explain" else ()))
    sutrod.settle()
    for _ in range(2):
        assert not sent
        sutrod.clock.now_ns += 10**9
        sutrod.clock.settle(look_ns=4 * 10**9 // (BOXES // BATCH))
    arrive(sent, 1)
    assert sent[0].get_type() == dbus.lowlevel.MESSAGE_TYPE_METHOD_RETURN
    caller.close()


def test_unit_that_is_given_to_a_user(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    """systemd makes the cgroup of a user manager, and gives it to the user afterwards.

    The user then writes to subtree_control, which is about the weights of all cgroups below, and
    to another file in turn.
    """
    a = systemd.start("a.service", 200)
    user = systemd.start("user@1000.service", 50, slice="/user.slice/user-1000.slice")
    boxes = [f"{user}/box{number}" for number in range(9)]
    for box in boxes:
        machine.cgroup(box, 300)
    sutrod.start()
    machine.give(user, os.getuid() + 1)
    for i in range(200):
        for file in ("cgroup.subtree_control", "cgroup.procs"):
            machine.write(f"/sys/fs/cgroup{user}/{file}", f"{i}\n")
        if i % 20 == 0:
            sutrod.settle()
    sutrod.settle()
    log = sutrod.log()
    assert f"{user}: more than 1000 events" in log
    machine.write(f"/sys/fs/cgroup{boxes[0]}/io.weight", "default 444\n")
    systemd.change("a.service", 700)
    assert sutrod.until(lambda: machine.weights(a) == ["default 700"]) == 0
    assert sutrod.until(lambda: machine.weights(boxes[0]) == ["default 444"]) == 0
    # Without a watch, the comparison finds the change by systemd.
    systemd.change("user@1000.service", 700)
    sutrod.until(lambda: machine.weights(user) == ["default 700"], 61)


@pytest.mark.parametrize("fault", ["", "fail", "ignore"])
def test_messages_about_a_delegated_cgroup(
    machine: Machine, systemd: Systemd, sutrod: Sutrod, fault: str
) -> None:
    """Its user may write weights all the time without a message. Settings of root are logged."""
    service = systemd.start("box.service", 50)
    box = f"{service}/box"
    machine.cgroup(box, 300)
    sutrod.start()
    log_control = sutrod.bus.connection.get_object(NAME, "/org/freedesktop/LogControl1")
    log_control.Set(
        "org.freedesktop.LogControl1", "LogLevel", "info", dbus_interface=dbus.PROPERTIES_IFACE
    )
    if fault:
        machine.write("/faults", f"box/io.sutro.weight {fault} box/io.bfq.weight {fault}\n")
    before = sutrod.log()
    for number in range(20):
        machine.write(f"/sys/fs/cgroup{box}/io.weight", f"default {400 + number}\n")
        machine.write(f"/sys/fs/cgroup{box}/io.bfq.weight", f"default {500 + number}\n")
        sutrod.elapse(0.1)
    assert machine.weights(box) == ["default 300" if fault else "default 419"]
    assert sutrod.log() == before
    sutrod.call("SetPolicy", box, [("Weight", "700")], "runtime")
    sutrod.until(lambda: f'{box}: io.sutro.weight "' in sutrod.log() or bool(fault))
    assert f"{box}: " in sutrod.log().removeprefix(before)


def test_overflow(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    """A unit changes while events are lost: new requests find it, but not after each loss."""
    machine.write("/etc/sutro/sutrod.conf", "[Daemon]\nReconcileSec=20\n")
    a = systemd.start("a.service", 200)
    b = systemd.start("b.service", 200)
    sutrod.start()
    for weight, least_s in ((700, 0), (800, 10)):
        sutrod.settle()
        with paused(sutrod.process):
            write_often(machine, b, 12000)
            systemd.change("a.service", weight)
        took_s = sutrod.until(lambda w=weight: machine.weights(a) == [f"default {w}"], 42)
        assert took_s >= least_s


def test_overflow_of_a_delegated_cgroup(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    """Only events of that cgroup are lost, and the periodic comparison finds the changes."""
    a = systemd.start("a.service", 200)
    box = systemd.start("box.service", 50) + "/box"
    machine.cgroup(box, 300)
    sutrod.start()
    sutrod.settle()
    with paused(sutrod.process):
        write_often(machine, box, 6000)
        # Made again while events are lost: another directory of the same name.
        shutil.rmtree(machine.at(f"/sys/fs/cgroup{box}"))
        machine.cgroup(box, 333)
        systemd.change("a.service", 700)
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


def test_bytes_of_calls_that_wait_are_limited(bus: Bus, sutrod: Sutrod) -> None:
    """Each has 2 MiB, and those of a user have 8 MiB together. They are served as others."""
    sutrod.start()
    caller, sent = listener(bus)
    for _ in range(32):
        send(caller, "Explain", "ss", 2**20 * "x", 2**20 * "y")
    arrive(sent, 29)
    sutrod.settle()
    assert [message.get_error_name() for message in sent] == 29 * [REFUSED]
    sutrod.elapse(2)
    arrive(sent, 32)
    assert {message.get_error_name() for message in sent[29:]} == {"org.sutro1.Error.NoSuchUnit"}
    assert sutrod.call("ListUsage") == []
    caller.close()
