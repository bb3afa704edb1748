# SPDX-License-Identifier: LGPL-2.1-or-later
"""python-dbusmock template: the part of systemd that sutrod and sutroctl use.

The units are the objects that tests add (fakemachine.Systemd). IOWeight and IODeviceWeight are
treated as by systemd's src/core/dbus-cgroup.c: a list of device weights is added to the present
one, an empty list clears it, everything is checked before anything is changed. A change takes
effect with a delay, so that a client that does not wait for sutrod finds the old weights.
"""

import re

import dbus
from dbusmock import MOCK_IFACE, mockobject
from gi.repository import GLib

BUS_NAME = "org.freedesktop.systemd1"
MAIN_OBJ = "/org/freedesktop/systemd1"
MAIN_IFACE = "org.freedesktop.systemd1.Manager"
UNIT_IFACE = "org.freedesktop.systemd1.Unit"
UNITS = MAIN_OBJ + "/unit/"
SYSTEM_BUS = True

UNSET = 2**64 - 1
DELAY_MS = 100


def load(mock, _parameters):
    mock.failures = {}


def _error(name, text):
    return dbus.exceptions.DBusException(text, name=name)


@dbus.service.method(MOCK_IFACE, in_signature="sss", out_signature="")
def Fail(self, member, name, text):
    """Let a method answer with an error from now on."""
    self.failures[member] = (name, text)


def _fail(self, member):
    if member in self.failures:
        raise _error(*self.failures[member])


def _path(name):
    return UNITS + "".join(c if c.isalnum() else f"_{ord(c):02x}" for c in name)


@dbus.service.method(MAIN_IFACE, in_signature="", out_signature="")
def Subscribe(self):
    _fail(self, "Subscribe")


@dbus.service.method(MAIN_IFACE, in_signature="", out_signature="a(ssssssouso)")
def ListUnits(self):
    found = []
    for path, unit in mockobject.objects.items():
        if path.startswith(UNITS):
            name = re.sub("_(..)", lambda code: chr(int(code[1], 16)), path.removeprefix(UNITS))
            state = unit.props[UNIT_IFACE]
            states = (state["LoadState"], state["ActiveState"], "running")
            found.append((name, name, *states, "", path, 0, "", "/"))
    return found


def _cgroup(unit):
    found = (properties.get("ControlGroup") for properties in unit.props.values())
    return next(filter(None, found), None)


@dbus.service.method(MAIN_IFACE, in_signature="s", out_signature="o")
def GetUnitByControlGroup(self, cgroup):
    for path, unit in mockobject.objects.items():
        where = _cgroup(unit) if path.startswith(UNITS) else None
        if where and f"{cgroup}/".startswith(f"{where}/"):
            return path
    raise _error("org.freedesktop.systemd1.NoUnitForCgroup", f"No unit for {cgroup}.")


@dbus.service.method(MAIN_IFACE, in_signature="s", out_signature="a(sus)")
def GetUnitProcesses(self, name):
    """Two processes of each unit, one of them in a cgroup below its own."""
    cgroup = _cgroup(mockobject.objects[_path(name)])
    return [(cgroup, 4001, f"/usr/sbin/{name} --serve"), (f"{cgroup}/worker", 4002, "worker: 1")]


@dbus.service.method(MAIN_IFACE, in_signature="s", out_signature="o")
def LoadUnit(self, name):
    if any(character in name for character in " /"):
        raise _error("org.freedesktop.DBus.Error.InvalidArgs", f"Unit name {name} is not valid.")
    path = _path(name)
    if path not in mockobject.objects:
        self.AddObject(path, UNIT_IFACE, {"LoadState": "not-found", "ActiveState": "inactive"}, [])
        mockobject.objects[path].AddProperties(
            "org.freedesktop.systemd1." + name.rpartition(".")[2].capitalize(),
            {
                "ControlGroup": "",
                "IOWeight": dbus.UInt64(UNSET),
                "IODeviceWeight": dbus.Array([], signature="(st)"),
            },
        )
    return path


@dbus.service.method(MAIN_IFACE, in_signature="sba(sv)", out_signature="")
def SetUnitProperties(self, name, _runtime, assignments):
    _fail(self, "SetUnitProperties")
    unit = mockobject.objects[_path(name)]
    interface = "org.freedesktop.systemd1." + name.rpartition(".")[2].capitalize()
    for key, value in assignments:
        weights = [value] if key == "IOWeight" else [weight for _, weight in value]
        if any(not 1 <= weight <= 10000 and weight != UNSET for weight in weights):
            raise _error("org.freedesktop.DBus.Error.InvalidArgs", f"{key}= value out of range")

    def change():
        for key, value in assignments:
            if key == "IODeviceWeight":
                stated = dict(unit.props[interface][key]) if len(value) else {}
                pairs = (stated | dict(value)).items()
                value = dbus.Array([dbus.Struct(p, signature="st") for p in pairs], "(st)")
            unit.UpdateProperties(interface, {key: value})
        return False

    GLib.timeout_add(DELAY_MS, change)
