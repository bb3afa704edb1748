# SPDX-License-Identifier: GPL-2.0-only
"""Costs with which the elevator begins (kernel/sutro-prior.c): shares in the first seconds.

The oracle is the device time of the model disk. The costs are those that a former run has measured,
or ten times these, or a tenth.
"""

import re
import statistics
from dataclasses import replace
from functools import cache

import pytest
import scenes
from program import run
from uml.scenario import Scenario

SCENES = {scene.name: scene for scene in scenes.SCENES}
NAMES = ("ssd-16-mixed", "nvme-16-mixed")
# Disks that are faster and slower than that of the scene: each has its own moments for probes.
SPEEDS = (0.7, 0.8, 0.9, 1, 1.1, 1.25, 1.4)
# The first sample: a share needs two.
FIRST_S = 0.05


def _disk(name: str, speed: float) -> Scenario:
    scene = SCENES[name]
    times = {key: round(scene.disk[key] * speed) for key in ("read_us", "write_us")}
    return replace(scene, disk={**scene.disk, **times})


@cache
def _measured(name: str, speed: float) -> str:
    """The costs after the whole run of a scene."""
    scene = _disk(name, speed)
    return run(scenes.lines(scene, "sutro", scene.leaves(), seed=99))["costs"][0]


def _times(costs: str, factor: float) -> str:
    """Costs that are wrong by a factor."""
    return re.sub(
        r"((?:read|write) \d+) (\d+)",
        lambda found: f"{found[1]} {round(int(found[2]) * factor)}",
        costs,
    )


@cache
def _error(name: str, factor: float | None, to_s: float) -> float:
    """The worst share error up to some time, in the median of the disks; no factor: no costs."""

    def of_disk(speed: float) -> float:
        scene = _disk(name, speed)
        costs = {"costs": _times(_measured(name, speed), factor)} if factor else {}
        knobs = {**scene.knobs, "sim": {**scene.knobs.get("sim", {}), **costs}}
        part = {"warmup_s": FIRST_S, "measure_s": to_s - FIRST_S, "sample_ms": 50}
        (one,) = scenes.simulate(replace(scene, **part, knobs=knobs), "sutro")
        return one.worst_share_error()

    return statistics.median(map(of_disk, SPEEDS))


@pytest.mark.parametrize("name", NAMES)
def test_first_second(name: str) -> None:
    """Shares are nearer to the weights in the first second than with guesses."""
    assert _error(name, 1, 1) < 0.8 * _error(name, None, 1)


@pytest.mark.parametrize("factor", [10, 0.1])
@pytest.mark.parametrize("name", NAMES)
def test_wrong_costs(name: str, factor: float) -> None:
    """Wrong costs are corrected about as fast as guesses are."""
    for to_s in (1, 5):
        assert _error(name, factor, to_s) < 0.1 + _error(name, None, to_s)


def test_kept() -> None:
    """Priors are still there after a run in which no class competed with another one."""
    costs = "version 1 write 262144 1896288 "
    found = run(
        [
            *("run seconds=1 control=0", "leaf kind=1", f"costs {costs}", "volume"),
            *("cgroup", "client cgroup=1 random=1 bytes=4096 iodepth=64"),
        ]
    )
    assert found["costs"] == [costs]
