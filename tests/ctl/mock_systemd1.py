# SPDX-License-Identifier: LGPL-2.1-or-later
"""python-dbusmock template: the part of systemd that sutroctl uses.

The template that comes with python-dbusmock has no SetUnitProperties. This one treats
IOWeight and IODeviceWeight as systemd's src/core/dbus-cgroup.c does: a list of device
weights is added to what is there, an empty list clears it, everything is checked before
anything is changed.
"""

import dbus
from dbusmock import MOCK_IFACE, mockobject

BUS_NAME = "org.freedesktop.systemd1"
MAIN_OBJ = "/org/freedesktop/systemd1"
MAIN_IFACE = "org.freedesktop.systemd1.Manager"
UNIT_IFACE = "org.freedesktop.systemd1.Unit"
SYSTEM_BUS = True

UNSET = 2**64 - 1

# name: (load state, active state, IOWeight, IODeviceWeight)
UNITS = {
    "db.service": ("loaded", "active", 300, [("/dev/vg0/db", 400)]),
    "web.service": ("loaded", "active", UNSET, []),
    "backup.service": ("loaded", "inactive", 50, []),
    "batch.slice": ("loaded", "active", 20, []),
    "user-1000.slice": ("loaded", "active", UNSET, []),
    "gone.service": ("not-found", "inactive", UNSET, []),
}


def load(mock, _parameters):
    mock.failures = {}
    mock.paths = {}
    mock.unknown = {}
    for name, (load_state, active_state, weight, device_weights) in UNITS.items():
        path = f"{MAIN_OBJ}/unit/" + name.replace(".", "_2e").replace("-", "_2d")
        cgroup = "org.freedesktop.systemd1." + name.rpartition(".")[2].capitalize()
        state = {"LoadState": load_state, "ActiveState": active_state}
        mock.AddObject(path, UNIT_IFACE, state, [])
        mockobject.objects[path].AddProperties(
            cgroup,
            {
                "IOWeight": dbus.UInt64(weight),
                "IODeviceWeight": _pairs(device_weights),
            },
        )
        mock.paths[name] = (path, cgroup)


def _pairs(weights):
    return dbus.Array(
        [dbus.Struct((path, dbus.UInt64(weight)), signature="st") for path, weight in weights],
        signature="(st)",
    )


def _error(name, text):
    return dbus.exceptions.DBusException(text, name=name)


@dbus.service.method(MOCK_IFACE, in_signature="sss", out_signature="")
def Fail(self, member, name, text):
    """Let a method answer with an error from now on."""
    self.failures[member] = (name, text)


def _fail(self, member):
    if member in self.failures:
        raise _error(*self.failures[member])


@dbus.service.method(MAIN_IFACE, in_signature="", out_signature="a(ssssssouso)")
def ListUnits(self):
    _fail(self, "ListUnits")
    return [
        (name, name, *UNITS[name][:2], "running", "", path, 0, "", "/")
        for name, (path, _) in self.paths.items()
    ]


@dbus.service.method(MAIN_IFACE, in_signature="s", out_signature="o")
def LoadUnit(self, name):
    _fail(self, "LoadUnit")
    if any(character in name for character in " /"):
        raise _error("org.freedesktop.DBus.Error.InvalidArgs", f"Unit name {name} is not valid.")
    if name in self.unknown:
        return self.unknown[name]
    if name not in self.paths:
        path = self.unknown[name] = f"{MAIN_OBJ}/unit/unknown_{len(self.unknown)}"
        cgroup = "org.freedesktop.systemd1." + name.rpartition(".")[2].capitalize()
        state = {"LoadState": "not-found", "ActiveState": "inactive"}
        self.AddObject(path, UNIT_IFACE, state, [])
        mockobject.objects[path].AddProperties(
            cgroup, {"IOWeight": dbus.UInt64(UNSET), "IODeviceWeight": _pairs([])}
        )
        return path
    return self.paths[name][0]


@dbus.service.method(MAIN_IFACE, in_signature="sba(sv)", out_signature="")
def SetUnitProperties(self, name, _runtime, assignments):
    _fail(self, "SetUnitProperties")
    path, cgroup = self.paths[name]
    unit = mockobject.objects[path]
    for key, value in assignments:
        weights = [value] if key == "IOWeight" else [weight for _, weight in value]
        if any(not 1 <= weight <= 10000 and weight != UNSET for weight in weights):
            raise _error("org.freedesktop.DBus.Error.InvalidArgs", f"{key}= value out of range")
    for key, value in assignments:
        if key == "IODeviceWeight":
            stated = dict(unit.props[cgroup]["IODeviceWeight"]) if len(value) else {}
            value = _pairs((stated | dict(value)).items())
        unit.UpdateProperties(cgroup, {key: value})
