# SPDX-License-Identifier: LGPL-2.1-or-later
"""Databases in a folder of a file system, and the load on them.

    pgbench   PostgreSQL as a service with MemoryMax=; pgbench runs its TPC-B-like transactions from
              outside of the service. Durable as by default: a commit waits for its write-ahead log
    db_bench  RocksDB in db_bench, a service: 9 of 10 operations are reads past the page cache, the
              tenth is a write with sync. The latencies are those of reads

The load of a run begins with a ramp, which is not measured. db_bench cannot leave it out of its
histogram, so it runs its benchmark twice.
"""

from __future__ import annotations

import math
import os
import re
import shlex
import shutil
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from rig.shell import TIMEOUT_S, run, wait_for
from rig.unit import Unit

from bench.applications.scenario import Scenario

# Without a weight or this the cgroup of a service has no io.stat.
COUNTED = {"IOAccounting": "yes"}
PERCENT = 99
POLL_S = 0.1
READY_POLL_S = 0.5


@dataclass(frozen=True)
class Served:
    """Result of a load: transactions or operations per second, and the 99th percentile."""

    per_s: float
    p99_ms: float


class Application(ABC):
    """A database; its unit is the one that policies and weights are about."""

    unit: Unit

    def __init__(self, scenario: Scenario, folder: Path):
        self.scenario = scenario
        self.folder = folder

    @abstractmethod
    def prepare(self) -> None:
        """Make the data; the disks are fast meanwhile."""

    @abstractmethod
    def rest(self) -> None:
        """Bring the data into the same state before each run; the disks are fast meanwhile."""

    @abstractmethod
    def begin(self) -> None:
        """Start the load."""

    @abstractmethod
    def ramped(self) -> None:
        """Return when the ramp is over."""

    @abstractmethod
    def served(self) -> Served:
        """Return what the load got from then to its end."""

    def close(self) -> None:
        """End the load and the service."""
        self.unit.stop()


# ---- PostgreSQL ----

# Its tables and the settings of the server: tests/lab/recipes/databases.
DATA = "/mnt/build/postgresql.tar"
# The page cache of the service holds a part of the data only, as that of a large database does.
MEMORY_MAX = "96M"
SOCKETS = Path("/run/rig-postgresql")
LOG = SOCKETS / "transactions"


class Pgbench(Application):
    """PostgreSQL and pgbench."""

    def __init__(self, scenario: Scenario, folder: Path):
        super().__init__(scenario, folder)
        self._data = folder / "postgresql"
        (self._programs,) = Path("/usr/lib/postgresql").glob("*/bin")
        data = shlex.quote(str(self._data))
        # The service extracts its data, because the first user of pages and inodes is charged.
        command = f"tar --extract --file={DATA} --directory={data} && "
        command += f"exec {self._programs}/postgres -D {data} -k {SOCKETS}"
        properties = {**COUNTED, "User": "postgres", "MemoryMax": MEMORY_MAX}
        self.unit = Unit("postgresql", command, properties=properties)
        self._load: subprocess.Popen | None = None
        self._from_s = 0.0

    def _words(self, program: str, *words: str) -> list[str]:
        """A command line of a client."""
        connect = (f"--host={SOCKETS}", "--username=postgres")
        return [str(self._programs / program), *connect, *words, "postgres"]

    def prepare(self) -> None:
        for folder in (SOCKETS, self._data):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(mode=0o750)
            shutil.chown(folder, "postgres", "postgres")
        self.unit.start()
        wait_for(self._ready, f"{self.unit.unit} accepts connections", TIMEOUT_S, READY_POLL_S)

    def _ready(self) -> bool:
        if not self.unit.busy():
            raise RuntimeError(f"{self.unit.unit} ended early:\n{self.unit.journal()}")
        words = [str(self._programs / "pg_isready"), f"--host={SOCKETS}", "--quiet"]
        return subprocess.run(words, check=False).returncode == 0

    def rest(self) -> None:
        run(*self._words("psql", "--quiet", "--command=CHECKPOINT"))

    def begin(self) -> None:
        for old in SOCKETS.glob(f"{LOG.name}.*"):
            old.unlink()
        seconds = self.scenario.ramp_s + self.scenario.measure_s
        words = self._words(
            "pgbench", "--protocol=prepared", "--no-vacuum", f"--client={self.scenario.clients}",
            f"--time={seconds}", "--log", f"--log-prefix={LOG}",
        )  # fmt: skip
        pipe = subprocess.PIPE
        self._load = subprocess.Popen(words, stdout=pipe, stderr=subprocess.STDOUT, text=True)

    def ramped(self) -> None:
        time.sleep(self.scenario.ramp_s)
        self._from_s = time.time()

    def served(self) -> Served:
        assert self._load
        printed, _ = self._load.communicate(timeout=TIMEOUT_S)
        if self._load.returncode:
            raise RuntimeError(f"pgbench: status {self._load.returncode}: {printed.strip()}")
        (log,) = SOCKETS.glob(f"{LOG.name}.*")
        return pgbench_served(log.read_text().splitlines(), self._from_s)

    def close(self) -> None:
        if self._load:
            self._load.kill()
            self._load.communicate()
        super().close()


def pgbench_served(lines: Iterable[str], from_s: float) -> Served:
    """The log of pgbench from a moment on: CLIENT NUMBER TIME_US SCRIPT END_S END_US."""
    ended_s, latency_us = [], []
    for line in lines:
        words = line.split()
        end_s = int(words[4]) + int(words[5]) / 1e6
        if end_s >= from_s:
            ended_s.append(end_s)
            latency_us.append(int(words[2]))
    if not ended_s:
        return Served(0.0, math.inf)
    latency_us.sort()
    rank = math.ceil(len(latency_us) * PERCENT / 100)
    return Served(len(ended_s) / (max(ended_s) - from_s), latency_us[rank - 1] / 1e3)


# ---- RocksDB ----

OUTPUT = Path("/run/rig-db_bench.out")
KEYS = 250_000
VALUE_BYTES = 400
BENCHMARK = "readrandomwriterandom"
RATE = re.compile(rf"^{BENCHMARK}\s*:.*?([0-9.]+) ops/sec", re.MULTILINE)
READS_P99 = re.compile(r"^Microseconds per read:.*?P99: ([0-9.]+)", re.MULTILINE | re.DOTALL)


class DbBench(Application):
    """RocksDB and its db_bench."""

    def __init__(self, scenario: Scenario, folder: Path):
        super().__init__(scenario, folder)
        self._data = folder / "rocksdb"
        self._filled = folder / "rocksdb.filled"
        self._words = [
            "db_bench", f"--num={KEYS}", f"--value_size={VALUE_BYTES}",
            "--compression_type=none", "--cache_size=1048576", "--seed=1", "--progress_reports=0",
        ]  # fmt: skip
        load = [
            *self._words, f"--db={self._data}", f"--benchmarks={BENCHMARK},{BENCHMARK}",
            "--use_existing_db=1",
            f"--threads={scenario.clients}", f"--duration={scenario.measure_s}",
            "--ops_between_duration_checks=1", "--readwritepercent=90", "--sync=1",
            "--use_direct_reads=1", "--histogram=1",
        ]  # fmt: skip
        command = f"exec {shlex.join(load)} >{OUTPUT} 2>&1"
        self.unit = Unit("db_bench", command, properties=COUNTED)

    def prepare(self) -> None:
        run(*self._words, f"--db={self._filled}", "--benchmarks=fillseq", "--disable_wal=1")

    def rest(self) -> None:
        shutil.rmtree(self._data, ignore_errors=True)
        shutil.copytree(self._filled, self._data, copy_function=_same)

    def begin(self) -> None:
        OUTPUT.write_text("")
        self.unit.start()

    def ramped(self) -> None:
        self._wait_for(1)

    def served(self) -> Served:
        self._wait_for(2)
        wait_for(lambda: not self.unit.busy(), f"the end of {self.unit.unit}", TIMEOUT_S)
        found = db_bench_served(OUTPUT.read_text())
        self.unit.stop()
        return found[1]

    def _wait_for(self, count: int) -> None:
        """Wait until `count` benchmarks have ended."""

        def ended() -> bool:
            if len(db_bench_served(OUTPUT.read_text())) >= count:
                return True
            if not self.unit.busy():
                raise RuntimeError(f"{self.unit.unit} ended early:\n{OUTPUT.read_text()}")
            return False

        wait_for(ended, f"result {count} of {self.unit.unit}", TIMEOUT_S, POLL_S)


def _same(source: str, target: str) -> None:
    """Copy a file of RocksDB; tables are never changed, so a link to one will do."""
    if source.endswith(".sst"):
        os.link(source, target)
    else:
        shutil.copyfile(source, target)


def db_bench_served(text: str) -> list[Served]:
    """The results in the output of db_bench, of each benchmark that has ended."""
    rates, latencies = RATE.findall(text), READS_P99.findall(text)
    return [
        Served(float(rate), float(us) / 1e3) for rate, us in zip(rates, latencies, strict=False)
    ]


APPLICATIONS: dict[str, type[Application]] = {"pgbench": Pgbench, "db_bench": DbBench}
