# SPDX-License-Identifier: GPL-2.0-only
"""Scenes of the simulation: scenarios of tests/uml, run by sim-run instead of a guest.

Format, metrics and arithmetic are those of tests/uml (README.rst there). Of fio's keys a job has
rw, rwmixread, bs, iodepth, numjobs, thinktime, thinktime_blocks of the type "issue", fsync=1 and
direct; writes with direct=0 stand for writeback, and reads for reads without the page cache. A
discard is parts of DISCARD_BYTES that are sent at once. With poisson=1, which fio has not,
thinktime is the mean of an exponential distribution. Streams of several groups are apart. A disk
with more than one leaf is a stripe of chunks of 64 KiB, and each leaf must meet the goals.
`knobs.sim` holds what only the simulation has:

    leaves          disks in the stripe, 1 by default
    exact_cost      1: requests are charged their exact device time
    costs           with which the elevator begins, as in queue/iosched/costs, on one line
    missed          the reason why the elevator does not meet the goals; then it must miss one

    python3 scenes.py [WORDS]       values and goals of the scenes whose names hold WORDS
"""

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from bench.read import load
from bench.stacks import KINDS
from program import line, run
from uml.bench import Comparison, needed
from uml.measure import Run
from uml.scenario import Book, Goal, Group, Job, Scenario

SCENES = load(Book, Path(__file__).with_name("scenes.toml")).runs()
CLASSES = ("rt", "be", "idle")
UNITS = {"k": 1 << 10, "m": 1 << 20}
# Without samples of its own a scene has one each second.
SAMPLE_MS = 1000
# discard_max_bytes of the block layer, as in tests/uml/protect.toml.
DISCARD_BYTES = 1 << 20


def _bytes(size: str) -> int:
    return int(size[:-1]) * UNITS[size[-1]]


def _client(job: Job, cgroup: int, number: int, of: int) -> Iterator[str]:
    """The clients of a job: one, or with a pause one before and one after it."""
    rw, size = str(job.fio["rw"]), _bytes(str(job.fio["bs"]))
    discards = rw.endswith("trim")
    parts = max(1, size // DISCARD_BYTES) if discards else 1
    depth = int(job.fio.get("iodepth", 1)) * int(job.fio.get("numjobs", 1))
    place = {} if rw.startswith("rand") else {"first": number / of, "last": (number + 1) / of}
    begin, end = job.pause_s or (0, 0)
    spans = [(job.start_s, begin), (end, 0)] if job.pause_s else [(job.start_s, 0)]
    for start, stop in spans:
        yield line(
            "client",
            cgroup=cgroup,
            write=rw.endswith("write"),
            mixed=int(job.fio.get("rwmixread", 50)) if rw.endswith("rw") else 0,
            discard=discards,
            random=rw.startswith("rand"),
            bytes=size // parts,
            iodepth=depth * parts,
            flush=int(job.fio.get("fsync", 0)),
            burst=int(job.fio.get("thinktime_blocks", parts)),
            think_us=int(job.fio.get("thinktime", 0)),
            poisson=int(job.fio.get("poisson", 0)),
            start=start,
            stop=stop,
            **{"async": not rw.endswith("read") and job.fio.get("direct", 1) == 0},
            **place,
        )


def lines(scene: Scenario, scheduler: str, groups: list[Group], **more: float) -> Iterator[str]:
    """The scenario for sim-run with the jobs of these groups; more: keys of its first line."""
    knobs = scene.knobs.get("sim", {})
    leaves = int(knobs.get("leaves", 1))
    yield line(
        "run",
        seconds=scene.end_s,
        warmup=scene.warmup_s,
        tick_ms=scene.sample_ms or SAMPLE_MS,
        control=0,
        truth=1,
        **more,
    )
    numbers = {key: value for key, value in scene.disk.items() if key != "kind"}
    for _ in range(leaves):
        yield line(
            "leaf",
            kind=KINDS.index(scene.disk["kind"]),
            nr_requests=scene.nr_requests,
            none=scheduler == "none",
            oracle=knobs.get("exact_cost", 0),
            **scene.knobs.get(scheduler, {}),
            **numbers,
        )
        if "costs" in knobs:
            yield f"costs {knobs['costs']}"
    yield line("volume", leaves=(1 << leaves) - 1)
    names = {"": 0} | {group.name: n for n, group in enumerate(scene.group, start=1)}
    for group in scene.group:
        parent = names[group.name.rpartition("/")[0]]
        rank = CLASSES.index(group.class_ or "be")
        yield line("cgroup", parent=parent, weight=group.weight, **{"class": rank})
    for number, group in enumerate(groups):
        for job in group.job:
            yield from _client(job, names[group.name], number, len(groups))
    for event in scene.event:
        for name, weight in event.weight.items():
            yield line("weight", at=event.at_s, cgroup=names[name], weight=weight)
        for leaf in range(leaves) if event.disk else ():
            yield line("disk", at=event.at_s, leaf=leaf, **event.disk)


def _truth(scene: Scenario, rows: list[list[int]]) -> dict:
    """A sample of one leaf as a guest reports it."""
    keys = ("time_ns", "rbytes", "wbytes", "rios", "wios")

    def text(name: str, counts: list[int]) -> str:
        return " ".join([name, *(f"{k}={n}" for k, n in zip(keys, counts, strict=False))])

    owners = zip([group.path for group in scene.group], rows[1:], strict=True)
    total = [sum(column) for column in zip(*rows, strict=True)]
    mine = {path: row for path, row in owners}
    truth = "\n".join([text("total", total), *(text(p, row) for p, row in mine.items())])
    return {
        "truths": [truth],
        "stat": {path: f"time_ns={row[-1]}" for path, row in mine.items()},
    }


def simulate(scene: Scenario, scheduler: str, only: str | None = None, **more: float) -> list[Run]:
    """A run of each leaf, under `sutro` or `none`; only: the one group whose jobs run.

    more: keys of the first line for sim-run
    """
    groups = [group for group in scene.leaves() if only in (None, group.name)]
    found = run(lines(scene, scheduler, groups, **more))
    width = len(scene.group) + 1
    leaves = int(scene.knobs.get("sim", {}).get("leaves", 1))
    fio = {}
    clients = iter(found["clients"])
    for group in groups:
        for number, job in enumerate(group.job):
            for _ in range(2 if job.pause_s else 1):
                client = next(clients)
            parts = {"50": "p50_ns", "99": "p99_ns", "99.9": "p999_ns"}
            latency = {"percentile": {key: client[name] for key, name in parts.items()}}
            report = {"read": {"clat_ns": latency}, "write": {"clat_ns": {}}}
            fio[f"{group.name.replace('/', '-')}-{number}"] = {"jobs": [report]}

    def samples(leaf: int) -> Iterator[dict]:
        for tick in range(len(found["truth"]) // (leaves * width)):
            at_s = round((tick + 1) * found["tick_s"], 6)
            rows = found["truth"][(tick * leaves + leaf) * width :][:width]
            wanted = scene.sample_ms and at_s > scene.warmup_s
            if wanted or at_s in (scene.warmup_s, scene.end_s):
                yield {"at_s": at_s, **_truth(scene, rows)}

    result = {"fio": fio, "ended_s": {}}
    taken = [list(samples(leaf)) for leaf in range(leaves)]
    return [Run(scene, scheduler, {**result, "samples": each}) for each in taken]


def compare(scene: Scenario) -> list[Comparison]:
    """All runs of a scene under sutro that its goals need, on each leaf."""
    scene = replace(scene, schedulers=("sutro",))
    runs = {key: simulate(scene, *key) for key in needed(scene)}
    leaves = range(len(runs["sutro", None]))
    return [Comparison(scene, {key: found[leaf] for key, found in runs.items()}) for leaf in leaves]


def values(scene: Scenario) -> list[tuple[Goal, list[float]]]:
    """Each goal of a scene, and its metric on each leaf."""
    of_leaf = compare(scene)
    return [(goal, [one.value(goal, "sutro") for one in of_leaf]) for goal in scene.goal]


def main(words: str) -> None:
    """Print the scenes whose names hold the words."""
    for scene in SCENES:
        if words not in scene.name:
            continue
        missed = scene.knobs.get("sim", {}).get("missed")
        head = ": ".join(filter(None, (scene.name, scene.title)))
        print(head + (f" (missed: {missed})" if missed else ""))
        for goal, of_leaf in values(scene):
            met = "met" if all(map(goal.met, of_leaf)) else "missed"
            shown = " ".join(f"{value:.4g}" for value in of_leaf)
            print(f"    {goal.metric:20} {shown:16} {goal}  {met}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "")
