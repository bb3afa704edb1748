# SPDX-License-Identifier: LGPL-2.1-or-later
"""An unprivileged user attacks sutrod by its bus and by the cgroups delegated to it.

    python3 -m bench.attacks.user NAME FOLDER

FOLDER is the directory of the delegated cgroup. The program becomes the user `nobody`, prints a
line, and runs the attack, one function below, until it is ended. Then it prints the number of
steps.
"""

import contextlib
import itertools
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import dbus
import dbus.lowlevel

NOBODY = 65534
NAME, PATH, INTERFACE = "org.sutro1", "/org/sutro1", "org.sutro1.Manager"
PROPERTIES = "org.freedesktop.DBus.Properties"
# Steps a second at most, in portions.
RATE, PORTION = 10000, 50
LEVELS = 1000
CONNECTIONS = 100
# Bytes of a large call, below the limit of the system bus for a message.
HUGE = 1024 * 1024
FILES = ("io.weight", "io.bfq.weight", "io.sutro.weight", "io.sutro.class")
# Names that a program may take for that of the victim.
ALIKE = ("victim.service\n", " victim.service", "victim.service/", "../victim.service",
         "./victim.service", "victim\\x2eservice", "victim.servic\u0435", "VICTIM.service",
         "victim.service.d", "system.slice/victim.service", "victim@.service", "",
         "a" * 5000 + ".service")  # fmt: skip

Step = Callable[[], object]


def connection() -> dbus.bus.BusConnection:
    return dbus.bus.BusConnection(os.environ["DBUS_SYSTEM_BUS_ADDRESS"])


def sender(method: str, *arguments: object, interface: str = INTERFACE) -> Step:
    """A call without a reply."""
    bus = connection()

    def send() -> None:
        call = dbus.lowlevel.MethodCallMessage(NAME, PATH, interface, method)
        call.append(*arguments)
        call.set_no_reply(True)
        bus.send_message(call)
        bus.flush()

    return send


def in_turn(steps: list[Step]) -> Step:
    """One of these at each step."""
    turn = itertools.cycle(steps)
    return lambda: next(turn)()


# ---- bus ----


def calls(_folder: Path) -> Step:
    """ListUnits."""
    return sender("ListUnits")


def connections(_folder: Path) -> Step:
    """ListUnits by 100 connections, none of which reads its replies."""

    def one() -> Step:
        bus = connection()

        def send() -> None:
            bus.send_message(dbus.lowlevel.MethodCallMessage(NAME, PATH, INTERFACE, "ListUnits"))
            bus.flush()

        return send

    return in_turn([one() for _ in range(CONNECTIONS)])


def properties(_folder: Path) -> Step:
    """GetAll of the properties, and introspection."""
    introspectable = "org.freedesktop.DBus.Introspectable"
    return in_turn(
        [
            sender("GetAll", INTERFACE, interface=PROPERTIES),
            sender("Introspect", interface=introspectable),
        ]
    )


def samples(_folder: Path) -> Step:
    """Calls whose reply waits for a sample, or for a child process."""
    return in_turn(
        [
            sender("Explain", "victim.service"),
            sender("ListUsage"),
            sender("ResolvePath", "/dev/vg/db"),
            sender("Dump"),
        ]
    )


def policies(_folder: Path) -> Step:
    """SetPolicy and CheckPolicies with 1 MiB of text."""
    pairs = dbus.Array([("IOWeight", "1" * HUGE)], signature="(ss)")
    files = dbus.Array([("/etc/sutro/a.policy", "[x]\n" * (HUGE // 4))], signature="(ss)")
    return in_turn(
        [
            sender("SetPolicy", "victim.service", pairs, "runtime"),
            sender("CheckPolicies", files),
        ]
    )


def many_keys(_folder: Path) -> Step:
    """SetPolicy with 10,000 assignments, for many units."""
    key = ("ReadBandwidthMin", "/dev/vg/db 1M")
    pairs = dbus.Array([key] * 10000, signature="(ss)")
    return in_turn([sender("SetPolicy", f"u{n}.service", pairs, "client") for n in range(20)])


def names(folder: Path) -> Step:
    """Names made to look like that of the victim: of units in calls, and of delegated cgroups."""
    pairs = dbus.Array([("IOWeight", "1")], signature="(ss)")
    for name in ("victim.service", "system.slice", "-.slice", "victim.service.d"):
        cgroup(folder / name, 10000)
    set_weights = [sender("SetPolicy", name, pairs, "runtime") for name in ALIKE]
    return in_turn([*set_weights, *(sender("GetPolicy", name) for name in ALIKE)])


def signals(_folder: Path) -> Step:
    """Signals in the name of systemd, sent to sutrod."""
    bus = connection()

    def send() -> None:
        manager = "org.freedesktop.systemd1.Manager"
        signal = dbus.lowlevel.SignalMessage("/org/freedesktop/systemd1", manager, "UnitRemoved")
        path = dbus.ObjectPath("/org/freedesktop/systemd1/unit/victim_2eservice")
        signal.append("victim.service", path)
        signal.set_destination(NAME)
        bus.send_message(signal)
        bus.flush()

    return send


# ---- cgroups ----


def cgroup(folder: Path, weight: int = 100) -> None:
    """A cgroup; the kernel makes the files of one."""
    folder.mkdir()
    for name in FILES:
        (folder / name).write_text(f"default {weight}\n")


def numbers(limit: int) -> Iterator[int]:
    return itertools.cycle(range(limit))


def flood(folder: Path) -> Step:
    """5,000 cgroups, and weights of one after the other."""
    for number in range(5000):
        cgroup(folder / f"c{number}")
    turn = numbers(5000)
    return lambda: rewrite(folder / f"c{next(turn)}" / "io.weight", 7)


def chain(folder: Path) -> Step:
    """A chain of 1,000 cgroups, and weights of the deepest one."""
    fd = os.open(folder, os.O_DIRECTORY)
    for _ in range(LEVELS):
        os.mkdir("c", dir_fd=fd)
        inner = os.open("c", os.O_DIRECTORY, dir_fd=fd)
        os.close(fd)
        fd = inner
        for name in FILES:
            with open(
                name, "w", opener=lambda p, f, fd=fd: os.open(p, f, 0o644, dir_fd=fd)
            ) as file:
                file.write("default 100\n")
    turn = numbers(10000)

    def step() -> None:
        file = os.open("io.weight", os.O_WRONLY, dir_fd=fd)
        os.write(file, f"default {next(turn) + 1}\n".encode())
        os.close(file)

    return step


def churn(folder: Path) -> Step:
    """Cgroups that are made and removed."""
    turn = itertools.count()

    def step() -> None:
        one = folder / f"c{next(turn) % 100}"
        shutil.rmtree(one, ignore_errors=True)
        cgroup(one)

    return step


def rewrite(file: Path, value: int) -> None:
    """Write a cgroup file in place."""
    fd = os.open(file, os.O_WRONLY)
    os.write(fd, f"default {value}\n".encode())
    os.close(fd)


def weights(folder: Path) -> Step:
    """A weight of a cgroup of its own, and another one in turn: no two events are equal."""
    for name in "ab":
        cgroup(folder / name)
    turn = itertools.count()

    def step() -> None:
        number = next(turn)
        rewrite(folder / "ab"[number % 2] / "io.weight", number % 10000 + 1)

    return step


def overflow(folder: Path) -> Step:
    """Events in portions of 40,000, more than an inotify queue holds."""
    step = weights(folder)

    def portion() -> None:
        for _ in range(40000):
            step()

    return portion


def subtree_control(folder: Path) -> Step:
    """subtree_control of a unit, which is about all cgroups below, and another file in turn."""
    for number in range(100):
        cgroup(folder / f"c{number}")
    files = [folder / "cgroup.subtree_control", folder / "cgroup.procs"]
    for file in files:
        file.write_text("default 0\n")
    turn = itertools.count()

    def step() -> None:
        number = next(turn)
        rewrite(files[number % 2], number % 10)

    return step


ATTACKS = (
    calls, connections, properties, samples, policies, many_keys, names, signals, flood, chain,
    churn, weights, overflow, subtree_control,
)  # fmt: skip
# FOLDER is the cgroup of a unit for these; for the others it is one below that.
BY_UNIT = ("subtree_control",)


def main(name: str, folder: Path) -> None:
    """Attack until a signal comes."""
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    count = 0
    with contextlib.suppress(KeyboardInterrupt):
        step = {one.__name__: one for one in ATTACKS}[name](folder)
        print("ready", flush=True)
        due_s = time.monotonic()
        while True:
            for _ in range(PORTION):
                with contextlib.suppress(dbus.DBusException):
                    step()
                count += 1
            due_s = max(due_s + PORTION / RATE, time.monotonic() - 1)
            time.sleep(max(0.0, due_s - time.monotonic()))
    print(count, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
