# SPDX-License-Identifier: LGPL-2.1-or-later
"""The buses. No other file knows which D-Bus library is used.

Messages are sent by hand, without proxies made from introspection: systemd's introspection
is 60 KiB, and a proxy of it costs more time than all calls of one run together.
Values come back as plain Python: variants are taken out, and the a(st) of device weights
becomes a list of {"path", "weight"}.
"""

import asyncio
import contextlib
import os
import socket
import subprocess
from collections.abc import Callable
from typing import Any

from dbus_next import BusType, Message, MessageFlag, MessageType, Variant
from dbus_next.aio import MessageBus
from dbus_next.errors import AuthError, InvalidAddressError

from . import errors, units

Dict = dict[str, Any]

ANSWER_TIMEOUT_S = 25.0  # what libdbus and sd-bus wait
# dbus-daemon refuses the 129th call without an answer on one connection.
CALLS_AT_ONCE = 32

DBUS = "org.freedesktop.DBus"
PROPERTIES = DBUS + ".Properties"
LOG, LOG_PATH = "org.freedesktop.LogControl1", "/org/freedesktop/LogControl1"
SYSTEMD = "org.freedesktop.systemd1"
SYSTEMD_MANAGER = "org.freedesktop.systemd1.Manager"
UNIT = "org.freedesktop.systemd1.Unit"
SUTRO = "org.sutro1"
SUTRO_PATH = "/org/sutro1"
SUTRO_MANAGER = "org.sutro1.Manager"

# What systemd takes for "not set" (CGROUP_WEIGHT_INVALID).
WEIGHT_UNSET = 2**64 - 1

SERVICES = {SUTRO: ("sutrod", "sutrod"), SYSTEMD: ("systemd", None)}
ACTIONS = {SUTRO: "org.sutro1.manage-devices", SYSTEMD: "org.freedesktop.systemd1.manage-units"}
POLICY_MEMBERS = ("SetPolicy", "ResetPolicy", "ReloadPolicies", "CheckPolicies")
POLICY_ACTION = "org.sutro1.manage-policies"

STATE_FIELDS = ("unit", "cgroup", "key", "path", "device", "state", "value", "got", "granted")

NOT_RUNNING = ("ServiceUnknown", "NameHasNoOwner", "Disconnected", "NoReply")
NOT_PERMITTED = ("AccessDenied", "AuthFailed", "InteractiveAuthorizationRequired")
BY_NAME: dict[str, type[errors.SutroError]] = {
    "org.sutro1.Error.NoSuchUnit": errors.NoSuchUnit,
    "org.sutro1.Error.NoSuchPath": errors.NoSuchPath,
    "org.sutro1.Error.NoQueue": errors.NoQueue,
    "org.sutro1.Error.NoSuchPromise": errors.NoSuchPromise,
    "org.sutro1.Error.BadPolicy": errors.BadPolicy,
    "org.sutro1.Error.Overcommitted": errors.Overcommitted,
    "org.freedesktop.systemd1.NoSuchUnit": errors.NoSuchUnit,
}


def plain(value: Any) -> Any:
    """`value` without variants, at any depth."""
    if isinstance(value, Variant):
        return plain(value.value)
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value


def _device_weights(pairs: list[list[Any]]) -> list[Dict]:
    return [{"path": path, "weight": weight} for path, weight in pairs]


def _unit(unit: Dict) -> Dict:
    return unit | {"device_weights": _device_weights(unit.get("device_weights", []))}


def _failure(service: str, member: str, name: str, text: str) -> errors.SutroError:
    """The exception for the D-Bus error `name` of a call."""
    people, unit = SERVICES.get(service, (service, None))
    if ".Spawn." in name or (service == SUTRO and name.startswith(SYSTEMD)):
        return errors.NotRunning(
            f"{people} could not be started: {text}", f"see: systemctl status {unit}"
        )
    if name in BY_NAME:
        return BY_NAME[name](text)
    last = name.rpartition(".")[2]
    if last in NOT_PERMITTED:
        action = POLICY_ACTION if member in POLICY_MEMBERS else ACTIONS.get(service, "")
        return errors.NotPermitted(
            f"{people} does not permit this: {text}",
            f"run it as root (sudo), or allow the polkit action {action}",
        )
    if last == "UnknownMethod" and service == SUTRO:
        return errors.TooOld(
            f"the running sutrod has no {member}: it is older than this program",
            "start the new one: systemctl restart sutrod",
        )
    if last in NOT_RUNNING:
        hint = f"start it: systemctl start {unit}" if unit else ""
        return errors.NotRunning(f"{people} is not running", hint)
    return errors.SutroError(f"{people} answered: {text}")


class _Bus(MessageBus):
    async def _auth_readline(self) -> str:
        """As in the library, which never ends when the bus closes the connection here."""
        line = b""
        while not line.endswith(b"\r\n"):
            piece = await self._loop.sock_recv(self._sock, 2)
            if not piece:
                raise EOFError
            line += piece
        return line[:-2].decode()


class _RemoteBus(_Bus):
    """The system bus of another machine, over ssh, as systemctl --host reaches it."""

    def __init__(self, host: str) -> None:
        self._host = host
        super().__init__(bus_address="unixexec:path=ssh")

    def _setup_socket(self) -> None:
        self._sock, theirs = socket.socketpair()
        with theirs:
            self._ssh = subprocess.Popen(
                ["ssh", "-xT", "--", self._host, "systemd-stdio-bridge"],
                stdin=theirs,
                stdout=theirs,
            )
        self._sock.setblocking(False)
        self._stream, self._fd = self._sock.makefile("rwb"), self._sock.fileno()

    def end(self) -> None:
        """End ssh, which has lost its connection here."""
        self._ssh.terminate()
        self._ssh.wait()


class Client:
    """A connection to the system bus, used as an async context manager.

    With a host, the bus of that machine.
    """

    def __init__(self, host: str = "") -> None:
        self._host = host
        self._bus: MessageBus | None = None
        self._free = asyncio.Semaphore(CALLS_AT_ONCE)

    async def __aenter__(self) -> "Client":
        if self._host:
            return await self._connect_to_host()
        address = os.environ.get("DBUS_SYSTEM_BUS_ADDRESS", "")
        where = address or "its usual place"
        try:
            connecting = _Bus(bus_type=BusType.SYSTEM).connect()
            self._bus = await asyncio.wait_for(connecting, ANSWER_TIMEOUT_S)
        except (EOFError, BrokenPipeError, ConnectionResetError):
            # dbus_next does not read the errors of the futures of such a connection.
            asyncio.get_running_loop().set_exception_handler(lambda *_: None)
            raise errors.BusUnavailable(
                f"the system bus at {where} closed the connection of user {os.getuid()}",
                "see: journalctl -u dbus; dbus-daemon refuses users of DynamicUser=",
            ) from None
        except (OSError, AuthError, InvalidAddressError) as error:
            reason = getattr(error, "strerror", None) or str(error) or "no answer"
            raise errors.BusUnavailable(
                f"there is no system bus at {where} ({reason})",
                "start it: systemctl start dbus"
                + (", or correct DBUS_SYSTEM_BUS_ADDRESS" if address else ""),
            ) from None
        return self

    async def _connect_to_host(self) -> "Client":
        try:
            bus = _RemoteBus(self._host)
        except OSError as error:
            raise errors.BusUnavailable(
                f"ssh: {error.strerror}", "apt install openssh-client"
            ) from None
        try:
            self._bus = await bus.connect()
        except (OSError, EOFError, AuthError) as error:
            bus.end()
            raise errors.BusUnavailable(
                f"the system bus of {self._host} cannot be reached",
                f"try: ssh {self._host} systemd-stdio-bridge --help",
            ) from error
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._bus is None:
            return
        self._bus.disconnect()
        # The library keeps what broke the connection in a future; if nobody takes it from
        # there, asyncio prints it as a traceback.
        with contextlib.suppress(Exception):
            await asyncio.wait_for(self._bus.wait_for_disconnect(), 1)
        if isinstance(self._bus, _RemoteBus):
            self._bus.end()

    async def call(
        self,
        service: str,
        path: str,
        interface: str,
        member: str,
        signature: str = "",
        *body: Any,
    ) -> list[Any]:
        """Call a method; return its result, or raise the SutroError for its error."""
        assert self._bus is not None, "used outside of 'async with'"
        message = Message(
            destination=service,
            path=path,
            interface=interface,
            member=member,
            signature=signature,
            body=list(body),
            flags=MessageFlag.ALLOW_INTERACTIVE_AUTHORIZATION,
        )
        people = SERVICES.get(service, (service,))[0]
        try:
            async with self._free:
                reply = await asyncio.wait_for(self._bus.call(message), ANSWER_TIMEOUT_S)
        except TimeoutError:
            raise errors.SutroError(
                f"{people} did not answer {member} within {ANSWER_TIMEOUT_S:.0f} s"
            ) from None
        except (OSError, EOFError, ValueError):
            raise errors.BusUnavailable("the connection to the system bus broke") from None
        if reply.message_type is MessageType.ERROR:
            text = str(reply.body[0]) if reply.body else reply.error_name
            raise _failure(service, member, reply.error_name, text)
        return [plain(value) for value in reply.body]

    async def listen(
        self, sender: str, interface: str, member: str, heard: Callable[..., None]
    ) -> None:
        """Call `heard` with the arguments of each such signal from now on."""
        assert self._bus is not None, "used outside of 'async with'"

        def on_message(message: Message) -> None:
            kind = (message.message_type, message.interface, message.member)
            if kind == (MessageType.SIGNAL, interface, member):
                heard(*(plain(value) for value in message.body))

        self._bus.add_message_handler(on_message)
        rule = f"type='signal',sender='{sender}',interface='{interface}',member='{member}'"
        await self.call(DBUS, "/org/freedesktop/DBus", DBUS, "AddMatch", "s", rule)

    async def closed(self) -> None:
        """Return when the connection has ended, whoever ended it."""
        assert self._bus is not None, "used outside of 'async with'"
        with contextlib.suppress(OSError, EOFError, ValueError):
            # Whoever waits may be cancelled; the library's future must not be.
            await asyncio.shield(self._bus.wait_for_disconnect())

    def _without_links(self, path: str) -> str:
        """The path with links followed, as this user may: the daemon follows those below /dev only.

        Links of another machine cannot be followed from here.
        """
        is_final = path.startswith("/dev/") or not path.startswith("/") or self._host
        return path if is_final else os.path.realpath(path)

    # org.sutro1

    async def _sutro(self, member: str, signature: str = "", *body: Any) -> list[Any]:
        return await self.call(SUTRO, SUTRO_PATH, SUTRO_MANAGER, member, signature, *body)

    async def properties(self) -> Dict:
        """Version, DryRun, ManagedLeaves, PolicyErrors of the daemon."""
        return (await self.call(SUTRO, SUTRO_PATH, PROPERTIES, "GetAll", "s", SUTRO_MANAGER))[0]

    async def devices(self) -> list[Dict]:
        """All block devices of the topology."""
        return (await self._sutro("ListDevices"))[0]

    async def resolve(self, path: str) -> Dict:
        """The device behind a path, the leaves under it, and the steps between."""
        device, leaves, steps = await self._sutro("ResolvePath", "s", self._without_links(path))
        return {"device": device, "leaves": leaves, "steps": steps}

    async def units(self) -> list[Dict]:
        """The units that the daemon follows."""
        return [_unit(unit) for unit in (await self._sutro("ListUnits"))[0]]

    async def explain(self, unit: str, path: str = "") -> Dict:
        """Weights and shares of a unit on the leaves under a path ("": all leaves)."""
        return _unit((await self._sutro("Explain", "ss", unit, self._without_links(path)))[0])

    async def use(self, paths: list[str]) -> list[Dict]:
        """Switch the leaves under the paths to the sutro scheduler."""
        return (await self._sutro("UseDevices", "as", paths))[0]

    async def release(self, paths: list[str]) -> list[Dict]:
        """Give the leaves under the paths back to the scheduler they had; all if there is none."""
        return (await self._sutro("ReleaseDevices", "as", paths))[0]

    async def dump(self) -> str:
        """The whole state of the daemon as text."""
        return (await self._sutro("Dump"))[0]

    async def promises(self) -> list[Dict]:
        """All promises, with how each fares."""
        return (await self._sutro("ListPromises"))[0]

    async def promise_states(self) -> list[Dict]:
        """Of all promises what programs read often: STATE_FIELDS."""
        states = (await self._sutro("ListPromiseStates"))[0]
        return [dict(zip(STATE_FIELDS, state, strict=True)) for state in states]

    async def capacities(self) -> list[Dict]:
        """Declared capacities of devices, with the promised part."""
        return (await self._sutro("ListCapacities"))[0]

    async def resyncs(self) -> list[Dict]:
        """Resyncs of RAID arrays that run, with the cgroup that each is charged to."""
        return (await self._sutro("ListResyncs"))[0]

    async def usage(self) -> list[Dict]:
        """What was used in the last second, by unit and logical device."""
        return (await self._sutro("ListUsage"))[0]

    async def latencies(self, unit: str) -> list[Dict]:
        """Latencies of a unit on the devices of its targets, with the buckets of a histogram."""
        return (await self._sutro("ListLatencies", "s", unit))[0]

    async def history(self, unit: str, key: str, path: str) -> list[list[float]]:
        """monotonic_us, got, value, granted of a promise for each of the last seconds."""
        return (await self._sutro("History", "sss", unit, key, path))[0]

    async def policy(self, unit: str) -> list[Dict]:
        """The settings of a unit: key, value, source, in_force."""
        return (await self._sutro("GetPolicy", "s", unit))[0]

    async def set_policy(self, unit: str, said: list[tuple[str, str]], lifetime: str) -> None:
        """Set policy keys of a unit, all or nothing; the value "" resets a key.

        `lifetime` is persistent, runtime, or client: as long as this connection.
        """
        assignments = [list(pair) for pair in said]
        await self._sutro("SetPolicy", "sa(ss)s", unit, assignments, lifetime)

    async def reset_policy(self, unit: str, lifetime: str) -> None:
        """Remove all settings of a unit that set_policy() made with this lifetime."""
        await self._sutro("ResetPolicy", "ss", unit, lifetime)

    async def check_policies(self, files: list[tuple[str, str]]) -> Dict:
        """Would the floors fit with these files (path, text)? Without any: do they fit now?"""
        pairs = [list(file) for file in files]
        verdict, devices = await self._sutro("CheckPolicies", "a(ss)", pairs)
        return {"verdict": verdict, "devices": devices}

    async def reload(self) -> None:
        """Let the daemon read its configuration again."""
        await self._sutro("Reload")

    async def reload_policies(self) -> None:
        """Let the daemon read all policy files again."""
        await self._sutro("ReloadPolicies")

    async def on_promise_changed(self, heard: Callable[..., None]) -> None:
        """Hear unit, key, path, state, cause of each promise that fares otherwise than before."""
        await self.listen(SUTRO, SUTRO_MANAGER, "PromiseChanged", heard)

    async def on_sutrod_started(self, heard: Callable[[], None]) -> None:
        """Hear of each new sutrod on the bus."""

        def owner_changed(name: str, _old: str, new: str) -> None:
            if name == SUTRO and new:
                heard()

        await self.listen(DBUS, DBUS, "NameOwnerChanged", owner_changed)

    # systemd

    async def _systemd(self, member: str, signature: str = "", *body: Any) -> list[Any]:
        path = "/org/freedesktop/systemd1"
        return await self.call(SYSTEMD, path, SYSTEMD_MANAGER, member, signature, *body)

    async def unit_names(self) -> list[str]:
        """All units that systemd has loaded and found."""
        loaded = (await self._systemd("ListUnits"))[0]
        return [unit[0] for unit in loaded if unit[2] != "not-found"]

    async def processes(self, unit: str, cgroup: str) -> list[Dict]:
        """pid, command and cgroup of the processes in a cgroup, also one below a unit."""
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
        """The level of the daemon's log."""
        get = (SUTRO, LOG_PATH, PROPERTIES, "Get", "ss", LOG, "LogLevel")
        return (await self.call(*get))[0]

    async def set_log_level(self, level: str) -> None:
        """Set the level of the daemon's log, until it ends."""
        value = Variant("s", level)
        await self.call(SUTRO, LOG_PATH, PROPERTIES, "Set", "ssv", LOG, "LogLevel", value)

    async def unit_settings(self, unit: str) -> Dict:
        """load_state, active, weight (None: not set) and device_weights of a unit in systemd."""
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

    async def _set_properties(self, unit: str, runtime: bool, pairs: list[list[Any]]) -> None:
        await self._systemd("SetUnitProperties", "sba(sv)", unit, runtime, pairs)

    async def set_weight(self, unit: str, weight: int | None, runtime: bool) -> None:
        """Set IOWeight= of a unit; None removes the setting."""
        value = Variant("t", WEIGHT_UNSET if weight is None else weight)
        await self._set_properties(unit, runtime, [["IOWeight", value]])

    async def set_device_weights(
        self, unit: str, weights: list[Dict], runtime: bool, replace: bool = False
    ) -> None:
        """Set IODeviceWeight= of a unit for some paths.

        systemd adds what it is given to what it has (and updates where the path is the same);
        an empty list clears all. Replacing therefore is two assignments in one call, which
        systemd checks whole before it carries out any of it.
        """
        pairs = [[entry["path"], entry["weight"]] for entry in weights]
        assignments = [["IODeviceWeight", Variant("a(st)", [])]] if replace else []
        if pairs:
            assignments.append(["IODeviceWeight", Variant("a(st)", pairs)])
        await self._set_properties(unit, runtime, assignments)
