# SPDX-License-Identifier: LGPL-2.1-or-later
"""Run tests of blktests inside the guest, one by one, with one scheduler for every disk.

Disks that a test makes get the scheduler by a rule of udev, when they appear and not again: some
tests change it themselves. The others are given two disks of this bench, a fast model disk and one
of scsi_debug (in the group scsi, that only):

    block/005    TEST_DEVS=(/dev/model /dev/sda)
    zbd/003      none: it makes a zoned null_blk if it is given none
    throtl/001   none: it makes null_blk and scsi_debug disks, and has to load these itself

A test that does not end in time is killed, after the kernel has logged all blocked tasks.
"""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from rig import scheduler as elevators
from rig.modeldisk import ModelDisk
from rig.shell import run as command
from rig.shell import run_again, wait_for

from bench.blktests.clone import wants_disk
from bench.blktests.results import rows
from bench.suites.results import FAILED, Row

RULE = Path("/run/udev/rules.d/99-blktests.rules")
CONFIG = "lab.config"
# Some tests read a GiB of their disk.
DISK_MIB = 1024
# Others take two buffers as large as the disk of scsi_debug, which is memory itself.
SMALL_MIB = 256
SMALL = ("block/042",)
# Failures of a disk that are no mistakes of the bench.
TROUBLE = (OSError, RuntimeError, TimeoutError)
SCSI_DEBUG = Path("/sys/bus/pseudo/drivers/scsi_debug")


class Stuck(Exception):
    """A test did not end, or holds its disk; that is in the way of others. It has rows."""

    def __init__(self, found: list[Row], held: ExitStack):
        super().__init__()
        self.rows = found
        # Taking this down would wait for ever.
        self.held = held


def prepare(scheduler: str) -> None:
    """Every disk that appears gets the scheduler; fail if that does not come true."""
    elevators.stop_daemon()
    RULE.parent.mkdir(parents=True, exist_ok=True)
    RULE.write_text(
        f'ACTION=="add", SUBSYSTEM=="block", ATTR{{queue/scheduler}}=="*{scheduler}*", '
        f'ATTR{{queue/scheduler}}="{scheduler}"\n'
    )
    command("udevadm", "control", "--reload")
    with ModelDisk("model", "ssd", {"size_mb": 16}) as disk:
        # The kernel offers a scheduler once its module is loaded: this loads it.
        elevators.select(disk.name, scheduler)
    for module, name in (("null_blk", "nullb0"), ("loop", "loop0")):
        command("modprobe", module)
        command("udevadm", "settle")
        if elevators.current(name) != scheduler:
            raise RuntimeError(f"{name} has {elevators.current(name)}, and not {scheduler}")
    run_again("modprobe", "--remove", "null_blk")


@contextmanager
def disks(test: str, text: str, scheduler: str) -> Iterator[list[str]]:
    """The nodes of the disks that a test is given."""
    if not wants_disk(text):
        yield []
        return
    with ExitStack() as undo:
        nodes = []
        if not test.startswith("scsi/"):
            model = undo.enter_context(ModelDisk("model", "ssd", {"size_mb": DISK_MIB}))
            model.hurry()
            nodes.append(model.node)
        size_mib = SMALL_MIB if test in SMALL else DISK_MIB
        nodes.append(undo.enter_context(_scsi_disk(size_mib)))
        for node in nodes:
            elevators.select(Path(node).name, scheduler, None)
        yield nodes


@contextmanager
def _scsi_disk(size_mib: int) -> Iterator[str]:
    """A disk of scsi_debug, which can discard."""
    command("modprobe", "scsi_debug", f"dev_size_mb={size_mib}", "delay=0", "lbpu=1")
    try:
        pattern = "adapter*/host*/target*/*:*/block/*"
        found = wait_for(lambda: list(SCSI_DEBUG.glob(pattern)), "a disk of scsi_debug", 60)
        command("udevadm", "settle")
        yield f"/dev/{found[0].name}"
    finally:
        run_again("modprobe", "--remove", "scsi_debug")


def run(clone: Path, test: str, scheduler: str, seconds: int, limit_s: float) -> list[Row]:
    """Run a test to its end; its rows. Raise Stuck if no other can be run after it."""
    results = clone / "results"
    shutil.rmtree(results, ignore_errors=True)
    results.mkdir()
    output, undo = results / "output", ExitStack()
    try:
        text = (clone / "tests" / test).read_text()
        given = undo.enter_context(disks(test, text, scheduler))
    except TROUBLE as error:
        # An earlier test has left what is in the way.
        return [Row(test, "", FAILED, f"no disk to run on: {error}")]
    (clone / CONFIG).write_text(f"TEST_DEVS=({' '.join(given)})\n")
    words = ["./check", f"--quick={seconds}", f"--config={CONFIG}", f"--output={results}", test]
    ended = _ended(words, clone, output, limit_s)
    found = rows(test, results, output.read_text(errors="replace"))
    if not ended:
        found = [row for row in found if row.place]
        found.append(Row(test, "", FAILED, f"did not end within {limit_s:g} s"))
        raise Stuck(found, undo)
    try:
        undo.close()
    except TROUBLE as error:
        raise Stuck([*found, Row(test, "", FAILED, f"holds its disk: {error}")], undo) from error
    return found


def _ended(words: list[str], folder: Path, output: Path, limit_s: float) -> bool:
    """Run a command; False if it had to be killed."""
    with open(output, "wb") as file:
        process = subprocess.Popen(
            words, cwd=folder, stdin=subprocess.DEVNULL, stdout=file, stderr=file,
            start_new_session=True,
        )  # fmt: skip
        try:
            process.wait(limit_s)
            return True
        except subprocess.TimeoutExpired:
            Path("/proc/sysrq-trigger").write_text("w")
            os.killpg(process.pid, signal.SIGKILL)
            return False
