# SPDX-License-Identifier: LGPL-2.1-or-later
"""The cost of a floor before its unit is measured: that of an earlier unit."""

import pytest
from fakemachine import Machine, Sutrod, Systemd
from plant import LOGICAL, SETTLES_S, STRIPE, TICK_S, Plant, crowd, promise, set_policy, state


def needed(sutrod: Sutrod, unit: str) -> float:
    """The share of a disk that the one promise of a unit needs; nothing before the next tick."""
    sutrod.elapse(2 * TICK_S)
    return max(leaf["share_needed"] for leaf in promise(sutrod, unit)["leaves"])


def test_new_unit_begins_with_the_cost_of_one_like_it(
    machine: Machine, systemd: Systemd, sutrod: Sutrod, plant: Plant
) -> None:
    """The same unit, another instance of its template, another unit of the same statement."""
    policy = "[Match]\nUnit={}\n[X-Sutro]\nReadBandwidthMin={}\n"
    machine.write(
        "/etc/sutro/policy.d/a.policy", policy.format("job@*.service run-*.service", f"{STRIPE} 5M")
    )
    machine.write("/etc/sutro/policy.d/b.policy", policy.format("other.service", f"{STRIPE} 5M"))
    crowd(systemd, plant)
    # It lives for less time than the daemon takes from one save to the next.
    plant.add("job", systemd.start("job@1.service", 100))
    sutrod.start()
    sutrod.until(lambda: state(sutrod, "job@1.service") == "held", SETTLES_S)
    plant.readers.pop("job")
    systemd.vanish("job@1.service")
    systemd.start("other.service", 100)
    sutrod.until(lambda: state(sutrod, "other.service") == "idle")
    # Nothing is known of it, and nothing is set aside.
    assert needed(sutrod, "other.service") == 0
    for unit in ("job@1.service", "job@2.service", "run-u7.service"):
        cgroup = systemd.start(unit, 100)
        sutrod.until(lambda u=unit: state(sutrod, u) == "idle")
        assert needed(sutrod, unit) == pytest.approx(0.05, rel=0.05)
        assert any(line.startswith("8:0 ") for line in machine.weights(cgroup))
    # A new daemon reads the cost from the file; lines of another version do no harm.
    assert sutrod.stop() == 0
    with machine.at("/run/sutro/learnt").open("a") as file:
        file.write("ReadBandwidthMin 8:0 1e-9 /system.slice/db.service\t/srv\nnonsense\n")
    sutrod.start()
    assert needed(sutrod, "job@2.service") == pytest.approx(0.05, rel=0.05)


def test_costs_are_forgotten(
    machine: Machine, systemd: Systemd, sutrod: Sutrod, plant: Plant
) -> None:
    """Costs are dropped after a week without a measurement, and with their disk."""
    now_us = 10**9
    seq = int(machine.at("/sys/class/block/sda/diskseq").read_text())

    def line(unit: str, age_days: float, seq: int = seq) -> str:
        usec = int(now_us - age_days * 86400e6) + 7 * 86400 * 10**6
        return f"ReadBandwidthMin {LOGICAL} 8:0/{seq} 1e-8 {usec} {unit}\t/a:1\n"

    sutrod.clock.now_ns += 7 * 86400 * 10**9
    swapped = line("swapped.service", 1, seq + 1000)
    lines = line("old.service", 7.1) + line("new.service", 6.9) + swapped
    machine.write("/run/sutro/learnt", lines)
    for unit in ("old.service", "new.service", "swapped.service"):
        systemd.start(unit, 100)
    plant.add("big", systemd.start("big.service", 1000))
    sutrod.start()
    for unit, share in (("old.service", 0), ("new.service", 0.05), ("swapped.service", 0)):
        set_policy(sutrod, unit, ReadBandwidthMin=f"{STRIPE} 5M")
        sutrod.until(lambda u=unit: state(sutrod, u) == "idle")
        assert needed(sutrod, unit) == pytest.approx(share)
