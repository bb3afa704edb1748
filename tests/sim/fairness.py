# SPDX-License-Identifier: GPL-2.0-only
"""Scenarios of `./lab bench fairness --random` (tests/uml/drawn.py) under Sutro, in the simulation.

python3 fairness.py SEED FIRST COUNT    scenarios that miss their goal, the worst one last
"""

import sys
from concurrent.futures import ThreadPoolExecutor
from statistics import median

import scenes
from uml import drawn
from uml.scenario import Scenario

WORKERS = 2


def errors(scene: Scenario) -> dict[str, float]:
    """The error of each group's device time in its worst phase."""
    (compared,) = scenes.compare(scene)
    return compared.fair_share_errors(compared.runs["sutro"])


def main(seed: int, first: int, count: int) -> None:
    """Print the scenarios that miss their goal, and figures of all together."""
    made = [drawn.fairness(seed, number) for number in range(first, first + count)]
    with ThreadPoolExecutor(WORKERS) as pool:
        found = sorted(
            zip(made, pool.map(errors, made), strict=True), key=lambda one: max(one[1].values())
        )
    for scene, of in found:
        if max(of.values()) > drawn.WORST:
            shown = " ".join(f"{name}={error:.3f}" for name, error in of.items())
            print(f"{scene.name} {max(of.values()):.3f} {shown}\n    {scene.title}")
    worst = [max(of.values()) for _, of in found]
    met = sum(value <= drawn.WORST for value in worst)
    print(f"{met} of {count} meet their goal; worst {worst[-1]:.3f}, median {median(worst):.4f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
