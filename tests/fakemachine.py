# SPDX-License-Identifier: LGPL-2.1-or-later
"""The whole daemon on a fake machine: a directory for sysfs and cgroups, a private bus, mocks of
systemd and polkit (python-dbusmock). kernelfiles.c makes the weight files behave like the kernel's.

    SUTROD             the binary
    SUTRO_KERNELFILES  kernelfiles.so for LD_PRELOAD; not set: it is linked into the binary
"""

import fcntl
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any

import dbus
import dbusmock
import pytest
from dbus.mainloop.glib import DBusGMainLoop
from gi.repository import GLib
from privatebus import PrivateBus
from virtualclock import Clock

TOP = Path(__file__).resolve().parent.parent
SUTROD = os.environ["SUTROD"]
SYSTEMD, SYSTEMD_PATH = "org.freedesktop.systemd1", "/org/freedesktop/systemd1"
NAME, PATH, INTERFACE = "org.sutro1", "/org/sutro1", "org.sutro1.Manager"
DBUS = "org.freedesktop.DBus"
UNSET = 2**64 - 1
# Calls that are answered after two samples, 1 s apart.
SAMPLED = ("Explain", "ListUsage")
STEP_S = 0.25
# An answer of systemd may lead to another question, and the last answer to none.
QUESTIONS_IN_A_ROW = 4
SCHEDULERS = ("none", "mq-deadline", "bfq", "sutro")

BUS_POLICY = f"""<include>{TOP}/dist/org.sutro1.conf</include>
  <!-- The user of the tests has the rights of root. -->
  <policy user="{os.getuid()}">
    <allow send_destination="org.sutro1"/>
  </policy>"""
# The time for events that happen at once on an idle machine.
PATIENCE_S = 60.0


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for a condition that depends on no clock of the daemon."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"not true after {PATIENCE_S} s"
        time.sleep(0.005)


@contextmanager
def paused(process: subprocess.Popen | None) -> Iterator[None]:
    """The process is stopped; it goes on afterwards, whatever happens."""
    assert process
    process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)


def happens(condition: Callable[[], bool]) -> None:
    """Wait for a condition about messages to connections with a main loop."""

    def is_true() -> bool:
        GLib.MainContext.default().iteration(False)
        return condition()

    wait_until(is_true)


def arrive(messages: list[dbus.lowlevel.Message], number: int) -> None:
    """Wait until a monitor has `number` messages."""
    happens(lambda: len(messages) >= number)


def _ping(connection: dbus.bus.BusConnection, name: str) -> None:
    """Return when a service has answered all messages that this connection sent before."""
    proxy = connection.get_object(name, "/", introspect=False)
    proxy.Ping(dbus_interface="org.freedesktop.DBus.Peer")


class Bus(PrivateBus):
    """A system bus with the bus policy of the package, and mocks of systemd and polkit."""

    def __init__(self) -> None:
        super().__init__(BUS_POLICY)
        self.connection = dbus.bus.BusConnection(self.address)
        # For calls that are answered while the test does other things.
        self.looping = dbus.bus.BusConnection(self.address, mainloop=DBusGMainLoop())
        # A test of a lost bus must not end the test program.
        for connection in (self.connection, self.looping):
            connection.set_exit_on_disconnect(False)
        self.systemd = self.mock_systemd()
        with self.log("polkit") as log:
            self.polkit = dbusmock.SpawnedMock.spawn_with_template(
                "polkitd", stdout=log, stderr=log
            )

    def log(self, name: str) -> IO[str]:
        """The log of a mock."""
        return (self.directory / name).open("a")

    def mock_systemd(self) -> dbusmock.SpawnedMock:
        """Start a systemd without units."""
        with self.log("systemd") as log:
            return dbusmock.SpawnedMock.spawn_with_template(
                str(TOP / "tests/mocksystemd.py"), stdout=log, stderr=log
            )

    def allow(self, yes: bool) -> None:
        """Let polkit allow or refuse all actions; no call of root reaches it."""
        self.polkit.obj.AllowUnknown(yes, dbus_interface=dbusmock.MOCK_IFACE)

    @contextmanager
    def monitored(self, member: str = "") -> Iterator[list[dbus.lowlevel.Message]]:
        """Calls of a method by any program, or all calls of sutrod; see arrive()."""
        calls: list[dbus.lowlevel.Message] = []

        def on_message(_connection: dbus.bus.BusConnection, message: dbus.lowlevel.Message) -> None:
            found = message.get_member() if member else message.get_destination()
            if found == (member or NAME):
                calls.append(message)

        connection = dbus.bus.BusConnection(self.address, mainloop=DBusGMainLoop())
        connection.set_exit_on_disconnect(False)
        connection.add_message_filter(on_message)
        which = f"member='{member}'" if member else f"destination='{NAME}'"
        rule = dbus.Array([f"type='method_call',{which}"], "s")
        proxy = connection.get_object(DBUS, "/org/freedesktop/DBus", introspect=False)
        proxy.BecomeMonitor(rule, dbus.UInt32(0), dbus_interface=DBUS + ".Monitoring")
        yield calls
        connection.close()

    def is_whole(self) -> bool:
        """No test has ended a part of it."""
        processes = (self.process, self.systemd.process, self.polkit.process)
        return all(process.poll() is None for process in processes)

    def ping(self, name: str) -> None:
        """Return when a service has handled all messages that were sent to it before."""
        _ping(self.connection, name)

    def until_answered(
        self, step: Callable[[], None], name: str, path: str, method: str, *arguments: Any
    ) -> Any:
        """Call a method, and do steps until there is an answer; none is done after that."""
        answers: list[Any] = []
        proxy = self.looping.get_object(name, path, introspect=False)
        proxy.get_dbus_method(method, INTERFACE)(
            *arguments,
            reply_handler=lambda *values: answers.append(values[0] if values else None),
            error_handler=answers.append,
        )
        while not answers:
            step()
            # Replies to a connection arrive in their order.
            _ping(self.looping, name)
            while GLib.MainContext.default().iteration(False):
                pass
        if isinstance(answers[0], dbus.DBusException):
            raise answers[0]
        return answers[0]

    def released(self, name: str) -> None:
        """Return when no process has a name; the bus may notice later that a process has ended."""
        if self.process.poll() is not None:
            return
        wait_until(lambda: not self.connection.name_has_owner(name))


@pytest.fixture(scope="session")
def buses() -> Iterator[list[Bus]]:
    """The bus that the tests share, once there is one."""
    shared: list[Bus] = []
    yield shared
    for one in shared:
        one.stop()


@pytest.fixture
def bus(buses: list[Bus]) -> Bus:
    """A bus without a sutrod; a new one after a test that ended a part of it."""
    if buses and not buses[0].is_whole():
        buses.pop().stop()
    if not buses:
        buses.append(Bus())
    return buses[0]


class Machine:
    """Block devices and cgroups below a directory."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.write("/proc/1/mountinfo", "")
        for sysfs in ("class/block", "dev/block", "fs/cgroup"):
            (root / "sys" / sysfs).mkdir(parents=True)
        for path in ("dev/mapper", "run", "var/lib", "etc/sutro"):
            (root / path).mkdir(parents=True, exist_ok=True)

    def at(self, path: str) -> Path:
        """A path of the machine."""
        return self.root / path.lstrip("/")

    def write(self, path: str, text: str) -> None:
        """Write a file of the machine, as a program other than sutrod does."""
        self.at(path).parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(self.at(path), os.O_WRONLY | os.O_CREAT, 0o644)
        # The daemon may answer to the first of the two steps. Its writes wait for the lock
        # (kernelfiles.c), so that an answer is not overwritten by the second one. A file that
        # grows is not made longer before: no reader sees a counter with a 0 byte.
        fcntl.flock(fd, fcntl.LOCK_EX)
        if os.fstat(fd).st_size > len(text):
            os.ftruncate(fd, len(text))
        os.pwrite(fd, os.fsencode(text), 0)
        os.close(fd)

    def replace(self, path: str, text: str) -> None:
        """Put another file in the place of one: its watch has no event."""
        self.write("/spare", text)
        self.at("/spare").rename(self.at(path))

    def link(self, path: str, target: str) -> None:
        """Make a symbolic link."""
        self.at(path).parent.mkdir(parents=True, exist_ok=True)
        self.at(path).symlink_to(target)

    def disk(
        self,
        name: str,
        devno: str,
        scheduler: str = "none",
        slaves: str = "",
        sectors: int = 2097152,
        diskseq: int = 1,
    ) -> None:
        """A disk; with slaves something that stands on them."""
        block = f"/sys/devices/virtual/block/{name}"
        self.write(f"{block}/dev", devno + "\n")
        self.write(f"{block}/size", f"{sectors}\n")
        self.write(f"{block}/diskseq", f"{diskseq}\n")
        self.set_scheduler(name, scheduler, block)
        for slave in slaves.split():
            self.link(f"{block}/slaves/{slave}", f"../../{slave}")
        self.link(f"/sys/class/block/{name}", f"../../devices/virtual/block/{name}")
        self.link(f"/sys/dev/block/{devno}", f"../../devices/virtual/block/{name}")
        self.write(f"/dev/{name}", "")

    def partition(self, disk: str, name: str, devno: str) -> None:
        """A partition of a disk."""
        block = f"/sys/devices/virtual/block/{disk}/{name}"
        for file, text in (("dev", devno), ("size", "2097152"), ("partition", "1")):
            self.write(f"{block}/{file}", text + "\n")
        self.link(f"/sys/class/block/{name}", f"../../devices/virtual/block/{disk}/{name}")
        self.link(f"/sys/dev/block/{devno}", f"../../devices/virtual/block/{disk}/{name}")
        self.write(f"/dev/{name}", "")

    def unplug(self, name: str, devno: str) -> None:
        """The disk goes. Its folder stays elsewhere, or the next one could have its inode."""
        for path in (f"/sys/class/block/{name}", f"/sys/dev/block/{devno}", f"/dev/{name}"):
            self.at(path).unlink()
        there = self.at(f"/sys/devices/virtual/block/{name}")
        there.rename(Path(tempfile.mkdtemp(dir=self.root)) / name)

    def set_scheduler(self, name: str, scheduler: str, block: str = "") -> None:
        """Switch a scheduler by hand."""
        text = " ".join(f"[{s}]" if s == scheduler else s for s in SCHEDULERS)
        self.write(f"{block or '/sys/class/block/' + name}/queue/scheduler", text + "\n")

    def scheduler(self, name: str) -> str:
        """The scheduler in use."""
        text = self.at(f"/sys/class/block/{name}/queue/scheduler").read_text()
        return text.split("[")[1].split("]")[0]

    def raid(self, name: str, devno: str, slaves: str, level: str, sectors: int = 2097152) -> None:
        """An array of md."""
        self.disk(name, devno, slaves=slaves, sectors=sectors)
        self.write(f"/sys/devices/virtual/block/{name}/md/level", level + "\n")

    def mapped(
        self, name: str, devno: str, slaves: str, label: str, uuid: str, sectors: int = 2097152
    ) -> None:
        """A device of the device mapper, /dev/mapper/LABEL."""
        self.disk(name, devno, slaves=slaves, sectors=sectors)
        self.write(f"/sys/devices/virtual/block/{name}/dm/name", label + "\n")
        self.write(f"/sys/devices/virtual/block/{name}/dm/uuid", uuid + "\n")
        self.link(f"/dev/mapper/{label}", f"../{name}")

    def stripe(self, name: str, devno: str, slaves: str, label: str) -> None:
        """A striped logical volume, /dev/mapper/LABEL."""
        self.mapped(name, devno, slaves, label, "LVM-" + 64 * "a")
        self.write(f"/sys/devices/virtual/block/{name}/queue/optimal_io_size", "131072\n")
        self.link("/dev/" + label.replace("-", "/"), f"../{name}")

    def mount(self, point: str, devno: str, kind: str, source: str) -> None:
        """Mount something."""
        self.at(point).mkdir(parents=True, exist_ok=True)
        text = self.at("/proc/1/mountinfo").read_text()
        line = f"36 35 {devno} / {point} rw - {kind} {source} rw\n"
        self.write("/proc/1/mountinfo", text + line)

    def cgroup(self, path: str, weight: int | None = None, bfq: int = 100) -> None:
        """Make a cgroup with the files of the io controller; the kernel makes them at once."""
        made = self.at("/sys/fs/cgroup" + path)
        made.mkdir(parents=True)
        (made / "io.sutro.stat").write_text("")
        (made / "io.sutro.weight").write_text("default 100\n")
        (made / "io.sutro.class").write_text("default be\n")
        (made / "io.sutro.reserve").write_text("default 0\n")
        (made / "io.sutro.latency").write_text("default max\n")
        (made / "io.stat").write_text("")
        (made / "io.max").write_text("")
        (made / "io.bfq.weight").write_text(f"default {bfq}\n")
        (made / "io.weight").write_text(f"default {weight or 100}\n")

    def give(self, path: str, uid: int) -> None:
        """Give a cgroup to another user, without the right to do that (kernelfiles.c)."""
        self.write("/owners", f"{path.removeprefix('/')} {uid}\n")

    def weights(self, path: str, file: str = "io.sutro.weight") -> list[str]:
        """The lines of a weight file, sorted."""
        return sorted(self.at(f"/sys/fs/cgroup{path}/{file}").read_text().splitlines())

    def writes(self) -> list[str]:
        """The writes of sutrod to kernel files: "FILE TEXT"."""
        log = self.at("/writes")
        return log.read_text().splitlines() if log.exists() else []

    def fault(self, suffix: str, what: str) -> None:
        """Writes to files that end in suffix are ignored or fail."""
        self.write("/faults", f"{suffix} {what}\n")


class Systemd:
    """The mock of systemd, with its changes of cgroups."""

    KINDS = {"service": "Service", "slice": "Slice", "scope": "Scope", "mount": "Mount"}

    def __init__(self, bus: Bus, machine: Machine) -> None:
        self.machine = machine
        self.bus = bus
        self.control = dbus.Interface(bus.systemd.obj, dbusmock.MOCK_IFACE)
        self.control.Reset()
        self.units: dict[str, dict[str, Any]] = {}
        for name in ("init.scope", "system.slice"):
            self.unit(name, "/" + name)

    def unit(
        self,
        name: str,
        cgroup: str,
        weight: int = UNSET,
        device_weights: list[tuple[str, int]] | None = None,
        fragment: str = "",
        dropins: Sequence[str] = (),
        active: bool = True,
    ) -> None:
        """Make a unit known, without its cgroup."""
        self.units[name] = {
            "ControlGroup": cgroup,
            "IOWeight": dbus.UInt64(weight),
            "IODeviceWeight": dbus.Array(
                [(p, dbus.UInt64(w)) for p, w in device_weights or []], signature="(st)"
            ),
        }
        path = self.object_path(name)
        self.control.AddObject(path, self.interface(name), self.units[name], [])
        general = {
            "Id": name,
            "FragmentPath": fragment,
            "DropInPaths": dbus.Array(dropins, signature="s"),
            "LoadState": "loaded",
            "ActiveState": "active" if active else "inactive",
        }
        mock = self.bus.connection.get_object(SYSTEMD, path)
        dbus.Interface(mock, dbusmock.MOCK_IFACE).AddProperties(SYSTEMD + ".Unit", general)

    def object_path(self, name: str) -> str:
        """As systemd escapes it."""
        plain = "".join(c if c.isalnum() else f"_{ord(c):02x}" for c in name)
        return f"{SYSTEMD_PATH}/unit/{plain}"

    def interface(self, name: str) -> str:
        """The interface of the unit's type."""
        return f"{SYSTEMD}.{self.KINDS[name.rsplit('.', 1)[1]]}"

    def start(
        self,
        name: str,
        weight: int = UNSET,
        device_weights: list[tuple[str, int]] | None = None,
        slice: str = "/system.slice",
        fragment: str = "",
        dropins: Sequence[str] = (),
    ) -> str:
        """Start a unit, as "systemd-run -p IOWeight=..." does; returns its cgroup."""
        cgroup = f"{slice.rstrip('/')}/{name}"
        self.unit(name, cgroup, weight, device_weights, fragment, dropins)
        self.machine.cgroup(cgroup, None if weight == UNSET else weight)
        return cgroup

    def change(
        self,
        name: str,
        weight: int = UNSET,
        device_weights: list[tuple[str, int]] | None = None,
        signal: bool = False,
        write: bool = True,
    ) -> None:
        """systemctl set-property: no signal, but a write of io.weight."""
        cgroup = self.units[name]["ControlGroup"]
        if signal:
            mock = dbus.Interface(
                self.bus.connection.get_object(SYSTEMD, self.object_path(name)),
                dbusmock.MOCK_IFACE,
            )
            mock.UpdateProperties(self.interface(name), {"IOWeight": dbus.UInt64(weight)})
        else:
            self.control.RemoveObject(self.object_path(name))
            self.unit(name, cgroup, weight, device_weights)
        if write:
            text = f"default {100 if weight == UNSET else weight}\n"
            self.machine.write(f"/sys/fs/cgroup{cgroup}/io.weight", text)

    def emit(self, member: str, signature: str, *arguments: Any) -> None:
        """A signal of the manager."""
        self.control.EmitSignal(SYSTEMD + ".Manager", member, signature, list(arguments))

    def vanish(self, name: str, forget: bool = True) -> None:
        """A unit stops: its cgroup is removed, then the unit unloaded."""
        shutil.rmtree(self.machine.at("/sys/fs/cgroup" + self.units[name]["ControlGroup"]))
        if forget:
            self.control.RemoveObject(self.object_path(name))
            self.emit("UnitRemoved", "so", name, dbus.ObjectPath(self.object_path(name)))


class Sutrod:
    """The daemon, whose clock stands still unless the test moves it."""

    def __init__(self, bus: Bus, machine: Machine, directory: Path) -> None:
        self.bus = bus
        self.machine = machine
        self.clock = Clock(PATIENCE_S)
        self.log_file = directory / "log"
        self.process: subprocess.Popen[bytes] | None = None
        self.notify_path = directory / "notify"
        self.notify: socket.socket | None = None

    def listen(self) -> None:
        """Wait for messages of the next daemon; none of the last one is left."""
        if self.notify:
            self.notify.close()
            self.notify_path.unlink()
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notify.bind(str(self.notify_path))
        self.notify.settimeout(PATIENCE_S)

    def notified(self) -> bytes:
        """The next message of the daemon to systemd."""
        assert self.notify
        try:
            return self.notify.recv(1000)
        except TimeoutError:
            raise TimeoutError(f"no message to systemd; sutrod logged:\n{self.log()}") from None

    def spawn(self, *arguments: str, **environment: str) -> subprocess.Popen[bytes]:
        """Start the binary, without waiting."""
        self.listen()
        more = self.clock.attach()
        more["env"] |= environment
        more["env"]["NOTIFY_SOCKET"] = str(self.notify_path)
        more["env"]["SUTRO_FAKE_ROOT"] = str(self.machine.root)
        if "SUTRO_KERNELFILES" in os.environ:
            more["env"]["LD_PRELOAD"] = os.environ["SUTRO_KERNELFILES"]
        with self.log_file.open("ab") as log:
            self.process = subprocess.Popen(
                [SUTROD, f"--root={self.machine.root}", *arguments], stderr=log, **more
            )
        return self.process

    def start(self, *arguments: str, **environment: str) -> None:
        """Start the daemon and wait until it reports that weights are in force."""
        self.spawn("--debug", *arguments, **environment)
        while (message := self.notified()) != b"READY=1":
            assert message in (b"WATCHDOG=1", b"STOPPING=1")

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal, return the exit status."""
        assert self.process
        self.process.send_signal(number)
        status = self.process.wait(PATIENCE_S)
        self.bus.released(NAME)
        return status

    def end(self) -> None:
        """End the daemon, whose sanitizers must not have complained."""
        self.clock.detach()
        if self.process and self.process.poll() is None:
            self.stop()
        self.bus.released(NAME)
        if self.notify:
            self.notify.close()
        log = self.log() if self.log_file.exists() else ""
        sys.stderr.write(log)
        assert "runtime error" not in log and "Sanitizer" not in log

    def settle(self) -> None:
        """Return when the daemon has handled all that was written and sent before.

        Its questions to systemd are answered, too; one answer leads to the next question.
        """
        for _ in range(QUESTIONS_IN_A_ROW):
            self.clock.settle()
            self.bus.ping(NAME)
            if self.bus.systemd.process.poll() is None:
                self.bus.ping(SYSTEMD)
        self.clock.settle()

    def elapse(self, seconds: float) -> None:
        """Let some time of its clock pass."""
        self.settle()
        self.clock.elapse(seconds)
        self.settle()

    def until(self, condition: Callable[[], bool], seconds: float = 30) -> float:
        """Let time pass until a condition is true, return the seconds."""
        passed = 0.0
        self.settle()
        while not condition():
            assert passed < seconds, f"not true after {passed} s"
            self.elapse(STEP_S)
            passed += STEP_S
        return passed

    def children(self) -> str:
        """Its child processes."""
        assert self.process
        pid = self.process.pid
        return Path(f"/proc/{pid}/task/{pid}/children").read_text()

    def log(self) -> str:
        """All lines that it logged."""
        return self.log_file.read_text()

    def proxy(self) -> dbus.proxies.ProxyObject:
        """Its object on the bus."""
        return self.bus.connection.get_object(NAME, PATH, introspect=False)

    def over_time(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function that waits for the daemon; time passes until it returns."""
        with ThreadPoolExecutor(1) as pool:
            result = pool.submit(function, *arguments)
            while not result.done():
                self.clock.elapse(STEP_S)
            return result.result()

    def call(self, method: str, *arguments: Any) -> Any:
        """Call a method of its interface; one that waits for samples takes their time."""
        if method in SAMPLED:
            step = partial(self.clock.elapse, STEP_S)
            return self.bus.until_answered(step, NAME, PATH, method, *arguments)
        return self.proxy().get_dbus_method(method, INTERFACE)(*arguments)

    def property(self, name: str) -> Any:
        """Read a property."""
        return self.proxy().Get(INTERFACE, name, dbus_interface=dbus.PROPERTIES_IFACE)

    def error(self, method: str, *arguments: Any) -> tuple[str, str]:
        """Call a method that has to fail; name without prefix and message of the error."""
        with pytest.raises(dbus.DBusException) as e:
            self.call(method, *arguments)
        name = str(e.value.get_dbus_name())
        return name.removeprefix("org.sutro1.Error."), str(e.value.get_dbus_message())


def restore(machine: Machine, *arguments: str, result: str = "") -> int:
    """Run the program that systemd runs after the daemon; result "": run by hand."""
    environment = os.environ | {"SUTRO_FAKE_ROOT": str(machine.root), "SUTRO_CLOCK": ""}
    if "SUTRO_KERNELFILES" in os.environ:
        environment["LD_PRELOAD"] = os.environ["SUTRO_KERNELFILES"]
    if result:
        environment["SERVICE_RESULT"] = result
    command = [SUTROD, f"--root={machine.root}", "--restore", *arguments]
    return subprocess.run(command, env=environment, timeout=PATIENCE_S).returncode
