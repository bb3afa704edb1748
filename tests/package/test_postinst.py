# SPDX-License-Identifier: LGPL-2.1-or-later
"""Modules of DKMS are on the disk before an initramfs takes them, and disks get a new module."""

import os
import subprocess
from pathlib import Path

import pytest
from kernels import KERNEL

DEBIAN = KERNEL.parent / "debian"
SYNC = "sync --file-system /lib/modules /var/lib/dkms"
INITRAMFS = "update-initramfs -u -k all"


def calls(tmp_path: Path, package: str, action: str, *, active: bool = True) -> list[str]:
    """The commands of a postinst in a system that systemd has booted; active: with the daemon."""
    tools, log, root = tmp_path / "bin", tmp_path / "log", tmp_path / "root"
    (root / "run/systemd/system").mkdir(parents=True)
    tools.mkdir()
    log.touch()
    for name in ("sync", "systemctl", "update-initramfs"):
        test = f'case "$*" in *is-active*) exit {int(not active)};; esac; '
        (tools / name).write_text(f'#!/bin/sh\n{test}echo "{name} $*" >>{log}\n')
        (tools / name).chmod(0o755)
    env = {**os.environ, "PATH": f"{tools}:/usr/bin:/bin", "DPKG_ROOT": str(root)}
    script = DEBIAN / f"{package}.postinst"
    subprocess.run(["/bin/sh", script, action, ""], env=env, check=True)
    return log.read_text().splitlines()


@pytest.mark.parametrize(
    ("package", "after"),
    [("sutro-dkms", "systemctl reload sutrod.service"), ("sutro-stacking-dkms", INITRAMFS)],
)
def test_modules_are_synced_first(tmp_path: Path, package: str, after: str) -> None:
    assert calls(tmp_path, package, "configure") == [SYNC, after]


def test_no_daemon_no_reload(tmp_path: Path) -> None:
    """A daemon that starts later finds the module."""
    assert calls(tmp_path, "sutro-dkms", "configure", active=False) == [SYNC]


@pytest.mark.parametrize("package", ["sutro-dkms", "sutro-stacking-dkms"])
def test_nothing_else_is_configured(tmp_path: Path, package: str) -> None:
    assert calls(tmp_path, package, "abort-upgrade") == []
