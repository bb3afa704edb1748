# SPDX-License-Identifier: LGPL-2.1-or-later
"""Fixtures: the daemon on a fake machine (fakemachine.py)."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from fakemachine import Bus, Machine, Sutrod, Systemd
from journal import Journal
from plant import Plant


def new_machine(directory: Path) -> Machine:
    """Two sutro disks under a stripe, one bfq disk, one without a scheduler, one unused."""
    m = Machine(directory.resolve() / "machine")
    m.disk("sda", "8:0", "sutro")
    m.disk("sdb", "8:16", "sutro")
    m.disk("sdc", "8:32", "bfq")
    m.disk("sdd", "8:48", "none")
    m.stripe("dm-0", "254:0", "sda sdb", "vg-db")
    m.cgroup("/init.scope")
    m.cgroup("/system.slice")
    return m


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine with four disks."""
    return new_machine(tmp_path)


@pytest.fixture
def systemd(bus: Bus, machine: Machine) -> Systemd:
    """A systemd with init.scope and system.slice."""
    return Systemd(bus, machine)


@pytest.fixture
def sutrod(bus: Bus, machine: Machine, systemd: Systemd, tmp_path: Path) -> Iterator[Sutrod]:
    """The daemon, not yet started; at the end its sanitizers must not have complained."""
    bus.allow(True)
    s = Sutrod(bus, machine, tmp_path)
    yield s
    s.end()


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    """A journal without messages."""
    one = Journal(tmp_path / "journal")
    yield one
    one.close()


@pytest.fixture
def plant(machine: Machine, sutrod: Sutrod) -> Plant:
    """The disks, and no reader yet."""
    return Plant(machine, sutrod)
