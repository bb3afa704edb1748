# SPDX-License-Identifier: LGPL-2.1-or-later
"""Removal of the packages gives disks and cgroups of the machine back, but not from a chroot."""

import subprocess
from pathlib import Path

import pytest
from kernels import KERNEL

DEBIAN = KERNEL.parent / "debian"
RESTORE, UNLOAD = "sutrod --restore --release", "modprobe -r sutro"


def calls(tmp_path: Path, package: str, action: str, *, chroot: bool) -> list[str]:
    """The commands of a prerm on a machine whose kernel has the module, without systemd."""
    log, module = tmp_path / "log", tmp_path / "sys/module/sutro"
    module.mkdir(parents=True)
    log.touch()
    tools = {name: f'echo "{name} $*" >>{log}' for name in ("modprobe", "sutrod", "systemctl")}
    for name, command in (tools | {"ischroot": f"exit {int(not chroot)}"}).items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{command}\n")
        (tmp_path / name).chmod(0o755)
    script = (DEBIAN / f"{package}.prerm").read_text()
    for folder in ("/sys/module/sutro", "/run/systemd/system"):
        script = script.replace(folder, f"{tmp_path}{folder}")
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    subprocess.run(["/bin/sh", "-ec", script, "sh", action], env=env, check=True)
    return log.read_text().splitlines()


@pytest.mark.parametrize(
    ("package", "expected"), [("sutro", [RESTORE]), ("sutro-dkms", [RESTORE, UNLOAD])]
)
def test_removal(tmp_path: Path, package: str, expected: list[str]) -> None:
    assert calls(tmp_path, package, "remove", chroot=False) == expected


@pytest.mark.parametrize("package", ["sutro", "sutro-dkms"])
def test_removal_in_a_chroot(tmp_path: Path, package: str) -> None:
    """/sys there is that of the host: its weights are in force, and its module in use."""
    assert calls(tmp_path, package, "remove", chroot=True) == []


@pytest.mark.parametrize("package", ["sutro", "sutro-dkms"])
def test_upgrade(tmp_path: Path, package: str) -> None:
    assert calls(tmp_path, package, "upgrade", chroot=False) == []
