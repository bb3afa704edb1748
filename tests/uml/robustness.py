# SPDX-License-Identifier: LGPL-2.1-or-later
"""Checks of the results of tests/uml/inside/stress.py: nothing is left behind.

in_flight   requests that are not done although no task is left to send any
dying       cgroups that were removed and are still held
leaks       objects without a pointer to them (unless the plan has no kmemleak)
idle_disks  disks without any I/O, which were not tested
undone      kinds of change that never came
unfailed    kinds of change in which allocations should fail, and none did
one_number  1 if the number of hardware queues was never another one
"""

from rig.result import Goal, Result

CHANGES = (
    "make_group", "kill_group", "switch", "starve", "starve_all", "starve_mkdir",
    "starve_dispatch", "weight", "set_class", "reserve", "latency", "knob", "slots", "read_stat",
    "pull", "give_back", "fail", "lose", "block_size", "suspend", "hw_queues", "fail_bios",
    "time_out",
)  # fmt: skip
# Those during which allocations fail. "starve" has none where its cache is one with others.
STARVED = ("starve_all", "starve_mkdir", "starve_dispatch")


def judge(result: dict) -> list[Result]:
    """A row for each of the above."""
    done, left = result["done"], result["left"]
    undone = [name for name in CHANGES if not done.get(name)]
    unfailed = [name for name in STARVED if not result["failed"].get(name)]
    total = {disk: truth.partition("\n")[0] for disk, truth in result["truth"].items()}
    idle = [disk for disk, line in total.items() if " rios=0 wios=0 " in line]
    values = {
        "in_flight": (left["in_flight"], {}),
        "dying": (left["dying"], {}),
        "idle_disks": (len(idle), {"disks": idle}),
        "undone": (len(undone), {"changes": undone, "done": done, "refused": result["refused"]}),
        "unfailed": (len(unfailed), {"changes": unfailed, "failed": result["failed"]}),
        "one_number": (int(len(result["queues"]) < 2), {"queues": result["queues"]}),
    }
    if "leaks" in left:
        values["leaks"] = (left["leaks"], {"objects": result["leaks"]})
    return [
        Result("stress", "sutro", metric, value, Goal(metric, max=0), detail)
        for metric, (value, detail) in values.items()
    ]
