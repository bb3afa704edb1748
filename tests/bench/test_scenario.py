# SPDX-License-Identifier: LGPL-2.1-or-later
"""Files of floors: what they mean, and that each mistake is named with file, scenario and key."""

from __future__ import annotations

import os
import shlex
import subprocess
import time
from pathlib import Path

import pytest

from bench.promises.scenario import SHIPPED, Book, UnitSpec, load
from bench.tables import ScenarioError

GOOD = """
[common]
measure_s = 7
[[common.goal]]
metric = "hold_s"
max = 3
[job]
read = { rw = "randread", bs = "64k", iodepth = 32 }
[[stack]]
name = "flat"
disk = { names = ["s0", "s1"], kind = "ssd" }
[[stack]]
name = "mirror"
disk = [{ names = ["s0"], kind = "ssd" }, { names = ["s1"], kind = "hdd" }]
layer = { kind = "md", name = "md", level = "raid1", over = ["s0", "s1"] }
[[scenario]]
name = "second"
title = "Second"
stack = "mirror"
unit = [{ name = "db", floor = 0.5, job = "read" }]
[[scenario]]
name = "first"
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


def read(folder: Path, text: str) -> Book:
    file = folder / "p.toml"
    file.write_text(text)
    return load(file)


def test_what_a_file_means(tmp_path: Path) -> None:
    first, second = read(tmp_path, GOOD).scenarios
    assert (first.name, second.name) == ("first", "second"), "in the order of their stacks"
    assert [unit.name for unit in first.unit] == ["db", "noise0", "noise1", "noise2"]
    assert len({unit.job["seed"] for unit in first.unit}) == 4, "nobody reads what another reads"
    assert [unit.in_flight for unit in first.unit] == [2 << 20, 1 << 20, 1 << 20, 1 << 20]
    assert [unit.name for unit in first.promised()] == ["db"]
    assert (first.measure_s, second.measure_s) == (8, 7)
    assert [goal.metric for goal in second.goal] == ["hold_s"]
    assert (first.goal[0].metric, first.goal[0].state) == ("reported_s", "held")
    assert second.stack.top == "md" and second.stack.disks() == ["s0", "s1"]


def test_alone_and_without(tmp_path: Path) -> None:
    first, _ = read(tmp_path, GOOD).scenarios
    alone, without = first.alone("db"), first.without()
    assert [unit.name for unit in alone.unit] == ["db"] and not alone.event
    assert not alone.promised() and not without.promised()
    assert [unit.weight for unit in without.unit] == [100, 1000, 1000, 1000]
    assert without.event[0].disk and not without.event[0].floor


def test_a_part_of_a_file(tmp_path: Path) -> None:
    book = read(tmp_path, GOOD)
    assert book.only([], []) == book
    (one,) = book.only(["second"], ["bfq", "io.max"]).scenarios
    assert one.name == "second" and one.schedulers == ("bfq", "io.max")
    with pytest.raises(ScenarioError, match="no scenario third; there are first, second"):
        book.only(["third"], [])
    with pytest.raises(ScenarioError, match="no scheduler cfq"):
        book.only([], ["cfq"])


def test_the_shipped_file_holds_the_promised_contest() -> None:
    """Four aggressors of weight 1000 against 100, whatever else a scenario is about."""
    book = load(SHIPPED)
    assert len(book.overheads) == 1
    for scenario in book.scenarios:
        assert {unit.weight for unit in scenario.promised()} == {100}, scenario.name
        others = [unit.weight for unit in scenario.others()]
        assert others == [1000] * (0 if scenario.name == "alone" else 4), scenario.name
        assert scenario.goal and "sutro" in scenario.schedulers
    compared = [s.name for s in book.scenarios if len(s.schedulers) == 4]
    assert {"stripe-read", "stripe-write"} <= set(compared)


ONE = {
    "name": 'name = "wrong"',
    "title": 'title = "T"',
    "stack": 'stack = "flat"',
    "unit": 'unit = [{ name = "db", floor = 0.5, job = "read" }]',
    "goal": 'goal = [{ metric = "hold_s", max = 1 }]',
}
JOB = '{ rw = "read", bs = "4k" }'
MISTAKES = {
    "colour = 1": ("colour", "unknown key"),
    "title = 3": ("title", "3"),
    'stack = "heap"': ("stack", "heap", "flat"),
    'schedulers = ["cfq"]': ("schedulers", "cfq"),
    "measure_s = 0": ("measure_s", "above 0"),
    "unit = []": ("unit", "none has a floor"),
    f'unit = [{{ name = "x", job = {JOB} }}]': ("unit", "none has a floor"),
    f'unit = [{{ name = "x", floor = 1.5, job = {JOB} }}]': ("unit x", "floor", "1.5"),
    f'unit = [{{ name = "x", floor = 0.5, weight = 0, job = {JOB} }}]': ("weight", "1 to 10000"),
    f'unit = [{{ name = "x", floor = 0.5, on = "md9", job = {JOB} }}]': ("unit x: on", "md9", "s0"),
    f'unit = [{{ name = "x", floor = 0.5, importance = -1, job = {JOB} }}]': ("importance",),
    f'unit = [{{ name = "x", floor = 0.5, count = 0, job = {JOB} }}]': ("count", "0"),
    f'unit = [{{ name = "x", floor = 0.5, job = {JOB} }}, { {"": 0} }]': ("line",),
    'unit = [{ name = "x", floor = 0.5, job = "write" }]': ("unit x: job", "write", "read"),
    'unit = [{ name = "x", floor = 0.5, job = { rw = "trim", bs = "4k" } }]': ("job: rw",),
    'unit = [{ name = "x", floor = 0.5, job = { rw = "read", bs = "many" } }]': ("job", "bs"),
    "event = [{ at_s = 99 }]": ("event", "measure_s"),
    "event = [{ at_s = 2 }, { at_s = 1 }]": ("event", "order"),
    'event = [{ at_s = 1, stop = ["zz"] }]': ("event at 1 s", "zz", "db"),
    'event = [{ at_s = 1, stop = "db" }]': ("event at 1 s", "stop", "list"),
    "event = [{ at_s = 1, disk = { zz = { rpm = 1 } } }]": ("event at 1 s: disk", "zz", "s0"),
    "event = [{ at_s = 1, disk = { s0 = 1 } }]": ("event at 1 s: disk", "s0", "table"),
    "event = [{ at_s = 1, floor = { db = 2 } }]": ("floor", "db", "2"),
    'goal = [{ metric = "beauty", min = 1 }]': ("metric", "beauty"),
    'goal = [{ metric = "hold_s" }]': ("hold_s", "min or max"),
    'goal = [{ metric = "hold_s", of = "zz", max = 1 }]': ("goal", "zz"),
    'goal = [{ metric = "reports", state = "sad", max = 1 }]': ("state", "sad", "infeasible"),
}


@pytest.mark.parametrize("line", MISTAKES)
def test_mistakes_are_named(tmp_path: Path, line: str) -> None:
    lines = ONE | {line.partition(" ")[0]: line}
    text = GOOD + "[[scenario]]\n" + "\n".join(lines.values()) + "\n"
    with pytest.raises(ScenarioError) as caught:
        read(tmp_path, text)
    said = str(caught.value)
    parts = MISTAKES[line] if MISTAKES[line] == ("line",) else ("scenario wrong", *MISTAKES[line])
    for part in (str(tmp_path / "p.toml"), *parts):
        assert part in said


STACKS = {
    'name = "x"': ("stack x", "disk", "missing"),
    'name = "x"\ndisk = { names = ["a"], kind = "tape" }': ("disk: kind", "hdd"),
    'name = "x"\ndisk = { names = "a", kind = "ssd" }': ("disk: names", "list"),
    'name = "flat"\ndisk = { names = ["a"], kind = "ssd" }': ("stack flat", "twice"),
    'disk = { names = ["a"], kind = "ssd" }': ("stack number 3", "name"),
    'name = "x"\ndisk = { names = ["a"], kind = "ssd" }\nfill = ["b"]': ("fill", "'b'"),
    'name = "x"\ndisk = { names = ["a"], kind = "ssd" }\n'
    'layer = { kind = "zfs", name = "z", over = ["a"] }': ("layer z", "kind", "striped"),
    'name = "x"\ndisk = { names = ["a"], kind = "ssd" }\n'
    'layer = { kind = "crypt", name = "z", over = ["b"] }': ("layer z", "over", "'b'"),
}


@pytest.mark.parametrize("text", STACKS)
def test_mistakes_in_stacks_are_named(tmp_path: Path, text: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        read(tmp_path, f"{GOOD}[[stack]]\n{text}\n")
    for part in (str(tmp_path / "p.toml"), *STACKS[text]):
        assert part in str(caught.value)


OVERHEADS = {
    "units = 0": ("units", "1 to 10000"),
    "promised = 9": ("promised", "more than units"),
    'goal = [{ metric = "hold_s", max = 1 }]': ("metric", "hold_s"),
}


@pytest.mark.parametrize("line", OVERHEADS)
def test_mistakes_in_overheads_are_named(tmp_path: Path, line: str) -> None:
    keys = {"units": "units = 5", "promised": "promised = 1"} | {line.partition(" ")[0]: line}
    lines = ['name = "cost"', 'title = "T"', "leaves = 2", "active = 1", *keys.values()]
    with pytest.raises(ScenarioError) as caught:
        read(tmp_path, GOOD + "[[overhead]]\n" + "\n".join(lines) + "\n")
    for part in ("p.toml: overhead cost", *OVERHEADS[line]):
        assert part in str(caught.value)


@pytest.mark.parametrize("text", ["", "[[scenario]", "[common]\n"])
def test_a_file_that_has_nothing_to_run_is_named(tmp_path: Path, text: str) -> None:
    with pytest.raises(ScenarioError, match="p.toml"):
        read(tmp_path, text)
    with pytest.raises(ScenarioError, match="nowhere"):
        load("nowhere.toml")


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
        end_s = time.monotonic() + 10
        while not log.exists() or set(log.read_text().splitlines()) != wanted:
            assert time.monotonic() < end_s, log.read_text()
            time.sleep(0.01)

    try:
        before = {"ready 0m", "ready 560m", "reads at 0m"}
        soon(before)
        os.write(opened, b"\n\n")
        soon(before | {"reads at 560m"})
        end_s = time.monotonic() + 10
        # What is left: the shell, and what reads.
        while len(processes(shell.pid)) > 2:
            assert time.monotonic() < end_s, "the first job goes on"
            time.sleep(0.01)
        assert shell.poll() is None
    finally:
        os.killpg(shell.pid, 9)
        shell.wait()
        os.close(opened)


def processes(group: int) -> list[Path]:
    """Processes of a group that live."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group and fields[0] not in "ZX":
            found.append(folder)
    return found
