# SPDX-License-Identifier: LGPL-2.1-or-later
"""Fixtures: the build tree of an installed kernel, one of each supported series."""

from pathlib import Path

import pytest
from kernels import TREES, version_of


@pytest.fixture(scope="session", params=TREES, ids=version_of)
def build_tree(request: pytest.FixtureRequest) -> Path:
    """The build tree of an installed kernel."""
    return request.param


@pytest.fixture(scope="session")
def version(build_tree: Path) -> str:
    return version_of(build_tree)


def pytest_configure(config: pytest.Config) -> None:
    """The mark of tests that build a module by DKMS, or unpack a whole linux-source."""
    config.addinivalue_line("markers", "long: runs in the stage long of ./lab test")
