# SPDX-License-Identifier: LGPL-2.1-or-later
"""Percentages in the programs' files, and `policy check --fits`."""

import json
import os

import pytest
from conftest import CONF, sutroctl
from sutro import values
from sutro.errors import UsageError
from test_sutroctl import GOLDEN


@pytest.mark.parametrize("text", "0.5%|101%|-5%|30.5.1%|30 %|1.234%".split("|"))
def test_percentage(text):
    """A floor may be one, and nothing else."""
    for key, value in (("ReadBandwidthMin", text), ("ReadBandwidthMax", " 12.5% ")):
        with pytest.raises(UsageError) as caught:
            values.check(key, value)
        assert f"'{value.strip()}' is no value for {key}: allowed is " in caught.value.message
    for value in ("1%", "100%", " 12.5% "):
        values.check("ReadBandwidthMin", value)


@pytest.mark.parametrize(
    ("floor", "status", "expected"),
    [
        ("/dev/mapper/secret 5%", 3, "no weights, so no floor holds; run"),
        ("/dev/vg0/log 40%", 0, "fits"),
        ("/dev/vg0/log 101%", 2, '"[X-Sutro] ReadBandwidthMin=/dev/vg0/log 101%": a path and 1%'),
        ("/dev/vg0/db 99%", 1, "does not fit"),
        ("/dev/vg0/db 10M", 3, "the capacity of /dev/dm-0 for ReadBandwidthMin= of db"),
    ],
)
def test_fits(sutrod, tmp_path, floor, status, expected):
    """Beside a unit that has the other half of a leaf."""
    sutrod.call("SetPolicy", "web.service", [("ReadIOPSMin", "/dev/vg0/log 50%")], "runtime")
    sutrod.settle()
    file = tmp_path / "60-new.policy"
    file.write_text(f"[Match]\nUnit=db.service\n[X-Sutro]\nReadBandwidthMin={floor}\n")
    run = sutroctl("policy", "check", "--fits", str(file))
    assert run.status == status and expected in " ".join((run.out + run.err).split())
    data = sutroctl("--json", "policy", "check", "--fits")
    assert data.json()["verdict"] == "fits"
    assert [f["unit"] for d in data.json()["devices"] for f in d["floors"]] == ["web.service"]


def test_text(promised):
    """The golden text, as in test_sutroctl.py."""
    golden = GOLDEN / "policy-check-fits.txt"
    run = sutroctl("policy", "check", "--fits")
    if os.environ.get("SUTRO_GOLDEN") == "write":
        golden.write_text(run.out)
    assert (run.status, run.err, run.out) == (1, "", golden.read_text())


def test_capacity_beside_a_floor_above_it(promised):
    """Another floor of the unit is no other capacity: its requests take the same time."""
    key = "ReadBandwidthMin"

    def capacity():
        run = sutroctl("--json", "policy", "check", "--fits")
        floors = [floor for device in json.loads(run.out)["devices"] for floor in device["floors"]]
        (floor,) = (f for f in floors if f["unit"] == "db.service" and f["key"] == key)
        return floor["rate_alone"]

    before = capacity()
    promised.call("SetPolicy", "db.service", [(key, "/dev/vg0/db 500G")], "runtime")
    promised.elapse(10)
    assert capacity() == pytest.approx(before, rel=0.02)


def test_order(promised):
    """Devices without room first; the order in which a file system lists cgroups has no effect."""
    data = sutroctl("--json", "policy", "check", "--fits")
    devices = json.loads(data.out)["devices"]
    assert [(d["path"], d["verdict"]) for d in devices] == [
        ("/dev/mapper/vg0-db", "does-not-fit"),
        ("/dev/mapper/secret", "unknown"),
        ("/dev/mapper/vg0-log", "unknown"),
        ("/mnt/backup", "unknown"),
    ]
    assert [(f["unit"], f["key"]) for f in devices[0]["floors"]] == [
        ("db.service", "ReadBandwidthMin"),
        ("db.service", "WriteBandwidthMin"),
        ("web.service", "ReadBandwidthMin"),
        ("web.service", "WriteBandwidthMin"),
    ]


@pytest.mark.parametrize("file", [[], ["/nowhere/a.policy"]])
def test_fits_without_a_daemon_or_a_file(bus, file):
    run = sutroctl("policy", "check", "--fits", *file)
    assert run.status == 2 and run.err


def test_fits_is_what_set_accepts(sutrod, tmp_path):
    """On a device with a declared capacity."""
    sutrod.machine.write(CONF, "[Capacity]\nDevice=/srv read=30M\nAdmission=refuse\n")
    sutrod.call("Reload")
    file = tmp_path / "60-new.policy"
    file.write_text("[Match]\nUnit=db.service\n[X-Sutro]\nReadBandwidthMin=/srv 40M\n")
    run = sutroctl("policy", "check", "--fits", str(file))
    text = "ReadBandwidthMin: /srv can promise 30M, and 40M would be promised"
    assert run.status == 1 and text in " ".join(run.out.split())
    assert sutroctl("policy", "set", "db", "ReadBandwidthMin=/srv 40M").status == 1
