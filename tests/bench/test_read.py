# SPDX-License-Identifier: LGPL-2.1-or-later
"""Scenario files of all kinds: every mistake is named with file, table and key."""

import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rig.result import Goal
from uml import scenario as fairness

from bench.attribution import scenario as attribution
from bench.book import hint
from bench.demo import scenario as demo
from bench.harm import scenario as harm
from bench.overhead import scenario as overhead
from bench.promises import scenario as promises
from bench.read import ScenarioError, load
from bench.scale import scenario as scale

TESTS = Path(__file__).resolve().parents[1]
KINDS = {
    "attribution": attribution, "demo": demo, "fairness": fairness, "harm": harm,
    "overhead": overhead, "promises": promises, "scale": scale,
}  # fmt: skip
GOOD = {
    "attribution": """
[scenario.one]
title = "One"
mib = 8
leaves = { d0 = 64 }
layer = { kind = "dm", name = "top", over = ["d0"], table = "0 {sectors} linear {0} 0" }
""",
    "demo": """
[stack.flat]
disk = { names = ["s0"], kind = "ssd" }
[scenario.one]
title = "One"
stack = "flat"
unit = [{ name = "a", weight = 200, job = { run = "fio", rw = "read" } }]
event = [{ at_s = 1, weight = { a = 300 } }]
goal = [{ metric = "aggregate_mbps", against = "bfq", min = 0.9 }]
""",
    "fairness": """
[scenario.one]
title = "One"
nr_requests = 64
disk = { kind = "ssd" }
group = [{ name = "x", weight = 100, job = { command = "true" } }]
goal = [{ metric = "jain", min = 1 }]
""",
    "harm": """
[[goal]]
metric = "instructions"
max = 1.01
[scenario.one]
title = "One"
leaves = { n0 = 64 }
layer = [{ kind = "dm", name = "top", over = ["n0"], table = "0 {sectors} linear {0} 0" }]
job = { rw = "randread", bs = "4k" }
""",
    "overhead": """
[common]
schedulers = ["mq-deadline", "sutro"]
[disk.null]
irqmode = 0
[job.reads]
rw = "randread"
jobs = 4
iodepth = 8
[scenario.one]
title = "One"
machine = "count"
disk = "null"
jobs = ["reads"]
groups = [1, 2, 8]
goal = [
  { metric = "instructions", against = "mq-deadline", max = 1.0 },
  { metric = "iops", against = "bfq", min = 2.0, groups = 8 },
]
""",
    "promises": """
[job]
read = { rw = "randread", bs = "64k", iodepth = 32 }
[stack.flat]
disk = { names = ["s0", "s1"], kind = "ssd" }
[stack.pair]
disk = { names = ["s0"], kind = "ssd" }
layer = { kind = "crypt", name = "z", over = ["s0"] }
fill = ["z"]
[scenario.one]
title = "One"
stack = "flat"
unit = [{ name = "db", floor = 0.5, job = "read" }]
event = [{ at_s = 1, stop = ["db"] }]
goal = [{ metric = "reports", max = 1 }]
[overhead.cost]
title = "Cost"
units = 5
leaves = 2
promised = 1
active = 1
goal = [{ metric = "rss_mib", max = 1 }]
""",
    "scale": """
[disk.null]
irqmode = 0
[scenario.one]
title = "One"
machine = "count"
disk = "null"
axis = "idle"
sizes = [1, 10, 100]
goal = [{ metric = "cost_ratio", max = 1.02 }, { metric = "bytes_per_group", max = 1024 }]
""",
}
T = 'title = "One"'
UNIT = 'unit = [{ name = "db", floor = 0.5, job = "read" }]'
MISTAKES = [
    # Keys that all kinds have in common.
    ("overhead", T, "", "scenario one: title: is missing"),
    ("overhead", T, "title = 3", "scenario one: title: 3 is no str"),
    ("overhead", T, f"{T}\nloops = 3", "scenario one: loops: unknown key; there are name, title"),
    ("overhead", "[scenario.one]", "[scenario]", "scenario: title: 'One' is no table"),
    ("overhead", "[scenario.one]", "[[scenario]]", "scenario: [{'title': 'One', "),
    ("overhead", T, f'{T}\nname = "two"', "scenario one: name: unknown key; the name is one"),
    ("overhead", ".one]", '.""]', "scenario number 1: name: is empty"),
    ("overhead", "[scenario.one]", "[scenery]", "scenery: unknown key; there are disk, job"),
    ("overhead", "[scenario.one]", "[scenario.one\n", "(at line 10"),
    ("overhead", "[common]", "[[common]]", "common: [{'schedulers': ["),
    ("scale", "[scen", "[[goal]]\nmax = 1\n[scen", "goal number 3: metric: is missing"),
    ("harm", "[[goal]]", "[[goal]]\nless = 1", "one: goal instructions: less: unknown key"),
    ("promises", 'title = "Cost"', 'title = "Cost"\ncolour = 1', "overhead cost: colour: unknown"),
    ("promises", "overhead.cost", "overhead.one", "'one': the name is used twice"),
    ("promises", "stack.pair", "stack.flat", "Cannot declare ('stack', 'flat') twice"),
    ("overhead", T, f'{T}\nlike = "two"', "scenario one: like: no 'two'; there are "),
    ("overhead", T, f"{T}\nlike = []", "scenario one: like: no []; there are "),
    # Of machines.
    ("overhead", 'disk = "null"', 'disk = "nil"', "scenario one: disk: no 'nil'; there are null"),
    ("overhead", 'jobs = ["reads"]', 'jobs = ["x"]', "one: jobs: no 'x'; there are reads"),
    ("overhead", 'jobs = ["reads"]', "jobs = 3", "scenario one: jobs: 3 is no list"),
    ("overhead", 'rw = "randread"', "", "job: reads: rw: is missing"),
    ("overhead", "[1, 2, 8]", "[0]", "scenario one: groups: 0 is not 1 to 1000"),
    ("overhead", '"count"', '"fast"', "machine: 'fast' is none of count, speed"),
    ("overhead", T, f"{T}\nwindow_ms = 0", "scenario one: window_ms: 0 is not at least 1"),
    ("overhead", '"iops"', '"joy"', "goal joy: metric: 'joy' is none of instructions"),
    ("overhead", ", min = 2.0", "", "goal iops: needs min or max"),
    ("overhead", '"bfq"', '"cfq"', "goal iops: against: 'cfq' is none of none, mq-deadline"),
    ("overhead", '["mq-deadline", "sutro"]', '"x"', "scenario one: schedulers: 'x' is no list"),
    ("scale", '"idle"', '"age"', "axis: 'age' is none of idle, busy, queues"),
    ("scale", "[1, 10, 100]", "[5]", "sizes: must be two or more"),
    ("scale", "[1, 10, 100]", "[10, 1]", "each larger than the one before"),
    ("scale", "[1, 10, 100]", "[0, 1]", "scenario one: sizes: 0 is not at least 1"),
    ("scale", "[1, 10, 100]", "[1, 100001]", "sizes: 100001 is not 1 to 100000"),
    ("scale", T, f"{T}\nbusy = 0", "scenario one: busy: 0 is not at least 1"),
    ("scale", T, f"{T}\njobs = []", "jobs: unknown key"),
    ("scale", '"cost_ratio"', '"joy"', "metric: 'joy' is none of cost_ratio, per_doubling"),
    # Of stacks.
    ("harm", "leaves = { n0 = 64 }", "", "scenario one: leaves: is missing"),
    ("harm", "{ n0 = 64 }", "{}", "scenario one: leaves: is empty"),
    ("harm", 'over = ["n0"]', 'over = ["n1"]', "layer top: over: no 'n1'; there are n0"),
    ("harm", T, f'{T}\ntop = "t"', "top: no 't'; there are n0, top"),
    ("harm", T, f"{T}\nrounds = 0", "scenario one: rounds: 0 is not at least 1"),
    ("harm", T, f"{T}\nowned = -1", "scenario one: owned: -1 is not at least 0"),
    ("harm", T, f'{T}\nbetween = "us"', "'us' is none of drivers, cgroups"),
    ("harm", ', bs = "4k"', "", "job: bs: is missing"),
    ("harm", "max = 1.01", 'max = "x"', "goal instructions: max: 'x' is no float"),
    ("attribution", "mib = 8", "mib = 0", "scenario one: mib: 0 is not at least 1"),
    ("attribution", T, f'{T}\nops = ["trim"]', "one: ops: 'trim' is none of read, write"),
    ("attribution", T, f'{T}\nmodes = "direct"', "one: modes: 'direct' is no list"),
    ("attribution", T, f'{T}\nmetadata = ["d7"]', "one: metadata: no 'd7'; there are d0"),
    ("attribution", T, f'{T}\ntop = "roof"', "one: top: no 'roof'; there are d0, top"),
    ("attribution", T, f'{T}\nfill = "some"', "one: fill: 'some' is none of all, reads"),
    ("attribution", T, f"{T}\nstride_kib = 4", "bs_kib: must be at most stride_kib"),
    ("attribution", "{ d0 = 64 }", "{}", "one: leaves: is empty"),
    ("attribution", 'kind = "dm"', 'kind = "cheese"', "'cheese' is none of fill, striped"),
    ("attribution", 'name = "top", ', "", "one: layer: needs name"),
    ("promises", 'disk = { names = ["s0"], kind = "ssd" }', "", "stack pair: disk: is missing"),
    ("promises", '["s0"], kind = "ssd"', '["s0"], kind = "tape"', "kind: 'tape' is none of hdd"),
    ("promises", '["s0"], kind', '"s0", kind', "stack pair: disk: names: must be a list"),
    ("promises", '["z"]', '["b"]', "stack pair: fill: no 'b'; there are s0, z"),
    ("promises", '"crypt"', '"zfs"', "stack pair: layer z: kind: 'zfs' is none of striped"),
    ("promises", 'over = ["s0"]', 'over = ["b"]', "stack pair: layer z: over: no 'b'"),
    ("promises", 'name = "z"', 'name = "s0"', "stack pair: 's0': the name is used twice"),
    # Of units with floors.
    ("promises", 'stack = "flat"', 'stack = "heap"', "stack: no 'heap'; there are flat, pair"),
    ("promises", T, f'{T}\nschedulers = ["cfq"]', "schedulers: 'cfq' is none of sutro, sutrod"),
    ("promises", T, f"{T}\nmeasure_s = 0", "one: measure_s: 0 is not above 0"),
    ("promises", UNIT, "unit = []", "one: unit: none has a floor"),
    ("promises", "floor = 0.5, ", "", "one: unit: none has a floor"),
    ("promises", "0.5", "1.5", "unit db: floor: 1.5 is not above 0 to 1"),
    ("promises", "floor = 0.5", "weight = 0", "unit db: weight: 0 is not 1 to 10000"),
    ("promises", "floor = 0.5", 'floor = 1, on = "md9"', "unit db: on: no 'md9'; there are s0, s1"),
    ("promises", "floor = 0.5", "importance = -1", "unit db: importance: -1 is not 0 to 1000"),
    ("promises", "floor = 0.5", "count = 0", "unit db: count: 0 is not at least 1"),
    ("promises", '"read" }', '"read" }, { "" = 0 }', "unit number 2: : unknown key"),
    ("promises", 'job = "read"', 'job = "write"', "unit db: job: no 'write'; there are read"),
    ("promises", '"randread"', '"trim"', "unit db: job: rw: must be one of read, randread"),
    ("promises", '"64k"', '"many"', "unit db: job: needs bs and iodepth"),
    ("promises", '"read" }]', '"read" }, { name = "db", job = "read" }]', "unit: 'db': the name"),
    ("promises", "at_s = 1", "at_s = 99", "event: at_s: not in order, or not within measure_s"),
    ("promises", '["db"] }]', '["db"] }, { at_s = 0.5 }]', "event: at_s: not in order"),
    ("promises", 'stop = ["db"]', 'stop = ["zz"]', "with at_s = 1: no 'zz'; there are db"),
    ("promises", 'stop = ["db"]', 'stop = "db"', "event with at_s = 1: stop: 'db' is no list"),
    ("promises", 'stop = ["db"]', "disk = { zz = { rpm = 1 } }", "at_s = 1: disk: no 'zz'"),
    ("promises", 'stop = ["db"]', "disk = { s0 = 1 }", "at_s = 1: disk: s0: 1 is no table"),
    ("promises", 'stop = ["db"]', "floor = { db = 2 }", "floor: db: 2 is not above 0 to 1"),
    ("promises", 'stop = ["db"]', "floor = { zz = 1 }", "at_s = 1: no 'zz'; there are db"),
    ("promises", '"reports"', '"beauty"', "goal beauty: metric: 'beauty' is none of hold_s"),
    ("promises", "max = 1 }]\n[", 'of = "zz", max = 1 }]\n[', "goal: of: no 'zz'; there are db"),
    ("promises", "max = 1 }]\n[", 'state = "sad", max = 1 }]\n[', "state: 'sad' is none of unk"),
    ("promises", "units = 5", "units = 0", "overhead cost: units: 0 is not 1 to 10000"),
    ("promises", "promised = 1", "promised = 9", "overhead cost: promised, active: more than"),
    ("promises", '"rss_mib"', '"hold_s"', "goal hold_s: metric: 'hold_s' is none of cpu_percent"),
    # Of units and cgroups with weights.
    ("demo", 'goal = [', 'goal = ["rate > 1", ', "goal: 'rate > 1' is no goal such as 'ratio 1.9"),
    ("demo", 'goal = [', 'goal = ["rate >= 1", ', "goal rate: metric: 'rate' is none of bandw"),
    ("demo", 'run = "fio", ', "", "unit a: job: run: is missing"),
    ("demo", '"fio"', '"cp"', "unit a: job: run: 'cp' is none of fio, dd-readers"),
    ("demo", "{ a = 300 }", "{ b = 300 }", "scenario one: event: no 'b'; there are a"),
    ("demo", T, f'{T}\nuntil = "b"', "scenario one: until: no 'b'; there are a"),
    ("fairness", '"ssd"', '"tape"', "scenario one: disk: kind: 'tape' is none of hdd, ssd, nvme"),
    ("fairness", "= 64", "= 1", "scenario one: nr_requests: 1 is not 2 to 100000"),
    ("fairness", T, f'{T}\nschedulers = ["cfq"]', "schedulers: 'cfq' is none of none"),
    ("fairness", T, f"{T}\nevent = [{{ at_s = 1, weight = {{ zz = 3 }} }}]", "no 'zz'; there are "),
    ("fairness", '"jain"', '"beauty"', "goal beauty: metric: 'beauty' is none of ratio"),
    ("fairness", ", min = 1 }", ', of = "y", min = 1 }', "goal: of: no 'y'; there are x"),
    ("fairness", '"jain"', '"jain", against = "baseline"', "baseline: goals x baseline need it"),
    ("fairness", '"jain"', '"reading"', "goal: of: reading needs the name of one reading"),
    ("fairness", '"jain"', '"reading", of = "x"', "goal: of: no 'x'"),
    ("fairness", 'name = "x"', 'name = "x/y"', "group x/y: name: no group x before it"),
    ("fairness", 'name = "x"', 'name = "/x"', "group /x: name: must not be absolute"),
    ("fairness", "100, ", '100, class = "vip", ', "group x: class: 'vip' is none of rt, be, idle"),
    ("fairness", 'command = "true"', "", "group x: job number 1: either fio or command"),
    ("fairness", 'command = "true"', 'fio = { bs = "4k" }', "job number 1: fio: rw: is missing"),
    ("fairness", '"true" }', '"true", pause_s = [2, 1] }', "pause_s: must be [FROM, TO]"),
    ("fairness", '"true" } }', '"true" } }, { name = "x/y" }', "group x: job: it has groups in"),
    ("fairness", ', job = { command = "true" }', "", "scenario one: group: no group has a job"),
    ("fairness", "weight = 100", "weights = [0]", "group x: weights: 0 is not 1 to 10000"),
    ("fairness", "weight = 100", "each = [{ command = 'x' }]", "group x: each: only with weights"),
    ("fairness", "weight = 100", "weights = [1], weight = 2", "weights: not together with weight"),
]  # fmt: skip


def read(folder: Path, kind: str, text: str = "") -> Any:
    """The book of a file with this text, or with the good one."""
    file = folder / "a.toml"
    file.write_text(text or GOOD[kind])
    return load(KINDS[kind].Book, file)


@pytest.mark.parametrize("kind", KINDS)
def test_a_good_file_and_the_shipped_one(tmp_path: Path, kind: str) -> None:
    book = read(tmp_path, kind, GOOD[kind])
    assert "one" in [one.name for one in book.runs()]
    assert load(KINDS[kind].Book, KINDS[kind].SHIPPED).runs()


@pytest.mark.parametrize(("kind", "good", "bad", "expected"), MISTAKES)
def test_mistakes_are_named(tmp_path: Path, kind: str, good: str, bad: str, expected: str) -> None:
    assert good in GOOD[kind]
    with pytest.raises(ScenarioError) as caught:
        read(tmp_path, kind, GOOD[kind].replace(good, bad, 1))
    assert expected in str(caught.value) and str(caught.value).startswith(f"{tmp_path}/a.toml: ")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", ["", "[scenario]]\n", "[common]\n"])
def test_a_file_that_has_nothing_to_run_is_named(tmp_path: Path, kind: str, text: str) -> None:
    with pytest.raises(ScenarioError, match="a.toml: .*(scenario|line 1)"):
        read(tmp_path, kind, text or "\n")
    with pytest.raises(ScenarioError, match="nowhere"):
        load(KINDS[kind].Book, "nowhere.toml")


def test_common_keys_and_goals(tmp_path: Path) -> None:
    """A scenario's own keys win; the goals of the file are added to its own."""
    text = '[common]\ntitle = "Both"\nnr_requests = 9\n[[goal]]\nmetric = "work"\nmin = 1\n'
    (one,) = read(tmp_path, "fairness", text + GOOD["fairness"].replace(T, "")).runs()
    assert (one.title, one.nr_requests) == ("Both", 64)
    assert [goal.metric for goal in one.goal] == ["jain", "work"]


def test_an_entry_like_another_one(tmp_path: Path) -> None:
    more = '[scenario.two]\nlike = "one"\ngroups = [4]\n'
    one, two = read(tmp_path, "overhead", GOOD["overhead"] + more).runs()
    assert two == replace(one, name="two", groups=(4,))


def test_a_table_or_its_name(tmp_path: Path) -> None:
    text = GOOD["overhead"].replace('disk = "null"', "disk = { irqmode = 0 }")
    assert read(tmp_path, "overhead", text) == read(tmp_path, "overhead", GOOD["overhead"])


@pytest.mark.parametrize("kind", KINDS)
def test_a_part_of_a_file(tmp_path: Path, kind: str) -> None:
    book = read(tmp_path, kind, GOOD[kind])
    assert book.only([]) == book
    for names in (["one"], ["on?"], ["o*", "one"]):
        assert [one.name for one in book.only(names).runs()] == ["one"]
    with pytest.raises(ScenarioError, match="no scenario third; there are one"):
        book.only(["third"])
    with pytest.raises(ScenarioError, match="no scheduler cfq; there are "):
        book.only([], ["cfq"])
    if book.SCHEDULERS:
        under = book.only([], ["sutro", "bfq"])
        assert under.scenario[0].schedulers == ("sutro", "bfq")


def test_a_mistake_in_a_name_of_many() -> None:
    """A file with hundreds of scenarios is not listed: the names like the given one are."""
    kinds = ("ssd-scan", "ssd-sync", "hdd-scan", "hdd-sync")
    disks = [f"{kind}-{number}" for kind in kinds for number in range(90)]
    assert hint("ssd-scan", disks) == "ssd-scan* are 90 of them, such as ssd-scan-0"
    assert hint("sdd-scan-17", disks).startswith("like it are ssd-scan-17, ")
    assert hint("?", disks) == "there are 360, from ssd-scan-0 to hdd-sync-89"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], "KIND is one of demo, promises"),
        (["overhead", "--machine", "count", "nothing"], "no scenario nothing; there are six, one"),
        (["overhead", "--machine", "count", "--scheduler=cfq"], "no scheduler cfq"),
        (["overhead", "--machine", "count", "--scenarios=/nowhere"], "/nowhere"),
        (["overhead"], "--machine"),
        (["scale"], "--machine"),
        (["promises", "--scenarios=/nowhere"], "bench promises: /nowhere"),
        (["harm", "raid0"], "no scenario raid0; there are disk, linear"),
    ],
)
def test_the_program_names_mistakes(words: list[str], expected: str) -> None:
    done = subprocess.run(
        ["python3", "-m", "bench", *words], capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(TESTS)}, check=False,
    )  # fmt: skip
    assert done.returncode == 2 and expected in done.stderr


def test_goals_have_bounds() -> None:
    assert str(Goal("m", min=1)) == ">= 1" and str(Goal("m", max=2, against="bfq")) == "<= 2 x bfq"
    assert str(Goal("m", 1, 2)) == "1 to 2"
    assert Goal("m", 1, 2).met(1) and not Goal("m", 1, 2).met(2.1)
    for goal in (Goal("m", min=1), Goal("m", 1, 2.5), Goal("m", max=2, against="bfq")):
        assert Goal(**Goal.parse(f"m {goal}")) == goal
    assert Goal.parse("share of a/b <= 1") == {"metric": "share", "of": "a/b", "max": 1}
    assert not Goal("m", min=0.5).met(float("nan")) and not Goal("m", max=1).met(float("nan"))
