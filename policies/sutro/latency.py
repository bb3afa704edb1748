# SPDX-License-Identifier: LGPL-2.1-or-later
"""The verb latency: how long requests of a unit take on the devices of its targets.

A row is a device and a kind of request (read, write, fsync):

    {"device": "/dev/dm-0", "name": "/dev/vg/db", "op": "read", "source": "volume",
     "requests": 1200, "p50_us": 410.0, ..., "p99_9_us": 5100.0,
     "buckets": [{"from_us": 384.0, "to_us": 448.0, "requests": 700}, ...],
     "targets": [{"path": "/srv", "value": 5000, "percentile": 99.0, "got": 900,
                  "state": "held"}]}

Counts are those since sutrod measures the device for the unit.
"""

import argparse
import asyncio
from typing import Any

from .answer import Answer
from .client import Client
from .errors import NoSuchUnit
from .promises import TARGETS
from .statements import without_cgroup
from .topology import Topology, label

Dict = dict[str, Any]

BUCKET = ("from_us", "to_us", "requests")
TARGET = ("path", "value", "percentile", "got", "state")


async def latency(client: Client, args: argparse.Namespace) -> Answer:
    """Histograms of the latencies of a unit, by device and kind of request."""
    try:
        found = await client.latencies(args.unit)
    except NoSuchUnit:
        raise await without_cgroup(client, args.unit) from None
    promises, devices = await asyncio.gather(client.promises(), client.devices())
    topology = Topology(devices)
    return Answer({"unit": args.unit, "rows": [_row(row, promises, topology) for row in found]})


def _row(row: Dict, promises: list[Dict], topology: Topology) -> Dict:
    """A row of the daemon, with the name of the device, named buckets, and its targets."""
    device = topology.find(row["device"])
    place = (row["cgroup"], row["device"], row["op"])
    return row | {
        "name": label(device) if device else row["device"],
        "buckets": [dict(zip(BUCKET, bucket, strict=True)) for bucket in row["buckets"]],
        "targets": [
            {key: promise[key] for key in TARGET}
            for promise in promises
            if place == (promise["cgroup"], promise["device"], TARGETS.get(promise["key"]))
        ],
    }
