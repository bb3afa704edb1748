# SPDX-License-Identifier: LGPL-2.1-or-later
"""Which weight holds for a leaf, on stacks that overlap.

/dev/mapper/db      dm-1  sda1 + sdb
/dev/mapper/backup  dm-2  sdb + sdc     mounted at /srv/backup
sda1, sda2                of sda        mounted at / and /home
"""

from __future__ import annotations

import itertools

import pytest
from fakemachine import UNSET, Machine, Sutrod, Systemd

DB, BACKUP = ("/dev/mapper/db", 30), ("/srv/backup", 50)
# IOWeight=, IODeviceWeight= in any order, and for each leaf the statement that holds.
RULES = [
    (UNSET, [], {"sda": None}),
    (200, [], {"sda": 200}),
    # A path that does not resolve is ignored.
    (200, [("/dev/mapper/nothing", 300)], {"sda": 200}),
    (200, [("/dev/mapper/db", 300)], {"sda": ("stands", 0), "sdb": ("stands", 0), "sdc": 200}),
    # Of two stacks on one disk the larger, even if it is less than IOWeight=.
    (200, [DB, BACKUP], {"sda": ("stands", 0), "sdb": ("stands", 1), "sdc": ("stands", 1)}),
    # The leaf itself wins over larger stacks.
    (200, [DB, BACKUP, ("/dev/sdb", 10)], {"sda": ("stands", 0), "sdb": ("names", 2)}),
    # Partitions and file systems on them name the disk; of several the largest holds.
    (UNSET, [("/dev/mapper/db", 900), ("/dev/sda2", 40)], {"sda": ("names", 1)}),
    (UNSET, [("/dev/sda2", 40), ("/dev/sda1", 60), ("/dev/sda", 50)], {"sda": ("names", 1)}),
    (UNSET, [("/home/user/file", 70)], {"sda": ("names", 0)}),
]
REASONS = {"stands": "which stands on this disk", "names": "which names this disk"}


@pytest.mark.parametrize(("weight", "stated", "leaves"), RULES)
def test_weight_of_a_leaf(
    machine: Machine,
    systemd: Systemd,
    sutrod: Sutrod,
    weight: int,
    stated: list[tuple[str, int]],
    leaves: dict[str, tuple[str, int] | int | None],
) -> None:
    for name, devno in (("sda1", "8:1"), ("sda2", "8:2")):
        machine.partition("sda", name, devno)
    machine.stripe("dm-1", "254:1", "sda1 sdb", "db")
    machine.stripe("dm-2", "254:2", "sdb sdc", "backup")
    machine.mount("/", "8:1", "ext4", "/dev/sda1")
    machine.mount("/home", "8:2", "ext4", "/dev/sda2")
    machine.mount("/srv/backup", "254:2", "xfs", "/dev/dm-2")
    machine.write("/home/user/file", "x")
    orders = list(itertools.permutations(stated))
    for number, order in enumerate(orders):
        systemd.start(f"u{number}.service", weight, list(order))
    sutrod.start()
    for unit in (f"u{number}.service" for number in range(len(orders))):
        explained = {leaf["leaf"]: leaf for leaf in sutrod.call("Explain", unit, "")["leaves"]}
        for name, holds in leaves.items():
            asked, reason = 100, f"IOWeight= of {unit} is not set"
            if isinstance(holds, int):
                asked, reason = holds, f"IOWeight={holds} of {unit}"
            elif holds:
                path, asked = stated[holds[1]]
                reason = f"IODeviceWeight={path} {asked} of {unit}, {REASONS[holds[0]]}"
            leaf = explained["/dev/" + name]
            assert (leaf["asked"], leaf["reason"]) == (asked, reason)
