# SPDX-License-Identifier: LGPL-2.1-or-later
"""Do floors fit before they are in force? Tests of the call CheckPolicies on the bus."""

from typing import Any

import dbus
import pytest
from fakemachine import Machine, Sutrod, Systemd
from plant import MB, SETTLES_S, STRIPE, Plant, crowd, hold

NEW = "/etc/sutro/policy.d/50-new.policy"


def fits(sutrod: Sutrod, *files: tuple[str, str]) -> tuple[str, list[dict[str, Any]]]:
    """The verdict, and the reason for each device."""
    verdict, devices = sutrod.call("CheckPolicies", dbus.Array(files, signature="(ss)"))
    return str(verdict), list(devices)


def policy(unit: str, *promises: str) -> str:
    """The text of a policy file."""
    return "\n".join((f"[Match]\nUnit={unit}\n[X-Sutro]", *promises, ""))


@pytest.mark.parametrize(
    ("promise", "verdict", "share"),
    [
        ("ReadBandwidthMin={} 38M", "fits", 0.38),
        ("ReadBandwidthMin={} 45M", "does-not-fit", 0.45),
        ("ReadBandwidthMin=any 38%", "fits", 0.38),
        ("WriteIOPSMin={} 45%", "does-not-fit", 0.45),
        ("WriteIOPSMin={} 5", "unknown", 0),
        ("ReadBandwidthMin=/nowhere 5M", "unknown", 0),
    ],
)
def test_verdict(
    systemd: Systemd, sutrod: Sutrod, plant: Plant, promise: str, verdict: str, share: float
) -> None:
    """Beside a floor of 60 MB/s that is held, on a volume that does 100 MB/s."""
    crowd(systemd, plant)
    sutrod.start()
    hold(sutrod)
    sutrod.elapse(SETTLES_S)
    before = sutrod.call("ListPromises")
    text = policy("big0.service", promise.format(STRIPE))
    found, devices = fits(sutrod, (NEW, text))
    assert found == verdict, devices
    floors = {f["unit"]: f for d in devices for f in d["floors"]}
    assert floors["db.service"]["rate_alone"] == pytest.approx(100 * MB, rel=0.01)
    assert floors["db.service"]["share"] == pytest.approx(0.6, rel=0.01)
    assert floors["big0.service"]["share"] == pytest.approx(share, rel=0.02)
    assert floors["big0.service"]["source"] == f"{NEW}:4"
    volume = next(d for d in devices if d["device"] == "/dev/dm-0")
    assert volume["needed"] == pytest.approx(0.6 + share, rel=0.02)
    assert ("need 105 % of /dev/sd" in volume["reason"]) == (verdict == "does-not-fit")
    assert sutrod.call("ListPromises") == before
    # The control loop agrees on floors that fit and floors that do not.
    plant.machine.write(NEW, text)
    sutrod.call("ReloadPolicies")
    sutrod.elapse(2 * SETTLES_S)
    states = [p["state"] for p in sutrod.call("ListPromises")]
    assert ("infeasible" in states) == (verdict == "does-not-fit")


def test_a_small_floor(systemd: Systemd, sutrod: Sutrod, plant: Plant) -> None:
    """It needs a part of a leaf, although that is less than the digits of the sentence."""
    crowd(systemd, plant)
    sutrod.start()
    hold(sutrod, floor="200K")
    verdict, devices = fits(sutrod)
    assert verdict == "fits" and 0 < devices[0]["needed"] < 0.01
    assert devices[0]["reason"].startswith("the floors need less than 1 % of /dev/sd")


def test_files_that_are_proposed(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    """They replace their predecessors, and count for units that do not run."""
    own, dropin = "/etc/systemd/system/db.service", "/etc/sutro/policy.d/50-new.policy.d/a.conf"
    machine.write(NEW, policy("web.service", "ReadBandwidthMin=/dev/sda 80%"))
    systemd.start("web.service")
    sutrod.start()
    half = "ReadBandwidthMin=/dev/sda 50%"
    root = str(machine.root)
    assert fits(sutrod)[0] == "fits"
    for file, text, verdict in (
        (f"{root}{NEW}", policy("db.service", half), "fits"),
        ("/tmp/60-other.policy", policy("db.service", half), "does-not-fit"),
        ("/tmp/60-other.policy", policy("db*.service", half), "fits"),
        (own, f"[X-Sutro]\n{half}\n", "does-not-fit"),
        (f"{own}.d/x.conf", f"[X-Sutro]\n{half}\n", "does-not-fit"),
        (dropin, "[X-Sutro]\nReadBandwidthMin=\n", "fits"),
        (dropin, "[Match]\nUnit=db.service\n", "does-not-fit"),
        ("/tmp/policy.control/db.service.policy", policy("db.service", half), "does-not-fit"),
        ("/tmp/60-x.policy", policy("db.service", "LatencyTarget=/dev/sda 1ms"), "fits"),
        ("/tmp/60-x.policy", policy("db.service", "ReadBandwidthMin=any 50%"), "unknown"),
    ):
        assert fits(sutrod, (file, text))[0] == verdict, (file, text)
    for file, text, message in (
        ("/a.policy", policy("a.service", half, "Weight=x"), '/a.policy:5: "[X-Sutro] Weight=x": '),
        ("/tmp/a.txt", "[X-Sutro]\n", '"/tmp/a.txt": a file NAME.policy, a drop-in of one'),
        ("a.policy", "", '"a.policy" is no absolute path.'),
        ("/a.policy", 1024**2 * "#" + "#", '"too large": at most 1 MiB'),
    ):
        name, sentence = sutrod.error("CheckPolicies", dbus.Array([(file, text)], signature="(ss)"))
        assert name == "BadPolicy" and message in sentence
    sutrod.bus.allow(False)
    assert "AccessDenied" in sutrod.error("CheckPolicies", dbus.Array([("/a.policy", "")]))[0]


def test_files_in_force(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    """Those that are not proposed count as they are in force, and are not read again."""
    dropin, own = f"{NEW}.d/a.conf", "/etc/systemd/system/db.service"
    half, other = "ReadBandwidthMin=/dev/sda 50%\n", "/etc/sutro/policy.d/60-other.policy"
    proposed = (f"{machine.root}{other}", policy("x.service", half))
    control = "/run/sutro/policy.control/web.service.policy"
    files = {NEW: policy("web.service"), dropin: f"[X-Sutro]\n{half}"}
    files |= {own: f"[X-Sutro]\n{half}", control: policy("web.service", "ReadIOPSMin=/dev/sda 10%")}
    for file, text in files.items():
        machine.write(file, text)
    systemd.start("web.service")
    systemd.start("db.service", fragment=own)
    sutrod.start()
    before = fits(sutrod)
    assert before[0] == "does-not-fit" and len(before[1][0]["floors"]) == 3
    for text in ("[X-Sutro]\nReadBandwidthMin=/dev/sda 50Q\n", "nonsense", ""):
        for file in files:
            machine.write(file, text)
        assert fits(sutrod) == before
        assert len(fits(sutrod, proposed)[1][0]["floors"]) == 4
    for file in files:
        machine.at(file).unlink()
    assert fits(sutrod) == before
    # After a mistake the last good version is in force.
    for file in (NEW, own):
        machine.write(file, "[X-Sutro\n[X-Sutro]\nClass=x\n")
    sutrod.call("ReloadPolicies")
    sutrod.settle()
    floors = fits(sutrod)[1][0]["floors"]
    assert [floor["unit"] for floor in floors] == ["db.service"]


@pytest.mark.parametrize(
    ("file", "text", "counts"),
    [
        (NEW, policy("x.service", "ReadBandwidthMin=/dev/sda 60%"), True),
        (NEW, policy("x*.service", "ReadBandwidthMin=/dev/sda 60%"), False),
        (NEW, policy("x.service\nUnit=\nUnit=y*.service", "ReadBandwidthMin=/dev/sda 60%"), False),
        (
            "/run/sutro/policy.control/x.service.policy",
            policy("x.service", "ReadBandwidthMin=/dev/sda 60%"),
            True,
        ),
    ],
)
def test_files_in_force_about_units_that_do_not_run(
    machine: Machine, systemd: Systemd, sutrod: Sutrod, file: str, text: str, counts: bool
) -> None:
    machine.write(file, text)
    systemd.start("web.service")
    sutrod.start()
    assert fits(sutrod)[0] == "fits"
    web = ("/etc/sutro/policy.d/70-web.policy", policy("web.service", "ReadIOPSMin=/dev/sda 60%"))
    assert fits(sutrod, web)[0] == ("does-not-fit" if counts else "fits")


@pytest.mark.parametrize("admission", ["warn", "refuse"])
def test_declared_capacity(
    machine: Machine, systemd: Systemd, sutrod: Sutrod, admission: str
) -> None:
    """The sum of a key, with settings that one at run time hides; SetPolicy refuses the same."""
    capacity = f"[Capacity]\nDevice=/dev/sda read=30M write=50M\nAdmission={admission}\n"
    machine.write("/etc/sutro/sutrod.conf", capacity)
    machine.write(NEW, policy("db.service", "ReadBandwidthMin=/dev/sda 20M"))
    for unit in ("db.service", "web.service"):
        systemd.start(unit)
    sutrod.start()
    lowered = dbus.Array([("ReadBandwidthMin", "/dev/sda 1M")], signature="(ss)")
    sutrod.call("SetPolicy", "db.service", lowered, "runtime")
    sutrod.settle()
    for unit in ("web.service", "x.service"):
        for floor, is_refused in (("10M", False), ("11M", True), ("34%", True)):
            key, value = "ReadBandwidthMin", f"/dev/sda {floor}"
            verdict, devices = fits(sutrod, ("/a.policy", policy(unit, f"{key}={value}")))
            (disk,) = devices
            assert (verdict == "does-not-fit") == is_refused, disk
            expected = "ReadBandwidthMin: /dev/sda can promise 30M, and 3"
            assert str(disk["reason"]).startswith(expected) == is_refused
            if is_refused and admission == "refuse":
                pairs = dbus.Array([(key, value)], signature="(ss)")
                assert sutrod.error("SetPolicy", unit, pairs, "runtime")[0] == "Overcommitted"
