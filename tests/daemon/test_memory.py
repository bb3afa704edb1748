# SPDX-License-Identifier: LGPL-2.1-or-later
"""Memory of the daemon is free again when nothing needs it. Sanitizers would keep it."""

import os
import re
from pathlib import Path

import pytest
from fakemachine import Machine, Sutrod, Systemd

# The tables of the control law have 1.5 MiB with these disks and all units, and the allocator keeps
# some free memory.
UNITS, DISKS, KEPT_KB = 300, 16, 512

# With MALLOC_PERTURB_, which meson sets, glibc makes trimmed memory resident again: a realloc()
# that grows a block into the free chunk behind it fills the rest of this chunk, up to megabytes.
PLAIN_MALLOC = {"MALLOC_PERTURB_": "0"}


@pytest.fixture
def crowd(systemd: Systemd) -> None:
    """Many units, and a.service."""
    for i in range(UNITS):
        systemd.start(f"u{i}.service")
    systemd.start("a.service", 200)


def memory_kb(sutrod: Sutrod) -> int:
    """Resident memory of the daemon without its files."""
    assert sutrod.process
    status = Path(f"/proc/{sutrod.process.pid}/status").read_text()
    found = re.search(r"RssAnon:\s+(\d+) kB", status)
    assert found
    return int(found[1])


@pytest.mark.usefixtures("crowd")
def test_former_tables_after_a_reload(machine: Machine, sutrod: Sutrod) -> None:
    """A reload makes the tables of the control law again; the former ones take no memory."""
    names = [f"x{number}" for number in range(DISKS)]
    for number, name in enumerate(names):
        machine.disk(name, f"252:{16 * number}", "sutro")
    machine.write("/sys/fs/cgroup/io.sutro.active", "")
    floors = "\n".join(f"ReadBandwidthMin=/dev/{name} 100K" for name in names)
    policy = f"[Match]\nUnit=a.service\n[X-Sutro]\n{floors}\n"
    machine.write("/etc/sutro/policy.d/crowd.policy", policy)
    sutrod.start(**PLAIN_MALLOC)
    sutrod.elapse(2)
    assert len(sutrod.call("ListPromises")) == DISKS

    before_kb = memory_kb(sutrod)
    for _ in range(3):
        sutrod.call("Reload")
        sutrod.elapse(2)
    assert memory_kb(sutrod) <= before_kb + KEPT_KB


@pytest.mark.usefixtures("crowd")
def test_samples_after_the_last_client(machine: Machine, sutrod: Sutrod) -> None:
    """The samples for a client that watches take no memory after the client has gone."""
    counters = "".join(f"252:{16 * n} time_ns=1 rlat=0,1\n" for n in range(DISKS))
    for number in range(DISKS):
        machine.disk(f"x{number}", f"252:{16 * number}", "sutro")
    for i in range(UNITS):
        machine.write(f"/sys/fs/cgroup/system.slice/u{i}.service/io.sutro.stat", counters)
    sutrod.start(**PLAIN_MALLOC)
    sutrod.elapse(2)
    before_kb = memory_kb(sutrod)
    sutrod.call("ListUsage")
    assert memory_kb(sutrod) > before_kb + KEPT_KB
    sutrod.elapse(20)
    assert memory_kb(sutrod) <= before_kb + KEPT_KB


def test_long_paths_of_delegated_cgroups(
    machine: Machine, systemd: Systemd, sutrod: Sutrod
) -> None:
    """Of a path the daemon has two copies; users can make many cgroups with paths of 4 KiB."""
    levels, cgroups, name = 15, 300, "d" * 240
    # Tables, buffers and all else of these cgroups.
    others_kb = 2048
    systemd.start("a.service", 200)
    sutrod.start(**PLAIN_MALLOC)
    sutrod.elapse(2)
    before_kb = memory_kb(sutrod)
    place = os.open(machine.at("/sys/fs/cgroup/system.slice/a.service"), os.O_RDONLY)
    for _ in range(levels):
        os.mkdir(name, dir_fd=place)
        below = os.open(name, os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = below
    for number in range(cgroups):
        os.mkdir(f"c{number}", dir_fd=place)
    os.close(place)
    # Two searches find all of them.
    for _ in range(4):
        sutrod.elapse(30)
    grown_kb = memory_kb(sutrod) - before_kb
    paths_kb = cgroups * levels * len(name) / 1024
    assert paths_kb < grown_kb < 2.5 * paths_kb + others_kb
