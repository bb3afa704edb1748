# SPDX-License-Identifier: LGPL-2.1-or-later
"""The daemon as a whole: the verbs status, log-level and dump."""

import argparse

from .answer import Answer, capacities_if_known, mistakes_in, promises_if_known, resyncs_if_known
from .client import Client
from .topology import Topology, label


async def status(client: Client, _args: argparse.Namespace) -> Answer:
    """The daemon, promises, capacities, resyncs, leaves, and units with a weight of their own."""
    properties = await client.properties()
    topology = Topology(await client.devices())
    leaves = [
        device | {"stacks": [label(top) for top in topology.stacks_on(device)]}
        for device in topology.by_name.values()
        if device["leaf"] and device["size_bytes"] > 0
    ]
    stated = [unit for unit in await client.units() if unit["weight_set"] or unit["device_weights"]]
    daemon = {
        "version": properties["Version"],
        "dry_run": properties["DryRun"],
        "managed_leaves": properties["ManagedLeaves"],
    }
    return Answer(
        {
            "daemon": daemon,
            **mistakes_in(properties),
            "promises": await promises_if_known(client),
            "capacities": await capacities_if_known(client),
            "resyncs": await resyncs_if_known(client),
            "leaves": sorted(leaves, key=lambda leaf: leaf["name"]),
            "units": sorted(stated, key=lambda unit: unit["unit"] or unit["cgroup"]),
        }
    )


async def dump(client: Client, _args: argparse.Namespace) -> Answer:
    """The whole state of the daemon as text."""
    return Answer({"dump": await client.dump()})


async def log_level(client: Client, args: argparse.Namespace) -> Answer:
    """The level of the log of the daemon; with LEVEL, set it until the daemon ends."""
    if args.level:
        await client.set_log_level(args.level)
    return Answer({"level": await client.log_level()})
