# SPDX-License-Identifier: LGPL-2.1-or-later
"""sutrod on a kernel that has no module sutro: each row of Documentation/guides/without-module.rst.

The disks have bfq by the udev rule of that guide, and then the kernel's iocost. The last test
installs the module beside the running daemon.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from bench import iocost
from conftest import MakeDisk
from rig import bus, scheduler, sutrod, without_module
from rig.crowd import DB, FLOOR, KBPS, KEY, Crowd, built
from rig.sampler import mbps_by_window
from rig.shell import CommandError, run, wait_for
from rig.stack import Stack
from rig.unit import CGROUP_ROOT, Unit, fio, start, stop

CONF = Path("/run/sutro/sutrod.conf.d/rig.conf")
STRIPE = {"kind": "striped", "name": "lv", "over": ["ssd0", "ssd1"]}
NAMES = ("ssd0", "ssd1")
SOON_S = 60.0
BFQ, IOCOST, SUTRO = "io.bfq.weight", "io.weight", "io.sutro.weight"

StartUnit = Callable[..., Unit]


@pytest.fixture(scope="module", autouse=True)
def no_module(modules: None) -> Iterator[None]:
    """The kernel has no scheduler sutro, and new disks get bfq."""
    with without_module.without():
        yield


@pytest.fixture(scope="module")
def stripe(no_module: None) -> Iterator[Stack]:
    """An LVM stripe over two disks with bfq; sutrod runs."""
    with built(2, STRIPE, switch=False) as made:
        for name in NAMES:
            assert scheduler.current(name) == "bfq"
            assert (scheduler.queue(name) / "iosched/low_latency").read_text() == "0\n"
        yield made


@pytest.fixture
def crowd(stripe: Stack) -> Iterator[Crowd]:
    """A unit of weight 100 beside two of weight 1000."""
    with Crowd(stripe.top, stripe.disks) as made:
        yield made


def sutroctl(*words: str) -> Any:
    """A verb with --json."""
    return json.loads(run("sutroctl", "--json", *words))


def weights(unit: Unit, file: str) -> dict[str, int]:
    """A weight file as a dictionary."""
    return {key: int(value) for key, value in map(str.split, unit.read(file).splitlines())}


def become(unit: Unit, file: str, stripe: Stack, weight: int) -> None:
    """The weight is in force on both disks of the stripe soon: by a line, or by default."""

    def found() -> list[int]:
        now = weights(unit, file)
        return [now.get(one.devno, now["default"]) for one in stripe.disks]

    wait_for(lambda: found() == [weight] * 2, f"{unit.unit}: {file} {weight}", SOON_S)


def become_ordered(stripe: Stack, units: StartUnit, file: str) -> tuple[Unit, Unit]:
    """Weights of the volume become those of its disks, and the heavier unit reads more."""
    job = fio(stripe.top, "randread", "64k", 32)
    pair = [units(f"w{n}", job, device_weights={stripe.top: n}) for n in (300, 100)]
    heavy, light = pair
    become(heavy, file, stripe, 300)
    become(light, file, stripe, 100)

    def are_ordered() -> bool:
        found = mbps_by_window(stripe.disks, pair, stripe.devno, 4.0, 2.0)
        return min(found["w300"]) > 1.3 * max(found["w100"]) > 0

    wait_for(are_ordered, "300 reads more than 100", SOON_S)
    return heavy, light


def is_held(crowd: Crowd) -> bool:
    """The floor holds, and is reported so."""
    return crowd.has() and crowd.reported() == [("held", "")]


def reported(unit: str = DB) -> tuple[str, str]:
    """State and cause of its only promise."""
    found = [(one["state"], one["cause"]) for one in bus.promises(unit)]
    return found[0] if len(found) == 1 else ("", "")


def becomes(state: str) -> str:
    """The promise to `db` has this state soon; its cause."""
    wait_for(lambda: reported()[0] == state, f"{state}, {reported()}", SOON_S)
    return reported()[1]


# bfq: weights


def test_weights_of_a_volume(stripe: Stack, units: StartUnit) -> None:
    """Lines of io.bfq.weight, which `explain` has too; bfq orders the units by them."""
    heavy, light = become_ordered(stripe, units, BFQ)
    explanation = sutroctl("explain", heavy.unit, stripe.top)
    for leaf in explanation["leaves"]:
        assert (leaf["scheduler"], leaf["backend"], leaf["asked"]) == ("bfq", "bfq", 300)
        assert leaf["settled"] and leaf["file"].endswith(BFQ)
        assert leaf["written"].split()[-1] == leaf["read_back"].split()[-1] == "300"
    run("systemctl", "stop", "sutrod")
    assert not weights(heavy, BFQ).keys() & {one.devno for one in stripe.disks}
    run("systemctl", "start", "sutrod")
    become(heavy, BFQ, stripe, 300)
    become(light, BFQ, stripe, 100)


def test_large_ratios(stripe: Stack, units: StartUnit) -> None:
    """Siblings are scaled together to 1000, the most that bfq has."""
    least, most = units("least", weight=1), units("most", weight=10000)
    become(most, BFQ, stripe, 1000)
    become(least, BFQ, stripe, 1)


def test_shares_are_of_bytes(stripe: Stack, units: StartUnit) -> None:
    """`top`: a unit with few large requests beside one with many small ones."""
    large = units("large", fio(stripe.top, "randread", "64k", 16), weight=100)
    small = units("small", fio(stripe.top, "randread", "4k", 16), weight=100)
    time.sleep(3)
    rows = {row["unit"]: row for row in sutroctl("top") if row["name"] == stripe.top}
    got, shares = {}, {}
    for unit in (large, small):
        row = rows[unit.unit]
        assert [leaf["weight"] for leaf in row["leaves"]] == [100, 100]
        got[unit.name] = sum(line["got"] for line in row["lines"])
        shares[unit.name] = sum(leaf["share"] for leaf in row["leaves"]) / 2
    assert got["large"] > 1.5 * got["small"]
    for name, share in shares.items():
        assert share == pytest.approx(got[name] / sum(got.values()), abs=0.1)


def test_status(stripe: Stack) -> None:
    """The scheduler of each disk, and that none uses sutro."""
    text = run("sutroctl", "status")
    assert re.search(r"/dev/ssd0 +disk +bfq ", text), text
    assert "no leaf uses sutro; switch one: sutroctl use DEVICE" in text


def test_weights_of_resyncs(disk: MakeDisk, stack: Callable[..., Stack], stripe: Stack) -> None:
    """The thread of a resync has the weight of the configuration in io.bfq.weight."""
    run("systemctl", "start", "resync.slice")
    CONF.parent.mkdir(parents=True, exist_ok=True)
    CONF.write_text("[Daemon]\nResyncWeight=50\n")
    try:
        bus.call("Reload")
        members = [disk("ssd", f"ssd{n}", size_mb=64, bus_kbps=20000) for n in (7, 8)]
        layer = {"kind": "md", "name": "arr", "level": "raid1", "over": ["ssd7", "ssd8"]}
        top = stack(members, layer).top
        files = Path("/sys/class/block", Path(top).resolve().name, "md")
        (files / "sync_speed_min").write_text("1\n")
        (files / "sync_speed_max").write_text("50\n")
        (files / "sync_action").write_text("check\n")

        def moved() -> bool:
            return [one["cgroup"] for one in bus.call("ListResyncs")] == ["/resync.slice"]

        wait_for(moved, "the resync in its slice", SOON_S)
        file = CGROUP_ROOT / "resync.slice" / BFQ
        wanted = {f"{one.devno} 50" for one in members}
        wait_for(lambda: wanted <= set(file.read_text().splitlines()), f"{file} {wanted}", SOON_S)
        (files / "sync_action").write_text("idle\n")
    finally:
        CONF.unlink()
        bus.call("Reload")
        run("systemctl", "stop", "resync.slice")


# bfq: policies


def test_floor(crowd: Crowd) -> None:
    """A floor raises the weight on both disks until it holds, and leaves no line."""
    assert crowd.mbps(2) < 0.5 * FLOOR
    crowd.promise()
    wait_for(lambda: is_held(crowd), f"{FLOOR} MB/s for db", SOON_S)
    assert all(weights(crowd.db, BFQ)[one.devno] > 100 for one in crowd.disks)
    text = run("sutroctl", "explain", DB, crowd.top)
    assert re.search(rf"{KEY}={crowd.top} +24M.* held ", text), text
    bus.call("ResetPolicy", "ss", DB, "runtime")
    wait_for(
        lambda: not weights(crowd.db, BFQ).keys() & {one.devno for one in crowd.disks},
        "no lines of db",
        SOON_S,
    )


def test_floor_in_percent(crowd: Crowd) -> None:
    """Bytes stand for device time: the unit receives the part of all bytes."""
    bus.set_policy(DB, **{KEY: f"{crowd.top} 60%"})
    wait_for(lambda: is_held(crowd), "60 % for db", SOON_S)


def test_limit(crowd: Crowd) -> None:
    """io.max of the kernel."""
    stop(crowd.bigs)
    bus.set_policy(DB, ReadBandwidthMax=f"{crowd.top} 10M")
    wait_for(lambda: "rbps=10000000" in crowd.db.read("io.max"), "io.max", SOON_S)
    time.sleep(1)
    assert 0 < crowd.mbps(3) < 10.5
    bus.call("ResetPolicy", "ss", DB, "runtime")
    wait_for(lambda: crowd.db.read("io.max") == "", "no io.max", SOON_S)
    wait_for(lambda: crowd.has(24), "more than the former limit", SOON_S)


def test_latency_target(crowd: Crowd) -> None:
    """Measured by BPF at the volume and reported, but not enforced."""
    bus.set_policy(DB, LatencyTarget=f"{crowd.top} 1ms P99")
    cause = becomes("unweighted")
    assert re.search(r"the scheduler of /dev/ssd[01] \(bfq\) counts no device time", cause), cause
    assert "so the target is not kept" in cause

    def rows() -> list[Any]:
        return [row for row in sutroctl("latency", DB)["rows"] if row["op"] == "read"]

    wait_for(lambda: any(row["requests"] > 100 for row in rows()), "100 reads", SOON_S)
    (row,) = rows()
    assert (row["source"], row["targets"][0]["state"]) == ("volume", "unweighted")
    assert row["p99_us"] > 1000
    assert "unweighted" in run("sutroctl", "status")


def test_class_has_no_effect(stripe: Stack, crowd: Crowd) -> None:
    """Class=idle changes no file of the cgroup; `policy set` and `explain` report this."""
    big = crowd.bigs[0]
    become(big, BFQ, stripe, 1000)
    before = {path.name: path.read_text() for path in files(big)}
    printed = run("sutroctl", "policy", "set", "--runtime", big.unit, "Class=idle")
    assert "Class= has no effect until a leaf uses sutro" in printed, printed
    text = " ".join(run("sutroctl", "explain", big.unit, crowd.top).split())
    assert f"Class=idle of {big.unit} has no effect on /dev/ssd0 /dev/ssd1" in text, text
    time.sleep(2)
    assert {path.name: path.read_text() for path in files(big)} == before
    wait_for(lambda: crowd.mbps(3, "big0") > 10, "more than an idle class would have", SOON_S)


def files(unit: Unit) -> list[Path]:
    """Its files with weights, classes and limits."""
    found = [unit.folder / name for name in (BFQ, IOCOST, "io.max", "io.prio.class")]
    return [path for path in found if path.exists()]


def test_one_request_at_a_time(stripe: Stack) -> None:
    """A floor of a unit that waits for each of its requests has no reserve."""
    with Crowd(stripe.top, stripe.disks, iodepth=1) as crowd:
        stop(crowd.bigs)
        hogs = [
            Unit(f"hog{n}", fio(stripe.top, "randread", "64k", 32, seed=n), 1000) for n in range(2)
        ]
        start(hogs)
        try:
            crowd.promise()
            becomes("limited")
            (promise,) = bus.promises(DB)
            assert promise["reserve"] == 0
        finally:
            stop(hogs)


# neither


def test_neither(crowd: Crowd) -> None:
    """Without a scheduler of weights, a floor is reported as unweighted, with the command."""
    with selected("mq-deadline"):
        crowd.promise()
        cause = becomes("unweighted")
        assert re.search(r"the scheduler of /dev/ssd[01] \(mq-deadline\) has no weights", cause)
        assert f'run "sutroctl use {crowd.top}"' in cause
        text = run("sutroctl", "explain", DB, crowd.top)
        assert "Weights have no effect on /dev/ssd0 /dev/ssd1" in text, text
    # With bfq again, the same floor holds.
    wait_for(lambda: is_held(crowd), f"{FLOOR} MB/s for db", SOON_S)


def test_use(stripe: Stack) -> None:
    """An error names the package, and the disks keep their scheduler."""
    with pytest.raises(
        CommandError, match='has no scheduler "sutro". Install the package sutro-dkms'
    ):
        run("sutroctl", "use", stripe.top)
    assert [scheduler.current(name) for name in NAMES] == ["bfq", "bfq"]


@contextmanager
def selected(elevator: str) -> Iterator[None]:
    """Both disks have another scheduler for a while, until the rule is applied as in the guide."""
    for name in NAMES:
        scheduler.select(name, elevator)
    yield
    without_module.apply_rule()
    assert [scheduler.current(name) for name in NAMES] == ["bfq", "bfq"]


# iocost


def test_iocost(stripe: Stack, units: StartUnit) -> None:
    """With a model of the disks, weights become lines of io.weight, and a floor holds."""
    numbers = {name: {"kind": "ssd", "bus_kbps": KBPS} for name in NAMES}
    truth = {one.name: one.truth() for one in stripe.disks}
    with selected("none"), iocost.enabled(stripe.disks, numbers, truth):
        run("systemctl", "restart", "sutrod")
        heavy, light = become_ordered(stripe, units, IOCOST)
        backends = [
            (leaf["scheduler"], leaf["backend"])
            for leaf in sutroctl("explain", heavy.unit, stripe.top)["leaves"]
        ]
        assert backends == [("none", "iocost")] * 2
        stop([heavy, light])
        with Crowd(stripe.top, stripe.disks) as crowd:
            crowd.promise()
            wait_for(lambda: is_held(crowd), f"{FLOOR} MB/s for db", SOON_S)
    run("systemctl", "restart", "sutrod")


# the module


def test_change_to_the_module(crowd: Crowd) -> None:
    """The daemon that runs uses the module as soon as it is installed; policies stay."""
    crowd.promise()
    wait_for(lambda: is_held(crowd), f"{FLOOR} MB/s for db", SOON_S)
    pid = sutrod.main_pid()
    without_module.install()
    try:
        run("sutroctl", "use", crowd.top)
        assert [scheduler.current(name) for name in NAMES] == ["sutro", "sutro"]
        wait_for(lambda: is_held(crowd), f"{FLOOR} MB/s for db", SOON_S)
        devices = {one.devno for one in crowd.disks}
        assert devices <= weights(crowd.db, SUTRO).keys()
        assert not devices & weights(crowd.db, BFQ).keys()
        assert weights(crowd.bigs[0], SUTRO)["default"] == 1000
        assert sutrod.main_pid() == pid
    finally:
        bus.release()
