# SPDX-License-Identifier: LGPL-2.1-or-later
"""The device of a test with its leaves, and the file of --write."""

from dataclasses import dataclass
from typing import Any

from sutro import scratch
from sutro.client import Client
from sutro.errors import SutroError
from sutro.topology import Topology, label

from .leaf import Leaf

Dict = dict[str, Any]

# A smaller device has no room for the streams of an experiment.
SMALLEST_BYTES = 64 << 20


@dataclass(frozen=True)
class Medium:
    """A device or file that jobs use; `devno` has its counters in io.stat."""

    path: str
    devno: str
    size_bytes: int


@dataclass(frozen=True)
class Target:
    """The tested device. `others`: volumes on the same leaves; `about`: the leaves for people."""

    path: str
    kind: str
    device: Medium
    leaves: tuple[Leaf, ...]
    others: tuple[str, ...]
    about: tuple[Dict, ...]
    file: Medium | None = None


def _counted(topology: Topology, device: Dict) -> str:
    """The device whose line of io.stat has the requests: that of a partition is its disk."""
    if device["kind"] == "partition":
        above = topology.slaves(device)
        return above[0]["devno"] if above else device["devno"]
    return device["devno"]


async def find(client: Client, name: str, write: str) -> Target:
    """Resolve a device, mount point or path, and the file of --write."""
    topology = Topology(await client.devices())
    resolved = await client.resolve(topology.path(name))
    device = topology.find(resolved["device"])
    found = [topology.find(leaf) for leaf in resolved["leaves"]]
    leaves = [leaf for leaf in found if leaf and leaf["size_bytes"]]
    if not device or not leaves:
        raise SutroError(
            f"'{name}' has no leaf: there is no disk with a scheduler under it",
            "sutroctl tree shows the devices and their leaves",
        )
    if device["size_bytes"] < SMALLEST_BYTES:
        raise SutroError(
            f"{device['node']} has {device['size_bytes'] >> 20} MiB: the test needs "
            f"{SMALLEST_BYTES >> 20} MiB",
            "name a larger device, see: sutroctl tree",
        )
    others = {label(top) for leaf in leaves for top in topology.stacks_on(leaf)}
    of_leaves = tuple(Leaf(leaf["name"], leaf["node"], leaf["devno"]) for leaf in leaves)
    return Target(
        path=label(device),
        kind=device["kind"],
        device=Medium(device["node"], _counted(topology, device), device["size_bytes"]),
        leaves=of_leaves,
        others=tuple(sorted(others - {label(device)})),
        about=tuple(one.about(leaf) for one, leaf in zip(of_leaves, leaves, strict=True)),
        file=await _file(client, topology, device["node"], write) if write else None,
    )


async def _file(client: Client, topology: Topology, node: str, name: str) -> Medium:
    """The file of --write; SutroError if it is there, or another user can replace it by a link."""
    file = await scratch.find(client, name, node, or_above=True)
    if scratch.exists(file):
        raise SutroError(
            f"--write={name} is there already, and the test would remove it", scratch.NEW
        )
    # Jobs of root open it by its name, as long as the test runs.
    scratch.check_folder(file)
    device = topology.find(file.device)
    return Medium(file.path, _counted(topology, device) if device else "", file.size_bytes)
