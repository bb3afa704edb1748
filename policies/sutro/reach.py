# SPDX-License-Identifier: LGPL-2.1-or-later
"""Paths out of reach of sutrod: a setting for one of them would have no effect, or one elsewhere.

sutrod runs in a mount namespace of its own and compares paths with the mounts of PID 1. A path is
in reach if it exists and has one block device, here and for PID 1:

    /srv/db    ext4 on /dev/vg0/db                          in reach
    /dev/sda   a block device                               in reach
    /run/x     tmpfs (or proc, overlay, NFS, ZFS)           no block device
    /pool      bcachefs on /dev/sdb:/dev/sdc                not one block device
    /run/x.0   a socket of vhost-user (SPDK)                its requests bypass the kernel
    /mnt/x     ext4 on /dev/sdb1; for PID 1 a folder of /   mounted in this namespace only
"""

import os
import re
import stat
import threading
from dataclasses import dataclass
from pathlib import Path

# The files of another machine, in tests.
ROOT = ""
# A file server that has ended never answers. sutrod waits as long.
LIMIT_S = 5.0
# sutrod follows no links in these folders, where any user may make them.
TEMPORARY = ("/tmp/", "/var/tmp/")
# Not mounted before its first use, so the device is not known yet.
UNMOUNTED = "autofs"
# Requests to such a file are not for the device of the file system that it lies on.
OTHER_FILES = {
    stat.S_IFSOCK: "a socket",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFCHR: "a character device",
}


@dataclass(frozen=True)
class Mount:
    """A mount: its mount point, the number of its device, the file system and its source."""

    point: str
    devno: str
    kind: str
    source: str

    def may_have_device(self) -> bool:
        """False for tmpfs, NFS and the like; the number of btrfs is that of no device, too."""
        return (
            not self.devno.startswith("0:")
            or (self.source.startswith("/dev/") and not self.has_several_sources())
            or self.kind == UNMOUNTED
        )

    def has_several_sources(self) -> bool:
        """True for a list of devices, as bcachefs has; a name in /dev/disk may have a ":"."""
        return self.source.startswith("/dev/") and ":/dev/" in self.source


def parse(text: str) -> list[Mount]:
    """The mounts in a text of proc_pid_mountinfo(5), where \\040 is a blank."""
    found = []
    for line in text.split("\n")[:-1]:
        before, _, after = line.partition(" - ")
        fields = [*before.split(" ")[2:5:2], *after.split(" ")[:2]]
        devno, point, kind, source = (
            re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), field) for field in fields
        )
        found.append(Mount(point, devno, kind, source))
    return found


def _mount(path: str, process: str) -> Mount | None:
    """The deepest mount of a path, of several at one point the last, as sutrod takes it."""
    try:
        text = Path(f"{ROOT}/proc/{process}/mountinfo").read_text(errors="surrogateescape")
    except OSError:  # hidepid= of /proc hides PID 1
        return None
    above = [one for one in parse(text) if f"{path}/".startswith(one.point.rstrip("/") + "/")]
    return sorted(above, key=lambda one: len(one.point))[-1] if above else None


def _look_up(path: str) -> tuple[str, int]:
    """The path without links, and its mode; OSError, TimeoutError after LIMIT_S."""
    answer: list[tuple[str, int] | OSError] = []

    def look() -> None:
        try:
            real = os.path.realpath(ROOT + path, strict=True)
            answer.append((real.removeprefix(ROOT), os.stat(real).st_mode))
        except OSError as error:
            answer.append(error)

    # SIGKILL alone interrupts a lookup. A process ends in spite of its daemon threads.
    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    thread.join(LIMIT_S)
    if not answer:
        raise TimeoutError
    if isinstance(answer[0], OSError):
        raise answer[0]
    return answer[0]


def obstacle(path: str) -> str:
    """Why an absolute path is out of reach, "" for a path in reach."""
    try:
        real, mode = _look_up(path)
    except PermissionError:  # sutrod may look it up
        real, mode = os.path.normpath(path), 0
    except FileNotFoundError:
        return "it does not exist"
    except TimeoutError:
        return f"its file system does not answer within {LIMIT_S:g} s"
    except OSError as error:
        return f"it cannot be looked up: {error.strerror}"
    if path.startswith(TEMPORARY) and real != os.path.normpath(path):
        return f"it is a link to {real}, and sutrod follows none in {os.path.dirname(path)}"
    if other := OTHER_FILES.get(stat.S_IFMT(mode)):
        return f"it is {other}, behind which the kernel has no block device"
    here = _mount(real, "self")
    there = _mount(real, "1") or here
    nearest = here or there
    if nearest and not stat.S_ISBLK(mode) and not nearest.may_have_device():
        kind, source = nearest.kind, nearest.source
        if nearest.has_several_sources():
            return f"it lies on {kind}, whose source {source} is not one block device"
        return f"it lies on {kind}, which has no block device"
    if here and there and here.devno != there.devno:
        return (
            f"in this mount namespace it lies on {here.kind} at {here.point}, "
            f"in that of the system on {there.kind} at {there.point}"
        )
    return ""
