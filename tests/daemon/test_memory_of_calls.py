# SPDX-License-Identifier: LGPL-2.1-or-later
"""Calls of users on the bus make the daemon keep a limited amount of memory."""

import signal

import dbus
import dbus.lowlevel
from fakemachine import INTERFACE, NAME, PATH, Bus, Machine, Sutrod, Systemd, arrive
from test_crowds import BOXES, REFUSED, many_boxes, new_listener
from test_varlink import largest_kib

# Less than an entry for a cgroup.
CGROUP_KIB = 0.1
# First calls of connections, and the bytes of each.
FIRST_CALLS, FIRST_MIB = 18, 6


def test_memory_of_a_check_without_files(
    machine: Machine, systemd: Systemd, sutrod: Sutrod
) -> None:
    """CheckPolicies of the files in force, which every user may call, keeps nothing for cgroups
    without settings: its time would grow with their number as its memory does.
    """
    many_boxes(machine, systemd)
    systemd.start("a.service", 200)
    sutrod.start()
    sutrod.call("SetPolicy", "a.service", [("ReadBandwidthMin", "/dev/sda 5M")], "runtime")
    sutrod.call("ListUnits")
    before_kib = largest_kib(sutrod)
    for _ in range(3):
        verdict, devices = sutrod.call("CheckPolicies", dbus.Array([], signature="(ss)"))
        assert (verdict, [d["device"] for d in devices]) == ("unknown", ["/dev/sda"])
    assert largest_kib(sutrod) - before_kib < BOXES * CGROUP_KIB


def test_memory_of_first_calls(bus: Bus, sutrod: Sutrod) -> None:
    """The first calls of connections wait for the bus, and together have 64 MiB at most.

    The bus has passed all of them on before it answers about the first one. Small ones are kept.
    """
    sutrod.start()
    sutrod.settle()
    assert sutrod.process
    before_kib = largest_kib(sutrod)
    sutrod.process.send_signal(signal.SIGSTOP)
    clients = [new_listener(bus) for _ in range(FIRST_CALLS + 1)]
    for client, _ in clients:
        text = "x" if client is clients[-1][0] else FIRST_MIB // 2 * 2**20 * "x"
        call = dbus.lowlevel.MethodCallMessage(NAME, PATH, INTERFACE, "Explain")
        call.append(text, text, signature="ss")
        client.send_message(call)
        client.get_name_owner(NAME)
    sutrod.process.send_signal(signal.SIGCONT)
    sutrod.settle()
    # A message that is being read takes up to twice its bytes.
    assert largest_kib(sutrod) - before_kib < (64 + 3 * FIRST_MIB) * 1024
    sutrod.elapse(2)
    for _, sent in clients:
        arrive(sent, 1)
    assert [sent[0].get_error_name() for _, sent in clients].count(REFUSED) < FIRST_CALLS
    assert clients[-1][1][0].get_error_name() == "org.sutro1.Error.NoSuchUnit"
    for client, _ in clients:
        client.close()
