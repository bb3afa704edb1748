# SPDX-License-Identifier: LGPL-2.1-or-later
"""Files that the tools replace: links, modes, devices, and failures."""

import os
import stat
import threading

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


def test_the_longest_name(tmp_path):
    replace(tmp_path / ("x" * 255), b"new")


def test_metrics_to_a_link(tmp_path):
    """Without a daemon, too: sutro_up is 0."""
    (tmp_path / "link").symlink_to("sutro.prom")
    run = sutroctl("metrics", "-o", str(tmp_path / "link"))
    assert (run.status, run.err) == (0, "")
    assert "sutro_up" in (tmp_path / "sutro.prom").read_text()
