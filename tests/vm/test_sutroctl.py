# SPDX-License-Identifier: LGPL-2.1-or-later
"""sutroctl with a real kernel, systemd and matplotlib.

tests/ctl states what it prints and refuses, with the real daemon on a fake machine.
"""

import json
import os
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rig import bus, scheduler
from rig.shell import run
from rig.unit import fio

LEAVES = {"/dev/ssd0", "/dev/ssd1"}
MAX_SECTORS_KB = 128
NR_REQUESTS = 256
STRIPE = {"kind": "striped", "name": "str", "over": ["ssd0", "ssd1"]}


def ask(*words: str) -> Any:
    """A verb with --json."""
    return json.loads(run("sutroctl", "--json", *words))


@pytest.fixture
def stripe(disk, stack, daemon: None):
    """An LVM stripe over two disks, not yet used."""
    return stack([disk("ssd", f"ssd{n}", bus_kbps=20000) for n in range(2)], STRIPE)


def settings() -> list[tuple[str, int, int]]:
    """Scheduler, largest request and request slots of both leaves."""
    found = []
    for name in ("ssd0", "ssd1"):
        kb, slots = (
            int(Path("/sys/block", name, "queue", attribute).read_text())
            for attribute in ("max_sectors_kb", "nr_requests")
        )
        found.append((scheduler.current(name), kb, slots))
    return found


@pytest.mark.first
def test_use_and_release(stripe) -> None:
    """use switches both leaves of the volume, release gives them back; so does release --all."""
    before = settings()
    assert before[0][1] > MAX_SECTORS_KB and before[0][2] < NR_REQUESTS
    used = ask("use", stripe.top)
    assert {one["leaf"]: one["scheduler"] for one in used} == dict.fromkeys(LEAVES, "sutro")
    assert settings() == 2 * [("sutro", MAX_SECTORS_KB, NR_REQUESTS)]
    ask("release", stripe.top)
    assert settings() == before
    bus.use(stripe.top)
    run("sutroctl", "release", "--all")
    assert settings() == before


@pytest.fixture
def rule() -> Iterator[Path]:
    """A file for rules of the administrator."""
    path = Path("/run/udev/rules.d/60-sutro-local.rules")
    path.parent.mkdir(exist_ok=True)
    yield path
    path.unlink(missing_ok=True)
    run("udevadm", "control", "--reload")


@pytest.mark.parametrize(
    ("more", "largest_kb", "slots"),
    [
        ("", MAX_SECTORS_KB, NR_REQUESTS),
        (', ENV{SUTRO_MAX_SECTORS_KB}="256", ENV{SUTRO_NR_REQUESTS}="512"', 256, 512),
    ],
    ids=["default", "set"],
)
def test_marked_by_udev(stripe, rule: Path, more: str, largest_kb: int, slots: int) -> None:
    """A disk that a rule marks gets the scheduler, and the size and the slots of the rule."""
    before = settings()
    rule.write_text(f'KERNEL=="ssd0", ENV{{SUTRO}}="1"{more}\n')
    run("udevadm", "control", "--reload")
    run("udevadm", "trigger", "--settle", "--action=add", "/sys/block/ssd0", "/sys/block/ssd1")
    assert settings() == [("sutro", largest_kb, slots), before[1]]


@pytest.mark.first
def test_explain(stripe, units) -> None:
    """explain has the contents of the kernel's files, and the share of the unit on each leaf."""
    bus.use(stripe.top)
    job = fio(stripe.top, "randread", "64k", 32)
    unit = units("svc", job, weight=200, device_weights={stripe.top: 300})
    time.sleep(2.5)
    explanation = ask("explain", unit.unit, stripe.top)
    assert (explanation["cgroup"], explanation["device"]) == (
        unit.cgroup,
        os.path.realpath(stripe.top),
    )
    assert {leaf["leaf"] for leaf in explanation["leaves"]} == LEAVES
    for leaf in explanation["leaves"]:
        assert (leaf["backend"], leaf["asked"], leaf["settled"]) == ("sutro", 300, True)
        assert leaf["written"].split()[-1] == leaf["read_back"].split()[-1] == "300"
        # It is alone on the disk.
        assert (leaf["hweight"], leaf["got"]) == pytest.approx((1, 1), abs=0.02)
        assert leaf["time_ns"] > 0 and leaf["rbytes"] > 0 and leaf["wbytes"] == 0


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
    explanation = ask("explain", unit.unit)
    assert (explanation["weight"], explanation["weight_set"]) == (100, False)


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
