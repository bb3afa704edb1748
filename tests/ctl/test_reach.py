# SPDX-License-Identifier: LGPL-2.1-or-later
"""Paths in and out of reach of sutrod, on a fake machine; real mounts: tests/vm/test_reach.py."""

import contextlib
import os
import socket
import threading

import pytest
from sutro import reach, values

MOUNTS = """\
22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/mapper/vg0-root rw
23 22 0:21 / /proc rw shared:5 - proc proc rw
24 22 0:5 / /dev rw - devtmpfs udev rw,size=4k
25 22 254:0 / /srv rw shared:2 master:1 - ext4 /dev/mapper/vg0-db rw
26 25 0:40 / /srv/a\\040b rw - tmpfs  rw
27 22 0:41 /@ /data rw - btrfs /dev/sdc rw
28 22 0:42 / /home rw - nfs4 server:/home rw
29 22 0:43 / /mnt rw - tmpfs tmpfs rw
30 22 254:2 / /mnt rw - xfs /dev/sdd rw
31 22 0:44 / /auto rw - autofs systemd-1 rw
32 22 0:45 / /one rw - bcachefs /dev/sde rw
33 22 0:46 / /several rw - bcachefs /dev/sdf:/dev/sdg rw
48 22 0:48 / /tank rw - zfs tank/data rw
49 22 0:49 / /fuse rw - fuse.spdk spdk rw
34 22 0:47 / /colon rw - btrfs /dev/disk/by-path/pci-0000:00:1f.2-ata-1 rw
"""
DEVICELESS = "it lies on {}, which has no block device"


def test_parse():
    text = "36 35 98:0 /a\\040b /m\\040n\\134\\011 rw master:1 shared:2 - ext3 /dev/r\\043 rw\n"
    assert reach.parse(text) == [reach.Mount("/m n\\\t", "98:0", "ext3", "/dev/r#")]
    assert [one.source for one in reach.parse(MOUNTS)][4:6] == ["", "/dev/sdc"]
    assert reach.parse("") == []


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A machine with these mounts, whose PID 1 has the same."""
    root = tmp_path.resolve() / "machine"
    for folder in ("proc/1", "proc/self", "srv/a b/c", "srv/a", "data/x", "home", "mnt", "auto",
                   "one", "several", "colon", "tank", "fuse", "tmp", "var/tmp", "etc",
                   "run"):  # fmt: skip
        (root / folder).mkdir(parents=True)
    for process in ("1", "self"):
        (root / f"proc/{process}/mountinfo").write_text(MOUNTS)
    monkeypatch.setattr(reach, "ROOT", str(root))
    return root


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/", ""),
        ("/etc", ""),
        ("/srv", ""),
        ("/srv/", ""),
        ("/srv/a", ""),
        ("/srv/a b", DEVICELESS.format("tmpfs")),
        ("/srv/a b/c", DEVICELESS.format("tmpfs")),
        ("/srv/a b/../a", ""),
        ("/proc/1", DEVICELESS.format("proc")),
        ("/data/x", ""),
        ("/home", DEVICELESS.format("nfs4")),
        ("/tank", DEVICELESS.format("zfs")),
        ("/fuse", DEVICELESS.format("fuse.spdk")),
        ("/mnt", ""),
        ("/auto", ""),
        ("/one", ""),
        (
            "/several",
            "it lies on bcachefs, whose source /dev/sdf:/dev/sdg is not one block device",
        ),
        ("/colon", ""),
        ("/srv/gone", "it does not exist"),
        ("/proc/1/mountinfo/x", "it cannot be looked up: Not a directory"),
    ],
)
def test_paths(root, path, expected):
    assert reach.obstacle(path) == expected


def test_links(root):
    """The mount of the real path counts; sutrod follows no links in folders for temporary files."""
    (root / "etc/good").symlink_to(root / "srv/a")
    (root / "etc/bad").symlink_to("../home")
    (root / "etc/loop").symlink_to("loop")
    (root / "tmp/link").symlink_to("../srv/a")
    (root / "tmp/folder").mkdir()
    assert reach.obstacle("/etc/good") == ""
    assert reach.obstacle("/etc/bad") == DEVICELESS.format("nfs4")
    assert reach.obstacle("/etc/loop").startswith("it cannot be looked up: Too many levels")
    assert reach.obstacle("/tmp/link") == "it is a link to /srv/a, and sutrod follows none in /tmp"
    assert reach.obstacle("/tmp/folder") == ""


def test_files_without_a_block_device(root):
    """A socket of vhost-user lies on the file system of the system, its requests do not."""
    behind = ", behind which the kernel has no block device"
    # The path of a socket has at most 107 bytes.
    with socket.socket(socket.AF_UNIX) as server, contextlib.chdir(root / "var/tmp"):
        server.bind("vhost.0")
    os.mkfifo(root / "srv/a/pipe")
    (root / "etc/link").symlink_to("../var/tmp/vhost.0")
    assert reach.obstacle("/var/tmp/vhost.0") == "it is a socket" + behind
    assert reach.obstacle("/etc/link") == "it is a socket" + behind
    assert reach.obstacle("/srv/a/pipe") == "it is a FIFO" + behind


def test_character_devices(monkeypatch):
    """Also on a file system with a block device."""
    monkeypatch.setattr(reach, "ROOT", "")
    monkeypatch.setattr(reach, "_mount", lambda path, process: reach.parse(MOUNTS)[0])
    expected = "it is a character device, behind which the kernel has no block device"
    assert reach.obstacle("/dev/null") == expected


def test_mounts_of_one_namespace_only(root):
    """A mount counts when PID 1 has the same device there."""
    own = MOUNTS + "40 22 8:2 / /etc rw - xfs /dev/sda2 rw\n41 22 254:1 /a /run rw - ext4 x rw\n"
    (root / "proc/self/mountinfo").write_text(own)
    assert reach.obstacle("/etc") == (
        "in this mount namespace it lies on xfs at /etc, in that of the system on ext4 at /"
    )
    assert reach.obstacle("/run") == ""
    (root / "proc/1/mountinfo").write_text(MOUNTS + "42 22 8:1 / /var rw - xfs /dev/sda1 rw\n")
    assert "in that of the system on xfs at /var" in reach.obstacle("/var/tmp")
    # With hidepid= there is no /proc/1.
    (root / "proc/1/mountinfo").unlink()
    assert reach.obstacle("/var/tmp") == ""
    assert reach.obstacle("/etc") == ""
    assert reach.obstacle("/home") == DEVICELESS.format("nfs4")
    (root / "proc/self/mountinfo").unlink()
    assert reach.obstacle("/home") == ""


def test_closed_directories(root, monkeypatch):
    """sutrod may look up what this user may not; the mounts count."""

    def closed(path, strict):
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os.path, "realpath", closed)
    assert reach.obstacle("/srv/closed/x") == ""
    assert reach.obstacle("/home/../home/x") == DEVICELESS.format("nfs4")


def test_dead_file_server(root, monkeypatch):
    """A lookup that does not end is given up."""
    end = threading.Event()

    def dead(path, strict):
        end.wait()
        return path

    monkeypatch.setattr(os.path, "realpath", dead)
    monkeypatch.setattr(reach, "LIMIT_S", 0.1)
    assert reach.obstacle("/srv") == "its file system does not answer within 0.1 s"
    end.set()


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ("/srv 5M", "/srv"),
        ('"/srv/a b" 5M', "/srv/a b"),
        ("'/srv/a b'\t5M P99", "/srv/a b"),
        ("/srv/a\\ b 5M", "/srv/a b"),
        ("any 5M", ""),
        ("300", ""),
        ("", ""),
        ("'/srv 5M", ""),
    ],
)
def test_path_of_a_value(value, path):
    assert values.path(value) == path
