# SPDX-License-Identifier: LGPL-2.1-or-later
"""Floors hold on a stripe, and live through what happens to daemon, systemd and units."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from rig import bus, sutrod
from rig.crowd import DB, FLOOR, KBPS, KEY, SETTLES_S, SOON_S, Bystanders, Crowd, Fall, built, lines
from rig.shell import run, wait_for
from rig.stack import Stack
from rig.unit import Unit, start, stop

STRIPE = {"kind": "striped", "name": "lv", "over": ["ssd0", "ssd1"]}


@pytest.fixture(scope="module")
def stripe() -> Iterator[Stack]:
    """A stripe over two disks for several tests."""
    with built(2, STRIPE) as made:
        yield made


@pytest.fixture
def crowd(stripe: Stack) -> Iterator[Crowd]:
    """The crowd on it."""
    with Crowd(stripe.top, stripe.disks) as made:
        yield made


# it holds


@pytest.mark.first
def test_stripe(crowd: Crowd) -> None:
    """A floor holds, nothing is lost by it, and nothing of it stays."""
    before = {unit.name: crowd.mbps(2, unit.name) for unit in crowd.units}
    assert before["db"] < 0.2 * FLOOR
    with Bystanders():
        crowd.held()

    def nothing_is_lost() -> bool:
        now = time.monotonic()
        together = sum(crowd.watch.mbps(unit.name, now - 2, now) for unit in crowd.units)
        return together > 0.9 * 2 * KBPS / 1000

    wait_for(nothing_is_lost, "nearly all of both disks in use", 60)

    def exact() -> bool:
        (promise,) = bus.promises(DB)
        return promise["state"] == "held" and promise["got"] == pytest.approx(
            promise["value"], rel=0.2
        )

    wait_for(exact, "a rate close to the floor", 60)
    (promise,) = bus.promises(DB)
    assert promise["value"] == FLOOR * 10**6
    assert {leaf["leaf"] for leaf in promise["leaves"]} == {"/dev/ssd0", "/dev/ssd1"}
    assert len(lines(crowd.db)) == 3
    bus.call("ResetPolicy", "ss", DB, "runtime")
    wait_for(lambda: lines(crowd.db) == {"default": "100"}, "no lines of db", SOON_S)
    assert bus.promises(DB) == []


def test_infeasible(crowd: Crowd) -> None:
    """Floors do not fit: importance decides, and the state is reported at once, and on recovery."""
    crowd.held()
    since = time.time() - 1
    with bus.Listener() as heard:
        began = time.monotonic()
        crowd.promise(Importance="200")
        crowd.promise(32, "rig-big0.service", Importance="100")
        state = ["rig-big0.service", KEY, crowd.top, "infeasible"]

        def is_infeasible() -> bool:
            return any(
                list(one.arguments[:4]) == state for one in heard.of("PromiseChanged", began)
            )

        wait_for(is_infeasible, "PromiseChanged of big0", SOON_S)
        crowd.settles()
        journal = run("journalctl", "--unit=sutrod", f"--since=@{since:.0f}", "--catalog")
        assert "rig-big0.service: ReadBandwidthMin=" in journal and "does not hold" in journal
        assert "A promise to rig-big0.service does not hold" in journal
        assert "sutroctl explain rig-big0.service" in journal
        crowd.promise(8, "rig-big0.service")

        def again() -> bool:
            return [p["state"] for p in bus.promises("rig-big0.service")] == ["held"]

        wait_for(again, "big0 holds again", SETTLES_S)
    journal = run("journalctl", "--unit=sutrod", f"--since=@{since:.0f}", "--catalog")
    assert "A promise to rig-big0.service holds again" in journal
    crowd.holds()


# the daemon and systemd


def test_killed(crowd: Crowd) -> None:
    """kill -9: the weights stay in force, and the next one goes on with them."""
    crowd.held()
    time.sleep(5)  # costs are kept every five seconds
    devices = [disk.devno for disk in crowd.disks]
    with Bystanders(), Fall(crowd.db, devices) as fall:
        for _ in range(2):
            old = sutrod.main_pid()
            sutrod.kill()
            assert len(lines(crowd.db)) == 3
            sutrod.comes_back(old)
            crowd.holds()
        assert crowd.reported() == [("held", "")]
    assert fall.lowest > 1000


@pytest.mark.parametrize("how", ["restart", "upgrade"])
def test_restarted(crowd: Crowd, how: str) -> None:
    """A daemon that is to be started again leaves its weights to the next one."""
    crowd.held()
    with Bystanders(), Fall(crowd.db, [disk.devno for disk in crowd.disks]) as fall:
        if how == "upgrade":
            (package,) = Path("/mnt/build").glob("sutro_*.deb")
            old = sutrod.main_pid()
            run("dpkg", "--install", package)
            assert sutrod.main_pid() not in (0, old)
        else:
            run("systemctl", "restart", "sutrod")
        crowd.holds()
        wait_for(lambda: crowd.reported() == [("held", "")], "held", SETTLES_S)
    assert fall.lowest > 1000


def test_stopped(crowd: Crowd) -> None:
    """A daemon that is stopped takes its weights back; started again it keeps the floor."""
    crowd.held()
    run("systemctl", "stop", "sutrod")
    assert lines(crowd.db) == {"default": "100"}
    # All three are alike now.
    assert crowd.mbps(2) < 0.7 * FLOOR
    run("systemctl", "start", "sutrod")
    crowd.settles()


@pytest.mark.parametrize("verb", ["daemon-reload", "daemon-reexec"])
def test_systemd(crowd: Crowd, verb: str) -> None:
    """systemd looks at everything anew; weights stay where they are all the time."""
    crowd.held()
    with Bystanders(), Fall(crowd.db, [disk.devno for disk in crowd.disks]) as fall:
        run("systemctl", verb)
        crowd.holds(seconds=3)
    assert fall.lowest > 1000
    assert crowd.reported() == [("held", "")]


def test_dozens(crowd: Crowd) -> None:
    """Units and slices come and go by the dozen, the floor holds."""
    crowd.held()
    old = sutrod.main_pid()
    with Bystanders():
        brief = [
            Unit(f"brief{n}", "sleep 0.2", 100 + n, parent=f"rig-many{n % 3}.slice")
            for n in range(24)
        ]
        start(brief)
        crowd.holds()
        stop(brief)
        wait_for(lambda: not any("brief" in name for name in bus.units()), "no brief units", 60)
        crowd.holds()
    assert sutrod.main_pid() == old
    errors = run("journalctl", "--unit=sutrod", "--priority=warning", "--since=-30", "--output=cat")
    assert "brief" not in errors


def test_unit_comes_back(crowd: Crowd) -> None:
    """The promised unit is started again: a new cgroup, and the floor holds there soon."""
    crowd.held()
    stop([crowd.db])
    wait_for(lambda: bus.promises(DB) == [], "no promise without its unit", SOON_S)
    start([crowd.db])
    crowd.settles()


# ceilings, classes


def test_ceiling(crowd: Crowd) -> None:
    """A ceiling is not exceeded, and gone when it is taken back."""
    stop(crowd.bigs)
    bus.set_policy(DB, ReadBandwidthMax=f"{crowd.top} 10M")
    wait_for(lambda: "rbps=10000000" in crowd.db.read("io.max"), "io.max", SOON_S)
    time.sleep(1)
    assert 8 < crowd.mbps(3) < 10.5
    bus.call("ResetPolicy", "ss", DB, "runtime")
    wait_for(lambda: crowd.db.read("io.max") == "", "no io.max", SOON_S)
    wait_for(lambda: crowd.has(30), "all of the disks again", SETTLES_S)


def test_class_idle(crowd: Crowd) -> None:
    """Class=idle: next to nothing while others read, all of the disk when no other unit reads."""
    bus.set_policy("rig-big0.service", Class="idle")
    time.sleep(1)
    assert crowd.mbps(2, "big0") < 2
    stop([crowd.db, crowd.bigs[1]])
    time.sleep(1)
    assert crowd.mbps(2, "big0") > 30
