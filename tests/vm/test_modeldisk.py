# SPDX-License-Identifier: LGPL-2.1-or-later
"""The judge is judged first: tests/modeldisk/selftest.py, a test for each of its checks."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

FILE = Path(__file__).parents[1] / "modeldisk" / "selftest.py"
SPEC = importlib.util.spec_from_file_location("selftest", FILE)
assert SPEC and SPEC.loader
selftest = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(selftest)


@pytest.fixture(scope="module", autouse=True)
def quiet() -> Iterator[None]:
    """No udev rule looks into the disks while their time is taken."""
    with selftest.quiet_udev():
        yield


@pytest.mark.parametrize("check", selftest.CHECKS, ids=lambda check: check.__name__)
def test_check(check: Callable[[], str]) -> None:
    """One check; what it found goes into the report."""
    print(check())
