# SPDX-License-Identifier: LGPL-2.1-or-later
"""The verb metrics: metrics as text, for the textfile collector of the node exporter.

The text is that of sutro-exporter:

    sutro_cgroup_reads_total{cgroup="/a",leaf="/dev/sda",unit=""} 42
"""

import argparse
import re
import subprocess
import sys
from typing import Any

from .answer import Answer, wants_json
from .client import Client
from .errors import SutroError, UsageError
from .files import replace

EXPORTER = ("sutro-exporter", "--once")
SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$", re.MULTILINE)
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def check(args: argparse.Namespace) -> None:
    """Find mistakes on the command line before any call; UsageError."""
    if args.output and wants_json(args):
        raise UsageError("--json and --output exclude each other", "omit one of them")


def samples(text: str) -> list[dict[str, Any]]:
    """The lines of sutro-exporter as {"name", "labels", "value"}."""
    return [
        {"name": name, "labels": dict(map(_label, LABEL.findall(labels))), "value": float(value)}
        for name, labels, value in SAMPLE.findall(text)
    ]


def _label(found: tuple[str, str]) -> tuple[str, str]:
    """A label without the backslashes before backslashes, quotes and line breaks."""
    name, value = found
    return name, re.sub(r"\\(.)", lambda one: one[1].replace("n", "\n"), value)


def _text(all_cgroups: bool) -> bytes:
    """The metrics in the text format of Prometheus."""
    try:
        run = subprocess.run(
            [*EXPORTER, *(["--all"] if all_cgroups else [])], stdout=subprocess.PIPE, check=True
        )
    except FileNotFoundError:
        raise SutroError(
            "metrics need the program sutro-exporter, which is not installed",
            "install it: apt install sutro-exporter",
        ) from None
    except (OSError, subprocess.CalledProcessError) as error:
        raise SutroError(
            f"sutro-exporter failed: {error}", "run it by itself: sutro-exporter --once"
        ) from None
    return run.stdout


async def metrics(_client: Client | None, args: argparse.Namespace) -> Answer:
    """Metrics in the text format of Prometheus, as sutro-exporter serves them."""
    text = _text(args.all)
    if wants_json(args):
        return Answer(samples(text.decode()))
    if args.output:
        replace(args.output, text)
    else:
        sys.stdout.write(text.decode())
        sys.stdout.flush()
    return Answer(None)
