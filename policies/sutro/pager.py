# SPDX-License-Identifier: LGPL-2.1-or-later
"""Programs that have the terminal for a time: a pager, chosen as by systemctl(1), or an editor."""

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator

from .errors import SutroError

# Quit if the text fits the screen; keep colours and the text; no status line; no hyperlinks.
LESS = "FRSXMK"


def words(variable: str) -> list[str]:
    """The words of the command in a variable of the environment; SutroError for an open quote."""
    text = os.environ[variable]
    try:
        return shlex.split(text)
    except ValueError as error:
        raise SutroError(
            f"{variable}: {error}: {text}", f"correct {variable}, or unset it"
        ) from None


@contextlib.contextmanager
def without_ctrl_c() -> Iterator[list[int]]:
    """Within this context, Ctrl-C is for the program that has the terminal, and has no effect here.

    The list has an entry for each. A handler fills it: the program would inherit SIG_IGN.
    """
    received: list[int] = []
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, lambda number, _: received.append(number))
    try:
        yield received
    finally:
        signal.signal(signal.SIGINT, before)


def _command() -> list[str]:
    """The pager of the environment, else less."""
    for variable in ("SYSTEMD_PAGER", "PAGER"):
        if variable in os.environ:
            return words(variable)
    return ["less"]


def page(text: str, paged: bool = True) -> None:
    """Write a text to stdout: through a pager on a terminal, unless `paged` is false.

    Ctrl-C that ends the pager counts here, too.
    """
    command = _command() if paged and sys.stdout.isatty() else []
    program = shutil.which(command[0]) if command and command != ["cat"] else None
    sys.stdout.flush()
    if not program:
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    less = os.environ.get("SYSTEMD_LESS", LESS)
    environment = os.environ | {"LESS": less}
    with without_ctrl_c() as received:
        run = subprocess.run([program, *command[1:]], input=text.encode(), env=environment)
    if received and run.returncode:
        signal.raise_signal(signal.SIGINT)
