# SPDX-License-Identifier: LGPL-2.1-or-later
"""Disks whose kernel code does not return: the daemon serves the bus and all other disks."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from clients import calling
from fakemachine import Bus, Machine, Sutrod, Systemd, wait_until
from plant import set_policy
from test_admission import NEW, fits, policy
from test_leaves import writes

# On the clock of the host, the daemon waits 0.5 s for a disk, and 1.5 s for all that hang at once.
# It would wait without end for a disk without the first limit, and 32 s for 64 disks without the
# other one.
LIMIT_S = 20.0
# A call that takes longer, on the clock of the daemon, is reported.
HANG_S = 10
RECONCILE_S = 61
HANGS = ": the disk hangs, its requests do not complete."
ANSWERS = ": the disk answers again."


@contextmanager
def hung_reads(machine: Machine, *names: str) -> Iterator[None]:
    """Reads of queue/scheduler of these disks return at the end: a pipe without input."""
    files = [machine.at(f"/sys/class/block/{name}/queue/scheduler") for name in names]
    texts = [file.read_text() for file in files]
    ends = []
    for file in files:
        file.unlink()
        os.mkfifo(file)
        ends.append(os.open(file, os.O_RDWR))
    try:
        yield
    finally:
        for file, text in zip(files, texts, strict=True):
            file.unlink()
            file.write_text(text)
        for end in ends:
            os.close(end)


@contextmanager
def in_time() -> Iterator[None]:
    """The calls that are made meanwhile do not wait for the disk."""
    began = time.monotonic()
    yield
    assert time.monotonic() - began < LIMIT_S


def hung(sutrod: Sutrod) -> list[str]:
    """The names of the disks that the daemon shows as hung."""
    return [str(d["name"]) for d in sutrod.call("ListDevices") if d["hung"]]


def error(sutrod: Sutrod, unit: str, path: str) -> str:
    """Why a unit has no weight on a leaf."""
    (leaf,) = sutrod.call("Explain", unit, path)["leaves"]
    return str(leaf["error"])


def lines(machine: Machine, unit: str, file: str = "io.sutro.weight") -> list[str]:
    """The lines of a unit's file."""
    return machine.weights(f"/system.slice/{unit}", file)


@pytest.fixture
def units(systemd: Systemd) -> None:
    """Two units."""
    systemd.start("a.service", 200)
    systemd.start("b.service", 200)


def check_others(machine: Machine, sutrod: Sutrod, weight: int) -> None:
    """The weight of a unit on another disk is set, and calls are answered."""
    set_policy(sutrod, "b.service", Weight=f"/dev/sda {weight}")
    sutrod.until(lambda: f"8:0 {weight}" in lines(machine, "b.service"), 1)


@pytest.mark.usefixtures("units")
def test_busy_disk_is_not_reported(machine: Machine, sutrod: Sutrod) -> None:
    """The first line of io.max waits for the requests of a disk, which may take some seconds."""
    machine.fault("a.service/io.max", "hang")
    sutrod.start()
    with in_time():
        set_policy(sutrod, "a.service", ReadBandwidthMax="/dev/sdd 5M", Weight="/dev/sda 300")
        check_others(machine, sutrod, 700)
    sutrod.elapse(HANG_S - 2)
    check_others(machine, sutrod, 800)
    assert not hung(sutrod)
    assert error(sutrod, "a.service", "/dev/sdd") == ""
    (promise,) = sutrod.call("ListPromises")
    assert (promise["state"], promise["cause"]) == ("stated", "")
    assert "has not finished earlier requests" in sutrod.error("UseDevices", ["/dev/sdd"])[1]
    machine.write("/faults", "")
    line = "8:48 rbps=5000000 wbps=max riops=max wiops=max"
    wait_until(lambda: lines(machine, "a.service", "io.max") == [line])
    # A limit that was set meanwhile follows at once, without the comparison of all files.
    machine.fault("a.service/io.max", "hang")
    set_policy(sutrod, "a.service", ReadBandwidthMax="/dev/sdd 6M")
    sutrod.elapse(1)
    set_policy(sutrod, "a.service", ReadBandwidthMax="/dev/sdd 7M")
    sutrod.elapse(1)
    machine.write("/faults", "")
    line = line.replace("5", "7")
    sutrod.until(lambda: lines(machine, "a.service", "io.max") == [line], 5)
    sutrod.elapse(HANG_S)
    assert not hung(sutrod)
    assert HANGS not in sutrod.log() and ANSWERS not in sutrod.log()
    assert "cannot write" not in sutrod.log()


@pytest.mark.usefixtures("units")
def test_queue_that_cannot_be_read(machine: Machine, sutrod: Sutrod) -> None:
    """The last known scheduler holds. The hang and its end are logged once."""
    sutrod.start()
    set_policy(sutrod, "a.service", Weight="/dev/sdb 400")
    with hung_reads(machine, "sdb"):
        with in_time():
            sutrod.call("Reload")
            check_others(machine, sutrod, 700)
        assert not hung(sutrod)
        with in_time():
            sutrod.elapse(RECONCILE_S)
            check_others(machine, sutrod, 800)
        assert hung(sutrod) == ["sdb"]
        assert sutrod.log().count("/dev/sdb" + HANGS) == 1
        assert "the disk hangs" in error(sutrod, "a.service", "/dev/sdb")
        assert error(sutrod, "a.service", "/dev/sda") == ""
        _, leaves, steps = sutrod.call("ResolvePath", "/dev/sdb")
        assert list(leaves) == ["/dev/sdb"]
        assert "with scheduler sutro, which hangs" in steps[0]["text"]
        assert "the disk hangs" in sutrod.error("UseDevices", ["/dev/sdb"])[1]
    sutrod.until(lambda: not hung(sutrod))
    assert sutrod.log().count("/dev/sdb" + ANSWERS) == 1
    assert error(sutrod, "a.service", "/dev/sdb") == ""
    assert "8:16 400" in lines(machine, "a.service")


@pytest.mark.usefixtures("units")
def test_start_with_a_disk_that_hangs(machine: Machine, sutrod: Sutrod) -> None:
    machine.write("/etc/sutro/sutrod.conf", "[Leaves]\nUse=/dev/sdd /dev/sdc\n")
    with hung_reads(machine, "sdd"):
        with in_time():
            sutrod.start()
        check_others(machine, sutrod, 700)
        assert machine.scheduler("sdc") == "sutro"
        (line,) = [ln for ln in sutrod.call("Dump").splitlines() if ln.startswith("  sdd ")]
        assert line.endswith(" leaf, scheduler unknown")
        verdict, (device,) = fits(
            sutrod, (NEW, policy("a.service", "ReadBandwidthMin=/dev/sdd 5%"))
        )
        assert verdict == "unknown"
        assert "the scheduler of /dev/sdd cannot be read" in device["reason"]
        sutrod.elapse(HANG_S)
        assert hung(sutrod) == ["sdd"]
    sutrod.until(lambda: machine.scheduler("sdd") == "sutro")


def test_many_disks_that_hang(machine: Machine, sutrod: Sutrod) -> None:
    """The daemon waits 1.5 s for all of them together, and starts a process for each of 64."""
    names = [f"sd{first}{second}" for first in "abcd" for second in "abcdefghijklmnopqrst"]
    for number, name in enumerate(names):
        machine.disk(name, f"66:{16 * number}", "none")
    sutrod.start()
    with hung_reads(machine, *names):
        with in_time():
            sutrod.call("Reload")
            sutrod.settle()
        sutrod.elapse(HANG_S)
        assert len(hung(sutrod)) == 64
    sutrod.until(lambda: not hung(sutrod))


@pytest.mark.usefixtures("units")
def test_line_that_the_kernel_does_not_take(machine: Machine, sutrod: Sutrod) -> None:
    """It is taken when the disk answers, and restored as any other."""
    before = lines(machine, "a.service", "io.max")
    machine.fault("a.service/io.max", "hang")
    sutrod.start()
    with in_time():
        set_policy(sutrod, "a.service", ReadBandwidthMax="/dev/sdd 5M")
        check_others(machine, sutrod, 700)
    with in_time():
        sutrod.elapse(RECONCILE_S)
        check_others(machine, sutrod, 800)
    assert hung(sutrod) == ["sdd"]
    assert sutrod.log().count("/dev/sdd" + HANGS) == 1
    assert "cannot write" not in sutrod.log()
    (promise,) = sutrod.call("ListPromises")
    assert "the disk hangs" in promise["cause"], dict(promise)
    # The kernel takes the former limit first.
    set_policy(sutrod, "a.service", ReadBandwidthMax="/dev/sdd 6M")
    machine.write("/faults", "")
    sutrod.until(lambda: not hung(sutrod))
    line = "8:48 rbps=6000000 wbps=max riops=max wiops=max"
    sutrod.until(lambda: lines(machine, "a.service", "io.max") == [line])
    sutrod.stop()
    assert lines(machine, "a.service", "io.max") == before


@pytest.mark.usefixtures("units")
def test_line_that_is_not_taken_before_the_stop(machine: Machine, sutrod: Sutrod) -> None:
    """The next daemon restores a line that the kernel has taken since."""
    before = lines(machine, "a.service", "io.max")
    machine.fault("a.service/io.max", "hang")
    sutrod.start()
    set_policy(sutrod, "a.service", ReadBandwidthMax="/dev/sdd 5M")
    sutrod.until(lambda: hung(sutrod) == ["sdd"])
    with in_time():
        sutrod.stop()
    machine.write("/faults", "")
    line = "8:48 rbps=5000000 wbps=max riops=max wiops=max\n"
    machine.write("/sys/fs/cgroup/system.slice/a.service/io.max", line)
    sutrod.start()
    assert lines(machine, "a.service", "io.max") == [line.strip()]
    sutrod.call("ResetPolicy", "a.service", "runtime")
    sutrod.until(lambda: lines(machine, "a.service", "io.max") == before)


def is_running(pid: int) -> bool:
    """A process that has ended may wait for its parent."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


@pytest.mark.usefixtures("units")
def test_children_end_with_a_killed_daemon(machine: Machine, sutrod: Sutrod) -> None:
    """The worker and a lookup do. KillMode=process of the service leaves them to the kernel."""
    machine.mount("/srv/dead", "0:50", "nfs", "server:/export")
    machine.fault("/srv/dead/x", "hang")
    sutrod.start()
    # A child of the start may be there for a moment, too.
    wait_until(lambda: len(sutrod.children().split()) == 1)
    (worker,) = map(int, sutrod.children().split())
    set_policy(sutrod, "a.service", ReadBandwidthMax="/srv/dead/x 5M")
    children: list[int] = []

    def hangs() -> bool:
        """The child that wrote the policy may be there for a moment, too."""
        children[:] = filter(is_running, map(int, sutrod.children().split()))
        return worker in children and len(children) > 1

    wait_until(hangs)
    sutrod.stop(signal.SIGKILL)
    wait_until(lambda: not any(map(is_running, children)))


@pytest.mark.usefixtures("units")
def test_queue_that_is_switched_is_not_read(bus: Bus, machine: Machine, sutrod: Sutrod) -> None:
    """A switch that the kernel does not complete holds the lock of the queue."""
    machine.fault("sdd/queue/scheduler", "hang")
    sutrod.start()
    with calling(bus, "UseDevices", ["/dev/sdd", "/dev/sdc"]) as use:
        wait_until(lambda: writes(machine, "sdd") == 1)
        with hung_reads(machine, "sdd"):
            with in_time():
                sutrod.call("Reload")
                check_others(machine, sutrod, 700)
            assert "the disk hangs" not in sutrod.log()
            assert machine.scheduler("sdc") == "sutro"
            with in_time():
                sutrod.elapse(10)
                check_others(machine, sutrod, 800)
            (_, result) = use.result()
            assert "has not finished its requests in 10 s" in result["error"]
            # The read that follows the switch waits, too.
            assert not hung(sutrod)
            sutrod.elapse(HANG_S)
            assert hung(sutrod) == ["sdd"]
    machine.set_scheduler("sdd", "sutro")
    sutrod.until(lambda: "/dev/sdd" in sutrod.property("ManagedLeaves"))
    assert not hung(sutrod)
