# SPDX-License-Identifier: GPL-2.0-only
"""The elevator's algorithm on model disks: each scene of scenes.toml meets its goals."""

import os

import pytest
import scenes
from uml.scenario import Scenario

SCENES = {scene.name: scene for scene in scenes.SCENES}
# Both kinds of medium, and both ways to measure costs.
SANITIZED = (
    "stripe-stream-1-200",
    "hdd-file-random-writer",
    "ssd-directions",
    "ssd-three-levels",
    "ssd-collection",
)


@pytest.mark.parametrize("scene", SCENES.values(), ids=lambda scene: scene.name)
def test_scene(scene: Scenario) -> None:
    """All goals are met; a scene with a reason to miss them misses one of them."""
    found = scenes.values(scene)
    missed = [
        f"{goal.metric}: {value:.4g}, not {goal}"
        for goal, of_leaf in found
        for value in of_leaf
        if not goal.met(value)
    ]
    if scene.knobs.get("sim", {}).get("missed"):
        assert missed, "all goals are met now: remove `missed`"
    else:
        assert not missed


@pytest.mark.parametrize("seed", range(1, 9))
@pytest.mark.parametrize("name", ["ssd-16-mixed", "nvme-16-mixed"])
def test_many_weights(name: str, seed: int) -> None:
    """Groups with backlogs of unlike requests have their shares, whatever happens first.

    Within the 20 s of a run, a probe takes up to a seventh of the device time of light groups.
    """
    (run,) = scenes.simulate(SCENES[name], "sutro", seed=seed)
    entitled, shares = SCENES[name].entitled(run.samples[-1].at_s), run.shares()
    for group, share in entitled.items():
        assert shares[group] == pytest.approx(share, rel=0.16)


@pytest.mark.parametrize("name", SANITIZED)
def test_sanitized(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same program with sanitizers has the same result."""
    plain = [run.counts for run in scenes.simulate(SCENES[name], "sutro")]
    monkeypatch.setenv("SIM_RUN", os.environ["SIM_RUN_SANITIZED"])
    assert [run.counts for run in scenes.simulate(SCENES[name], "sutro")] == plain
