# SPDX-License-Identifier: LGPL-2.1-or-later
"""The judge is judged first: data, attributes and removal of model disks, device time by cgroup."""

import errno
import os
import subprocess
import time

import pytest
from rig import scheduler
from rig.cgroup import Group, Subtree, ended
from rig.modeldisk import CONFIGFS, DEBUGFS, ModelDisk
from rig.oracle import loaded, ready
from rig.shell import CommandError, run
from rig.udev import quiet_udev
from rig.unit import fio, fio_report
from test_modeldisk_hdd import QUICK_HDD

SECTOR = 512


@pytest.mark.parametrize(
    ("kind", "numbers"), [("hdd", QUICK_HDD), ("ssd", {"cache_kb": 512}), ("nvme", {})]
)
def test_data(kind: str, numbers: dict[str, int]) -> None:
    """Written data are read back, with and without a cache, in requests of 512 B to 300 KiB."""
    with ready(kind, **numbers) as disk:
        printed = run(
            "fio", "--name=v", f"--filename={disk.node}", "--direct=1", "--ioengine=libaio",
            "--rw=randrw", "--bsrange=512-300k", "--iodepth=16", "--size=8m", "--verify=crc32c",
            "--randseed=11", "--fsync=37", "--output-format=json",
        )  # fmt: skip
        job = fio_report(printed)
        assert job["error"] == 0 and job["read"]["total_ios"] > 20


def test_discard() -> None:
    """Discard and write-zeroes read as zeros, and only where they were."""
    with ready("ssd") as disk:
        ones = b"\xff" * (1 << 20)
        with open(disk.node, "r+b", buffering=0) as file:
            file.write(ones)
            os.fsync(file.fileno())
        for option, offset, length in (("-f", 8192, 65536), ("-z", 200 * 512, 777 * 512)):
            run("blkdiscard", option, "-o", str(offset), "-l", str(length), disk.node)
            ones = ones[:offset] + bytes(length) + ones[offset + length :]
        with open(disk.node, "rb", buffering=0) as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            assert file.read(1 << 20) == ones


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
    ("hdd", "bus_order", "fifo", errno.EINVAL),
    ("ssd", "order", "fifo", errno.EINVAL),
    ("ssd", "bus_order", "1", errno.EINVAL),
    ("ssd", "channels", "257", errno.ERANGE),
    ("ssd", "noise_percent", "101", errno.ERANGE),
    ("nvme", "bus_kbps", "0", errno.ERANGE),
    ("nvme", "cache_kb", "-4", errno.EINVAL),
]
BUSY = {"kind": "ssd", "size_mb": "1", "queue_depth": "4", "hw_queues": "2", "seed": "9"}


@pytest.mark.parametrize("kind", ["hdd", "ssd", "nvme"])
@pytest.mark.parametrize("online", [False, True])
def test_bad_input(kind: str, online: bool) -> None:
    """Bad attribute values are refused with the right error and change nothing."""
    bad = [(name, value, wanted) for of, name, value, wanted in BAD if of == kind]
    if online:
        bad += [(name, value, errno.EBUSY) for name, value in BUSY.items()]
    with ModelDisk("judged", kind) as disk:
        if not online:
            disk.unplug()
        for name, value, wanted in bad:
            before = disk.read(name)
            with pytest.raises(OSError) as refused:
                disk.set(**{name: value})
            assert (refused.value.errno, disk.read(name)) == (wanted, before), (name, value)
        with pytest.raises(OSError) as refused:
            (DEBUGFS / disk.name / "reset").write_text("2")
        assert refused.value.errno == errno.EINVAL


@pytest.mark.parametrize(
    ("name", "wanted"), [("x" * 32, errno.ENAMETOOLONG), ("loop0", errno.EEXIST)]
)
def test_bad_name(name: str, wanted: int) -> None:
    """A name that is too long, and one that another driver has."""
    run("modprobe", "loop")
    with pytest.raises(OSError) as refused, ModelDisk(name, "hdd"):
        pass
    assert refused.value.errno == wanted


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [("hdd", "rpm", 7200), ("ssd", "channels", 16), ("nvme", "channels", 128)],
)
def test_defaults(kind: str, name: str, value: int) -> None:
    """kind loads its defaults and sets rotational; writing it again restores them."""
    with ready(kind) as disk:
        rotational = (scheduler.queue(disk.name) / "rotational").read_text()
        assert rotational == f"{int(kind == 'hdd')}\n"
        disk.set(online=0, **{name: value // 2})
        disk.set(kind=kind)
        assert disk.number(name) == value


def test_offline_under_load() -> None:
    """offline, online and rmdir under I/O: requests end, data stay, the module cannot go."""
    with ModelDisk("judged", "hdd") as disk:
        for cycle, elevator in enumerate(("none", "mq-deadline", "none")):
            disk.set(online=1)
            run("udevadm", "settle", "--timeout=10")
            scheduler.select(disk.name, elevator)
            with open(disk.node, "r+b", buffering=0) as file:
                if cycle:
                    assert file.read(SECTOR).startswith(b"cycle %d" % (cycle - 1))
                file.seek(0)
                file.write(f"cycle {cycle}".ljust(SECTOR).encode())
                os.fsync(file.fileno())
            with loaded(disk, "randrw", "16k", 32, offset="1m"):
                with pytest.raises(CommandError):
                    run("rmmod", "modeldisk")
                start_s = time.monotonic()
                if cycle < 2:
                    disk.unplug()
                else:
                    (CONFIGFS / disk.name).rmdir()
                took_s = time.monotonic() - start_s
                assert not scheduler.queue(disk.name).exists()
                assert took_s < 10


def test_lvm(disk, stack) -> None:
    """A striped volume over two disks holds data, half of them on each."""
    disks = [disk("ssd", f"ssd{n}", size_mb=64) for n in range(2)]
    top = stack(disks, {"kind": "striped", "name": "lv", "over": ["ssd0", "ssd1"]}).top
    with quiet_udev():
        for one in disks:
            one.reset()
        words = ("--rw=write", "--bs=256k", "--size=16m", "--verify=crc32c", "--direct=1")
        run("fio", "--name=v", f"--filename={top}", "--ioengine=libaio", *words)
        assert [one.truth().total.wbytes for one in disks] == [8 << 20, 8 << 20]


# device time by cgroup


def started(group: Group, disk: ModelDisk, rw: str, bs: str, count: int) -> subprocess.Popen:
    """Start `count` requests of a cgroup."""
    keys = {"number_ios": count, "time_based": 0, "output-format": "json"}
    return group.run(fio(disk.node, rw, bs, 8, **keys))


def test_truth_by_cgroup(tree: Subtree) -> None:
    """Each cgroup is charged its own requests, bytes and time; the sum is the total."""
    a, b = tree.child("a"), tree.child("b")
    with ready("hdd", order="fifo") as disk:
        disk.reset()
        jobs = [started(a, disk, "randread", "4k", 200), started(b, disk, "randwrite", "64k", 100)]
        reads, writes = (
            fio_report(ended(job))[way] for job, way in zip(jobs, ("read", "write"), strict=True)
        )
        truth = disk.truth()
    of_a, of_b = truth.of(a.cgroup), truth.of(b.cgroup)
    assert (of_a.rios, of_a.rbytes) == (reads["total_ios"], reads["io_bytes"])
    assert (of_b.wios, of_b.wbytes) == (writes["total_ios"], writes["io_bytes"])
    assert of_a.wios == of_b.rios == 0
    for key in ("time_ns", "rbytes", "wbytes", "rios", "wios"):
        summed = sum(getattr(used, key) for used in truth.owners.values())
        assert summed == getattr(truth.total, key), key
    assert of_a.time_ns / of_a.rios > 5e6 and of_b.time_ns / of_b.wios > 5e6


def test_truth_outlives_cgroup(tree: Subtree) -> None:
    """A removed cgroup keeps its line, the next of that path continues it, reset drops it."""
    with ready("ssd") as disk:
        for wanted in (10, 20):
            gone = tree.child("gone")
            ended(started(gone, disk, "randread", "4k", 10))
            gone.remove()
            assert disk.truth().of(gone.cgroup).rios == wanted
        disk.reset()
        assert gone.cgroup not in disk.truth().owners
        assert disk.truth().total.rios == 0
