# SPDX-License-Identifier: LGPL-2.1-or-later
"""Paths in and out of reach of sutrod, on real mounts, in mount namespaces of their own."""

import json
import subprocess
from pathlib import Path

from sutro import reach

CODE = """
import json, sys
from sutro import reach
print(json.dumps([reach.obstacle(path) for path in sys.argv[1:]]))
"""
OBSTACLES = f"python3 -c '{CODE}' \"$@\""
# On the file system of the root, which is on a disk.
FOLDER = Path("/srv/rig-reach")
DEVICELESS = "it lies on tmpfs, which has no block device"


def in_namespace(script: str, *words: Path | str) -> str:
    """The output of a script in a mount namespace of its own."""
    unshare = ["unshare", "--mount", "--", "sh", "-ec", script, "sh"]
    return subprocess.run([*unshare, *words], capture_output=True, text=True, check=True).stdout


def test_private_mount(tmp_path):
    """A tmpfs that PID 1 does not have."""
    folder = tmp_path / "a b"
    (folder / "c").mkdir(parents=True)
    mount = f"mount -t tmpfs private '{folder}'; mkdir '{folder}/d'; {OBSTACLES}"
    paths = [folder, folder / "d", folder / "c"]
    expected = [DEVICELESS, DEVICELESS, "it does not exist"]
    assert json.loads(in_namespace(mount, *paths)) == expected
    assert json.loads(in_namespace(OBSTACLES, folder / "c")) == [reach.obstacle(str(folder / "c"))]


def test_mount_that_only_the_system_has(disk):
    """PID 1 has the file system of a disk there, the process a folder of the root."""
    node = disk("ssd", "ssd0").node
    FOLDER.mkdir()
    subprocess.run(["mkfs.ext4", "-q", node], check=True)
    subprocess.run(["mount", node, FOLDER], check=True)
    try:
        assert reach.obstacle(str(FOLDER)) == ""
        (found,) = json.loads(in_namespace(f"umount {FOLDER}; {OBSTACLES}", FOLDER))
    finally:
        subprocess.run(["umount", FOLDER], check=True)
        FOLDER.rmdir()
    assert found.startswith("in this mount namespace it lies on ")
    assert found.endswith(f" at /, in that of the system on ext4 at {FOLDER}")


def test_mounts_of_the_kernel(tmp_path):
    """The fields are those that findmnt reads, whatever the names."""
    (tmp_path / "a b\t#\\c\nd").mkdir()
    mount = f"mount -t tmpfs 'x y' {tmp_path}/a*; cat /proc/self/mountinfo >{tmp_path}/text"
    columns = "TARGET,MAJ:MIN,FSTYPE,SOURCE"
    show = f"findmnt --json --list --nofsroot -F {tmp_path}/text -o {columns}"
    shown = json.loads(in_namespace(f"{mount}; {show}"))["filesystems"]
    parsed = reach.parse((tmp_path / "text").read_text())
    assert [list(one.values()) for one in shown] == [list(vars(one).values()) for one in parsed]
    assert (f"{tmp_path}/a b\t#\\c\nd", "tmpfs", "x y") in [
        (one.point, one.kind, one.source) for one in parsed
    ]


def test_device_nodes():
    """Of the nodes in /dev, those of block devices are in reach."""
    blocks = [str(path) for path in Path("/dev").iterdir() if path.is_block_device()]
    assert blocks
    assert {reach.obstacle(path) for path in blocks} == {""}
    assert reach.obstacle("/dev/null") != ""
