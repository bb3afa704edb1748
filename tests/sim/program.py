# SPDX-License-Identifier: GPL-2.0-only
"""Runs sim-run, the simulation: sim-run.c documents its input, result.c its output.

SIM_RUN     the program
"""

import json
import os
import subprocess
from collections.abc import Iterable
from typing import Any


def line(word: str, **values: float | str) -> str:
    """A line of a scenario."""
    texts = {
        name: value if isinstance(value, str) else f"{value:.17g}" for name, value in values.items()
    }
    return " ".join([word, *(f"{name}={text}" for name, text in texts.items())])


def run(lines: Iterable[str]) -> dict[str, Any]:
    """The result of a scenario."""
    text = "\n".join(lines) + "\n"
    done = subprocess.run([os.environ["SIM_RUN"]], input=text, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr + text
    return json.loads(done.stdout)
