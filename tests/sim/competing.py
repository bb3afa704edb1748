# SPDX-License-Identifier: GPL-2.0-only
"""Clients that compete for disks, each at a place of its own: scenarios as data, and their results.

    one, other = compete([{"kind": 1}], *tree([(300, SYNC), (100, WRITES)]), seconds=12, warmup_s=2)
    assert one["part"] > 0.7

A result is that of sim-run for the client, and with it

mean    its bytes a second after the warm-up
part    of its cgroup, of the device time that all use after the warm-up
"""

from collections.abc import Iterable, Sequence
from typing import Any

from program import line, run

# Keys of a leaf, a volume, a cgroup or a client in a line of sim-run.
Keys = dict[str, Any]
# A weight, and a job or the groups below it.
Group = tuple[int, Any]
Client = dict[str, Any]

# An ssd that is four times slower than usual, and an nvme: fewer requests to simulate.
SSD = {"kind": 1, "read_us": 320, "write_us": 800, "bus_kbps": 135_000, "channels": 16}
NVME = {"kind": 2, "read_us": 280, "write_us": 800, "bus_kbps": 850_000, "channels": 128}

SYNC = {"random": 1, "bytes": 4096, "iodepth": 1}
COMMITS = {**SYNC, "write": 1, "flush": 1}
SCAN = {"bytes": 1 << 20, "iodepth": 32}
WRITES = {**SCAN, "write": 1}
FLOOD = {"write": 1, "async": 1, "bytes": 1 << 19, "iodepth": 64}


def tree(groups: Iterable[Group]) -> tuple[list[Keys], list[Keys]]:
    """The cgroups of groups, and the clients of those that have a job."""
    cgroups: list[Keys] = []
    clients: list[Keys] = []

    def add(below: Iterable[Group], parent: int) -> None:
        for weight, content in below:
            cgroups.append({"parent": parent, "weight": weight})
            number = len(cgroups)
            if isinstance(content, dict):
                clients.append({"cgroup": number, **content})
            else:
                add(content, number)

    add(groups, 0)
    return cgroups, clients


def compete(
    leaves: Sequence[Keys],
    cgroups: Sequence[Keys],
    clients: Sequence[Keys],
    *,
    seconds: int,
    warmup_s: int,
    seed: int = 1,
    volumes: Sequence[Keys] = ({"leaves": 1},),
    disks: Sequence[Keys] = (),
) -> list[Client]:
    """The results of the clients; their places on a volume do not overlap.

    Disks change at times that disks has.
    """
    settings = {"control": 0, "warmup": warmup_s, "truth": 1, "seed": seed}
    lines = [line("run", seconds=seconds, tick_ms=1000, **settings)]
    for word, many in (("leaf", leaves), ("volume", volumes), ("cgroup", cgroups)):
        lines += [line(word, **keys) for keys in many]
    for place, keys in enumerate(clients):
        part = {"first": place / len(clients), "last": (place + 1) / len(clients)}
        lines.append(line("client", **{**part, **keys}))
    lines += [line("disk", **keys) for keys in disks]
    result = run(lines)
    width = 1 + len(cgroups)
    rows = len(leaves) * width
    first, last = result["truth"][warmup_s * rows :][:rows], result["truth"][-rows:]
    used = [end[0] - begin[0] for begin, end in zip(first, last, strict=True)]
    found: list[Client] = result["clients"]
    for client, keys in zip(found, clients, strict=True):
        client["mean"] = sum(client["rate"][warmup_s:]) / (seconds - warmup_s)
        client["part"] = sum(used[keys["cgroup"] :: width]) / sum(used)
    return found
