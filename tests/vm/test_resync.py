# SPDX-License-Identifier: LGPL-2.1-or-later
"""Resyncs of real arrays: the cgroup that the kernel charges, and the weight that they have.

tests/daemon/test_resync.py states the rest on a fake machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rig import bus
from rig.modeldisk import ModelDisk, Usage
from rig.shell import run, run_again, wait_for
from rig.stack import Stack
from rig.unit import CGROUP_ROOT, fio

SLICE = "/resync.slice"
CONF = Path("/run/sutro/sutrod.conf.d/resync.conf")
SOON_S = 60.0
# So slow that the thread has been moved before a hundredth of the array is done.
SLOWLY_KBPS, VOLUME_KBPS, MOST_KBPS = 50, 4096, 200000


def configure(*lines: str) -> None:
    """Let the daemon read a drop-in of its configuration."""
    CONF.parent.mkdir(parents=True, exist_ok=True)
    CONF.write_text("\n".join(("[Daemon]", *lines, "")))
    bus.call("Reload")


@pytest.fixture
def slice_(daemon: None) -> Iterator[None]:
    """resync.slice, which no resync uses before and after."""
    run("systemctl", "start", "resync.slice")
    configure("ResyncWeight=100")
    yield
    CONF.unlink()
    bus.call("Reload")
    run("systemctl", "stop", "resync.slice")


class Array:
    """An md array, through its files."""

    def __init__(self, node: str):
        self.node = node
        self.files = Path("/sys/class/block") / Path(node).resolve().name / "md"

    def write(self, file: str, text: object) -> None:
        (self.files / file).write_text(f"{text}\n")

    def action(self) -> str:
        return (self.files / "sync_action").read_text().strip()

    def moved(self) -> None:
        """The daemon has seen the resync, and put its thread into the slice."""

        wait_for(lambda: [one[1] for one in found()] == [SLICE], f"{self.node} moved", SOON_S)

    def finish(self) -> None:
        self.write("sync_speed_max", MOST_KBPS)
        wait_for(lambda: self.action() == "idle", f"{self.node} is idle", 2 * SOON_S)


def found() -> list[tuple[str, str]]:
    """Name and cgroup of each resync, as the daemon has them."""
    return [(one["name"], one["cgroup"]) for one in bus.call("ListResyncs")]


MakeArray = Callable[..., Array]


@pytest.fixture
def array(disk: Callable[..., ModelDisk], stack: Callable[..., Stack]) -> MakeArray:
    """Make an array over disks that sutro uses."""

    def make(level: str, disks: int, size_mb: int = 32) -> tuple[Array, list[ModelDisk]]:
        made = [disk("ssd", f"ssd{n}", size_mb=size_mb, bus_kbps=20000) for n in range(disks)]
        over = [one.name for one in made]
        top = stack(made, {"kind": "md", "name": "arr", "level": level, "over": over}).top
        bus.use(top)
        one = Array(top)
        # Below the smallest speed nothing limits a resync.
        one.write("sync_speed_min", 1)
        one.write("sync_speed_max", SLOWLY_KBPS)
        return one, made

    return make


def served(disks: list[ModelDisk], write: bool) -> tuple[int, int]:
    """Bytes of data that the disks read or wrote for the slice, and for all cgroups."""

    def data(use: Usage) -> int:
        return use.wbytes - use.meta_wbytes if write else use.rbytes - use.meta_rbytes

    truths = [disk.truth() for disk in disks]
    return sum(data(one.of(SLICE)) for one in truths), sum(data(one.total) for one in truths)


@pytest.mark.parametrize(
    ("level", "disks", "action", "writes", "charged"),
    [
        ("raid1", 2, "check", False, True),
        ("raid1", 2, "recover", True, True),
        ("raid10", 4, "check", False, True),
        ("raid10", 4, "recover", True, True),
        ("raid5", 3, "check", False, False),
    ],
)
def test_cgroup_that_is_charged(
    slice_: None,
    array: MakeArray,
    level: str,
    disks: int,
    action: str,
    writes: bool,
    charged: bool,
) -> None:
    """The slice for all requests but those from before the thread was moved, or for none."""
    one, made = array(level, disks)
    if action == "recover":
        run("mdadm", "--quiet", one.node, "--fail", made[1].node)
        run_again("mdadm", "--quiet", one.node, "--remove", made[1].node)
        run("mdadm", "--quiet", one.node, "--add", made[1].node)
    else:
        one.write("sync_action", action)
    wait_for(lambda: one.action() == action, action, SOON_S)
    one.moved()
    # Requests that were on their way are those of the root cgroup.
    time.sleep(1)
    (note,) = [str(resync["note"]) for resync in bus.call("ListResyncs")]
    for other in made:
        other.reset()
    one.finish()
    for write in (False, True) if writes else (False,):
        mine, all_ = served(made, write)
        assert all_ >= 20 << 20
        assert mine >= 0.97 * all_ if charged else mine == 0, (write, mine, all_)
    assert ("no weight has an effect" in note) == (not charged)


def test_volume_of_lvm(slice_: None, disk, stack) -> None:
    """A check of a RAID volume of LVM, whose thread has the name that all of them have."""
    made = [disk("ssd", f"ssd{n}", size_mb=64, bus_kbps=20000) for n in range(2)]
    over = [one.name for one in made]
    top = stack(made, {"kind": "lvraid", "name": "vol", "level": "raid1", "over": over}).top
    bus.use(top)
    # A change of the rate would end the check.
    run("lvchange", "--quiet", "--yes", f"--maxrecoveryrate={VOLUME_KBPS}k", top)
    run("lvchange", "--quiet", "--syncaction=check", top)
    wait_for(lambda: found() == [("mdX", SLICE)], f"mdX in {SLICE}", SOON_S)
    time.sleep(1)
    for one in made:
        one.reset()
    wait_for(lambda: found() == [], "the end of the check", 2 * SOON_S)
    mine, all_ = served(made, write=False)
    assert all_ >= 20 << 20
    assert mine >= 0.97 * all_, (mine, all_)


def test_weight_divides_the_disk(slice_: None, array: MakeArray, units) -> None:
    """A check beside services on the same disks: with less weight it has less of them."""
    one, made = array("raid1", 2, size_mb=192)
    for disk in made:
        units(f"on-{disk.name}", fio(disk.node, "randread", "64k", iodepth=32))
    # Above the smallest speed md lets a resync wait for all others.
    for file in ("sync_speed_max", "sync_speed_min"):
        one.write(file, MOST_KBPS)
    one.write("sync_action", "check")
    one.moved()
    parts = {}
    for weight in (25, 400):
        configure(f"ResyncWeight={weight}")
        file = CGROUP_ROOT / SLICE.lstrip("/") / "io.sutro.weight"
        wait_for(lambda w=weight, f=file: f"default {w}" in f.read_text(), str(weight), SOON_S)
        for disk in made:
            disk.reset()
        time.sleep(3)
        mine, all_ = served(made, write=False)
        parts[weight] = mine / all_
        assert one.action() == "check"
    one.write("sync_action", "idle")
    # By weight 0.2 and 0.8; a check has few requests at a time.
    assert parts[25] < 0.35 and parts[400] > 2 * parts[25], parts


def test_stop_of_the_daemon(slice_: None, array: MakeArray) -> None:
    """The thread goes back to the root cgroup."""
    one, _ = array("raid1", 2)
    one.write("sync_action", "check")
    one.moved()
    procs = CGROUP_ROOT / SLICE.lstrip("/") / "cgroup.procs"
    assert procs.read_text().strip()
    run("systemctl", "stop", "sutrod")
    assert procs.read_text() == ""
    run("systemctl", "start", "sutrod")
    one.moved()
    one.finish()
