# SPDX-License-Identifier: LGPL-2.1-or-later
"""sutroctl as an administrator uses it, against the real daemon and systemd.

tests/ctl states what it prints and refuses; here its data are looked at.
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
import time
from typing import Any

import pytest
from rig import bus, scheduler
from rig.shell import run, wait_for
from rig.unit import fio

STRIPE = {"kind": "striped", "name": "str", "over": ["ssd0", "ssd1"]}


def ask(*words: str) -> Any:
    """A verb with --json."""
    return json.loads(run("sutroctl", "--json", *words))


def fails(*words: str) -> str:
    """A verb that fails, without a traceback; what it said."""
    done = subprocess.run(
        ["sutroctl", *words], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode in (1, 2), done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith(("sutroctl: ", "usage: sutroctl"))
    return done.stderr


@pytest.fixture
def stripe(disk, stack, daemon: None):
    """An LVM stripe over two disks, not yet used."""
    return stack([disk("ssd", f"ssd{n}", bus_kbps=20000) for n in range(2)], STRIPE)


@pytest.mark.first
def test_use_and_release(stripe) -> None:
    """use switches both leaves of the volume, release gives them back; so does release --all."""
    before = scheduler.current("ssd0")
    used = ask("use", stripe.top)
    assert {one["leaf"]: one["scheduler"] for one in used} == {
        "/dev/ssd0": "sutro",
        "/dev/ssd1": "sutro",
    }
    assert [scheduler.current(name) for name in ("ssd0", "ssd1")] == ["sutro", "sutro"]
    ask("release", stripe.top)
    assert [scheduler.current(name) for name in ("ssd0", "ssd1")] == [before, before]
    bus.use(stripe.top)
    run("sutroctl", "release", "--all")
    assert [scheduler.current(name) for name in ("ssd0", "ssd1")] == [before, before]


@pytest.mark.first
def test_status(stripe, units) -> None:
    """status has the daemon, the leaves and the units with weights."""
    bus.use(stripe.top)
    unit = units("svc", weight=234)
    said = ask("status")
    assert sorted(said["daemon"]["managed_leaves"]) == ["/dev/ssd0", "/dev/ssd1"]
    leaves = {leaf["name"]: leaf for leaf in said["leaves"]}
    assert leaves["ssd0"]["scheduler"] == "sutro"
    assert any(one["unit"] == unit.unit and one["weight"] == 234 for one in said["units"])


@pytest.mark.first
def test_tree_and_explain(stripe, units) -> None:
    """tree draws the volume above its disks; explain goes from statement to file and share."""
    bus.use(stripe.top)
    job = fio(stripe.top, "randread", "64k", 32)
    unit = units("svc", job, weight=200, device_weights={stripe.top: 300})
    time.sleep(2.5)
    (top,) = ask("tree", stripe.top)
    assert top["kind"] == "striped"
    assert sorted(child["name"] for child in top["children"]) == ["ssd0", "ssd1"]
    text = run("sutroctl", "tree")
    for word in ("striped", "ssd0", "ssd1", "sutro", unit.unit, "300"):
        assert word in text
    said = ask("explain", unit.unit, stripe.top)
    assert (said["cgroup"], said["device"]) == (unit.cgroup, os.path.realpath(stripe.top))
    assert {leaf["leaf"] for leaf in said["leaves"]} == {"/dev/ssd0", "/dev/ssd1"}
    for leaf in said["leaves"]:
        assert (leaf["backend"], leaf["asked"], leaf["settled"]) == ("sutro", 300, True)
        assert leaf["written"].split()[-1] == leaf["read_back"].split()[-1] == "300"
        # It is alone on the disk.
        assert (leaf["hweight"], leaf["got"]) == pytest.approx((1, 1), abs=0.02)
        assert leaf["time_ns"] > 0 and leaf["rbytes"] > 0 and leaf["wbytes"] == 0
    assert ask("explain", unit.unit)["weight"] == 200


@pytest.mark.first
def test_set(stripe, units) -> None:
    """set goes through systemd and is carried to the leaves when it returns."""
    bus.use(stripe.top)
    unit = units("svc", weight=200)
    run("sutroctl", "set", unit.unit, "450", "--runtime")
    assert unit.show("IOWeight")["IOWeight"] == "450"
    assert unit.read("io.sutro.weight").splitlines()[0] == "default 450"
    run("sutroctl", "set", unit.unit, "600", "--device", stripe.top, "--runtime")
    assert f"{stripe.top} 600" in unit.show("IODeviceWeight")["IODeviceWeight"]
    lines = unit.read("io.sutro.weight").splitlines()
    assert len(lines) == 3 and all(line.endswith(" 600") for line in lines[1:])
    run("sutroctl", "set", unit.unit, "default", "--device", stripe.top, "--runtime")
    assert unit.read("io.sutro.weight").splitlines() == ["default 450"]
    # With the last weight of a slice systemd takes the I/O controller away, and the files too.
    run("sutroctl", "set", unit.unit, "default", "--runtime")
    said = ask("explain", unit.unit)
    assert (said["weight"], said["weight_set"]) == (100, False)


@pytest.fixture
def floor(stripe, units):
    """A unit that reads the stripe, with a floor and a ceiling for its writes."""
    bus.use(stripe.top)
    unit = units("svc", fio(stripe.top, "randread", "64k", 32), weight=300)
    floor, ceiling = f"ReadBandwidthMin={stripe.top} 10M", f"WriteBandwidthMax={stripe.top} 5M"
    run("sutroctl", "policy", "set", unit.unit, floor, ceiling, "--runtime")
    yield unit
    run("sutroctl", "policy", "reset", unit.unit, "--runtime")


@pytest.mark.first
def test_policy(stripe, floor, tmp_path) -> None:
    """policy set, show, reset and check, persistent over --runtime, whole or by key."""
    (shown,) = ask("policy", "show", floor.unit)["units"]
    assert [(one["key"], one["value"], one["in_force"]) for one in shown["policy"]] == [
        ("ReadBandwidthMin", f"{stripe.top} 10M", True),
        ("WriteBandwidthMax", f"{stripe.top} 5M", True),
    ]
    assert floor.unit in run("sutroctl", "policy", "show")
    ask("policy", "set", floor.unit, f"ReadBandwidthMin={stripe.top} 7M", "Importance=7")
    try:
        (shown,) = ask("policy", "show", floor.unit)["units"]
        assert {(one["key"], one["value"], one["in_force"]) for one in shown["policy"]} == {
            ("ReadBandwidthMin", f"{stripe.top} 7M", False),
            ("Importance", "7", True),
            ("ReadBandwidthMin", f"{stripe.top} 10M", True),
            ("WriteBandwidthMax", f"{stripe.top} 5M", True),
        }
        file = f"/etc/sutro/policy.control/{floor.unit}.policy"
        assert "fine" in run("sutroctl", "policy", "check", file)
        assert "Importance" in fails("policy", "set", floor.unit, "Importance=1001")
        ask("policy", "reset", floor.unit, "Importance")
        assert "Importance" not in run("sutroctl", "policy", "show", floor.unit)
        # Somebody edits the file and makes a mistake: whole it can still be reset.
        with open(file, "a", encoding="utf-8") as stream:
            stream.write("Heft=5\n")
        mistaken = subprocess.run(["sutroctl", "policy", "check", file], capture_output=True,
                                  text=True, check=False)  # fmt: skip
        assert mistaken.returncode == 1 and "Heft" in mistaken.stdout + mistaken.stderr
        assert "last good version" in fails("policy", "reload")
    finally:
        run("sutroctl", "policy", "reset", floor.unit)
    assert not os.path.exists(file)
    shown = ask("policy", "show")
    assert shown["policy_errors"] == []
    (policy,) = [one["policy"] for one in shown["units"] if one["unit"] == floor.unit]
    assert [one["value"] for one in policy] == [f"{stripe.top} 10M", f"{stripe.top} 5M"]


def test_seen(stripe, floor, tmp_path) -> None:
    """status, explain, top, watch and plot of a floor and a ceiling."""

    def state() -> str:
        return next(p["state"] for p in ask("status")["promises"] if p["key"] == "ReadBandwidthMin")

    wait_for(lambda: state() == "held", "a floor that holds", 60)
    explained = ask("explain", floor.unit, stripe.top)
    assert {(one["key"], one["value"], one["state"]) for one in explained["promises"]} == {
        ("ReadBandwidthMin", 10_000_000, "held"),
        ("WriteBandwidthMax", 5_000_000, "stated"),
    }
    (row,) = [one for one in ask("top", "--once") if one["unit"] == floor.unit]
    assert not row["fails"]
    assert {leaf["leaf"] for leaf in row["leaves"]} == {"/dev/ssd0", "/dev/ssd1"}
    read = next(line for line in row["lines"] if line["about"] == "read min")
    assert read["got"] > 10_000_000
    assert floor.unit in run("sutroctl", "top", "--once", stripe.top)

    watch = subprocess.Popen(["sutroctl", "watch", "--json"], stdout=subprocess.PIPE, text=True)
    recorded = [watch.stdout.readline() for _ in range(4)]
    watch.terminate()
    watch.wait(10)
    assert {json.loads(line)["unit"] for line in recorded} == {floor.unit}
    times = {json.loads(line)["time"] for line in recorded}
    assert len(times) == 2 and 0.5 < max(times) - min(times) < 5

    page = tmp_path / "plot.html"
    (panel,) = ask("plot", "-o", str(page))["panels"]
    assert (panel["unit"], panel["key"]) == (floor.unit, "ReadBandwidthMin")
    assert panel["samples"] >= 2
    assert floor.unit in page.read_text()


def test_plot_png(tmp_path) -> None:
    """With python3-matplotlib, a recording becomes a PNG with a panel per promise."""
    recording, picture = tmp_path / "record.json", tmp_path / "plot.png"
    samples = [
        {"time": 1.0 * second, "unit": unit, "key": "ReadBandwidthMin", "path": "/srv/$a_b$"}
        | {"value": 10**8, "got": second * 10**6, "granted": 0.5}
        for second in range(60)
        for unit in ("a.service", "b.service")
    ]
    recording.write_text("".join(json.dumps(sample) + "\n" for sample in samples))
    drawn = ask("plot", "--from", str(recording), "-o", str(picture))
    assert [panel["samples"] for panel in drawn["panels"]] == [60, 60]
    png = picture.read_bytes()
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", png[16:24])
    assert width == 900 and height > 400
