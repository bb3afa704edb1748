# SPDX-License-Identifier: LGPL-2.1-or-later
"""Latencies at logical devices, measured by BPF, against those that fio measures itself.

The disks of a stripe are FAST_US and SLOW_US slow. A read of both takes as long as the slow one:
less than the sum, and more than most of its parts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from conftest import MakeDisk
from rig import bus, sutrod
from rig.shell import run, wait_for
from rig.stack import Stack
from rig.unit import Unit

FAST_US, SLOW_US = 8000, 24000
SOON_S = 60.0
RUN_S = 2
# The limits of a bucket differ by this factor.
WIDTH = 1.125
# fio begins to count before the submission, and ends after the completion was reaped.
FIO_US = 1500
# Bits of CAP_PERFMON and CAP_BPF.
BPF_CAPABILITIES = 1 << 38 | 1 << 39
OUTPUT = Path("/run/rig-fio.json")
GO = Path("/run/rig-go")

FIO = (
    f"fio --name=job --direct=1 --time_based --runtime={RUN_S} --output-format=json "
    f"--output={OUTPUT}.part --percentile_list=50:95:99"
)
# A stack by the name of its driver.
STRIPED = {
    "dm": {"kind": "striped", "name": "lv", "over": ["ssd0", "ssd1"]},
    "md": {"kind": "md", "name": "array", "level": "raid0", "over": ["ssd0", "ssd1"]},
}

Row = dict[str, Any]
Start = Callable[[str], Unit]


@pytest.fixture
def stripe(
    request: pytest.FixtureRequest, disk: MakeDisk, stack: Callable[..., Stack], daemon: None
) -> Stack:
    """A stripe of a fast disk and a slow one, both in use by sutro."""
    disks = [
        disk("ssd", f"ssd{n}", read_us=us, write_us=us, channels=256, cache_kb=4096)
        for n, us in enumerate((FAST_US, SLOW_US))
    ]
    made = stack(disks, STRIPED[getattr(request, "param", "dm")])
    bus.use(made.top)
    return made


@pytest.fixture
def fio(units: Callable[..., Unit]) -> Iterator[Start]:
    """A unit that runs fio as soon as GO exists, and stays; with a weight it has a blkcg."""

    def start(job: str) -> Unit:
        wait = f"while [ ! -e {GO} ]; do sleep 0.1; done"
        words = f"{wait}; {FIO} {job}; mv {OUTPUT}.part {OUTPUT}; exec sleep infinity"
        return units("io", words, weight=100)

    OUTPUT.unlink(missing_ok=True)
    GO.unlink(missing_ok=True)
    yield start
    bus.call("ResetPolicy", "ss", "rig-io.service", "runtime")
    OUTPUT.unlink(missing_ok=True)
    GO.unlink(missing_ok=True)


def measured(unit: str) -> bool:
    """Its targets are measured at their volumes."""
    return {one["measured_at"] for one in bus.promises(unit)} == {"volume"}


def target(unit: str, **assignments: str) -> None:
    """Set targets and wait until they are measured."""
    bus.set_policy(unit, **assignments)
    wait_for(lambda: measured(unit), "measured at the volume", SOON_S)


def finish() -> dict[str, Any]:
    """Let fio begin, and return the results of the job when it has ended."""
    GO.touch()
    wait_for(OUTPUT.exists, "results of fio", SOON_S)
    (job,) = json.loads(OUTPUT.read_text())["jobs"]
    assert job["error"] == 0
    return job


def rows(unit: str = "rig-io.service") -> dict[str, Row]:
    """Rows of its only device, by kind of request, when the last tick has counted all."""
    found = {row["op"]: row for row in bus.call("ListLatencies", "s", unit)}
    assert {row["source"] for row in found.values()} == {"volume"}
    return found


def counted(op: str, requests: int, unit: str = "rig-io.service") -> Row:
    """The row, as soon as it has that many requests."""
    wait_for(
        lambda: rows(unit)[op]["requests"] >= requests, f"{requests} of {op}: {rows(unit)}", SOON_S
    )
    return rows(unit)[op]


def agree(row: Row, fio_ns: dict[str, Any]) -> None:
    """Percentiles are those of fio, within the width of a bucket and the time in fio itself."""
    for key, name in (("p50_us", "50.000000"), ("p95_us", "95.000000"), ("p99_us", "99.000000")):
        theirs_us = fio_ns["percentile"][name] / 1000
        assert row[key] <= theirs_us * WIDTH, (key, row[key], theirs_us)
        assert row[key] >= (theirs_us - FIO_US) / WIDTH, (key, row[key], theirs_us)


def links() -> int:
    """BPF programs that sutrod has attached."""
    count = 0
    for fd in Path(f"/proc/{sutrod.main_pid()}/fd").iterdir():
        # The daemon may close a file meanwhile.
        with suppress(FileNotFoundError):
            count += str(fd.readlink()).startswith("anon_inode:bpf_link")
    return count


# the histogram


@pytest.mark.parametrize("stripe", STRIPED, indirect=True)
def test_read_of_a_stripe(stripe: Stack, fio: Start) -> None:
    """A read of two disks takes as long as the slow one, and fio measures the same."""
    unit = fio(f"--filename={stripe.top} --rw=randread --bs=128k").unit
    target(unit, LatencyTarget=f"{stripe.top} 1s P99")
    read = finish()["read"]
    row = counted("read", read["total_ios"])
    assert row["requests"] == read["total_ios"] > 20
    agree(row, read["clat_ns"])
    assert SLOW_US <= row["p50_us"] * WIDTH and row["p50_us"] < FAST_US + SLOW_US
    assert rows()["write"]["requests"] == rows()["fsync"]["requests"] == 0
    # Text for people.
    text = run("sutroctl", "latency", unit)
    assert f"{row['requests']} requests, measured at the device" in text
    assert f"target {stripe.top} 1.00s P99: got" in text
    assert "measured at the device itself" in run("sutroctl", "explain", unit)


@pytest.mark.parametrize("stripe", STRIPED, indirect=True)
def test_fsync(stripe: Stack, fio: Start) -> None:
    """Writes and flushes are counted apart, each once."""
    unit = fio(f"--filename={stripe.top} --rw=randwrite --bs=4k --fdatasync=1").unit
    target(unit, FsyncLatencyTarget=f"{stripe.top} 1s", WriteLatencyTarget=f"{stripe.top} 1s P99")
    job = finish()
    sync_ns = job["sync"]["lat_ns"]
    row = counted("fsync", sync_ns["N"])
    assert row["requests"] == sync_ns["N"] > 10
    agree(row, sync_ns)
    row = counted("write", job["write"]["total_ios"])
    assert row["requests"] == job["write"]["total_ios"]
    agree(row, job["write"]["clat_ns"])
    assert rows()["read"]["requests"] == 0


def test_split_requests_of_a_disk(disk: MakeDisk, daemon: None, fio: Start) -> None:
    """A read that the disk takes in several requests is one read, which ends with the last."""
    one = disk("ssd", "ssd0", read_us=FAST_US)
    bus.use(one.node)
    Path("/sys/block/ssd0/queue/max_sectors_kb").write_text("256")
    unit = fio(f"--filename={one.node} --rw=randread --bs=1M").unit
    target(unit, LatencyTarget=f"{one.node} 5s")
    one.reset()
    read = finish()["read"]
    row = counted("read", read["total_ios"])
    assert row["requests"] == read["total_ios"] > 10
    assert one.truth().total.rios >= 4 * read["total_ios"]
    agree(row, read["clat_ns"])


def test_partition_and_slice(
    disk: MakeDisk, stack: Callable[..., Stack], daemon: None, fio: Start
) -> None:
    """Reads of a partition count for its disk, too, and those of a unit for its slice."""
    one = disk("ssd", "ssd0", read_us=FAST_US)
    made = stack(
        [one], {"kind": "partition", "name": "part", "over": ["ssd0"], "start_mb": 8, "size_mb": 64}
    )
    bus.use(one.node)
    unit = fio(f"--filename={made.top} --rw=randread --bs=16k").unit
    target(unit, LatencyTarget=f"{made.top} 1s")
    target("system.slice", LatencyTarget=f"{one.node} 1s")
    try:
        read = finish()["read"]
        for who in (unit, "system.slice"):
            row = counted("read", read["total_ios"], who)
            assert row["requests"] == read["total_ios"] > 20
            agree(row, read["clat_ns"])
    finally:
        bus.call("ResetPolicy", "ss", "system.slice", "runtime")


# requirements of the daemon


def test_attached_only_with_a_target(stripe: Stack, fio: Start) -> None:
    """Programs are attached while there is a target; the daemon has no right to load others."""
    assert links() == 0
    unit = fio(f"--filename={stripe.top} --rw=randread --bs=4k").unit
    for _ in range(2):
        target(unit, LatencyTarget=f"{stripe.top} 1s")
        assert links() == 3
        bus.call("ResetPolicy", "ss", unit, "runtime")
        wait_for(lambda: links() == 0, "no program is attached", SOON_S)
    status = Path(f"/proc/{sutrod.main_pid()}/status").read_text()
    held = dict(line.split() for line in status.splitlines() if line.startswith("Cap"))
    assert not any(
        int(held[name], 16) & BPF_CAPABILITIES for name in ("CapPrm:", "CapEff:", "CapInh:")
    )


# the goal


def state(unit: str) -> str:
    """Of its one promise."""
    (one,) = bus.promises(unit)
    return one["state"]


def test_target_beside_a_neighbour(stripe: Stack, units: Callable[..., Unit]) -> None:
    """A target in reach is held beside deep queues of others; one out of reach is reported."""
    reader = f"exec fio --name=db --filename={stripe.top} --direct=1 --rw=randread --bs=16k"
    hog = f"exec fio --name=hog --filename={stripe.top} --direct=1 --rw=randread --bs=64k"
    endless = "--time_based --runtime=1h --ioengine=libaio"
    db = units("db", f"{reader} {endless} --iodepth=4", weight=100).unit
    units("hog", f"{hog} {endless} --iodepth=64", weight=100)
    try:
        target(db, LatencyTarget=f"{stripe.top} 1us P90")
        wait_for(lambda: state(db) == "infeasible", "infeasible", SOON_S)
        (promise,) = bus.promises(db)
        assert promise["cause"].startswith("the P90 of its reads at /dev/dm-")
        assert promise["got"] > SLOW_US / 2
        goal_ms = 3 * promise["got"] // 1000
        target(db, LatencyTarget=f"{stripe.top} {goal_ms}ms P90")
        wait_for(lambda: state(db) == "held", "held", SOON_S)
        (promise,) = bus.promises(db)
        assert (promise["value"], promise["percentile"]) == (goal_ms * 1000, 90)
        assert promise["got"] <= promise["value"]
    finally:
        bus.call("ResetPolicy", "ss", db, "runtime")
