# SPDX-License-Identifier: LGPL-2.1-or-later
"""The kernels that the tests of this folder run for: those with headers below /usr/src.

A series is supported if kernel/compat/ has a folder for it; of each, the newest headers count. The
environment variable PACKAGE_SERIES limits them to one series.
"""

import os
import re
import subprocess
from pathlib import Path

KERNEL = Path(__file__).resolve().parents[2] / "kernel"
SOURCES = Path("/usr/src")
# The status of DKMS for a kernel that a module is not meant for.
SKIPPED = 77


def _numbers(name: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", name)]


def _newest(series: str) -> list[Path]:
    """The build tree of the newest installed headers of a series, if there are any."""
    trees = [path.parent for path in SOURCES.glob(f"linux-headers-{series}.*/vmlinux")]
    return sorted(trees, key=lambda tree: _numbers(tree.name))[-1:]


SERIES = sorted(path.name for path in (KERNEL / "compat").iterdir() if path.is_dir())
CHOSEN = [os.environ["PACKAGE_SERIES"]] if "PACKAGE_SERIES" in os.environ else SERIES
TREES = [tree for series in CHOSEN for tree in _newest(series)]


def version_of(tree: Path) -> str:
    """The version of the kernel that a build tree belongs to: 6.12.107+deb13-amd64."""
    return tree.name.removeprefix("linux-headers-")


def series_of(version: str) -> str:
    """6.12 of 6.12.107+deb13-amd64."""
    return ".".join(version.split(".")[:2])


def taken(
    script: Path, version: str, outdir: Path, tree: Path, sources: Path = SOURCES
) -> subprocess.CompletedProcess[str]:
    """Run a script that takes sources of a kernel for DKMS."""
    return subprocess.run(
        [script, version, outdir, tree],
        env=os.environ | {"SUTRO_SOURCES": str(sources)},
        capture_output=True,
        text=True,
        timeout=300,
    )


def own_tree(build_tree: Path, tree: Path) -> Path:
    """A build tree that belongs to a test: links to the entries of the installed one."""
    tree.mkdir(parents=True)
    for entry in build_tree.iterdir():
        (tree / entry.name).symlink_to(entry)
    # The Makefile of 7.2 names the tree.
    makefile = (tree / "Makefile").read_text()
    (tree / "Makefile").unlink()
    (tree / "Makefile").write_text(makefile.replace(str(build_tree), str(tree)))
    return tree


def unpack_drivers(series: str, tree: Path) -> None:
    """Unpack drivers/md, and the headers that its patches change, from linux-source."""
    headers = ("device-mapper.h", "dm-io.h", "dm-kcopyd.h")
    names = ["drivers/md", "Makefile", *(f"include/linux/{name}" for name in headers)]
    archive = SOURCES / f"linux-source-{series}.tar.xz"
    options = ["--strip-components=1", *(f"linux-source-{series}/{name}" for name in names)]
    subprocess.run(["tar", "-xaf", archive, "-C", tree, *options], check=True)
