# SPDX-License-Identifier: GPL-2.0-only
"""The first tier of ./lab test runs a sample of the simulation; the stage `long` runs the rest.

The rest has the mark `long`: tests that take more than three seconds, disks that complete many
requests, further seeds, and two of three pairs of test_protect.py.
"""

from fnmatch import fnmatchcase

import pytest

LONG = {
    "test_budget": ("*-32", "*-64"),
    "test_fairness": ("1", "11", "17", "22"),
    # Not all seeds.
    "test_neighbours": ("disk*-[3-9]", "nvme-*-[2-9]"),
    "test_prior": ("nvme-*",),
    "test_protect": ("ssd-fast-*", "nvme-*"),
    "test_scenes": (
        "fsync-ssd-pauses-deep*", "nvme-16-groups", "nvme-16-mixed-[2-8]", "nvme-4k-beside-4k",
        "nvme-random-4k*", "nvme-thinker", "ssd-256-groups", "ssd-children-200*",
        "ssd-random-4k-*", "ssd-three-levels",
    ),
    "test_sporadic": ("nvme-*",),
    "test_volume": ("nvme-*",),
}  # fmt: skip
# Of the other pairs of test_protect.py, one in this many is in the first tier.
EACH = 3


def pytest_configure(config: pytest.Config) -> None:
    """The mark, which meson.build selects."""
    config.addinivalue_line("markers", "long: runs in the stage long of ./lab test")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark those of LONG, and pairs that are not in the sample."""
    others = 0
    for item in items:
        module = item.path.stem
        parameters = item.name.partition("[")[2].removesuffix("]")
        is_long = any(fnmatchcase(parameters, pattern) for pattern in LONG.get(module, ()))
        if module == "test_protect" and not is_long:
            others += 1
            is_long = others % EACH != 0
        if is_long:
            item.add_marker(pytest.mark.long)
