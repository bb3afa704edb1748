# SPDX-License-Identifier: LGPL-2.1-or-later
"""The buses. No other file depends on the D-Bus library.

Messages are made by hand, without proxies made from introspection: the introspection of systemd
is 60 KiB, and a proxy of it costs more time than all calls of one run together.
Values are returned as plain Python: variants are taken out, and the a(st) of device weights
becomes a list of {"path", "weight"}.

Each call raises the SutroError for its D-Bus error, BusUnavailable if there is no connection, and
NoAnswer after answer_timeout_s() without an answer. Rates are in bytes or operations per second,
latencies and values of latency targets in microseconds, shares and parts from 0 to 1.
"""

import asyncio
import contextlib
import os
import shlex
import socket
import struct
import subprocess
from collections.abc import Callable
from functools import partial
from typing import Any

from dbus_next import BusType, Message, MessageFlag, MessageType, Variant
from dbus_next._private.constants import LITTLE_ENDIAN
from dbus_next.aio import MessageBus
from dbus_next.errors import AuthError, InvalidAddressError

from . import errors, units
from .values import INFINITY

Dict = dict[str, Any]

ANSWER_TIMEOUT_S = 25.0  # the timeout of libdbus and sd-bus
# As long as sutrod waits for polkit, while the user types a password.
PASSWORD_TIMEOUT_S = 300.0
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

# The weight that means "not set" in systemd (CGROUP_WEIGHT_INVALID).
WEIGHT_UNSET = 2**64 - 1

SERVICES = {SUTRO: ("sutrod", "sutrod"), SYSTEMD: ("systemd", None)}
ACTIONS = {SUTRO: "org.sutro1.manage-devices", SYSTEMD: "org.freedesktop.systemd1.manage-units"}
POLICY_MEMBERS = ("SetPolicy", "ResetPolicy", "ReloadPolicies", "CheckPolicies")
# Members with another action than their service; no action permits Set, of LogLevel.
MEMBER_ACTIONS = dict.fromkeys(POLICY_MEMBERS, "org.sutro1.manage-policies")
MEMBER_ACTIONS |= {"Dump": "org.sutro1.dump", "Set": ""}
# Members for which polkit may request a password from users other than root.
PASSWORD_MEMBERS = (
    *POLICY_MEMBERS,
    "Dump",
    "UseDevices",
    "ReleaseDevices",
    "Reload",
    "SetUnitProperties",
)

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
BROKE = "the connection to the system bus broke"
BROKE_REMEDY = "try again; if it breaks again, see: journalctl -u dbus -n 20"
# Remedies for failures of a path that the message of the daemon names.
HINTS: dict[type[errors.SutroError], str] = dict.fromkeys(
    (errors.NoSuchPath, errors.NoQueue), "name a volume of the system, see: sutroctl tree"
)


def plain(value: Any) -> Any:
    """`value` without variants, at any depth."""
    if isinstance(value, Variant):
        return plain(value.value)
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value


def answer_timeout_s(member: str) -> float:
    """How long a call may take; the user may have to type a password."""
    may_ask = member in PASSWORD_MEMBERS and os.geteuid() != 0
    return PASSWORD_TIMEOUT_S if may_ask else ANSWER_TIMEOUT_S


def _device_weights(pairs: list[list[Any]]) -> list[Dict]:
    """Device weights as a list of {"path", "weight"}."""
    return [{"path": path, "weight": weight} for path, weight in pairs]


def _unit(unit: Dict) -> Dict:
    """A unit of the daemon, with its device weights as a list of {"path", "weight"}."""
    return unit | {"device_weights": _device_weights(unit.get("device_weights", []))}


def _promise(promise: Dict) -> Dict:
    """A promise of the daemon, with None as the value of infinity."""
    return promise | ({"value": None} if promise["value"] == INFINITY else {})


def _log_of(service: str) -> str:
    """The command that shows the log of a service."""
    unit = SERVICES.get(service, (service, None))[1]
    return f"journalctl -u {unit} -n 20" if unit else "journalctl -b -n 20"


def _failure(service: str, member: str, name: str, text: str) -> errors.SutroError:
    """The exception for the D-Bus error `name` of a call."""
    people, unit = SERVICES.get(service, (service, None))
    if ".Spawn." in name or (service == SUTRO and name.startswith(SYSTEMD)):
        return errors.NotRunning(
            f"{people} could not be started: {text}", f"see: systemctl status {unit}"
        )
    if name in BY_NAME:
        return BY_NAME[name](text, HINTS.get(BY_NAME[name], ""))
    last = name.rpartition(".")[2]
    if last in NOT_PERMITTED:
        action = MEMBER_ACTIONS.get(member, ACTIONS.get(service, ""))
        return errors.NotPermitted(
            f"{people} does not permit this: {text}",
            "run it as root (sudo)" + (f", or allow the polkit action {action}" if action else ""),
        )
    if last == "UnknownMethod" and service == SUTRO:
        return errors.TooOld(
            f"the running sutrod has no {member}: it is older than this program",
            "start the new one: systemctl restart sutrod",
        )
    if last in NOT_RUNNING:
        hint = f"start it: systemctl start {unit}" if unit else f"see: {_log_of(service)}"
        return errors.NotRunning(f"{people} is not running", hint)
    # Errors of org.sutro1, and refusals by a bound, have the next step in their text.
    has_remedy = name.startswith(SUTRO + ".") or last in (
        "InvalidArgs",
        "LimitsExceeded",
        "Timeout",
    )
    return errors.SutroError(
        f"{people} answered: {text}", "" if has_remedy else f"see: {_log_of(service)}"
    )


def _structs(reader: Any, array: Any) -> list[Any]:
    """Read an array for the library's unmarshaller, which calls five functions for each string.

    Structures of strings and of numbers of 64 bits, as in ListPromiseStates, are read here; the
    message is in the buffer as a whole by then.
    """
    tokens = [child.token for child in array.children[0].children]
    order = "<" if reader.endian == LITTLE_ENDIAN else ">"
    if array.children[0].token != "(" or not set(tokens) <= set("std"):
        return reader.read_array(array)
    length = reader.read_uint32()
    reader.align(8)
    buffer, at = bytes(reader.buf), reader.offset
    end = at + length
    read_length = struct.Struct(order + "I").unpack_from
    numbers = {token: struct.Struct(order + form).unpack_from for token, form in ("tQ", "dd")}
    found = []
    while at < end:
        row: list[Any] = []
        at = (at + 7) & ~7
        for token in tokens:
            if token == "s":
                begin = ((at + 3) & ~3) + 4
                at = begin + read_length(buffer, begin - 4)[0]
                row.append(buffer[begin:at].decode())
                at += 1  # the 0 byte
            else:
                at = ((at + 7) & ~7) + 8
                row.append(numbers[token](buffer, at - 8)[0])
        found.append(row)
    reader.offset = at
    return found


class _Bus(MessageBus):
    """A connection to a bus, which ends when the bus closes it."""

    def _create_unmarshaller(self) -> Any:
        """That of the library, with another reader of arrays."""
        reader = super()._create_unmarshaller()
        reader.readers["a"] = partial(_structs, reader)
        return reader

    async def _auth_readline(self) -> str:
        """As in the library, which waits forever when the bus closes the connection here."""
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
        """Start ssh with a bridge to the bus of the host; OSError without ssh."""
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
        """End ssh before the connection: a bridge that has more to send would complain."""
        self._ssh.terminate()
        self._ssh.wait()


class Client:
    """A connection to the system bus, used as an async context manager.

    With a host, the bus of that machine. BusUnavailable on entry if there is no such bus.
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
                f"try: ssh {shlex.quote(self._host)} systemd-stdio-bridge --help",
            ) from error
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._bus is None:
            return
        if isinstance(self._bus, _RemoteBus):
            self._bus.end()
        self._bus.disconnect()
        # The library keeps the error of a broken connection in a future; asyncio prints a
        # traceback of an error that is not retrieved.
        with contextlib.suppress(Exception):
            await asyncio.wait_for(self._bus.wait_for_disconnect(), 1)

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
        timeout_s = answer_timeout_s(member)
        try:
            async with self._free:
                reply = await asyncio.wait_for(self._bus.call(message), timeout_s)
        except TimeoutError:
            raise errors.NoAnswer(
                f"{people} did not answer {member} within {timeout_s:.0f} s",
                f"try again; if it stays so, see: {_log_of(service)}",
            ) from None
        except (OSError, EOFError, ValueError):
            raise errors.BusUnavailable(BROKE, BROKE_REMEDY) from None
        if reply.message_type is MessageType.ERROR:
            text = str(reply.body[0]) if reply.body else reply.error_name
            raise _failure(service, member, reply.error_name, text)
        # Long lists have structures without variants.
        return [plain(value) for value in reply.body] if "v" in reply.signature else reply.body

    async def listen(
        self, sender: str, interface: str, member: str, callback: Callable[..., None]
    ) -> None:
        """Call `callback` with the arguments of each such signal from now on."""
        assert self._bus is not None, "used outside of 'async with'"

        def on_message(message: Message) -> None:
            kind = (message.message_type, message.interface, message.member)
            if kind == (MessageType.SIGNAL, interface, member):
                callback(*(plain(value) for value in message.body))

        self._bus.add_message_handler(on_message)
        rule = f"type='signal',sender='{sender}',interface='{interface}',member='{member}'"
        await self.call(DBUS, "/org/freedesktop/DBus", DBUS, "AddMatch", "s", rule)

    async def closed(self) -> None:
        """Return when the connection has ended, for whatever reason."""
        assert self._bus is not None, "used outside of 'async with'"
        with contextlib.suppress(OSError, EOFError, ValueError):
            # A caller may be cancelled; the future of the library must not be.
            await asyncio.shield(self._bus.wait_for_disconnect())

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
