# SPDX-License-Identifier: LGPL-2.1-or-later
"""Refusals of both scripts that take the source of a kernel, and their messages.

test_dkms.py states the reason for a source package that is missing.
"""

from pathlib import Path

import pytest
from kernels import KERNEL, SERIES, SKIPPED, TREES, taken

SCRIPTS = {
    "block-headers": (KERNEL / "compat/block-headers.sh", "supports"),
    "driver-source": (KERNEL / "stacking/driver-source.sh", "has patches for"),
}


def test_a_kernel_is_installed() -> None:
    """The tests of this folder have a kernel to run for."""
    assert TREES


@pytest.mark.parametrize("name", SCRIPTS)
def test_unsupported_kernel_is_named_with_the_supported_ones(
    build_tree: Path, tmp_path: Path, name: str
) -> None:
    script, verb = SCRIPTS[name]
    done = taken(script, "6.99.1-amd64", tmp_path / "out", build_tree)
    assert done.returncode == SKIPPED
    assert done.stderr == (
        f"{name}: kernel 6.99.1-amd64 is not supported: "
        f"this version of Sutro {verb} Linux {' '.join(SERIES)}\n"
    )


@pytest.mark.parametrize("name", SCRIPTS)
def test_missing_kernel_headers_are_named(version: str, tmp_path: Path, name: str) -> None:
    done = taken(SCRIPTS[name][0], version, tmp_path / "out", tmp_path / "nowhere")
    assert done.returncode == SKIPPED
    assert f"install the package linux-headers-{version}" in done.stderr


@pytest.mark.parametrize("name", SCRIPTS)
def test_nonsense_version_is_named(build_tree: Path, tmp_path: Path, name: str) -> None:
    done = taken(SCRIPTS[name][0], "newest", tmp_path / "out", build_tree)
    assert done.returncode == 1
    assert "'newest' is not a kernel version" in done.stderr
