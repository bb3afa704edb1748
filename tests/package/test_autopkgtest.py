# SPDX-License-Identifier: LGPL-2.1-or-later
"""debian/tests: each test has a program, and needs packages that are there."""

import os
import re
from pathlib import Path

import pytest
from kernels import KERNEL

DEBIAN = KERNEL.parent / "debian"
LISTS = KERNEL.parent / "tests/lab/recipes"


def paragraphs(path: Path) -> list[dict[str, str]]:
    """The paragraphs of a control file."""
    text = re.sub(r"\n[ \t]+", " ", path.read_text())
    parts = [re.findall(r"^([\w-]+): *(.*)$", part, re.MULTILINE) for part in text.split("\n\n")]
    return [dict(part) for part in parts if part]


TESTS = paragraphs(DEBIAN / "tests/control")


def test_every_program_is_listed() -> None:
    listed = [name for one in TESTS for name in re.split(r"[ ,]+", one["Tests"])]
    assert sorted([*listed, "control"]) == sorted(os.listdir(DEBIAN / "tests"))


def test_library_has_the_files_of_meson() -> None:
    """The daemon test compiles the fake kernel files itself."""
    text = (KERNEL.parent / "tests/daemon/meson.build").read_text()
    body = text.partition("'kernelfiles',")[2].partition("dependencies:")[0]
    program = (DEBIAN / "tests/daemon").read_text()
    names = re.findall(r"'\.\./unit/(\S+)'", body)
    assert names and names == re.findall(r"tests/unit/(\S+\.c)", program)


@pytest.mark.parametrize("one", TESTS, ids=lambda one: one["Tests"])
def test_program(one: dict[str, str]) -> None:
    """It can be executed; its packages are ours, or those that the lab's own tests need."""
    assert os.access(DEBIAN / "tests" / one["Tests"], os.X_OK)
    ours = {p["Package"] for p in paragraphs(DEBIAN / "control") if "Package" in p}
    others = {line for path in LISTS.glob("*.packages") for line in path.read_text().split()}
    of_debian = {"gcc", "libc6-dev", "libglib2.0-dev", "linux-headers-generic"}
    wanted = set(re.split(r", *", one["Depends"]))
    assert wanted <= ours | others | of_debian
    if "sutro-dkms" in wanted:
        # A module is loaded into the kernel of the test bed.
        assert {"isolation-machine", "needs-root"} <= set(re.split(r", *", one["Restrictions"]))
