# SPDX-License-Identifier: LGPL-2.1-or-later
"""debian/tests/elevator, which needs a machine of its own: the test as autopkgtest runs it.

The stage `distributions` of ./lab test runs the other test of debian/tests/control.
"""

from __future__ import annotations

from pathlib import Path

from rig.shell import run, wait_for

SOURCE = Path(__file__).resolve().parents[2]


def test_elevator(tmp_path: Path) -> None:
    """The installed packages switch a disk, set a weight on it, and restore the scheduler."""
    program = SOURCE / "debian/tests/elevator"
    printed = run("env", f"AUTOPKGTEST_TMP={tmp_path}", program, timeout_s=600)
    assert "sutro-autopkgtest.service" in printed
    wait_for(lambda: not run("losetup", "--associated", tmp_path / "disk"), "no loop device")
