# SPDX-License-Identifier: LGPL-2.1-or-later
"""The whole daemon on a fake machine: a directory for sysfs and cgroups, a private bus, mocks of
systemd and polkit (python-dbusmock). kernelfiles.c makes the weight files behave like the kernel's.

    SUTROD             the binary
    SUTRO_KERNELFILES  kernelfiles.so for LD_PRELOAD; not set: it is linked into the binary
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dbus
import dbusmock
import pytest

TOP = Path(__file__).resolve().parent.parent.parent
SUTROD = os.environ["SUTROD"]
SYSTEMD = "org.freedesktop.systemd1"
POLKIT = "org.freedesktop.PolicyKit1"
NAME, PATH, INTERFACE = "org.sutro1", "/org/sutro1", "org.sutro1.Manager"
UNSET = 2**64 - 1
SCHEDULERS = ("none", "mq-deadline", "bfq", "sutro")

BUS_CONFIG = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
  "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>system</type>
  <listen>unix:path={directory}/bus</listen>
  <policy context="default">
    <allow user="*"/>
    <allow own="*"/>
    <allow send_destination="*"/>
    <allow send_type="signal"/>
    <allow receive_sender="*"/>
  </policy>
  <include>{top}/dist/org.sutro1.conf</include>
  <!-- Who runs the tests plays root. -->
  <policy user="{user}">
    <allow send_destination="org.sutro1"/>
  </policy>
</busconfig>
"""


def wait_until(what: Callable[[], bool], seconds: float = 5) -> float:
    """Wait for something to become true, return how long it took."""
    start = time.monotonic()
    while not what():
        assert time.monotonic() < start + seconds, f"not true after {seconds} s"
        time.sleep(0.005)
    return time.monotonic() - start


def stop_process(process: subprocess.Popen[Any]) -> None:
    """End a process this test started."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class Bus:
    """A private system bus with the bus policy of the package."""

    def __init__(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="sutro-bus-"))
        self.directory.chmod(0o755)
        config = self.directory / "config"
        config.write_text(BUS_CONFIG.format(directory=self.directory, top=TOP, user=os.getuid()))
        self.address = f"unix:path={self.directory}/bus"
        os.environ["DBUS_SYSTEM_BUS_ADDRESS"] = self.address
        self.process = subprocess.Popen(
            ["dbus-daemon", "--nofork", "--print-address", f"--config-file={config}"],
            stdout=subprocess.PIPE,
        )
        assert self.process.stdout
        assert self.process.stdout.readline()  # it listens
        self.process.stdout.close()
        self.connection = dbus.bus.BusConnection(self.address)
        # A test of a lost bus must not end the test program.
        self.connection.set_exit_on_disconnect(False)

    def mock(self, name: str, path: str, interface: str) -> dbusmock.SpawnedMock:
        """Start a mock; its log is in bus.directory / name."""
        with (self.directory / name).open("w") as log:
            return dbusmock.SpawnedMock.spawn_for_name(
                name, path, interface, dbusmock.BusType.SYSTEM, stdout=log, stderr=log
            )

    def stop(self) -> None:
        """End the bus, and with it everything that lives on it."""
        stop_process(self.process)
        shutil.rmtree(self.directory)


@pytest.fixture
def bus() -> Iterator[Bus]:
    """A bus of its own for each test, because some tests end it."""
    b = Bus()
    yield b
    b.stop()


class Machine:
    """Block devices and cgroups below a directory."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.write("/proc/self/mountinfo", "")
        for path in (
            "/sys/class/block",
            "/sys/dev/block",
            "/sys/fs/cgroup",
            "/dev/mapper",
            "/run",
            "/etc/sutro",
        ):
            (root / path[1:]).mkdir(parents=True, exist_ok=True)

    def at(self, path: str) -> Path:
        """A path of the machine."""
        return self.root / path.lstrip("/")

    def write(self, path: str, text: str) -> None:
        """Write a file of the machine, as somebody else than sutrod does."""
        self.at(path).parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(self.at(path), os.O_WRONLY | os.O_CREAT, 0o644)
        os.ftruncate(fd, len(text))
        os.pwrite(fd, text.encode(), 0)
        os.close(fd)

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

    def unplug(self, name: str, devno: str) -> None:
        """The disk goes."""
        for path in (f"/sys/class/block/{name}", f"/sys/dev/block/{devno}", f"/dev/{name}"):
            self.at(path).unlink()
        shutil.rmtree(self.at(f"/sys/devices/virtual/block/{name}"))

    def set_scheduler(self, name: str, scheduler: str, block: str = "") -> None:
        """Switch a scheduler by hand."""
        text = " ".join(f"[{s}]" if s == scheduler else s for s in SCHEDULERS)
        self.write(f"{block or '/sys/class/block/' + name}/queue/scheduler", text + "\n")

    def scheduler(self, name: str) -> str:
        """The scheduler in use."""
        text = self.at(f"/sys/class/block/{name}/queue/scheduler").read_text()
        return text.split("[")[1].split("]")[0]

    def stripe(self, name: str, devno: str, slaves: str, label: str) -> None:
        """A striped logical volume, /dev/mapper/LABEL."""
        self.disk(name, devno, slaves=slaves)
        block = f"/sys/devices/virtual/block/{name}"
        self.write(f"{block}/dm/name", label + "\n")
        self.write(f"{block}/dm/uuid", "LVM-" + 64 * "a" + "\n")
        self.write(f"{block}/queue/optimal_io_size", "131072\n")
        self.link(f"/dev/mapper/{label}", f"../{name}")
        self.link("/dev/" + label.replace("-", "/"), f"../{name}")

    def mount(self, point: str, devno: str, kind: str, source: str) -> None:
        """Mount something."""
        self.at(point).mkdir(parents=True, exist_ok=True)
        text = self.at("/proc/self/mountinfo").read_text()
        line = f"36 35 {devno} / {point} rw - {kind} {source} rw\n"
        self.write("/proc/self/mountinfo", text + line)

    def cgroup(self, path: str, weight: int | None = None, bfq: int = 100) -> None:
        """Make a cgroup with the files of the io controller; the kernel makes them at once."""
        made = self.at("/sys/fs/cgroup" + path)
        made.mkdir(parents=True)
        (made / "io.sutro.stat").write_text("")
        (made / "io.sutro.weight").write_text("default 100\n")
        (made / "io.sutro.class").write_text("default be\n")
        (made / "io.stat").write_text("")
        (made / "io.max").write_text("")
        (made / "io.bfq.weight").write_text(f"default {bfq}\n")
        (made / "io.weight").write_text(f"default {weight or 100}\n")

    def weights(self, path: str, file: str = "io.sutro.weight") -> list[str]:
        """The lines of a weight file, sorted."""
        return sorted(self.at(f"/sys/fs/cgroup{path}/{file}").read_text().splitlines())

    def writes(self) -> list[str]:
        """What sutrod wrote into kernel files: "FILE TEXT"."""
        log = self.at("/writes")
        return log.read_text().splitlines() if log.exists() else []

    def fault(self, suffix: str, what: str) -> None:
        """Writes to files that end in suffix are ignored or fail."""
        self.write("/faults", f"{suffix} {what}\n")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """Two sutro disks under a stripe, one bfq disk, one without a scheduler, one unused."""
    m = Machine(tmp_path.resolve() / "machine")
    m.disk("sda", "8:0", "sutro")
    m.disk("sdb", "8:16", "sutro")
    m.disk("sdc", "8:32", "bfq")
    m.disk("sdd", "8:48", "none")
    m.stripe("dm-0", "254:0", "sda sdb", "vg-db")
    m.cgroup("/init.scope")
    m.cgroup("/system.slice")
    return m


class Systemd:
    """The mock of systemd, and what it does to cgroups."""

    KINDS = {"service": "Service", "slice": "Slice", "scope": "Scope", "mount": "Mount"}

    def __init__(self, bus: Bus, machine: Machine) -> None:
        self.machine = machine
        self.path = "/org/freedesktop/systemd1"
        self.mock = bus.mock(SYSTEMD, self.path, SYSTEMD + ".Manager")
        self.control = dbus.Interface(self.mock.obj, dbusmock.MOCK_IFACE)
        self.control.AddMethod("", "Subscribe", "", "", "")
        self.bus = bus
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
        files = {"FragmentPath": fragment, "DropInPaths": dbus.Array([], signature="s")}
        mock = self.bus.connection.get_object(SYSTEMD, path)
        dbus.Interface(mock, dbusmock.MOCK_IFACE).AddProperties(SYSTEMD + ".Unit", files)

    def object_path(self, name: str) -> str:
        """As systemd escapes it."""
        plain = "".join(c if c.isalnum() else f"_{ord(c):02x}" for c in name)
        return f"{self.path}/unit/{plain}"

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
    ) -> str:
        """Start a unit, as "systemd-run -p IOWeight=..." does; returns its cgroup."""
        cgroup = f"{slice.rstrip('/')}/{name}"
        self.unit(name, cgroup, weight, device_weights, fragment)
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


@pytest.fixture
def systemd(bus: Bus, machine: Machine) -> Iterator[Systemd]:
    """A systemd that knows init.scope and system.slice."""
    s = Systemd(bus, machine)
    yield s
    s.mock.terminate()


class Polkit:
    """A mock of polkit."""

    def __init__(self, bus: Bus) -> None:
        self.mock = bus.mock(POLKIT, "/org/freedesktop/PolicyKit1/Authority", POLKIT + ".Authority")
        self.answer(True)

    def answer(self, yes: bool) -> None:
        """What it says from now on."""
        dbus.Interface(self.mock.obj, dbusmock.MOCK_IFACE).AddMethod(
            "",
            "CheckAuthorization",
            "(sa{sv})sa{ss}us",
            "(bba{ss})",
            f"ret = ({yes}, False, dbus.Dictionary({{}}, signature='ss'))",
        )


@pytest.fixture
def polkit(bus: Bus) -> Iterator[Polkit]:
    """A polkit that says yes; root is not asked about, but the tests need not be root."""
    p = Polkit(bus)
    yield p
    p.mock.terminate()


class Sutrod:
    """The daemon."""

    def __init__(self, bus: Bus, machine: Machine, log: Path) -> None:
        self.bus = bus
        self.machine = machine
        self.log_file = log
        self.process: subprocess.Popen[bytes] | None = None
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notify.bind(str(bus.directory / "notify"))
        self.notify.settimeout(20)

    def spawn(self, *arguments: str, **environment: str) -> subprocess.Popen[bytes]:
        """Start the binary, without waiting."""
        env = os.environ | environment
        env["NOTIFY_SOCKET"] = str(self.bus.directory / "notify")
        env["SUTRO_FAKE_ROOT"] = str(self.machine.root)
        if "SUTRO_KERNELFILES" in os.environ:
            env["LD_PRELOAD"] = os.environ["SUTRO_KERNELFILES"]
        with self.log_file.open("ab") as log:
            self.process = subprocess.Popen(
                [SUTROD, f"--root={self.machine.root}", *arguments], env=env, stderr=log
            )
        return self.process

    def start(self, *arguments: str, **environment: str) -> None:
        """Start the daemon and wait until it says that weights are in force."""
        self.spawn("--debug", *arguments, **environment)
        while (message := self.notify.recv(1000)) != b"READY=1":
            assert message in (b"WATCHDOG=1", b"STOPPING=1")

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal, return the exit status."""
        assert self.process
        self.process.send_signal(number)
        return self.process.wait(20)

    def log(self) -> str:
        """All it said."""
        return self.log_file.read_text()

    def call(self, method: str, *arguments: Any) -> Any:
        """Call a method of its interface."""
        proxy = self.bus.connection.get_object(NAME, PATH, introspect=False)
        return proxy.get_dbus_method(method, INTERFACE)(*arguments)

    def property(self, name: str) -> Any:
        """Read a property."""
        proxy = self.bus.connection.get_object(NAME, PATH, introspect=False)
        return proxy.Get(INTERFACE, name, dbus_interface=dbus.PROPERTIES_IFACE)

    def error(self, method: str, *arguments: Any) -> tuple[str, str]:
        """Call a method that has to fail; name without prefix and message of the error."""
        with pytest.raises(dbus.DBusException) as e:
            self.call(method, *arguments)
        name = str(e.value.get_dbus_name())
        return name.removeprefix("org.sutro1.Error."), str(e.value.get_dbus_message())


@pytest.fixture
def sutrod(
    bus: Bus, machine: Machine, systemd: Systemd, polkit: Polkit, tmp_path: Path
) -> Iterator[Sutrod]:
    """The daemon, not yet started; at the end its sanitizers must not have complained."""
    s = Sutrod(bus, machine, tmp_path / "log")
    yield s
    if s.process:
        stop_process(s.process)
    s.notify.close()
    log = s.log() if s.log_file.exists() else ""
    sys.stderr.write(log)
    assert "runtime error" not in log and "Sanitizer" not in log
