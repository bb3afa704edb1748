# SPDX-License-Identifier: LGPL-2.1-or-later
"""Calls of sutrod and of systemd.

The a(st) of device weights becomes a list of {"path", "weight"}. Rates are in bytes or operations
per second, latencies and values of latency targets in microseconds, shares and parts from 0 to 1.
"""

import asyncio
import os
from collections.abc import Callable
from typing import Any

from . import units
from .connection import DBUS, PROPERTIES, SUTRO, SYSTEMD, Connection, Variant
from .values import INFINITY

Dict = dict[str, Any]

LOG, LOG_PATH = "org.freedesktop.LogControl1", "/org/freedesktop/LogControl1"
SYSTEMD_MANAGER = "org.freedesktop.systemd1.Manager"
UNIT = "org.freedesktop.systemd1.Unit"
SUTRO_PATH = "/org/sutro1"
SUTRO_MANAGER = "org.sutro1.Manager"

# The weight that means "not set" in systemd (CGROUP_WEIGHT_INVALID).
WEIGHT_UNSET = 2**64 - 1

STATE_FIELDS = ("unit", "cgroup", "key", "path", "device", "state", "value", "got", "granted")


def _device_weights(pairs: list[list[Any]]) -> list[Dict]:
    """Device weights as a list of {"path", "weight"}."""
    return [{"path": path, "weight": weight} for path, weight in pairs]


def _unit(unit: Dict) -> Dict:
    """A unit of the daemon, with its device weights as a list of {"path", "weight"}."""
    return unit | {"device_weights": _device_weights(unit.get("device_weights", []))}


def _promise(promise: Dict) -> Dict:
    """A promise of the daemon, with None as the value of infinity."""
    if promise["value"] == INFINITY:
        promise["value"] = None
    return promise


class Client(Connection):
    """A connection to the system bus, with the methods of sutrod and systemd; see Connection."""

    def _without_links(self, path: str) -> str:
        """The path with links followed, as this user may: the daemon follows those below /dev only.

        Links of another machine cannot be followed from here.
        """
        is_final = path.startswith("/dev/") or not path.startswith("/") or self._host
        return path if is_final else os.path.realpath(path)

    # org.sutro1

    async def _sutro(self, member: str, signature: str = "", *body: Any) -> list[Any]:
        """Call a method of org.sutro1.Manager; return its results."""
        return await self.call(SUTRO, SUTRO_PATH, SUTRO_MANAGER, member, signature, *body)

    async def properties(self) -> Dict:
        """Version, DryRun, ManagedLeaves, PolicyErrors, ControlStepUSec of the daemon."""
        return (await self.call(SUTRO, SUTRO_PATH, PROPERTIES, "GetAll", "s", SUTRO_MANAGER))[0]

    async def devices(self) -> list[Dict]:
        """All block devices of the topology, with sizes in bytes."""
        return (await self._sutro("ListDevices"))[0]

    async def resolve(self, path: str) -> Dict:
        """The device of a path, its leaves, and the steps between; NoSuchPath, NoQueue."""
        device, leaves, steps = await self._sutro("ResolvePath", "s", self._without_links(path))
        return {"device": device, "leaves": leaves, "steps": steps}

    async def units(self) -> list[Dict]:
        """The units that the daemon has found, with weights from 1 to 10000."""
        return [_unit(unit) for unit in (await self._sutro("ListUnits"))[0]]

    async def explain(self, unit: str, path: str = "") -> Dict:
        """Weights and shares of a unit on the leaves under a path ("": all leaves).

        Shares are those of the last second, from 0 to 1. NoSuchUnit without a cgroup of the unit.
        """
        return _unit((await self._sutro("Explain", "ss", unit, self._without_links(path)))[0])

    async def use(self, paths: list[str]) -> list[Dict]:
        """Switch the leaves under the paths to the sutro scheduler.

        Return the result of each leaf, with `error` if it was not switched.
        """
        return (await self._sutro("UseDevices", "as", paths))[0]

    async def release(self, paths: list[str]) -> list[Dict]:
        """Restore the former scheduler of the leaves under the paths; without paths, of all leaves.

        Return the result of each leaf, as use() does.
        """
        return (await self._sutro("ReleaseDevices", "as", paths))[0]

    async def dump(self) -> str:
        """The whole state of the daemon as text."""
        return (await self._sutro("Dump"))[0]

    async def promises(self) -> list[Dict]:
        """All promises, each with its state, its cause and its part of each leaf.

        `value` is None for infinity: there is no limit.
        """
        return [_promise(promise) for promise in (await self._sutro("ListPromises"))[0]]

    async def promise_states(self) -> list[Dict]:
        """For all promises, the fields that programs read often: STATE_FIELDS.

        `value` and `got` are in the unit of the key, `granted` is a part from 0 to 1. `value` is
        None for infinity.
        """
        states = (await self._sutro("ListPromiseStates"))[0]
        return [_promise(dict(zip(STATE_FIELDS, state, strict=True))) for state in states]

    async def capacities(self) -> list[Dict]:
        """Declared capacities of devices and their promised parts, in units per second."""
        return (await self._sutro("ListCapacities"))[0]

    async def resyncs(self) -> list[Dict]:
        """Resyncs of RAID arrays in progress, with the cgroup that each is charged to."""
        return (await self._sutro("ListResyncs"))[0]

    async def usage(self) -> list[Dict]:
        """The use in the last second, by unit and logical device."""
        return (await self._sutro("ListUsage"))[0]

    async def latencies(self, unit: str) -> list[Dict]:
        """Latencies of a unit on the devices of its targets, in us, with buckets of a histogram.

        NoSuchUnit without a cgroup of the unit.
        """
        return (await self._sutro("ListLatencies", "s", unit))[0]

    async def history(self, unit: str, key: str, path: str) -> list[list[float]]:
        """Samples of a promise, one a second: monotonic time in us, got, value, granted.

        NoSuchPromise if the unit has no such promise, or none that is measured.
        """
        return (await self._sutro("History", "sss", unit, key, path))[0]

    async def policy(self, unit: str) -> list[Dict]:
        """The settings of a unit: key, value, source, in_force."""
        return (await self._sutro("GetPolicy", "s", unit))[0]

    async def set_policy(self, unit: str, pairs: list[tuple[str, str]], lifetime: str) -> None:
        """Set policy keys of a unit, all or nothing; the value "" resets a key.

        `lifetime` is persistent, runtime, or client: as long as this connection. BadPolicy for a
        key or value that is not valid, Overcommitted if a device has no room for a floor.
        """
        assignments = [list(pair) for pair in pairs]
        await self._sutro("SetPolicy", "sa(ss)s", unit, assignments, lifetime)

    async def reset_policy(self, unit: str, lifetime: str) -> None:
        """Remove all settings of a unit that set_policy() made with this lifetime."""
        await self._sutro("ResetPolicy", "ss", unit, lifetime)

    async def check_policies(self, files: list[tuple[str, str]]) -> Dict:
        """Do the floors fit with these files (path, text)? Without files: do they fit now?

        Return the verdict (fits, does-not-fit, unknown) and the floors of each device.
        """
        pairs = [list(file) for file in files]
        verdict, devices = await self._sutro("CheckPolicies", "a(ss)", pairs)
        return {"verdict": verdict, "devices": devices}

    async def reload(self) -> None:
        """Let the daemon read its configuration again."""
        await self._sutro("Reload")

    async def reload_policies(self) -> None:
        """Let the daemon read all policy files again."""
        await self._sutro("ReloadPolicies")

    async def on_promise_changed(self, callback: Callable[..., None]) -> None:
        """Call `callback` with unit, key, path, state, cause when a promise changes its state."""
        await self.listen(SUTRO, SUTRO_MANAGER, "PromiseChanged", callback)

    async def on_sutrod_started(self, callback: Callable[[], None]) -> None:
        """Call `callback` for each new sutrod on the bus."""

        def owner_changed(name: str, _old: str, new: str) -> None:
            if name == SUTRO and new:
                callback()

        await self.listen(DBUS, DBUS, "NameOwnerChanged", owner_changed)

    # systemd

    async def _systemd(self, member: str, signature: str = "", *body: Any) -> list[Any]:
        """Call a method of org.freedesktop.systemd1.Manager; return its results."""
        path = "/org/freedesktop/systemd1"
        return await self.call(SYSTEMD, path, SYSTEMD_MANAGER, member, signature, *body)

    async def unit_names(self) -> list[str]:
        """All units that systemd has loaded, without those that have no file."""
        loaded = (await self._systemd("ListUnits"))[0]
        return [unit[0] for unit in loaded if unit[2] != "not-found"]

    async def processes(self, unit: str, cgroup: str) -> list[Dict]:
        """pid, command and cgroup of the processes in a cgroup and below it; `unit` may be ""."""
        if not unit:
            (path,) = await self._systemd("GetUnitByControlGroup", "s", cgroup)
            (unit,) = await self.call(SYSTEMD, path, PROPERTIES, "Get", "ss", UNIT, "Id")
        (found,) = await self._systemd("GetUnitProcesses", "s", unit)
        return [
            {"pid": pid, "command": command, "cgroup": where}
            for where, pid, command in found
            if f"{where}/".startswith(cgroup.rstrip("/") + "/")
        ]

    async def log_level(self) -> str:
        """The level of the log of the daemon: err, info, debug and others of syslog."""
        get = (SUTRO, LOG_PATH, PROPERTIES, "Get", "ss", LOG, "LogLevel")
        return (await self.call(*get))[0]

    async def set_log_level(self, level: str) -> None:
        """Set the level of the log of the daemon, until it ends."""
        value = Variant("s", level)
        await self.call(SUTRO, LOG_PATH, PROPERTIES, "Set", "ssv", LOG, "LogLevel", value)

    async def unit_settings(self, unit: str) -> Dict:
        """load_state, active, weight (None: not set) and device_weights of a unit in systemd.

        An unknown unit has the load_state not-found.
        """
        (path,) = await self._systemd("LoadUnit", "s", unit)

        async def get(interface: str, name: str) -> Any:
            return (await self.call(SYSTEMD, path, PROPERTIES, "Get", "ss", interface, name))[0]

        cgroup = units.INTERFACES[units.suffix(unit)]
        load_state, active_state, weight, device_weights = await asyncio.gather(
            get(UNIT, "LoadState"),
            get(UNIT, "ActiveState"),
            get(cgroup, "IOWeight"),
            get(cgroup, "IODeviceWeight"),
        )
        return {
            "load_state": load_state,
            "active": active_state in ("active", "activating", "reloading"),
            "weight": None if weight == WEIGHT_UNSET else weight,
            "device_weights": _device_weights(device_weights),
        }

    async def control_group(self, unit: str) -> str:
        """The cgroup of a unit, "/system.slice/db.service"; "" if it has none.

        The path of a cgroup is itself.
        """
        if unit.startswith("/"):
            return unit
        (path,) = await self._systemd("LoadUnit", "s", unit)
        interface = units.INTERFACES[units.suffix(unit)]
        get = (SYSTEMD, path, PROPERTIES, "Get", "ss", interface, "ControlGroup")
        return (await self.call(*get))[0]

    async def _set_properties(self, unit: str, runtime: bool, pairs: list[list[Any]]) -> None:
        """Set properties of a unit in systemd, until the next boot if `runtime`."""
        await self._systemd("SetUnitProperties", "sba(sv)", unit, runtime, pairs)

    async def set_weight(self, unit: str, weight: int | None, runtime: bool) -> None:
        """Set IOWeight= of a unit, 1 to 10000; None removes the setting."""
        value = Variant("t", WEIGHT_UNSET if weight is None else weight)
        await self._set_properties(unit, runtime, [["IOWeight", value]])

    async def set_device_weights(
        self, unit: str, weights: list[Dict], runtime: bool, replace: bool = False
    ) -> None:
        """Set IODeviceWeight= of a unit for some paths.

        systemd adds these to the weights of the unit, and updates equal paths; an empty list
        clears all. So replacing is two assignments in one call, which systemd checks before it
        applies any.
        """
        pairs = [[entry["path"], entry["weight"]] for entry in weights]
        assignments = [["IODeviceWeight", Variant("a(st)", [])]] if replace else []
        if pairs:
            assignments.append(["IODeviceWeight", Variant("a(st)", pairs)])
        await self._set_properties(unit, runtime, assignments)
