# SPDX-License-Identifier: LGPL-2.1-or-later
"""Metrics: the real sutro-exporter, by the verb, against the real sutrod.

test_exporter.py has the service, test_exposition.py the text for any names and numbers, and
test_metric_names.py the rules and the dashboard.
"""

import os
import stat
import subprocess

import pytest
from conftest import CONF, IO_STAT, NOWHERE, PLAIN_EXPORTER, environment, sutroctl
from fakemachine import PATIENCE_S, STEP_S, arrive, paused
from samples import CGROUPS_MOST, metrics, samples, value
from sutro import textfile

# Against the daemon.


def test_values(promised):
    """Counters are those of the file, in base units; promises are those of the daemon."""
    with promised.lock:
        values = metrics()
        text = promised.machine.at("/sys/fs/cgroup/system.slice/db.service/io.sutro.stat")
        line = next(line for line in text.read_text().splitlines() if line.startswith("259:0 "))
    stat = dict(word.split("=") for word in line.split()[1:])
    db = {"unit": "db.service", "cgroup": "/system.slice/db.service", "leaf": "/dev/hda"}
    assert value(values, "sutro_up") == 1
    assert value(values, "sutro_cgroup_device_time_seconds_total", **db) == pytest.approx(
        int(stat["time_ns"]) / 1e9
    )
    assert value(values, "sutro_cgroup_read_bytes_total", **db) == int(stat["rbytes"])
    reads = int(stat["rlat"].split(",")[17])
    latency = "sutro_cgroup_read_latency_seconds_bucket"
    # Count 17 begins at 2^22 ns and ends at 1.5 * 2^22 ns, so bound 2^23 is the first with it.
    assert value(values, latency, **db, le="0.004194304") == 0
    assert value(values, latency, **db, le="0.008388608") == reads
    assert value(values, latency, **db, le="+Inf") == reads
    web = {"unit": "web.service", "key": "ReadBandwidthMin", "device": "/dev/vg0/db"}
    assert value(values, "sutro_promise_target_bytes_per_second", **web) == 80e6
    assert value(values, "sutro_promise_broken", **web) == 1
    assert value(values, "sutro_promise_state", **web, state="infeasible") == 1
    assert 0 < value(values, "sutro_promise_granted_ratio", **web) < 1
    target = {"unit": "db.service", "key": "LatencyTarget"}
    assert value(values, "sutro_promise_target_seconds", **target) == 0.01
    assert value(values, "sutro_promise_broken", **target) == 0
    assert value(values, "sutro_leaf_weighted", leaf="/dev/hda") == 1
    assert value(values, "sutro_leaf_weighted", leaf="/dev/sdb") == 0
    assert value(values, "sutro_build_info", version="0.1.0") == 1
    assert value(values, "sutro_control_step_seconds") > 0
    leaf = [has for name, has in values if name == "sutro_leaf_info"]
    assert {"leaf": "/dev/hda", "kind": "disk", "scheduler": "sutro"}.items() in [
        set(h) for h in leaf
    ]


def test_limit_that_the_kernel_refuses_is_broken(machine, sutrod):
    machine.write("/faults", "io.max fail\n")
    sutroctl("policy", "set", "--runtime", "web", "ReadBandwidthMax=/srv 5M")
    sutrod.elapse(3)
    limit = {"unit": "web.service", "key": "ReadBandwidthMax"}
    values = metrics()
    assert value(values, "sutro_promise_broken", **limit) == 1
    assert value(values, "sutro_promise_state", **limit, state="refused") == 1


def test_capacity(declared):
    values = metrics()
    where = {"path": "/srv", "key": "ReadBandwidthMin"}
    assert value(values, "sutro_capacity_bytes_per_second", **where) == 150e6
    assert value(values, "sutro_capacity_promised_bytes_per_second", **where) == 140e6
    assert value(values, "sutro_capacity_left_bytes_per_second", **where) == 10e6
    # The floors of all units on a device may be more than its capacity.
    declared.machine.write(CONF, "[Capacity]\nDevice=/srv read=100M write-iops=20\n")
    declared.call("Reload")
    values = metrics()
    assert value(values, "sutro_capacity_left_bytes_per_second", **where) == 0
    where["key"] = "WriteIOPSMin"
    assert value(values, "sutro_capacity_left_ios_per_second", **where) == 20


def test_ceiling_of_infinity_has_no_target(sutrod):
    for value_ in ("infinity", "5M"):
        sutrod.call("SetPolicy", "web.service", [("ReadBandwidthMax", f"/srv {value_}")], "runtime")
        sutrod.settle()
        found = metrics()
        assert value(found, "sutro_promise_broken", unit="web.service") == 0
        targets = [n for name, n in found.items() if name[0].startswith("sutro_promise_target")]
        assert targets == ([] if value_ == "infinity" else [5e6])


def test_weights_are_those_in_force(promised):
    with promised.lock:
        values = metrics()
        lines = promised.machine.weights("/system.slice/db.service")
    for node, devno in (("/dev/hda", "259:0"), ("/dev/hdb", "259:1")):
        weight = value(values, "sutro_cgroup_weight", unit="db.service", leaf=node)
        assert f"{devno} {weight:.0f}" in lines


def test_counters_are_monotonic(promised):
    first = metrics()
    promised.elapse(40 * STEP_S)
    second = metrics()
    counted = [key for key in first if key[0].endswith(("_total", "_bucket"))]
    assert len(counted) > 50
    assert all(first[key] <= second[key] for key in counted)
    grew = [key for key in counted if first[key] < second[key]]
    assert len(grew) > 20


def test_a_scrape_changes_nothing(promised, bus):
    """No call that starts sampling or writes, and no write of the daemon."""
    with promised.lock:
        promised.settle()
        before = promised.machine.writes()
        with bus.monitored() as calls:
            metrics()
            arrive(calls, 4)
            promised.settle()
        assert promised.machine.writes() == before
    members = {str(call.get_member()) for call in calls} - {"Ping"}
    assert members == {"GetAll", "ListCapacities", "ListDevices", "ListPromiseStates"}


def test_without_a_daemon(machine, bus):
    """The counters go on, sutro_up is 0, and a label is the reason."""
    machine.write("/sys/fs/cgroup/system.slice/io.sutro.stat", "259:0 time_ns=5000000000 rios=2\n")
    values = metrics()
    assert value(values, "sutro_up") == 0
    assert value(values, "sutro_cgroup_device_time_seconds_total", leaf="/dev/hda") == 5
    assert not [name for name, _ in values if name.startswith(("sutro_promise", "sutro_leaf"))]
    assert value(values, "sutro_down_info", reason="not-running") == 1
    values = samples(sutroctl("metrics", **NOWHERE).out)
    assert value(values, "sutro_up") == 0
    assert value(values, "sutro_down_info", reason="bus-unavailable") == 1


def test_a_daemon_that_hangs(promised):
    """It is down, and the counters go on; test_exporter.py has the time."""
    with promised.lock, paused(promised.process):
        values = metrics()
    assert value(values, "sutro_up") == 0
    assert value(values, "sutro_down_info", reason="no-answer") == 1
    assert value(
        values, "sutro_cgroup_device_time_seconds_total", leaf="/dev/hda", unit="db.service"
    )
    assert value(metrics(), "sutro_up") == 1


def test_bytes_without_the_module(without_module):
    """Counters of the kernel, for leaves and cgroups that have processes of their own."""
    values = metrics()
    db = {"unit": "db.service", "cgroup": "/system.slice/db.service", "leaf": "/dev/hda"}
    counted = {name: number for (name, has), number in values.items() if db.items() == set(has)}
    assert counted == {
        "sutro_cgroup_read_bytes_total": 10,
        "sutro_cgroup_written_bytes_total": 20,
        "sutro_cgroup_reads_total": 3,
        "sutro_cgroup_writes_total": 4,
    }
    assert sum(name.startswith("sutro_cgroup_") for name, _ in values) == len(counted)


def test_bytes_of_a_delegated_subtree(without_module):
    """Of a cgroup whose processes are in one below, the file of the latter counts."""
    below = "/sys/fs/cgroup/system.slice/app.service"
    without_module.write(f"{below}/io.stat", f"259:0 {IO_STAT}\n".format(8))
    without_module.write(f"{below}/worker/io.stat", "259:0 \n259:1 rbytes=7 cost.usage=1\n")
    values = metrics()
    app = {"unit": "app.service", "cgroup": "/system.slice/app.service/worker"}
    assert value(values, "sutro_cgroup_read_bytes_total", **app, leaf="/dev/hdb") == 7
    assert not [has for _, has in values if ("cgroup", "/system.slice/app.service") in has]
    # Without the controller in the cgroup below, the one above has the counts of both.
    without_module.at(f"{below}/worker/io.stat").unlink()
    app = {"unit": "app.service", "cgroup": "/system.slice/app.service", "leaf": "/dev/hda"}
    assert value(metrics(), "sutro_cgroup_read_bytes_total", **app) == 8


def called(machine, log, fault="0", *args):
    """The exporter by itself, of which a system call fails (faults.c); "0": none.

    Return the program at its end, and its calls: (name, target).
    """
    log.write_text("")
    more = {"LD_PRELOAD": os.environ["SUTRO_KERNELFILES"], "SUTRO_FAULTS": f"{fault} {log}"}
    run = subprocess.run(
        [PLAIN_EXPORTER, "--once", f"--root={machine.root}", *args],
        env=environment() | NOWHERE | more,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    return run, [tuple(line.split(" ", 2)[1:]) for line in log.read_text().splitlines()]


def test_disk_that_vanishes_during_a_scrape(without_module, tmp_path):
    """Its folder goes between two calls; its last line is still there, and so are all others."""
    without_module.at("/sys/dev/block/259:0/slaves").mkdir()
    run, calls = called(without_module, tmp_path / "calls")
    names = ("openat", "getdents64", "readlinkat")
    about = [number for number, (name, target) in enumerate(calls, 1) if "259:0" in target]
    assert len(about) >= 3 and {calls[number - 1][0] for number in about} <= set(names)
    for number in about:
        run, _ = called(without_module, tmp_path / "calls", str(number))
        assert (run.returncode, run.stderr) == (0, "")
        found = [
            dict(has) for name, has in samples(run.stdout) if name == "sutro_cgroup_reads_total"
        ]
        assert [one["unit"] for one in found] == ["db.service"]
        assert found[0]["leaf"] in ("/dev/hda", "/dev/259:0")


def test_any_call_fails(without_module, tmp_path):
    """The text is whole, or there is none, and a message."""
    _, calls = called(without_module, tmp_path / "calls")
    assert len(calls) > 20
    for number in range(1, len(calls) + 1):
        run, _ = called(without_module, tmp_path / "calls", str(number))
        if run.returncode:
            assert run.stderr.startswith("sutro-exporter: ") and run.stderr.count("\n") == 1
        else:
            assert run.stderr == "" and value(samples(run.stdout), "sutro_up") == 0


def test_module_that_counted_nothing_yet(machine, bus):
    """On leaves with the scheduler sutro, bytes of the kernel do not take the place of its own."""
    machine.cgroup("/a.service")
    machine.write("/sys/fs/cgroup/a.service/io.stat", f"259:0 {IO_STAT}\n".format(1))
    assert not [name for name, _ in metrics() if name.startswith("sutro_cgroup_")]


def test_leaf_with_another_scheduler(machine, bus):
    """The kernel counts there while the elevator counts on others; the leaf has no weight."""
    machine.cgroup("/a.service")
    folder = "/sys/fs/cgroup/a.service"
    machine.write(f"{folder}/io.stat", f"259:0 {IO_STAT}\n8:0 {IO_STAT}\n".format(1, 2))
    machine.write(f"{folder}/io.sutro.stat", "259:0 time_ns=9 rbytes=3 rios=4\n")
    values = metrics()
    name = "sutro_cgroup_read_bytes_total"
    assert value(values, name, unit="a.service", leaf="/dev/hda") == 3
    assert value(values, name, unit="a.service", leaf="/dev/sda") == 2
    weighted = [dict(has)["leaf"] for found, has in values if found == "sutro_cgroup_weight"]
    assert weighted == ["/dev/hda"]
    # The root cgroup counts all devices: no other file is read if all of them have the elevator.
    machine.write("/sys/fs/cgroup/io.stat", f"259:0 {IO_STAT}\n".format(9))
    leaves = {dict(has)["leaf"] for found, has in metrics() if found == name}
    assert leaves == {"/dev/hda"}
    machine.write("/sys/fs/cgroup/io.stat", f"8:0 {IO_STAT}\n".format(9))
    leaves = {dict(has)["leaf"] for found, has in metrics() if found == name}
    assert leaves == {"/dev/hda", "/dev/sda"}
    # The elevator still has a line of a leaf that was switched a moment ago.
    machine.set_scheduler("hda", "bfq")
    values = metrics()
    assert value(values, name, unit="a.service", leaf="/dev/hda") == 3
    assert value(values, "sutro_cgroups_omitted") == 0


def test_io_cost(sutrod):
    """A leaf has weights by io.cost, too, whatever its scheduler."""
    assert value(metrics(), "sutro_leaf_weighted", leaf="/dev/sdb") == 0
    text = "8:0 enable=0 ctrl=auto\n8:16 enable=1 ctrl=user rpct=0.00\n"
    sutrod.machine.write("/sys/fs/cgroup/io.cost.qos", text)
    assert value(metrics(), "sutro_leaf_weighted", leaf="/dev/sdb") == 1


def test_json_has_the_same(promised):
    with promised.lock:
        values = metrics()
        listed = sutroctl("metrics", "--json").json()
    same = {(one["name"], frozenset(one["labels"].items())): one["value"] for one in listed}
    steps = ("sutro_control_step_seconds", frozenset())
    assert same.keys() == values.keys()
    assert {type(number) for number in same.values()} == {float}
    assert all(same[key] == pytest.approx(values[key]) for key in same if key != steps)


def test_output_file(promised, tmp_path):
    """The file is replaced as a whole, everyone may read it, and nothing else is left."""
    file = tmp_path / "collector" / "sutro.prom"
    file.parent.mkdir()
    file.write_text("old")
    run = sutroctl("metrics", "-o", str(file))
    assert (run.status, run.out, run.err) == (0, "", "")
    assert value(samples(file.read_text()), "sutro_up") == 1
    assert stat.S_IMODE(file.stat().st_mode) == 0o644
    assert list(file.parent.iterdir()) == [file]
    run = sutroctl("metrics", "-o", str(tmp_path / "gone" / "sutro.prom"))
    assert run.status == 1 and "gone/sutro.prom: No such file or directory" in run.err


def test_without_the_program(monkeypatch):
    monkeypatch.setattr(textfile, "EXPORTER", ("sutro-exporter-of-no-package",))
    run = sutroctl("metrics")
    assert (run.status, run.out) == (1, "")
    assert run.err == (
        "sutroctl: metrics need the program sutro-exporter, which is not installed\n"
        "          install it: apt install sutro-exporter\n"
    )


def test_program_that_fails(monkeypatch):
    """Its own message is above that of sutroctl."""
    monkeypatch.setattr(textfile, "EXPORTER", ("false",))
    run = sutroctl("metrics")
    assert (run.status, run.out) == (1, "") and "sutro-exporter failed: " in run.err
    assert run.err.endswith("run it by itself: sutro-exporter --once\n")


# Cgroups.


def cgroup(machine, path, text, file="io.sutro.stat"):
    """A cgroup with a file."""
    machine.write(f"/sys/fs/cgroup{path}/{file}", text)


def test_cgroups_beyond_the_bound(machine, bus):
    """Those that used the most stay; --all has all of them. tests/unit has the order."""
    for number in range(CGROUPS_MOST + 50):
        cgroup(machine, f"/a{number}.service", f"259:0 time_ns={number}000 rlat=\n")
    values = metrics()
    time_ = "sutro_cgroup_device_time_seconds_total"
    units = [dict(has)["unit"] for name, has in values if name == time_]
    assert len(units) == CGROUPS_MOST and "a50.service" in units and "a49.service" not in units
    assert value(values, "sutro_cgroups_omitted") == 50
    values = metrics("--all")
    assert sum(name == time_ for name, _ in values) == CGROUPS_MOST + 50
    assert value(values, "sutro_cgroups_omitted") == 0


def test_unit_of_a_cgroup(machine, bus):
    units = {
        "/": "-.slice",
        "/system.slice/db.service": "db.service",
        "/system.slice/docker-1.scope/init": "docker-1.scope",
        "/system.slice/_cpu.service": "cpu.service",
        "/payload": "",
        "/system.slice/a.timer": "system.slice",
        # In a unit with a delegated subtree, the cgroups below are counted for themselves.
        "/system.slice/x.service/a/b": "x.service",
        "/system.slice/x.service/c": "x.service",
    }
    for path in units:
        cgroup(machine, path, "259:1 time_ns=1 rios=0\n")
    found = [dict(has) for name, has in metrics() if name == "sutro_cgroup_reads_total"]
    assert {one["cgroup"]: one["unit"] for one in found} == units


@pytest.mark.parametrize("file", ["io.sutro.stat", "io.stat"])
def test_name_that_is_not_utf8(machine, bus, file):
    """It does not end the scrape; cgroups of equal shown names are added up."""
    devno = {"io.sutro.stat": "259:0", "io.stat": "8:0"}[file]
    # Another one is between them in the order of the bytes.
    cgroup(machine, "/a0.service", f"{devno} rbytes=7\n", file)
    for number, name in enumerate(("/a\udcff.service", "/a\n.service"), start=1):
        line = f"{devno} rbytes={number} rios={number * 10} rlat={3 * '0,'}{number}\n"
        cgroup(machine, name, line, file)
        machine.write(f"/sys/fs/cgroup{name}/io.sutro.weight", f"default {number}00\n")
    values = metrics()
    where = {"cgroup": "/a?.service", "unit": "a?.service"}
    assert value(values, "sutro_cgroup_read_bytes_total", cgroup="/a0.service") == 7
    assert value(values, "sutro_cgroup_read_bytes_total", **where) == 3
    assert value(values, "sutro_cgroup_reads_total", **where) == 30
    if file == "io.sutro.stat":
        assert value(values, "sutro_cgroup_read_latency_seconds_bucket", le="+Inf", **where) == 3
        assert value(values, "sutro_cgroup_weight", **where) in (100, 200)


# Cost.


def test_cost_of_a_scrape(machine, tmp_path):
    """In system calls, which no load of the host changes; to close a file is not counted.

    Of a unit: a look at its directory, and two files, each opened and read. Of a unit that is not
    exported: one file.
    """
    machine.write("/sys/fs/cgroup/io.stat", "")

    def cost(units):
        for number in range(units - 100, units):
            cgroup(machine, f"/a{number}.service", "259:0 time_ns=1 rlat=1\n8:0 time_ns=2 rlat=1\n")
        return len(called(machine, tmp_path / "calls")[1])

    few, most, many = cost(100), cost(CGROUPS_MOST), cost(CGROUPS_MOST + 100)
    assert few <= 600
    assert (most - few) / 100 <= 5
    assert (many - most) / 100 <= 3
