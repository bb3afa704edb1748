# SPDX-License-Identifier: LGPL-2.1-or-later
"""The verbs, against a mocked sutrod and systemd: what people see, and what programs get."""

import os
import subprocess

import dbus
import pytest
from conftest import HERE, POLICIES, sutroctl

GOLDEN = HERE / "golden"
MAN = HERE.parent.parent / "Documentation" / "man" / "sutroctl.1"

TEXTS = {
    "status": ["status"],
    "tree": ["tree"],
    "tree-device": ["tree", "/srv"],
    "explain": ["explain", "db"],
    "explain-path": ["explain", "web.service", "/dev/vg0/db"],
    "explain-none": ["explain", "db", "secret"],
    "explain-slice": ["explain", "job", "hda"],
    "explain-cgroup": ["explain", "/system.slice/web.service", "dm-1"],
    "set": ["set", "web", "200"],
    "set-device": ["set", "web", "500", "--device", "/srv", "--runtime"],
    "set-inactive": ["set", "backup", "default"],
    "use": ["use", "dm-1", "/dev/sda"],
    "release": ["release", "--all"],
    "dump": ["dump"],
}


@pytest.mark.parametrize("name", TEXTS)
def test_text(sutrod, name):
    """The text is the golden one: run with SUTRO_GOLDEN=write to accept a change, and read it."""
    run = sutroctl(*TEXTS[name])
    assert (run.status, run.err) == (0, "")
    golden = GOLDEN / f"{name}.txt"
    if os.environ.get("SUTRO_GOLDEN") == "write":
        golden.write_text(run.out)
    assert run.out == golden.read_text()
    assert max(len(line) for line in run.out.splitlines()) <= 100
    assert "\x1b" not in run.out


def test_text_does_not_depend_on_columns(sutrod):
    assert sutroctl("tree", COLUMNS="20").out == (GOLDEN / "tree.txt").read_text()


# JSON: the type of each value; a list holds any number of the one shape given.

WEIGHTS = [{"path": str, "weight": int}]
UNIT = {"unit": str, "cgroup": str, "weight": int, "weight_set": bool, "device_weights": WEIGHTS}
LEAF = {
    "leaf": str,
    "devno": str,
    "scheduler": str,
    "backend": str,
    "asked": int,
    "reason": str,
    "file": str,
    "written": str,
    "read_back": str,
    "hweight": float,
    "got": float,
    "time_ns": int,
    "rbytes": int,
    "wbytes": int,
}
DEVICE = {
    "node": str,
    "name": str,
    "devno": str,
    "kind": str,
    "slaves": [str],
    "aliases": [str],
    "leaf": bool,
    "managed": bool,
    "size_bytes": int,
}
LEAF_DEVICE = DEVICE | {"scheduler": str}
EXPLANATION = UNIT | {"path": str, "device": str, "leaves": [LEAF | {"settled": bool}]}
STEP = {"device": str, "kind": str, "level": int, "text": str}
EXPLAIN = EXPLANATION | {"slices": [UNIT], "steps": [STEP]}
STATUS = {
    "daemon": {"version": str, "dry_run": bool, "managed_leaves": [str]},
    "leaves": [LEAF_DEVICE | {"stacks": [str]}],
    "units": [UNIT],
}
SET = {
    "unit": str,
    "path": (str, type(None)),
    "weight": (int, type(None)),
    "previous": (int, type(None)),
    "runtime": bool,
    "dry_run": bool,
}
SWITCHED = [{"leaf": str, "scheduler": str, "previous": str, "changed": bool, "error": str}]


def fits(value, shape, where="answer"):
    """Assert that a value has a shape: exactly these keys, exactly these types."""
    if isinstance(shape, dict):
        assert isinstance(value, dict), where
        assert value.keys() == shape.keys(), where
        for key in shape:
            fits(value[key], shape[key], f"{where}.{key}")
    elif isinstance(shape, list):
        assert isinstance(value, list), where
        for index, item in enumerate(value):
            fits(item, shape[0], f"{where}[{index}]")
    else:
        assert type(value) in (shape if isinstance(shape, tuple) else (shape,)), where


def test_status_json(sutrod):
    data = sutroctl("status", "--json").json()
    fits(data, STATUS)
    assert [leaf["name"] for leaf in data["leaves"]] == ["hda", "hdb", "sda", "sdb"]
    assert data["leaves"][1]["stacks"] == ["/dev/vg0/db", "/dev/vg0/log"]
    assert [unit["unit"] for unit in data["units"]] == ["batch.slice", "db.service"]
    assert data["daemon"]["managed_leaves"] == ["/dev/hda", "/dev/hdb"]


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
    # Who uses the leaf or states a weight for it; idle.service does neither.
    assert [(row["unit"], row["asked"], row["got"]) for row in hda["units"]] == [
        ("batch.slice", 20, 0.0),
        ("job.service", 100, 0.0002),
        ("db.service", 400, 0.7931),
        ("web.service", 100, 0.2067),
    ]
    assert data[2]["children"][0]["children"][0]["children"][0]["name"] == "sda"


def test_tree_asks_only_for_the_device(sutrod):
    data = sutroctl("tree", "vg0-db", "--json").json()
    assert [top["name"] for top in data] == ["dm-0"]
    assert {call[1] for call in sutrod.calls("Explain")} == {"/dev/dm-0"}


def test_tree_with_more_units_than_the_bus_lets_be_asked_for_at_once(sutrod):
    """dbus-daemon allows 128 calls without an answer on one connection of the system bus."""
    sutrod.mock.Crowd(dbus.UInt32(300))
    data = sutroctl("tree", "hda", "--json").json()
    assert len(data[0]["units"]) == 304


def test_explain_json(sutrod):
    data = sutroctl("explain", "db", "--json").json()
    fits(data, EXPLAIN)
    assert (data["unit"], data["path"], data["device"], data["steps"]) == ("db.service", "", "", [])
    assert [(above["unit"], above["weight"]) for above in data["slices"]] == [("system.slice", 100)]
    asked = {leaf["leaf"]: leaf["asked"] for leaf in data["leaves"]}
    assert asked == {"/dev/hda": 400, "/dev/hdb": 400, "/dev/sda": 300, "/dev/sdb": 300}


def test_explain_path_json(sutrod):
    data = sutroctl("explain", "db", "/srv/db/file", "--json").json()
    fits(data, EXPLAIN)
    assert data["device"] == "/dev/dm-0"
    assert [step["device"] for step in data["steps"]] == ["/dev/dm-0", "/dev/hda", "/dev/hdb"]
    assert [leaf["leaf"] for leaf in data["leaves"]] == ["/dev/hda", "/dev/hdb"]


def test_set_json(sutrod, systemd):
    data = sutroctl("set", "web", "250", "--json").json()
    fits(data, SET | {"explanation": EXPLANATION})
    assert (data["weight"], data["previous"], data["path"]) == (250, None, None)
    assert systemd.calls("SetUnitProperties") == [["web.service", False, [("IOWeight", 250)]]]
    # The mocked daemon takes its time; the answer is what holds afterwards.
    assert data["explanation"]["weight"] == 250
    assert {leaf["asked"] for leaf in data["explanation"]["leaves"]} == {250}
    assert {leaf["read_back"] for leaf in data["explanation"]["leaves"]} == {
        "default 250",
        "8:0 250",
        "",
    }


def test_set_default(sutrod, systemd):
    data = sutroctl("set", "db", "default", "--runtime", "--json").json()
    assert (data["weight"], data["previous"], data["runtime"]) == (None, 300, True)
    unset = 2**64 - 1
    assert systemd.calls("SetUnitProperties") == [["db.service", True, [("IOWeight", unset)]]]
    assert data["explanation"]["weight_set"] is False


def test_set_device_adds_to_what_is_there(sutrod):
    data = sutroctl("set", "db", "70", "--device", "/dev/vg0/log", "--json").json()
    fits(data, SET | {"explanation": EXPLANATION})
    assert (data["path"], data["weight"], data["previous"]) == ("/dev/vg0/log", 70, None)
    assert data["explanation"]["device_weights"] == [
        {"path": "/dev/vg0/db", "weight": 400},
        {"path": "/dev/vg0/log", "weight": 70},
    ]


def test_set_device_updates(sutrod, systemd):
    data = sutroctl("set", "db", "10000", "--device", "/dev//vg0/db", "--json").json()
    assert data["previous"] == 400
    assert systemd.calls("SetUnitProperties")[0][2] == [
        ("IODeviceWeight", [("/dev/vg0/db", 10000)])
    ]
    assert data["explanation"]["device_weights"] == [{"path": "/dev/vg0/db", "weight": 10000}]


def test_set_device_default_keeps_the_others(sutrod, systemd):
    assert sutroctl("set", "db", "70", "--device", "/dev/vg0/log").status == 0
    data = sutroctl("set", "db", "default", "--device", "/dev/vg0/db", "--json").json()
    assert (data["weight"], data["previous"]) == (None, 400)
    assert data["explanation"]["device_weights"] == [{"path": "/dev/vg0/log", "weight": 70}]
    assert systemd.calls("SetUnitProperties")[1][2] == [
        ("IODeviceWeight", []),
        ("IODeviceWeight", [("/dev/vg0/log", 70)]),
    ]


def test_set_device_default_for_the_last(sutrod):
    data = sutroctl("set", "db", "default", "--device", "/dev/vg0/db", "--json").json()
    assert data["explanation"]["device_weights"] == []
    assert {leaf["asked"] for leaf in data["explanation"]["leaves"]} == {300}


def test_set_inactive_unit(sutrod, systemd):
    data = sutroctl("set", "backup", "70", "--json").json()
    fits(data, SET | {"explanation": type(None)})
    assert data["previous"] == 50
    assert systemd.calls("SetUnitProperties") == [["backup.service", False, [("IOWeight", 70)]]]


def test_set_when_the_daemon_does_not_hear(sutrod):
    sutrod.mock.BeDeaf()
    run = sutroctl("set", "web", "250")
    assert run.status == 1
    assert "web.service: IOWeight=250" in run.out
    assert "set in systemd, but sutrod has not heard of it in 10 s" in run.err
    assert "journalctl -u sutrod" in run.err


def test_file_that_was_overwritten(sutrod):
    sutrod.mock.Overwrite()
    run = sutroctl("explain", "web", "hda")
    assert (run.status, run.err) == (0, "")
    assert "/dev/hda: the file does not have the line that is wanted" in run.out
    settled = [leaf["settled"] for leaf in sutroctl("explain", "web", "--json").json()["leaves"]]
    assert settled == [False, False, False, True]  # no weight is written for /dev/sdb
    run = sutroctl("set", "web", "250", "--device", "hda")
    assert run.status == 1 and "sutrod has not written it to the files in 10 s" in run.err


def test_set_when_the_daemon_runs_dry(sutrod):
    sutrod.mock.BeDry()
    run = sutroctl("set", "web", "250")
    assert (run.status, run.err) == (0, "")
    assert "it writes nothing" in run.out
    assert sutroctl("set", "web", "251", "--json").json()["dry_run"] is True


def test_use_json(sutrod):
    data = sutroctl("use", "/dev/sda1", "hda", "--json").json()
    fits(data, SWITCHED)
    assert sutrod.calls("UseDevices") == [[["/dev/sda1", "/dev/hda"]]]
    assert [(row["leaf"], row["scheduler"], row["changed"]) for row in data] == [
        ("/dev/sda", "sutro", True),
        ("/dev/hda", "sutro", False),
    ]


def test_release_json(sutrod):
    data = sutroctl("release", "/dev/vg0/log", "--json").json()
    fits(data, SWITCHED)
    assert sutrod.calls("ReleaseDevices") == [[["/dev/vg0/log"]]]
    assert data[0]["previous"] == "sutro"
    assert len(sutroctl("release", "--all", "--json").json()) == 1
    assert sutrod.calls("ReleaseDevices")[1] == [[]]
    assert sutroctl("release", "--all").out == "Nothing to do: no leaf was switched by Sutro.\n"


def test_use_that_fails_for_one_leaf(sutrod):
    run = sutroctl("use", "secret")
    assert run.status == 1
    assert run.err == "sutroctl: could not switch /dev/sdb\n"
    assert "its queue has no scheduler" in run.out
    assert "/dev/sda  sutro" in run.out


def test_dump_json(sutrod):
    data = sutroctl("dump", "--json").json()
    assert data == {"dump": "sutrod 0.1.0\n[leaf] /dev/hda\n"}


def keys(shape):
    if isinstance(shape, list):
        return keys(shape[0])
    if not isinstance(shape, dict):
        return set()
    return set(shape).union(*(keys(inner) for inner in shape.values()))


def test_man_page_documents_every_key():
    text = MAN.read_text().replace("\\-", "-")
    tree_only = {"children": str, "units": str}
    every = keys([STATUS | SET | EXPLAIN | tree_only | SWITCHED[0] | {"dump": str}])
    missing = [key for key in every | keys(STATUS) if f"\\fB{key}\\fR" not in text]
    assert missing == []


def test_reader_that_has_had_enough(sutrod):
    command = f"{POLICIES / 'sutroctl'} tree --json | head -1"
    env = os.environ | {"PYTHONPATH": str(POLICIES)}
    run = subprocess.run(command, shell=True, env=env, capture_output=True, text=True, timeout=60)
    assert (run.stdout, run.stderr) == ("[\n", "")
