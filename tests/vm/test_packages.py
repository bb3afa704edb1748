# SPDX-License-Identifier: LGPL-2.1-or-later
"""The packages on a stock Debian: what they bring, that they go without a trace, and come back.

Runs last (conftest.py): for a while there is nothing else to test.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from rig.shell import CommandError, run

BUILD = Path("/mnt/build")
PLACES = ("/etc", "/usr", "/var/lib", "/lib/modules", "/run", "/var/cache")
# Shared logs and indexes of the system are not ours.
NOT_OURS = re.compile(r"/var/lib/(dpkg|apt)/|/usr/share/doc/sutro|/run/log/|/var/lib/systemd/")


def kernel() -> str:
    """Version of the running kernel."""
    return os.uname().release


def files_named_sutro() -> list[str]:
    """All files with our name in them."""
    found = []
    for place in PLACES:
        for folder, folders, files in os.walk(place):
            for name in folders + files:
                path = f"{folder}/{name}"
                if "sutro" in name and not NOT_OURS.search(path):
                    found.append(path)
    return found


def schedulers() -> dict[str, str]:
    """The active scheduler of each disk."""
    return {
        path.parts[3]: active[1]
        for path in Path("/sys/block").glob("*/queue/scheduler")
        if (active := re.search(r"\[([\w-]+)\]", path.read_text()))
    }


def test_stock_kernel() -> None:
    """The kernel is the distribution's, untouched."""
    assert re.fullmatch(r"(6\.12|7\.2)\.\d+\+deb13-amd64", kernel())
    places = (f"/boot/vmlinuz-{kernel()}", f"/usr/lib/modules/{kernel()}/vmlinuz")
    owner = run("dpkg", "--search", next(place for place in places if Path(place).is_file()))
    assert re.match(rf"linux-(image|binary)-{re.escape(kernel())}", owner)


def test_dkms() -> None:
    """DKMS built the module for the running kernel from the package."""
    status = run("dkms", "status", "sutro")
    assert re.search(rf"^sutro/[0-9.]+, {re.escape(kernel())}, x86_64: installed", status, re.M)


def test_modinfo() -> None:
    """modinfo finds it, and it is ours."""
    info = run("modinfo", "sutro")
    assert "updates/dkms/sutro.ko" in info
    assert re.search(r"^license:\s+GPL", info, re.M)
    assert re.search(r"^alias:\s+sutro-iosched", info, re.M)
    assert f"vermagic:       {kernel()} " in info


def test_what_the_daemon_package_brings() -> None:
    """A unit, a bus policy, a D-Bus service, a polkit action."""
    listed = run("dpkg", "--listfiles", "sutro").split()
    for wanted in (
        "sutrod.service", "org.sutro1.conf", "org.sutro1.policy", "bin/sutroctl", "sutrod.conf",
    ):  # fmt: skip
        assert any(path.endswith(wanted) for path in listed), wanted
    assert "ActiveState" in run("systemctl", "show", "sutrod.service")


def test_packages_are_consistent() -> None:
    """No file of the packages was changed or lost; the image leaves documentation out."""
    for package in ("sutro", "sutro-dkms"):
        lines = run("dpkg", "--verify", package).splitlines()
        assert [line for line in lines if not re.search(r" /usr/share/(doc|man)/", line)] == []


def test_purge_and_install_again() -> None:
    """Purging leaves nothing behind, disks in use included; installing again makes it all work."""
    before = schedulers()
    run("systemctl", "start", "sutrod.service")
    run("sutroctl", "use", "/")
    assert "sutro" in schedulers().values()

    run("dpkg", "--purge", "sutro", "sutro-dkms", timeout_s=300)
    assert schedulers() == before
    assert not Path("/sys/module/sutro").exists()
    assert files_named_sutro() == []
    for table in Path("/lib/modules", kernel()).glob("modules.*"):
        assert b"sutro" not in table.read_bytes(), table
    assert "sutro" not in run("dkms", "status")
    try:
        run("modinfo", "sutro")
    except CommandError as error:
        assert "not found" in str(error)
    else:
        raise AssertionError("modinfo still finds the module")
    packages = sorted(BUILD.glob("sutro*.deb"))
    assert [path.name.split("_")[0] for path in packages] == ["sutro-dkms", "sutro"]
    run("dpkg", "--install", *packages, timeout_s=600)
    test_dkms()
    run("modprobe", "sutro")
    run("systemctl", "start", "sutrod.service")
    assert "ActiveState=active" in run("systemctl", "show", "--property=ActiveState", "sutrod")
    run("systemctl", "stop", "sutrod.service")
