# SPDX-License-Identifier: LGPL-2.1-or-later
"""Files of floors: their meaning, and how a unit moves its hot spot."""

import os
import re
import shlex
import subprocess
import time
from pathlib import Path

from bench.promises.scenario import SHIPPED, Book, UnitSpec
from bench.read import load
from bench.test_read import read

# For events that happen at once on an idle host.
PATIENCE_S = 60.0
GOOD = """
[common]
measure_s = 7
[[common.goal]]
metric = "hold_s"
max = 3
[job]
read = { rw = "randread", bs = "64k", iodepth = 32 }
[stack.flat]
disk = { names = ["s0", "s1"], kind = "ssd" }
[stack.mirror]
disk = [{ names = ["s0"], kind = "ssd" }, { names = ["s1"], kind = "hdd" }]
layer = { kind = "md", name = "md", level = "raid1", over = ["s0", "s1"] }
[scenario.second]
title = "Second"
stack = "mirror"
unit = [{ name = "db", floor = 0.5, job = "read" }]
[scenario.first]
title = "First"
stack = "flat"
measure_s = 8
unit = [
  { name = "db", on = "s0", floor = 0.5, importance = 3, job = "read" },
  { name = "noise", on = "s1", count = 3, weight = 1000, job = { rw = "write", bs = "1m" } },
]
event = [{ at_s = 2, disk = { s0 = { bus_kbps = 100 } }, floor = { db = 0.25 } }]
goal = [{ metric = "reported_s", of = "db", state = "held", max = 2 }]
"""


def test_what_a_file_means(tmp_path: Path) -> None:
    first, second = read(tmp_path, "promises", GOOD).runs()
    assert (first.name, second.name) == ("first", "second"), "in the order of their stacks"
    assert [unit.name for unit in first.unit] == ["db", "noise0", "noise1", "noise2"]
    seeds = [re.findall(r"randseed=\d+", unit.command("/dev/x", None, "")) for unit in first.unit]
    assert len({str(seed) for seed in seeds}) == 4, "no unit reads what another one reads"
    assert [unit.in_flight for unit in first.unit] == [2 << 20, 1 << 20, 1 << 20, 1 << 20]
    assert [unit.name for unit in first.promised()] == ["db"]
    assert (first.measure_s, second.measure_s) == (8, 7)
    assert [goal.metric for goal in second.goal] == ["hold_s"]
    assert (first.goal[0].metric, first.goal[0].state) == ("reported_s", "held")
    assert second.stack.top == "md" and second.stack.disks() == ["s0", "s1"]


def test_alone_and_without(tmp_path: Path) -> None:
    first, _ = read(tmp_path, "promises", GOOD).runs()
    alone, without = first.alone("db"), first.without()
    assert [unit.name for unit in alone.unit] == ["db"] and not alone.event
    assert not alone.promised() and not without.promised()
    assert [unit.weight for unit in without.unit] == [100, 1000, 1000, 1000]
    assert without.event[0].disk and not without.event[0].floor


def test_the_shipped_file_holds_the_promised_contest() -> None:
    """Aggressors have 1000 against 100; four of them, where others did not set the number."""
    book = load(Book, SHIPPED)
    numbers = {"alone": 0, "raid0-oltp": 3, "raid0-three-floors": 2}
    assert len(book.overhead) == 1
    for scenario in book.scenario:
        assert {unit.weight for unit in scenario.promised()} == {100}, scenario.name
        others = [unit.weight for unit in scenario.others()]
        assert others == [1000] * numbers.get(scenario.name, 4), scenario.name
        assert scenario.goal and "sutro" in scenario.schedulers
    alternatives = {"bfq", "iocost", "io.max"}
    compared = [s.name for s in book.scenario if alternatives <= set(s.schedulers)]
    assert {"stripe-read", "stripe-write"} <= set(compared)


FIO = """#!/bin/sh
for word; do
	case $word in
	--offset=*) offset=${word#*=} ;;
	--exec_prerun=*) prerun=${word#*=} ;;
	esac
done
echo "ready $offset" >>"$LOG"
eval "$prerun"
echo "reads at $offset" >>"$LOG"
exec sleep 60
"""


def test_a_hot_spot_moves_when_the_gate_opens(tmp_path: Path) -> None:
    """Both jobs are loaded at once; one reads until the gate is opened, then the other does."""
    fio, log, gate = tmp_path / "fio", tmp_path / "log", tmp_path / "gate"
    fio.write_text(FIO)
    fio.chmod(0o755)
    os.mkfifo(gate)
    opened = os.open(gate, os.O_RDWR)
    job = {"rw": "randread", "bs": "64k", "iodepth": 32, "offset": "0m"}
    line = UnitSpec("db", job).command("/dev/null", {"offset": "560m"}, shlex.quote(str(gate)))
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "LOG": str(log)}
    shell = subprocess.Popen(["/bin/sh", "-c", line], env=environment, start_new_session=True)

    def soon(wanted: set[str]) -> None:
        end_s = time.monotonic() + PATIENCE_S
        while not log.exists() or set(log.read_text().splitlines()) != wanted:
            assert time.monotonic() < end_s, log.read_text()
            time.sleep(0.01)

    try:
        before = {"ready 0m", "ready 560m", "reads at 0m"}
        soon(before)
        os.write(opened, b"\n\n")
        soon(before | {"reads at 560m"})
        end_s = time.monotonic() + PATIENCE_S
        # Left are the shell and the reading job.
        while living(shell.pid) > 2:
            assert time.monotonic() < end_s, "the first job goes on"
            time.sleep(0.01)
        assert shell.poll() is None
    finally:
        os.killpg(shell.pid, 9)
        shell.wait()
        os.close(opened)


def living(group: int) -> int:
    """How many processes of a group live: those that have ended are not counted."""
    words = ["pgrep", "--count", f"--pgroup={group}", "--runstates=RSD"]
    return int(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
