# SPDX-License-Identifier: LGPL-2.1-or-later
"""Checks of the results of tests/uml/inside/layers.py: right data, and nothing left behind.

For each layer:

LAYER.wrong       jobs that failed, or read something else than they wrote
LAYER.mismatches  blocks that md or dm-integrity finds to differ, snapshots that changed
LAYER.right       jobs that came to their end
LAYER.owned       bytes that the disks served for the cgroups that wrote
LAYER.dying       cgroups that were removed and are still held when the layer is gone

leaks             objects without a pointer to them (kmemleak)
"""

from rig.result import Goal, Result

LAYERS = (
    "raid5", "raid6", "raid1", "dm-raid5", "dm-raid1", "mirror", "snapshot", "thin",
    "integrity-J", "integrity-B", "integrity-D", "bcache",
)  # fmt: skip
NONE, SOME = Goal("none", max=0), Goal("some", min=1)


def judge(result: dict) -> list[Result]:
    """A row for each of the above."""
    rows = []
    for name in LAYERS:
        one = result["layers"][name]
        wrong = {"jobs": one["wrong"], "done": one["done"]}
        rows.append(_row(f"{name}.wrong", len(one["wrong"]), NONE, wrong))
        rows.append(_row(f"{name}.mismatches", one["mismatches"], NONE))
        rows.append(_row(f"{name}.right", one["jobs"].get("right", 0), SOME))
        rows.append(_row(f"{name}.owned", one["owned"], SOME))
        rows.append(_row(f"{name}.dying", one["dying"], NONE))
    found = result["leaks"]
    rows.append(_row("leaks", len(found), NONE, {"objects": found[:20]}))
    return rows


def _row(metric: str, value: float, goal: Goal, detail: dict | None = None) -> Result:
    return Result("layers", "sutro", metric, value, goal, detail or {})
