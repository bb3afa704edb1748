# SPDX-License-Identifier: LGPL-2.1-or-later
"""Command lines of the jobs, and the reports of fio.

A job runs until it is stopped. fio reads and writes past the page cache, and leaves its report when
it gets SIGINT. A sequential job has a part of the device for itself. dd leaves no report.
"""

import json
import math
from typing import Any

from .experiment import Experiment, Group

Dict = dict[str, Any]

P99 = "99.000000"
FOREVER_S = 86400
# A part begins at a multiple of it.
ALIGN_BYTES = 1 << 20


class ReportError(RuntimeError):
    """A report that fio did not finish."""


def part(experiment: Experiment, group: Group, size_bytes: int) -> tuple[int, int]:
    """Offset and length of the part of a unit: sequential jobs on one medium do not meet."""
    same = [one for one in experiment.group if one.job.writes == group.job.writes]
    streams = [one.name for one in same if one.job.is_sequential]
    if group.name not in streams:
        return 0, size_bytes // ALIGN_BYTES * ALIGN_BYTES
    length = size_bytes // len(streams) // ALIGN_BYTES * ALIGN_BYTES
    return length * streams.index(group.name), length


def command(
    experiment: Experiment, group: Group, medium: str, size_bytes: int, output: str
) -> list[str]:
    """The words that start the job of a unit on a device or file of that size."""
    offset, length = part(experiment, group, size_bytes)
    job = group.job
    if job.tool == "dd":
        return _dd(medium, job.bs_bytes, offset, length)
    number = [one.name for one in experiment.group].index(group.name)
    keys = {
        "name": group.name, "filename": medium, "rw": job.rw, "bs": job.bs, "iodepth": job.iodepth,
        "offset": offset, "size": length, "ioengine": "libaio", "direct": 1, "norandommap": 1,
        "randseed": number + 1, "time_based": 1, "runtime": FOREVER_S,
        "ramp_time": f"{round(experiment.ramp_s * 1000)}ms", "percentile_list": "50:99:99.9",
        "output-format": "json", "output": output,
    }  # fmt: skip
    if job.think_us:
        keys["thinktime"] = job.think_us
    words = [f"--{key}={value}" for key, value in keys.items()]
    return ["fio", *words, "--thread", *([] if job.writes else ["--readonly"])]


def _dd(medium: str, bs_bytes: int, offset: int, length: int) -> list[str]:
    words = f"if={medium} of=/dev/null bs={bs_bytes} skip={offset // bs_bytes}"
    one = f"dd {words} count={length // bs_bytes} iflag=direct status=none"
    return ["/bin/sh", "-c", f"while {one}; do :; done"]


def fill_command(file: str, size_bytes: int) -> list[str]:
    """Write a whole file: blocks that were never written are read without a disk."""
    keys = {
        "name": "fill", "filename": file, "rw": "write", "bs": "1m", "iodepth": 8,
        "size": size_bytes, "ioengine": "libaio", "direct": 1, "end_fsync": 1,
    }  # fmt: skip
    return ["fio", *(f"--{key}={value}" for key, value in keys.items())]


def report(text: str) -> Dict:
    """The job in a report of fio, which notes may precede."""
    try:
        found = json.loads(text[text.index("{") :])["jobs"][0]
    except (ValueError, LookupError, TypeError):
        raise ReportError(f"fio left no report: {text.strip()[:80] or 'no output'}") from None
    if found.get("error"):
        raise ReportError(f"fio reports error {found['error']}")
    return found


def p99_us(job: Dict) -> float:
    """P99 of the latencies of a job; no number if nothing was finished."""
    found = [math.nan]
    for way in ("read", "write"):
        percentiles = job.get(way, {}).get("clat_ns", {}).get("percentile", {})
        if P99 in percentiles and job[way].get("total_ios", 1):
            found.append(percentiles[P99] / 1e3)
    return max(found, key=lambda value: -1.0 if math.isnan(value) else value)
