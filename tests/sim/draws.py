# SPDX-License-Identifier: GPL-2.0-only
"""Random pairs of a favoured group and others, and trios. The number of a draw is its seed.

uml/drawn_pairs.py describes what is drawn. From SYNC_FROM on, each write of a victim is followed
by a flush, as with fsync().

A victim shall receive the lesser of its rate alone and of its share, in each phase without its
first SETTLE_S. A synchronous reader of class rt or of ten times the weight shall have twice its
99th percentile alone at most.

A trio has two favoured groups: a victim, and a peer, which is like a victim or like the others; the
same numbers have fsync(). Both shall receive their shares of their rates alone. They have one
weight, or the peer is between the victim and the others.

    python3 draws.py FIRST COUNT            figures of the draws that miss their goals, the worst
                                            one last
    python3 draws.py --trios FIRST COUNT    the same for trios; the part is the lesser one of both
    python3 draws.py --unlike FIRST COUNT   the same for trios with a lighter peer
"""

import argparse
import math
import random
import statistics
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

import scenes
from uml import drawn_pairs, protect
from uml.scenario import Job, Scenario

# A group of class rt leaves the rest to others: sutro-tree.c.
RT_SHARE = 32 / 33
SETTLE_S = 1.0
SYNC_FROM = 1000
# Of a trio.
FAVOURED = ("victim", "peer")
LOW = 0.8


@dataclass(frozen=True)
class Received:
    """The service of a victim over the lesser of alone and entitled in the worst phase, its P99
    against alone (NaN where it is not judged), and the bytes of the others."""

    part: float
    p99: float
    others: int

    def is_met(self) -> bool:
        """Whether both goals are."""
        return self.part >= protect.ENTITLED and not self.p99 > protect.P99


def draw(number: int) -> Scenario:
    """A pair."""
    made = drawn_pairs.pair(random.Random(number), f"draw-{number}", number >= SYNC_FROM)
    return replace(made, schedulers=("sutro",), sample_ms=500, goal=())


def trio(number: int, *, unlike: bool = False) -> Scenario:
    """A pair without phases and classes, and a peer of the victim; with unlike, the peer weighs
    less."""
    rng = random.Random(f"{'unlike' if unlike else 'trio'} {number}")
    made = None
    while made is None or made.group[0].class_ or any(j.pause_s for g in made.group for j in g.job):
        made = drawn_pairs.pair(rng, f"trio-{number}", number >= SYNC_FROM)
    victim, *others = made.group
    draw_one = rng.choice((drawn_pairs.favoured, drawn_pairs.other))
    weight = victim.weight
    if unlike:
        weight = round(rng.uniform(drawn_pairs.OTHERS_WEIGHT, weight))
    jobs = tuple(Job(fio) for fio in draw_one(rng))
    peer = replace(victim, name="peer", weight=weight, job=jobs)
    groups = (victim, peer, *others)
    title = f"{drawn_pairs.describe(made.disk, groups)} | peer {weight}"
    return replace(made, title=title, group=groups, schedulers=("sutro",), sample_ms=500, goal=())


def receive_trio(scene: Scenario) -> Received:
    """Run a trio, and its favoured groups alone: the lesser of their rates over their shares of
    their rates alone, and the bytes of the others."""
    (run,) = scenes.simulate(scene, "sutro")
    ((begin, end),) = run.phases(SETTLE_S)
    parts = []
    for name in FAVOURED:
        (alone,) = scenes.simulate(scene, "sutro", only=name)
        share = scene.entitled(scene.end_s)[name]
        part = run.used(name, begin, end).bytes / alone.used(name, begin, end).bytes
        parts.append(max(part, run.shares(begin, end)[name]) / share)
    others = [group.name for group in scene.group if group.name not in FAVOURED]
    return Received(min(parts), math.nan, sum(run.bytes(name) for name in others))


def _share(scene: Scenario) -> float:
    if scene.group[0].class_ == "rt":
        return RT_SHARE
    return scene.entitled(scene.end_s)["victim"]


def receive(scene: Scenario, **more: float) -> Received:
    """Run a draw, and its victim alone; more: keys of the first line for sim-run."""
    (run,) = scenes.simulate(scene, "sutro", **more)
    (alone,) = scenes.simulate(scene, "sutro", only="victim", **more)
    share = _share(scene)
    parts = []
    for begin, end in run.phases(SETTLE_S):
        had = alone.used("victim", begin, end).bytes
        if not had:
            continue
        part = run.used("victim", begin, end).bytes / had / min(1.0, protect.PRICE * share)
        parts.append(max(part, run.shares(begin, end)["victim"] / share))
    p99 = math.nan
    if drawn_pairs.is_sensitive(scene.group[0]):
        p99 = run.p99_us(("victim",)) / alone.p99_us(("victim",))
    return Received(min(parts), p99, sum(run.bytes(group.name) for group in scene.group[1:]))


KINDS = {
    "": (draw, receive),
    "--trios": (trio, receive_trio),
    "--unlike": (partial(trio, unlike=True), receive_trio),
}


def main(first: int, count: int, kind: str) -> None:
    """Print figures of draws, the worst ones last, and of all together."""
    make, run = KINDS[kind]
    drawn = [make(number) for number in range(first, first + count)]
    with ThreadPoolExecutor(2) as pool:
        found = list(zip(drawn, pool.map(run, drawn), strict=True))
    found.sort(key=lambda one: -one[1].part)
    for scene, got in found:
        if not got.is_met():
            print(f"{scene.name} {got.part:.3f} {got.p99:.2f} {scene.title}")
    parts = [got.part for _, got in found]
    slow = [got.p99 for _, got in found if not math.isnan(got.p99)]
    met = sum(got.is_met() for _, got in found)
    print(
        f"{met} of {count} meet their goals; part: worst {min(parts):.3f},"
        f" mean of the lesser of it and 1 {statistics.mean(min(1.0, part) for part in parts):.3f},"
        f" below 0.8 {sum(part < LOW for part in parts)},"
        f" tenth {sorted(parts)[count // 10]:.3f}, median {statistics.median(parts):.3f};"
        f" P99: worst {max(slow, default=math.nan):.2f};"
        f" {sum(got.others for _, got in found) / 1e9:.1f} GB of the others"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Figures of random draws that miss their goals.")
    kind = parser.add_mutually_exclusive_group()
    for option in filter(None, KINDS):
        kind.add_argument(option, dest="kind", action="store_const", const=option, default="")
    parser.add_argument("first", type=int, metavar="FIRST")
    parser.add_argument("count", type=int, metavar="COUNT")
    given = parser.parse_args()
    main(given.first, given.count, given.kind)
