# SPDX-License-Identifier: LGPL-2.1-or-later
"""The stage boot of ./lab test: a machine with root on LVM on raid1 reboots, and loses its power.

One machine (persistent.py) lives through all steps, in this order. Its packages have a lower
version than those of this clone:

    configured      an administrator configures it (tests/boot/settings.py); a reboot
    upgrade         the packages of this clone; the power is cut while DKMS compiles
    completed       the guide's commands for an interrupted installation; the power is cut at once
    killed          dpkg gets SIGKILL while it installs the package sutro; a reboot
    cut N           the power is cut during changes under load, or while dpkg installs sutro
    removed         sutro-stacking-dkms is removed; a reboot

After each boot the state of the system has to be `running`. Then an interrupted installation is
mended by the commands of the guide, and tests/boot/check.py compares files, schedulers, weights and
promises with the settings. A machine that does not boot ends the stage. The moments are drawn from
a seed.
"""

import random
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from . import crashes, persistent, products
from .cache import Cache
from .crashes import Volume
from .guest import Guest
from .junit import Results, judged
from .progress import LabError, step
from .roots import package_recipe

CUTS, SEED = 8, 1
# Every third cut is one of dpkg.
DPKG_EACH = 3
LOWER_VERSION = "0.0.9"
# Before a cut, the most lines of the journal of changes, or of the status of dpkg; and then the
# longest time. An installation of the package sutro has about 9 lines of status.
CHANGES, STATUS_LINES, MOMENT_S = 40, 9, 2.0
COMPILES_S = 60.0
# Of each cut during changes: moments at which only the files are examined (crashes.py).
MOMENTS = 5
COMMAND_TIMEOUT_S = 3600.0
POLL_S = 0.2
OWN, LOWER = "/mnt/build", "/mnt/build/lower"
# The commands of the guide for an interrupted installation.
MEND = (
    "rm -f /mnt/out/status; dpkg --configure -a; "
    'if [ -n "$(dpkg --audit)" ]; then dpkg --install {files}; fi'
)
# The disks of [Leaves] Use= have the scheduler soon, without a reboot.
COMPLETE = (
    f"{MEND} && for n in $(seq 100); do "
    "grep -q '\\[sutro' /sys/block/vda/queue/scheduler && "
    "grep -q '\\[sutro' /sys/block/vdb/queue/scheduler && exit 0; sleep 0.2; done; "
    "grep . /sys/block/vd[ab]/queue/scheduler; exit 1"
)
# dpkg in the background of the shell; a file on the host when DKMS has compiled something.
COMPILE = (
    "dpkg --install {files} & until ls /var/lib/dkms/sutro/*/build/*.o >/dev/null 2>&1 || "
    "! kill -0 $!; do sleep 0.5; done; echo compiles >/mnt/out/status; wait $!"
)
INSTALL = "dpkg --install --status-fd=9 {files} 9>/mnt/out/status; yes end | head >>/mnt/out/status"
CHANGE = "python3 -m boot.change {seed} || echo >/mnt/out/failed"


@dataclass(frozen=True)
class Step:
    """Something that happens to a running machine, and ends it."""

    name: str
    action: Callable[[Guest], None]
    # Packages whose installation may have been interrupted.
    files: str = ""
    # Options of check.py after this step, and after this one and all later ones.
    once: str = ""
    options: str = ""


class Life:
    """The machine with its folders on the host."""

    def __init__(self, cache: Cache, source: Path, seed: int):
        self.seed = random.Random(seed)
        lower = products.debs(cache, source, package_recipe(), version=LOWER_VERSION)
        self.machine = persistent.machine(cache, lower, "boot", random.Random(seed))
        build = self.machine.folder / "build"
        shutil.copytree(products.debs(cache, source, package_recipe()), build, dirs_exist_ok=True)
        shutil.copytree(lower, build / "lower")
        self.out = self.machine.folder / "out"
        # Of power cuts without a boot.
        self.moments = 0
        self.problems: list[str] = []

    def steps(self, cuts: int) -> Iterator[Step]:
        """All steps."""
        yield Step("configured", self.configure)
        files = packages(OWN, "sutro", "sutro-dkms")
        # Between the two there is no module.
        yield Step("upgrade", partial(self.cut_compilation, files=files), once="--only-files")
        yield Step("completed", partial(self.complete, files=files), files)
        files = packages(LOWER, "sutro")
        yield Step("killed", partial(self.kill_dpkg, files=files), files)
        for number in range(1, cuts + 1):
            if number % DPKG_EACH:
                yield Step(f"cut {number}", self.cut_changes)
            else:
                files = packages(self.seed.choice((OWN, LOWER)), "sutro")
                yield Step(f"cut {number}", partial(self.cut_dpkg, files=files), files)
        yield Step("removed", self.remove_stacking, options="--stock-drivers")

    # Steps.

    def configure(self, running: Guest) -> None:
        inside(running, "python3 -m boot.settings", "settings")
        inside(running, "python3 -m boot.check", "check")
        running.reboot()

    def cut_compilation(self, running: Guest, files: str) -> None:
        running.start(COMPILE.format(files=files), "dpkg")
        self.wait_lines("status", 1)
        time.sleep(self.seed.uniform(0, COMPILES_S))

    def complete(self, running: Guest, files: str) -> None:
        inside(running, COMPLETE.format(files=files), "complete")
        self.machine.loses_all = True

    def kill_dpkg(self, running: Guest, files: str) -> None:
        unit = running.start(INSTALL.format(files=files), "dpkg")
        self.wait_lines("status", self.seed.randint(1, STATUS_LINES))
        inside(running, f"systemctl kill --signal=KILL {unit} || true", "kill")
        running.reboot()

    def cut_dpkg(self, running: Guest, files: str) -> None:
        running.start(INSTALL.format(files=files), "dpkg")
        self.wait_lines("status", self.seed.randint(1, STATUS_LINES))
        time.sleep(self.seed.uniform(0, MOMENT_S))

    def cut_changes(self, running: Guest) -> None:
        self.machine.examine = self.examine
        before = self.lines("changes")
        number = self.seed.randrange(1 << 32)
        running.start(f"export {PYTHON}; {CHANGE.format(seed=number)}", "change")
        self.wait_lines("changes", before + self.seed.randint(1, CHANGES))
        time.sleep(self.seed.uniform(0, MOMENT_S))

    def examine(self, volume: Volume, log: Path) -> None:
        """Cut the power at other moments of the same boot, too, and look at the files."""
        changes = (self.out / "changes").read_text().splitlines()
        count, problems = crashes.judge(volume, log, changes, MOMENTS, self.seed)
        self.moments += count
        self.problems += problems

    def remove_stacking(self, running: Guest) -> None:
        inside(running, "dpkg --remove sutro-stacking-dkms", "remove")
        running.reboot()

    # Files on the host that the guest writes.

    def lines(self, name: str) -> int:
        try:
            return len((self.out / name).read_text().splitlines())
        except FileNotFoundError:
            return 0

    def wait_lines(self, name: str, count: int) -> None:
        deadline = time.monotonic() + COMMAND_TIMEOUT_S
        while self.lines(name) < count:
            if self.lines("failed"):
                raise LabError("a change of settings failed; the logs of the boot have the error")
            if time.monotonic() > deadline:
                raise LabError(f"{name} has {self.lines(name)} lines, wanted {count}")
            time.sleep(POLL_S)


PYTHON = "PYTHONPATH=/mnt/src/tests"


def stage(cache: Cache, source: Path, *, cuts: int = CUTS, seed: int = SEED) -> Results:
    """All steps; a test for each."""
    step(f"boot: {cuts} power cuts with the seed {seed}")
    life, results, options = Life(cache, source, seed), Results(), ""
    before: Step | None = None
    for one in (*life.steps(cuts), None):
        try:
            with life.machine.boot() as running:
                if before:
                    options = before.options or options
                    judge(before, running, options, results)
                if one:
                    step(f"boot: {one.name}")
                    before = act(one, running, results)
        except LabError as error:
            name = before.name if before else "begin"
            results.failed[f"boot.{name}"] = told(error)
            break
    step(f"boot: files after {life.moments} power cuts more: {len(life.problems)} problems")
    text = "\n".join(life.problems) if life.moments else "no moment was examined"
    results.add(judged([("boot.moments", text)]))
    return results


def act(one: Step, running: Guest, results: Results) -> Step | None:
    """Do a step; the step, if it is to be judged."""
    try:
        one.action(running)
    except LabError as error:
        results.failed[f"boot.{one.name}"] = told(error)
        return None
    return one


def judge(one: Step, running: Guest, options: str, results: Results) -> None:
    """Mend and check what a step has left."""
    try:
        if one.files:
            inside(running, MEND.format(files=one.files), "mend")
        inside(running, f"python3 -m boot.check {one.once} {options}", "check")
        running.check_log()
    except LabError as error:
        results.failed[f"boot.{one.name}"] = told(error)
    else:
        results.passed.append(f"boot.{one.name}")


def inside(running: Guest, command: str, name: str) -> None:
    """Run a command that has to succeed."""
    if running.run(f"export {PYTHON}; {command}", name=name, timeout_s=COMMAND_TIMEOUT_S) != 0:
        text = running.log.read_text(errors="replace").strip()
        raise LabError(f"{name} failed:\n{text}", running.log)


def packages(folder: str, *names: str) -> str:
    """Files of packages as a pattern of the shell."""
    return " ".join(f"{folder}/{name}_*.deb" for name in names)


def told(error: LabError) -> str:
    """The text of an error with its log."""
    return f"{error}\nthe whole log is {error.log}" if error.log else str(error)
