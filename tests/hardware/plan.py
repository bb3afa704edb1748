# SPDX-License-Identifier: LGPL-2.1-or-later
"""The runs of a test in their order: of each experiment, units alone, then each scheduler.

Units run alone under the first scheduler of the list, which is `none` if it was not left out: the
rate of a unit alone is a property of the device.

    two-to-one      none, bfq, sutro
    floor           db alone under none, then none, bfq, sutro
"""

from collections.abc import Sequence
from dataclasses import dataclass

from .experiment import Experiment

# Switching, starting and stopping, by guess; only the estimate depends on it.
OVERHEAD_S = 3.0


@dataclass(frozen=True)
class Step:
    """A run; `only`: the one unit that runs, "" for all."""

    experiment: Experiment
    scheduler: str
    only: str = ""

    @property
    def name(self) -> str:
        """For people."""
        return f"{self.experiment.name}, {self.scheduler}" + (
            f", {self.only} alone" if self.only else ""
        )

    def unit(self, group: str) -> str:
        """The name of the unit of a group: each run has units of its own."""
        alone = "-alone" if self.only else ""
        return f"sutrotest-{self.experiment.name}-{self.scheduler}{alone}-{group}.service"

    def seconds(self, measure_s: float) -> float:
        """How long it takes, about."""
        return self.experiment.ramp_s + measure_s + OVERHEAD_S


def steps(experiments: Sequence[Experiment], schedulers: Sequence[str]) -> list[Step]:
    """All runs."""
    return [
        step
        for one in experiments
        for step in (
            *(Step(one, schedulers[0], name) for name in one.alone),
            *(Step(one, scheduler) for scheduler in schedulers),
        )
    ]


def seconds(all_of_them: Sequence[Step], measure_s: float) -> float:
    """How long runs take together, about."""
    return sum(step.seconds(measure_s) for step in all_of_them)


def duration(seconds: float) -> str:
    """For people: 45 s, 12 min, 2 h 5 min."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"
