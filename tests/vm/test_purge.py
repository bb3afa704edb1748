# SPDX-License-Identifier: LGPL-2.1-or-later
"""The packages go without a trace, and come back.

Runs last (conftest.py): for a while there is nothing else to test.
"""

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from rig.dkms import built, kernel
from rig.modeldisk import ModelDisk
from rig.shell import CommandError, run

BUILD = Path("/mnt/build")
PLACES = ("/etc", "/usr", "/var/lib", "/lib/modules", "/run", "/var/cache")
# Shared logs and indexes of the system are not ours.
NOT_OURS = re.compile(r"/var/lib/(dpkg|apt)/|/usr/share/doc/sutro|/run/log/|/var/lib/systemd/")


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


def schedulers() -> dict[str, tuple[str, str, str]]:
    """The active scheduler of each disk, its largest request and its request slots."""
    return {
        path.parts[3]: (
            active[1],
            path.with_name("max_sectors_kb").read_text(),
            path.with_name("nr_requests").read_text(),
        )
        for path in Path("/sys/block").glob("*/queue/scheduler")
        if (active := re.search(r"\[([\w-]+)\]", path.read_text()))
    }


@pytest.mark.first
def test_purge_leaves_nothing(disk: Callable[..., ModelDisk]) -> None:
    """No file, module or setting stays, although a disk uses the elevator and a policy is set."""
    one = disk("ssd", "ssd0")
    before = schedulers()
    run("systemctl", "start", "sutrod.service")
    run("sutroctl", "use", one.node)
    run("sutroctl", "policy", "set", "init.scope", "Class=be")
    assert Path("/etc/sutro/policy.control/init.scope.policy").exists()
    assert schedulers()["ssd0"] == ("sutro", "128\n", "256\n") != before["ssd0"]

    purge()
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


def test_installing_again_works() -> None:
    """After a purge, DKMS builds the module once more and the daemon starts."""
    purge()
    packages = [next(BUILD.glob(f"{name}_*.deb")) for name in ("sutro-dkms", "sutro")]
    run("dpkg", "--install", *packages, timeout_s=3600)
    assert built()
    run("modprobe", "sutro")
    run("systemctl", "start", "sutrod.service")
    assert "ActiveState=active" in run("systemctl", "show", "--property=ActiveState", "sutrod")
    run("systemctl", "stop", "sutrod.service")


def purge() -> None:
    """Remove the packages and their configuration."""
    run("dpkg", "--purge", "sutro", "sutro-dkms", timeout_s=600)
