# SPDX-License-Identifier: LGPL-2.1-or-later
"""The verb metrics: metrics as text, for the textfile collector of the node exporter."""

import argparse
import os
import sys
from pathlib import Path

from .answer import Answer
from .client import Client
from .errors import SutroError


def _replace(file: str, text: bytes) -> None:
    """Put a whole file in the place of one that a collector may read at any time."""
    folder, name = os.path.split(os.path.abspath(file))
    # Without the suffix .prom, which the collector looks for.
    new = Path(folder, f".{name}.{os.getpid()}")
    try:
        new.write_bytes(text)
        new.chmod(0o644)
        new.rename(file)
    except OSError as error:
        new.unlink(missing_ok=True)
        raise SutroError(f"{file}: {error.strerror}") from None


async def metrics(_client: Client | None, args: argparse.Namespace) -> Answer:
    """Metrics in the text format of Prometheus, as sutro-exporter serves them."""
    try:
        from prometheus_client import generate_latest
    except ModuleNotFoundError:
        raise SutroError(
            "metrics need prometheus_client, which is not installed",
            "install it: apt install python3-prometheus-client",
        ) from None
    from .metrics import CGROUPS_MOST, Scrape, state

    scrape = Scrape(await state(), None if args.all else CGROUPS_MOST)
    if getattr(args, "json", False):
        samples = (sample for family in scrape.collect() for sample in family.samples)
        return Answer([{"name": s.name, "labels": s.labels, "value": s.value} for s in samples])
    text = generate_latest(scrape)
    if args.output:
        _replace(args.output, text)
    else:
        sys.stdout.write(text.decode())
        sys.stdout.flush()
    return Answer(None)
