# SPDX-License-Identifier: LGPL-2.1-or-later
"""Modules that DKMS made of the packages, for the kernel that runs."""

import os
import re
from pathlib import Path

from rig.shell import run


def kernel() -> str:
    """Version of the running kernel."""
    return os.uname().release


def built() -> bool:
    """Has DKMS built and installed the elevator for the running kernel?"""
    status = run("dkms", "status", "sutro")
    line = rf"^sutro/[0-9.]+, {re.escape(kernel())}, x86_64: installed"
    return bool(re.search(line, status, re.MULTILINE))


def skip_reason(log: str, version: str) -> str:
    """The last line of the script for which DKMS skipped a kernel, of its make.log."""
    assert f"for kernel {version} " in log.splitlines()[0], log
    lines = re.findall(r"^(?:block-headers|driver-source|pre-build): (.*)", log, re.MULTILINE)
    assert lines, log
    return lines[-1]


def out_of_tree(module: str) -> bool:
    """Was the loaded module built outside of the kernel?"""
    return "O" in Path("/sys/module", module.replace("-", "_"), "taint").read_text()
