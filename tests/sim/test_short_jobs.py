# SPDX-License-Identifier: GPL-2.0-only
"""Jobs of a second or less beside groups that were at work before: a program that starts, a command
in a shell, a timer.

Each runs in a new cgroup, of which nothing is known.  Its first request waits for those that the
drive has: the others are alone until then, and have no more there than they need.
"""

import pytest
from competing import FLOOD, NVME, SCAN, SSD, SYNC, WRITES, Client, compete, tree

BEGIN_S = 4
OTHERS_WEIGHT = 100
JOBS = {
    "4k": SYNC,
    "32k": {**SYNC, "bytes": 32768, "think_us": 300},
    "stream": {"bytes": 131072, "iodepth": 1},
    "fsync": {**SYNC, "think_us": 500, "write": 1, "flush": 1},
}
# Readahead of two requests, which become one, and a large request at a time.
STREAMS = {"readahead": {"bytes": 131072, "iodepth": 2}, "1m": {"bytes": 1 << 20, "iodepth": 1}}
OTHERS = {"writes": WRITES, "flood": FLOOD, "scan": SCAN}
# Disk, weight, seconds: the least part of the bytes that a job has alone.
CASES = {
    "ssd-1000-1s": (SSD, 1000, 1.0, 0.7),
    "ssd-200-1s": (SSD, 200, 1.0, 0.7),
    "nvme-1000-0.5s": (NVME, 1000, 0.5, 0.8),
    "nvme-200-0.5s": (NVME, 200, 0.5, 0.8),
    "nvme-200-0.25s": (NVME, 200, 0.25, 0.7),
}


def received(disk: Client, weight: int, job: Client, seconds: float, others: Client | None) -> int:
    """The bytes of a job that begins at BEGIN_S."""
    groups = [(weight, {**job, "start": BEGIN_S, "stop": BEGIN_S + seconds})]
    if others:
        groups.append((OTHERS_WEIGHT, others))
    leaf = {**disk, "nr_requests": 256}
    found = compete([leaf], *tree(groups), seconds=BEGIN_S + 2, warmup_s=1)
    return sum(found[0]["rate"])


@pytest.mark.parametrize("others", OTHERS)
@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize("case", CASES)
def test_received(case: str, job: str, others: str) -> None:
    """A job receives most of its bytes alone."""
    disk, weight, seconds, least = CASES[case]
    alone = received(disk, weight, JOBS[job], seconds, None)
    assert received(disk, weight, JOBS[job], seconds, OTHERS[others]) >= least * alone


@pytest.mark.parametrize("others", OTHERS)
@pytest.mark.parametrize("stream", STREAMS)
def test_stream(stream: str, others: str) -> None:
    """One request is enough for protection: a probe delays the second one by 0.1 s."""
    alone = received(SSD, 1000, STREAMS[stream], 0.5, None)
    assert received(SSD, 1000, STREAMS[stream], 0.5, OTHERS[others]) >= 0.55 * alone


@pytest.mark.parametrize("others", OTHERS)
@pytest.mark.parametrize("disk", [SSD, NVME], ids=["ssd", "nvme"])
def test_alone(disk: Client, others: str) -> None:
    """Others lose nothing until then."""
    rates = []
    for none in (0, 1):
        leaf = {**disk, "nr_requests": 256, "none": none}
        found = compete([leaf], *tree([(1, OTHERS[others])]), seconds=BEGIN_S, warmup_s=1)
        rates.append(found[0]["mean"])
    assert rates[0] >= 0.99 * rates[1]
