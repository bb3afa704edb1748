# SPDX-License-Identifier: LGPL-2.1-or-later
"""sutro-stacking-dkms is not installed where the kernel would refuse the dm-mod that it builds."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from kernels import KERNEL

PREINST = KERNEL.parent / "debian/sutro-stacking-dkms.preinst"
SECURE_BOOT = "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
LOCKDOWN = "sys/kernel/security/lockdown"
SIG_ENFORCE = "sys/module/module/parameters/sig_enforce"
MOK = "/var/lib/dkms/mok.pub"
ON, OFF = b"\x06\0\0\0\x01", b"\x06\0\0\0\0"
LOCKED, OPEN = b"none [integrity] confidentiality\n", b"[none] integrity confidentiality\n"


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A PATH with the tools of the script, and no mokutil."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("sh", "cat", "grep", "od", "sed", "tail", "tr"):
        (folder / name).symlink_to(shutil.which(name))
    return folder


def enroll(tools: Path, key: str) -> None:
    """A mokutil of a firmware with this key."""
    known = f'[ "$2" = {key} ] && echo "$2 is already enrolled" && exit 1'
    (tools / "mokutil").write_text(f'#!/bin/sh\n{known}\necho "$2 is not enrolled"\n')
    (tools / "mokutil").chmod(0o755)


def install(
    tmp_path: Path, tools: Path, files: dict[str, bytes], action: str = "install"
) -> subprocess.CompletedProcess:
    """Run the script in a root with these files."""
    root = tmp_path / "root"
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    env = {**os.environ, "PATH": str(tools), "DPKG_ROOT": str(root)}
    return subprocess.run(
        ["/bin/sh", PREINST, action], env=env, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    "files",
    [
        {},
        {SECURE_BOOT: OFF},
        {SECURE_BOOT: OFF, SIG_ENFORCE: b"N\n"},
        # The owner has switched validation off in shim.
        {SECURE_BOOT: ON, LOCKDOWN: OPEN},
    ],
)
def test_installs_where_unsigned_modules_load(
    tmp_path: Path, tools: Path, files: dict[str, bytes]
) -> None:
    done = install(tmp_path, tools, files)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "files", [{SECURE_BOOT: ON}, {SECURE_BOOT: ON, LOCKDOWN: LOCKED}, {SIG_ENFORCE: b"Y\n"}]
)
@pytest.mark.parametrize("action", ["install", "upgrade"])
def test_signed_modules_need_the_key(
    tmp_path: Path, tools: Path, files: dict[str, bytes], action: str
) -> None:
    for key in (None, "/another"):
        if key:
            enroll(tools, key)
        done = install(tmp_path, tools, files, action)
        assert done.returncode == 1
        assert f"mokutil --import {MOK}" in done.stderr
    enroll(tools, MOK)
    done = install(tmp_path, tools, files, action)
    assert (done.returncode, done.stderr) == (0, "")


def test_key_of_the_configuration(tmp_path: Path, tools: Path) -> None:
    """DKMS may sign with another key than its own."""
    conf = {
        "etc/dkms/framework.conf": b'# mok_certificate="/x"\nmok_certificate="/etc/keys/db.der"\n'
    }
    enroll(tools, MOK)
    assert install(tmp_path, tools, {LOCKDOWN: LOCKED, **conf}).returncode == 1
    enroll(tools, "/etc/keys/db.der")
    assert install(tmp_path, tools, {LOCKDOWN: LOCKED, **conf}).returncode == 0
