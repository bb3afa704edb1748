# SPDX-License-Identifier: LGPL-2.1-or-later
"""Metrics: the verb against the real sutrod, and properties of the text.

test_exporter.py has the service, test_metric_names.py the rules and the dashboard.
"""

import errno
import io
import os
import shutil
import stat
import sys
import time
from functools import partial

import pytest
from conftest import CONF, IO_STAT, NOWHERE, POLICIES, process, sutroctl
from dbus_next import Message
from dbus_next._private.unmarshaller import Unmarshaller
from fakemachine import STEP_S, paused
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text
from samples import metrics, samples, value
from sutro import connection, counters
from sutro.counters import Use, unit_of
from sutro.exposition import Text
from sutro.metrics import (
    ANSWERS_S,
    CGROUPS_MOST,
    COUNTERS,
    RANKED_S,
    Ranking,
    Scrape,
    State,
    chosen,
)

# scrape_timeout= of Prometheus, unless it is set.
SCRAPE_S = 10.0


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


def test_a_scrape_changes_nothing(promised, called):
    """No call that starts sampling or writes, and no write of the daemon."""
    with promised.lock:
        promised.settle()
        before = promised.machine.writes()
        metrics()
        promised.settle()
        assert promised.machine.writes() == before
    assert called("ListPromiseStates") and called("GetAll") and called("ListDevices")
    assert not (called("ListUsage") or called("Explain") or called("SetPolicy"))


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
    """It is down before Prometheus gives up, and the counters go on."""
    assert ANSWERS_S <= SCRAPE_S / 2
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


@pytest.mark.parametrize("number", [errno.ENOENT, errno.ENODEV])
def test_disk_that_vanishes_during_a_scrape(without_module, monkeypatch, number):
    """Its folder goes between two calls; its last line is still there, and so are all others."""
    listed, gone = os.listdir, "/259:0/slaves"
    without_module.at(f"/sys/dev/block{gone}").mkdir()

    def vanishing(path):
        if str(path).endswith(gone):
            raise OSError(number, os.strerror(number), str(path))
        return listed(path)

    monkeypatch.setattr(os, "listdir", vanishing)
    name, unit = "sutro_cgroup_read_bytes_total", "db.service"
    assert value(metrics(), name, unit=unit, leaf="/dev/hda") == 10


def test_cgroups_with_most_bytes_come_first(without_module):
    without_module.write("/sys/fs/cgroup/user.slice/io.stat", f"259:0 {IO_STAT}\n".format(11))
    kept, omitted = chosen(counters.files(), [], 1)
    assert ([file.cgroup for file in kept], omitted) == (["/user.slice"], 1)
    kept, omitted = chosen(list(counters.read()), [], 1)
    assert ([use.cgroup for use in kept], omitted) == (["/user.slice"], 1)


def test_module_that_counted_nothing_yet(machine, bus):
    """On leaves with the scheduler sutro, bytes of the kernel do not take the place of its own."""
    machine.cgroup("/a.service")
    machine.write("/sys/fs/cgroup/a.service/io.stat", f"259:0 {IO_STAT}\n".format(1))
    assert counters.files() == []


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
    assert [file.by_elevator for file in counters.files()] == [True]
    machine.write("/sys/fs/cgroup/io.stat", f"8:0 {IO_STAT}\n".format(9))
    assert [file.by_elevator for file in counters.files()] == [True, False]
    # The elevator still has a line of a leaf that was switched a moment ago.
    machine.set_scheduler("hda", "bfq")
    assert value(metrics(), name, unit="a.service", leaf="/dev/hda") == 3
    assert chosen(counters.files(), [], 1)[1] == 0


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


def test_without_the_library(tmp_path):
    (tmp_path / "prometheus_client.py").write_text("raise ModuleNotFoundError('not here')\n")
    run = process("sutroctl", "metrics", PYTHONPATH=f"{tmp_path}:{POLICIES}")
    assert (run.status, run.out) == (1, "")
    assert "install it: apt install python3-prometheus-client" in run.err


# Cost.

LEAVES = ("259:0", "259:1", "8:0", "8:16")
BUSY = " ".join(f"{key}=12345" for key in (*COUNTERS, "idle_ns", "queued", "dequeue", "pending_ns"))
BUSY += f" lag_ns=-8 rlat={','.join(map(str, range(40)))}"


def calls(function) -> int:
    """The calls of functions, of Python and of C, until a function returns."""
    events = {"call": 0, "c_call": 0}

    def count(_frame, event, _argument):
        if event in events:
            events[event] += 1

    sys.setprofile(count)
    try:
        function()
    finally:
        sys.setprofile(None)
    return sum(events.values())


def test_cost_of_a_scrape(machine):
    """In calls of functions, which no load of the host changes; a scrape before had the labels.

    Of a unit with 28 series on each of four leaves, a floor, and a unit that is not exported.
    """
    machine.write("/sys/fs/cgroup/io.stat", "")
    text = Text(generate_latest)

    def scrape(floors: int) -> None:
        states = [promise(f"/a{n}.service", f"a{n}.service", "/srv") for n in range(floors)]
        kept, omitted = chosen(counters.files(), states, CGROUPS_MOST)
        properties = {"Version": "1", "DryRun": False, "ManagedLeaves": []}
        text.of(Scrape(State(list(counters.uses(kept)), omitted, properties, promises=states)))

    def cost(units: int, floors: int = 0) -> int:
        for number in range(units - 100, units):
            folder = f"/a{number}.service"
            if not machine.at(f"/sys/fs/cgroup{folder}").exists():
                machine.cgroup(folder)
                lines = "".join(f"{leaf} {BUSY}\n" for leaf in LEAVES)
                machine.write(f"/sys/fs/cgroup{folder}/io.sutro.stat", lines)
        scrape(floors)
        return calls(lambda: scrape(floors))

    few, most = cost(100), cost(CGROUPS_MOST)
    many = cost(CGROUPS_MOST + 100)
    costs = ((most - few) / 100 / len(LEAVES), (cost(300, 100) - many) / 100, (many - most) / 100)
    assert costs[0] <= 28
    assert costs[1] <= 8
    assert costs[2] <= 32


# Properties.

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
COUNT = st.integers(0, 2**64 - 1)
USES = st.builds(
    Use,
    cgroup=NAMES.map("/".__add__),
    leaf=NAMES.map("/dev/".__add__),
    counts=st.tuples(*[COUNT | st.none()] * len(COUNTERS)),
    reads=st.lists(st.integers(0, 2**32), min_size=20, max_size=20).map(sorted) | st.none(),
    weight=st.integers(1, 10000) | st.none(),
)


ROWS = st.lists(
    st.tuples(
        *[st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))] * 6,
        *[COUNT] * 2,
        st.floats(allow_nan=False),
    ).map(list)
)


@given(rows=ROWS, after=st.text("ab"))
def test_states_are_read_as_they_were_sent(rows, after):
    """The reader of sutro.connection, for messages of the type of ListPromiseStates."""
    signature, body = "a(ssssssttd)s", [rows, after]
    message = Message(path="/", interface="a.b", member="C", signature=signature, body=body)
    message.serial = 1
    reader = Unmarshaller(io.BytesIO(message._marshall()))
    reader.readers["a"] = partial(connection._structs, reader)
    assert reader.unmarshall().body == body


def promise(cgroup, unit, path):
    usual = {"key": "ReadBandwidthMin", "device": "", "value": 5, "got": 4, "granted": 0.5}
    return usual | {"cgroup": cgroup, "unit": unit, "path": path, "state": "limited"}


def many(strategy, key):
    return st.lists(strategy, max_size=5, unique_by=key)


@given(
    uses=many(USES, lambda use: (use.cgroup, use.leaf)),
    promises=many(st.builds(promise, NAMES, NAMES, NAMES), lambda p: (p["cgroup"], p["path"])),
    most=st.integers(0, 5),
)
def test_the_text_has_what_went_in(uses, promises, most):
    """Any name comes back from both formats, with a bound on the number of series."""
    properties = {"Version": 'a"\\\n', "DryRun": False, "ManagedLeaves": []}
    kept, omitted = chosen(uses, promises, most)
    scrape = Scrape(State(kept, omitted, properties, promises=promises))
    values = samples(generate_latest(scrape).decode())
    assert values == samples(generate_openmetrics(scrape).decode(), parse_openmetrics)
    # Another reading before, with labels that are kept or are not.
    for encode, parse in ((generate_latest, parse_text), (generate_openmetrics, parse_openmetrics)):
        text = Text(encode)
        text.of(Scrape(State(uses[1:])))
        # The library writes the double next to a count.
        found = samples(text.of(scrape).decode(), parse)
        assert {key: float(number) for key, number in found.items()} == values
    paths = {dict(has)["path"] for name, has in values if name == "sutro_promise_broken"}
    assert paths == {one["path"] for one in promises}
    shown = {dict(has)["cgroup"] for name, has in values if name.startswith("sutro_cgroup_")}
    assert shown <= {use.cgroup for use in uses} and len(shown) == min(
        most, len({use.cgroup for use in uses})
    )
    assert value(values, "sutro_cgroups_omitted") == len({u.cgroup for u in uses}) - len(shown)
    assert len(values) <= len(uses) * (len(COUNTERS) + 21) + 7 * len(promises) + 6


def test_cgroups_beyond_the_bound(machine, bus):
    """Those with a promise stay, then those that used the most; --all has all of them."""
    for number in range(CGROUPS_MOST + 50):
        machine.cgroup(f"/a{number}.service")
        line = f"259:0 time_ns={number}000 rlat=\n"
        machine.write(f"/sys/fs/cgroup/a{number}.service/io.sutro.stat", line)
    values = metrics()
    time_ = "sutro_cgroup_device_time_seconds_total"
    units = [dict(has)["unit"] for name, has in values if name == time_]
    assert len(units) == CGROUPS_MOST and "a50.service" in units and "a49.service" not in units
    assert value(values, "sutro_cgroups_omitted") == 50
    assert sum(name == time_ for name, _ in metrics("--all")) == CGROUPS_MOST + 50
    kept, omitted = chosen(counters.files(), [promise("/a0.service", "a0.service", "/srv")], 10)
    assert "/a0.service" in {file.cgroup for file in kept}
    assert (len(kept), omitted) == (10, CGROUPS_MOST + 40)


def test_ranking_is_kept_for_a_minute(machine, monkeypatch):
    """Other cgroups are chosen after that time, or at once when another one has a promise."""

    def use(number, time_ns):
        line = f"259:0 time_ns={time_ns} rlat=\n"
        machine.write(f"/sys/fs/cgroup/a{number}.service/io.sutro.stat", line)

    def read(*promised):
        promises = [promise(f"/a{number}.service", "", "/srv") for number in promised]
        files, omitted = ranking.files(promises)
        assert omitted == 2
        return sorted(file.cgroup for file in files)

    for number in range(5):
        machine.cgroup(f"/a{number}.service")
        use(number, number + 1)
    ranking, now_s = Ranking(3), time.monotonic()
    assert read() == ["/a2.service", "/a3.service", "/a4.service"]
    use(0, 99)
    use(4, 100)
    assert read() == ["/a2.service", "/a3.service", "/a4.service"]
    assert "time_ns=100 " in "".join(file.text for file in ranking.files([])[0])
    assert read(1) == ["/a0.service", "/a1.service", "/a4.service"]
    use(2, 1000)
    assert read(1) == ["/a0.service", "/a1.service", "/a4.service"]
    monkeypatch.setattr(time, "monotonic", lambda: now_s + 2 * RANKED_S)
    assert read(1) == ["/a1.service", "/a2.service", "/a4.service"]
    shutil.rmtree(machine.at("/sys/fs/cgroup/a4.service"))
    assert read(1) == ["/a1.service", "/a2.service"]


@pytest.mark.parametrize(
    ("cgroup", "unit"),
    [
        ("/", "-.slice"),
        ("/system.slice/db.service", "db.service"),
        ("/system.slice/docker-1.scope/init", "docker-1.scope"),
        ("/system.slice/_cpu.service", "cpu.service"),
        ("/payload", ""),
        ("/system.slice/a.timer", "system.slice"),
    ],
)
def test_unit_of_a_cgroup(cgroup, unit):
    assert unit_of(cgroup) == unit


def test_nested_cgroups_are_found(machine):
    """In a unit with a delegated subtree, the cgroups below are counted for themselves."""
    for path in ("/system.slice/x.service/a/b", "/system.slice/x.service/c"):
        machine.cgroup(path)
        machine.write(f"/sys/fs/cgroup{path}/io.sutro.stat", "259:1 time_ns=1 rios=0\n")
    found = {use.cgroup: unit_of(use.cgroup) for use in counters.read()}
    below = {"/system.slice/x.service/a/b", "/system.slice/x.service/c"}
    assert {name: found[name] for name in below} == dict.fromkeys(below, "x.service")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (b"/system.slice/db.service", "/system.slice/db.service"),
        ("/ä\U0001f4bd".encode(), "/ä\U0001f4bd"),
        (b"/\xff\x1b[2J", "/??[2J"),
        (b"/a\nb\x7f", "/a?b?"),
        # A byte each: a control character of two, characters that D-Bus does not transport.
        ("/\x85\ufffe\ufdd0\U0010ffff".encode(), "/" + "?" * 12),
        (b"/\xe2\x28\xa1\xf0\x9f\x92", "/?(????"),
    ],
)
def test_shown_name_of_a_cgroup(name, expected):
    """As the daemon makes it, byte for byte."""
    assert counters.shown(os.fsdecode(name)) == expected


@pytest.mark.parametrize("file", ["io.sutro.stat", "io.stat"])
def test_name_that_is_not_utf8(machine, bus, file):
    """It does not end the scrape; cgroups of equal shown names are added up."""
    devno = {"io.sutro.stat": "259:0", "io.stat": "8:0"}[file]
    for number, name in enumerate(("/a\udcff.service", "/a\n.service"), start=1):
        machine.cgroup(name)
        line = f"{devno} rbytes={number} rios={number * 10} rlat={3 * '0,'}{number}\n"
        machine.write(f"/sys/fs/cgroup{name}/{file}", line)
        machine.write(f"/sys/fs/cgroup{name}/io.sutro.weight", f"default {number}00\n")
    values = metrics()
    where = {"cgroup": "/a?.service", "unit": "a?.service"}
    assert value(values, "sutro_cgroup_read_bytes_total", **where) == 3
    assert value(values, "sutro_cgroup_reads_total", **where) == 30
    if file == "io.sutro.stat":
        assert value(values, "sutro_cgroup_read_latency_seconds_bucket", le="+Inf", **where) == 3
        assert value(values, "sutro_cgroup_weight", **where) in (100, 200)
