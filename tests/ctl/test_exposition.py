# SPDX-License-Identifier: LGPL-2.1-or-later
"""The text of sutro-exporter in both formats, for any names and numbers.

prometheus_client reads it. The cgroups are folders of a fake machine, and the daemon is a mock with
its replies in a file.
"""

import contextlib
import json
import os
import re
import shutil
import subprocess
import time
from fractions import Fraction

import dbus
import pytest
from conftest import EXPORTER, environment
from dbusmock import MOCK_IFACE, BusType, SpawnedMock
from fakemachine import INTERFACE, NAME, PATH
from hypothesis import example, given
from hypothesis import strategies as st
from prometheus_client.exposition import choose_encoder
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from samples import samples, value
from sutro import promises, textfile, values
from test_exporter import OPENMETRICS, get, start_exporter, stop

COUNT = st.integers(0, 2**64 - 1)
# Not one that has a meaning: a counter that is not there.
COUNTER = st.integers(0, 2**64 - 2)

# ---- cgroups ----

COUNTERS = {
    "time_ns": ("device_time_seconds_total", 10**9),
    "rbytes": ("read_bytes_total", 1),
    "wbytes": ("written_bytes_total", 1),
    "rios": ("reads_total", 1),
    "wios": ("writes_total", 1),
    "wait_ns": ("wait_seconds_total", 10**9),
    "busy_ns": ("busy_seconds_total", 10**9),
}
# Upper bounds of the buckets in ns, and the half octaves of the kernel within each.
BOUNDS_NS = [2**power for power in range(15, 34)]
HALF_OCTAVES = [2**14 * (3 if number % 2 else 2) // 2 * 2 ** (number // 2) for number in range(40)]
# Control characters, bytes that are not UTF-8, and characters that D-Bus does not transport.
NOT_SHOWN = re.compile(
    "[\0-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef"
    + "".join(chr(plane << 16 | last) for plane in range(17) for last in (0xFFFE, 0xFFFF))
    + "]"
)


def shown(name):
    """The name of a cgroup as the daemon shows it: "?" for each byte of other characters."""
    return NOT_SHOWN.sub(lambda found: "?" * len(os.fsencode(found[0])), name)


# Names of files: any bytes but 0 and "/".
FILE_NAMES = (
    st.binary(min_size=1, max_size=20)
    | st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20).map(str.encode)
).filter(lambda name: name not in (b".", b"..") and not {0, ord("/")} & set(name))
LEAF_NAMES = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="/"), min_size=1, max_size=20
).filter(lambda name: name not in (".", ".."))
LINES = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(COUNTERS, COUNTER),
        "rlat": st.lists(st.integers(0, 2**32 - 1), max_size=40),
    },
)
CGROUPS = st.dictionaries(
    FILE_NAMES,
    st.tuples(
        st.dictionaries(st.integers(0, 2), LINES, max_size=3), st.none() | st.integers(1, 10000)
    ),
    max_size=4,
)


def line_of(counts):
    """A line of io.sutro.stat after its device."""
    words = [f"{key}={count}" for key, count in counts.items() if key != "rlat"]
    if "rlat" in counts:
        words.append("rlat=" + ",".join(map(str, counts["rlat"])))
    return " ".join(["queued=1", *words])


def within(rlat, bound_ns):
    """Reads within a bound, of half octaves that end at or before it."""
    return sum(count for count, end in zip(rlat, HALF_OCTAVES, strict=False) if end <= bound_ns)


def bucket_name(bound_ns):
    """As prometheus_client writes it."""
    return "+Inf" if bound_ns is None else repr(bound_ns / 1e9)


def expected_of_cgroups(cgroups, leaves):
    """The series of cgroups: sums over those with one shown name."""
    found, weights = {}, {}
    for name, (lines, weight) in cgroups.items():
        cgroup = "/" + shown(os.fsdecode(name))
        for number, counts in lines.items():
            where = {"cgroup": cgroup, "unit": "", "leaf": "/dev/" + leaves[number]}
            for key, (short, factor) in COUNTERS.items():
                if key in counts:
                    series = (f"sutro_cgroup_{short}", frozenset(where.items()))
                    found[series] = found.get(series, 0) + Fraction(counts[key], factor)
            for bound in (*BOUNDS_NS, None) if "rlat" in counts else ():
                has = frozenset((where | {"le": bucket_name(bound)}).items())
                series = ("sutro_cgroup_read_latency_seconds_bucket", has)
                rlat = counts["rlat"]
                reads = sum(rlat) if bound is None else within(rlat, bound)
                found[series] = found.get(series, 0) + reads
            if weight is not None:
                series = ("sutro_cgroup_weight", frozenset(where.items()))
                weights.setdefault(series, set()).add(weight)
    return {series: float(number) for series, number in found.items()}, weights


@contextlib.contextmanager
def served(root):
    """An exporter; its address."""
    process, address = start_exporter(root)
    yield address
    stop(process)


def printed(root):
    """The text for the textfile collector."""
    run = subprocess.run(
        [EXPORTER, "--once", f"--root={root}"],
        env=environment(),
        stdout=subprocess.PIPE,
        check=True,
    )
    return run.stdout.decode()


def scraped(address):
    """The values of a scrape, which are the same in both formats."""
    found = samples(get(f"{address}/metrics")[1])
    text = get(f"{address}/metrics", OPENMETRICS)[1]
    of_openmetrics = samples(text, parse_openmetrics)
    # That parser returns counts as integers.
    assert {series: float(number) for series, number in of_openmetrics.items()} == found
    return found


@pytest.mark.hypothesis
def test_cgroups_have_what_went_in(machine, bus):
    """Any name comes back as it is shown, and each number is the nearest double."""
    top = machine.at("/sys/fs/cgroup")
    sys_ = machine.at("/sys/dev/block")

    with served(machine.root) as address:
        # Two with one shown name, of which the first has no weight.
        @example(cgroups={b"\1": ({0: {}}, None), b"\2": ({0: {}}, 1)}, leaves=["0", "1", "2"])
        @given(cgroups=CGROUPS, leaves=st.lists(LEAF_NAMES, min_size=3, max_size=3, unique=True))
        def check(cgroups, leaves):
            shutil.rmtree(top)
            top.mkdir()
            for number, leaf in enumerate(leaves):
                link = sys_ / f"7:{number}"
                link.unlink(missing_ok=True)
                link.symlink_to(f"../../devices/{leaf.replace('/', '!')}")
            for name, (lines, weight) in cgroups.items():
                folder = os.path.join(os.fsencode(top), name)
                os.mkdir(folder)
                text = "".join(f"7:{n} {line_of(counts)}\n" for n, counts in lines.items())
                files = {b"io.sutro.stat": text}
                if weight is not None:
                    files[b"io.sutro.weight"] = f"default {weight}\n"
                for file, content in files.items():
                    with open(os.path.join(folder, file), "w") as stream:
                        stream.write(content)
            # sysfs has "!" in the place of "/".
            nodes = [leaf.replace("!", "/") for leaf in leaves]
            wanted, weights = expected_of_cgroups(cgroups, nodes)
            found = {
                series: number
                for series, number in scraped(address).items()
                if series[0].startswith("sutro_cgroup_")
            }
            of_weights = {series: found.pop(series) for series in weights}
            assert found == wanted
            assert all(of_weights[series] in weights[series] for series in weights)

        check()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (b"db.service", "/db.service"),
        ("ä\U0001f4bd".encode(), "/ä\U0001f4bd"),
        (b"\xff\x1b[2J", "/??[2J"),
        (b"a\nb\x7f", "/a?b?"),
        # A byte each: a control character of two, characters that D-Bus does not transport.
        ("\x85\ufffe\ufdd0\U0010ffff".encode(), "/" + "?" * 12),
        (b"\xe2\x28\xa1\xf0\x9f\x92", "/?(????"),
    ],
)
def test_shown_name_of_a_cgroup(machine, bus, name, expected):
    """As the daemon makes it, byte for byte; this is what shown() is, too."""
    folder = os.path.join(os.fsencode(machine.at("/sys/fs/cgroup")), name)
    os.mkdir(folder)
    with open(os.path.join(folder, b"io.sutro.stat"), "w") as file:
        file.write("259:0 rios=1\n")
    found = samples(printed(machine.root))
    assert {dict(has)["cgroup"] for key, has in found if key.startswith("sutro_cgroup_")} == {
        expected
    }
    assert "/" + shown(os.fsdecode(name)) == expected


# ---- the daemon ----

# D-Bus transports no others.
TEXTS = st.text(
    st.characters(exclude_categories=["Cs", "Cn"], exclude_characters="\0"), max_size=20
)
STATES = st.sampled_from([*promises.HOLDS, *promises.NOT_YET, "limited", "refused"]) | TEXTS
PROMISES = st.lists(
    st.tuples(
        TEXTS,  # the unit
        TEXTS,  # the cgroup
        st.sampled_from([*values.KINDS, "KeyOfALaterDaemon"]),
        TEXTS,  # the path
        st.sampled_from(["/dev/dm-0", "/dev/sdz", ""]),
        STATES,
        COUNT | st.just(0) | st.just(values.INFINITY),
        COUNT,
        st.floats(0, 1),
    ),
    max_size=5,
    unique_by=lambda row: row[:4],
)
CAPACITIES = st.lists(
    st.fixed_dictionaries(
        {
            "path": TEXTS,
            "key": st.sampled_from([*values.FLOORS, "KeyOfALaterDaemon"]),
            "capacity": COUNT,
            "promised": COUNT,
            "left": COUNT,
        }
    ),
    max_size=3,
    unique_by=lambda row: (row["path"], row["key"]),
)
ALIASES = st.lists(TEXTS | TEXTS.map("/dev/mapper/".__add__), max_size=3)
UNITS = {
    values.BYTES: ("bytes_per_second", 1),
    values.COUNT: ("ios_per_second", 1),
    values.TIME: ("seconds", 10**6),
}


def label(aliases):
    """The name that people use for /dev/dm-0."""
    others = [alias for alias in aliases if not alias.startswith("/dev/mapper/")]
    return [*others, *aliases, "/dev/dm-0"][0]


def expected_of_promise(row, aliases):
    """The series of a promise: its name, other labels, and the number."""
    unit, cgroup, key, path, device, state, stated, got, granted = row
    kind = values.KINDS.get(key)
    if kind not in UNITS:
        return
    where = {"unit": unit, "cgroup": cgroup, "key": key, "path": path}
    where["device"] = label(aliases) if device == "/dev/dm-0" else device
    suffix, factor = UNITS[kind]
    yield "state", where | {"state": state}, 1.0
    yield "broken", where, float(state not in promises.HOLDS + promises.NOT_YET)
    if stated not in (0, values.INFINITY):
        yield f"target_{suffix}", where, float(Fraction(stated, factor))
    if key not in values.CEILINGS:
        yield f"received_{suffix}", where, float(Fraction(got, factor))
    if key in values.FLOORS:
        yield "granted_ratio", where, granted
        if stated * granted > 0:
            yield "received_ratio", where, got / (stated * granted)


def expected_of_capacities(rows):
    """The series of capacities of floors that are known."""
    for row in rows:
        kind = values.KINDS.get(row["key"])
        for name in ("capacity", "promised", "left") if kind in UNITS else ():
            middle = "" if name == "capacity" else f"{name}_"
            has = frozenset({"path": row["path"], "key": row["key"]}.items())
            yield (f"sutro_capacity_{middle}{UNITS[kind][0]}", has), float(row[name])


# The replies as the mock makes them of JSON.
REPLIES = {
    "ListPromiseStates": ("a(ssssssttd)", "[tuple(row) for row in rows]"),
    "ListDevices": (
        "aa{sv}",
        "[dict(row, aliases=dbus.Array(row['aliases'], 's'), size_bytes=dbus.UInt64(4096))"
        " for row in rows]",
    ),
    "ListCapacities": (
        "aa{sv}",
        "[{key: dbus.UInt64(value) if isinstance(value, int) else value for key, value in"
        " row.items()} for row in rows]",
    ),
}


class Mock:
    """A mock of org.sutro1 whose replies are in a file."""

    def __init__(self, file):
        self.file = file
        self.service = SpawnedMock.spawn_for_name(
            NAME, PATH, INTERFACE, BusType.SYSTEM, subprocess.DEVNULL, subprocess.DEVNULL
        )
        self.mock = dbus.Interface(self.service.obj, MOCK_IFACE)
        for member, (returns, made) in REPLIES.items():
            rows = f"__import__('json').load(open({str(file)!r}))[{member!r}]"
            self.mock.AddMethod("", member, "", returns, f"rows = {rows}\nret = {made}")
        properties = {"Version": "", "DryRun": False, "ControlStepUSec": dbus.UInt64(1500000)}
        properties["ManagedLeaves"] = dbus.Array(["/dev/dm-0"], signature="s")
        properties["PolicyErrors"] = dbus.Array(["one", "two"], signature="s")
        self.mock.AddProperties(INTERFACE, properties)

    def answer(self, version, **replies):
        """Set the replies."""
        self.file.write_text(json.dumps(replies))
        self.mock.UpdateProperties(INTERFACE, {"Version": version})

    def stop(self):
        """End the service."""
        self.service.process.kill()
        self.service.process.wait()


@pytest.fixture
def mock(bus, tmp_path):
    mock = Mock(tmp_path / "replies")
    yield mock
    mock.stop()
    bus.released(NAME)


@pytest.mark.hypothesis
def test_promises_have_what_went_in(machine, mock):
    """Any text comes back, and each number is the nearest double."""
    with served(machine.root) as address:

        @given(
            version=TEXTS, rows=PROMISES, capacities=CAPACITIES, aliases=ALIASES, scheduler=TEXTS
        )
        def check(version, rows, capacities, aliases, scheduler):
            device = {"node": "/dev/dm-0", "kind": "loop", "leaf": True, "aliases": aliases}
            device["scheduler"] = scheduler
            mock.answer(
                version, ListPromiseStates=rows, ListCapacities=capacities, ListDevices=[device]
            )
            wanted = dict(expected_of_capacities(capacities))
            for row in rows:
                for name, has, number in expected_of_promise(row, aliases):
                    series = (f"sutro_promise_{name}", frozenset(has.items()))
                    assert series not in wanted
                    wanted[series] = number
            info = {"leaf": "/dev/dm-0", "kind": "loop", "scheduler": scheduler}
            leaf = frozenset({"leaf": "/dev/dm-0"}.items())
            weighted = scheduler in ("sutro", "bfq")
            wanted |= {
                ("sutro_up", frozenset()): 1,
                ("sutro_build_info", frozenset({"version": version}.items())): 1,
                ("sutro_dry_run", frozenset()): 0,
                ("sutro_policy_errors", frozenset()): 2,
                ("sutro_control_step_seconds", frozenset()): 1.5,
                ("sutro_cgroups_omitted", frozenset()): 0,
                ("sutro_leaf_info", frozenset(info.items())): 1,
                ("sutro_leaf_weighted", leaf): weighted,
                ("sutro_leaf_managed", leaf): 1,
            }
            assert scraped(address) == wanted
            text = printed(machine.root)
            assert samples(text) == wanted
            assert wanted == {
                (one["name"], frozenset(one["labels"].items())): one["value"]
                for one in textfile.samples(text)
            }

        check()


@pytest.mark.parametrize("order", [1, -1])
def test_promises_of_cgroups_with_one_shown_name(machine, mock, order):
    """A series is there once, and a promise that is broken is not hidden behind one that holds."""
    shown_alike = ["", "/jobs/?", "ReadBandwidthMin", "/srv", ""]
    rows = [[*shown_alike, "held", 5, 5, 1.0], [*shown_alike, "infeasible", 5, 1, 0.5]]
    other = ["", "/jobs/a", *shown_alike[2:], "held", 7, 7, 1.0]
    mock.answer("1", ListPromiseStates=[*rows[::order], other], ListCapacities=[], ListDevices=[])
    found = samples(printed(machine.root))
    for cgroup, is_broken, got in (("/jobs/?", 1, 1), ("/jobs/a", 0, 7)):
        where = {"cgroup": cgroup, "key": "ReadBandwidthMin"}
        assert value(found, "sutro_promise_broken", **where) == is_broken
        assert value(found, "sutro_promise_received_bytes_per_second", **where) == got


def test_scrapes_one_after_the_other_share_the_replies(mock):
    """Each user of the machine may scrape, and the calls count as those of the exporter's user."""
    mock.answer("1", ListPromiseStates=[], ListCapacities=[], ListDevices=[])
    with served("") as address:
        began = time.monotonic()
        for accept in ("", OPENMETRICS) * 10:
            assert "sutro_up 1.0" in get(f"{address}/metrics", accept)[1]
        seconds = time.monotonic() - began
    assert 1 <= len(mock.mock.GetMethodCalls("ListPromiseStates")) <= 1 + seconds


def test_reply_of_other_types(machine, mock):
    """It is a failure of the daemon, and nothing of the other replies is exported."""
    device = {"node": "/dev/dm-0", "kind": "loop", "leaf": True, "aliases": []}
    mock.answer("1", ListPromiseStates=[], ListCapacities=[], ListDevices=[device])
    mock.mock.AddMethod("", "ListPromiseStates", "", "as", "ret = ['no', 'states']")
    assert samples(printed(machine.root)) == {
        ("sutro_up", frozenset()): 0,
        ("sutro_down_info", frozenset({("reason", "error")})): 1,
        ("sutro_cgroups_omitted", frozenset()): 0,
    }


@pytest.mark.parametrize(
    ("error", "reason", "log"),
    [
        (
            "org.freedesktop.DBus.Error.UnknownMethod",
            "too-old",
            "the running sutrod has no ListPromiseStates: it is older than this program; start the "
            "new one: systemctl restart sutrod",
        ),
        (
            "org.freedesktop.DBus.Error.AccessDenied",
            "not-permitted",
            "sutrod does not permit this: why; see: journalctl -u dbus -n 20",
        ),
        (
            "org.freedesktop.DBus.Error.Spawn.ChildExited",
            "not-running",
            "sutrod could not be started: why; see: systemctl status sutrod",
        ),
        (
            "org.freedesktop.DBus.Error.NoReply",
            "not-running",
            "sutrod is not running; start it: systemctl start sutrod",
        ),
        (
            "org.freedesktop.DBus.Error.NoMemory",
            "error",
            "sutrod answered: why; see: journalctl -u sutrod -n 20",
        ),
    ],
)
def test_reason_of_a_failure(machine, mock, error, reason, log):
    """A label, and a sentence in the log with the next step."""
    mock.answer("1", ListPromiseStates=[], ListCapacities=[], ListDevices=[])
    raised = f"raise dbus.exceptions.DBusException('why', name={error!r})"
    mock.mock.AddMethod("", "ListPromiseStates", "", "as", raised)
    process, address = start_exporter(machine.root)
    values_ = samples(get(f"{address}/metrics")[1])
    assert values_["sutro_down_info", frozenset({("reason", reason)})] == 1
    assert stop(process) == f"sutro-exporter: {log}\n"


# ---- the header Accept ----

TYPES = st.sampled_from(
    ["application/openmetrics-text", "text/plain", "*/*", "application/openmetrics-texts", ""]
)
PARAMETERS = st.sampled_from(["", ";version=1.0.0", " ; q=0.5", ";q=0.5;version=0.0.4", " "])
ACCEPTS = st.lists(
    st.tuples(st.sampled_from(["", " "]), TYPES, PARAMETERS).map("".join), max_size=4
)


@pytest.mark.hypothesis
def test_format_is_that_of_prometheus_client(machine, bus):
    with served(machine.root) as address:

        @given(accept=ACCEPTS.map(",".join))
        def check(accept):
            kind, text = get(f"{address}/metrics", accept)
            assert kind == choose_encoder(accept)[1]
            assert text.endswith("# EOF\n") == kind.startswith("application/openmetrics-text")

        check()
