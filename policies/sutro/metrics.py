# SPDX-License-Identifier: LGPL-2.1-or-later
"""Metrics: counters of the elevator, promises, leaves and the daemon, for Prometheus.

exposition.py writes them, as OpenMetrics or as the older text format. Reading them changes
nothing: of the daemon only calls are used that start no sampling, and one pass over all cgroups
reads the files of the elevator. Names and labels are in sutro-exporter(1).
"""

import asyncio
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Any, TypeVar

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.utils import floatToGoString

from . import counters, values
from .client import Client
from .errors import BusUnavailable, NoAnswer, NotPermitted, NotRunning, SutroError, TooOld
from .promises import fails
from .topology import Topology, label

Dict = dict[str, Any]
Counted = TypeVar("Counted", counters.File, counters.Use)
Place = TypeVar("Place")

# Cgroups with a series each, beyond which those that used the least are left out.
CGROUPS_MOST = 200
# The longest time between two rankings of all cgroups.
RANKED_S = 60.0
WITH_WEIGHTS = ("sutro", "bfq")
# Prometheus ends a scrape after 10 s. A call of the daemon that reads takes milliseconds.
ANSWERS_S = 5.0
# Label of sutro_down_info for each failure to read from the daemon; "error" for others.
REASONS = {
    BusUnavailable: "bus-unavailable",
    NotRunning: "not-running",
    NoAnswer: "no-answer",
    NotPermitted: "not-permitted",
    TooOld: "too-old",
}

# Field of io.sutro.stat: name, description, seconds or 1 for each.
COUNTERS = {
    "time_ns": ("device_time_seconds", "Time of the leaf that was charged to the cgroup", 1e-9),
    "rbytes": ("read_bytes", "Bytes read", 1),
    "wbytes": ("written_bytes", "Bytes written", 1),
    "rios": ("reads", "Read requests", 1),
    "wios": ("writes", "Write requests", 1),
    "wait_ns": ("wait_seconds", "Sum over requests of the time in the scheduler", 1e-9),
    "busy_ns": ("busy_seconds", "Time with at least one request, waiting or in flight", 1e-9),
}
CGROUPS = "sutro_cgroup_"
CGROUP_LABELS = ("cgroup", "unit", "leaf")
CAPACITY_LABELS = ("path", "key")
PROMISE_STATE = "sutro_promise_state"
PROMISE_LABELS = ("cgroup", "unit", "key", "path", "device")
# Kind of the value of a promise: suffix of the name, words, factor to the base unit.
PROMISES = {
    values.BYTES: ("bytes_per_second", "bytes per second", 1),
    values.COUNT: ("ios_per_second", "requests per second", 1),
    values.TIME: ("seconds", "seconds of latency", 1e-6),
}

# Middle of the name: words, and the field of ListCapacities.
CAPACITIES = {
    "": ("Declared capacity", "capacity"),
    "promised_": ("Sum of the floors", "promised"),
    "left_": ("Capacity without the floors", "left"),
}


@dataclass(frozen=True)
class State:
    """The input of the metrics; without an answer of the daemon, only counters and `failure`.

    `omitted` is the number of cgroups that are not among `uses`.
    """

    uses: list[counters.Use]
    omitted: int = 0
    properties: Dict | None = None
    devices: list[Dict] = field(default_factory=list)
    promises: list[Dict] = field(default_factory=list)
    capacities: list[Dict] = field(default_factory=list)
    iocost: set[str] = field(default_factory=set)
    failure: SutroError | None = None


async def _answers(client: Client) -> Dict:
    """The fields of State that the daemon returns; SutroError if a call fails."""
    calls = {
        "properties": client.properties(),
        "devices": client.devices(),
        "promises": client.promise_states(),
        "capacities": client.capacities(),
    }
    return dict(zip(calls, await asyncio.gather(*calls.values()), strict=True))


async def state(ranking: "Ranking") -> State:
    """The present state, with the cgroups of a ranking.

    If the daemon does not answer within ANSWERS_S, it has the failure instead.
    """
    try:
        async with asyncio.timeout(ANSWERS_S), Client() as client:
            answers = await _answers(client)
    except TimeoutError:
        text = f"sutrod did not answer within {ANSWERS_S:.0f} s"
        answers = {"failure": NoAnswer(text, "see: systemctl status sutrod")}
    except SutroError as error:
        answers = {"failure": error}
    kept, omitted = ranking.files(answers.get("promises", ()))
    return State(list(counters.uses(kept)), omitted, iocost=counters.with_iocost(), **answers)


def chosen(
    found: Sequence[Counted], promises: Iterable[Dict], most: int | None
) -> tuple[list[Counted], int]:
    """Those of at most `most` cgroups (None: all), and how many cgroups are left out.

    Cgroups with a promise come first, then those that have used the most: the sum of ns of device
    time, and of bytes on leaves with another scheduler than sutro.
    """
    names = {one.cgroup for one in found}
    if most is None or len(names) <= most:
        return list(found), 0
    promised = {promise["cgroup"] for promise in promises}
    used = dict.fromkeys(names, 0)
    for one in found:
        used[one.cgroup] += one.used
    ranked = sorted(used, key=lambda name: (name not in promised, -used[name], name))
    kept = set(ranked[:most])
    return [one for one in found if one.cgroup in kept], len(ranked) - len(kept)


class Ranking:
    """Chooses at most `most` cgroups (None: all) for one reading after the other.

    To rank cgroups, the files of all are read: once in RANKED_S, and when others than before have
    a promise. In between only the files of those that were chosen are read.
    """

    def __init__(self, most: int | None) -> None:
        self._most = most
        self._folders: list[str] = []
        self._omitted, self._until_s = 0, 0.0
        self._promised: set[str] = set()

    def files(self, promises: Sequence[Dict]) -> tuple[list[counters.File], int]:
        """The files of the chosen cgroups, and how many cgroups are left out."""
        promised = {promise["cgroup"] for promise in promises}
        if self._omitted and promised == self._promised and time.monotonic() < self._until_s:
            return counters.files(self._folders), self._omitted
        kept, self._omitted = chosen(counters.files(), promises, self._most)
        self._folders = list(dict.fromkeys(file.folder for file in kept))
        self._promised, self._until_s = promised, time.monotonic() + RANKED_S
        return kept, self._omitted


# The families.


def _gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    """A family with one value and no labels."""
    return GaugeMetricFamily("sutro_" + name, text, value=value)


def _daemon(state: State) -> Iterator[Metric]:
    """Whether the daemon answers, its version, and its last control step in seconds."""
    up = state.properties is not None
    yield _gauge("up", "1 while sutrod answers; without it guarantees do not hold.", up)
    if state.failure:
        reason = {"reason": REASONS.get(type(state.failure), "error")}
        text = "Why sutrod does not answer; the log of sutro-exporter has the whole message."
        yield InfoMetricFamily("sutro_down", text, value=reason)
    if not up:
        return
    version = {"version": state.properties["Version"]}
    yield InfoMetricFamily("sutro_build", "Version of the running sutrod.", value=version)
    dry_run = state.properties["DryRun"]
    yield _gauge("dry_run", "1 if sutrod computes weights and writes none.", dry_run)
    mistakes = len(state.properties.get("PolicyErrors", []))
    yield _gauge("policy_errors", "Mistakes in policy files.", mistakes)
    step_us = state.properties.get("ControlStepUSec", 0)
    text = "CPU time of the last control step of sutrod; 0 without guarantees."
    yield _gauge("control_step_seconds", text, step_us / 1e6)


def _leaves(state: State) -> Iterator[Metric]:
    """Leaves with kind, scheduler, and whether they have weights."""
    if state.properties is None:
        return
    info = InfoMetricFamily(
        "sutro_leaf", "Leaves: disks with a request queue.", labels=["leaf", "kind", "scheduler"]
    )
    weighted = GaugeMetricFamily(
        "sutro_leaf_weighted", "1 if the scheduler of the leaf has weights.", labels=["leaf"]
    )
    managed = GaugeMetricFamily(
        "sutro_leaf_managed", "1 if sutrod switched the leaf to sutro.", labels=["leaf"]
    )
    for device in state.devices:
        if not device["leaf"] or not device["size_bytes"]:
            continue
        node, scheduler = device["node"], device.get("scheduler", "")
        info.add_metric([node, device["kind"], scheduler], {})
        weighted.add_metric([node], scheduler in WITH_WEIGHTS or node in state.iocost)
        managed.add_metric([node], node in state.properties["ManagedLeaves"])
    yield from (info, weighted, managed)


def bounds() -> list[str]:
    """The upper bounds of the buckets, as text."""
    return [floatToGoString(bound) for bound in (*counters.BOUNDS_S, float("inf"))]


def cgroup_families() -> dict[str, Any]:
    """The families of cgroups without samples: by the keys of COUNTERS, and reads and weight."""
    families: dict[str, Any] = {
        key: CounterMetricFamily(CGROUPS + name, text + ".", labels=CGROUP_LABELS)
        for key, (name, text, _) in COUNTERS.items()
    }
    text = "Latency of reads, from the request for a slot to the completion."
    name = CGROUPS + "read_latency_seconds"
    families["reads"] = HistogramMetricFamily(name, text, labels=CGROUP_LABELS)
    text = "Weight in force on the leaf."
    families["weight"] = GaugeMetricFamily(CGROUPS + "weight", text, labels=CGROUP_LABELS)
    return families


def _cgroups(uses: Iterable[counters.Use]) -> Iterator[Metric]:
    """Counters of cgroups in base units (seconds, bytes), histograms and weights."""
    families, les = cgroup_families(), bounds()
    for use in uses:
        where = [use.cgroup, counters.unit_of(use.cgroup), use.leaf]
        for key, count in zip(counters.KEYS, use.counts, strict=True):
            if count is not None:
                families[key].add_metric(where, count * COUNTERS[key][2])
        if use.reads:
            buckets = list(zip(les, use.reads, strict=True))
            families["reads"].add_metric(where, buckets, sum_value=None)
        if use.weight is not None:
            families["weight"].add_metric(where, use.weight)
    yield from families.values()


def promise_families() -> dict[str, GaugeMetricFamily]:
    """The families of promises without samples, by name.

    Rates and latencies have a family for each kind of promise, which differ in the unit.
    """
    texts = {
        f"sutro_promise_{name}_{suffix}": f"{text}, in {words}."
        for name, text in (
            ("target", "Stated value of a floor, ceiling or latency target"),
            ("received", "Present value of a floor or latency target"),
        )
        for suffix, words, _ in PROMISES.values()
    }
    texts |= {
        "sutro_promise_granted_ratio": "Part of a floor that its leaves have the time for.",
        "sutro_promise_received_ratio": "Received rate, as a part of the granted part of a floor.",
        "sutro_promise_broken": "1 while a promise does not hold.",
    }
    families = {
        name: GaugeMetricFamily(name, text, labels=PROMISE_LABELS) for name, text in texts.items()
    }
    text = "1, with the state as a label; see org.sutro1.Manager.ListPromises."
    labels = (*PROMISE_LABELS, "state")
    return families | {PROMISE_STATE: GaugeMetricFamily(PROMISE_STATE, text, labels=labels)}


def promise_places(state: State) -> list[tuple[str, ...]]:
    """Of each promise the values of PROMISE_LABELS."""
    topology = Topology(state.devices)
    nodes = {promise["device"] for promise in state.promises}
    devices = {node: topology.find(node) for node in nodes}
    names = {node: label(device) if device else node for node, device in devices.items()}
    return [
        (one["cgroup"], one["unit"], one["key"], one["path"], names[one["device"]])
        for one in state.promises
    ]


def promise_values(
    promises: Iterable[Dict], places: Iterable[Place]
) -> Iterator[tuple[str, list[Place], list[float]]]:
    """Names of families, with the places and values there of promises that have one key.

    `places` has of each promise what stands for its labels. A name may come more than once.
    """
    by_key: dict[str, tuple[list[Place], list[Dict]]] = {}
    for promise, place in zip(promises, places, strict=True):
        where, found = by_key.setdefault(promise["key"], ([], []))
        where.append(place)
        found.append(promise)
    for key, (where, found) in by_key.items():
        kind = values.KINDS.get(key)
        if kind not in PROMISES:
            continue  # a key of a later daemon
        suffix, _, factor = PROMISES[kind]
        states = {one["state"]: one for one in found}
        broken = {state: int(fails(one)) for state, one in states.items()}
        yield "sutro_promise_broken", where, [broken[one["state"]] for one in found]
        # Of a floor in percent the rate may be unknown.
        stated = [one["value"] for one in found]
        known = [place for place, value in zip(where, stated, strict=True) if value]
        yield f"sutro_promise_target_{suffix}", known, [value * factor for value in stated if value]
        if key not in values.CEILINGS:
            got = [one["got"] * factor for one in found]
            yield f"sutro_promise_received_{suffix}", where, got
        if key in values.FLOORS:
            granted = [one["granted"] for one in found]
            yield "sutro_promise_granted_ratio", where, granted
            most = [(value or 0) * part for value, part in zip(stated, granted, strict=True)]
            entitled = [place for place, rate in zip(where, most, strict=True) if rate]
            received = [one["got"] / rate for one, rate in zip(found, most, strict=True) if rate]
            yield "sutro_promise_received_ratio", entitled, received


def promise_states(
    promises: Sequence[Dict], places: Iterable[Place]
) -> tuple[list[Place], list[str]]:
    """The places and the states of promises; `places` as in promise_values()."""
    known = [values.KINDS.get(promise["key"]) in PROMISES for promise in promises]
    states = [one["state"] for one in compress(promises, known)]
    return list(compress(places, known)), states


def _promises(state: State) -> Iterator[Metric]:
    """Target, received rate or latency, granted part, and state of each promise."""
    families, places = promise_families(), promise_places(state)
    for name, found, numbers in promise_values(state.promises, places):
        for where, number in zip(found, numbers, strict=True):
            families[name].add_metric(where, number)
    for where, word in zip(*promise_states(state.promises, places), strict=True):
        families[PROMISE_STATE].add_metric([*where, word], 1)
    yield from families.values()


def _capacities(state: State) -> Iterator[Metric]:
    """Declared capacities, the sums of their floors and the rest, in bytes or operations/s."""
    families = {
        (name, kind): GaugeMetricFamily(
            f"sutro_capacity_{name}{PROMISES[kind][0]}",
            f"{text}, in {PROMISES[kind][1]}.",
            labels=CAPACITY_LABELS,
        )
        for name, (text, _) in CAPACITIES.items()
        for kind in (values.BYTES, values.COUNT)
    }
    for one in state.capacities:
        kind, where = values.KINDS.get(one["key"]), [one["path"], one["key"]]
        for name, (_, field_) in CAPACITIES.items():
            if (name, kind) in families:
                families[name, kind].add_metric(where, one[field_])
    yield from families.values()


class Scrape:
    """All families of one reading, as prometheus_client encodes them."""

    def __init__(self, state: State) -> None:
        self.state = state

    def collect(self) -> Iterator[Metric]:
        """The families with samples, in an order that does not change."""
        found = [*self.others(), *_promises(self.state), *_cgroups(self.state.uses)]
        yield from (family for family in found if family.samples)

    def others(self) -> Iterator[Metric]:
        """The families that are not about cgroups and promises."""
        text = "Cgroups with counters that are left out; see --all in sutro-exporter(1)."
        yield from (*_daemon(self.state), *_leaves(self.state))
        yield _gauge("cgroups_omitted", text, self.state.omitted)
        yield from _capacities(self.state)
