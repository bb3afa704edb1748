# SPDX-License-Identifier: LGPL-2.1-or-later
"""Weights of cgroups without sutrod: the steps of inside/weights.py, and the shares that they need.

Both cgroups read as much as the disk has. NAME.share is the part of the device time of cgroup a.
NAME.files counts writes that were accepted or refused against the step, and files with other texts.
The kernel has the series, whose io.weight all schedulers follow until a file of theirs is written.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from rig.modeldisk import parse_truth
from rig.result import Goal, Result

from .plan import ELEVATOR, QUEUE, iocost_model

DISK: dict = {"kind": "ssd", "read_us": 1280, "write_us": 3200, "bus_kbps": 33750}
NR_REQUESTS = 256
File = tuple[str, str]
SCHEDULER = f"{QUEUE}/scheduler"
# Of the part that follows from the weights.
ERROR = {"sutro": 0.01, "bfq": 0.05, "iocost": 0.02}
# iocost raises the weight in use of a busy cgroup step by step.
SETTLE_S = {"sutro": 1.0, "bfq": 1.0, "iocost": 3.0}
# Less than the disk takes, whatever its latency: the disk would divide the rest without weights.
QOS = "{devno} enable=1 ctrl=user min=60.00 max=60.00"


@dataclass(frozen=True)
class Step:
    """The writes, the files afterwards, and the share of cgroup a in per cent."""

    controller: str
    name: str
    share: int
    before: Sequence[File] = ()
    during: Sequence[File] = ()
    shows: Sequence[File] = ()

    def plan(self) -> dict:
        """As inside/weights.py takes it."""
        setup = [*_setup(self.controller), *self.before]
        return {
            "name": f"{self.controller}.{self.name}",
            "settle_s": SETTLE_S[self.controller],
            "before": setup,
            "during": list(self.during),
            "shows": list(self.shows),
        }


def _setup(controller: str) -> list[File]:
    found = [
        (SCHEDULER, ELEVATOR.get(controller, controller)),
        (f"{QUEUE}/nr_requests", str(NR_REQUESTS)),
    ]
    if controller == "bfq":
        found.append((f"{QUEUE}/iosched/low_latency", "0"))
    if controller == "iocost":
        found.append(("io.cost.model", iocost_model(DISK, 0)))
        found.append(("io.cost.qos", QOS))
    return found


def _common(controller: str) -> list[Step]:
    """Facts about io.weight that hold for each controller."""
    return [
        Step(
            controller, "default", 75,
            before=[("a/io.weight", "300"), ("b/io.weight", "default 100")],
            shows=[("a/io.weight", "default 300"), ("b/io.weight", "default 100")],
        ),
        Step(
            controller, "change", 25,
            before=[("a/io.weight", "300")],
            during=[("a/io.weight", "100"), ("b/io.weight", "300")],
        ),
        Step(
            controller, "device", 75,
            before=[("a/io.weight", "50"), ("a/io.weight", "{devno} 300")],
            shows=[("a/io.weight", "default 50\n{devno} 300")],
        ),
        Step(
            controller, "device-default", 75,
            before=[("a/io.weight", "{devno} 50"), ("a/io.weight", "300")],
            during=[("a/io.weight", "{devno} default")],
            shows=[("a/io.weight", "default 300")],
        ),
    ]  # fmt: skip


def _own(controller: str) -> list[Step]:
    """A scheduler's file comes before io.weight, once it is written."""
    file = f"io.{controller}.weight"
    return [
        Step(
            controller, "own", 75,
            before=[(f"a/{file}", "300"), ("a/io.weight", "50")],
            during=[("a/io.weight", "{devno} 50")],
            shows=[(f"a/{file}", "default 300"), ("a/io.weight", "default 50\n{devno} 50")],
        ),
        Step(
            controller, "own-device", 75,
            before=[("a/io.weight", "50")],
            during=[(f"a/{file}", "{devno} 300"), ("a/io.weight", "40")],
            shows=[(f"a/{file}", "default 40\n{devno} 300")],
        ),
        Step(
            controller, "own-device-default", 75,
            before=[(f"a/{file}", "{devno} 50"), ("a/io.weight", "300")],
            during=[(f"a/{file}", "{devno} default")],
            shows=[(f"a/{file}", "default 300")],
        ),
        Step(
            controller, "kept", 75,
            before=[
                (SCHEDULER, "none"), ("a/io.weight", "{devno} 300"), *_setup(controller),
            ],
        ),
    ]  # fmt: skip


STEPS = (
    *_common("sutro"),
    *_own("sutro"),
    Step(
        "sutro", "own-unset", 75,
        before=[("a/io.sutro.weight", "50"), ("a/io.weight", "300")],
        during=[("a/io.sutro.weight", "default")],
        shows=[("a/io.sutro.weight", "default 300"), ("a/io.sutro.class", "default be")],
    ),
    Step(
        "sutro", "refusals", 50,
        before=[
            ("a/io.weight", "0 !EINVAL"), ("a/io.weight", "10001 !EINVAL"),
            ("a/io.weight", "much !EINVAL"), ("a/io.weight", "{devno} 0 !EINVAL"),
            ("a/io.weight", "{devno} 10001 !EINVAL"), ("a/io.weight", "{devno} !EINVAL"),
            ("a/io.weight", "1:1 300 !ENODEV"), ("a/io.sutro.class", "default !EINVAL"),
        ],
        shows=[("a/io.weight", "default 100"), ("a/io.sutro.weight", "default 100")],
    ),
    *_common("bfq"),
    *_own("bfq"),
    Step(
        "bfq", "beyond-its-range", 67,
        before=[("a/io.weight", "10000"), ("b/io.weight", "500")],
        shows=[("a/io.bfq.weight", "default 1000"), ("a/io.weight", "default 10000")],
    ),
    *_common("iocost"),
)  # fmt: skip


def plan() -> dict:
    """The input of inside/weights.py."""
    return {"disk": DISK, "steps": [step.plan() for step in STEPS]}


def judge(result: dict) -> list[Result]:
    """Two rows for each step."""
    rows = []
    for step, found in zip(STEPS, result["steps"], strict=True):
        name, truth = f"{step.controller}.{step.name}", parse_truth(found["truth"])
        part, error = step.share / 100, ERROR[step.controller]
        goal = Goal("share", min=part - error, max=part + error)
        share = truth.of("/a").time_ns / max(1, truth.total.time_ns)
        rows.append(Result("weights", step.controller, f"{name}.share", share, goal, {}))
        goal, differ = Goal("files", max=0), found["differ"]
        row = Result("weights", step.controller, f"{name}.files", len(differ), goal, {"of": differ})
        rows.append(row)
    return rows
