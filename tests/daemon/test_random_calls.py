# SPDX-License-Identifier: LGPL-2.1-or-later
"""Random calls of two clients of the bus.

All calls of an example are sent before the first reply is waited for. Each has one reply in
time, an error is fit to be shown, and arguments of other types are refused. Nothing appears on the
machine but control files of valid units, which "sutrod --check" accepts, and the records of the
daemon in /run/sutro. After ResetPolicy and the clients' end, nothing is left of them.

With SUTRO_FUZZ_SECONDS=N other calls follow for N seconds; the seed of each part is printed.
"""

import os
import subprocess
import time
import unicodedata
import xml.etree.ElementTree as ET
from collections.abc import Callable
from typing import Any

import dbus
from dbus.lowlevel import (
    MESSAGE_TYPE_ERROR,
    MESSAGE_TYPE_METHOD_RETURN,
    ErrorMessage,
    Message,
    MethodCallMessage,
)
from dbus.mainloop.glib import DBusGMainLoop
from fakemachine import (
    INTERFACE,
    NAME,
    PATH,
    PATIENCE_S,
    STEP_S,
    SUTROD,
    TOP,
    Bus,
    Machine,
    Sutrod,
    Systemd,
)
from gi.repository import GLib
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

CONTROL = [f"/{top}/sutro/policy.control" for top in ("etc", "run")]
# The daemon writes there, and directories above are made for it.
OWN = ("/run/sutro", "/etc/sutro/policy.control", "/writes")
# Of sd-bus and of polkit's refusals; all others are the daemon's own.
ERRORS = {
    f"org.freedesktop.DBus.Error.{name}"
    for name in (
        "Failed",
        "LimitsExceeded",
        "PropertyReadOnly",
        "UnknownInterface",
        "UnknownMethod",
        "UnknownProperty",
    )
}
# sd-bus refuses arguments of other types, and characters that are none.
REFUSED = {f"org.freedesktop.DBus.Error.{name}" for name in ("InvalidArgs", "InconsistentMessage")}

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=300)
WORDS = {
    "unit": [
        *("a.service", "b.service", "system.slice", "user.slice", "user-1000.slice"),
        *("../../x.service", "a\nb.service", ".service", "/system.slice", 254 * "a" + "ä"),
    ],
    "path": [
        *("/srv", "/dev/mapper/vg-db", "/dev/sda", "/dev/sdc", "/dev/sdc1", "/dev/nowhere", ""),
        "/" + 5000 * "x",
    ],
    "key": ["ReadBandwidthMin", "WriteIOPSMax", "Weight"],
    "lifetime": ["runtime", "persistent", "client", "forever"],
    "interface": [INTERFACE, "org.freedesktop.DBus.Properties"],
    "property": ["DryRun", "PolicyErrors", "ControlStepUSec"],
}
PAIRS = [
    *(("ReadBandwidthMin", "/dev/mapper/vg-db 1M"), ("ReadBandwidthMin", "/dev/mapper/vg-db 1.5G")),
    *(("WriteIOPSMin", "/dev/sda 100"), ("WriteIOPSMax", "/dev/sdc1 200"), ("Weight", "/srv 7")),
    *(("ReadBandwidthMax", "/dev/sdc infinity"), ("LatencyTarget", "/srv 5ms"), ("Weight", "300")),
    *(("Class", "idle"), ("Class", ""), ("Importance", "200"), ("Weight", "0")),
    ("ReadBandwidthMin", f"/{5000 * 'x'} 1M"),
]
PAIR = st.sampled_from(PAIRS) | st.tuples(TEXT, TEXT)
NAMES = st.sampled_from(["/a.policy", "/a.service", "/b.policy.d/1.conf"]) | TEXT
POLICIES = [f"[Match]\nUnit=a.service\n[X-Sutro]\n{key}={value}\n" for key, value in PAIRS]
FILE = st.tuples(NAMES, st.sampled_from(POLICIES) | TEXT)
ARGUMENT = {name: st.sampled_from(words) | TEXT for name, words in WORDS.items()} | {
    "assignments": st.lists(PAIR, max_size=6) | st.builds(lambda pair: 300 * [pair], PAIR),
    "files": st.lists(FILE, max_size=4) | st.builds(lambda file: 65 * [file], FILE),
    "paths": st.lists(st.sampled_from(WORDS["path"]) | TEXT, max_size=4),
    "value": TEXT,
}


def members() -> dict[tuple[str, str], tuple[str, tuple[str, ...]]]:
    """The methods of the documented interface, and of properties: signature and arguments."""
    found: dict[tuple[str, str], tuple[str, tuple[str, ...]]] = {}
    tree = ET.parse(TOP / "Documentation/org.sutro1.xml")
    for interface in tree.iter("interface"):
        for method in interface.iter("method"):
            given = [a for a in method.iter("arg") if a.get("direction") == "in"]
            types = "".join(a.get("type", "") for a in given)
            place = (interface.get("name", ""), method.get("name", ""))
            found[place] = (types, tuple(a.get("name", "") for a in given))
    properties = "org.freedesktop.DBus.Properties"
    found[properties, "Get"] = ("ss", ("interface", "property"))
    found[properties, "GetAll"] = ("s", ("interface",))
    found[properties, "Set"] = ("ssv", ("interface", "property", "value"))
    return found


MEMBERS = members()
# Parts of a call: sender, whether a reply is expected, interface, member, signature, arguments.
Call = tuple[int, bool, str, str, str, tuple[Any, ...]]
LEAVES = None


def calls_of(place: tuple[str, str]) -> st.SearchStrategy[Call]:
    """Calls of one member, with the arguments of its own signature or of another one's."""
    signature = MEMBERS[place][0] if place in MEMBERS else ""
    others = [(signature, MEMBERS[place][1])] * 9 if place in MEMBERS else []
    others += [("t", ("number",)), *MEMBERS.values()]

    def arguments(of: tuple[str, tuple[str, ...]]) -> st.SearchStrategy[Call]:
        values = (ARGUMENT.get(name, st.integers(0, 2**64 - 1)) for name in of[1])
        sender = st.sampled_from([0, 0, 1])
        wanted = st.sampled_from([True, True, True, False])
        fixed = (st.just(text) for text in (*place, of[0]))
        return st.tuples(sender, wanted, *fixed, st.tuples(*values))

    return st.sampled_from(others).flatmap(arguments)


PLACES = st.sampled_from([*MEMBERS, *4 * [(INTERFACE, "SetPolicy")], (INTERFACE, "NoSuchMember")])
EXAMPLE = st.lists(PLACES.flatmap(calls_of) | st.just(LEAVES), max_size=32)


class Client:
    """A connection to the bus, with its calls and all replies to them."""

    def __init__(self, bus: Bus) -> None:
        self.connection = dbus.bus.BusConnection(bus.address, mainloop=DBusGMainLoop())
        self.connection.set_exit_on_disconnect(False)
        self.connection.add_message_filter(self.on_message)
        self.calls: dict[int, Call] = {}
        self.replies: dict[int, list[Message]] = {}

    def on_message(self, _connection: Any, message: Message) -> Any:
        """Keep the replies."""
        if message.get_type() in (MESSAGE_TYPE_ERROR, MESSAGE_TYPE_METHOD_RETURN):
            self.replies.setdefault(message.get_reply_serial(), []).append(message)
        return dbus.lowlevel.HANDLER_RESULT_NOT_YET_HANDLED

    def send(self, call: Call) -> None:
        """Send a call."""
        _, wants_reply, interface, member, signature, arguments = call
        message = MethodCallMessage(NAME, PATH, interface, member)
        message.append(*arguments, signature=signature)
        message.set_no_reply(not wants_reply)
        self.calls[self.connection.send_message(message)] = call

    def is_waiting(self) -> bool:
        """A reply is missing."""
        return any(call[1] and n not in self.replies for n, call in self.calls.items())

    def check(self) -> None:
        """Each call has the expected number of replies, and they are valid."""
        for serial, call in self.calls.items():
            found = self.replies.get(serial, [])
            assert len(found) == call[1], call
            for reply in found:
                check_reply(call, reply)


def check_reply(call: Call, reply: Message) -> None:
    """Properties of any reply."""
    _, _, interface, member, signature, _ = call
    known = (interface, member) in MEMBERS and MEMBERS[interface, member][0] == signature
    if not isinstance(reply, ErrorMessage):
        # sd-bus answers for the properties, and ignores what follows the arguments of GetAll.
        assert known or interface != INTERFACE, call
        return
    name, (text, *_) = reply.get_error_name(), reply.get_args_list()
    own = name.startswith("org.sutro1.Error.")
    assert own or name in ERRORS or name in REFUSED, (call, name, text)
    if name.endswith("InvalidArgs"):
        assert not known or interface != INTERFACE, (call, text)
    if own:
        assert not [c for c in text if unicodedata.category(c) == "Cc"], text


def snapshot(machine: Machine) -> dict[str, tuple[int, int]]:
    """Mode and size of all files, but those that the daemon writes."""
    found = {}
    for folder, _, files in os.walk(machine.root):
        for path in (folder, *(f"{folder}/{name}" for name in files)):
            place = path.removeprefix(str(machine.root))
            status = os.lstat(path)
            changes = "/fs/cgroup/" in place or place.endswith("/queue/scheduler")
            if not place.startswith(OWN) and place not in ("/etc", "/etc/sutro", ""):
                size = 0 if changes or os.path.isdir(path) else status.st_size
                found[place] = (status.st_mode, size)
    return found


def control_files(machine: Machine) -> list[tuple[str, str]]:
    """Unit and lifetime of all control files, which --check accepts."""
    found, paths = [], []
    for folder, lifetime in zip(CONTROL, ("persistent", "runtime"), strict=True):
        for path in machine.at(folder).glob("*"):
            assert path.suffix == ".policy" and path.lstat().st_mode == 0o100644, path
            found.append((path.stem, lifetime))
            paths.append(path)
    if paths:
        done = subprocess.run([SUTROD, "--check", *paths], stderr=subprocess.PIPE, text=True)
        assert (done.returncode, done.stderr) == (0, "")
    return found


def check_example(
    machine: Machine, sutrod: Sutrod, before: dict[str, tuple[int, int]], example: list[Call | None]
) -> None:
    """Send calls, check the replies, and the files that they leave on the machine."""
    clients = [Client(sutrod.bus), Client(sutrod.bus)]
    for call in example:
        if call is LEAVES:
            clients[1].connection.close()
            clients[1] = Client(sutrod.bus)
        else:
            clients[call[0]].send(call)
    deadline = time.monotonic() + PATIENCE_S
    while any(client.is_waiting() for client in clients):
        assert time.monotonic() < deadline, "a reply is missing"
        # No time passes for the daemon while polkit has its questions.
        sutrod.settle()
        sutrod.bus.ping("org.freedesktop.PolicyKit1")
        sutrod.clock.elapse(STEP_S)
        while GLib.MainContext.default().iteration(False):
            pass
    sutrod.settle()
    for client in clients:
        client.check()
    for unit, lifetime in control_files(machine):
        sutrod.call("ResetPolicy", unit, lifetime)
    assert control_files(machine) == []
    for client in clients:
        client.connection.close()
    sutrod.settle()
    for unit in WORDS["unit"][:5]:
        assert sutrod.call("GetPolicy", unit) == []
    assert sutrod.call("ListPromises") == []
    assert snapshot(machine) == before


def run_examples(
    examples: st.SearchStrategy[Any], check: Callable[[Any], None], number: int | None = None
) -> None:
    """Check many examples: those of a seed, or the same each time."""

    @settings(
        max_examples=1000 if "SUTRO_LONG" in os.environ else 100,
        deadline=None,
        derandomize=number is None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(example=examples)
    def run(example: Any) -> None:
        check(example)

    if number is not None:
        print(f"seed {number}")
        run = seed(number)(run)
    run()


def fuzz(examples: st.SearchStrategy[Any], check: Callable[[Any], None]) -> None:
    """Check the same examples each time, then others for SUTRO_FUZZ_SECONDS."""
    number = time.time_ns()
    end_s = time.monotonic() + float(os.environ.get("SUTRO_FUZZ_SECONDS", "0"))
    run_examples(examples, check)
    while time.monotonic() < end_s:
        run_examples(examples, check, number)
        number += 1


def test_random_calls(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    machine.partition("sdc", "sdc1", "8:33")
    machine.mount("/srv", "254:0", "ext4", "/dev/mapper/vg-db")
    systemd.start("a.service", 200)
    systemd.start("b.service")
    machine.cgroup("/user.slice")
    systemd.unit("user.slice", "/user.slice")
    inner = systemd.start("user-1000.slice", slice="/user.slice")
    # Users name cgroups that are delegated to them; it is in ListUsage if it uses a disk.
    odd = f"{inner}/" + os.fsdecode(b"\xff\x1b[2J")
    machine.cgroup(odd)

    def read(_seconds: float) -> None:
        line = f"254:0 rbytes={sutrod.clock.now_ns} wbytes=0 rios=1 wios=0\n"
        machine.write(f"/sys/fs/cgroup{odd}/io.stat", line)

    sutrod.clock.loads.append(read)
    sutrod.start()
    before = snapshot(machine)
    fuzz(EXAMPLE, lambda example: check_example(machine, sutrod, before, example))
