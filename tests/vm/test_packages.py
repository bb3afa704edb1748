# SPDX-License-Identifier: LGPL-2.1-or-later
"""The packages on a stock Debian: their files and effects."""

import re
from pathlib import Path

import pytest
from rig.dkms import built, kernel
from rig.shell import run

pytestmark = pytest.mark.first

COMPAT = Path(__file__).resolve().parents[2] / "kernel/compat"


def test_stock_kernel() -> None:
    """The kernel is the distribution's, untouched."""
    series = re.match(r"(\d+\.\d+)\.\d+\+deb13-amd64$", kernel())
    assert series and (COMPAT / series[1]).is_dir()
    places = (f"/usr/lib/modules/{kernel()}/vmlinuz", f"/boot/vmlinuz-{kernel()}")
    owner = run("dpkg", "--search", next(place for place in places if Path(place).is_file()))
    assert re.match(rf"linux-(image|binary)-{re.escape(kernel())}", owner)


def test_dkms() -> None:
    """DKMS built the module for the running kernel from the package."""
    assert built()


def test_modinfo() -> None:
    """modinfo finds it, and it is ours."""
    info = run("modinfo", "sutro")
    assert "updates/dkms/sutro.ko" in info
    assert re.search(r"^license:\s+GPL", info, re.M)
    assert re.search(r"^alias:\s+sutro-iosched", info, re.M)
    assert f"vermagic:       {kernel()} " in info


def test_what_the_daemon_package_brings() -> None:
    """A unit, a bus policy, a D-Bus service, a polkit action, manual pages."""
    listed = run("dpkg", "--listfiles", "sutro").split()
    for wanted in (
        "sutrod.service", "org.sutro1.conf", "org.sutro1.policy", "bin/sutroctl", "sutrod.conf",
        "/usr/lib/sutro/policy.d", "/etc/sutro/policy.d", "/etc/sutro/policy.control",
        "bin/sutro-window", "bin/sutro-latency-guard",
        "sutro-window@.service", "sutro-latency-guard@.service",
        "man1/sutro-window.1.gz", "man1/sutro-latency-guard.1.gz", "man1/sutroctl.1.gz",
        "man5/sutrod.conf.5.gz", "man8/sutrod.8.gz",
    ):  # fmt: skip
        assert any(path.endswith(wanted) for path in listed), wanted
    assert "ActiveState" in run("systemctl", "show", "sutrod.service")


def test_packages_are_consistent() -> None:
    """No file of the packages was changed or lost; the image leaves documentation out."""
    for package in ("sutro", "sutro-dkms"):
        lines = run("dpkg", "--verify", package).splitlines()
        assert [line for line in lines if not re.search(r" /usr/share/(doc|man)/", line)] == []
