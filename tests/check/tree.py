# SPDX-License-Identifier: LGPL-2.1-or-later
"""The source files of this tree, and tools that are run on them."""

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]


@cache
def files() -> list[str]:
    """Every source file of the tree, relative to it."""
    found = []
    for path in sorted(TOP.rglob("*")):
        name = path.relative_to(TOP)
        hidden = [part for part in name.parts[:-1] if part.startswith(".") and part != ".ci"]
        if hidden or "__pycache__" in name.parts or name.parts[0].startswith(("build", "obj-")):
            continue
        if path.is_file() and not ignored(str(name)):
            found.append(str(name))
    return found


def ignored(name: str) -> bool:
    """Is this a product that a build in the tree leaves behind?"""
    return bool(
        re.search(r"\.(o|ko|mod|mod\.c|symvers|order|cmd|pyc|debhelper|substvars|log)$", name)
        or re.match(
            r"debian/(\.debhelper|build|tmp|[a-z-]*sutro[a-z-]*)/",
            name,
        )
        or name in ("debian/files", "debian/debhelper-build-stamp")
    )


@cache
def shebang(name: str) -> str:
    """The first line of a file if it names an interpreter, or the shell for shellcheck."""
    with open(TOP / name, "rb") as file:
        line = file.readline(100)
    first = line.decode(errors="replace").strip()
    return first if first.startswith(("#!", "# shellcheck shell=")) else ""


def having(*suffixes: str, below: tuple[str, ...] = ("",), interpreter: str = "") -> list[str]:
    """The files below some folders with one of these suffixes, or this interpreter."""
    return [
        name
        for name in files()
        if name.startswith(below)
        and (name.endswith(suffixes) or bool(interpreter and re.search(interpreter, shebang(name))))
    ]


def passes(*command: str | Path) -> str:
    """Run a tool on the tree and return its output, which is the reason if the tool fails."""
    done = subprocess.run(
        command, cwd=TOP, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL, text=True, errors="replace", timeout=600,
    )  # fmt: skip
    if done.returncode:
        reason = f"{command[0]} ended with status {done.returncode}\n{done.stdout}"
        pytest.fail(reason, pytrace=False)
    return done.stdout
