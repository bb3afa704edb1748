# SPDX-License-Identifier: LGPL-2.1-or-later
"""The stacks of devices and their users: the verbs tree, use and release."""

import argparse
import asyncio
from typing import Any

from .answer import Answer
from .client import Client
from .errors import NoSuchPath, NoSuchUnit, SutroError
from .topology import Topology

Dict = dict[str, Any]


async def _unit_rows(client: Client, path: str) -> dict[str, list[Dict]]:
    """For each leaf under a path ("": all): the units that use it or state a weight for it."""

    async def one(unit: Dict) -> list[tuple[str, Dict]]:
        try:
            explanation = await client.explain(unit["unit"] or unit["cgroup"], path)
        except NoSuchUnit:
            return []  # it has ended in the meantime

        def matters(leaf: Dict) -> bool:
            stated = explanation["weight_set"] or leaf["asked"] != explanation["weight"]
            return leaf["got"] > 0 or (stated and leaf["backend"] != "none")

        return [
            (leaf["leaf"], {"unit": unit["unit"], "cgroup": unit["cgroup"]} | leaf)
            for leaf in explanation["leaves"]
            if matters(leaf)
        ]

    rows: dict[str, list[Dict]] = {}
    below_root = [unit for unit in await client.units() if unit["cgroup"] != "/"]
    found = await asyncio.gather(*(one(unit) for unit in below_root))
    for leaf, row in sorted(
        (pair for pairs in found for pair in pairs), key=lambda pair: pair[1]["cgroup"].split("/")
    ):
        rows.setdefault(leaf, []).append(row)
    return rows


async def tree(client: Client, args: argparse.Namespace) -> Answer:
    """The stacks from the top down, with the units on the leaves."""
    topology = Topology(await client.devices(), args.host)
    tops, path = topology.tops(), ""
    if args.device:
        resolved = await client.resolve(topology.path(args.device))
        path = resolved["device"]
        top = topology.find(path)
        if top is None:
            raise NoSuchPath(f"device {path} behind '{args.device}' has just gone", "try again")
        tops = [top]
    rows = await _unit_rows(client, path)

    def grow(device: Dict) -> Dict:
        grown = device | {"children": [grow(slave) for slave in topology.slaves(device)]}
        return grown | {"units": rows.get(device["node"], [])} if device["leaf"] else grown

    return Answer([grow(top) for top in tops])


def _failed(results: list[Dict], verb: str) -> SutroError | None:
    """The failure that names the leaves with an error, None without any."""
    failed = [result["leaf"] for result in results if result["error"]]
    if not failed:
        return None
    return SutroError(
        f"could not {verb} {', '.join(failed)}",
        "resolve the errors above, then run it again; see: journalctl -u sutrod",
    )


async def use(client: Client, args: argparse.Namespace) -> Answer:
    """Switch the leaves under devices to the scheduler sutro."""
    topology = Topology(await client.devices(), args.host)
    results = await client.use([topology.path(name) for name in args.device])
    return Answer(results, _failed(results, "switch"))


async def release(client: Client, args: argparse.Namespace) -> Answer:
    """Switch leaves back to their former scheduler."""
    topology = Topology(await client.devices(), args.host)
    results = await client.release([topology.path(name) for name in args.device])
    return Answer(results, _failed(results, "release"))
