# SPDX-License-Identifier: LGPL-2.1-or-later
"""python-dbusmock template: a sutrod over a small machine that does not exist.

  /dev/vg0/db  dm-0 striped ---- hda, hdb          (sutro, sutro)
  /dev/vg0/log dm-1 linear  ---- hdb
  /dev/mapper/secret dm-2 crypt - md0 raid1 - sda1, sdb   (bfq, none), sda1 is a partition
  loop0, not in use

Promises and policies are in mock_promises.py.

As the real daemon it hears of new weights through systemd's PropertiesChanged, here with
a delay, so that a client that does not wait sees the old state.
"""

import sys
from pathlib import Path

import dbus
from dbusmock import MOCK_IFACE
from gi.repository import GLib

sys.path.insert(0, str(Path(__file__).parent))
import mock_promises  # noqa: E402

BUS_NAME = "org.sutro1"
MAIN_OBJ = "/org/sutro1"
MAIN_IFACE = "org.sutro1.Manager"
SYSTEM_BUS = True

UNSET = 2**64 - 1
GIB = 2**30
DELAY_MS = 300

# name: (devno, kind, slaves, aliases, scheduler, managed, size)
DEVICES = {
    "dm-0": ("254:0", "striped", ["hda", "hdb"], ["/dev/mapper/vg0-db", "/dev/vg0/db"], "", 0, 4),
    "dm-1": ("254:1", "linear", ["hdb"], ["/dev/mapper/vg0-log", "/dev/vg0/log"], "", 0, 1),
    "dm-2": ("254:2", "crypt", ["md0"], ["/dev/mapper/secret"], "", 0, 20),
    "hda": ("259:0", "disk", [], [], "sutro", 1, 10),
    "hdb": ("259:1", "disk", [], [], "sutro", 1, 10),
    "loop0": ("7:0", "loop", [], [], "none", 0, 0),
    "md0": ("9:0", "raid1", ["sda1", "sdb"], ["/dev/md/safe"], "", 0, 20),
    "sda": ("8:0", "disk", [], [], "bfq", 0, 21),
    "sda1": ("8:1", "partition", ["sda"], [], "", 0, 20),
    "sdb": ("8:16", "disk", [], [], "none", 0, 20),
}
# path: device; besides nodes and aliases
PATHS = {"/srv": "dm-0", "/srv/db/file": "dm-0"}
NO_QUEUE = ["/proc", "/tmp"]

# unit: (cgroup, IOWeight, IODeviceWeight, {leaf: (entitled, got, bytes read, bytes written)})
UNITS = {
    "-.slice": ("/", UNSET, {}, {"hda": (1.0, 1.0, 2**30, 0)}),
    "batch.slice": ("/batch.slice", 20, {}, {}),
    "job.service": ("/batch.slice/job.service", UNSET, {}, {"hda": (0.04, 0.0002, 4096, 0)}),
    "db.service": (
        "/system.slice/db.service",
        300,
        {"/dev/vg0/db": 400},
        {"hda": (0.8, 0.7931, 31 * 2**20, 1536), "hdb": (0.8, 0.8012, 32 * 2**20, 0)},
    ),
    "web.service": (
        "/system.slice/web.service",
        UNSET,
        {},
        {"hda": (0.2, 0.2067, 8 * 2**20, 0), "hdb": (0.2, 0.1988, 8 * 2**20, 0)},
    ),
    "system.slice": ("/system.slice", UNSET, {}, {}),
    "idle.service": ("/system.slice/idle.service", UNSET, {}, {}),
}


def load(mock, _parameters):
    mock.failures = {}
    mock.deaf = mock.overwritten = False
    mock.units = dict(UNITS)
    mock.weights = {unit: (weight, dict(device)) for unit, (_, weight, device, _) in UNITS.items()}
    mock.schedulers = {name: device[4] for name, device in DEVICES.items()}
    mock.managed = {name: bool(device[5]) for name, device in DEVICES.items()}
    managed = ["/dev/" + name for name in DEVICES if mock.managed[name]]
    mock.AddProperties(
        MAIN_IFACE,
        {
            "Version": "0.1.0",
            "DryRun": False,
            "ManagedLeaves": dbus.Array(managed, signature="s"),
            "PolicyErrors": dbus.Array([], signature="s"),
        },
    )
    mock_promises.load(mock)
    if not hasattr(mock, "listening"):
        mock.listening = dbus.SystemBus().add_signal_receiver(
            lambda interface, changed, _gone, path: _changed(mock, changed, path),
            "PropertiesChanged",
            "org.freedesktop.DBus.Properties",
            "org.freedesktop.systemd1",
            path_keyword="path",
        )


def _changed(mock, changed, path):
    unit = path.rpartition("/")[2].replace("_2e", ".").replace("_2d", "-")
    if unit not in mock.weights or mock.deaf:
        return

    def hear():
        weight, devices = mock.weights[unit]
        if "IODeviceWeight" in changed:
            devices = {str(path): int(value) for path, value in changed["IODeviceWeight"]}
        mock.weights[unit] = (int(changed.get("IOWeight", weight)), devices)
        return False

    GLib.timeout_add(DELAY_MS, hear)


def _error(name, text):
    return dbus.exceptions.DBusException(text, name=name)


def _fail(self, member):
    if member in self.failures:
        raise _error(*self.failures[member])


@dbus.service.method(MOCK_IFACE, in_signature="sss", out_signature="")
def Fail(self, member, name, text):
    """Let a method answer with an error from now on."""
    self.failures[member] = (name, text)


@dbus.service.method(MOCK_IFACE, in_signature="", out_signature="")
def BeDeaf(self):
    """Hear no more of what systemd changes."""
    self.deaf = True


@dbus.service.method(MOCK_IFACE, in_signature="u", out_signature="")
def Crowd(self, count):
    """Let there be many units more."""
    for number in range(count):
        unit = f"crowd-{number}.service"
        self.units[unit] = (f"/system.slice/{unit}", UNSET, {}, {"hda": (0.01, 0.01, 1, 1)})
        self.weights[unit] = (UNSET, {})


@dbus.service.method(MOCK_IFACE, in_signature="", out_signature="")
def Overwrite(self):
    """Let the cgroup files say something else than was written."""
    self.overwritten = True


@dbus.service.method(MOCK_IFACE, in_signature="", out_signature="")
def BeDry(self):
    """Behave as with --dry-run."""
    self.overwritten = True
    self.UpdateProperties(MAIN_IFACE, {"DryRun": dbus.Boolean(True)})


def _leaves(name):
    slaves = DEVICES[name][2]
    found = [leaf for slave in slaves for leaf in _leaves(slave)]
    return list(dict.fromkeys(found)) or [name]


def _resolve(path):
    for name, device in DEVICES.items():
        if path in ("/dev/" + name, *device[3]):
            return name
    if path in NO_QUEUE:
        raise _error("org.sutro1.Error.NoQueue", f"{path} is on tmpfs, which has no block device")
    if path not in PATHS:
        raise _error("org.sutro1.Error.NoSuchPath", f"{path}: No such file or directory")
    return PATHS[path]


@dbus.service.method(MAIN_IFACE, in_signature="", out_signature="aa{sv}")
def ListDevices(self):
    _fail(self, "ListDevices")
    return [
        {
            "node": "/dev/" + name,
            "name": name,
            "devno": devno,
            "kind": kind,
            "slaves": dbus.Array(slaves, signature="s"),
            "aliases": dbus.Array(aliases, signature="s"),
            "leaf": not slaves,
            "managed": self.managed[name],
            "size_bytes": dbus.UInt64(size * GIB),
        }
        | ({} if slaves else {"scheduler": self.schedulers[name]})
        for name, (devno, kind, slaves, aliases, _, _, size) in DEVICES.items()
    ]


@dbus.service.method(MAIN_IFACE, in_signature="s", out_signature="sasaa{sv}")
def ResolvePath(self, path):
    _fail(self, "ResolvePath")
    top = _resolve(path)
    steps = []

    def descend(name, level):
        slaves = DEVICES[name][2]
        text = f"/dev/{name} is a device of kind {DEVICES[name][1]} on {' and '.join(slaves)}"
        if not slaves:
            text = f"/dev/{name} is a leaf: {DEVICES[name][1]}"
        steps.append(
            {
                "device": "/dev/" + name,
                "kind": DEVICES[name][1],
                "level": dbus.UInt32(level),
                "text": text,
            }
        )
        for slave in slaves:
            descend(slave, level + 1)

    descend(top, 0)
    leaves = ["/dev/" + leaf for leaf in _leaves(top)]
    return "/dev/" + top, dbus.Array(leaves, signature="s"), dbus.Array(steps, signature="a{sv}")


def _unit(self, unit):
    weight, devices = self.weights[unit]
    return {
        "unit": unit,
        "cgroup": self.units[unit][0],
        "weight": dbus.UInt64(100 if weight == UNSET else weight),
        "weight_set": weight != UNSET,
        "device_weights": dbus.Array(
            [dbus.Struct((path, dbus.UInt64(w)), signature="st") for path, w in devices.items()],
            signature="(st)",
        ),
    }


@dbus.service.method(MAIN_IFACE, in_signature="", out_signature="aa{sv}")
def ListUnits(self):
    _fail(self, "ListUnits")
    return [_unit(self, unit) for unit in self.units]


@dbus.service.method(MAIN_IFACE, in_signature="ss", out_signature="a{sv}")
def Explain(self, unit, path):
    _fail(self, "Explain")
    unit = next((name for name in self.units if self.units[name][0] == unit), unit)
    if unit not in self.units:
        raise _error("org.sutro1.Error.NoSuchUnit", f"Unit {unit} is not known")
    top = _resolve(path) if path else ""
    names = _leaves(top) if path else [n for n in DEVICES if not DEVICES[n][2] and n != "loop0"]
    leaves = dbus.Array([_explain_leaf(self, unit, name) for name in names], signature="a{sv}")
    return _unit(self, unit) | {"device": "/dev/" + top if path else "", "leaves": leaves}


def _explain_leaf(self, unit, name):
    weight, devices = self.weights[unit]
    stated = [(w, path) for path, w in devices.items() if name in _leaves(_resolve(path))]
    asked, reason = 100, "IOWeight= is not set"
    if weight != UNSET:
        asked, reason = weight, f"IOWeight={weight}"
    if stated:
        asked, path = max(stated)
        reason = f"IODeviceWeight={path} {asked}"
    entitled, got, read, written = self.units[unit][3].get(name, (0.1, 0.0, 0, 0))
    backend = {"sutro": "sutro", "bfq": "bfq"}.get(self.schedulers[name], "none")
    # Nobody beside it states a weight, so systemd has turned no control on.
    controlled = unit != "job.service"
    text = {
        "sutro": f"{DEVICES[name][0]} {asked}" if stated else f"default {asked}",
        "bfq": f"{DEVICES[name][0]} {asked}",
        "none": "",
    }[backend if controlled else "none"]
    file = {"sutro": "io.sutro.weight", "bfq": "io.bfq.weight"}.get(backend) if controlled else ""
    return {
        "leaf": "/dev/" + name,
        "devno": DEVICES[name][0],
        "scheduler": self.schedulers[name],
        "backend": backend,
        "asked": dbus.UInt64(asked),
        "reason": reason,
        "file": f"/sys/fs/cgroup{self.units[unit][0]}/{file}" if file else "",
        "written": text,
        "read_back": "default 1" if text and self.overwritten else text,
        "hweight": float(entitled),
        "got": float(got),
        "time_ns": dbus.UInt64(int(got * 10**9) if backend == "sutro" else 0),
        "rbytes": dbus.UInt64(read),
        "wbytes": dbus.UInt64(written),
    }


def _switch(self, paths, to_sutro):
    names = [leaf for path in paths for leaf in _leaves(_resolve(path))]
    if not paths:
        names = [name for name, managed in self.managed.items() if managed]
    results = []
    for name in dict.fromkeys(names):
        before, error = self.schedulers[name], ""
        if to_sutro and name == "sdb":
            error = "its queue has no scheduler"
        elif to_sutro != self.managed[name]:
            self.schedulers[name] = "sutro" if to_sutro else "mq-deadline"
            self.managed[name] = to_sutro
        results.append(
            {
                "leaf": "/dev/" + name,
                "scheduler": self.schedulers[name],
                "previous": before,
                "changed": self.schedulers[name] != before,
                "error": error,
            }
        )
    return dbus.Array(results, signature="a{sv}")


@dbus.service.method(MAIN_IFACE, in_signature="as", out_signature="aa{sv}")
def UseDevices(self, paths):
    _fail(self, "UseDevices")
    return _switch(self, paths, True)


@dbus.service.method(MAIN_IFACE, in_signature="as", out_signature="aa{sv}")
def ReleaseDevices(self, paths):
    _fail(self, "ReleaseDevices")
    return _switch(self, paths, False)


@dbus.service.method(MAIN_IFACE, in_signature="", out_signature="s")
def Dump(self):
    _fail(self, "Dump")
    return "sutrod 0.1.0\n[leaf] /dev/hda\n"


# Promises and policies


@dbus.service.method(MAIN_IFACE, in_signature="", out_signature="aa{sv}")
def ListPromises(self):
    _fail(self, "ListPromises")
    return mock_promises.promises(self)


@dbus.service.method(MAIN_IFACE, in_signature="", out_signature="aa{sv}")
def ListUsage(self):
    _fail(self, "ListUsage")
    return mock_promises.usage(self)


@dbus.service.method(MAIN_IFACE, in_signature="sss", out_signature="a(tddd)")
def History(self, unit, key, path):
    _fail(self, "History")
    try:
        return mock_promises.history(unit, key, path)
    except KeyError:
        text = f"{unit} has no promise {key}={path} that is being kept"
        raise _error("org.sutro1.Error.NoSuchPromise", text) from None


@dbus.service.method(MAIN_IFACE, in_signature="s", out_signature="aa{sv}")
def GetPolicy(self, unit):
    _fail(self, "GetPolicy")
    return mock_promises.policy(self, unit)


@dbus.service.method(MAIN_IFACE, in_signature="sa(ss)s", out_signature="", sender_keyword="sender")
def SetPolicy(self, unit, assignments, lifetime, sender=None):
    _fail(self, "SetPolicy")
    try:
        mock_promises.set_policy(self, str(unit), assignments, str(lifetime), sender)
    except ValueError as error:
        raise _error("org.sutro1.Error.BadPolicy", str(error)) from None


@dbus.service.method(MAIN_IFACE, in_signature="ss", out_signature="", sender_keyword="sender")
def ResetPolicy(self, unit, lifetime, sender=None):
    _fail(self, "ResetPolicy")
    mock_promises.reset_policy(self, str(unit), str(lifetime), sender)
    self.UpdateProperties(MAIN_IFACE, {"PolicyErrors": dbus.Array(self.mistakes, signature="s")})


@dbus.service.method(MAIN_IFACE, in_signature="", out_signature="")
def ReloadPolicies(self):
    _fail(self, "ReloadPolicies")
    self.UpdateProperties(MAIN_IFACE, {"PolicyErrors": dbus.Array(self.mistakes, signature="s")})


@dbus.service.method(MOCK_IFACE, in_signature="as", out_signature="")
def Mistake(self, mistakes):
    """Let the next reload find mistakes."""
    self.mistakes = mistakes


@dbus.service.method(MOCK_IFACE, in_signature="", out_signature="")
def Promise(self):
    """Let there be the promises of mock_promises.py."""
    self.promised = True


@dbus.service.method(MOCK_IFACE, in_signature="t", out_signature="")
def Latency(self, p99_us):
    """Let all reads have this P99."""
    self.p99_us = int(p99_us)


@dbus.service.method(MOCK_IFACE, in_signature="s", out_signature="as")
def HeldFor(self, unit):
    """What clients hold for a unit: KEY=VALUE."""
    return dbus.Array(mock_promises.held(self, str(unit)), signature="s")
