# SPDX-License-Identifier: LGPL-2.1-or-later
"""Requests of every kind, and the order they are sent in: nothing is lost, each has its place."""

import shlex
import time

import pytest
from rig import scheduler
from rig.cgroup import Group, Subtree, ended
from rig.sampler import device_time_ns, parse_io_stat
from rig.shell import run, wait_for
from rig.sutro import groups, knob, state
from rig.unit import fio

WEIGHT = "io.sutro.weight"
DISCIPLINES = ("fifo", "deadline", "process")


def finish(load) -> None:
    """All jobs ended by themselves and well."""
    for process in load:
        ended(process)


@pytest.mark.parametrize(("kind", "name"), [("hdd", "deadline"), ("ssd", "fifo")])
def test_default_discipline(disk, kind: str, name: str) -> None:
    """Reads show all with the current one in brackets; the default is that of the kind."""
    shown = " ".join(f"[{one}]" if one == name else one for one in DISCIPLINES)
    assert knob(disk(kind, "req0", "sutro"), "discipline").read_text() == shown + "\n"


def test_discipline_changes_under_load(tree: Subtree, disk) -> None:
    """The discipline changes all the time, and each block is what was written last."""
    one = disk("ssd", "req0", "sutro", bus_kbps=60000)
    verify = (
        "exec fio --name=v --ioengine=libaio --direct=1 --rw=randwrite --iodepth=32 --size=16m"
        f" --bsrange=4k-64k --blockalign=4k --verify=crc32c --filename={one.node} --numjobs=2"
        " --offset_increment=64m"
    )
    group, changes = tree.child("a"), 0
    # On a slow host a job may end before there were enough changes.
    while changes < 20:
        job = group.run(verify)
        while job.poll() is None:
            knob(one, "discipline").write_text(DISCIPLINES[changes % 3])
            changes += 1
            time.sleep(0.01)
        finish([job])


@pytest.mark.parametrize("discipline", DISCIPLINES)
def test_all_priorities_at_once(tree: Subtree, disk, discipline: str) -> None:
    """Threads of all classes and levels, sync and async, end well; no lane stays in use."""
    one = disk("ssd", "req0", "sutro", bus_kbps=60000)
    knob(one, "discipline").write_text(discipline)
    group = tree.child("a")
    load = []
    for n in range(12):
        keys = {"prioclass": 1 + n % 3, "runtime": 3, "jobs": 2}
        if n % 3 < 2:
            keys["prio"] = n * 5 % 8
        if n % 4 == 3:
            # Buffered writes reach the disk as async requests of kernel workers.
            keys |= {"direct": 0, "ioengine": "psync", "fsync": 32}
        depth = 1 if n % 2 else 16
        keys |= {"seed": n, "bsrange": "4k-64k"}
        load.append(group.run(fio(one.node, "randrw", "4k", depth, **keys)))
    finish(load)
    run("sync")
    wait_for(lambda: state(one)["lanes_idle"] == "256", "lanes idle", 60)
    seen = groups(one)[group.cgroup]
    assert [seen[f"queued_{name}"] for name in ("rt", "be", "idle")] == ["0+0"] * 3


def test_sync_write_among_writeback(tree: Subtree, disk) -> None:
    """A write that its task waits for does not wait with the writeback that it adjoins.

    It merges into the request of the page before it, which is served as a sync one from then on.
    """
    one = disk("ssd", "req0", "sutro", write_us=20000, channels=1, queue_depth=1)
    # Every other page, so that none of these merge.
    command = (
        "import mmap, os\n"
        f"cached = os.open({one.node!r}, os.O_RDWR)\n"
        f"direct = os.open({one.node!r}, os.O_WRONLY | os.O_DIRECT)\n"
        "for n in range(150):\n"
        "    os.pwrite(cached, bytes(4096), 8192 * n)\n"
        "libc = __import__('ctypes').CDLL(None, use_errno=True)\n"
        "size = __import__('ctypes').c_int64\n"
        "assert libc.sync_file_range(cached, size(0), size(0), 2) == 0\n"
        "page = mmap.mmap(-1, 4096)\n"
        "os.pwrite(direct, page, 8192 * 140 + 4096)\n"
        f"print(open('/sys/block/{one.name}/stat').read().split()[4])\n"
    )
    job = tree.child("a").run("exec python3 -c " + shlex.quote(command))
    printed = ended(job)
    # In the order of sectors it would be the 141st.
    assert int(printed) < 100
    run("blockdev", "--flushbufs", one.node)
    total = one.truth().total
    assert (total.wbytes, total.wios) == (151 * 4096, 150)


def test_requests_come_back(tree: Subtree, disk) -> None:
    """Requests that the driver gives back, prepared or not, are served, and counted once."""
    one = disk("ssd", "req0", "sutro", bus_kbps=60000, give_back=7)
    a, b = tree.child("a"), tree.child("b")
    finish(
        group.run(fio(one.node, "randrw", "16k", 16, seed=seed, runtime=3))
        for seed, group in enumerate((a, b))
    )
    # The last completions are accounted for at the next dispatch, which the root's read causes.
    run("dd", f"if={one.node}", "of=/dev/null", "bs=4k", "count=1", "iflag=direct")
    seen = groups(one)
    for group in (a, b):
        assert seen[group.cgroup]["in_flight"] == "0"
        assert seen[group.cgroup]["slots"] == "0"
    assert int(state(one)["in_flight"]) <= 1


def test_target_of_requests_that_come_back(tree: Subtree, disk) -> None:
    """A write that the driver gives back is no read in time for a latency target."""
    one = disk("ssd", "req0", "sutro", give_back=2)
    group = tree.child("a")
    # The reads with which fio begins are not late, and too few for a verdict.
    group.write("io.sutro.latency", f"{one.devno} 10000000")
    keys = {"number_ios": 2000, "time_based": 0, "size": "64m"}
    finish([group.run(fio(one.node, "randwrite", "16k", 16, **keys))])
    stat = group.read("io.sutro.stat")
    assert parse_io_stat(stat, one.devno)["wios"] > 1000
    (line,) = (line for line in stat.splitlines() if line.startswith(f"{one.devno} "))
    assert "latency=unknown" in line.split()


@pytest.mark.parametrize("flags", ["--fsync=1", "--sync=dsync", "--rw=randtrim"])
def test_special_requests(tree: Subtree, disk, flags: str) -> None:
    """Flushes, FUA writes and discards work beside others, over a volatile cache."""
    one = disk("ssd", "req0", "sutro", bus_kbps=60000, cache_kb=4096)
    special = fio(one.node, "randwrite", "16k", 8, runtime=3)
    other = fio(one.node, "randrw", "16k", 16, seed=2, runtime=3)
    finish([tree.child("a").run(f"{special} {flags}"), tree.child("b").run(other)])


def test_slot_behind_a_flush(tree: Subtree, disk) -> None:
    """A read that waits for the only slot behind fdatasync() gets it when that is done."""
    one = disk("ssd", "req0", "sutro", cache_kb=4096)
    one.set(read_us=500000)
    knob(one, "group_requests").write_text("1")
    a, b = tree.child("a"), tree.child("b")
    b.run(fio(one.node, "randread", "4k", 1, seed=2))
    wait_for(lambda: groups(one).get(b.cgroup, {}).get("in_flight") == "1", "a reader", 60)
    program = (
        "import mmap, os, threading, time\n"
        f"node = os.open({one.node!r}, os.O_RDWR | os.O_DIRECT)\n"
        "def read(): os.preadv(node, [mmap.mmap(-1, 4096)], 0)\n"
        "def flush(): os.fdatasync(node)\n"
        "threads = [threading.Thread(target=one) for one in (read, flush, read)]\n"
        "for thread in threads:\n"
        "    thread.start()\n"
        "    time.sleep(0.1)\n"
        "for thread in threads: thread.join()\n"
    )
    try:
        ended(a.run("exec python3 -c " + shlex.quote(program)), timeout_s=60)
    finally:
        # The end of another read would wake one that is asleep: the test can fail.
        knob(one, "group_requests").write_text("0")
        ended(a.run(f"exec dd if={one.node} of=/dev/null bs=4k count=1 iflag=direct"))


def test_passthrough(tree: Subtree, disk) -> None:
    """Write zeroes and zeroing with unmap pass, and the device then reads zeroes."""
    one = disk("ssd", "req0", "sutro", bus_kbps=60000)
    job = tree.child("a").run(fio(one.node, "randread", "16k", 16, runtime=3))
    run("dd", "if=/dev/urandom", f"of={one.node}", "bs=1M", "count=4", "oflag=direct")
    run("blkdiscard", "--zeroout", "--length", str(4 << 20), one.node)
    finish([job])
    run("cmp", "-n", str(4 << 20), one.node, "/dev/zero")


@pytest.mark.parametrize("queues", [1, 2])
def test_hardware_queues(tree: Subtree, disk, queues: int) -> None:
    """The heavier cgroup gets more over all hardware queues, each with submitters of both."""
    one = disk("nvme", "req0", "sutro", hw_queues=queues, bus_kbps=15000)
    made = sorted((scheduler.queue(one.name).parent / "mq").iterdir())
    assert len(made) == queues
    two = {"heavy": tree.child("heavy"), "light": tree.child("light")}
    two["heavy"].write(WEIGHT, 200)
    for seed, group in enumerate(two.values(), start=1):
        for cpu in (0, 1):
            keys = {"seed": 10 * seed + cpu, "cpus_allowed": cpu}
            group.run(fio(one.node, "randread", "64k", 16, **keys))

    def used_ns(group: Group) -> int:
        return int(groups(one).get(group.cgroup, {}).get("time_ns", 0))

    # An emulated CPU may take seconds to start four jobs.
    wait_for(lambda: all(used_ns(group) > 1e8 for group in two.values()), "both at work", 60)
    used = device_time_ns(one, [group.cgroup for group in two.values()], 3, 6)
    heavy, light = (used[group.cgroup] for group in two.values())
    assert heavy > light > 0
    # nr_requests holds for each hardware queue, and may change under load.
    for slots in (8, 64, 256):
        (scheduler.queue(one.name) / "nr_requests").write_text(str(slots))
        time.sleep(0.2)
    used = device_time_ns(one, [group.cgroup for group in two.values()], 0, 1)
    assert all(used.values())
