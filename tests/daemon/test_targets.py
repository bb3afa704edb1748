# SPDX-License-Identifier: LGPL-2.1-or-later
"""Latency targets in the whole daemon, without BPF."""

import itertools

import pytest
from fakemachine import Machine, Sutrod, Systemd
from plant import LATENCY, LEAVES, MB, SETTLES_S, STRIPE, Plant, crowd, promise, set_policy, state


def test_targets_without_bpf(systemd: Systemd, sutrod: Sutrod, plant: Plant) -> None:
    """Reads are measured at the leaves; targets for writes and fsyncs are unobserved."""
    crowd(systemd, plant)
    sutrod.start()
    set_policy(sutrod, "db.service", LatencyTarget=f"{STRIPE} 5ms P99")
    sutrod.until(lambda: state(sutrod, "db.service") == "settling", SETTLES_S)
    target = promise(sutrod, "db.service")
    assert (target["value"], target["percentile"], target["measured_at"]) == (5000, 99, "leaves")
    for key, op in (("WriteLatencyTarget", "writes"), ("FsyncLatencyTarget", "fsyncs")):
        sutrod.call("ResetPolicy", "db.service", "runtime")
        set_policy(sutrod, "db.service", **{key: f"{STRIPE} 5ms"})
        sutrod.until(lambda: state(sutrod, "db.service") == "unobserved", SETTLES_S)
        cause = promise(sutrod, "db.service")["cause"]
        assert cause.startswith(f"latencies of {op} are measured by BPF only")
        assert "sutrod(8)" in cause
    assert sutrod.log().count("BPF is not available") == 1


def test_target_is_enforced_by_elevators(
    machine: Machine, systemd: Systemd, sutrod: Sutrod, plant: Plant
) -> None:
    """io.sutro.latency has the target on each leaf; the elevators judge it, without a share."""
    db = systemd.start("db.service", 100)
    states = ["missed"]
    counts = itertools.count(1)

    def read(_seconds: float) -> None:
        # All reads take 8 to 12 ms.
        n = next(counts)
        stat = f"time_ns={n * MB} rbytes={n * MB} wbytes=0 rios={n * 100} wios=0 wait_ns=0 queued=0"
        rest = f"latency={states[-1]} rlat={'0,' * 19}{n * 100}\n"
        lines = [f"{devno} {stat} {rest}" for devno in LEAVES.values()]
        machine.write(f"/sys/fs/cgroup{db}/io.sutro.stat", "".join(lines))

    sutrod.clock.loads[:] = [read]
    sutrod.start()
    set_policy(sutrod, "db.service", LatencyTarget=f"{STRIPE} 5ms")
    wanted = ["8:0 5000", "8:16 5000", "default max"]
    sutrod.until(lambda: machine.weights(db, LATENCY) == wanted)
    sutrod.until(lambda: state(sutrod, "db.service") == "settling", SETTLES_S)
    sutrod.elapse(SETTLES_S)
    assert state(sutrod, "db.service") == "settling"
    assert machine.weights(db) == ["default 100"]
    states.append("unreachable")
    sutrod.until(lambda: state(sutrod, "db.service") == "infeasible", SETTLES_S)
    assert "although it serves nothing else" in promise(sutrod, "db.service")["cause"]
    # The file is for the 95th percentile: the lines go, and a share is searched for.
    set_policy(sutrod, "db.service", LatencyTarget=f"{STRIPE} 5ms P99")
    sutrod.until(lambda: machine.weights(db, LATENCY) == ["8:0 max", "8:16 max", "default max"])


# MB/s of each.
UNITS = {"a": 10, "b": 15, "c": 25}


@pytest.mark.parametrize("disks", ["sda", "sda sdb", "sda sdb sde sdf"])
def test_target_leaves_a_part_of_each_leaf_to_others(
    machine: Machine, systemd: Systemd, sutrod: Sutrod, disks: str
) -> None:
    """All data of a linear volume lie on one of its disks, whose time the floor needs, too."""
    machine.disk("sde", "8:64", "sutro")
    machine.disk("sdf", "8:80", "sutro")
    machine.mapped("dm-1", "254:1", disks, "vg-lin", "LVM-" + 64 * "b")
    rates = {systemd.start(f"{unit}.service"): rate for unit, rate in UNITS.items()}
    passed = 0.0

    def read(seconds: float) -> None:
        """Read from sda, which has 50 MB/s; reads of a.service take 4 to 6 ms."""
        nonlocal passed
        passed += seconds
        ns = int(passed * 1e9)
        for cgroup, rate in rates.items():
            done = int(passed * rate * MB)
            counts = f"rbytes={done} wbytes=0 rios={done // 4096} wios=0"
            waits = f"wait_ns={2 * ns} pending_ns={ns} busy_ns={ns} backlog_ns={ns} queued=8"
            late = f" rlat={'0,' * 17}{int(passed * 1000)}" if rate == 10 else ""
            line = f"8:0 time_ns={20 * done} {counts} {waits}{late}\n"
            machine.write(f"/sys/fs/cgroup{cgroup}/io.sutro.stat", line)
            machine.write(f"/sys/fs/cgroup{cgroup}/io.stat", f"254:1 {counts}\n")

    sutrod.clock.loads.append(read)
    sutrod.start()
    set_policy(sutrod, "a.service", LatencyTarget="/dev/mapper/vg-lin 2ms P99")
    set_policy(sutrod, "b.service", ReadBandwidthMin="/dev/mapper/vg-lin 15M")
    sutrod.until(lambda: state(sutrod, "a.service") == "infeasible", 5 * SETTLES_S)
    target = promise(sutrod, "a.service")
    (needed,) = (leaf["share_needed"] for leaf in target["leaves"] if leaf["leaf"] == "/dev/sda")
    assert needed == pytest.approx(0.9, abs=0.01)
    assert "with 90 % of the leaves' time" in target["cause"]
    # The target needs 90 % of sda and the floor 30 %.
    assert promise(sutrod, "b.service")["granted"] == pytest.approx(1 / 1.2, abs=0.02)


def test_target_on_a_leaf_without_sutro(
    machine: Machine, systemd: Systemd, sutrod: Sutrod, plant: Plant
) -> None:
    """The cause has the leaf and the command that changes its scheduler."""
    crowd(systemd, plant)
    machine.set_scheduler("sdb", "none")
    sutrod.start()
    set_policy(sutrod, "db.service", LatencyTarget=f"{STRIPE} 5ms")
    sutrod.until(lambda: state(sutrod, "db.service") == "unweighted", SETTLES_S)
    assert promise(sutrod, "db.service")["cause"] == (
        "the scheduler of /dev/sdb (none) counts no device time, so the target is not kept; "
        f'run "sutroctl use {STRIPE}"'
    )
