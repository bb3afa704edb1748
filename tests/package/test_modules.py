# SPDX-License-Identifier: LGPL-2.1-or-later
"""The kernel modules pass checkpatch and compile without a warning, for each installed kernel.

checkpatch takes 2 ms for a line. With SUTRO_CHECKED, a folder, files that passed it are not checked
again: it has an empty file for each, named by the hash of checkpatch, of the name and the content.
"""

import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from kernels import KERNEL, SERIES, SOURCES, series_of, taken

TOP = KERNEL.parent
ROOMS = ("kernel", "tests/modeldisk")


def ran(*command: str | Path) -> subprocess.CompletedProcess[str]:
    """A command that has ended, with all its output."""
    return subprocess.run(
        command, cwd=TOP, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600
    )


def test_checkpatch(version: str, tmp_path: Path) -> None:
    """checkpatch --strict of that kernel."""
    source = f"linux-source-{series_of(version)}"
    names = ("checkpatch.pl", "spelling.txt", "const_structs.checkpatch")
    done = ran(
        *("tar", "-xaf", SOURCES / f"{source}.tar.xz", "-C", tmp_path, "--strip-components=2"),
        *("--occurrence=1", *(f"{source}/scripts/{name}" for name in names)),
    )
    assert done.returncode == 0, done.stdout
    found = [file for room in ROOMS for file in (TOP / room).rglob("*.[ch]")]
    files = sorted(file for file in found if not file.name.endswith(".mod.c"))
    assert files
    options = ("--no-tree", "--strict", "--terse", "--no-summary", "--show-types", "--file")
    rules = hashlib.sha256(" ".join(options).encode())
    for name in names:
        rules.update((tmp_path / name).read_bytes())

    def mark(file: Path) -> Path:
        of = rules.copy()
        of.update(str(file.relative_to(TOP)).encode() + b"\0" + file.read_bytes())
        return checked / of.hexdigest()

    checked = Path(os.environ.get("SUTRO_CHECKED", tmp_path / "checked"))
    checked.mkdir(exist_ok=True)
    rest = [file for file in files if not mark(file).exists()]
    if rest:
        done = ran("perl", tmp_path / "checkpatch.pl", *options, *rest)
        assert done.returncode == 0, done.stdout
    for file in files:
        mark(file).touch()


@pytest.mark.parametrize("room", ROOMS)
def test_compiles(room: str, version: str, build_tree: Path, tmp_path: Path) -> None:
    """The compiler with W=1, sparse and modpost report nothing about the module in a room."""
    copy = tmp_path / "module"
    shutil.copytree(TOP / room, copy, ignore=shutil.ignore_patterns("*.o", "*.ko", "*.cmd"))
    done = taken(KERNEL / "compat/block-headers.sh", version, copy / ".block-headers", build_tree)
    assert done.returncode == 0, done.stderr
    # The sparse of Debian 13 lacks __typeof_unqual__, which newer kernels use everywhere.
    sparse = "C=2" if series_of(version) == SERIES[0] else "C=0"
    # A variable of Debian's headers.
    ccache = f"DEBIAN_KERNEL_USE_CCACHE={'yes' if shutil.which('ccache') else ''}"
    done = ran("make", "-C", build_tree, f"M={copy}", ccache, sparse, "W=1", "modules")
    reports = [
        line.replace(f"{copy}/", f"{room}/")
        for line in done.stdout.splitlines()
        if re.search(r"\b(warning|error|WARNING|ERROR)\b", line)
    ]
    # sparse reads whole files of the kernel's own headers: only its reports about ours count.
    assert all(".block-headers/" in line for line in reports), done.stdout
    assert done.returncode == 0, done.stdout
