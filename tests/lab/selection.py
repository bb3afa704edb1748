# SPDX-License-Identifier: LGPL-2.1-or-later
"""The tests that a user selects for a guest stage: a path in the clone becomes one in the guest."""

from pathlib import Path

from .progress import LabError

# Where a guest has the clone.
GUEST_SOURCE = Path("/mnt/src")
# Options of pytest whose value, the next word, is an expression and no path.
EXPRESSIONS = ("-k", "-m")


def in_guest(source: Path, words: list[str]) -> list[str]:
    """The words for pytest in a guest; source is the clone.

    A path may be relative to the clone, or absolute on the host or in the guest; `::TEST` may
    follow it. Options stay as they are, with a value behind `=`, too.
    """
    return [
        _path_in_guest(source, word) if _is_path(word) and before not in EXPRESSIONS else word
        for before, word in zip(["", *words], words, strict=False)
    ]


def _is_path(word: str) -> bool:
    """A path has a slash or ends in `.py`: the clone has folders named as an option's value."""
    path = word.partition("::")[0]
    return not word.startswith("-") and ("/" in path or path.endswith(".py"))


def _path_in_guest(source: Path, word: str) -> str:
    name, separator, test = word.partition("::")
    path = source / name
    for root in (source, GUEST_SOURCE):
        if path.is_relative_to(root) and (source / path.relative_to(root)).exists():
            return f"{GUEST_SOURCE / path.relative_to(root)}{separator}{test}"
    raise LabError(f"{name}: no such file in {source}; paths after -- are relative to it")
