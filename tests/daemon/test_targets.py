# SPDX-License-Identifier: LGPL-2.1-or-later
"""Latency targets in the whole daemon, without BPF."""

from fakemachine import Machine, Sutrod, Systemd
from plant import SETTLES_S, STRIPE, Plant, crowd, promise, say, state


def test_targets_without_bpf(systemd: Systemd, sutrod: Sutrod, plant: Plant) -> None:
    """Reads are measured at the leaves; what cannot be measured is reported, with the reason."""
    crowd(systemd, plant)
    sutrod.start()
    say(sutrod, "db.service", LatencyTarget=f"{STRIPE} 5ms P99")
    sutrod.until(lambda: state(sutrod, "db.service") == "settling", SETTLES_S)
    told = promise(sutrod, "db.service")
    assert (told["value"], told["percentile"], told["measured_at"]) == (5000, 99, "leaves")
    for key, op in (("WriteLatencyTarget", "writes"), ("FsyncLatencyTarget", "fsyncs")):
        sutrod.call("ResetPolicy", "db.service", "runtime")
        say(sutrod, "db.service", **{key: f"{STRIPE} 5ms"})
        sutrod.until(lambda: state(sutrod, "db.service") == "unobserved", SETTLES_S)
        cause = promise(sutrod, "db.service")["cause"]
        assert cause.startswith(f"latencies of {op} are measured by BPF only")
        assert "sutrod(8)" in cause
    assert sutrod.log().count("BPF is not available") == 1


def test_target_on_a_leaf_without_sutro(
    machine: Machine, systemd: Systemd, sutrod: Sutrod, plant: Plant
) -> None:
    """The cause has the leaf and the command that changes its scheduler."""
    crowd(systemd, plant)
    machine.set_scheduler("sdb", "none")
    sutrod.start()
    say(sutrod, "db.service", LatencyTarget=f"{STRIPE} 5ms")
    sutrod.until(lambda: state(sutrod, "db.service") == "unweighted", SETTLES_S)
    assert promise(sutrod, "db.service")["cause"] == (
        "the scheduler none of /dev/sdb counts no device time, so the target is not kept; "
        f'run "sutroctl use {STRIPE}"'
    )
