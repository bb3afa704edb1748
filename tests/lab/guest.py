# SPDX-License-Identifier: LGPL-2.1-or-later
"""One guest: QEMU with the image, three shared folders, an agent, and an eye on its kernel log.

    /mnt/src    the clone, read-only      /mnt/build  modeldisk.ko and the .deb files, read-only
    /mnt/out    results, read-write       /mnt/log    output of commands, the lab's own

No guest changes the image: every boot starts from the same bytes, and guests share one.
All commands of a run come through the agent; their output goes to a file in /mnt/log, which the
host follows, so that a long command is seen while it runs.
"""

import contextlib
import shlex
import shutil
import socket
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rig.kernel_log import kernel_complaint

from .agent import POLL_S, Agent, GuestGone
from .image import IMAGE_MIB, Image
from .namespace import ENVIRONMENT, dies_with_us, started
from .progress import LabError, step, tail

MEMORY_MIB = 3072
BOOT_TIMEOUT_S = 480.0
QEMU = "qemu-system-x86_64"
# Without KVM there are two emulations. The one that is measured in has a clock of its own: two
# nanoseconds an instruction while it works, and where it would be idle the time is skipped. A slow
# or busy host makes neither its disks faster than its CPU nor its measurements wrong. It cannot
# have a second CPU; tests with two CPUs use the clock of the host. "rep movsb" is emulated byte
# by byte: without the two flags copies are by words, 4 times as fast. The emulated CPUs' time
# stamp counters agree, but the kernel, comparing them with a clock that the host delayed, gives
# them up in mid-run; that patches code that another CPU is running, which two emulated CPUs
# survive only mostly ("Oops: int3"). So a parameter of the kernel makes it trust them. A
# skipping clock turns each wait for the host into a long time, so its root disk is memory (an
# NVDIMM, mapped privately from the image), and files of the clone are cached. A guest that waits
# for disks of its own counts instructions while it works, too. On the clock of a busy host it would
# measure a wrong frequency of its time stamp counter. Where it is idle, its time is the host's.
ACCELERATORS = {
    "kvm": "-accel kvm -cpu host",
    "tcg": "-accel tcg,thread=single -icount shift=1,sleep=off -cpu max,-erms,-fsrm",
    "tcg-disks": "-accel tcg,thread=single -icount shift=1,sleep=on -cpu max,-erms,-fsrm",
    "tcg-smp": "-accel tcg,thread=multi -cpu max,-erms,-fsrm",
}
# A guest may request another accelerator where there are several.
CPUS = {"kvm": 2, "tcg": 1, "tcg-disks": 1, "tcg-smp": 2}
KERNEL_ARGUMENTS = (
    "loglevel=6 log_buf_len=4M panic=-1 oops=panic mitigations=off nokaslr "
    "audit=0 selinux=0 apparmor=0 random.trust_cpu=on systemd.show_status=0 cryptomgr.notests"
)
TRUST_TSC = "tsc=reliable"
NO_LOGIN = "systemd.mask=serial-getty@{}.service"
# An emulated CPU that the host does not schedule for a while is no lockup.
PATIENCE = "watchdog_thresh=60 rcupdate.rcu_cpu_stall_timeout=120"


def qemu_command(
    image: Image,
    accelerator: str,
    arguments: str,
    memory_mib: int,
    cpus: int | None = None,
    cpu_flags: str = "",
) -> list[str]:
    """The part of the command line that all guests share, the KVM probe too."""
    return [
        QEMU, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-nic", "none",
        *(ACCELERATORS[accelerator] + cpu_flags).split(), "-smp", str(cpus or CPUS[accelerator]),
        "-m", f"{memory_mib}M,slots=1,maxmem={memory_mib + 2 * IMAGE_MIB}M",
        "-kernel", str(image.kernel), "-initrd", str(image.initrd), "-append", arguments,
    ]  # fmt: skip


@dataclass(frozen=True)
class Setup:
    """The files of a guest; folder is its own: build/, out/, log/, and its kernel log."""

    image: Image
    accelerator: str
    source: Path
    folder: Path
    cpus: int | None = None
    # More of them for the emulated CPU, each with a comma before it.
    cpu_flags: str = ""
    # Options of QEMU for disks of its own, parameters of the kernel for these.
    disks: tuple[str, ...] = ()
    parameters: str = ""


class Guest:
    """A running guest. Made by boot()."""

    def __init__(self, process: subprocess.Popen, agent: Agent, folder: Path):
        self._process = process
        self._agent = agent
        self._jobs = 0
        self.folder = folder
        self.console = folder / "console.log"
        # The output of the last command.
        self.log = self.console

    def run(
        self,
        command: str,
        *,
        name: str = "command",
        timeout_s: float = 3600.0,
        echo: Callable[[str], None] | None = None,
    ) -> int:
        """Run a shell command in the guest to its end; its exit status. echo gets the output."""
        pid, _ = self._start(command, name)
        log = self.log
        began = time.monotonic()
        with _follow(log, echo) as follow:
            while (result := self._poll(pid)) is None:
                follow()
                if (elapsed_s := time.monotonic() - began) > timeout_s:
                    raise LabError(f"{name} did not end within {timeout_s:.0f} s", log)
                # Each answer costs an emulated guest instructions.
                time.sleep(max(POLL_S, min(elapsed_s / 50, 1.0)))
            follow()
        return result[0]

    def start(self, command: str, name: str) -> str:
        """Start a shell command in the guest; the name of its unit."""
        return self._start(command, name)[1]

    def _start(self, command: str, name: str) -> tuple[int, str]:
        self._jobs += 1
        self.log = log = self.folder / "log" / f"{self._jobs:02d}-{name}.log"
        # A service of its own: not in the agent's cgroup, and killed as a whole at the end.
        script = f"exec </dev/null >/mnt/log/{log.name} 2>&1; {command}"
        unit = f"lab-{self._jobs}-{name}"
        pid = self._agent.start(
            ["/usr/bin/systemd-run", "--quiet", "--wait", "--collect", "--service-type=exec",
             f"--unit={unit}", "--property=LimitNOFILE=65536",
             "--setenv=HOME=/root", "--setenv=LC_ALL=C.UTF-8", "--setenv=PYTHONDONTWRITEBYTECODE=1",
             "--working-directory=/root", "/bin/bash", "-c", script]
        )  # fmt: skip
        return pid, unit

    def _poll(self, pid: int) -> tuple[int, str] | None:
        try:
            return self._agent.poll(pid)
        except GuestGone as error:
            complaint = kernel_complaint(self.console.read_text(errors="replace"))
            found = "; its kernel log has:\n" + complaint if complaint else ""
            raise LabError(f"{error} before the command did{found}", self.console) from error

    def reboot(self) -> None:
        """Let systemd end the system, and wait until the machine has ended."""
        self.check_log()
        self._agent.start(["/usr/bin/systemctl", "reboot"])
        try:
            self._process.wait(BOOT_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise LabError("the guest did not shut down", self.console) from None

    def shutdown(self) -> None:
        """Save the kernel log, end the guest, and fail if its kernel complained."""
        self.check_log()
        self.kill()

    def ended(self) -> bool:
        """True if QEMU has ended by itself, as at a reboot."""
        return self._process.poll() == 0

    def kill(self) -> None:
        """End the guest at once."""
        self._process.kill()
        self._process.wait()

    def check_log(self) -> None:
        """Save the kernel log, and fail if the guest's kernel complained."""
        status, log = self._agent.run(["/bin/dmesg", "--kernel"])
        if status != 0:
            raise LabError(f"dmesg failed in the guest: {log}", self.console)
        (self.folder / "dmesg.log").write_text(log)
        complaint = kernel_complaint(log)
        complaint = complaint or kernel_complaint(self.console.read_text(errors="replace"))
        if complaint:
            raise LabError(
                "the guest's kernel complained:\n" + complaint, self.folder / "dmesg.log"
            )


@contextlib.contextmanager
def boot(setup: Setup) -> Iterator[Guest]:
    """A guest that has finished booting; gone at the end, whatever happened."""
    step(f"guest: booting ({setup.accelerator})")
    with _started(setup) as (process, agent):
        guest = Guest(process, agent, setup.folder)

        def still_alive() -> None:
            if process.poll() is not None:
                raise LabError("the guest ended while booting", guest.console)

        try:
            agent.connect(BOOT_TIMEOUT_S, still_alive)
            expect_running(agent, guest.console)
        except GuestGone as error:
            raise LabError(str(error), guest.console) from error
        step("guest: up")
        yield guest


def expect_running(agent: Agent, console: Path) -> None:
    """Wait for the end of the boot; raise a LabError with the failed units if there are any.

    The state is compared, not the exit status alone: a guest in emergency mode has an agent, too.
    """
    words = ["/usr/bin/systemctl", "is-system-running", "--wait"]
    status, state = agent.run(words, BOOT_TIMEOUT_S)
    if (status, state.strip()) == (0, "running"):
        return
    _, listed = agent.run(["/usr/bin/systemctl", "--failed", "--no-legend", "--plain"])
    units = [line.split()[0] for line in listed.splitlines() if line.strip()]
    raise LabError(
        f"the guest did not boot: its state is {state.strip() or 'unknown'}, not running; "
        f"failed units: {', '.join(units) or 'none'}",
        console,
    )


def interactive(setup: Setup) -> None:
    """A guest with a root login on this terminal, until it is shut down or Ctrl-A x."""
    console = setup.folder / "console.log"
    columns, rows = shutil.get_terminal_size()
    # The terminal is ttyS0; the kernel has ttyS1 for itself.
    arguments = f"console=ttyS1 {NO_LOGIN.format('ttyS1')} "
    arguments += f"systemd.wants=serial-getty@ttyS0.service lab.tty={columns}x{rows}"
    command = [
        *_command(setup, arguments),
        "-chardev", "stdio,id=tty,mux=on,signal=off",
        "-serial", "chardev:tty", "-serial", f"file:{console}", "-mon", "chardev=tty",
    ]  # fmt: skip
    saved = termios.tcgetattr(sys.stdin) if sys.stdin.isatty() else None
    process = subprocess.Popen(dies_with_us(command), env=ENVIRONMENT)
    try:
        status = process.wait()
    finally:
        process.kill()
        process.wait()
        if saved:
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, saved)
    if status != 0:
        raise LabError(f"QEMU ended with status {status}", console)
    if complaint := kernel_complaint(console.read_text(errors="replace")):
        raise LabError("the guest's kernel complained:\n" + complaint, console)


def probe(image: Image, accelerator: str, log: Path, timeout_s: float) -> bool:
    """Whether the accelerator runs the image's kernel as far as its initramfs."""
    command = qemu_command(image, accelerator, "console=ttyS0 panic=-1 lab.probe", 512)
    command += ["-serial", "stdio"]
    with started(command, "the probe of an accelerator", log) as process:
        deadline = time.monotonic() + timeout_s
        while process.poll() is None and time.monotonic() < deadline:
            time.sleep(POLL_S)
            content = log.read_bytes()
            if b"lab-probe-reached" in content:
                return True
            if b"KVM internal error" in content:
                return False
        return b"lab-probe-reached" in log.read_bytes()


@contextlib.contextmanager
def _started(setup: Setup) -> Iterator[tuple[subprocess.Popen, Agent]]:
    ours, theirs = socket.socketpair()
    log = setup.folder / "qemu.log"
    with ours, theirs:
        command = [
            *_command(setup, f"console=ttyS0 {NO_LOGIN.format('ttyS0')}"),
            "-serial", f"file:{setup.folder / 'console.log'}",
            "-device", "virtio-serial-pci",
            "-chardev", f"socket,id=agent,fd={theirs.fileno()}",
            "-device", "virtserialport,chardev=agent,name=org.qemu.guest_agent.0",
        ]  # fmt: skip
        try:
            with started(command, "the guest", log, pass_fds=[theirs.fileno()]) as process:
                theirs.close()
                yield process, Agent(ours)
        except LabError as error:
            if last_lines := tail(log, 5):
                raise LabError(
                    f"{error}\nqemu: " + "\nqemu: ".join(last_lines), error.log
                ) from error
            raise


def _command(setup: Setup, arguments: str) -> list[str]:
    arguments = f"{KERNEL_ARGUMENTS} {PATIENCE} {arguments} {setup.parameters}".rstrip()
    if setup.accelerator == "tcg-smp":
        arguments += f" {TRUST_TSC}"
    command = qemu_command(
        setup.image, setup.accelerator, arguments, MEMORY_MIB, setup.cpus, setup.cpu_flags
    )
    disk = _quoted(setup.image.disk) if setup.image.disk else None
    if not disk:
        pass
    elif setup.accelerator == "tcg":
        size = setup.image.disk.stat().st_size
        command += [
            "-machine", "pc,nvdimm=on", "-device", "nvdimm,memdev=root", "-object",
            f"memory-backend-file,id=root,share=off,reserve=off,size={size},mem-path={disk}",
        ]  # fmt: skip
    else:
        command += ["-drive", f"file={disk},format=raw,if=virtio,snapshot=on,cache=unsafe"]
    command += [
        *setup.disks,
        "-device",
        "virtio-rng-pci",
        *shared("src", setup.source, ",readonly=on"),
    ]
    for tag, mode in (("build", ",readonly=on"), ("out", ""), ("log", "")):
        command += shared(tag, setup.folder / tag, mode)
    return command


def shared(tag: str, folder: Path, mode: str = "") -> list[str]:
    """The options of QEMU that share a folder of the host."""
    how = f"path={_quoted(folder)},security_model=none,multidevs=remap{mode}"
    return ["-virtfs", f"local,mount_tag={tag},{how}"]


def _quoted(path: Path) -> str:
    """A path as a value of a QEMU option."""
    return str(path).replace(",", ",,")


@contextlib.contextmanager
def _follow(log: Path, echo: Callable[[str], None] | None) -> Iterator[Callable[[], None]]:
    """A function that passes on the text added to log since its last call."""
    position = 0

    def follow() -> None:
        nonlocal position
        if echo is None or not log.exists():
            return
        with open(log, "rb") as file:
            file.seek(position)
            data = file.read()
        position += len(data)
        if data:
            echo(data.decode(errors="replace"))

    yield follow


def to_stdout(text: str) -> None:
    """An echo for Guest.run: straight to the user."""
    sys.stdout.write(text)
    sys.stdout.flush()


def shell_words(words: list[str]) -> str:
    """Words as one command for Guest.run."""
    return shlex.join(words)
