# SPDX-License-Identifier: LGPL-2.1-or-later
"""Archives of Performance Co-Pilot of Debian, recorded as the group in cockpit/pcp states.

pmcd reads io.stat of cgroups in a folder, and pmlogger has the configuration that pmlogconf makes
of the group. A test does not wait for minutes: samples get the times of earlier ones afterwards. An
archive is in log/pmlogger/HOST, where the bridge of Cockpit looks for it.
"""

import contextlib
import os
import platform
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from fakemachine import TOP, wait_until

GROUPS = TOP / "cockpit/pcp"
BIN = Path("/usr/lib/pcp/bin")
# As a plug-in of pmcd, the agent needs no rights of root.
AGENTS = """\
pmcd 2 dso pmcd_init /var/lib/pcp/pmdas/pmcd/pmda_pmcd.so
proc 3 dso proc_init /var/lib/pcp/pmdas/proc/pmda_proc.so
"""
MINUTES = 4


class Archives:
    """The folders of PCP below a folder, which is new."""

    def __init__(self, folder: Path):
        self.folder, self.log = folder, folder / "log"
        self.stats, self.socket = folder / "stats", folder / "pmcd.socket"
        self.archives = self.log / "pmlogger" / platform.node()
        for one in (self.archives, self.log / "pmcd", self.stats / "proc", folder / "tmp"):
            one.mkdir(parents=True)
        (self.stats / "proc/mounts").write_text("cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n")
        (folder / "pmcd.conf").write_text(AGENTS)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]

    @property
    def environment(self) -> dict[str, str]:
        """For the programs of PCP, and for the bridge."""
        folders = {"PCP_RUN_DIR": self.folder, "PCP_TMP_DIR": self.folder / "tmp"}
        folders |= {"PCP_TMPFILE_DIR": self.folder / "tmp", "PCP_LOG_DIR": self.log}
        folders |= {"PROC_STATSPATH": self.stats, "PMCD_SOCKET": self.socket}
        return {name: str(path) for name, path in folders.items()} | {"PMCD_PORT": str(self.port)}

    def run(self, *words: str | Path) -> str:
        """Run a program of PCP; its output."""
        done = subprocess.run(
            words, cwd=self.folder, env=os.environ | self.environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        assert done.returncode == 0, f"{words}: {done.stdout}"
        return done.stdout

    @contextlib.contextmanager
    def pmcd(self) -> Iterator[None]:
        """The collector of metrics."""
        log = self.folder / "pmcd.log"
        words = [BIN / "pmcd", "-f", "-A", "-s", self.socket, "-c", "pmcd.conf", "-l", log]
        running = subprocess.Popen(words, cwd=self.folder, env=os.environ | self.environment)
        try:
            wait_until(lambda: self.socket.exists() or running.poll() is not None)
            assert running.poll() is None, log.read_text(errors="replace")
            yield
        finally:
            running.terminate()
            running.wait()

    def set_bytes(self, minute: int, rates: Mapping[str, Mapping[str, tuple[int, int]]]) -> None:
        """io.stat at the end of a minute: rates are read and written bytes per minute."""
        names = {}
        for cgroup, devices in rates.items():
            file = self.stats / "sys/fs/cgroup" / cgroup[1:] / "io.stat"
            file.parent.mkdir(parents=True, exist_ok=True)
            lines = []
            for device, (read, written) in devices.items():
                devno, _, name = device.partition(" ")
                names[devno] = name
                numbers = f"rbytes={read * minute} wbytes={written * minute} rios=1 wios=1"
                lines.append(f"{devno} {numbers} dbytes=0 dios=0\n")
            file.write_text("".join(lines))
        disks = [f"{devno.replace(':', ' ')} {name}" for devno, name in names.items()]
        text = "".join(f"   {disk} 0 0 0 0 0 0 0 0 0 0 0\n" for disk in disks)
        (self.stats / "proc/diskstats").write_text(text)

    def configuration(self) -> Path:
        """The configuration that pmlogconf makes of the group."""
        file = self.folder / "config"
        self.run(BIN / "pmlogconf", "-q", "-c", "-h", f"unix:{self.socket}", "-d", GROUPS, file)
        return file

    def record(self, rates: Mapping[str, Mapping[str, tuple[int, int]]]) -> None:
        """An archive of the last MINUTES, with these rates."""
        self.set_bytes(0, rates)
        parts = []
        with self.pmcd():
            config, began_s = self.configuration(), time.monotonic()
            for minute in range(MINUTES):
                self.set_bytes(minute, rates)
                now, then = f"now{minute}", f"then{minute}"
                late_s = time.monotonic() - began_s
                self.sample(config, now)
                minutes, seconds = divmod(60 * (MINUTES - minute) + late_s, 60)
                rule = self.folder / "rewrite"
                rule.write_text(f"global {{ TIME -> -{minutes:.0f}:{seconds:.3f} }}\n")
                self.run("pmlogrewrite", "-c", rule, now, then)
                parts.append(then)
        self.run("pmlogextract", *parts, self.archives / "20261128")

    def record_others(self) -> None:
        """An archive with other metrics only."""
        config = self.folder / "others"
        config.write_text("log mandatory on 1 second {\n\tpmcd.pid\n}\n")
        with self.pmcd():
            self.sample(config, str(self.archives / "20261101"))

    def sample(self, config: Path, archive: str) -> None:
        address = f"unix:{self.socket}"
        self.run("pmlogger", "-h", address, "-c", config, "-s", "1", "-l", "pmlogger.log", archive)
