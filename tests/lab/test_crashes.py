# SPDX-License-Identifier: LGPL-2.1-or-later
"""Files on a disk after power cuts, on a file system whose writes are a log."""

import json
import random
import subprocess
from pathlib import Path

import pytest
from boot import files, journal

from lab import crashes, writelog
from lab.crashes import Volume
from lab.writelog import ENTRY, FLUSH, MAGIC, SECTOR_BYTES, SUPER

OFFSET, SIZE = 1 << 20, 8 << 20
CHANGES = [
    {"setting": "floor", "value": 1, "whole": True},
    {"setting": "policy", "value": 2, "whole": True},
    {"setting": "ceiling", "value": 3, "whole": True},
    {"setting": "weight", "value": 4, "whole": True},
    {"setting": "floor", "value": 5, "whole": False},
    {"setting": "floor", "value": 5, "whole": True},
]


def text(setting: str, value: int) -> str:
    path, key = files.PLACES[setting]
    place = "/dev/lab/data " if key.startswith("Read") else ""
    return f"# {path}\n[X-Sutro]\n{key}={place}{value}\n"


def file_system(path: Path, values: dict[str, int]) -> bytes:
    """An ext4 with the files of these settings."""
    tree = path.with_suffix(".tree")
    for setting, value in values.items():
        file = tree / files.PLACES[setting][0].lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text(setting, value))
    path.write_bytes(bytes(SIZE))
    command = [
        "mkfs.ext4",
        "-q",
        "-F",
        "-b",
        "4096",
        "-U",
        "clear",
        "-E",
        "hash_seed=00000000-0000-0000-0000-000000000001",
        "-d",
        str(tree),
        str(path),
    ]
    subprocess.run(command, check=True, capture_output=True)
    return path.read_bytes()


def difference(old: bytes, new: bytes) -> list[tuple[int, bytes]]:
    """Places and contents of the blocks that differ."""
    block = 4096
    starts = range(0, SIZE, block)
    return [(s, new[s : s + block]) for s in starts if old[s : s + block] != new[s : s + block]]


def log_of(path: Path, writes: list[tuple[int, bytes] | None]) -> Path:
    """A log of writes on a disk, and of flushes."""
    data = SUPER.pack(MAGIC, 1, 0, SECTOR_BYTES).ljust(SECTOR_BYTES, b"\0")
    for write in writes:
        if write is None:
            data += ENTRY.pack(0, 0, FLUSH, 0).ljust(SECTOR_BYTES, b"\0")
            continue
        place, block = write
        head = ENTRY.pack(place // SECTOR_BYTES, len(block) // SECTOR_BYTES, 0, 0)
        data += head.ljust(SECTOR_BYTES, b"\0") + block
    path.write_bytes(data)
    return path


def mark(lines: int) -> tuple[int, bytes]:
    block = journal.MAGIC + str(lines).encode()
    return OFFSET + SIZE, block.ljust(journal.MARK_BYTES, b"\0")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A disk in the folder, and a log in which the floor becomes 5 and is flushed."""
    before = dict(floor=1, policy=2, ceiling=3, weight=4)
    old = file_system(tmp_path / "old", before)
    new = file_system(tmp_path / "new", before | {"floor": 5})
    (tmp_path / "disk").write_bytes(bytes(OFFSET) + old + bytes(1 << 20))
    writes = [(OFFSET + place, block) for place, block in difference(old, new)]
    assert writes
    return log_of(tmp_path / "log", [mark(4), None, mark(5), *writes, None, mark(6)])


def judged(log: Path, changes: list[dict]) -> list[str]:
    volume = Volume(log.with_name("disk"), OFFSET, SIZE, log.parent)
    lines = [json.dumps(one) for one in changes]
    count, problems = crashes.judge(volume, log, lines, 20, random.Random(1))
    assert count == 20
    return problems


def test_change_that_is_flushed_before_it_is_whole(log: Path) -> None:
    assert judged(log, CHANGES) == []


def test_change_that_is_called_whole_too_early(log: Path) -> None:
    """The journal has it as whole when nothing of it was written."""
    problems = judged(log, [*CHANGES[:4], CHANGES[5], CHANGES[5]])
    assert any("floor is 1, wanted one of [5]" in text for text in problems)


def test_other_value(log: Path) -> None:
    wrong = [*CHANGES[:4], *(one | {"value": 7} for one in CHANGES[4:])]
    assert any("floor is 5, wanted one of [7]" in text for text in judged(log, wrong))


def test_lines_of_the_journal_at_each_entry(log: Path) -> None:
    counts = crashes.marked(log, list(writelog.entries(log)))
    assert counts[:3] == [4, 4, 5] and set(counts[3:-1]) == {5} and counts[-1] == 6


def test_volume_without_marks(tmp_path: Path, log: Path) -> None:
    """A power cut before the first change is none of changes."""
    empty = log_of(tmp_path / "empty", [None])
    volume = Volume(tmp_path / "disk", OFFSET, SIZE, tmp_path)
    assert crashes.judge(volume, empty, [], 20, random.Random(1)) == (0, [])


def test_file_that_is_not_there(tmp_path: Path, log: Path) -> None:
    volume = Volume(tmp_path / "disk", OFFSET, SIZE, tmp_path)
    volume.after(log, [])
    assert volume.read("/etc/none") is None
    assert volume.read(files.POLICY) == text("ceiling", 3)


@pytest.mark.parametrize("cut", ["", "[X-Sutro]\n", "[X-Sutro]\nReadBandwidthMin=/dev/lab/data 1"])
def test_file_that_is_not_whole(cut: str) -> None:
    texts = {files.PLACES[one][0]: text(one, 1) for one in files.PLACES}
    texts[files.PLACES["floor"][0]] = cut
    allowed = {one: [1] for one in files.PLACES}
    assert any("is not whole" in line for line in files.problems(texts.get, allowed))
    assert len(files.problems(texts.get, allowed)) <= 2
