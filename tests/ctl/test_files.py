# SPDX-License-Identifier: LGPL-2.1-or-later
"""Files that the tools replace: links, modes, devices, failures, and power cuts."""

import errno
import os
import stat
import threading
from pathlib import Path

import pytest
from conftest import sutroctl
from fakemachine import PATIENCE_S
from sutro.errors import SutroError
from sutro.files import replace


def mode(file):
    return stat.S_IMODE(file.stat().st_mode)


@pytest.mark.parametrize("permissions", [0o600, 0o640, 0o664])
def test_a_file_keeps_its_mode(tmp_path, permissions):
    file = tmp_path / "a"
    file.write_text("old")
    file.chmod(permissions)
    replace(file, b"new")
    assert (file.read_text(), mode(file)) == ("new", permissions)
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("is_there", [True, False])
def test_a_link_is_followed(tmp_path, is_there):
    """The new file is in the folder of the target, which may be on another file system."""
    target, link = tmp_path / "there" / "a", tmp_path / "here" / "a"
    for folder in (target.parent, link.parent):
        folder.mkdir()
    link.symlink_to("../there/a")
    if is_there:
        target.write_text("old")
    replace(link, b"new")
    assert link.is_symlink() and target.read_text() == "new"
    assert list(target.parent.iterdir()) == [target]


def test_a_fifo_is_written_to(tmp_path):
    fifo, received = tmp_path / "fifo", []
    os.mkfifo(fifo)
    reader = threading.Thread(target=lambda: received.append(fifo.read_bytes()), daemon=True)
    reader.start()
    replace(fifo, b"new")
    reader.join(PATIENCE_S)
    assert received == [b"new"] and stat.S_ISFIFO(fifo.stat().st_mode)


def test_a_device_is_written_to():
    """/dev/full is not replaced by a file; its driver reports the failure."""
    with pytest.raises(SutroError, match="^/dev/full: No space left on device$"):
        replace("/dev/full", b"new")
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("folder", "this is no regular file"),
        ("file/a", "Not a directory"),
        ("gone/a", "No such file or directory"),
        ("x" * 256, "File name too long"),
        ("loop", "Too many levels of symbolic links"),
    ],
)
def test_failures(tmp_path, name, expected):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("old")
    (tmp_path / "loop").symlink_to("loop")
    before = sorted(tmp_path.iterdir())
    with pytest.raises(SutroError) as caught:
        replace(tmp_path / name, b"new")
    assert caught.value.message == f"{tmp_path / name}: {expected}"
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("is_there", [True, False])
def test_a_power_cut_leaves_the_old_file_or_the_new_one(tmp_path, monkeypatch, is_there):
    """The new file is at the disk before it has the name, and the name before replace() returns."""
    file, calls = tmp_path / "a", []
    if is_there:
        file.write_text("old")
    fsync, rename = os.fsync, os.rename

    def noted_fsync(descriptor):
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        calls.append(("fsync", path, path.is_file() and path.read_text()))
        fsync(descriptor)

    def noted_rename(source, target):
        calls.append(("rename", Path(source), Path(target)))
        rename(source, target)

    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(os, "rename", noted_rename)
    replace(file, b"new")
    new = calls[0][1]
    assert calls == [
        ("fsync", new, "new"),
        ("rename", new, file),
        ("fsync", tmp_path, False),
    ]


def test_a_failure_of_the_disk_keeps_the_old_file(tmp_path, monkeypatch):
    file = tmp_path / "a"
    file.write_text("old")

    def failing(_descriptor):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", failing)
    with pytest.raises(SutroError, match=f"^{file}: Input/output error$"):
        replace(file, b"new")
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]


def test_the_longest_name(tmp_path):
    replace(tmp_path / ("x" * 255), b"new")


def test_metrics_to_a_link(tmp_path):
    """Without a daemon, too: sutro_up is 0."""
    (tmp_path / "link").symlink_to("sutro.prom")
    run = sutroctl("metrics", "-o", str(tmp_path / "link"))
    assert (run.status, run.err) == (0, "")
    assert "sutro_up" in (tmp_path / "sutro.prom").read_text()
