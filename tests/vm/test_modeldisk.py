# SPDX-License-Identifier: LGPL-2.1-or-later
"""The judge is judged first: tests/modeldisk/selftest/, a test for each of its checks."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "modeldisk"))
import selftest  # noqa: E402
from selftest.bench import quiet_udev  # noqa: E402


@pytest.fixture(scope="module", autouse=True)
def quiet() -> Iterator[None]:
    """No udev rule looks into the disks while their time is taken."""
    with quiet_udev():
        yield


@pytest.mark.parametrize("check", selftest.CHECKS, ids=lambda check: check.__name__)
def test_check(check: Callable[[], str]) -> None:
    """One check; what it found goes into the report."""
    print(check())
