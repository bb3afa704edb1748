# SPDX-License-Identifier: LGPL-2.1-or-later
"""A connection to a bus. No other file depends on the D-Bus library.

Messages are made by hand, without proxies made from introspection: the introspection of systemd
is 60 KiB, and a proxy of it costs more time than all calls of one run together.
Values are returned as plain Python: variants are taken out.

Each call raises the SutroError for its D-Bus error, BusUnavailable if there is no connection, and
NoAnswer after answer_timeout_s() without an answer.
"""

import asyncio
import contextlib
import os
import re
import shlex
import socket
import subprocess
from collections.abc import Callable, Iterator
from typing import Any, Self

from dbus_next import BusType, Message, MessageFlag, MessageType, Variant
from dbus_next.aio import MessageBus
from dbus_next.errors import AuthError

from . import errors

ANSWER_TIMEOUT_S = 25.0  # the timeout of libdbus and sd-bus
# As long as sutrod waits for polkit, while the user types a password.
PASSWORD_TIMEOUT_S = 300.0
# dbus-daemon refuses the 129th call without an answer on one connection.
CALLS_AT_ONCE = 32
ADDRESS = "DBUS_SYSTEM_BUS_ADDRESS"

DBUS = "org.freedesktop.DBus"
DBUS_PATH = "/org/freedesktop/DBus"
POLKIT = "org.freedesktop.PolicyKit1"
PROPERTIES = DBUS + ".Properties"
SYSTEMD = "org.freedesktop.systemd1"
SUTRO = "org.sutro1"

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
AS_ROOT = "run it as root (sudo)"
WITHOUT_POLKIT = (
    "for other users, polkitd is missing: apt install polkitd, or systemctl start polkit"
)
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


def _texts(value: Any) -> Iterator[str]:
    """The strings in the arguments of a call."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one)
    elif isinstance(value, Variant):
        yield from _texts(value.value)


def answer_timeout_s(member: str) -> float:
    """How long a call may take; the user may have to type a password."""
    may_ask = member in PASSWORD_MEMBERS and os.geteuid() != 0
    return PASSWORD_TIMEOUT_S if may_ask else ANSWER_TIMEOUT_S


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
            AS_ROOT + (f", or allow the polkit action {action}" if action else ""),
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


def _no_bus(address: str | None, error: Exception) -> errors.BusUnavailable:
    """The failure to reach the bus at an address of the environment, or without one."""
    reason = getattr(error, "strerror", None) or str(error) or "no answer"
    is_malformed = isinstance(error, (OverflowError, ValueError))
    port = re.search(r"\bport=([^,;]*)", address or "")
    if port and (isinstance(error, OverflowError) or not re.fullmatch("[0-9]+", port[1])):
        reason = f"port '{port[1]:.40}' is no number from 1 to 65535"
    where = "its usual place" if address is None else address or "''"
    remedies = [] if is_malformed else ["start it: systemctl start dbus"]
    if address is not None:
        remedies.append(f"correct {ADDRESS}")
    return errors.BusUnavailable(
        f"there is no system bus at {where} ({reason})", ", or ".join(remedies)
    )


class _Bus(MessageBus):
    """A connection to a bus, which ends when the bus closes it."""

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


class Connection:
    """A connection to the system bus, used as an async context manager.

    With a host, the bus of that machine. BusUnavailable on entry if there is no such bus.
    """

    def __init__(self, host: str = "") -> None:
        self._host = host
        self._bus: MessageBus | None = None
        self._free = asyncio.Semaphore(CALLS_AT_ONCE)

    async def __aenter__(self) -> Self:
        if self._host:
            return await self._connect_to_host()
        address = os.environ.get(ADDRESS)
        try:
            connecting = _Bus(bus_type=BusType.SYSTEM).connect()
            self._bus = await asyncio.wait_for(connecting, ANSWER_TIMEOUT_S)
        except (EOFError, BrokenPipeError, ConnectionResetError):
            # dbus_next does not read the errors of the futures of such a connection.
            asyncio.get_running_loop().set_exception_handler(lambda *_: None)
            where = address or "its usual place"
            raise errors.BusUnavailable(
                f"the system bus at {where} closed the connection of user {os.getuid()}",
                "see: journalctl -u dbus; dbus-daemon refuses users of DynamicUser=",
            ) from None
        except (OSError, AuthError, OverflowError, ValueError) as error:
            raise _no_bus(address, error) from None
        return self

    async def _connect_to_host(self) -> Self:
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
        for text in _texts(list(body)):
            if "\0" in text:  # the bus would end the connection
                raise errors.NotText(
                    f"{text!r} has NUL, and the bus carries no such text", "remove the NUL"
                )
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
        except UnicodeEncodeError as error:
            raise errors.NotText(
                f"{error.object!r} is not UTF-8, and the bus carries no other text",
                "rename it, or name another path to the same device",
            ) from None
        except (OSError, EOFError, ValueError):
            raise errors.BusUnavailable(BROKE, BROKE_REMEDY) from None
        if reply.message_type is MessageType.ERROR:
            text = str(reply.body[0]) if reply.body else reply.error_name
            error = _failure(service, member, reply.error_name, text)
            if isinstance(error, errors.NotPermitted) and not await self._has_polkit():
                error.hint = f"{AS_ROOT}; {WITHOUT_POLKIT}" if "polkit" in error.hint else AS_ROOT
            raise error
        # Long lists have structures without variants.
        return [plain(value) for value in reply.body] if "v" in reply.signature else reply.body

    async def _has_polkit(self) -> bool:
        """Does polkitd run, or does the bus start it? True if the bus does not answer."""
        try:
            names = await self.call(DBUS, DBUS_PATH, DBUS, "ListNames")
            names += await self.call(DBUS, DBUS_PATH, DBUS, "ListActivatableNames")
        except errors.SutroError:
            return True
        return any(POLKIT in some for some in names)

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
        await self.call(DBUS, DBUS_PATH, DBUS, "AddMatch", "s", rule)

    async def closed(self) -> None:
        """Return when the connection has ended, for whatever reason."""
        assert self._bus is not None, "used outside of 'async with'"
        with contextlib.suppress(OSError, EOFError, ValueError):
            # A caller may be cancelled; the future of the library must not be.
            await asyncio.shield(self._bus.wait_for_disconnect())
