# SPDX-License-Identifier: LGPL-2.1-or-later
"""Whole files that others may read at any time."""

import os
from pathlib import Path

from .errors import SutroError


def replace(file: str | Path, text: bytes) -> None:
    """Put a whole file in the place of another."""
    folder, name = os.path.split(os.path.abspath(file))
    # Without a suffix that readers of the folder look for.
    new = Path(folder, f".{name}.{os.getpid()}")
    try:
        new.write_bytes(text)
        new.chmod(0o644)
        new.rename(file)
    except OSError as error:
        new.unlink(missing_ok=True)
        raise SutroError(f"{file}: {error.strerror}") from None
