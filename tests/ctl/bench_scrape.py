# SPDX-License-Identifier: LGPL-2.1-or-later
"""A bench: CPU time of a scrape, of the real sutro-exporter and of the real sutrod.

    ./lab bench scrape
    meson test -C build --benchmark --verbose scrape       (with the packages for building)

The machine is a fake one: its cgroups are folders. Each unit has a floor and used four leaves, and
all counters change before each scrape. The start of the program is left out, and so is its first
scrape, in which it ranks the units; in the case "ranked" this scrape is measured, of a new program
each time. The clock of the daemon stands, so there is no control step in its times.
"""

import re
import statistics
import tempfile
import time
import urllib.error
from pathlib import Path

import pytest
from conftest import PLAIN_EXPORTER
from fakemachine import wait_until
from samples import CGROUPS_MOST
from test_exporter import get, start_exporter, stop

SCRAPES = 15
LEAVES = ("259:0", "259:1", "8:0", "8:16")
# As the elevator writes them.
KEYS = "time_ns rbytes wbytes rios wios wait_ns pending_ns busy_ns backlog_ns idle_ns queued"
KEYS = (*KEYS.split(), "in_flight", "dequeue", "lag_ns")
COUNTS = 40
# Number of units, whether each scrape ranks them, goals in ms of the exporter and of the daemon. Of
# 1,000 units 200 are exported.
CASES = {
    "100 units": (100, False, 1, 1),
    "1000 units": (1000, False, 20, None),
    "1000 units, ranked": (1000, True, 20, None),
}
POLICY = "[Match]\nCgroup=/crowd.slice/job*\n[X-Sutro]\nReadBandwidthMin=/srv 10K\n"


@pytest.fixture
def tmp_path():
    """A folder in memory: reads of a new file write to a disk otherwise, for its access time."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        yield Path(folder)


def counted(unit, scrape):
    """io.sutro.stat of a unit that uses the same each second, 15 s after the last scrape."""
    text = ""
    for number, leaf in enumerate(LEAVES, start=1):
        base = (unit + 1) * number * (scrape + 1) * 15
        text += leaf
        for key in KEYS:
            text += f" {key}={base * (7919 * 1013 if key.endswith('_ns') else 4099)}"
        text += f" rlat={','.join(str(base * at) for at in range(COUNTS))}\n"
    return text


def cpu_s(process):
    """CPU time of a process, as by clock_getcpuclockid(3)."""
    return time.clock_gettime((~process.pid << 3) | 2)


def report(name, seconds, goal_ms):
    """A line with the CPU time of scrapes; with a goal, a verdict about the median."""
    ms = sorted(1e3 * one for one in seconds)
    median = statistics.median(ms)
    line = f"{name:34} {median:6.2f} ms ({ms[0]:.2f} to {ms[-1]:.2f})"
    if goal_ms:
        line += f", goal {goal_ms} ms: {'met' if median <= goal_ms else 'missed'}"
    print(f"\n{line} ", end="", flush=True)


def scraped(address, *processes):
    """The text of a scrape, and the CPU time that each process took for it."""
    before = [cpu_s(one) for one in processes]
    text = get(f"{address}/metrics")[1]
    return text, [cpu_s(one) - begin for one, begin in zip(processes, before, strict=True)]


def warm(address):
    """Let the program complete its start."""
    with pytest.raises(urllib.error.HTTPError):
        get(address)


@pytest.mark.parametrize("name", CASES)
def test_scrape(name, machine, sutrod):
    units, is_ranked, goal_ms, goal_of_daemon_ms = CASES[name]
    for leaf in ("sda", "sdb"):
        machine.set_scheduler(leaf, "sutro")
    machine.write("/etc/sutro/policy.d/crowd.policy", POLICY)
    folders = [f"/crowd.slice/job{number}.service" for number in range(units)]
    for folder in folders:
        machine.cgroup(folder)
        machine.write(f"/sys/fs/cgroup{folder}/io.sutro.weight", "default 100\n259:0 200\n")
    sutrod.call("ReloadPolicies")
    exporter, times, logs = None, [], ""
    with sutrod.lock:
        wait_until(lambda: len(sutrod.call("ListPromiseStates")) == units)
        for scrape in range(SCRAPES + 1):
            for number, folder in enumerate(folders):
                machine.write(f"/sys/fs/cgroup{folder}/io.sutro.stat", counted(number, scrape))
            sutrod.settle()
            if is_ranked and exporter:
                logs += stop(exporter)
            if is_ranked or not exporter:
                exporter, address = start_exporter(machine.root, PLAIN_EXPORTER)
                warm(address)
            text, seconds = scraped(address, exporter, sutrod.process)
            times.append(seconds)
        memory = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{exporter.pid}/status").read_text())
        logs += stop(exporter)
    assert logs == "" and "sutro_up 1.0" in text
    assert text.count("\nsutro_promise_state{") == units
    exported = text.count('\nsutro_cgroup_weight{cgroup="/crowd.slice/job')
    assert exported == min(units, CGROUPS_MOST) * len(LEAVES)
    of_exporter, of_daemon = zip(*times[1:], strict=True)
    report(f"{name}: sutro-exporter", of_exporter, goal_ms)
    mb = (int(memory[1]) / 1e3, len(text) / 1e6)
    print("\n{:34} {:6.2f} MB of memory, {:.2f} MB of text ".format("", *mb), end="")
    report(f"{name}: sutrod", of_daemon, goal_of_daemon_ms)
