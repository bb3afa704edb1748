# SPDX-License-Identifier: LGPL-2.1-or-later
"""Results as a text to send in: kernel, disks without serial numbers, figures of each scheduler.

It has neither names of units, volumes and hosts, nor paths of files.
"""

from collections.abc import Iterator
from typing import Any

from .show import failures, goal_lines, leaf_text, number, number_3, values

Dict = dict[str, Any]

HEAD = "sutroctl test report, form 1"


def text(data: Dict) -> str:
    """The whole report."""
    return "\n".join(_lines(data)) + "\n"


def _lines(data: Dict) -> Iterator[str]:
    yield HEAD
    yield f"sutro {data['version']}, Linux {data['kernel']}, {data['machine']}, {data['cpus']} CPUs"
    yield f"stack: {data['stack']}; writes: {'yes' if data['write'] else 'no'}"
    for count, leaf in enumerate(data["leaves"], start=1):
        yield f"disk {count}: {leaf_text(leaf)}, scheduler {leaf['scheduler']}"
    if partial := data.get("partial"):
        yield f"PARTIAL: {partial['done']} of {partial['runs']} runs"
    yield f"{data['seconds']} s for each run; schedulers: {', '.join(data['schedulers'])}"
    for scheduler, why in data["unavailable"].items():
        # The reason has names of disks.
        yield f"{scheduler}: not run" + (" (not enabled)" if "enable" in why else "")
    for one in data["experiments"]:
        records = [record for record in data["results"] if record["scenario"] == one["name"]]
        yield ""
        yield f"{one['name']}: {one['title']}"
        yield from _rows(one, records)
    yield ""
    yield f"{data['met']} of {data['judged']} goals of sutro met"
    yield "shares: account of the elevator, bytes of equal jobs, or progress; no true device time"


def _rows(experiment: Dict, records: list[Dict]) -> Iterator[str]:
    mbps, shares, p99 = (values(records, name) for name in ("mbps", "share", "p99_us"))
    error = values(records, "account_error")
    for scheduler in dict.fromkeys(scheduler for scheduler, _ in mbps):
        mine = [shares.get((scheduler, name), {}) for name in experiment["units"]]
        line = f"  {scheduler:11} {mbps[scheduler, '']['value'] or 0:.1f} MB/s"
        if any(mine):
            shares_text = " ".join(number_3(one.get("value")) for one in mine)
            line += f"; shares {shares_text} by {mine[0].get('by', '-')}"
        latencies = [p99.get((scheduler, name), {}).get("value") for name in experiment["units"]]
        if any(latencies):
            line += f"; P99 {' '.join(number(value) for value in latencies)} us"
        if (scheduler, "") in error:
            line += f"; account error {number(error[scheduler, '']['value'])}"
        yield line
    for verdict, what, shown in goal_lines(records):
        yield f"  {verdict or '-':7} {what}: {shown}"
    for failure in failures(records):
        # A reason may have a path.
        yield f"  FAILED  {failure.partition(':')[0]}"
