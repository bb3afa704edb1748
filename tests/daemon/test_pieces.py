# SPDX-License-Identifier: LGPL-2.1-or-later
"""Lists of many cgroups: the loop of sutrod makes them in pieces, and serves others in between."""

import shutil
import signal
from collections.abc import Callable

import pytest
from clients import send
from fakemachine import INTERFACE, Bus, Machine, Sutrod, Systemd, arrive
from plant import STRIPE
from test_crowds import LOOK_MS, listener, looks
from test_varlink import METRICS, link

FLOORS, PIECE = 400, 32
# Calls of a user that may wait for samples.
WAITERS = 32
LISTS = {"ListPromises": "aa{sv}", "ListPromiseStates": "a(ssssssttd)", "ListUnits": "aa{sv}"}


@pytest.fixture
def boxes(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> list[str]:
    """Cgroups with a floor each, and a daemon that keeps the floors."""
    service = systemd.start("box.service", 50)
    boxes = [f"{service}/{number:03}" for number in range(FLOORS)]
    for box in boxes:
        machine.cgroup(box, 300)
    policy = f"[Match]\nCgroup={service}/*\n[X-Sutro]\nReadBandwidthMin={STRIPE} 10K\n"
    machine.write("/etc/sutro/policy.d/box.policy", policy)
    sutrod.start()
    sutrod.until(lambda: len(sutrod.call("ListPromiseStates")) == FLOORS)
    return boxes


@pytest.mark.parametrize("member", LISTS)
def test_list_of_the_bus(bus: Bus, boxes: list[str], sutrod: Sutrod, member: str) -> None:
    """The loop looks at what is ready after each 32 entries, and the list has all of them."""
    caller, sent = listener(bus)
    sutrod.settle()
    sutrod.clock.settle(hold=True)
    few = looks(sutrod)
    sutrod.clock.settle(hold=True)
    send(caller, member)
    assert looks(sutrod) >= few + FLOORS // PIECE
    arrive(sent, 1)
    (reply,) = sent
    assert reply.get_signature() == LISTS[member]
    (entries,) = reply.get_args_list()
    named = [str(one[1] if member == "ListPromiseStates" else one["cgroup"]) for one in entries]
    assert set(boxes) <= set(named) and len(named) == len(set(named))
    caller.close()


class Readers:
    """Cgroups that read from a disk, each as much as the others."""

    def __init__(self, machine: Machine, cgroups: list[str]) -> None:
        self.machine, self.cgroups, self.rbytes = machine, cgroups, 0

    def serve(self, seconds: float) -> None:
        self.rbytes += round(seconds * 1e6)
        line = f"8:32 rbytes={self.rbytes} wbytes=0 rios=1 wios=0 dbytes=0 dios=0\n"
        for cgroup in self.cgroups:
            self.machine.write(f"/sys/fs/cgroup{cgroup}/io.stat", line)


@pytest.fixture
def readers(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> Readers:
    """Cgroups without settings, after two samples of their reads."""
    service = systemd.start("box.service", 50)
    readers = Readers(machine, [f"{service}/{number:03}" for number in range(FLOORS)])
    for cgroup in readers.cgroups:
        machine.cgroup(cgroup, 300)
    readers.serve(1)
    sutrod.start()
    sutrod.clock.loads.append(readers.serve)
    assert sorted(row["cgroup"] for row in sutrod.call("ListUsage")) == readers.cgroups
    sutrod.clock.loads.clear()
    return readers


def test_list_of_samples(bus: Bus, readers: Readers, sutrod: Sutrod) -> None:
    """ListUsage is made in pieces, too, when samples are there and when it waits for them."""
    caller, sent = listener(bus)
    sutrod.settle()
    sutrod.clock.settle(hold=True)
    few = looks(sutrod)
    for seconds in (0, 20):
        sutrod.clock.loads.append(readers.serve)
        sutrod.elapse(seconds)
        sutrod.clock.settle(hold=True)
        send(caller, "ListUsage")
        if seconds:
            # The second sample after the call, which ends with the list.
            sutrod.settle()
            readers.serve(1)
            sutrod.clock.settle(hold=True)
        assert looks(sutrod, 1 if seconds else 0) >= few + FLOORS // PIECE
        sutrod.clock.loads.clear()
        arrive(sent, 1)
        (rows,) = sent.pop().get_args_list()
        assert sorted(str(row["cgroup"]) for row in rows) == readers.cgroups
    caller.close()


def test_calls_that_wait_for_one_sample(bus: Bus, readers: Readers, sutrod: Sutrod) -> None:
    """The loop looks at what is ready after each of them."""
    caller, sent = listener(bus)
    sutrod.elapse(20)
    sutrod.clock.settle(hold=True)
    for _ in range(WAITERS):
        send(caller, "ListUsage")
    sutrod.settle()
    readers.serve(1)
    sutrod.clock.settle(hold=True)
    assert looks(sutrod, 1) >= WAITERS * (FLOORS // PIECE + 1)
    arrive(sent, WAITERS)
    for message in sent:
        (rows,) = message.get_args_list()
        assert {int(row["rbytes_per_s"]) for row in rows} == {10**6}
        assert len(rows) == FLOORS
    caller.close()


def test_list_of_one_sample(bus: Bus, readers: Readers, sutrod: Sutrod) -> None:
    """The next sample, which is due during the list, waits for its end."""
    caller, sent = listener(bus)
    sutrod.settle()
    sutrod.clock.settle(hold=True)
    send(caller, "ListUsage")
    # The counters of the next sample would be rates of others.
    readers.serve(7)
    before_ns = sutrod.clock.now_ns
    sutrod.clock.settle(look_ns=300_000_000)
    assert sutrod.clock.now_ns - before_ns > 2e9
    arrive(sent, 1)
    (rows,) = sent[0].get_args_list()
    assert len(rows) == FLOORS
    assert {int(row["rbytes_per_s"]) for row in rows} == {10**6}
    caller.close()
    # There are samples after the list.
    sutrod.clock.loads.append(readers.serve)
    sutrod.elapse(3)
    assert len(sutrod.call("ListUsage")) == FLOORS


@pytest.mark.parametrize("method", ["ListGuarantees", "ListUnits", "List"])
@pytest.mark.parametrize("more", [False, True])
def test_list_of_varlink(boxes: list[str], sutrod: Sutrod, method: str, more: bool) -> None:
    """The same, for the first reply, and for the next one after a change."""
    interface = {"interface": METRICS} if method == "List" else {}
    with link(sutrod) as one:
        one.call("ListDevices")
        sutrod.clock.settle(hold=True)
        one.send(method, **interface, more=more or method == "List")
        assert looks(sutrod) >= FLOORS // PIECE
        field = {"ListGuarantees": "guarantees", "ListUnits": "units"}.get(method)
        if not field:
            return
        found = {entry["cgroup"] for entry in one.receive()["parameters"][field]}
        assert set(boxes) <= found
        if more:
            shutil.rmtree(sutrod.machine.at(f"/sys/fs/cgroup{boxes[7]}"))
            sutrod.settle()
            sutrod.clock.settle(hold=True)
            assert looks(sutrod, 1.5) >= FLOORS // PIECE
            assert found - {e["cgroup"] for e in one.receive()["parameters"][field]} == {boxes[7]}


def test_call_without_a_reply(boxes: list[str], sutrod: Sutrod) -> None:
    """Its list is not the reply to the call after it."""
    with link(sutrod) as one:
        one.send("ListGuarantees", oneway=True)
        assert one.call("ListUnits")["parameters"].keys() == {"units"}
        assert one.call("ListDevices")["parameters"].keys() == {"devices"}


def test_weights_do_not_wait_for_a_list(
    bus: Bus, boxes: list[str], machine: Machine, sutrod: Sutrod
) -> None:
    """A weight that another program changes is written before a list that was called first ends.

    The loop's work takes time only by its looks. 50 ms are the time for which a weight may wait.
    """
    caller, sent = listener(bus)
    caller.add_match_string(f"type='signal',interface='{INTERFACE}',member='WeightChanged'")
    sutrod.settle()
    sutrod.clock.settle(hold=True)
    for _ in range(8):
        send(caller, "ListPromises")
    machine.write(f"/sys/fs/cgroup{boxes[0]}/io.weight", "default 700\n")
    sutrod.clock.settle(look_ns=LOOK_MS * 1_000_000)
    arrive(sent, 9)
    members = [message.get_member() for message in sent]
    # Of the 104 pieces, those of 50 ms come before it.
    assert members.index("WeightChanged") <= 50 // (FLOORS // PIECE) + 1
    caller.close()


def test_call_during_a_list(bus: Bus, boxes: list[str], sutrod: Sutrod) -> None:
    """A short call that came after the list is answered before it."""
    caller, sent = listener(bus)
    sutrod.settle()
    sutrod.clock.settle(hold=True)
    send(caller, "ListPromises")
    send(caller, "ListDevices")
    looks(sutrod)
    arrive(sent, 2)
    sizes = [len(message.get_args_list()[0]) for message in sent]
    assert sizes[0] < FLOORS and sizes[1] == FLOORS
    caller.close()


def gone(sutrod: Sutrod) -> None:
    """No client reads the lists."""
    with link(sutrod) as one:
        for _ in range(3):
            one.send("ListGuarantees", more=True)
    with link(sutrod) as one:
        one.send("List", METRICS, more=True)


def removed(sutrod: Sutrod) -> None:
    """The cgroups of a list go away."""
    for number in range(FLOORS):
        shutil.rmtree(sutrod.machine.at(f"/sys/fs/cgroup/system.slice/box.service/{number:03}"))


def changed(sutrod: Sutrod) -> None:
    """The settings of a list go away."""
    sutrod.machine.at("/etc/sutro/policy.d/box.policy").unlink()
    assert sutrod.process
    sutrod.process.send_signal(signal.SIGHUP)


@pytest.mark.parametrize("event", [gone, removed, changed])
def test_list_while_its_content_changes(
    bus: Bus, boxes: list[str], sutrod: Sutrod, event: Callable[[Sutrod], None]
) -> None:
    """Each list is answered, with entries that were there, and the next one is right."""
    caller, sent = listener(bus)
    sutrod.settle()
    sutrod.clock.settle(hold=True)
    for member in LISTS:
        send(caller, member)
    event(sutrod)
    looks(sutrod)
    arrive(sent, len(LISTS))
    for message in sent:
        assert message.get_signature() in LISTS.values()
    sutrod.settle()
    sutrod.elapse(3)
    left = len(sutrod.call("ListPromises"))
    assert left == (FLOORS if event is gone else 0)
    caller.close()


def test_stop_during_a_list(bus: Bus, boxes: list[str], sutrod: Sutrod) -> None:
    """A daemon that is stopped ends, with lists that are not complete and calls that wait."""
    caller, sent = listener(bus)
    with link(sutrod) as one:
        one.send("ListGuarantees", more=True)
        for _ in range(20):
            send(caller, "ListPromises")
        arrive(sent, 1)
        assert sutrod.stop() == 0
    caller.close()
