# SPDX-License-Identifier: LGPL-2.1-or-later
"""Transient systemd services that use a device: they get weights, and are measured.

Weights are set only as an administrator sets them: `IOWeight=` and `IODeviceWeight=` of the unit.
"""

import json
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from rig.shell import TIMEOUT_S, CommandError, run

CGROUP_ROOT = Path("/sys/fs/cgroup")
PREFIX = "rig-"


class Unit:
    """One transient service, known by a short name; its unit is `rig-NAME.service`."""

    def __init__(
        self,
        name: str,
        command: str,
        weight: int | None = None,
        device_weights: Mapping[str, int] | None = None,
        properties: Mapping[str, object] | None = None,
        parent: str = "system.slice",
    ):
        self.name = name
        self.unit = f"{PREFIX}{name}.service"
        self.command = command
        self.weight = weight
        self.device_weights = dict(device_weights or {})
        self.properties = dict(properties or {})
        self.parent = parent

    @property
    def cgroup(self) -> str:
        """Path of its cgroup below the root of the tree: slices nest by their dashes."""
        parts = self.parent.removesuffix(".slice").split("-")
        slices = ["-".join(parts[: n + 1]) + ".slice" for n in range(len(parts))]
        return "/" + "/".join([*slices, self.unit])

    @property
    def folder(self) -> Path:
        """Its folder in the cgroup file system."""
        return CGROUP_ROOT / self.cgroup.lstrip("/")

    def start_command(self) -> list[str]:
        """The systemd-run call that starts it."""
        properties = dict(self.properties)
        if self.weight is not None:
            properties["IOWeight"] = self.weight
        words = [f"--property={key}={value}" for key, value in properties.items()]
        words += [f"--property=IODeviceWeight={p} {w}" for p, w in self.device_weights.items()]
        return [
            "systemd-run", "--quiet", f"--unit={self.unit}", f"--slice={self.parent}",
            "--service-type=exec", "--property=KillSignal=SIGKILL", *words,
            "--", "/bin/sh", "-c", self.command,
        ]  # fmt: skip

    def start(self) -> None:
        """Start it and return when its process runs."""
        run(*self.start_command())

    def stop(self) -> None:
        """Stop the unit, and reset a failure of it."""
        stop([self])

    def set(self, **properties: object) -> None:
        """Change properties of the running unit (`IOWeight=300`) by `systemctl set-property`."""
        run(*self.set_command(**properties))

    def set_command(self, **properties: object) -> list[str]:
        """The systemctl call that set() makes."""
        words = [f"{key}={value}" for key, value in properties.items()]
        return ["systemctl", "set-property", "--runtime", self.unit, *words]

    def read(self, file: str) -> str:
        """Text of one of its cgroup files."""
        return (self.folder / file).read_text()

    def busy(self) -> bool:
        """True while it has processes."""
        try:
            return "populated 1" in self.read("cgroup.events")
        except FileNotFoundError:
            return False

    def show(self, *names: str) -> dict[str, str]:
        """Properties of the unit as systemd has them."""
        text = run("systemctl", "show", f"--property={','.join(names)}", self.unit)
        return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)

    def ran(self) -> tuple[float, float]:
        """When its main process began and ended, in seconds of time.monotonic().

        The unit has to be kept for the question with `RemainAfterExit=yes`.
        """
        start, end = "ExecMainStartTimestampMonotonic", "ExecMainExitTimestampMonotonic"
        got = self.show(start, end, "ExecMainStatus")
        if got["ExecMainStatus"] != "0" or got[end] == "0":
            raise RuntimeError(f"{self.unit} did not finish well:\n{self.journal()}")
        return int(got[start]) / 1e6, int(got[end]) / 1e6

    def journal(self) -> str:
        """The last lines it wrote."""
        return run("journalctl", "--no-pager", "--lines=20", "--output=cat", f"--unit={self.unit}")


def at_once(commands: Sequence[Sequence[str]]) -> None:
    """Run several commands side by side: so do units start, and weights change, together."""
    running = [
        subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for words in commands
    ]
    failed = []
    for words, process in zip(commands, running, strict=True):
        printed, _ = process.communicate(timeout=TIMEOUT_S)
        if process.returncode:
            failed.append(f"{shlex.join(words)}: status {process.returncode}: {printed.strip()}")
    if failed:
        raise CommandError("\n".join(failed))


def start(units: Sequence[Unit]) -> None:
    """Start units together."""
    at_once([unit.start_command() for unit in units])


def stop(units: Sequence[Unit]) -> None:
    """Stop units together, whatever state they are in."""
    names = [unit.unit for unit in units]
    for verb in ("stop", "reset-failed"):
        # A transient unit that has ended is unknown to systemd; that is as good as stopped.
        subprocess.run(
            ["systemctl", verb, *names], capture_output=True, timeout=TIMEOUT_S, check=False
        )


# Commands of units, as text for /bin/sh.


def fio(
    target: str, rw: str, bs: str, iodepth: int = 1, jobs: int = 1, seed: int = 1, **more: object
) -> str:
    """An endless fio job with libaio, direct I/O."""
    options = {
        "name": "job", "filename": target, "ioengine": "libaio", "direct": 1, "rw": rw, "bs": bs,
        "iodepth": iodepth, "numjobs": jobs, "randseed": seed, "norandommap": 1,
        "time_based": 1, "runtime": 86400, "thread": 1, "group_reporting": 1, **more,
    }  # fmt: skip
    return "exec fio " + " ".join(shlex.quote(f"--{key}={value}") for key, value in options.items())


def fio_report(printed: str) -> dict[str, dict]:
    """The job in the JSON output of fio, which other lines may precede."""
    return json.loads(printed[printed.index("{") :])["jobs"][0]


def dd_readers(target: str, bs_kib: int, streams: int, apart_mb: int, first_mb: int = 0) -> str:
    """Endless `dd iflag=direct` readers, each beginning at a place of its own."""
    lines = []
    for stream in range(streams):
        skip = ((first_mb + stream * apart_mb) << 10) // bs_kib
        count = (apart_mb << 10) // bs_kib
        one = f"dd if={shlex.quote(target)} of=/dev/null bs={bs_kib}k skip={skip} count={count}"
        lines.append(f"while {one} iflag=direct status=none; do :; done &")
    return "\n".join([*lines, "wait"])


def dd_writer(file: str, size_mb: int) -> str:
    """An endless buffered writer over one file of limited size.

    The file is a new one: writeback of a file in memory would be charged to the cgroup that dirtied
    it first.
    """
    name = shlex.quote(file)
    one = f"dd if=/dev/zero of={name} bs=1M count={size_mb} conv=notrunc status=none"
    return f"rm -f {name}; while {one}; do :; done"


def dd_reader(file: str) -> str:
    """A reader of a whole file through the page cache, which ends."""
    return f"exec dd if={shlex.quote(file)} of=/dev/null bs=128k status=none"
