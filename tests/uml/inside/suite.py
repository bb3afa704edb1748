# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests of others on model disks: xfstests, or tests of LTP, under one scheduler.

plan.json: `suite` (xfstests or ltp), `scheduler`, `disk` (its numbers), `disks` (how many), `fs`,
`options` (of mount), `limit_s` and `tests`: names, of LTP with their commands. The suite is in
/mnt/suite. All runs in a cgroup, so that the disks have a group beside the root.

    d0, d1    the disk with a file system, and the one that tests make file systems on
    d2        the log of dm-log-writes
    d3, ...   with d1, the pool of btrfs

/mnt/out gets the output of xfstests in `check.log` and its files in `results`; of LTP, a line of
JSON in `ended` for each test that has ended, its output in NAME.log, and the name of the running
test in `now`. A test that does not end in limit_s ends xfstests, because it holds the disks. Exit
status 3: the machine is of no more use; 1: the suite ended early.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from machine import BLOCK, CGROUPS, CONTROLLERS, MNT, leave, make_disk, plan, run, write

SUITE, OUT = MNT / "suite", MNT / "out"
TEST, SCRATCH, RESULTS = Path("/tmp/test"), Path("/tmp/scratch"), Path("/tmp/results")
CHANGES = (Path("/tmp/changes/upper"), Path("/tmp/changes/work"))
FORCE = {"ext4": "-F", "xfs": "-f", "btrfs": "-f"}
POLL_S = 2.0
# A killed process may be in the middle of a large write.
KILL_S = 60.0
STUCK = 3


def prepare(made: Mapping[str, Any]) -> None:
    """Disks under the scheduler, folders, the cgroup."""
    for number in range(made["disks"]):
        make_disk(f"d{number}", made["disk"])
    for queue in BLOCK.glob("*/queue/scheduler"):
        if made["scheduler"] in queue.read_text():
            write(queue, made["scheduler"])
    for number in range(made["disks"]):
        text = (BLOCK / f"d{number}" / "queue/scheduler").read_text()
        if f"[{made['scheduler']}]" not in text:
            raise SystemExit(f"d{number} has another scheduler than {made['scheduler']}: {text}")
    write(CGROUPS / "cgroup.subtree_control", CONTROLLERS)
    (CGROUPS / "suite").mkdir()
    write(CGROUPS / "suite/cgroup.procs", 0)
    run("hostname", "lab")
    run("/usr/lib/systemd/systemd-udevd", "--daemon")
    run("udevadm", "trigger", "--action=add", "--subsystem-match=block")
    run("udevadm", "settle")
    for folder in (TEST, SCRATCH, RESULTS, *CHANGES):
        folder.mkdir(parents=True)
    # Tests write beside themselves, in a folder that is the host's.
    layers = f"lowerdir={SUITE},upperdir={CHANGES[0]},workdir={CHANGES[1]}"
    run("mount", "-t", "overlay", "-o", layers, "suite", str(SUITE))
    run(f"mkfs.{made['fs']}", "-q", FORCE[made["fs"]], "/dev/d0")


def started(words: list[str], output: IO[bytes], **keys: Any) -> subprocess.Popen:
    return subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        start_new_session=True,
        **keys,
    )


def killed(process: subprocess.Popen) -> bool:
    """Kill a process with its children; False if it does not die."""
    os.killpg(process.pid, signal.SIGKILL)
    try:
        process.wait(KILL_S)
        return True
    except subprocess.TimeoutExpired:
        return False


# ---- xfstests ----


def settings(made: Mapping[str, Any]) -> dict[str, str]:
    """The variables that xfstests is configured with."""
    pool = ["/dev/d1", *(f"/dev/d{number}" for number in range(3, made["disks"]))]
    scratch = {"SCRATCH_DEV_POOL": " ".join(pool)} if made["fs"] == "btrfs" else {
        "SCRATCH_DEV": "/dev/d1"
    }  # fmt: skip
    options = {"MOUNT_OPTIONS": made["options"], "TEST_FS_MOUNT_OPTS": made["options"]}
    return {
        "FSTYP": made["fs"], "TEST_DEV": "/dev/d0", "TEST_DIR": str(TEST),
        "SCRATCH_MNT": str(SCRATCH), "LOGWRITES_DEV": "/dev/d2",
        "RESULT_BASE": str(RESULTS), "HOST_OPTIONS": "/tmp/none.config",
    } | scratch | (options if made["options"] else {})  # fmt: skip


def xfstests(made: Mapping[str, Any]) -> int:
    """All tests in one run of `check`."""
    log = OUT / "check.log"
    words = ["./check", "--exact-order", *made["tests"]]
    with open(log, "wb") as output:
        process = started(words, output, cwd=SUITE, env=os.environ | settings(made))
        size, since, is_stuck = 0, time.monotonic(), False
        while process.poll() is None and not is_stuck:
            time.sleep(POLL_S)
            if log.stat().st_size != size:
                size, since = log.stat().st_size, time.monotonic()
            is_stuck = time.monotonic() - since > made["limit_s"]
        if is_stuck:
            killed(process)
    # Not in a folder of the host before: there, files keep no owner.
    shutil.copytree(RESULTS, OUT / "results", symlinks=True, copy_function=shutil.copyfile)
    if is_stuck:
        return STUCK
    # After a failure of its own, `check` may end before its last test.
    lines = log.read_text(errors="replace").splitlines()
    return 0 if any(line.startswith("Ran: ") for line in lines) else 1


# ---- LTP ----


def ltp(made: Mapping[str, Any]) -> int:
    """One test after the other."""
    run(
        "mount",
        "-t",
        made["fs"],
        "/dev/d0",
        str(TEST),
        *(["-o", made["options"]] if made["options"] else []),
    )
    path = f"{SUITE}/testcases/bin:{os.environ['PATH']}"
    env = os.environ | {
        "LTPROOT": str(SUITE), "PATH": path, "TMPDIR": str(TEST), "LTP_DEV": "/dev/d1",
        "LTP_DEV_FS_TYPE": made["fs"], "LTP_TIMEOUT_MUL": "4", "LTP_COLORIZE_OUTPUT": "0",
    }  # fmt: skip
    for test, command in made["tests"].items():
        (OUT / "now").write_text(test)
        write(Path("/dev/kmsg"), f"run suite {test}")
        began = time.monotonic()
        with open(OUT / f"{test.replace('/', '-')}.log", "wb") as output:
            process = started(["sh", "-c", command], output, cwd=TEST, env=env)
            try:
                ended = {"status": process.wait(made["limit_s"])}
            except subprocess.TimeoutExpired:
                if not killed(process):
                    return STUCK
                ended = {"status": -1, "reason": f"did not end within {made['limit_s']} s"}
        with open(OUT / "ended", "a") as file:
            line = {"test": test, "seconds": round(time.monotonic() - began, 1)} | ended
            file.write(json.dumps(line) + "\n")
    (OUT / "now").unlink()
    return 0


if __name__ == "__main__":
    PLAN = plan()
    prepare(PLAN)
    status = {"xfstests": xfstests, "ltp": ltp}[PLAN["suite"]](PLAN)
    leave({"status": status})
    sys.stdout.flush()
    os._exit(status)
