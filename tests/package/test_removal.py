# SPDX-License-Identifier: LGPL-2.1-or-later
"""The packages on a running system: what they put there, and that removing them takes it away.

For the guest of the lab, as root, as the last test of a boot: it purges both packages, and the
image is thrown away afterwards.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

KERNEL = os.uname().release
MODULES = Path("/lib/modules") / KERNEL
# Shares of the lab, views of the kernel, and the logs of what dpkg did.
NOT_OURS = ("/proc", "/sys", "/dev", "/mnt", "/tmp", "/var/log", "/run/log", "/var/tmp")
# What dpkg and systemd remember of units and packages that are gone.
MEMORIES = ("/var/lib/dpkg/", "/var/lib/systemd/deb-systemd-helper", "/var/cache/")


def output(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    return done.stdout


def status(*command: str) -> int:
    return subprocess.run(command, capture_output=True, timeout=300).returncode


def named_sutro() -> Iterator[str]:
    """Every path of the system that has our name in it."""
    for folder, folders, files in os.walk("/"):
        folders[:] = [f for f in folders if not f"{folder.rstrip('/')}/{f}".startswith(NOT_OURS)]
        for name in (*folders, *files):
            path = f"{folder.rstrip('/')}/{name}"
            if "sutro" in name and not path.startswith(MEMORIES):
                yield path


def test_module_is_built_by_dkms_for_the_running_kernel() -> None:
    assert f"{KERNEL}, x86_64: installed" in output("dkms", "status", "sutro")
    path = output("modinfo", "--field", "filename", "sutro").strip()
    assert path == f"{MODULES}/updates/dkms/sutro.ko.xz"
    assert output("modinfo", "--field", "alias", "sutro").split() == ["sutro-iosched"]
    assert output("modinfo", "--field", "vermagic", "sutro").split()[0] == KERNEL
    assert output("modinfo", "--field", "parm", "sutro") == ""


def test_daemon_is_enabled_and_runs() -> None:
    assert status("systemctl", "is-enabled", "sutrod.service") == 0
    assert status("systemctl", "is-active", "sutrod.service") == 0


def test_configuration_is_a_conffile() -> None:
    conffiles = output("dpkg-query", "--show", "--showformat=${Conffiles}", "sutro").split()
    assert "/etc/sutro/sutrod.conf" in conffiles


def test_purge_leaves_nothing_behind() -> None:
    output("modprobe", "sutro")
    output("dpkg", "--purge", "sutro", "sutro-dkms")
    assert list(named_sutro()) == []
    assert status("systemctl", "is-active", "sutrod.service") != 0
    assert not Path("/sys/module/sutro").exists()
    assert not list(Path("/sys/fs/cgroup").glob("*/io.sutro.*"))
    for table in MODULES.glob("modules.*"):
        assert b"sutro" not in table.read_bytes(), table
    assert output("dkms", "status") == ""
