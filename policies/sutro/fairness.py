# SPDX-License-Identifier: LGPL-2.1-or-later
"""The verb test, of which the package sutro-tests has the rest.

The folder below is not on Python's path: its packages have names of this tree (tests/hardware,
tests/rig, tests/bench).
"""

import argparse
import importlib
import sys
from typing import Any

from .answer import Answer
from .client import Client
from .errors import SutroError

FOLDER = "/usr/share/sutro-tests"
PACKAGE = "hardware"


def _part(name: str) -> Any:
    """A module of the package."""
    if FOLDER not in sys.path:
        sys.path.append(FOLDER)
    try:
        return importlib.import_module(f"{PACKAGE}.{name}")
    except ModuleNotFoundError as error:
        if error.name != PACKAGE:
            raise
        raise SutroError(
            "the fairness tests are not installed", "install them: apt install sutro-tests"
        ) from None


def check(args: argparse.Namespace) -> None:
    """Find the slips that need no bus."""
    _part("command").check(args)


async def test(client: Client | None, args: argparse.Namespace) -> Answer:
    """Run fairness tests on a device, with its schedulers side by side."""
    answer: Answer = await _part("command").test(client, args)
    return answer


def show(out: Any, data: Any) -> None:
    """The answer of any option of `sutroctl test`."""
    shown = _part("show")
    if isinstance(data, list):
        shown.experiments(out, data)
    elif "report" in data:
        out.print(data["report"], end="", soft_wrap=True)
    elif "restored" in data:
        out.print("The machine is restored." if data["restored"] else "Nothing to restore.")
    else:
        shown.results(out, data)
