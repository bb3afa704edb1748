# SPDX-License-Identifier: LGPL-2.1-or-later
"""The parts of `sutroctl test` without a daemon: experiments, plan, command lines of jobs, reports
of fio, verdicts, settings of a leaf."""

import json
import math
import os
import socket
from dataclasses import replace

import pytest
from bench.read import load
from hardware import command, files, fio, judge, leaf, plan, run, state
from hardware.experiment import SHIPPED, Book, Goal, Group, Job
from hardware.machine import io_stat
from sutro import reach, scratch
from sutro.errors import SutroError, UsageError

BOOK = load(Book, SHIPPED)
BY_NAME = {one.name: one for one in BOOK.scenario}
MIB = 1 << 20


# Experiments


def test_shipped_experiments():
    """Each has a goal, and those without writes need no file."""
    assert all(one.goal and one.title for one in BOOK.scenario)
    writing = {one.name for one in BOOK.scenario if one.writes}
    assert writing == {"directions", "one-read-beside-writes", "sync-writes"}
    assert {one.source for one in BOOK.scenario} == {"fairness", "protect", "v7", "promises"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('group = { name = "g", job = { rw = "read", bs = "64" } }', "bs: '64' is no size"),
        ('group = { name = "g", job = { rw = "randread", bs = "4k", tool = "dd" } }', "dd only"),
        (
            'group = [{ name = "a", job = { rw = "read", bs = "4k" } },'
            ' { name = "b", job = { rw = "read", bs = "8k" } }]\ngoal = ["ratio >= 1"]',
            "ratio is for equal jobs only",
        ),
        (
            'group = { name = "g", job = { rw = "read", bs = "4k" } }\ngoal = ["share of x >= 1"]',
            "no 'x'; there are g",
        ),
    ],
)
def test_mistakes_in_a_file(tmp_path, text, expected):
    file = tmp_path / "a.toml"
    file.write_text(f'[scenario.one]\ntitle = "t"\nsource = "v7"\n{text}\n')
    with pytest.raises(ValueError, match=expected) as caught:
        load(Book, file)
    assert str(caught.value).startswith(f"{file}: scenario one")


def test_plan():
    """Units alone come first, under the first scheduler; each run has units of its own."""
    steps = plan.steps([BY_NAME["two-to-one"], BY_NAME["one-read"]], ["none", "sutro"])
    assert [step.name for step in steps] == [
        "two-to-one, none",
        "two-to-one, sutro",
        "one-read, none, victim alone",
        "one-read, none, other alone",
        "one-read, none",
        "one-read, sutro",
    ]
    names = [
        step.unit(group.name)
        for step in steps
        for group in step.experiment.group
        if step.only in ("", group.name)
    ]
    assert len(set(names)) == len(names)
    assert plan.seconds(steps, 10) == len(steps) * 16
    assert [plan.duration(s) for s in (45, 89.4, 90, 3600, 7500)] == [
        "45 s",
        "89 s",
        "2 min",
        "60 min",
        "2 h 5 min",
    ]


# Command lines


def option(words, key):
    (found,) = (word.partition("=")[2] for word in words if word.startswith(f"--{key}="))
    return found


@pytest.mark.parametrize("name", BY_NAME)
def test_jobs_stay_on_their_part(name):
    """No job leaves its medium, streams do not meet, and a job that reads cannot write."""
    one, size = BY_NAME[name], 1000 * MIB + 12345
    parts = []
    for group in one.group:
        words = fio.command(one, group, "/dev/dm-0", size, "/run/out.json")
        offset, length = fio.part(one, group, size)
        assert 0 <= offset < offset + length <= size and offset % MIB == length % MIB == 0
        if group.job.is_sequential:
            parts.append((group.job.writes, offset, length))
        if group.job.tool == "fio":
            assert (option(words, "offset"), option(words, "size")) == (str(offset), str(length))
            assert ("--readonly" in words) != group.job.writes
            assert option(words, "direct") == "1"
    for (way, offset, length), (other, after, _) in zip(parts, parts[1:], strict=False):
        assert way != other or offset + length <= after


def test_dd():
    one = BY_NAME["dd"]
    words = fio.command(one, one.group[1], "/dev/sda", 100 * MIB, "")
    dd = "dd if=/dev/sda of=/dev/null bs=1048576 skip=50 count=50 iflag=direct status=none"
    assert words == ["/bin/sh", "-c", f"while {dd}; do :; done"]


def test_random_numbers_differ():
    """Jobs with the same seed would read the same places, one after the other from a cache."""
    one = BY_NAME["weights-8"]
    seeds = [option(fio.command(one, g, "/dev/sda", MIB, ""), "randseed") for g in one.group]
    assert len(set(seeds)) == 8


# Reports of fio

JOB = {"error": 0, "read": {"total_ios": 9, "clat_ns": {"percentile": {"99.000000": 2_500_000}}}}


def test_report():
    """Notes of fio stand before the object, and may stand after it."""
    text = f"fio: terminating on signal 2\n{json.dumps({'jobs': [JOB]})}"
    assert fio.p99_us(fio.report(text)) == 2500
    assert math.isnan(fio.p99_us({"read": {"total_ios": 0, "clat_ns": {}}}))
    writer = {"read": JOB["read"] | {"total_ios": 0}, "write": JOB["read"]}
    assert fio.p99_us(writer) == 2500


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "no output"),
        ("fio: failed to open", "failed to open"),
        ('{"jobs": [', "no report"),
        ('{"jobs": []}', "no report"),
        (json.dumps({"jobs": [JOB | {"error": 5}]}), "error 5"),
    ],
)
def test_report_that_is_none(text, expected):
    with pytest.raises(fio.ReportError, match=expected):
        fio.report(text)


def test_io_stat():
    text = "8:0 rbytes=4096 wbytes=0 rios=1 cost.usage=77\n253:1 \n8:16 rbytes=1 rlat=1,2\n"
    assert io_stat(text) == {
        "8:0": {"rbytes": 4096, "wbytes": 0, "rios": 1, "cost.usage": 77},
        "253:1": {},
        "8:16": {"rbytes": 1},
    }


# Verdicts


def made(step, bytes_, account=None, p99=None, seconds=4.0):
    """A run in which each unit used device time at a steady rate."""
    account, samples = account or {}, []
    for number in range(int(seconds * 4) + 1):
        part = number / (seconds * 4)
        samples.append(
            run.Sample(
                100 + part * seconds,
                {name: round(b * part) for name, b in bytes_.items()},
                {name: round(ns * part) for name, ns in account.items()},
            )
        )
    return run.Run(step, samples, {name: math.nan for name in bytes_} | (p99 or {}))


def compared(name, runs, alone=None):
    """A comparison; runs: by scheduler the arguments of made()."""
    one = judge.Comparison(BY_NAME[name])
    for scheduler, words in runs.items():
        one.runs[scheduler] = made(plan.Step(one.experiment, scheduler), **words)
    for unit, words in (alone or {}).items():
        one.alone[unit] = made(plan.Step(one.experiment, "none", unit), **words)
    return one


def values(one, metric):
    """Value and verdict by scheduler."""
    return {r.scheduler: (r.value, r.met) for r in one.results() if r.goal and r.metric == metric}


def test_equal_jobs_are_judged_by_bytes():
    """The elevator's account of itself does not count, but is compared with the bytes."""
    even, right = {"g0": 10**9, "g1": 10**9}, {"g0": 2 * 10**9, "g1": 10**9}
    one = compared(
        "two-to-one",
        {
            "none": {"bytes_": even},
            "sutro": {"bytes_": right, "account": {"g0": 1_600_000_000, "g1": 1_000_000_000}},
        },
    )
    assert values(one, "ratio") == {"none": (1, False), "sutro": (2, True)}
    assert values(one, "mbps_vs_none") == {"sutro": (1.5, True)}
    found = list(one.results())
    assert {r.scheduler for r in found if r.counts} == {"sutro"}
    (error,) = (r.value for r in found if r.metric == "account_error")
    assert error == pytest.approx((1 / 2.6) / (1 / 3) - 1)
    by = {(r.scheduler, r.detail["by"]) for r in found if r.metric == "share"}
    assert by == {("none", "bytes"), ("sutro", "account")}


def test_unlike_jobs_are_judged_by_account_or_progress():
    used = {"small": 10**8, "large": 3 * 10**9}
    one = compared(
        "sizes",
        {
            "none": {"bytes_": used},
            "sutro": {"bytes_": used, "account": {"small": 2 * 10**9, "large": 2 * 10**9}},
        },
        alone={"small": {"bytes_": {"small": 10**9}}, "large": {"bytes_": {"large": 4 * 10**9}}},
    )
    found = values(one, "share")
    assert found["sutro"] == (0.5, True)
    # 0.1 of its work against 0.75.
    assert found["none"] == (pytest.approx(0.1 / 0.85), False)


def test_an_account_without_a_unit_is_none():
    """A counter that stands still, as after a switch by hand, is no account."""
    used = {"small": 10**8, "large": 3 * 10**9}
    alone = {"small": {"bytes_": {"small": 10**9}}, "large": {"bytes_": {"large": 4 * 10**9}}}
    account = {"small": 0, "large": 2 * 10**9}
    one = compared("sizes", {"sutro": {"bytes_": used, "account": account}}, alone)
    (by,) = {r.detail["by"] for r in one.results() if r.metric == "share" and not r.goal}
    assert by == "progress"


def test_latency_and_service_of_one_reader():
    """The unit is compared with itself alone; a rate alone is enough, whatever the share."""
    alone = {
        "victim": {"bytes_": {"victim": 4 * 10**8}, "p99": {"victim": 100.0}},
        "other": {"bytes_": {"other": 10**9}},
    }
    used = {"victim": 39 * 10**7, "other": 10**8}
    account = {"victim": 10**8, "other": 39 * 10**8}
    one = compared(
        "one-read",
        {"sutro": {"bytes_": used, "account": account, "p99": {"victim": 250.0}}},
        alone,
    )
    assert values(one, "p99_vs_alone") == {"sutro": (2.5, False)}
    assert values(one, "alone_or_entitled") == {"sutro": (pytest.approx(0.975), True)}


def test_floor_holds_in_the_worst_two_seconds():
    """A pause of the unit is seen, whatever the average."""
    experiment = BY_NAME["floor"]
    names = [group.name for group in experiment.group]
    alone = {"db": {"bytes_": {"db": 4 * 10**8}}}
    assert judge.floors(experiment, compared("floor", {}, alone).alone) == {"db": 5 * 10**7}
    steady = compared("floor", {"sutro": {"bytes_": dict.fromkeys(names, 2 * 10**8)}}, alone)
    assert values(steady, "worst_2s") == {"sutro": (pytest.approx(1), True)}
    samples = [
        replace(sample, bytes=sample.bytes | {"db": min(sample.bytes["db"], 10**8)})
        for sample in steady.runs["sutro"].samples
    ]
    steady.runs["sutro"] = replace(steady.runs["sutro"], samples=samples)
    assert values(steady, "worst_2s") == {"sutro": (0, False)}


def test_failures_count():
    """A run of sutro that failed is a goal that is not met; that of another scheduler is shown."""
    one = compared("two-to-one", {"none": {"bytes_": {"g0": 1, "g1": 1}}})
    one.failures |= {"sutro": "it ended early", "bfq": "no bfq"}
    found = [result for result in one.results() if "why" in result.detail]
    assert [(r.scheduler, r.counts, r.met) for r in found] == [
        ("sutro", True, False),
        ("bfq", False, False),
    ]


def test_numbers_that_there_cannot_be_are_null():
    one = compared("one-read", {"sutro": {"bytes_": {"victim": 0, "other": 0}}})
    records = [result.as_object() for result in one.results()]
    json.dumps(records, allow_nan=False)
    assert {r["value"] for r in records if r["goal"]} == {None, 0}


def test_ratio_without_bytes_is_no_number():
    one = compared("two-to-one", {"sutro": {"bytes_": {"g0": 5, "g1": 0}}})
    assert values(one, "ratio") == {"sutro": (math.inf, False)}


def test_goal_of_the_file_are_of_this_kind():
    assert all(isinstance(goal, Goal) for one in BOOK.scenario for goal in one.goal)
    group = Group("g", Job("read", "4k"), weights=(1, 2))
    assert [one.name for one in group.expand()] == ["g0", "g1"]


# Settings of a leaf


@pytest.fixture
def sda(machine, monkeypatch):
    """A leaf of the fake machine, with settings below iosched/."""
    monkeypatch.setattr(files, "ROOT", machine.root)
    queue = "/sys/class/block/sda/queue"
    for key, value in (("nr_requests", "64"), ("wbt_lat_usec", "75000"), ("rotational", "1")):
        machine.write(f"{queue}/{key}", value + "\n")
    machine.write(f"{queue}/iosched/slice_idle", "0\n")
    machine.write(f"{queue}/iosched/strict_guarantees", "0\n")
    machine.at(f"{queue}/iosched/strict_guarantees").chmod(0o444)
    return leaf.Leaf("sda", "/dev/sda", "8:0")


def test_settings(sda):
    """The files that can be written, but not those that a switch leaves alone."""
    assert sda.settings() == {
        "scheduler": "bfq",
        "nr_requests": "64",
        "wbt_lat_usec": "75000",
        "iosched/slice_idle": "0",
    }
    assert sda.schedulers() == ["none", "mq-deadline", "bfq", "sutro"]


def test_restore_writes_only_differences(sda, machine, monkeypatch):
    written = []
    before = sda.settings()
    machine.write("/sys/class/block/sda/queue/nr_requests", "256\n")

    def write(path, value):
        written.append((path, value))
        machine.write(path, value + "\n")

    monkeypatch.setattr(files, "write", write)
    assert sda.restore(before, False) == []
    assert written == [("/sys/class/block/sda/queue/nr_requests", "64")]


def test_restore_of_a_leaf_that_has_gone(sda, machine):
    before = sda.settings()
    machine.unplug("sda", "8:0")
    assert sda.restore(before, False) == []


def test_restore_reports_what_the_kernel_refuses(sda, monkeypatch):
    def refuse(path, value):
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(files, "write", refuse)
    (complaint,) = sda.restore({"scheduler": "none"}, False)
    assert complaint == "/dev/sda: queue/scheduler = none: Invalid argument"


@pytest.mark.parametrize("before", ["75000", "0"])
def test_restore_as_the_kernel_answers(sda, machine, monkeypatch, before):
    """iocost and bfq end writeback throttling when they begin; slice_idle_us is slice_idle."""
    queue = "/sys/class/block/sda/queue"

    def write(path, value):
        machine.write(path, value + "\n")
        if path == leaf.QOS or path.endswith("/scheduler"):
            machine.write(f"{queue}/wbt_lat_usec", "0\n")
        if path == leaf.QOS:
            machine.write(path, "8:0 enable=1 ctrl=auto\n")
        if path.endswith("/scheduler"):
            machine.write(path, "none mq-deadline [bfq] sutro\n")
        if path.endswith("/slice_idle"):
            machine.write(f"{queue}/iosched/slice_idle_us", f"{int(value) * 1000}\n")

    machine.write(f"{queue}/iosched/slice_idle_us", "500\n")
    machine.write(f"{queue}/wbt_lat_usec", before + "\n")
    kept = sda.settings()
    machine.write(f"{queue}/scheduler", "none [mq-deadline] bfq sutro\n")
    machine.write(f"{queue}/iosched/slice_idle", "8\n")
    monkeypatch.setattr(files, "write", write)
    assert sda.restore(kept, True) == []
    assert sda.settings() == kept
    assert sda.has_iocost()


def test_restore_tells_each_failure_once(sda, machine, monkeypatch):
    """Also that of iocost; the settings after it are restored."""
    before = sda.settings() | {"nr_requests": "128", "wbt_lat_usec": "2000"}

    def write(path, value):
        if path == leaf.QOS or path.endswith("nr_requests"):
            raise OSError(22, "Invalid argument")
        machine.write(path, value + "\n")

    monkeypatch.setattr(files, "write", write)
    assert sda.restore(before, True) == [
        "/dev/sda: io.cost.qos: Invalid argument",
        "/dev/sda: queue/nr_requests = 128: Invalid argument",
    ]
    assert sda.settings()["wbt_lat_usec"] == "2000"


def test_iocost(sda, machine):
    assert not sda.has_iocost()
    line = "8:16 enable=1 ctrl=auto\n8:0 enable=1 ctrl=user rpct=95.00\n"
    machine.write("/sys/fs/cgroup/io.cost.qos", line)
    assert sda.has_iocost()


@pytest.mark.parametrize(
    ("modules", "there"),
    [
        ("alias bfq-iosched bfq\n", {"bfq"}),
        ("kernel/block/kyber-iosched.ko.xz:\nupdates/dkms/sutro.ko.xz:\n", {"kyber", "sutro"}),
        ("alias bfq_iosched bfq\n", {"bfq"}),
        ("", set()),
    ],
)
def test_loadable_schedulers(modules, there):
    names = ("bfq", "kyber", "sutro")
    assert {name for name in names if leaf.is_loadable(name, modules)} == there


def test_the_guard_restores(monkeypatch):
    """It waits for the process, and runs the verb when that has ended, however."""
    words = state.guard_command("/usr/bin/sutroctl", 4711)
    assert "--property=ExecStopPost=/usr/bin/sutroctl test --restore" in words
    assert words[words.index("--") + 1 :] == ["tail", "--pid=4711", "--follow", "/dev/null"]


# The file of --write


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(reach, "ROOT", "")
    return tmp_path


def test_a_new_file(folder):
    assert scratch.check(f"{folder}/new") == f"{folder}/new"
    (folder / "empty").touch()
    (folder / "link").symlink_to("elsewhere")
    assert scratch.check(f"{folder}/empty") == f"{folder}/empty"
    assert scratch.check(f"{folder}/link") == f"{folder}/elsewhere"


def test_files_that_the_test_would_destroy(folder):
    (folder / "data").write_text("precious")
    (folder / "link").symlink_to("data")
    os.mkfifo(folder / "fifo")
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(f"{folder}/socket")
        for name, expected in (
            *(("/dev/null", "is a device"), (f"{folder}/fifo", "is no regular file")),
            *((f"{folder}/socket", "is no regular file"), (f"{folder}", "is a directory")),
            *((f"{folder}/data", "has data"), (f"{folder}/link", "has data")),
            (f"{folder}/a b", "fio allows"),
        ):
            with pytest.raises(UsageError) as caught:
                scratch.check(name)
            assert caught.value.message.startswith(f"--write={name}") and expected in str(
                caught.value
            )
    with pytest.raises(SutroError, match="there is no directory"):
        scratch.check(f"{folder}/no/such")


def test_results_that_are_none(tmp_path):
    """Files that --from refuses."""
    kinds = {command.STRING: str, command.COUNT: int}
    good = {
        key: [] if isinstance(shape, list) else kinds.get(shape, dict)()
        for key, shape in command.DATA.items()
        if key != "partial"
    }
    assert len(good) == 17
    file = tmp_path / "result"

    def is_whole(data):
        file.write_text(json.dumps(data))
        try:
            return command._recorded(str(file)) == data
        except SutroError:
            return False

    assert is_whole(good)
    for key in good:
        assert not is_whole({k: v for k, v in good.items() if k != key})
    assert not is_whole(good | {"results": [1]})
    assert not is_whole(good | {"results": [{"scenario": "x"}]})
    assert not is_whole([])
