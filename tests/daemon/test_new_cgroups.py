# SPDX-License-Identifier: LGPL-2.1-or-later
"""Cgroups that are made while a floor is in force, below those that the control law has."""

import shutil

from fakemachine import Machine, Sutrod, Systemd
from plant import MB, SETTLES_S, Plant, hold, promise, set_policy, state


def test_competitor_that_begins_later(
    machine: Machine, systemd: Systemd, sutrod: Sutrod, plant: Plant
) -> None:
    """A user's service begins after the floor: the slices above are its competitors."""
    for unit, folder in (
        ("user.slice", "/user.slice"),
        ("user-1.slice", "/user.slice/user-1.slice"),
    ):
        systemd.unit(unit, folder)
        machine.cgroup(folder)
    plant.add("db", systemd.start("db.service", 100))
    sutrod.start()
    hold(sutrod, floor="80M")
    plant.add("noisy", systemd.start("noisy.service", 100, slice="/user.slice/user-1.slice"))
    sutrod.until(
        lambda: any(line.startswith("8:0 ") for line in machine.weights("/system.slice")), SETTLES_S
    )


def test_cgroup_within_a_promised_unit(
    machine: Machine, systemd: Systemd, sutrod: Sutrod, plant: Plant
) -> None:
    """A unit moves its processes into a cgroup of its own, as a container does, and again."""
    db = systemd.start("db.service", 100)
    plant.add("other", systemd.start("other.service", 100))
    sutrod.start()
    set_policy(sutrod, "db.service", ReadBandwidthMin="/dev/sda 20M")
    sutrod.until(lambda: state(sutrod, "db.service") == "idle", SETTLES_S)
    for name in ("payload", "payload-again"):
        machine.cgroup(f"{db}/{name}")
        plant.add("db", f"{db}/{name}")
        sutrod.until(lambda: promise(sutrod, "db.service")["got"] > 20 * MB, SETTLES_S)
        plant.readers.pop("db")
        shutil.rmtree(machine.at(f"/sys/fs/cgroup{db}/{name}"))
        sutrod.until(lambda: promise(sutrod, "db.service")["got"] < MB, SETTLES_S)
