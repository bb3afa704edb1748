# SPDX-License-Identifier: LGPL-2.1-or-later
"""Files that other programs may read at any time."""

import os
from pathlib import Path

from .errors import SutroError


def replace(file: str | Path, text: bytes) -> None:
    """Replace a file as a whole, or create it, with mode 0644; SutroError if that fails."""
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
