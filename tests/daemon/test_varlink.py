# SPDX-License-Identifier: LGPL-2.1-or-later
"""io.sutro.Status: the lists of the bus over varlink, once or with each change; metrics."""

import contextlib
import json
import re
import select
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import dbus
import pytest
from fakemachine import PATIENCE_S, Machine, Sutrod, Systemd
from plant import STRIPE, Plant, crowd, hold

INTERFACE = "io.sutro.Status"
METRICS = "io.systemd.Metrics"
METHODS = {
    "ListDevices": "devices",
    "ListUnits": "units",
    "ListGuarantees": "guarantees",
    "ListCapacities": "capacities",
}
KINDS = {
    bool: ("bool",),
    int: ("int", "float"),
    float: ("float",),
    str: ("string",),
    list: ("[]string", "[]DeviceWeight", "[]GuaranteeLeaf"),
}
# Connections that read nothing, less than a user may have, and the memory that one may take.
DEAF, ROUNDS, KEPT_KIB = 12, 30, 1024
USER_MAX = 16
# A message may have 64 KiB; sd-varlink takes 16 MiB.
LONG_BYTES, LONGEST_BYTES = 15 << 20, 1 << 16
# More replies than a socket takes before one is read.
CHANGES = 150
BUS = {"ListGuarantees": "ListPromises"}
CAPACITY = f"[Capacity]\nDevice={STRIPE} read=400M write-iops=2K\n"


def path(sutrod: Sutrod) -> Path:
    return sutrod.machine.at("/run/sutro") / INTERFACE


class Link:
    """A connection; messages are JSON, each ended by a zero byte."""

    def __init__(self, sutrod: Sutrod) -> None:
        self.sutrod = sutrod
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(PATIENCE_S)
        self.socket.connect(str(path(sutrod)))
        self.buffer = b""

    def send(self, method: str, interface: str = INTERFACE, **flags: object) -> None:
        message = {"method": f"{interface}.{method}", "parameters": {}} | flags
        self.socket.sendall(json.dumps(message).encode() + b"\0")

    def receive(self) -> dict:
        while b"\0" not in self.buffer:
            received = self.socket.recv(65536)
            assert received, "the daemon closed the connection"
            self.buffer += received
        text, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(text)

    def has_reply(self) -> bool:
        """Is there a reply after the daemon has done all that it has to do now?"""
        self.sutrod.settle()
        if select.select([self.socket], [], [], 0)[0]:
            self.buffer += self.socket.recv(65536)
        return b"\0" in self.buffer

    def call(self, method: str, **flags: object) -> dict:
        self.send(method, **flags)
        return self.receive()


@contextlib.contextmanager
def link(sutrod: Sutrod) -> Iterator[Link]:
    made = Link(sutrod)
    try:
        yield made
    finally:
        made.socket.close()


def plain(value: object) -> object:
    """A value of dbus-python as JSON has it."""
    text = json.dumps(value, default=str)
    return json.loads(text)


def from_bus(sutrod: Sutrod, method: str) -> object:
    """The list of the bus; device weights are pairs there."""
    found = plain(sutrod.call(BUS.get(method, method)))
    for entry in found:
        if "device_weights" in entry:
            pairs = entry["device_weights"]
            entry["device_weights"] = [{"path": p, "weight": w} for p, w in pairs]
        for key in ("leaf", "managed", "hung", "weight_set"):
            if key in entry and isinstance(entry[key], int):
                entry[key] = bool(entry[key])
    return found


@pytest.fixture
def held(machine: Machine, systemd: Systemd, sutrod: Sutrod, plant: Plant) -> Sutrod:
    """A daemon with units, weights, a declared capacity and a floor that holds."""
    machine.write("/etc/sutro/sutrod.conf", CAPACITY)
    crowd(systemd, plant)
    systemd.start("web.service", 200, [("/dev/vg/db", 400)])
    sutrod.start()
    hold(sutrod)
    return sutrod


def varlinkctl(*words: object) -> str:
    done = subprocess.run(
        ["varlinkctl", "--no-pager", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("method", METHODS)
def test_lists_are_those_of_the_bus(held: Sutrod, method: str) -> None:
    """Any user may call: the socket has the mode 0666."""
    with link(held) as one:
        reply = one.call(method)
    assert reply.keys() == {"parameters"}
    found = reply["parameters"][METHODS[method]]
    assert found == from_bus(held, method)
    assert found
    assert path(held).stat().st_mode & 0o777 == 0o666


def test_varlinkctl_validates_the_interface(held: Sutrod) -> None:
    """The description is valid, and has each key of the lists with its type."""
    text = varlinkctl("introspect", path(held), INTERFACE)
    with link(held) as one:
        lists = {field: one.call(m)["parameters"][field] for m, field in METHODS.items()}
    for name, entries in (
        ("Device", lists["devices"]),
        ("Unit", lists["units"]),
        ("Guarantee", lists["guarantees"]),
        ("GuaranteeLeaf", lists["guarantees"][0]["leaves"]),
        ("Capacity", lists["capacities"]),
    ):
        described = re.search(rf"type {name} ?\((.*?)\n\)", text, re.DOTALL)
        assert described, text
        known = dict(re.findall(r"(\w+) ?: ?([^,\n]+)", re.sub("#.*", "", described[1])))
        for entry in entries:
            needed = {key for key, kind in known.items() if not kind.startswith("?")}
            assert needed <= entry.keys() <= known.keys()
            for key, value in entry.items():
                assert known[key].removeprefix("?") in KINDS[type(value)], (name, key)
    info = varlinkctl("info", path(held))
    assert "sutrod" in info and INTERFACE in info


def test_varlinkctl_calls(held: Sutrod) -> None:
    text = varlinkctl("call", "--json=short", path(held), f"{INTERFACE}.ListGuarantees", "{}")
    (entry,) = json.loads(text)["guarantees"]
    assert entry["unit"] == "db.service" and entry["value"] == 60_000_000


def test_more_streams_changes(held: Sutrod) -> None:
    """A list comes at once, and again within a second of a change; without a change none does."""
    with link(held) as one:
        first = one.call("ListUnits", more=True)
        assert first["continues"]
        held.elapse(5)
        assert not one.has_reply()
        held.call("SetPolicy", "web.service", [("Weight", "700")], "runtime")
        held.elapse(1.5)
        second = one.receive()
        assert second["continues"]
        before, after = (
            {unit["unit"]: unit for unit in reply["parameters"]["units"]}
            for reply in (first, second)
        )
        assert before["web.service"]["weight"] == 200
        assert {name for name in after if after[name] != before.get(name)} == {"web.service"}
        assert after["web.service"]["weight"] == 700
        held.elapse(3)
        assert not one.has_reply()


def test_more_streams_guarantees_and_devices(held: Sutrod) -> None:
    """Several calls on several connections; each gets its own list."""
    with link(held) as guarantees, link(held) as devices:
        guarantees.call("ListGuarantees", more=True)
        devices.call("ListDevices", more=True)
        held.call("ResetPolicy", "db.service", "runtime")
        held.elapse(1.5)
        while (reply := guarantees.receive())["parameters"]["guarantees"]:
            assert reply["continues"]
        assert not devices.has_reply()
        held.call("UseDevices", ["/dev/sdd"])
        held.elapse(1.5)
        found = {d["name"]: d for d in devices.receive()["parameters"]["devices"]}
        assert found["sdd"]["scheduler"] == "sutro" and found["sdd"]["managed"]


def test_more_streams_capacities(held: Sutrod) -> None:
    """A reply follows when a floor, or the declared capacity, changes."""
    key = {"path": STRIPE, "device": "/dev/dm-0", "key": "ReadBandwidthMin"}
    with link(held) as one:
        first = one.call("ListCapacities", more=True)
        assert first["continues"]
        rate = {"capacity": 400_000_000, "promised": 60_000_000, "left": 340_000_000}
        assert first["parameters"]["capacities"][0] == key | rate
        held.elapse(3)
        assert not one.has_reply()
        floor = [("ReadBandwidthMin", f"{STRIPE} 500M")]
        held.call("SetPolicy", "db.service", floor, "runtime")
        held.elapse(1.5)
        second = one.receive()
        rate |= {"promised": 500_000_000, "left": 0}
        assert second["continues"] and second["parameters"]["capacities"][0] == key | rate
        held.machine.write("/etc/sutro/sutrod.conf", "")
        held.call("Reload")
        held.elapse(1.5)
        assert one.receive()["parameters"]["capacities"] == []


def test_a_client_that_goes_costs_nothing(held: Sutrod) -> None:
    """Without followers the timer is off, and others are served."""
    for _ in range(40):
        with link(held) as one:
            one.call("ListGuarantees", more=True)
    held.settle()
    held.elapse(3)
    with link(held) as one:
        assert one.call("ListDevices")["parameters"]["devices"]


def test_connections_of_a_user(held: Sutrod) -> None:
    """A user has 16. A further one is closed, and the place of one that has ended is free."""
    with contextlib.ExitStack() as stack:
        many = [stack.enter_context(link(held)) for _ in range(USER_MAX)]
        assert all(one.call("ListDevices")["parameters"]["devices"] for one in many)
        with link(held) as beyond:
            assert not beyond.socket.recv(1)
        many[0].socket.close()
        held.settle()
        with link(held) as other:
            assert other.call("ListDevices")["parameters"]["devices"]


def weight_of(reply: dict, name: str) -> int:
    return next(u["weight"] for u in reply["parameters"]["units"] if u["unit"] == name)


def test_a_follower_that_reads_nothing(held: Sutrod) -> None:
    """It delays no other client; once it reads, it gets the last state, and not each before."""
    last = 100 + CHANGES
    with link(held) as deaf, link(held) as other:
        deaf.send("ListUnits", more=True)
        for weight in range(101, last + 1):
            held.call("SetPolicy", "web.service", [("Weight", str(weight))], "runtime")
            held.elapse(1.5)
        assert other.call("ListDevices")["parameters"]["devices"]
        replies = 1
        while weight_of(deaf.receive(), "web.service") != last:
            replies += 1
            held.elapse(1.5)
        assert replies < CHANGES


def send_what_fits(one: Link, text: bytes) -> int:
    """Send until the socket takes no more; the bytes."""
    one.socket.setblocking(False)
    total = 0
    with contextlib.suppress(BlockingIOError):
        while True:
            total += one.socket.send(text)
    return total


def largest_kib(sutrod: Sutrod) -> int:
    assert sutrod.process
    text = Path(f"/proc/{sutrod.process.pid}/status").read_text()
    return int(text.partition("VmHWM:")[2].split()[0])


@pytest.mark.parametrize(
    "call",
    [
        {"method": f"{INTERFACE}.ListUnits"},
        # sd-varlink answers these by itself.
        {
            "method": "org.varlink.service.GetInterfaceDescription",
            "parameters": {"interface": INTERFACE},
        },
        {"method": "io.sutro.Other.List"},
    ],
)
def test_memory_of_replies_that_are_not_read(held: Sutrod, call: dict) -> None:
    """The daemon keeps no more than a reply for each connection, and serves it when it reads."""
    before_kib = largest_kib(held)
    portion = (json.dumps(call).encode() + b"\0") * 100
    with contextlib.ExitStack() as stack:
        deaf = [stack.enter_context(link(held)) for _ in range(DEAF)]
        sent = 0
        for _ in range(ROUNDS):
            sent += sum(send_what_fits(one, portion) for one in deaf)
            held.settle()
        # The last round added nothing: the daemon reads no further calls.
        assert not sum(send_what_fits(one, portion) for one in deaf)
        assert largest_kib(held) - before_kib < DEAF * KEPT_KIB
        with link(held) as other:
            assert other.call("ListDevices")["parameters"]["devices"]
        deaf[0].socket.settimeout(PATIENCE_S)
        for _ in range(sent // DEAF // len(portion) * 50):
            assert deaf[0].receive()


def send_part(one: Link, text: memoryview) -> memoryview:
    """Send what the socket takes now; the rest, which is empty for a connection that has ended."""
    one.socket.setblocking(False)
    try:
        return text[one.socket.send(text) :]
    except BlockingIOError:
        return text
    except (BrokenPipeError, ConnectionResetError):
        return text[:0]


def is_ended(one: Link) -> bool:
    """Has the daemon closed the connection?"""
    try:
        return not one.socket.recv(65536)
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True


@pytest.mark.parametrize("end", ["", "0]\0"], ids=["unfinished", "whole"])
def test_memory_of_long_messages(held: Sutrod, end: str) -> None:
    """A message of more than 64 KiB ends its connection, with or without an end; others go on."""
    text = ("[" + "0," * (LONG_BYTES // 2) + end).encode()
    before_kib = largest_kib(held)
    with contextlib.ExitStack() as stack, link(held) as other:
        many = [stack.enter_context(link(held)) for _ in range(DEAF)]
        left = dict.fromkeys(many, memoryview(text))
        while left := {one: rest for one, rest in left.items() if rest}:
            for one in left:
                left[one] = send_part(one, left[one])
            held.settle()
        assert all(map(is_ended, many))
        assert largest_kib(held) - before_kib < DEAF * KEPT_KIB
        assert other.call("ListDevices")["parameters"]["devices"]


def test_length_of_a_message(held: Sutrod) -> None:
    """Each of many messages may have 64 KiB with its end, however its parts come."""
    call = json.dumps({"method": f"{INTERFACE}.ListDevices"}).encode()
    longest = call + b" " * (LONGEST_BYTES - len(call) - 1) + b"\0"
    with link(held) as one:
        for text in (longest, call + b"\0" + longest, longest[:-1], b"\0" + call, b"\0"):
            one.socket.sendall(text)
            held.settle()
        for _ in range(5):
            assert one.receive()["parameters"]["devices"]
        one.socket.sendall(b" " + longest)
        held.settle()
        assert is_ended(one)


def test_client_that_sends_no_further_call(held: Sutrod) -> None:
    """A client that has shut down its direction, as with nc -N, gets the replies to its calls."""
    with link(held) as one:
        one.send("ListDevices")
        one.send("ListUnits")
        one.socket.shutdown(socket.SHUT_WR)
        held.settle()
        assert one.receive()["parameters"]["devices"]
        assert one.receive()["parameters"]["units"]
        assert not one.socket.recv(1)


def metrics(sutrod: Sutrod, method: str) -> list[dict]:
    """The replies to a method of io.systemd.Metrics, all but the last with the flag for more."""
    with link(sutrod) as one:
        one.send(method, METRICS, more=True)
        replies = [one.receive()]
        while replies[-1].get("continues"):
            replies.append(one.receive())
    return [reply["parameters"] for reply in replies]


def test_metrics_of_guarantees(held: Sutrod) -> None:
    """As systemd-report(1) requires: a reply for each metric, named as the socket and described."""
    (promise,) = from_bus(held, "ListGuarantees")
    found = metrics(held, "List")
    families = {entry["name"]: entry["type"] for entry in metrics(held, "Describe")}
    assert {entry["name"] for entry in found} == families.keys()
    for entry in found:
        assert entry["name"].startswith(f"{path(held).name}.")
        assert isinstance(entry["value"], str) == (families[entry["name"]] == "string")
        assert entry["object"] == "db.service"
        assert entry["fields"] == {key: promise[key] for key in ("key", "path", "cgroup")}
    values = {entry["name"].rpartition(".")[2]: entry["value"] for entry in found}
    assert values == {
        "GuaranteePromised": promise["value"],
        "GuaranteeReceived": promise["got"],
        "GuaranteeGranted": promise["granted"],
        "GuaranteeState": promise["state"],
    }


def test_ceiling_of_infinity_is_no_metric(held: Sutrod) -> None:
    names = [entry["name"] for entry in metrics(held, "List")]
    infinity = [("ReadBandwidthMax", f"{STRIPE} infinity")]
    held.call("SetPolicy", "db.service", infinity, "runtime")
    held.settle()
    assert len(from_bus(held, "ListGuarantees")) == 2
    found = [entry["name"] for entry in metrics(held, "List")]
    assert found.count(names[0]) == 1 and names[0].endswith("GuaranteePromised")
    assert len(found) == 2 * len(names) - 1


def test_metrics_by_varlinkctl(held: Sutrod) -> None:
    text = varlinkctl("introspect", path(held), METRICS)
    assert "method Describe" in text
    text = varlinkctl("call", "--more", "--json=short", path(held), f"{METRICS}.List", "{}")
    assert '"GuaranteeState"' not in text and '"io.sutro.Status.GuaranteeState"' in text


def test_socket_before_readiness(machine: Machine, sutrod: Sutrod) -> None:
    """Without cgroups no answer of systemd delays the readiness."""
    for name in ("init.scope", "system.slice"):
        shutil.rmtree(machine.at(f"/sys/fs/cgroup/{name}"))
    sutrod.start()
    assert path(sutrod).exists()


def test_no_metrics_without_guarantees(systemd: Systemd, sutrod: Sutrod, plant: Plant) -> None:
    crowd(systemd, plant)
    sutrod.start()
    with link(sutrod) as one:
        one.send("List", METRICS, more=True)
        assert one.receive()["error"] == f"{METRICS}.NoSuchMetric"


@pytest.mark.parametrize(
    ("message", "error"),
    [
        ({"method": f"{INTERFACE}.SetWeight"}, "org.varlink.service.MethodNotFound"),
        ({"method": "io.sutro.Other.List"}, "org.varlink.service.MethodNotFound"),
        (
            {"method": f"{INTERFACE}.ListUnits", "parameters": {"unit": "x"}},
            "org.varlink.service.InvalidParameter",
        ),
        ({"method": f"{METRICS}.List"}, "org.varlink.service.ExpectedMore"),
    ],
)
def test_errors(held: Sutrod, message: dict, error: str) -> None:
    with link(held) as one:
        one.socket.sendall(json.dumps(message).encode() + b"\0")
        assert one.receive()["error"] == error


@pytest.mark.parametrize("text", [b"\0", b"nonsense\0", b"[]\0", b'{"method":7}\0', b"{{{"])
def test_nonsense_ends_the_connection_only(held: Sutrod, text: bytes) -> None:
    with link(held) as one, link(held) as other:
        one.socket.sendall(text)
        held.settle()
        assert other.call("ListDevices")["parameters"]["devices"]


def test_calls_are_charged(held: Sutrod) -> None:
    """The account is that of the bus: a user who has used up its time is refused on both."""
    held.clock.cpu_ns = 300_000_000
    held.settle()
    with link(held) as one:
        for _ in range(4):
            assert "error" not in one.call("ListGuarantees")
        assert one.call("ListGuarantees")["error"] == f"{INTERFACE}.TooManyCalls"
        with pytest.raises(dbus.DBusException) as caught:
            held.call("ListDevices")
        assert caught.value.get_dbus_name() == "org.freedesktop.DBus.Error.LimitsExceeded"
        held.elapse(10)
        assert "error" not in one.call("ListGuarantees")


OWN = "org.varlink.service"


@pytest.mark.parametrize(
    "call",
    [
        {"method": "GetInfo", "interface": OWN},
        {
            "method": "GetInterfaceDescription",
            "interface": OWN,
            "parameters": {"interface": INTERFACE},
        },
        {"method": "GetNothing", "interface": OWN},
        {"method": "Describe", "interface": METRICS, "more": True},
    ],
)
def test_calls_without_a_list_are_charged(held: Sutrod, call: dict) -> None:
    """Also those that sd-varlink answers by itself: beyond the quota, each second has one."""
    held.clock.cpu_ns = 300_000_000
    held.settle()
    with link(held) as one, link(held) as two:
        for _ in range(20):
            one.send(**call)
            two.send(**call)
        # Four of the saved time, and the one that finds the account overdrawn.
        assert count(one) + count(two) == 5
        with pytest.raises(dbus.DBusException) as caught:
            held.call("ListDevices")
        assert caught.value.get_dbus_name() == "org.freedesktop.DBus.Error.LimitsExceeded"
        held.elapse(1.2)
        assert count(one) + count(two) == 1
        held.elapse(30)
        assert count(one) + count(two) > 1


def count(one: Link) -> int:
    """The replies that are there; those of a call with `more` are one."""
    found = 0
    while one.has_reply():
        found += not one.receive().get("continues")
    return found


def test_the_end_of_the_daemon_removes_the_socket(held: Sutrod) -> None:
    assert path(held).exists()
    assert held.stop() == 0
    assert not path(held).exists()
