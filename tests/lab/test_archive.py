# SPDX-License-Identifier: LGPL-2.1-or-later
"""Kernels of backports: which packages count as one, and the message about one that is gone."""

import random

from lab.archive import newest_kernels
from lab.roots import absent


def packages(version: str) -> list[str]:
    series = ".".join(version.split(".")[:2])
    return [f"linux-{kind}-{version}-amd64" for kind in ("image", "headers")] + [
        f"linux-source-{series}"
    ]


def test_the_newest_of_each_series_counts() -> None:
    names = [
        name
        for version in ("7.2.9+deb13", "7.2.12+deb13", "7.10.1+deb13")
        for name in packages(version)
    ]
    random.Random(1).shuffle(names)
    assert newest_kernels(names) == {"7.2": "7.2.12+deb13-amd64", "7.10": "7.10.1+deb13-amd64"}


def test_a_kernel_without_headers_or_source_is_none() -> None:
    image, headers, source = packages("7.3.4+deb13")
    assert newest_kernels([image, headers]) == {}
    assert newest_kernels([image, source]) == {}
    assert newest_kernels([f"{image}-dbg", headers, source]) == {}


def test_a_series_that_is_gone_is_one_line_with_what_there_is() -> None:
    line = absent("7.2", {"7.3": "7.3.4+deb13-amd64"})
    assert line == "trixie-backports has no Linux 7.2 today; it has 7.3.4+deb13-amd64"
    assert "no kernel" in absent("7.2", {})
