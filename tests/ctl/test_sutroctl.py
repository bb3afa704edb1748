# SPDX-License-Identifier: LGPL-2.1-or-later
"""The verbs, against the real sutrod on a fake machine: text for people, JSON for programs."""

import os
import re
import subprocess

import pytest
from conftest import CONF, HERE, POLICIES, sutroctl
from fakemachine import PATIENCE_S, wait_until
from shapes import (
    DEVICE,
    EXPLAIN,
    EXPLANATION,
    LATENCIES,
    LEAF,
    LEAF_DEVICE,
    PLOT,
    POLICY,
    POLICY_CHECK,
    POLICY_SET,
    SET,
    STATUS,
    SWITCHED,
    TOP,
    UNIT,
    UNSET,
    WATCH,
    fits,
    keys,
)
from sutro import statements

GOLDEN = HERE / "golden"
MAN = HERE.parent.parent / "Documentation" / "man" / "sutroctl.1"

TEXTS = {
    "tree": ["tree"],
    "explain-none": ["explain", "db", "secret"],
    "explain-slice": ["explain", "log", "hda"],
    "explain-cgroup": ["explain", "/system.slice/web.service", "dm-1"],
    "set": ["set", "web", "200"],
    "set-device": ["set", "web", "500", "--device", "/srv", "--runtime"],
    "set-inactive": ["set", "backup", "default"],
    "use": ["use", "dm-1", "/dev/sda"],
    "release": ["release", "--all"],
}
# The same with promises.
PROMISED = {
    "status": ["status"],
    "explain": ["explain", "db"],
    "explain-path": ["explain", "web", "/srv"],
    "explain-unresolved": ["explain", "idle"],
    "top": ["top", "--once"],
    "top-device": ["top", "secret", "--once"],
    "policy-show": ["policy", "show"],
    "policy-show-unit": ["policy", "show", "web"],
    "policy-show-nothing": ["policy", "show", "user-1000.slice"],
    "policy-set": ["policy", "set", "web", "WriteBandwidthMin=/srv 1.5M", "--runtime"],
    "policy-set-slip": ["policy", "set", "bd", "Weight=300", "Class=rt"],
    "policy-reload": ["policy", "reload"],
}


# A cause is found again every 5 s, and a need at each step, by the costs that are measured then.
SHORTAGE = re.compile(r"need \d{3} % of the time of /dev/hd[ab]")
# Tables in a pipe that are wider than a sentence, for no name folds.
WIDE = ("top", "top-device")
NEED = re.compile(r"needs 7\d % of (/dev/hd[ab])")


@pytest.mark.parametrize("name", PROMISED)
def test_text_with_promises(promised, name):
    test_text(promised, name, PROMISED[name])


@pytest.mark.parametrize("name", TEXTS)
def test_text(sutrod, name, args=None):
    """The text is the golden one: run with SUTRO_GOLDEN=write to accept a change, and read it."""
    run = sutroctl(*(args or TEXTS[name]))
    assert (run.status, run.err) == (0, "")
    golden = GOLDEN / f"{name}.txt"
    text = SHORTAGE.sub("need 130 % of the time of /dev/hda", run.out)
    text = NEED.sub(r"needs 76 % of \1", text)
    if os.environ.get("SUTRO_GOLDEN") == "write":
        golden.write_text(text)
    assert text == golden.read_text()
    assert max(len(line) for line in run.out.splitlines()) <= 100 or name in WIDE
    assert "\x1b" not in run.out


def test_text_does_not_depend_on_columns(sutrod):
    assert sutroctl("tree", COLUMNS="20").out == (GOLDEN / "tree.txt").read_text()


def test_tree_of_a_device_is_its_part_of_the_whole(sutrod):
    run = sutroctl("tree", "/srv")
    assert (run.status, run.err) == (0, "")
    assert run.out == (GOLDEN / "tree.txt").read_text().partition("/dev/vg0/log")[0]


def test_status_json(sutrod):
    data = sutroctl("status", "--json").json()
    fits(data, STATUS)
    assert [leaf["name"] for leaf in data["leaves"]] == ["hda", "hdb", "sda", "sdb"]
    assert data["leaves"][1]["stacks"] == ["/dev/vg0/db", "/dev/vg0/log"]
    assert [unit["unit"] for unit in data["units"]] == ["batch.slice", "db.service"]
    assert data["daemon"]["managed_leaves"] == ["/dev/hda", "/dev/hdb"]


@pytest.fixture
def resyncing(machine, systemd, daemon):
    """A daemon that gives the check of md0 a weight; md7 is a raid5 on the other disks."""
    systemd.start("resync.slice", slice="/")
    machine.disk("md7", "9:7", slaves="hda hdb")
    for array, level, action in (("md0", "raid1", "check"), ("md7", "raid5", "resync")):
        block = f"/sys/devices/virtual/block/{array}/md"
        machine.write(f"{block}/level", level + "\n")
        machine.write(f"{block}/sync_action", action + "\n")
    machine.write("/proc/4711/comm", "md0_resync\n")
    machine.write("/sys/fs/cgroup/cgroup.procs", "4711\n")
    machine.write("/sys/fs/cgroup/resync.slice/cgroup.procs", "")
    machine.write("/etc/sutro/sutrod.conf", "[Daemon]\nResyncWeight=/dev/md0 30\n")
    daemon.start()
    daemon.until(lambda: "8:0 30" in machine.weights("/resync.slice", "io.bfq.weight"))
    return daemon


def test_resyncs(resyncing):
    """Each is a competitor with a name; one that a weight cannot help is not given one."""
    for array in ("status", "explain db"):
        data = sutroctl(*array.split(), "--json").json()
        fits(data, STATUS if array == "status" else EXPLAIN)
        assert [resync["device"] for resync in data["resyncs"]] == ["/dev/md0", "/dev/md7"]
    text = " ".join(sutroctl("status").out.split())
    weighted = "resync of /dev/md0 (check) in resync.slice, weight 30 on /dev/sda, weight 30 on"
    assert weighted in text
    assert "resync of /dev/md7: its driver charges all of it to the root cgroup" in text
    text = sutroctl("explain", "job", "/dev/mapper/secret").out
    assert "resync of /dev/md0 (check) in resync.slice" in text
    assert "/dev/md7" not in text


@pytest.mark.parametrize(
    ("words", "path", "stronger"),
    [
        (["50"], None, "Weight=40"),
        (["50", "--device", "/dev/md0"], "/dev/md0", "Weight=/dev/md0 30"),
    ],
)
def test_weight_of_the_slice_of_resyncs(machine, resyncing, words, path, stronger):
    """ResyncWeight= is stronger than IOWeight=: the answer names it, and is no failure.

    To wait for the weight of IOWeight= would be a failure after SETTLE_TIMEOUT_S.
    """
    machine.write("/etc/sutro/sutrod.conf", "[Daemon]\nResyncWeight=40\nResyncWeight=/dev/md0 30\n")
    resyncing.call("Reload")
    data = sutroctl("set", "resync.slice", *words, "--json").json()
    assert (data["weight"], data["path"]) == (50, path)
    source = "ResyncWeight= in sutrod.conf"
    assert data["note"] == f"a policy has {stronger}, which is stronger: {source}"
    assert source in sutroctl("policy", "show", "resync.slice").out


def test_capacities(declared):
    """Each rate with the promised part; a setting beyond it has a note."""
    data = sutroctl("status", "--json").json()
    fits(data, STATUS)
    rows = {
        row["key"]: (row["capacity"], row["promised"], row["left"]) for row in data["capacities"]
    }
    assert rows == {
        "ReadBandwidthMin": (150_000_000, 140_000_000, 10_000_000),
        "WriteBandwidthMin": (20_000_000, 11_500_000, 8_500_000),
    }
    text = re.sub(" +", " ", sutroctl("status").out)
    assert "DEVICE FLOORS CAPACITY PROMISED LEFT\n" in text
    assert "/srv read min 150M 140M 10.0M\n/srv write min 20.0M 11.5M 8.50M\n" in text
    run = sutroctl("policy", "set", "job", "ReadBandwidthMin=/srv 10M", "--runtime")
    assert run.status == 0 and "can promise" not in run.out
    run = sutroctl("policy", "set", "job", "ReadBandwidthMin=/srv 11M", "--runtime")
    assert run.status == 0
    sentence = "/srv can promise 150M (ReadBandwidthMin), and 151M are promised"
    assert sentence in " ".join(run.out.split())


def test_capacity_that_is_refused(declared):
    declared.machine.write(CONF, declared.machine.at(CONF).read_text() + "Admission=refuse\n")
    declared.call("Reload")
    run = sutroctl("policy", "set", "job", "ReadBandwidthMin=/srv 11M", "--runtime")
    assert (run.status, run.out) == (1, "")
    assert run.err == (
        "sutroctl: job.service: ReadBandwidthMin: /srv can promise 150M, of which 140M are "
        "promised; with this setting it would be 151M. Lower a floor, or set Admission=warn in "
        "sutrod.conf.\n"
    )


def test_json_may_stand_before_the_verb(sutrod):
    assert sutroctl("--json", "status").json() == sutroctl("status", "--json").json()


def fits_tree(device):
    inner = {key: value for key, value in device.items() if key not in ("children", "units")}
    fits(inner, LEAF_DEVICE if device["leaf"] else DEVICE)
    if device["leaf"]:
        fits(device["units"], [LEAF | {"unit": str, "cgroup": str}])
        assert device["children"] == []
    else:
        assert "units" not in device
    for child in device["children"]:
        fits_tree(child)


def test_tree_json(sutrod):
    data = sutroctl("tree", "--json").json()
    for top in data:
        fits_tree(top)
    assert [top["name"] for top in data] == ["dm-0", "dm-1", "dm-2"]
    hda = data[0]["children"][0]
    # Units that use the leaf or state a weight for it; idle.service does neither.
    assert [(row["unit"], row["asked"], round(row["got"], 4)) for row in hda["units"]] == [
        ("batch.slice", 20, 0.0002),
        ("job.service", 100, 0.0002),
        ("system.slice", 100, 0.9998),
        ("db.service", 400, 0.7931),
        ("web.service", 100, 0.2067),
    ]
    assert data[2]["children"][0]["children"][0]["children"][0]["name"] == "sda"


def test_tree_requests_only_the_device(sutrod, called):
    data = sutroctl("tree", "vg0-db", "--json").json()
    assert [top["name"] for top in data] == ["dm-0"]
    assert {path for _, path in called("Explain")} == {"/dev/dm-0"}


def test_tree_with_more_units_than_the_bus_permits_calls(systemd, sutrod):
    """dbus-daemon allows 128 calls without an answer on one connection of the system bus."""
    for number in range(300):
        systemd.start(f"crowd{number}.service", 1 + number)
    wait_until(lambda: sum(unit["weight_set"] for unit in sutrod.call("ListUnits")) >= 300)
    data = sutroctl("tree", "hda", "--json").json()
    assert len(data[0]["units"]) == 305


def test_explain_json(sutrod):
    data = sutroctl("explain", "db", "--json").json()
    fits(data, EXPLAIN)
    assert (data["unit"], data["path"], data["device"], data["steps"]) == ("db.service", "", "", [])
    assert [(above["unit"], above["weight"]) for above in data["slices"]] == [("system.slice", 100)]
    weights = {leaf["leaf"]: leaf["asked"] for leaf in data["leaves"]}
    assert weights == {"/dev/hda": 400, "/dev/hdb": 400, "/dev/sda": 300, "/dev/sdb": 300}


def test_explain_a_cgroup_without_io(machine, daemon):
    """systemd sets no weight of a cgroup that is no unit; its controller has to be enabled."""
    machine.at("/sys/fs/cgroup/docker/abc").mkdir(parents=True)
    daemon.start()
    text = " ".join(sutroctl("explain", "/docker/abc", "/dev/sda").out.split())
    assert (
        "/docker/abc has no weight of its own: the io controller is not enabled for /docker/abc"
        in text
    )
    assert "write +io to cgroup.subtree_control of the cgroups above" in text
    assert "sutroctl set" not in text


def test_explain_path_json(sutrod):
    data = sutroctl("explain", "db", "/srv/db/file", "--json").json()
    fits(data, EXPLAIN)
    assert data["device"] == "/dev/dm-0"
    assert [step["device"] for step in data["steps"]] == ["/dev/dm-0", "/dev/hda", "/dev/hdb"]
    assert [leaf["leaf"] for leaf in data["leaves"]] == ["/dev/hda", "/dev/hdb"]


@pytest.mark.parametrize(
    ("args", "answer", "calls", "wanted"),
    [
        (["web", "250"], (None, 250, None, False), [["IOWeight", 250]], {250}),
        (
            ["db", "default", "--runtime"],
            (None, None, 300, True),
            [["IOWeight", UNSET]],
            {100, 400},
        ),
        # A device weight is added to the present ones, or replaces one.
        (
            ["db", "70", "--device", "/dev/vg0/log"],
            ("/dev/vg0/log", 70, None, False),
            [["IODeviceWeight", [["/dev/vg0/log", 70]]]],
            {400},
        ),
        (
            ["db", "10000", "--device", "/dev//vg0/db"],
            ("/dev/vg0/db", 10000, 400, False),
            [["IODeviceWeight", [["/dev/vg0/db", 10000]]]],
            {10000},
        ),
        (
            ["db", "default", "--device", "/dev/vg0/db"],
            ("/dev/vg0/db", None, 400, False),
            [["IODeviceWeight", []]],
            {300},
        ),
    ],
)
def test_set_json(sutrod, called, args, answer, calls, wanted):
    """systemd and the daemon take their time; the answer is what holds afterwards."""
    if "default" in args:
        # systemd writes this when it takes IOWeight= back, and the mock does not.
        sutrod.machine.write("/sys/fs/cgroup/system.slice/db.service/io.weight", "default 100\n")
    data = sutroctl("set", *args, "--json").json()
    fits(data, SET | {"explanation": EXPLANATION})
    path, weight, _, runtime = answer
    assert tuple(data[key] for key in ("path", "weight", "previous", "runtime")) == answer
    assert called("SetUnitProperties") == [[f"{args[0]}.service", runtime, calls]]
    after = data["explanation"]
    if path is None:
        assert (after["weight"], after["weight_set"]) == (weight or 100, weight is not None)
    else:
        expected = ({"/dev/vg0/db": 400} | {path: weight}).items()
        stated = [{"path": p, "weight": w} for p, w in expected if w is not None]
        assert after["device_weights"] == stated
    assert {leaf["asked"] for leaf in after["leaves"]} == wanted
    assert all(leaf["settled"] for leaf in after["leaves"])


@pytest.mark.parametrize("name", ["dm-1", "vg0-log"])
def test_set_device_by_its_short_name(sutrod, called, name):
    """systemd keeps the path that is the same after the next boot."""
    assert sutroctl("set", "db", "70", "--device", name).status == 0
    weights = sutroctl("explain", "db", "--json").json()["device_weights"]
    assert {"path": "/dev/vg0/log", "weight": 70} in weights
    assert sutroctl("set", "db", "default", "--device", name).status == 0


def test_set_device_default_keeps_the_others(sutrod, called):
    assert sutroctl("set", "db", "70", "--device", "/dev/vg0/log").status == 0
    data = sutroctl("set", "db", "default", "--device", "/dev/vg0/db", "--json").json()
    assert data["explanation"]["device_weights"] == [{"path": "/dev/vg0/log", "weight": 70}]
    assert called("SetUnitProperties")[1][2] == [
        ["IODeviceWeight", []],
        ["IODeviceWeight", [["/dev/vg0/log", 70]]],
    ]


def test_set_inactive_unit(sutrod, called):
    data = sutroctl("set", "backup", "70", "--json").json()
    fits(data, SET | {"explanation": type(None)})
    assert data["previous"] == 50
    assert called("SetUnitProperties") == [["backup.service", False, [["IOWeight", 70]]]]


def test_set_when_the_daemon_does_not_hear(broken, monkeypatch):
    monkeypatch.setattr(statements, "SETTLE_TIMEOUT_S", 1)
    run = sutroctl("set", "db", "250")
    assert run.status == 1
    assert "db.service: IOWeight=250" in run.out
    assert "set in systemd, but sutrod has not received it within 1 s" in run.err
    assert "journalctl -u sutrod" in run.err


def test_file_that_does_not_take_the_weight(machine, sutrod, monkeypatch):
    monkeypatch.setattr(statements, "SETTLE_TIMEOUT_S", 1)
    machine.fault("weight", "ignore")
    # On a busy host the second may end before the daemon has received the weight.
    assert sutroctl("set", "web", "240").status == 1
    wait_until(lambda: sutroctl("explain", "web", "--json").json()["weight"] == 240)
    run = sutroctl("explain", "web", "hda")
    assert (run.status, run.err) == (0, "")
    assert '/dev/hda: the kernel ignored "default 240" for io.sutro.weight' in run.out
    settled = [leaf["settled"] for leaf in sutroctl("explain", "web", "--json").json()["leaves"]]
    assert settled == [False, False, False, True]  # no weight is written for /dev/sdb
    words = ("web", "250", "--device", "hda")
    assert sutroctl("set", *words).status == 1
    wait_until(lambda: sutroctl("explain", "web", "--json").json()["device_weights"] != [])
    run = sutroctl("set", *words)
    assert run.status == 1 and "sutrod has not written it to the files within 1 s" in run.err


def test_set_when_the_daemon_runs_dry(daemon):
    daemon.start("--dry-run")
    run = sutroctl("set", "web", "250")
    assert (run.status, run.err) == (0, "")
    assert "it writes nothing" in run.out
    assert sutroctl("set", "web", "251", "--json").json()["dry_run"] is True


def test_use_json(sutrod, called):
    data = sutroctl("use", "/dev/sda1", "hda", "--json").json()
    fits(data, SWITCHED)
    assert called("UseDevices") == [[["/dev/sda1", "/dev/hda"]]]
    assert [(row["leaf"], row["scheduler"], row["changed"]) for row in data] == [
        ("/dev/hda", "sutro", False),
        ("/dev/sda", "sutro", True),
    ]


def test_release_json(sutrod, called):
    data = sutroctl("release", "/dev/vg0/log", "--json").json()
    fits(data, SWITCHED)
    assert called("ReleaseDevices") == [[["/dev/vg0/log"]]]
    assert data[0]["previous"] == "sutro"
    assert len(sutroctl("release", "--all", "--json").json()) == 1
    assert called("ReleaseDevices")[1] == [[]]
    assert sutroctl("release", "--all").out == "Nothing to do: Sutro has switched no leaf.\n"


def test_use_that_fails_for_one_leaf(machine, sutrod):
    machine.fault("sdb/queue/scheduler", "fail")
    run = sutroctl("use", "secret")
    assert run.status == 1
    assert run.err == (
        "sutroctl: could not switch /dev/sdb\n"
        "          resolve the errors above, then run it again; see: journalctl -u sutrod\n"
    )
    assert "Input/output error" in run.out
    assert "/dev/sda  sutro" in run.out


def test_dump(sutrod):
    run = sutroctl("dump")
    assert (run.status, run.err) == (0, "") and run.out.startswith("sutrod 0.1.0\n")
    data = sutroctl("dump", "--json").json()
    assert list(data) == ["dump"] and data["dump"].startswith("sutrod 0.1.0\n")


def test_promises_json(promised):
    data = sutroctl("status", "--json").json()
    fits(data, STATUS)
    failing = ["unresolved", "unattributed", "infeasible", "infeasible"]
    states = [promise["state"] for promise in data["promises"]]
    assert states == [*failing, "settling", "held", "held", "idle", "stated"]
    data = sutroctl("explain", "db", "/dev/vg0/log", "--json").json()
    fits(data, EXPLAIN)
    assert data["promises"] == [], "none is about this device"
    data = sutroctl("explain", "job", "--json").json()
    assert [promise["key"] for promise in data["promises"]] == ["WriteIOPSMin", "ReadBandwidthMax"]


def test_ceiling_of_infinity(sutrod):
    """No number: "infinity" in a text, null in JSON."""
    sutroctl("policy", "set", "--runtime", "web", "ReadBandwidthMax=/srv infinity")
    line = r"read max +/srv +infinity +- +- +set"
    sutrod.until(lambda: re.search(line, sutroctl("status").out))
    assert re.search(r"read max +infinity +- ", sutroctl("top", "--once").out)
    assert "ReadBandwidthMax=/srv infinity  set" in sutroctl("explain", "web").out
    data = sutroctl("status", "--json").json()
    fits(data, STATUS)
    assert [promise["value"] for promise in data["promises"]] == [None]
    data = sutroctl("top", "--json").json()
    fits(data, TOP)
    assert None in [line["value"] for row in data for line in row["lines"]]


def test_latency_json(promised):
    """On the fake machine latencies are those at the leaves: all in one of their buckets."""
    data = sutroctl("latency", "db", "--json").json()
    fits(data, LATENCIES)
    (row,) = data["rows"]
    assert (row["name"], row["op"], row["source"]) == ("/dev/vg0/db", "read", "leaves")
    assert [(bucket["from_us"], bucket["to_us"]) for bucket in row["buckets"]] == [
        (4194.304, 4718.592),
        (4718.592, 5242.88),
        (5242.88, 5767.168),
        (5767.168, 6291.456),
    ]
    counts = [bucket["requests"] for bucket in row["buckets"]]
    assert max(counts) == min(counts) and round(sum(counts)) == row["requests"] > 1000
    width = 6291.456 - 4194.304
    for key, part in (("p50_us", 0.5), ("p90_us", 0.9), ("p99_us", 0.99), ("p99_9_us", 0.999)):
        assert row[key] == pytest.approx(4194.304 + part * width)
    (target,) = row["targets"]
    assert (target["path"], target["value"], target["percentile"]) == ("/srv", 10_000, 95)
    assert target["state"] == "held"


def test_latency_text(promised):
    """The golden text, with N in the place of counts: they grow as the test runs."""
    run = sutroctl("latency", "db")
    assert (run.status, run.err) == (0, "")
    text = re.sub(r" +[0-9]+(?= +[0-9.]+ %)", " N", run.out)
    text = re.sub(r"[0-9]+ requests", "N requests", text)
    text = re.sub(r" +REQUESTS", " REQUESTS", text)
    golden = GOLDEN / "latency.txt"
    if os.environ.get("SUTRO_GOLDEN") == "write":
        golden.write_text(text)
    assert text == golden.read_text()
    assert max(len(line) for line in run.out.splitlines()) <= 100


def test_latency_without_target(promised):
    """Nothing is measured of a unit without a target, and the error has the command to set one."""
    run = sutroctl("latency", "web")
    assert (run.status, run.out) == (1, "")
    assert "web.service has no latency target" in run.err
    assert "sutroctl policy set --runtime web.service LatencyTarget='any 1min'" in run.err
    run = sutroctl("latency", "bd")
    assert (run.status, run.out) == (1, "")
    assert "there is no unit 'bd.service'" in run.err and "db.service" in run.err
    run = sutroctl("latency", "/no/such")
    assert "there is no cgroup '/no/such'" in run.err


def test_top_json(promised):
    data = sutroctl("top", "--json").json()
    fits(data, TOP)
    failing = ["job.service", "web.service", "idle.service"]
    assert [(row["unit"], row["fails"]) for row in data[:4]] == [
        *((unit, True) for unit in failing),
        ("batch.slice", False),
    ]
    (db,) = (row for row in data if row["unit"] == "db.service")
    assert [line["about"] for line in db["lines"]] == ["read min", "write min", "read P95"]
    assert ("", "/payload") in [(row["unit"], row["cgroup"]) for row in data]
    data = sutroctl("top", "/srv", "--json").json()
    assert [row["unit"] for row in data] == ["web.service", "db.service"]
    assert {row["device"] for row in data} == {"/dev/dm-0"}


def test_top_without_usage(broken):
    assert "No unit used a device" in sutroctl("top", "--once").out


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["--filter", "zz"], "No unit has 'zz' in its name, nor in that of its device."),
        (
            ["--filter", "idle", "--active"],
            "No unit that used a device in the last second has 'idle' in its name, nor in that of "
            "its device.",
        ),
        (["/dev/vg0/log", "--active"], "No unit used this device in the last second."),
    ],
)
@pytest.mark.parametrize("how", [["--once"], ["-n", "1"]])
def test_top_of_nothing(promised, how, args, expected):
    """Other units used devices, and have promises: the sentence is about what was sought."""
    run = sutroctl("top", *how, *args)
    assert (run.status, run.err, " ".join(run.out.split())) == (0, "", expected)
    assert sutroctl("top", "--once", *args, "--json").json() == []


def test_man_page_documents_every_key():
    text = MAN.read_text().replace("\\-", "-")
    tree_only = {"children": str, "units": str}
    every = keys([STATUS | SET | EXPLAIN | tree_only | SWITCHED[0] | {"dump": str}])
    every |= set().union(*map(keys, (TOP, POLICY, POLICY_SET, WATCH, PLOT, POLICY_CHECK)))
    missing = [key for key in every | keys(STATUS) if f"\\fB{key}\\fR" not in text]
    assert missing == []


def json_of(verb):
    """The part of the section JSON that is about a verb."""
    text = MAN.read_text().replace("\\-", "-").partition("\n.SH JSON\n")[2]
    return text.partition(f"\n.B {verb}\ngives ")[2].partition("\n.PP\n")[0]


def test_man_page_has_the_keys_of_explain_and_set():
    """Each key is in the part about its verb, not only in one about another verb."""
    own = (EXPLAIN.keys() - UNIT.keys()) | LEAF.keys() | {"settled"}
    assert own == {key for key in own if f"\\fB{key}\\fR" in json_of("explain")}
    without = json_of("set").partition("\nwithout ")[2]
    assert set(re.findall(r"\\fB(\w+)\\fR", without)) == EXPLAIN.keys() - EXPLANATION.keys()


def test_reader_that_has_had_enough(sutrod):
    command = f"{POLICIES / 'sutroctl'} tree --json | head -1"
    env = os.environ | {"PYTHONPATH": str(POLICIES)}
    run = subprocess.run(
        command, shell=True, env=env, capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert (run.stdout, run.stderr) == ("[\n", "")
