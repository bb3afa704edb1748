# SPDX-License-Identifier: LGPL-2.1-or-later
"""The use of devices by units, with their promises, as rows: one per unit and device.

A row has lines, one for each promise and for each direction of traffic without one:

    unit         device       about     value   granted  got   state  | leaf  share  weight
    db.service   /dev/vg0/db  read min   200M      200M  203M  held   | hda     60%    1500
                              write         -         -    1M         | hdb     59%    1490

Numbers are in the unit of the key, by default bytes per second; shares are 0 to 1.
"""

from typing import Any

from .promises import about, fails
from .topology import Topology, label

Dict = dict[str, Any]

# Traffic without a promise, and the prefix of the keys that are about it.
TRAFFIC = {
    "rbytes_per_s": ("read", "ReadBandwidth"),
    "wbytes_per_s": ("write", "WriteBandwidth"),
}


# The rate that a limit bounds: the kernel enforces it, and the daemon measures it for
# all units.
LIMITED = {
    "ReadBandwidthMax": "rbytes_per_s",
    "WriteBandwidthMax": "wbytes_per_s",
    "ReadIOPSMax": "rios_per_s",
    "WriteIOPSMax": "wios_per_s",
}


def _promise_line(promise: Dict, used: Dict) -> Dict:
    """The line of a promise; the rate of a limit comes from `used`."""
    keys = ("key", "path", "value", "granted", "got", "state", "cause")
    line = {"about": about(promise)} | {key: promise[key] for key in keys}
    limited = LIMITED.get(promise["key"])
    return line | {"got": used[limited]} if limited and used else line


def _traffic_lines(used: Dict, keys: list[str]) -> list[Dict]:
    """Lines for traffic in directions that none of the keys is about."""
    return [
        {"about": name, "key": "", "path": "", "value": 0, "granted": 0.0}
        | {"got": used[field], "state": "", "cause": ""}
        for field, (name, prefix) in TRAFFIC.items()
        if used[field] and not any(key.startswith(prefix) for key in keys)
    ]


def _leaves(leaves: list[Dict]) -> list[Dict]:
    """Name, share and weight of each leaf."""
    return [
        {"leaf": leaf["leaf"], "share": leaf["share_got"], "weight": leaf["weight"]}
        for leaf in leaves
    ]


def rows(usage: list[Dict], promises: list[Dict], devices: list[Dict]) -> list[Dict]:
    """Rows with a promise that does not hold, then the others, each by their share of a leaf."""
    topology = Topology(devices)
    by_place: dict[tuple[str, str], Dict] = {}
    for promise in promises:
        place = (promise["cgroup"] or promise["unit"], promise["device"] or promise["path"])
        by_place.setdefault(place, {"promises": []})["promises"].append(promise)
    for used in usage:
        place = (used["cgroup"], used["device"])
        by_place.setdefault(place, {"promises": []})["usage"] = used

    found = []
    for (cgroup, node), here in by_place.items():
        one = here.get("usage") or here["promises"][0]
        device = topology.find(node)
        keys = [promise["key"] for promise in here["promises"]]
        lines = [_promise_line(promise, here.get("usage", {})) for promise in here["promises"]]
        if "usage" in here:
            lines += _traffic_lines(here["usage"], keys)
        found.append(
            {
                "unit": one["unit"],
                "cgroup": cgroup,
                "device": node,
                "name": label(device) if device else node,
                "fails": any(fails(promise) for promise in here["promises"]),
                "lines": lines,
                "leaves": _leaves(one["leaves"]),
            }
        )
    return sorted(found, key=rank)


def rank(row: Dict) -> tuple:
    """The sort key of a row: a guarantee that fails, the largest share, unit, device."""
    share = max((leaf["share"] for leaf in row["leaves"]), default=0.0)
    return (not row["fails"], -share, row["unit"] or row["cgroup"], row["device"])
