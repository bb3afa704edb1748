# SPDX-License-Identifier: GPL-2.0-only
"""Data, attributes, and a disk that is taken away."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import time

from .bench import SECTOR, Disk, Failed, demand, disk, fio_command, load, wait_busy
from .hdd import QUICK_HDD


def integrity() -> str:
    """what is written is read back, on each kind, with and without a cache (fio verify)"""
    for kind, cache_kb in (("hdd", 0), ("ssd", 512), ("nvme", 0)):
        with disk(kind, cache_kb=cache_kb, **(QUICK_HDD if kind == "hdd" else {})) as it:
            command = fio_command(
                it.node,
                rw="randrw",
                bsrange="512-300k",
                iodepth=16,
                size="8m",
                verify="crc32c",
                randseed=11,
                fsync=37,
            )
            command.remove("--norandommap=1")
            run = subprocess.run(command, capture_output=True, text=True)
            demand(run.returncode == 0, f"{kind} cache_kb={cache_kb}: {run.stderr}{run.stdout}")
            job = json.loads(run.stdout)["jobs"][0]
            demand(job["error"] == 0 and job["read"]["total_ios"] > 20, f"{kind}: {job['error']}")
    return "3 disks, 8 MiB of 512 B to 300 KiB"


def discard() -> str:
    """discard and write-zeroes read as zeros, and only where they were"""
    with disk("ssd") as it:
        ones = b"\xff" * (1 << 20)
        with open(it.node, "r+b", buffering=0) as f:
            f.write(ones)
            os.fsync(f.fileno())
        for option, offset, length in (("-f", 8192, 65536), ("-z", 200 * 512, 777 * 512)):
            command = ["blkdiscard", option, "-o", str(offset), "-l", str(length), it.node]
            run = subprocess.run(command, capture_output=True, text=True)
            demand(run.returncode == 0, f"{' '.join(command)}: {run.stderr}")
            ones = ones[:offset] + bytes(length) + ones[offset + length :]
        with open(it.node, "rb", buffering=0) as f:
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            demand(f.read(1 << 20) == ones, "other bytes than expected")
    return "64 KiB discarded, 777 sectors zeroed"


BAD = [
    ("hdd", "kind", "tape", errno.EINVAL),
    ("hdd", "order", "lifo", errno.EINVAL),
    ("hdd", "order", "", errno.EINVAL),
    ("hdd", "rpm", "fast", errno.EINVAL),
    ("hdd", "rpm", "0", errno.ERANGE),
    ("hdd", "rpm", "-1", errno.EINVAL),
    ("hdd", "rpm", "7200 rpm", errno.EINVAL),
    ("hdd", "rpm", "99999999999999999999", errno.ERANGE),
    ("hdd", "seek_min_us", "10501", errno.ERANGE),
    ("hdd", "seek_max_us", "499", errno.ERANGE),
    ("hdd", "bandwidth_kbps", "0", errno.ERANGE),
    ("hdd", "channels", "8", errno.EINVAL),
    ("hdd", "read_us", "8", errno.EINVAL),
    ("hdd", "queue_depth", "0", errno.ERANGE),
    ("hdd", "queue_depth", "4097", errno.ERANGE),
    ("hdd", "hw_queues", "0", errno.ERANGE),
    ("hdd", "size_mb", "0", errno.ERANGE),
    ("hdd", "size_mb", "1048577", errno.ERANGE),
    ("hdd", "seed", "x", errno.EINVAL),
    ("hdd", "online", "maybe", errno.EINVAL),
    ("ssd", "rpm", "7200", errno.EINVAL),
    ("ssd", "order", "fifo", errno.EINVAL),
    ("ssd", "channels", "257", errno.ERANGE),
    ("ssd", "noise_percent", "101", errno.ERANGE),
    ("nvme", "bus_kbps", "0", errno.ERANGE),
    ("nvme", "cache_kb", "-4", errno.EINVAL),
]
BUSY = {"kind": "ssd", "size_mb": "1", "queue_depth": "4", "hw_queues": "2", "seed": "9"}


def refused(it: Disk, name: str, value: str) -> int:
    """The errno of writing an attribute, 0 when it was taken; fails if it changed anything."""
    before = it.get(name)
    try:
        fd = os.open(it.config / name, os.O_WRONLY)
        try:
            os.write(fd, value.encode() or b"\n")
        finally:
            os.close(fd)
    except OSError as error:
        demand(it.get(name) == before, f"{name}={value} changed it to {it.get(name)}")
        return error.errno or 0
    return 0


def bad_input() -> str:
    """bad attribute values are refused with the right error and change nothing"""
    count = 0
    for is_online in (False, True):
        for kind in ("hdd", "ssd", "nvme"):
            it = Disk("mdself", kind)
            try:
                if is_online:
                    it.online()
                for _, name, value, want in (bad for bad in BAD if bad[0] == kind):
                    got = refused(it, name, value)
                    text = f"{kind} {name}={value!r}: {errno.errorcode.get(got, got)}"
                    demand(got == want, f"{text}, expected {errno.errorcode[want]}")
                    count += 1
                for name, value in BUSY.items() if is_online else ():
                    got = refused(it, name, value)
                    demand(got == errno.EBUSY, f"{name} while online: errno {got}")
                    count += 1
                demand(refused_reset(it) == errno.EINVAL, "reset took 2")
            finally:
                it.remove()
    try:
        Disk("x" * 32, "hdd").remove()
        raise Failed("a name of 32 characters was taken")
    except OSError as error:
        demand(error.errno == errno.ENAMETOOLONG, f"a name of 32 characters: {error}")
    subprocess.run(["modprobe", "loop"], check=True)
    it = Disk("loop0", "hdd")
    try:
        got = refused(it, "online", "1")
        demand(got == errno.EEXIST, f"a second loop0: errno {got}")
    finally:
        it.remove()
    return f"{count} values refused"


def refused_reset(it: Disk) -> int:
    """The errno of writing 2 to reset."""
    try:
        (it.debug / "reset").write_text("2")
    except OSError as error:
        return error.errno or 0
    return 0


def defaults_and_kind() -> str:
    """kind loads its defaults and sets rotational; writing it again restores them"""
    seen = []
    for kind, name, value in (
        ("hdd", "rpm", 7200),
        ("ssd", "channels", 16),
        ("nvme", "channels", 128),
    ):
        with disk(kind) as it:
            rotational = (it.queue / "rotational").read_text().strip()
            demand(rotational == str(int(kind == "hdd")), f"{kind}: rotational {rotational}")
            it.set(online=0, **{name: value // 2})
            it.set(kind=kind)
            demand(it.number(name) == value, f"{kind}: {name} is {it.get(name)}")
            seen.append(f"{kind} {it.get('hw_queues')} x {it.get('queue_depth')}")
    return ", ".join(seen)


def offline_under_load() -> str:
    """offline, online and rmdir under I/O: requests end, data stay, the module cannot go"""
    it = Disk("mdself", "hdd")
    try:
        for cycle in range(3):
            it.online("mq-deadline" if cycle == 1 else "none")
            marker = f"cycle {cycle}".ljust(SECTOR).encode()
            with open(it.node, "r+b", buffering=0) as f:
                if cycle:
                    f.seek(0)
                    old = f.read(SECTOR)
                    demand(
                        old.startswith(f"cycle {cycle - 1}".encode()), f"lost data: {old[:16]!r}"
                    )
                f.seek(0)
                f.write(marker)
                os.fsync(f.fileno())
            with load(it.node, rw="randrw", bs="16k", iodepth=32, offset="1m"):
                wait_busy(it)
                run = subprocess.run(["rmmod", "modeldisk"], capture_output=True, text=True)
                demand(run.returncode != 0, "the module went while a disk was there")
                start = time.monotonic()
                if cycle < 2:
                    it.set(online=0)
                else:
                    it.remove()
                took = time.monotonic() - start
                demand(not it.queue.exists(), "the disk is still there")
                demand(took < 10, f"took {took:.1f} s")
    finally:
        if it.config.exists():
            it.remove()
    return "2 times offline, 1 time rmdir"


def lvm() -> str:
    """LVM accepts model disks: a striped volume over two of them holds data"""
    options = ["--config", "activation{udev_sync=0 udev_rules=0} devices{use_devicesfile=0}"]

    def run(*command: str) -> None:
        run = subprocess.run(command, capture_output=True, text=True)
        demand(run.returncode == 0, f"{' '.join(command)}: {run.stderr}")

    disks = [Disk(f"mdself{i}", "ssd", size_mb=64) for i in (1, 2)]
    nodes = [it.node for it in disks]
    try:
        for it in disks:
            it.online()
        run("vgcreate", *options, "-y", "mdselfvg", *nodes)
        try:
            run("lvcreate", *options, "-y", "-Wn", "-Zn", "-i2", "-L64m", "-n", "lv", "mdselfvg")
            for it in disks:
                it.reset()
            node = "/dev/mapper/mdselfvg-lv"
            command = fio_command(node, rw="write", bs="256k", size="16m", verify="crc32c")
            run(*command)
            halves = [it.total()["wbytes"] for it in disks]
            demand(halves == [8 << 20, 8 << 20], f"bytes written to the disks: {halves}")
        finally:
            run("vgremove", *options, "-f", "mdselfvg")
    finally:
        for it in disks:
            it.remove()
    return "8 MiB on each"
