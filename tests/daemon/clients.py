# SPDX-License-Identifier: LGPL-2.1-or-later
"""Other clients of the bus: calls that are under way meanwhile, settings, and signals to them."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import dbus
import dbus.lowlevel
from dbus.mainloop.glib import DBusGMainLoop
from fakemachine import INTERFACE, NAME, PATH, Bus


@contextmanager
def calling(bus: Bus, method: str, *arguments: Any) -> Iterator[Future[Any]]:
    """A call by another client, which is under way meanwhile."""
    connection = dbus.bus.BusConnection(bus.address)
    proxy = connection.get_object(NAME, PATH, introspect=False)
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(proxy.get_dbus_method(method, INTERFACE), *arguments)
    connection.close()


def send(caller: dbus.bus.BusConnection, member: str, signature: str = "", *values: Any) -> None:
    """Send a call, and wait for no reply; the bus has passed it on afterwards."""
    call = dbus.lowlevel.MethodCallMessage(NAME, PATH, INTERFACE, member)
    call.append(*values, signature=signature)
    caller.send_message(call)
    # The bus answers in order.
    caller.get_name_owner(NAME)


def client_of(bus: Bus, subject: str, **assignments: str) -> dbus.bus.BusConnection:
    """A client with settings, which end with its connection."""
    client = dbus.bus.BusConnection(bus.address)
    client.set_exit_on_disconnect(False)
    pairs = dbus.Array(list(assignments.items()), signature="(ss)")
    proxy = client.get_object(NAME, PATH, introspect=False)
    proxy.SetPolicy(subject, pairs, "client", dbus_interface=INTERFACE)
    return client


@contextmanager
def heard(bus: Bus, member: str, interface: str = INTERFACE) -> Iterator[list[tuple[Any, ...]]]:
    """The arguments of each signal of the daemon that has arrived; see happens()."""
    signals: list[tuple[Any, ...]] = []
    connection = dbus.bus.BusConnection(bus.address, mainloop=DBusGMainLoop())
    connection.set_exit_on_disconnect(False)
    connection.add_signal_receiver(lambda *values: signals.append(values), member, interface, NAME)
    yield signals
    connection.close()
