# SPDX-License-Identifier: LGPL-2.1-or-later
"""The stage deep of ./lab test: a stress test on a PC with two CPUs whose kernel has KCSAN.

The kernel (tests/uml/deep.config) is preemptible and has KCSAN, lockdep and the other checks of
tests/uml/debug.config. QEMU emulates the PC, also where there is KVM: each CPU is a thread of the
host, and nothing else decides what a run finds. Its root file system is the tree of the guest
image, its /mnt is a folder of the host as in uml.py; both come by 9p.

    stress.*       files that tests/uml/inside/stress.py has to leave behind
    kernel log     any complaint but a data race
    races          data races in which a function of ours is on a stack (races.py)
    kcsan          it passed its own test at boot, and has watched
    lockdep        it was at work until the end
    cpus           there were two
"""

import json
import re
from pathlib import Path

from rig.kernel_log import kernel_trouble
from uml import robustness

from . import uml
from .cache import Cache
from .guest import ACCELERATORS, PATIENCE, QEMU, TRUST_TSC, shared
from .image import image_root
from .junit import Results, judged, reason
from .namespace import run
from .progress import LabError, step
from .races import TITLE, races
from .roots import KERNEL

ACCELERATOR = "tcg-smp"
CPUS = 2
MEMORY_MIB = 2048
SECONDS = 90
# Enough that each kind of change comes, also on a busy host.
CHANGES = 150
# Boot, the end of all that was begun, and a host that is busy.
TIMEOUT_S = 1800.0
KCSAN, LOCKDEP = "/sys/kernel/debug/kcsan", "/proc/lockdep_stats"
ONLINE = "/sys/devices/system/cpu/online"
# As many requests as emulated CPUs can do: threads that seldom meet have no races.
FAST = {"kind": "ssd", "size_mb": 256, "read_us": 200, "write_us": 400}
PLAN = {
    "seed": 1, "seconds": SECONDS, "changes": CHANGES, "hands": 2, "leaks": False,
    "files": [KCSAN, LOCKDEP, ONLINE],
    "disks": {"d1": FAST | {"hw_queues": 2}, "d2": FAST, "d3": {"completion_nsec": 400000}},
}  # fmt: skip
# A run that watched less often than this looked at nothing.
WATCHED = 10000
# LINUX_REBOOT_CMD_RESTART, which ends QEMU.
RESTART = "0x1234567"
SHARE = "trans=virtio,version=9p2000.L,msize=262144"


def stage(cache: Cache, source: Path) -> Results:
    """Build the kernel, run the stress on it, judge what came of it."""
    folder = cache.run_dir / "deep"
    uml.prepared(source, uml.kernel(cache, source, uml.PC), folder)
    (folder / "plan.json").write_text(json.dumps(PLAN))
    console, results = folder / "console.log", Results()
    step(f"deep: the PC boots; {SECONDS} s of stress at least")
    try:
        run(_command(cache, folder), "the PC", folder / "qemu.log", timeout_s=TIMEOUT_S)
        result = uml.left(folder, "stress")
    except LabError as error:
        # The log of its kernel is a better reason than the timeout.
        results.failed["deep.stress"] = f"{error}\nthe whole log is {error.log or console}"
        result = None
    log_text = console.read_text(errors="replace") if console.exists() else ""
    results.add(judged_log(log_text))
    if result:
        results.add(judged_result(result))
    return results


def judged_log(log: str) -> Results:
    """Problems in the kernel log: complaints, races, and a missing KCSAN."""
    found = races(log)
    # All lines are looked at, for another CPU may complain in the middle of a report.
    trouble = [line for line in kernel_trouble(log) if not TITLE.search(line)]
    ours = [race for race in found if race.ours]
    others = sorted(race.title for race in found if not race.ours)
    step(f"deep: {len(others)} data races of others, not judged: {', '.join(others) or 'none'}")
    tested = re.search(r"kcsan: selftest: (\d+)/(\d+) tests passed", log)
    passed = tested and tested[1] == tested[2]
    texts = {
        "deep.kernel log": "\n".join(trouble),
        "deep.races": "\n\n".join(race.text for race in ours),
        "deep.kcsan.selftest": "" if passed else "it did not pass",
    }
    return judged(texts.items())


def judged_result(result: dict) -> Results:
    """Problems in the files of the stress test, and an early end of KCSAN or lockdep."""
    watched = re.search(r"^setup_watchpoints: (\d+)$", result["files"][KCSAN], re.MULTILINE)
    times = int(watched[1]) if watched else 0
    step(f"deep: KCSAN watched {times} times; done: {result['done']}")
    locks = re.search(r"^ debug_locks: +1$", result["files"][LOCKDEP], re.MULTILINE)
    texts = {f"deep.stress.{row.metric}": reason(row) for row in robustness.judge(result)}
    texts["deep.kcsan.watched"] = "" if times >= WATCHED else f"{times} times; wanted {WATCHED}"
    texts["deep.lockdep"] = "" if locks else f"it gave up:\n{result['files'][LOCKDEP]}"
    texts["deep.cpus"] = "" if result["files"][ONLINE] == "0-1\n" else result["files"][ONLINE]
    return judged(texts.items())


def _command(cache: Cache, folder: Path) -> list[str]:
    """The emulator: two CPUs, two folders, one serial port."""
    begin = f"mount -t 9p -o {SHARE} work /mnt && END={RESTART} exec /mnt/inside/init"
    arguments = (
        # A busy host's ticks may come too late for the kernel's look at its timer.
        f"console=ttyS0 loglevel=7 panic=-1 oops=panic nokaslr no_timer_check {PATIENCE} "
        f"{TRUST_TSC} "
        f"root=root rootfstype=9p rootflags={SHARE},cache=loose ro lab.run=stress "
        f'init=/bin/sh -- -c "{begin}"'
    )
    command = [
        QEMU, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-nic", "none",
        *ACCELERATORS[ACCELERATOR].split(), "-smp", str(CPUS),
        "-m", f"{MEMORY_MIB}M", "-kernel", str(folder / "bzImage"), "-append", arguments,
        "-serial", f"file:{folder / 'console.log'}",
    ]  # fmt: skip
    command += shared("root", image_root(cache, KERNEL).path, ",readonly=on")
    return command + shared("work", folder)
