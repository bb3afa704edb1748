# SPDX-License-Identifier: LGPL-2.1-or-later
"""The verb metrics: metrics as text, for the textfile collector of the node exporter."""

import argparse
import sys

from .answer import Answer, wants_json
from .client import Client
from .errors import SutroError, UsageError
from .files import replace


def check(args: argparse.Namespace) -> None:
    """Find mistakes on the command line before any call; UsageError."""
    if args.output and wants_json(args):
        raise UsageError("--json and --output exclude each other", "omit one of them")


async def metrics(_client: Client | None, args: argparse.Namespace) -> Answer:
    """Metrics in the text format of Prometheus, as sutro-exporter serves them."""
    try:
        from prometheus_client import generate_latest

        from .exposition import Text
    except ModuleNotFoundError:
        raise SutroError(
            "metrics need prometheus_client, which is not installed",
            "install it: apt install python3-prometheus-client",
        ) from None
    from .metrics import CGROUPS_MOST, Ranking, Scrape, state

    scrape = Scrape(await state(Ranking(None if args.all else CGROUPS_MOST)))
    if wants_json(args):
        samples = (sample for family in scrape.collect() for sample in family.samples)
        return Answer(
            [{"name": s.name, "labels": s.labels, "value": float(s.value)} for s in samples]
        )
    text = Text(generate_latest).of(scrape)
    if args.output:
        replace(args.output, text)
    else:
        sys.stdout.write(text.decode())
        sys.stdout.flush()
    return Answer(None)
