# SPDX-License-Identifier: LGPL-2.1-or-later
"""Checks of the results of tests/uml/inside/owners.py: each writer is charged for its bytes.

Of the data that the model disks were sent in a step, by the cgroup of their bios; the metadata of
file systems are not data. FS.OWNERS is the file system with split_owners 0 (inode) or 1 (folio).

FS.OWNERS.shared    part of a, which wrote half of the file; all is one cgroup's if inodes own
FS.OWNERS.private   bytes charged to a and b for their own files over those they wrote: the worse
FS.OWNERS.removed   part of the root cgroup, which is left to be charged for removed ones
btrfs.copies.DISK   part of the one cgroup that writes
btrfs.stripes       the same of all bytes that are read and written because of it, parity too
btrfs.parts         the same for the two cgroups that write
btrfs.degraded      the same for the one that reads while a disk is gone
btrfs.compressed    the same for the one that writes compressed data
btrfs.compressed.size   bytes at the disks, over those of stripes: a file as long
damaged             files that hold something else than was written
"""

from collections.abc import Iterable

from rig.modeldisk import Truth, Usage, parse_truth
from rig.result import Goal, Result

STRIPED = {
    "stripes": ("/a",), "parts": ("/a", "/b"), "degraded": ("/a",), "compressed": ("/a",),
}  # fmt: skip
SHARED = {False: Goal("shared", min=0.95), True: Goal("shared", min=0.49, max=0.51)}


def judge(result: dict) -> list[Result]:
    """A row for each of the above."""
    rows = []
    truths = {
        (one["fs"], one["split"], one["step"], disk): parse_truth(text)
        for one in result["steps"]
        for disk, text in one["disks"].items()
    }
    for (fs, split, step, disk), truth in truths.items():
        where = f"{fs}.{'folio' if split else 'inode'}.{step}"
        if step == "copies":
            rows.append(_row(f"{fs}.{step}.{disk}", _part(truth, "/a"), Goal(step, min=0.99)))
        elif step == "shared":
            rows.append(_row(where, _part(truth, "/a"), SHARED[split]))
        elif step == "private":
            worse = 2 * min(_part(truth, "/a"), _part(truth, "/b"))
            rows.append(_row(where, worse, Goal(step, min=0.99)))
        elif step == "removed":
            rows.append(_row(where, _part(truth, "/"), Goal(step, min=0.99)))
    written = {}
    for step, groups in STRIPED.items():
        disks = [truth for (_, _, name, _), truth in truths.items() if name == step]
        written[step] = sum(disk.total.wbytes for disk in disks)
        rows.append(_row(f"btrfs.{step}", _served(disks, groups), Goal(step, min=0.99)))
    size = written["compressed"] / max(1, written["stripes"])
    rows.append(_row("btrfs.compressed.size", size, Goal("compressed", max=0.7)))
    damaged = result["damaged"]
    rows.append(_row("damaged", len(damaged), Goal("damaged", max=0), {"files": damaged}))
    return rows


def _row(metric: str, value: float, goal: Goal, detail: dict | None = None) -> Result:
    return Result("owners", "none", metric, value, goal, detail or {})


def _part(truth: Truth, group: str) -> float:
    """The part of the written data that is a cgroup's."""
    return _data(truth.of(group)) / max(1, _data(truth.total))


def _served(disks: Iterable[Truth], groups: Iterable[str]) -> float:
    """The part of the bytes of all disks that is these cgroups', the metadata of others apart.

    Requests that others wait for have the mark of metadata, and an owner.
    """
    total = sum((disk.total for disk in disks), Usage())
    theirs = sum((disk.of(group) for disk in disks for group in groups), Usage())
    others = total.bytes - theirs.bytes - (total.meta_bytes - theirs.meta_bytes)
    return theirs.bytes / max(1, theirs.bytes + others)


def _data(usage: Usage) -> int:
    return usage.wbytes - usage.meta_wbytes
