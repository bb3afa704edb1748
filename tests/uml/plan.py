# SPDX-License-Identifier: LGPL-2.1-or-later
"""From a scenario and a scheduler to a plan: files to write, commands to start, and when.

inside/run.py follows plans and does not depend on scenarios or schedulers. Here are the differences
of schedulers: the files of weights, the settings of a comparison, and iocost's model.

iocost's model is computed from the numbers of the model disk, as the best that an administrator
could have measured (tools/cgroup/iocost_coef_gen.py runs fio for this):

    flash   bytes/s: the bus, or all channels at work on 16 KiB pages, whichever is less; requests/s
            of 4 KiB: likewise; sequential and random are the same
    hdd     bytes/s: the media rate; sequential requests/s: 4 KiB at that rate; random requests/s
            depend on how the drive orders its queue and are measured, with a full one

Its quality of service leaves the rate free between half and one and a half of the model, so that an
error of the model costs less: the 95th percentile of latency shall be what a full queue of the
device takes. It works above mq-deadline, with the scenario's nr_requests.
"""

import shlex
from collections.abc import Mapping

from .scenario import Event, Group, Job, Scenario

DISK = "d0"
QUEUE = f"/sys/block/{DISK}/queue"
WEIGHT_FILES = {"sutro": "io.sutro.weight", "bfq": "io.bfq.weight", "iocost": "io.weight"}
WEIGHT_MAX = {"bfq": 1000}
KIB = 1024
# Defaults of modeldisk (modeldisk-configfs.c), as far as a model of it needs them.
DEFAULTS = {
    "hdd": {"bandwidth_kbps": 150000, "queue_depth": 32},
    "ssd": {"channels": 16, "read_us": 80, "write_us": 200, "bus_kbps": 540000, "queue_depth": 32},
    "nvme": {"channels": 128, "read_us": 70, "write_us": 200, "bus_kbps": 3400000,
             "queue_depth": 512},
}  # fmt: skip
PAGE = 16 * KIB
# Keys of fio for data that are not all over the disk.
ELSEWHERE = {"offset", "filename", "directory"}
# iocost is no elevator. Above none it has only the device's own tags, for which its groups compete
# without iocost.
ELEVATOR = {"iocost": "mq-deadline"}


def calibration(scenario: Scenario) -> Scenario | None:
    """The rates, in requests/s, to measure for iocost's model of a scenario's disk."""
    if scenario.disk["kind"] != "hdd":
        return None
    job = Job(fio={"rw": "randread", "bs": "4k", "iodepth": 64})
    disk = dict(scenario.disk)
    return Scenario(
        name="calibration", disk=disk, nr_requests=64,
        group=(Group("all", job=(job,)),), measure_s=20,
    )  # fmt: skip


def make(
    scenario: Scenario,
    scheduler: str,
    only: str | None = None,
    random_iops: float = 0.0,
    baseline: bool = False,
) -> dict:
    """The plan of a run; only: the one group whose jobs run; random_iops: by calibration().

    baseline: the commands of that run before the jobs begin."""
    groups = [group for group in scenario.group if only is None or group.name == only]
    jobs = []
    for number, (group, job) in enumerate(_running(scenario)):
        if group in groups:
            jobs.append(_job(scenario, group, job, number))
    until = [job["name"] for job in jobs if job["group"] == f"/{scenario.until}"]
    return {
        "seed": scenario.seed,
        "disks": {f"d{n}": _numbers(scenario, n) for n in range(scenario.disks)},
        "prepare": list(scenario.prepare),
        "partitions": _partitions(scenario),
        "settings": {
            f"d{n}": _settings(scenario, scheduler, random_iops, f"d{n}")
            for n in range(scenario.disks)
        },
        "groups": [_group(scenario, group, scheduler) for group in scenario.group],
        "baseline": list(scenario.baseline) if baseline else [],
        "jobs": jobs,
        "changes": [_change(scenario, event, scheduler) for event in scenario.event],
        "samples_s": _samples(scenario),
        "until": until[0] if until else None,
        "timeout_s": scenario.timeout_s,
        "stat": scheduler == "sutro",
        "locks": scenario.counts_locks,
        "readings": dict(scenario.readings),
    }


def weight_of(scheduler: str, weight: int) -> int:
    """A weight as a scheduler takes it."""
    return min(weight, WEIGHT_MAX.get(scheduler, 10000))


def _running(scenario: Scenario) -> list[tuple[Group, Job]]:
    return [(group, job) for group in scenario.group for job in group.job]


def _numbers(scenario: Scenario, number: int) -> list[list[object]]:
    """Attributes of a disk, the kind first: it loads defaults. Each disk has a seed of its own."""
    numbers = dict(scenario.disk)
    kind = numbers.pop("kind")
    if number:
        numbers["seed"] = scenario.seed + number
    return [["kind", kind], *([key, value] for key, value in numbers.items())]


def _settings(
    scenario: Scenario, scheduler: str, random_iops: float, disk: str
) -> list[list[object]]:
    queue = QUEUE.replace(DISK, disk)
    found: list[list[object]] = [[f"{queue}/scheduler", ELEVATOR.get(scheduler, scheduler)]]
    if ELEVATOR.get(scheduler, scheduler) != "none":
        # Without an elevator the slots are the device's own tags and cannot grow beyond them.
        found.append([f"{queue}/nr_requests", scenario.nr_requests])
    if scheduler == "bfq":
        found.append([f"{queue}/iosched/low_latency", 0])
    if scheduler == "iocost":
        found.append(["/sys/fs/cgroup/io.cost.model", iocost_model(scenario.disk, random_iops)])
        found.append(["/sys/fs/cgroup/io.cost.qos", iocost_qos(scenario.disk, random_iops)])
    for key, value in scenario.knobs.get(scheduler, {}).items():
        found.append([f"{queue}/iosched/{key}", value])
    return found


def _group(scenario: Scenario, group: Group, scheduler: str) -> dict:
    files: list[list[object]] = []
    if scheduler in WEIGHT_FILES:
        files.append([WEIGHT_FILES[scheduler], weight_of(scheduler, group.weight)])
    if group.class_ and scheduler == "sutro":
        files.append(["io.sutro.class", group.class_])
    inner = any(other.name.startswith(f"{group.name}/") for other in scenario.group)
    return {"path": group.path, "inner": inner, "files": files}


def _change(scenario: Scenario, event: Event, scheduler: str) -> dict:
    writes: list[list[object]] = []
    for name, weight in event.weight.items():
        if scheduler in WEIGHT_FILES:
            file = f"/sys/fs/cgroup/{name}/{WEIGHT_FILES[scheduler]}"
            writes.append([file, weight_of(scheduler, weight)])
    for key, value in event.disk.items():
        writes += [
            [f"/sys/kernel/config/modeldisk/d{n}/{key}", value] for n in range(scenario.disks)
        ]
    return {"at_s": event.at_s, "writes": writes}


def _samples(scenario: Scenario) -> list[float]:
    """From the end of the warm-up to the end, both included; or when the awaited job begins."""
    if scenario.until:
        (waited,) = [g for g in scenario.group if g.name == scenario.until]
        return [waited.job[0].start_s]
    if not scenario.sample_ms:
        return [scenario.warmup_s, scenario.end_s]
    count = round(scenario.measure_s * 1000 / scenario.sample_ms)
    step_s = scenario.measure_s / count
    return [round(scenario.warmup_s + number * step_s, 6) for number in range(count + 1)]


# ---- jobs ----


def _job(scenario: Scenario, group: Group, job: Job, number: int) -> dict:
    name = f"{group.name.replace('/', '-')}-{number}"
    return {
        "name": name,
        "group": group.path,
        "start_s": job.start_s,
        "pause_s": list(job.pause_s),
        "fio": bool(job.fio),
        "command": _fio(scenario, job, name, number) if job.fio else job.command,
    }


def _fio(scenario: Scenario, job: Job, name: str, number: int) -> str:
    """A command line of fio that runs until it is stopped, or for the time in its keys."""
    keys: dict[str, object] = {
        "name": name, "filename": f"/dev/{DISK}", "direct": 1, "ioengine": "libaio",
        "randseed": number + 1, "clocksource": "clock_gettime", "percentile_list": "50:99:99.9",
        "output-format": "json", "output": f"/tmp/{name}.json",
    }  # fmt: skip
    if scenario.until is None:
        keys |= {"time_based": 1, "runtime": 100000, "ramp_time": _ramp(scenario, job)}
    if "directory" in job.fio:
        del keys["filename"]
    keys |= _place(scenario, job, number) | job.fio
    words = [f"--{key}={value}" for key, value in keys.items()] + ["--thread", "--group_reporting"]
    return "exec env LD_PRELOAD=/mnt/fio-clock.so fio " + shlex.join(words)


def _streams(scenario: Scenario) -> list[int]:
    """The places of streams among all jobs."""
    return [n for n, (_, job) in enumerate(_running(scenario)) if _sequential(job)]


def _place(scenario: Scenario, job: Job, number: int) -> dict[str, object]:
    """The part of the disk for a job, if it is a stream; number: its place among all jobs.

    Streams do not meet: each has a part for itself. Where it is buffered, that is a partition.
    On the disk itself, a direct request would wait until the dirty pages in its place are written,
    and fsync() for all of them, whatever the scheduler does.
    """
    streams = _streams(scenario)
    if number not in streams or ELSEWHERE & set(job.fio):
        return {}
    at, of = streams.index(number), len(streams)
    if not job.fio.get("direct", 1):
        return {"filename": f"/dev/{DISK}p{1 + at}"}
    return {"offset": f"{100 * at // of}%", "size": f"{max(1, 100 // of)}%"}


def _partitions(scenario: Scenario) -> list[list[int]]:
    """The partitions of buffered streams: a number, and which part of how many it is."""
    streams, jobs = _streams(scenario), [job for _, job in _running(scenario)]
    return [
        [1 + at, at, len(streams)]
        for at, number in enumerate(streams)
        if "filename" in _place(scenario, jobs[number], number)
    ]


def _ramp(scenario: Scenario, job: Job) -> str:
    """fio's latencies count from the end of the warm-up on; it takes 0.3 s to begin itself."""
    return f"{max(0, round((scenario.warmup_s - job.start_s) * 1000) - 300)}ms"


def _sequential(job: Job) -> bool:
    return job.fio.get("rw") in ("read", "write")


# ---- iocost ----


def _disk(disk: Mapping[str, object]) -> dict:
    return {**DEFAULTS[str(disk["kind"])], **disk}


def _rates(disk: Mapping[str, object], random_iops: float) -> dict[str, float]:
    """bytes/s, sequential and random requests/s of 4 KiB, for reads (r) and writes (w)."""
    n = _disk(disk)
    if n["kind"] == "hdd":
        bps = n["bandwidth_kbps"] * KIB
        one = {"bps": bps, "seqiops": bps / (4 * KIB), "randiops": random_iops}
        return {f"{way}{key}": value for way in "rw" for key, value in one.items()}
    rates = {}
    for way, latency in (("r", "read_us"), ("w", "write_us")):
        pages_s = n["channels"] * 1e6 / n[latency]
        bus = n["bus_kbps"] * KIB
        iops = min(pages_s, bus / (4 * KIB))
        rates |= {f"{way}bps": min(bus, pages_s * PAGE)}
        rates |= {f"{way}seqiops": iops, f"{way}randiops": iops}
    return rates


def iocost_model(disk: Mapping[str, object], random_iops: float) -> str:
    """The line for io.cost.model; {devno} stands for the disk."""
    rates = _rates(disk, random_iops).items()
    numbers = " ".join(f"{key}={round(value)}" for key, value in rates)
    return f"{{devno}} ctrl=user model=linear {numbers}"


def iocost_qos(disk: Mapping[str, object], random_iops: float) -> str:
    """The 95th percentile may be what a full queue of 64 KiB takes."""
    n, rates = _disk(disk), _rates(disk, random_iops)
    one_s = max(64 * KIB / rates["rbps"], 1 / rates["rrandiops"])
    latency_us = round(1e6 * n["queue_depth"] * one_s)
    return (
        f"{{devno}} enable=1 ctrl=user rpct=95.00 rlat={latency_us} wpct=95.00 wlat={latency_us} "
        "min=50.00 max=150.00"
    )
