# SPDX-License-Identifier: LGPL-2.1-or-later
"""The counters of the elevator: io.sutro.stat and io.sutro.weight of all cgroups.

They are read from the files, not over the bus: every user may read them, they cost the daemon
nothing, and they are there while no daemon runs. Documentation/ABI has their format. The counters
of a cgroup are its own, without those of the cgroups below it.

Of leaves with another scheduler than sutro, files() reads io.stat of the kernel instead, which has
bytes and requests only. Without the module these are all leaves.

files() reads all cgroups, and uses() the numbers of some; latencies() reads those of one unit.

A cgroup may have any name. It is shown as by the daemon, with "?" for each byte that is not UTF-8
or belongs to a control character, and cgroups of equal shown names count as one.
"""

import os
import re
from collections.abc import Container, Iterable, Iterator
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from . import units

# Of the machine; tests have one of their own.
ROOT = Path("/")

# The histogram of the kernel has half octaves, from 2^14 ns. Whole octaves are enough for a
# percentile over time, and half the series.
BOUNDS_S = [2**power / 1e9 for power in range(15, 34)]
COUNTS = 40
# More than a line of a leaf.
PIECE_BYTES = 1 << 14

# Counters that are exported.
KEYS = ("time_ns", "rbytes", "wbytes", "rios", "wios", "wait_ns", "busy_ns")
TIME = re.compile(r" time_ns=([0-9]+)")
# A line as the elevator writes it: the leaf, the counters in this order, and reads by latency.
LINES = re.compile(
    r"^(\S+)" + "".join(rf".*? {key}=([0-9]+)" for key in KEYS) + r".*? rlat=([0-9,]+)",
    re.MULTILINE,
).findall

# Control characters, bytes that are not UTF-8, and characters that D-Bus does not transport.
NOT_SHOWN = re.compile(
    "[\0-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef"
    + "".join(chr(plane << 16 | last) for plane in range(17) for last in (0xFFFE, 0xFFFF))
    + "]"
)

# The counters of KEYS, with times in ns; None for each that the kernel does not count.
Counts = tuple[int | None, ...]
# Reads by latency, in COUNTS half octaves, by folder of a cgroup and node of a leaf.
Latencies = dict[tuple[str, str], list[int]]


class Use(NamedTuple):
    """The use of a leaf by a cgroup.

    `reads` are counts up to each bound of BOUNDS_S, then of all; `weight` is None without a line of
    io.sutro.weight.
    """

    cgroup: str
    leaf: str
    counts: Counts
    reads: list[int] | None
    weight: int | None

    @property
    def used(self) -> int:
        """Device time in ns; on leaves with another scheduler, bytes."""
        return _used(self.counts)


class File(NamedTuple):
    """The lines of io.sutro.stat of a cgroup, by the elevator, or of io.stat.

    `folder` is that of the cgroup, and `cgroup` its shown name.
    """

    folder: str
    cgroup: str
    text: str
    by_elevator: bool

    @property
    def used(self) -> int:
        """As in Use, of all leaves."""
        if self.by_elevator:
            return sum(map(int, TIME.findall(self.text)))
        return sum(_used(_counts(line)) for line in self.text.splitlines())


def shown(cgroup: str) -> str:
    """The name of a cgroup as the daemon shows it."""
    if cgroup.isascii() and cgroup.isprintable():
        return cgroup
    return NOT_SHOWN.sub(lambda found: "?" * len(os.fsencode(found[0])), cgroup)


def unit_of(cgroup: str) -> str:
    """The unit of a cgroup or of the nearest one above; "" if systemd made neither."""
    if cgroup == "/":
        return "-.slice"
    for name in reversed(cgroup.split("/")):
        # systemd puts "_" before a name that could be a file of the kernel.
        name = name.removeprefix("_")
        if units.suffix(name) in units.INTERFACES:
            return name
    return ""


def _cgroups(folder: str) -> Iterator[str]:
    """The folders of a cgroup and of all below it, without those that are removed meanwhile.

    FileNotFoundError without the cgroup itself.
    """
    os.stat(folder)
    left = [folder]
    while left:
        yield (folder := left.pop())
        try:
            # A directory of cgroupfs has a link for each one below it, so most need no list.
            if os.stat(folder).st_nlink == 2:
                continue
            with os.scandir(folder) as entries:
                left += [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
        except FileNotFoundError:
            pass  # removed meanwhile


def _text(path: str) -> str:
    """The text of a kernel file; "" where there is none, as in a cgroup without the controller."""
    return _text_or_none(path) or ""


def _text_or_none(path: str) -> str | None:
    """The text of a kernel file; None where there is none."""
    try:
        # A scrape opens a file of each cgroup: a file object would cost as much again.
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        text = piece = os.read(file, PIECE_BYTES)
        # The kernel returns such a file at once, as far as there is room.
        while len(piece) == PIECE_BYTES:
            text += (piece := os.read(file, PIECE_BYTES))
        return text.decode("ascii", "replace")
    except OSError:
        return None  # the cgroup was removed meanwhile
    finally:
        os.close(file)


def _counts(line: str) -> Counts:
    """The numbers in words like `rbytes=4096` of a line, in the order of KEYS."""
    found = dict(word.partition("=")[::2] for word in line.split()[1:])
    words = [found.get(key, "") for key in KEYS]
    return tuple([int(word) if word.isdecimal() else None for word in words])


def _used(counts: Counts) -> int:
    """The device time in ns; where the kernel counts none, bytes."""
    time_ns, read_bytes, written_bytes = counts[:3]
    return (read_bytes or 0) + (written_bytes or 0) if time_ns is None else time_ns


def _latencies(text: str) -> list[int] | None:
    """The counts of the word `rlat=` in a line; None without that word."""
    _, found, text = text.partition(" rlat=")
    return _half_octaves(text.partition(" ")[0]) if found else None


def _half_octaves(text: str) -> list[int]:
    """Numbers between commas, as many as COUNTS."""
    numbers = text.split(",")
    try:
        counts = list(map(int, numbers))
    except ValueError:
        counts = [int(number) for number in numbers if number.isdecimal()]
    return counts if len(counts) == COUNTS else (counts + [0] * COUNTS)[:COUNTS]


def _reads(counts: list[int]) -> list[int]:
    """Counts of half octaves up to each bound of BOUNDS_S, then of all."""
    sums = list(accumulate(counts))
    # The first bound covers the counts 0 to 2, each further bound two more.
    return [*sums[2 : COUNTS - 1 : 2], sums[-1]]


def _lines(text: str) -> Iterator[tuple[str, Counts, list[int] | None]]:
    """Of each line the number of the leaf, the counters, and the reads, as in Use."""
    lines = text.splitlines()
    found = LINES(text)
    if len(found) == len(lines):
        for line in found:
            yield line[0], tuple(map(int, line[1:-1])), _reads(_half_octaves(line[-1]))
        return
    # Of io.stat, or of another version of the module.
    for line in filter(None, lines):
        half_octaves = _latencies(line)
        reads = None if half_octaves is None else _reads(half_octaves)
        yield line.partition(" ")[0], _counts(line), reads


def _weights(text: str) -> dict[str, int]:
    """Weights by device number, and by the word `default`."""
    lines = (line.split() for line in text.splitlines())
    return {words[0]: int(words[1]) for words in lines if len(words) == 2 and words[1].isdecimal()}


class _Leaves:
    """Nodes of leaves by their numbers."""

    def __init__(self) -> None:
        self._nodes: dict[str, str] = {}
        self._leaf: dict[str, bool] = {}
        self._elevator: dict[str, bool] = {}

    def has(self, devno: str) -> bool:
        """Whether the device is a leaf: it stands on no other one."""
        if devno not in self._leaf:
            try:
                slaves = os.listdir(ROOT / "sys/dev/block" / devno / "slaves")
            except OSError:
                slaves = []  # a partition, or the device has gone
            self._leaf[devno] = not slaves
        return self._leaf[devno]

    def has_elevator(self, devno: str) -> bool:
        """Whether the scheduler of the device is sutro."""
        if devno not in self._elevator:
            text = _text(f"{ROOT}/sys/dev/block/{devno}/queue/scheduler")
            self._elevator[devno] = "[sutro]" in text
        return self._elevator[devno]

    def node(self, devno: str) -> str:
        """The node of a device number, from sysfs; of a device that has gone, its number."""
        if devno not in self._nodes:
            try:
                target = os.readlink(ROOT / "sys/dev/block" / devno)
            except OSError:
                target = devno  # the device has gone, and its last line is still there
            self._nodes[devno] = "/dev/" + os.path.basename(target).replace("!", "/")
        return self._nodes[devno]


def _texts(folders: Iterable[str], file: str) -> dict[str, str]:
    """The texts of a file by the folder, of those cgroups that have it."""
    texts = {folder: _text_or_none(f"{folder}/{file}") for folder in folders}
    return {folder: text for folder, text in texts.items() if text is not None}


def files(folders: list[str] | None = None) -> list[File]:
    """The files of the cgroups with these folders (None: of all cgroups)."""
    top = str(ROOT / "sys/fs/cgroup")
    if folders is None:
        # A container may have no cgroup files.
        folders = list(_cgroups(top)) if os.path.isdir(top) else []
    found = [
        File(folder, shown(folder.removeprefix(top)) or "/", text, True)
        for folder, text in _texts(folders, "io.sutro.stat").items()
        if text
    ]
    return found + _files_of_kernel(top, folders, found)


def _files_of_kernel(top: str, folders: list[str], counted: list[File]) -> list[File]:
    """The lines of io.stat about leaves that the elevator does not count.

    Of cgroups without another one with that file below. To read a thousand of these files takes
    some 17 ms, so they are read only if the root cgroup, which counts all devices, has such a leaf.

    The file counts the cgroups below, too. A cgroup above others with the controller has no
    process of its own, except the root cgroup, whose file counts the whole machine.
    """
    leaves = _Leaves()

    def others(text: str) -> Iterator[str]:
        """The lines about leaves with another scheduler."""
        for line in text.splitlines():
            devno, _, rest = line.partition(" ")
            if rest.strip() and leaves.has(devno) and not leaves.has_elevator(devno):
                yield line

    whole = _text_or_none(f"{top}/io.stat")
    if whole is not None and not any(others(whole)):
        return []
    # The elevator still has lines of a leaf that was switched to another scheduler a moment ago.
    known = {line.partition(" ")[0] for file in counted for line in file.text.splitlines()}
    texts = _texts(folders, "io.stat")
    above = {top, *map(os.path.dirname, texts)}
    found = []
    for folder, text in texts.items():
        kept = [line for line in others(text) if line.partition(" ")[0] not in known]
        if folder not in above and kept:
            cgroup = shown(folder.removeprefix(top))
            found.append(File(folder, cgroup, "\n".join(kept), False))
    return found


def uses(found: Iterable[File]) -> Iterable[Use]:
    """The use of each leaf by each cgroup, since the leaf was switched to the scheduler.

    On a leaf with another scheduler, since the cgroup was made, and without a weight.
    """
    by_name: dict[tuple[str, str], Use] = {}
    for use in _uses(found):
        where = (use.cgroup, use.leaf)
        by_name[where] = _sum(by_name[where], use) if where in by_name else use
    return by_name.values()


def _sum(one: Use, other: Use) -> Use:
    """The use of two cgroups of one shown name; the weight is that of the first."""
    pairs = zip(one.counts, other.counts, strict=True)
    sums = [None if a is None and b is None else (a or 0) + (b or 0) for a, b in pairs]
    reads = one.reads or other.reads
    if one.reads and other.reads:
        reads = [sum(counts) for counts in zip(one.reads, other.reads, strict=True)]
    return one._replace(counts=tuple(sums), reads=reads)


def _uses(found: Iterable[File]) -> Iterator[Use]:
    """As uses(), with cgroups of equal names one after the other."""
    leaves = _Leaves()
    for file in found:
        weights, weight = dict[str, int](), None
        if file.by_elevator:
            weights = _weights(_text(f"{file.folder}/io.sutro.weight"))
        for devno, counts, reads in _lines(file.text):
            if file.by_elevator:
                weight = weights.get(devno, weights.get("default"))
            yield Use(file.cgroup, leaves.node(devno), counts, reads, weight)


def read() -> Iterable[Use]:
    """The use of each leaf by each cgroup."""
    return uses(files())


def has_counters(cgroup: str) -> bool:
    """Whether the elevator counts for a cgroup; FileNotFoundError without the cgroup."""
    folder = f"{ROOT}/sys/fs/cgroup{cgroup}"
    os.stat(folder)
    return os.path.exists(folder + "/io.sutro.stat")


def latencies(cgroup: str, nodes: Container[str]) -> Latencies:
    """Reads by latency of a cgroup and of those below it, on some leaves.

    FileNotFoundError without the cgroup.
    """
    top = f"{ROOT}/sys/fs/cgroup"
    leaves = _Leaves()
    found: Latencies = {}
    for folder in _cgroups(top + cgroup):
        lines = _text(folder + "/io.sutro.stat").splitlines()
        for line in filter(None, lines):
            node, counts = leaves.node(line.partition(" ")[0]), _latencies(line)
            if node in nodes and counts:
                found[folder, node] = counts
    return found


def p99_us(now: Latencies, before: Latencies) -> int:
    """P99 of the reads between two readings: the end of its half octave; 0 without reads."""
    counts = [0] * COUNTS
    for where, mine in now.items():
        for number, count in enumerate(mine):
            old = before[where][number] if where in before else 0
            # A counter that fell began anew, with the scheduler of the leaf or after 2^32 reads.
            counts[number] += count - old if count >= old else count
    sums = list(accumulate(counts))
    if not sums[-1]:
        return 0
    number = next(n for n, count in enumerate(sums) if count >= 0.99 * sums[-1])
    return (1 << (14 + number // 2)) * (3 if number % 2 else 2) // 2000


def with_iocost() -> set[str]:
    """Nodes of leaves on which io.cost of the kernel is enabled: these have weights, too."""
    lines = map(str.split, _text(str(ROOT / "sys/fs/cgroup/io.cost.qos")).splitlines())
    leaves = _Leaves()
    return {leaves.node(words[0]) for words in lines if "enable=1" in words}
