# SPDX-License-Identifier: LGPL-2.1-or-later
"""Files of the machine: sysfs, cgroups, /run. Tests have a machine of their own below a folder."""

from pathlib import Path

ROOT = Path("/")


def at(path: str) -> Path:
    """A path of the machine."""
    return ROOT / path.lstrip("/")


def text(path: str) -> str | None:
    """The text of a file without blanks at its ends; None where it cannot be read."""
    try:
        return at(path).read_text(errors="replace").strip()
    except OSError:
        return None


def write(path: str, value: str) -> None:
    """Write a setting of the kernel."""
    at(path).write_text(value)
