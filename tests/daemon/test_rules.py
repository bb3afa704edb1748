# SPDX-License-Identifier: LGPL-2.1-or-later
"""Which weight holds for a leaf: on stacks that overlap, and in the smaller range of bfq.

/dev/mapper/db      dm-1  sda1 + sdb
/dev/mapper/backup  dm-2  sdb + sdc     mounted at /srv/backup
sda1, sda2                of sda        mounted at / and /home
"""

import itertools
import math
import os
import random

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
REASONS = {"stands": "whose device is on this disk", "names": "which names this disk"}


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
            weight, reason = 100, f"IOWeight= of {unit} is not set"
            if isinstance(holds, int):
                weight, reason = holds, f"IOWeight={holds} of {unit}"
            elif holds:
                path, weight = stated[holds[1]]
                reason = f"IODeviceWeight={path} {weight} of {unit}, {REASONS[holds[0]]}"
            leaf = explained["/dev/" + name]
            assert (leaf["asked"], leaf["reason"]) == (weight, reason)


# Weights of siblings on a bfq leaf, and the written numbers.
SCALED = {(200, 100): [200, 100], (1500, 100): [990, 66], (10000, 1): [1000, 1]}


def random_siblings(draw: random.Random) -> list[int]:
    """Small and large weights are as likely as each other."""
    weights = []
    for _ in range(draw.randrange(1, 20)):
        step = draw.choice([1, 1, 100])
        weights.append(draw.randrange(draw.choice([10, 100, 1000, 10000])) // step * step or 1)
    return weights


def test_random_siblings_on_bfq(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    """Weights are in 1..1000, and their order and ratios are kept.

    A set that fits is not changed, one whose shortened ratio fits is exact, and each other weight
    is within half a step of its ratio to the largest one.
    """
    draw = random.Random(3)
    count = 300 if "SUTRO_LONG" in os.environ else 30
    sets = [*map(list, SCALED), *(random_siblings(draw) for _ in range(count))]
    for number, weights in enumerate(sets):
        slice_ = systemd.start(f"s{number}.slice", slice="/")
        for n, weight in enumerate(weights):
            systemd.start(f"s{number}u{n}.service", weight, slice=slice_)
    sutrod.start()
    for number, weights in enumerate(sets):
        written = []
        for n in range(len(weights)):
            lines = machine.weights(f"/s{number}.slice/s{number}u{n}.service", "io.bfq.weight")
            stated = dict(line.split() for line in lines)
            written.append(int(stated.get("8:32", stated["default"])))
        assert written == SCALED.get(tuple(weights), written)
        assert all(1 <= one <= 1000 for one in written)
        largest, top = max(weights), max(written)
        for weight, one in zip(weights, written, strict=True):
            if largest <= 1000:
                assert one == weight
            elif largest // math.gcd(*weights) <= 1000:
                assert one * largest == weight * top
            else:
                assert one == 1 or abs(one - weight * top / largest) <= 0.5001
        pairs = sorted(set(zip(weights, written, strict=True)))
        assert len(pairs) == len(set(weights))
        assert [one for _, one in pairs] == sorted(one for _, one in pairs)
