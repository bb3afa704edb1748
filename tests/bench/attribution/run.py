# SPDX-License-Identifier: LGPL-2.1-or-later
"""Let a cgroup use a stack, and read from the leaves which cgroups they have charged.

For each use of a stack (read or write, direct or buffered):

    everything dirty is written, caches are dropped, the leaves are at rest, their books are empty
    a process in the owner's cgroup moves a known number of bytes, in a place not used before
    buffered writes are left to the flusher: no task calls fsync, and this program has the device
    open, because the last close of a block device writes all of it back
    when no leaf has been used for a while, their books are read

The owner's cgroup stays until then. The leaves are model disks, which count the bytes that they
served for each cgroup (tests/modeldisk). Data are all bytes there, parity and copies too, except
requests marked REQ_META and leaves that hold only metadata, which are counted apart. With

    leaf d0: /owner 8 MiB, / 8 MiB of which 1 MiB REQ_META       charged_share = 8 / (8 + 7)

If a patched driver marks requests that others may wait for, and they have an owner, they are data.

udev stays away in that time: it would look into each device that was closed after writing, and have
it written back first.
"""

from __future__ import annotations

import fcntl
import math
import mmap
import os
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rig.cgroup import Group, Subtree
from rig.modeldisk import ModelDisk, Truth
from rig.result import Result
from rig.shell import in_process
from rig.shell import run as command
from rig.stack import Stack
from rig.udev import quiet_udev

from bench.attribution.scenario import Scenario
from bench.judge import TROUBLE, Say
from bench.stacks import FILL, build, sysctl

METRIC = "charged_share"
MEASURED, MISSING, BROKEN = "measured", "not measured", "error"
# The flusher comes soon, and finds old what has just been written.
SOON = {"vm.dirty_writeback_centisecs": 20, "vm.dirty_expire_centisecs": 20}
# If nothing reaches the leaves for this time, nothing is on its way any more, journals apart.
QUIET_S = 1.5
# For the same reason as rig.shell.TIMEOUT_S: a clock may leap.
REST_TIMEOUT_S = 600.0
POLL_S = 0.1
# Between places: read-ahead of one does not reach the next.
GAP_MIB = 1
# Requests that fill places are large.
FILL_KIB = 1024
# Compressible contents are compressible in each block of this size.
PAGE = 4096


@dataclass(frozen=True)
class Row:
    """One use of a stack, or why there is none; bytes by cgroup."""

    stack: str
    op: str
    mode: str
    status: str = MEASURED
    reason: str = ""
    owner: str = ""
    moved: int = 0
    data: Mapping[str, int] = field(default_factory=dict)
    metadata: Mapping[str, int] = field(default_factory=dict)

    @property
    def share(self) -> float | None:
        """Part of the data bytes at the leaves that is charged to the owner; None: no bytes."""
        whole = sum(self.data.values())
        return self.data.get(self.owner, 0) / whole if whole else None

    def result(self, drivers: str, kernel: str) -> Result:
        """The record of this row; the value is the owner's share of the data."""
        value = math.nan if self.share is None else round(self.share, 4)
        return Result(self.stack, drivers, METRIC, value, None, {
            "kernel": kernel, "op": self.op, "mode": self.mode, "charged_bytes": dict(self.data),
            "metadata_bytes": dict(self.metadata), "owner": self.owner, "moved_bytes": self.moved,
            "status": self.status, "reason": self.reason,
        })  # fmt: skip


def measure(spec: Scenario, say: Say) -> Iterator[Row]:
    """All rows of a stack, as they are measured."""
    left = spec.uses()
    lacking = [name for name in spec.needs if not _has_module(name)]
    if lacking:
        reason = f"this kernel has no {' and no '.join(lacking)}"
        yield from (Row(spec.name, op, mode, MISSING, reason) for op, mode in left)
        return
    say(f"{spec.name}: making it")
    try:
        with _standing(spec) as site:
            while left:
                op, mode = left[0]
                row = site.use(op, mode)
                left.pop(0)
                yield row
    except TROUBLE as error:
        # It could not be made or used, or could not be taken down again.
        for op, mode in left or [("", "")]:
            yield Row(spec.name, op, mode, BROKEN, str(error))


def judged(row: Row, truths: Mapping[str, Truth], spec: Scenario) -> Row:
    """The row with the counts of the leaves; without any counted bytes it is no measurement."""
    data: Counter[str] = Counter()
    metadata: Counter[str] = Counter()
    seen = 0
    for leaf, truth in truths.items():
        for cgroup, usage in truth.owners.items():
            marked = usage.bytes if leaf in spec.metadata else usage.meta_bytes
            if spec.prompt and cgroup == row.owner and leaf not in spec.metadata:
                marked = 0
            data[cgroup] += usage.bytes - marked
            metadata[cgroup] += marked
            if leaf not in spec.metadata:
                seen += usage.wbytes if row.op == "write" else usage.rbytes
    if seen < spec.least * spec.moved:
        what = f"of {spec.moved} bytes moved the leaves have seen {seen}"
        return Row(row.stack, row.op, row.mode, BROKEN, what)
    return Row(
        row.stack, row.op, row.mode, MEASURED, spec.exempt.get(row.op, ""), row.owner, spec.moved,
        {cgroup: number for cgroup, number in data.items() if number},
        {cgroup: number for cgroup, number in metadata.items() if number},
    )  # fmt: skip


def _has_module(name: str) -> bool:
    words = ["modprobe", "--dry-run", "--quiet", name]
    return subprocess.run(words, check=False).returncode == 0


@contextmanager
def _standing(spec: Scenario) -> Iterator[Site]:
    """The stack over fast leaves, filled, and a cgroup for its user."""
    with ExitStack() as undo:
        undo.enter_context(sysctl(SOON))
        disks = {}
        for name, size_mib in spec.used.items():
            disk = ModelDisk(name, "ssd", {"size_mb": size_mib})
            disks[name] = undo.enter_context(disk)
            disk.hurry()
        stack = undo.enter_context(Stack({disk.name: disk.node for disk in disks.values()}))
        tree = undo.enter_context(Subtree("attribution"))
        site = Site(spec, disks, stack, tree.child("owner"))
        site.build()
        undo.enter_context(quiet_udev())
        yield site


class Site:
    """A stack that stands, and its places: for each use one that nothing else touches."""

    def __init__(self, spec: Scenario, disks: Mapping[str, ModelDisk], stack: Stack, owner: Group):
        self._spec = spec
        self._disks = disks
        self._stack = stack
        self._owner = owner

    def build(self) -> None:
        """Make the layers, and fill places where and when the stack needs it."""
        build(self._stack, self._spec.layer, self._fill)
        if all(layer["kind"] != FILL for layer in self._spec.layer):
            self._fill(self._top)

    def use(self, op: str, mode: str) -> Row:
        """One row of the matrix."""
        with self._held():
            self._rest()
            for disk in self._disks.values():
                disk.reset()
            work = self._work(op, mode)
            in_process(work)
            self._at_rest()
            truths = {name: disk.truth() for name, disk in self._disks.items()}
        row = Row(self._spec.name, op, mode, owner=self._owner.cgroup)
        return judged(row, truths, self._spec)

    @property
    def _top(self) -> str:
        return self._stack.nodes[self._spec.top] if self._spec.top else self._stack.top

    def _place(self, top: str, op: str, mode: str) -> tuple[str, int]:
        """A file and an offset in it."""
        number = self._spec.uses().index((op, mode))
        if Path(top).is_dir():
            return f"{top}/place{number}", 0
        return top, number * (self._spec.mib + GAP_MIB) << 20

    def _fill(self, top: str) -> None:
        """Write places, and the gaps behind them, that will be read or written over."""
        spec = self._spec
        block = Block(FILL_KIB << 10, spec.compressible)
        for op, mode in spec.uses():
            if op == "write" and (spec.fill == "reads" or Path(top).is_dir()):
                continue
            file, offset = self._place(top, op, mode)
            places = range(offset, offset + (spec.mib << 20), block.size)
            _move(file, "write", "direct", block, places)
        if spec.after:
            command("sh", "-c", spec.after)

    def _work(self, op: str, mode: str) -> Callable[[], None]:
        spec = self._spec
        file, offset = self._place(self._top, op, mode)
        stride = (spec.stride_kib or spec.bs_kib) << 10
        places = range(offset, offset + spec.requests * stride, stride)
        block = Block(spec.bs_kib << 10, spec.compressible)

        def work() -> None:
            self._owner.write("cgroup.procs", 0)
            _move(file, op, mode, block, places)
            if spec.after and op == "write":
                os.sync()
                command("sh", "-c", spec.after)

        return work

    @contextmanager
    def _held(self) -> Iterator[None]:
        """The top is open, and locked: that keeps udev from reading its partition table again."""
        fd = os.open(self._top, os.O_RDONLY)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)

    def _rest(self) -> None:
        """Nothing is dirty, nothing is cached, nothing is going on."""
        os.sync()
        Path("/proc/sys/vm/drop_caches").write_text("3")
        self._at_rest()

    def _at_rest(self) -> None:
        """Wait until nothing has reached the leaves for a while."""
        end_s = time.monotonic() + REST_TIMEOUT_S
        seen, since_s = self._served(), time.monotonic()
        while time.monotonic() - since_s < QUIET_S:
            if time.monotonic() > end_s:
                raise TimeoutError(f"the leaves are still used after {REST_TIMEOUT_S:g} s")
            time.sleep(POLL_S)
            now = self._served()
            if now != seen:
                seen, since_s = now, time.monotonic()

    def _served(self) -> list[int]:
        """Bytes of each leaf, without what is marked as metadata: that may never end."""
        totals = [disk.truth().total for disk in self._disks.values()]
        return [total.bytes - total.meta_bytes for total in totals]


class Block:
    """Memory for a request of direct I/O: aligned, and with new contents for each write."""

    def __init__(self, size: int, compressible: bool):
        self.size = size
        self.memory = mmap.mmap(-1, size)
        self._random = PAGE // 4 if compressible else PAGE

    def renew(self) -> None:
        """New contents, because equal contents might be written once only."""
        for page in range(0, self.size, PAGE):
            self.memory[page : page + self._random] = os.urandom(self._random)


def _move(file: str, op: str, mode: str, block: Block, offsets: Sequence[int]) -> None:
    """Read or write a block at each offset."""
    flags = os.O_RDONLY if op == "read" else os.O_WRONLY | os.O_CREAT
    fd = os.open(file, flags | (os.O_DIRECT if mode == "direct" else 0), 0o644)
    try:
        for offset in offsets:
            if op == "read":
                done = os.preadv(fd, [block.memory], offset)
            else:
                block.renew()
                done = os.pwrite(fd, block.memory, offset)
            if done != block.size:
                raise OSError(f"{file}: {op} of {block.size} bytes at {offset} gave {done}")
    finally:
        os.close(fd)
