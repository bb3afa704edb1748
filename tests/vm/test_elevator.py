# SPDX-License-Identifier: LGPL-2.1-or-later
"""The elevator's files: accepted values, refused values, and contents."""

import errno
import os
import re

import pytest
from bench.stacks import sysctl
from rig import scheduler
from rig.cgroup import Group, Subtree, ended
from rig.modeldisk import ModelDisk
from rig.sampler import parse_io_stat
from rig.shell import CommandError, run, wait_for
from rig.sutro import groups, reads
from rig.unit import fio

WEIGHT = "io.sutro.weight"
CLASS = "io.sutro.class"
LATENCY = "io.sutro.latency"
STAT = "io.sutro.stat"


def weights(group: Group) -> dict[str, int]:
    """The weight file as a dictionary."""
    pairs = (line.split() for line in group.read(WEIGHT).splitlines())
    return {key: int(value) for key, value in pairs}


@pytest.mark.first
def test_select_and_leave(sutro_disk: ModelDisk) -> None:
    """sutro can be chosen, has its knobs, and any other elevator can follow it."""
    knobs = scheduler.queue(sutro_disk.name) / "iosched"
    names = {path.name for path in knobs.iterdir()}
    wanted = "fairness group_idle_us slice_us group_requests discipline protect direct costs"
    assert names >= set(wanted.split())
    for name in ("none", "mq-deadline", "kyber", "bfq", "sutro"):
        scheduler.select(sutro_disk.name, name)
        assert scheduler.current(sutro_disk.name) == name


@pytest.mark.first
@pytest.mark.parametrize(
    ("knob", "good", "bad"),
    [
        ("fairness", "0", ["2", "-1", "text", ""]),
        ("fairness", "1", ["x"]),
        ("group_idle_us", "4000", ["-1", "text"]),
        ("slice_us", "50000", ["-1", "text"]),
        ("group_requests", "16", ["-1", "text"]),
        ("protect", "50", ["100", "-1", "text"]),
        ("direct", "0", ["2", "-1", "text"]),
        ("discipline", "process", ["proc", "[fifo]", "", "fifo deadline"]),
        (
            "costs",
            "version 1\nread 4096 30000",
            ["version 2", "", "read 4096 1", "version 1 read 1 1"],
        ),
    ],
)
def test_knobs(sutro_disk: ModelDisk, knob: str, good: str, bad: list[str]) -> None:
    """A knob keeps a good value, and keeps it when a bad one is refused."""
    file = scheduler.queue(sutro_disk.name) / "iosched" / knob
    file.write_text(good + "\n")
    kept = file.read_text()
    assert re.sub(r".*\[(\w+)\].*", r"\1", kept.strip()) == good
    for text in bad:
        with pytest.raises(OSError) as refused:
            file.write_text(text + "\n")
        assert refused.value.errno in (errno.EINVAL, errno.ERANGE)
    assert file.read_text() == kept


@pytest.mark.first
def test_weight_formats(group: Group, sutro_disk: ModelDisk) -> None:
    """`N`, `default N`, `MAJ:MIN N` and `MAJ:MIN default`, at the ends of the range too."""
    number = sutro_disk.devno
    assert weights(group) == {"default": 100}
    for text, value in (("200", 200), ("default 300", 300), ("1", 1), ("default 10000", 10000)):
        group.write(WEIGHT, text)
        assert weights(group) == {"default": value}
    for value in (1, 777, 10000):
        group.write(WEIGHT, f"{number} {value}")
        assert weights(group) == {"default": 10000, number: value}
    # A new cgroup begins with 100, whatever its parent has.
    assert weights(group.child("inside")) == {"default": 100}
    group.write(WEIGHT, f"{number} default")
    assert weights(group) == {"default": 10000}
    # As if it had never been written: on this kernel io.weight is that of iocost.
    group.write("io.weight", "700")
    group.write(WEIGHT, "default")
    assert weights(group) == {"default": 100}


@pytest.mark.parametrize("file", [WEIGHT, CLASS])
def test_root_has_none(file: str) -> None:
    """The root cgroup has no competitor."""
    assert not (Group.root().folder / file).exists()


def test_class_formats(group: Group, sutro_disk: ModelDisk) -> None:
    """As weights: `CLASS`, `default CLASS`, `MAJ:MIN CLASS` and `MAJ:MIN default`."""
    number = sutro_disk.devno
    assert group.read(CLASS) == "default be\n"
    for text, lines in (
        ("rt", "default rt\n"),
        ("default idle", "default idle\n"),
        (" default  be \n", "default be\n"),
        (f"{number} rt", f"default be\n{number} rt\n"),
        (f"{number} idle", f"default be\n{number} idle\n"),
        ("rt", f"default rt\n{number} idle\n"),
        (f"{number} default", "default rt\n"),
    ):
        group.write(CLASS, text)
        assert group.read(CLASS) == lines
    assert weights(group) == {"default": 100}
    assert group.child("inside").read(CLASS) == "default be\n"


def test_latency_formats(group: Group, sutro_disk: ModelDisk) -> None:
    """As weights, in microseconds: `USEC`, `max` or 0 for none, and lines of disks."""
    number = sutro_disk.devno
    assert group.read(LATENCY) == "default max\n"
    for text, lines in (
        ("2000", "default 2000\n"),
        (f"{number} 500", f"default 2000\n{number} 500\n"),
        (f"{number} max", f"default 2000\n{number} max\n"),
        (f"{number} 10000000", f"default 2000\n{number} 10000000\n"),
        (f"{number} default", "default 2000\n"),
        ("0", "default max\n"),
    ):
        group.write(LATENCY, text)
        assert group.read(LATENCY) == lines
    for text in ("-1", "10000001", "many", f"{number} -1"):
        with pytest.raises(OSError) as refused:
            group.write(LATENCY, text)
        assert refused.value.errno in (errno.EINVAL, errno.ERANGE)
    assert group.read(LATENCY) == "default max\n"


# Values of each file that stay, and bad values with the errors that refuse them.
KEPT = {WEIGHT: ("150", "250"), CLASS: ("idle", "rt")}
REFUSED = [
    *((WEIGHT, text, {errno.ERANGE}) for text in ("0", "10001")),
    *(
        (WEIGHT, text, {errno.EINVAL, errno.ERANGE})
        for text in ("-1", "4294967296", "text", "", "1.5", "200 300")
    ),
    *(
        (CLASS, text, {errno.EINVAL})
        for text in ("RT", "realtime", "r", "rtx", "be idle", "100", "1", "-1", "", "none")
    ),
]


@pytest.mark.parametrize("form", ["{}", "default {}", "{devno} {}"])
@pytest.mark.parametrize("file", KEPT)
def test_bad_values(group: Group, sutro_disk: ModelDisk, file: str, form: str) -> None:
    """A bad value is refused with the right error and changes nothing."""
    group.write(file, f"default {KEPT[file][0]}")
    group.write(file, f"{sutro_disk.devno} {KEPT[file][1]}")
    before = group.read(file)
    for _, text, errors in (one for one in REFUSED if one[0] == file):
        # That of io.weight: test_weight_formats.
        if (file, form.format(text, devno="").strip()) == (WEIGHT, "default"):
            continue
        with pytest.raises(OSError) as refused:
            group.write(file, form.format(text, devno=sutro_disk.devno))
        assert (refused.value.errno in errors, group.read(file)) == (True, before), text


def test_levels(group: Group, sutro_disk: ModelDisk) -> None:
    """A cgroup 16 levels below the root has settings, deeper ones have none."""
    while group.cgroup.count("/") < 16:
        group = group.child("deep")
    deeper = group.child("deeper")
    for file in (WEIGHT, CLASS):
        for text in KEPT[file]:
            group.write(file, text)
            with pytest.raises(OSError) as refused:
                deeper.write(file, text)
            assert refused.value.errno == errno.EOPNOTSUPP
    ended(deeper.run(f"exec dd if={sutro_disk.node} of=/dev/null bs=16k count=100 iflag=direct"))


@pytest.mark.parametrize(("file", "value"), [(WEIGHT, "200"), (CLASS, "rt")])
def test_devices(group: Group, disk, file: str, value: str) -> None:
    """A device that is not there, words that are no device, another elevator; sutro takes it."""
    other = disk("ssd", "ssd1", "mq-deadline")
    before = group.read(file)
    words = dict.fromkeys(("8", "8:", ":8", "sda", "8:x"), {errno.EINVAL, errno.ENODEV})
    refuse = {"1023:77": {errno.ENODEV}, other.devno: {errno.EOPNOTSUPP}, **words}
    for device, errors in refuse.items():
        with pytest.raises(OSError) as refused:
            group.write(file, f"{device} {value}")
        assert refused.value.errno in errors, device
    assert group.read(file) == before
    scheduler.select(other.name, "sutro")
    group.write(file, f"{other.devno} {value}")
    assert f"{other.devno} {value}" in group.read(file).splitlines()


def test_stat(group: Group, sutro_disk: ModelDisk) -> None:
    """io.sutro.stat has every field and counts what was done; at first no line, or zeros."""
    stat = parse_io_stat(group.read(STAT), sutro_disk.devno)
    assert not stat or (stat["time_ns"], stat["rbytes"], stat["wbytes"]) == (0, 0, 0)
    job = f"fio --name=j --filename={sutro_disk.node} --ioengine=libaio --direct=1 --iodepth=8"
    reads = group.run(f"exec {job} --rw=read --bs=64k --size=16m")
    assert reads.wait(60) == 0
    writes = group.run(f"exec {job} --rw=write --bs=32k --size=8m")
    assert writes.wait(60) == 0
    stat = parse_io_stat(group.read(STAT), sutro_disk.devno)
    fields = "time_ns rbytes wbytes rios wios wait_ns idle_ns queued dequeue lag_ns"
    assert set(stat) >= set(fields.split())
    # fio looks at the device before it begins, and udev after it wrote: a little more may be read.
    assert 16 << 20 <= stat["rbytes"] < (16 << 20) + (1 << 20)
    assert stat["wbytes"] == 8 << 20
    assert 0 < stat["rios"] <= (16 << 20) // 4096
    assert 0 < stat["wios"] <= 256
    assert stat["time_ns"] > 0
    assert stat["queued"] == 0
    true = sutro_disk.truth().of(group.cgroup)
    assert (true.rbytes, true.wbytes) == (stat["rbytes"], stat["wbytes"])


def test_module_is_in_use(sutro_disk: ModelDisk) -> None:
    """The module cannot go while a queue uses it."""
    with pytest.raises(CommandError, match="in use"):
        run("rmmod", "sutro")


@pytest.mark.first
def test_data_is_what_was_written(group: Group, sutro_disk: ModelDisk) -> None:
    """With reordering, merging and mixed sizes, each block has the data that were written last."""
    job = group.run(
        "exec fio --name=v --ioengine=libaio --direct=1 --rw=randwrite --iodepth=32 --size=32m"
        f" --bsrange=4k-64k --blockalign=4k --verify=crc32c --filename={sutro_disk.node}"
    )
    ended(job)


@pytest.mark.parametrize("submitters", [1, 2])
def test_sequential_streams_merge(group: Group, disk, submitters: int) -> None:
    """Adjacent small requests of a group that wait together become one, from whatever CPU.

    Two submitters read every other page each, so only requests of both can merge. fio submits each
    read by itself, so that none merges before the elevator has it.
    """
    # Any host submits reads faster than this disk serves them: they wait.
    slow = disk("ssd", "ssd1", read_us=20000, channels=1, queue_depth=1)
    scheduler.select(slow.name, "sutro")
    cpus = sorted(os.sched_getaffinity(0))
    before = reads(slow)[1]
    for n in range(submitters):
        keys = {"offset": 4096 * n, "size": "256k", "cpus_allowed": cpus[n % len(cpus)]}
        order = "read" if submitters == 1 else "read:4k"
        group.run(fio(slow.node, order, "4k", 64 // submitters, **keys))
    wait_for(lambda: reads(slow)[1] - before > 100, "read merges", 60)
    group.kill()


def test_writeback_leaves_slots(group: Group, disk) -> None:
    """Asynchronous writes take three quarters of the request slots, and no more.

    Where the block layer has a limit of its own (queue/async_depth), that is obeyed.
    """
    slow = disk("ssd", "ssd1", bus_kbps=4000)
    scheduler.select(slow.name, "sutro", nr_requests=64)
    writes = {"ioengine": "sync", "direct": 0, "sync_file_range": "write:1"}
    job = group.run(fio(slow.node, "randwrite", "16k", **writes))

    def reach(least: int, most: int) -> None:
        """Writes reach `least` slots, and never have more than `most`."""
        seen: list[int] = []
        wait_for(lambda: seen.append(scheduler.slots(slow.name)) or seen[-1] >= least, "slots", 60)
        seen += [scheduler.slots(slow.name) for _ in range(100)]
        assert max(seen) <= most

    reach(40, 48)
    async_depth = scheduler.queue(slow.name) / "async_depth"
    if async_depth.exists():
        async_depth.write_text("16")
        wait_for(lambda: scheduler.slots(slow.name) <= 16, "fewer slots", 60)
        reach(12, 16)
    group.kill()
    assert job.returncode is not None


def test_writeback_leaves_slots_to_reserved_time(tree: Subtree, disk) -> None:
    """Writeback beside a cgroup with reserved time leaves an eighth of the slots to its writeback.

    A kernel thread submits it, for one cgroup after another. The reader has half of the disk to
    itself: a direct read of a dirty page writes it first, as the reader's sync request. The weight
    of the writer leaves it nearly all slots by its part, however busy the host is.
    """
    slow = disk("ssd", "ssd1", bus_kbps=4000)
    scheduler.select(slow.name, "sutro", nr_requests=64)
    reader, writer = tree.child("reader"), tree.child("writer")
    reader.write("io.sutro.reserve", 300)
    writer.write(WEIGHT, 10000)
    reader.run(fio(slow.node, "randread", "4k", 1, offset="50%"))
    with sysctl({"vm.dirty_background_bytes": 1 << 20, "vm.dirty_bytes": 16 << 20}):
        half = {"size": "50%"}
        writer.run(fio(slow.node, "randwrite", "16k", 1, direct=0, ioengine="sync", **half))

        def slots() -> int:
            return int(groups(slow).get(writer.cgroup, {"slots": "0"})["slots"])

        wait_for(lambda: slots() >= 36, "slots", 60)
        wait_for(lambda: 36 <= max(slots() for _ in range(100)) <= 40, "an eighth is left", 60)
        reader.kill()
        wait_for(lambda: slots() > 40, "more slots for writeback alone", 60)
        writer.kill()
        run("blockdev", "--flushbufs", slow.node)
