# SPDX-License-Identifier: LGPL-2.1-or-later
"""The reason why DKMS skipped a kernel, in logs like those of DKMS 3.2.2."""

import pytest
from rig.dkms import skip_reason

VERSION = "6.12.118+deb13-amd64"
FIRST = f"DKMS (dkms-3.2.2) make.log for sutro/0.1.0 for kernel {VERSION} (x86_64)\n"
PROVED = (
    f"block-headers: .block-headers: block/*.h of linux-source-6.12.tar.xz for kernel {VERSION}, "
    "15 structures and 41 functions equal to those in vmlinux\n"
)
UNCOMPILED = (
    f"this version of Sutro does not compile for kernel {VERSION}: install a later one, or report "
    "the errors above"
)
MISSING = (
    f"no block/*.h for kernel {VERSION} in /usr/src; install the package linux-source-6.12, then "
    f"run: dkms autoinstall --kernelver {VERSION}"
)


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (f"{PROVED}sutro-share.c:1:2: error: #error\npre-build: {UNCOMPILED}\n\n", UNCOMPILED),
        (f"block-headers: {MISSING}\n", MISSING),
        (f"driver-source: {MISSING}\n", MISSING),
    ],
)
def test_reason(lines: str, reason: str) -> None:
    assert skip_reason(FIRST + lines, VERSION) == reason


@pytest.mark.parametrize(
    "log", [FIRST + "make: *** Error 2\n", FIRST.replace(VERSION, "6.1.0") + PROVED]
)
def test_log_without_a_reason(log: str) -> None:
    """Another failure than a skip, and the log of another kernel, fail the test that reads it."""
    with pytest.raises(AssertionError):
        skip_reason(log, VERSION)
