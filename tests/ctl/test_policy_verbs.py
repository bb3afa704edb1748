# SPDX-License-Identifier: LGPL-2.1-or-later
"""`sutroctl policy`: settings at run time, files with mistakes, and checks of files."""

import argparse
import asyncio
import json
import os
import re
from pathlib import Path

import pytest
from conftest import NOWHERE, SUTROD, process, sutroctl
from shapes import EXPLAIN, EXPLANATION, POLICY, POLICY_CHECK, POLICY_SET, SET, fits
from sutro import policy

# The cgroup of log.service, whose files the machine does not have.
LOG = "/sys/fs/cgroup/job.slice/log.service"


def test_policy_json(promised, called):
    data = sutroctl("policy", "show", "--json").json()
    fits(data, POLICY)
    units = [unit["unit"].removesuffix(".service") for unit in data["units"]]
    assert units == ["db", "idle", "job", "web"]
    data = sutroctl("policy", "set", "web", "Class=rt", "--json").json()
    fits(data, POLICY_SET)
    assert called("SetPolicy") == [["web.service", [["Class", "rt"]], "persistent"]]
    assert data["policy"][-1]["source"] == "/etc/sutro/policy.control/web.service.policy:6"


@pytest.mark.parametrize(("option", "folder"), [([], "/etc"), (["--runtime"], "/run")])
def test_policy_reset(promised, called, option, folder):
    """Only what was set in this way is taken back, by the daemon and not by files."""
    for how in ([], ["--runtime"]):
        assignments = ["Weight=5", "Class=rt", "ReadBandwidthMin=/srv 5M"]
        assert sutroctl("policy", "set", "web", *assignments, *how).status == 0
    first = sutroctl("policy", "reset", "web", "Class", *option, "--json").json()
    fits(first, POLICY_SET)
    assert first["said"] == [{"key": "Class", "value": ""}]
    data = sutroctl("policy", "reset", "web", *option, "--json").json()
    assert [pair["key"] for pair in data["said"]] == ["Weight", "ReadBandwidthMin"]
    lifetime = "runtime" if option else "persistent"
    assert called("ResetPolicy") == [["web.service", lifetime]]
    other = {"/etc": "/run", "/run": "/etc"}[folder]
    sources = {entry["source"].split(".control")[0] for entry in data["policy"]}
    files = {f"/etc/sutro/policy.d/web.policy:{line}" for line in (4, 5)}
    assert sources == files | {other + "/sutro/policy"}
    data = sutroctl("policy", "reset", "web", *option, "--json").json()
    assert data["said"] == [] and data["note"].startswith("nothing to take back")
    assert ("with --runtime" in data["note"]) == (folder == "/etc")


def test_class_on_other_leaves(machine, sutrod):
    """Leaves without the scheduler sutro have no classes: explain names them, set if all are so."""
    data = sutroctl("policy", "set", "web", "Class=idle", "--json").json()
    assert data["note"] == ""
    assert sutroctl("explain", "web", "--json").json()["class"] == "idle"
    text = " ".join(sutroctl("explain", "web").out.split())
    assert "Class=idle of web.service has no effect on /dev/sda /dev/sdb, because only" in text
    assert "has no effect" not in sutroctl("explain", "web", "/dev/hda").out
    for disk in ("hda", "hdb"):
        machine.set_scheduler(disk, "none")
    sutrod.until(lambda: sutroctl("tree", "hda", "--json").json()[0]["scheduler"] == "none")
    data = sutroctl("policy", "set", "web", "Class=rt", "--json").json()
    assert data["note"].startswith("Class= has no effect until a leaf uses sutro")
    sutroctl("policy", "reset", "web")
    assert "Class=" not in sutroctl("explain", "web").out


def test_settings_without_io_controller(machine, sutrod):
    """They have no effect: set has a note with the remedy, and explain names each setting."""
    machine.write(f"{LOG}/cgroup.controllers", "memory pids\n")
    remedy = "systemctl set-property log.service IOAccounting=yes"
    for setting in (
        "Weight=5",
        "Class=idle",
        "ReadBandwidthMax=/srv 1M",
        "ReadBandwidthMin=/srv 1M",
    ):
        data = sutroctl("policy", "set", "--runtime", "log", setting, "--json").json()
        assert data["note"] == (
            "the settings have no effect, because the io controller is not enabled for "
            f"log.service; to change this: {remedy}"
        ), setting
    sutrod.elapse(3)
    text = " ".join(sutroctl("explain", "log", "/dev/hda").out.split())
    because = f"the io controller is not enabled for log.service; to change this: {remedy}"
    assert f"The weight of log.service has no effect: {because}" in text
    assert f"Class=idle of log.service has no effect: {because}" in text
    assert "has no weight of its own" not in text
    assert "ReadBandwidthMax=/srv 1M unobserved" in " ".join(sutroctl("explain", "log").out.split())
    machine.write(f"{LOG}/cgroup.controllers", "io memory pids\n")
    assert sutroctl("policy", "set", "log", "Weight=5", "--json").json()["note"] == ""


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Weight=5", "Weight=6"),
        ("Weight=5", "Weight="),
        ("Weight=5", "Weight=5"),
        ("LatencyTarget=any 5ms", "LatencyTarget=any 6ms"),
        ("ReadBandwidthMin=/srv 5M", "ReadBandwidthMin=/srv 30%"),
        ("ReadBandwidthMin=/srv 5M", "ReadBandwidthMin='/srv' 6M"),
    ],
)
def test_assignment_that_another_one_replaces(first, second):
    """Both were printed as kept, and one of them was in force."""
    run = sutroctl("policy", "set", "web", first, "Importance=7", second, **NOWHERE)
    assert (run.status, run.out) == (2, "")
    assert f"{first} and {second}: only the later one would hold" in run.err


def test_key_for_several_paths(machine, sutrod):
    """Each has its own setting, and an empty value before them takes back the earlier ones."""
    assert sutroctl("policy", "set", "web", "Weight=3", "Weight=/srv 4").status == 0
    limits = ["Weight=", "Weight=5", "Weight=/srv 6", "LatencyTarget=any 5ms"]
    found = sutroctl("policy", "set", "web", *limits, "LatencyTarget=/srv 6ms", "--json").json()
    there = [f"{entry['key']}={entry['value']}" for entry in found["policy"] if entry["in_force"]]
    assert sorted(there) == sorted([*limits[1:], "LatencyTarget=/srv 6ms"])


def test_limit_on_a_partition(machine, sutrod):
    """It is that of the whole disk: set has a note, and explain the cause."""
    machine.mount("/boot", "8:1", "ext4", "/dev/sda1")
    limits = ["WriteBandwidthMax=/boot 1M", "ReadBandwidthMax=/srv 5M", "ReadIOPSMin=/boot 1"]
    note = (
        "the limit for /boot applies to all of /dev/sda, because /dev/sda1 is a partition; of "
        "several the lowest holds"
    )
    assert sutroctl("policy", "set", "web", *limits, "--json").json()["note"] == note
    for other in (limits[2], "ReadIOPSMax=/boot infinity", "ReadIOPSMax=", "ReadIOPSMax=any 5"):
        assert sutroctl("policy", "set", "web", other, "--json").json()["note"] == ""
    text = " ".join(sutroctl("explain", "web").out.split())
    assert "because /dev/sda1 is a partition, so the limit applies to all of /dev/sda" in text


def test_weight_on_a_partition(machine, sutrod):
    """It is that of the whole disk: a note reports that, of a policy and of systemd."""
    machine.mount("/boot", "8:1", "ext4", "/dev/sda1")
    note = "the weight for {} applies to all of /dev/sda, because /dev/sda1 is a partition"
    run = sutroctl("set", "web", "300", "--device", "/dev/sda1", "--json")
    assert run.json()["note"] == note.format("/dev/sda1")
    web = next(machine.at("/sys/fs/cgroup").rglob("web.service"))
    file = str(web.relative_to(machine.at("/sys/fs/cgroup")))
    assert "8:0 300" in machine.weights("/" + file, "io.bfq.weight")
    weights = ["Weight=/boot 400", "Weight=/srv 5", "Weight=7"]
    found = sutroctl("policy", "set", "web", *weights, "--json").json()
    assert found["note"] == note.format("/boot")
    both = sutroctl("set", "web", "300", "--device", "/boot", "--json").json()["note"]
    assert both.startswith("a policy has Weight=/boot 400, which is stronger: ")
    assert both.endswith("; " + note.format("/boot"))
    for words in (["/dev/sda", "300"], ["/dev/sda1", "default"], ["/dev/vg0/db", "3"]):
        run = sutroctl("set", "web", words[1], "--device", words[0], "--json")
        assert run.json()["note"] == ""
    assert sutroctl("policy", "set", "web", "Weight=", "--json").json()["note"] == ""


def test_policy_files_with_mistakes(machine, sutrod):
    """A file with a mistake is not in force; to reset removes a control file that has one."""
    file = "/etc/sutro/policy.d/web.policy"
    mistake = "[Match]\nUnit=web.service\n[X-Sutro]\nWeight=many\n"
    machine.write(file, mistake)
    run = sutroctl("policy", "reload")
    assert run.status == 1 and "a mistake\n" in run.err
    assert f"{file}: nothing of it is in force, as it has no earlier version" in run.out
    machine.write(file, mistake.replace("many", "7"))
    assert sutroctl("policy", "reload").status == 0
    machine.write(file, mistake)
    run = sutroctl("policy", "reload")
    assert f"{file}: its last good version stays in force" in run.out
    data = sutroctl("policy", "show", "--json").json()
    assert data["mistaken_files"] == [{"file": file, "last_good": True}]
    assert "web.policy:4" in run.out.replace("\n", " ")
    (other,) = sutroctl("status", "--json").json()["policy_errors"]
    assert other.startswith('/etc/sutro/policy.d/web.policy:4: "[X-Sutro] Weight=many"')
    assert "mistake /etc/sutro/policy.d/web.policy:4" in sutroctl("status").out
    machine.write("/run/sutro/policy.control/web.service.policy", mistake)
    run = sutroctl("policy", "reload")
    assert "2 mistakes in 2 files\n" in run.err
    data = sutroctl("policy", "reset", "web", "--json").json()
    assert data["note"].startswith("nothing to take back")
    data = sutroctl("policy", "reset", "web", "--runtime", "--json").json()
    fits(data, POLICY_SET)
    note = "gone with its file: /run/sutro/policy.control/web.service.policy:4: "
    assert data["said"] == [] and data["note"].startswith(note)
    assert sutroctl("policy", "show", "--json").json()["policy_errors"] == [other]


def test_policy_of_a_unit_that_does_not_run(machine, systemd, sutrod):
    """The daemon reads its own files when it starts; until then a note has that."""
    file = "/etc/systemd/system/night.service"
    machine.write(file, "[X-Sutro]\nWeight=7\n")
    systemd.unit("night.service", "", active=False, fragment=file)
    assert "of units that run" in sutroctl("policy", "reload").out
    note = "night.service is not active: its section [X-Sutro] is read when it starts"
    assert sutroctl("policy", "show", "night").out == note + "\n"
    sutroctl("policy", "set", "night", "Class=idle", "--runtime")
    data = sutroctl("policy", "show", "night", "--json").json()
    fits(data, POLICY)
    assert data["note"] == note
    systemd.control.RemoveObject(systemd.object_path("night.service"))
    systemd.start("night.service", fragment=file)
    sutrod.until(lambda: "Weight" in sutroctl("policy", "show", "night").out)
    assert sutroctl("policy", "show", "night", "--json").json()["note"] == ""


@pytest.mark.parametrize(
    ("weight", "args", "unit"),
    [
        ("7", ["web", "300"], "web"),
        ("7", ["web", "default"], "web"),
        ("/srv 9", ["web", "300", "--device", "/srv"], "web"),
        ("/dev/vg0/db 9", ["db", "default", "--device", "/dev/vg0/db"], "db"),
        ("7", ["backup", "70"], "backup"),
    ],
)
def test_weight_in_systemd_beside_one_of_a_policy(sutrod, called, weight, args, unit):
    """It is set there, and the stronger one is reported with its source."""
    sutrod.call("SetPolicy", f"{unit}.service", [("Weight", weight)], "runtime")
    source = f"/run/sutro/policy.control/{unit}.service.policy:6"
    run = sutroctl("set", *args)
    assert (run.status, run.err) == (0, "") and len(called("SetUnitProperties")) == 1
    note = f"a policy has Weight={weight}, which is stronger: {source}"
    assert note in " ".join(run.out.split())
    data = sutroctl("set", unit, "71", "--json").json()
    fits(data, SET | {"explanation": EXPLANATION if data["explanation"] else type(None)})
    assert data["note"] == ("" if weight.startswith("/") else note)


def test_weight_of_a_policy_is_explained_with_its_source(sutrod):
    for unit, weight in (("db.service", "7"), ("db.service", "/srv 9"), ("system.slice", "11")):
        sutrod.call("SetPolicy", unit, [("Weight", weight)], "runtime")
    sutrod.settle()
    control = "/run/sutro/policy.control"
    assert sutroctl("explain", "db").out.splitlines()[1:5] == [
        f"  Weight=7, {control}/db.service.policy:6",
        "  IODeviceWeight=/dev/vg0/db 400",
        f"  Weight=/srv 9, {control}/db.service.policy:7",
        f"  in system.slice: Weight=11, {control}/system.slice.policy:6",
    ]
    data = sutroctl("explain", "db", "--json").json()
    fits(data, EXPLAIN)
    assert [weight["weight"] for weight in data["policy_weights"]] == [7, 9]


def test_policy_of_a_cgroup(machine, sutrod, called):
    """A cgroup that is no unit has policies by its path, whether it is there or not."""
    assignments = ["Weight=7", "ReadBandwidthMin=/srv 5M"]
    data = sutroctl("policy", "set", "--runtime", "/payload", *assignments, "--json").json()
    fits(data, POLICY_SET)
    assert (data["unit"], data["note"]) == ("/payload", "")
    assert called("SetPolicy")[0][0] == "/payload"
    status = sutroctl("status").out
    assert re.search(r"/payload +read min +/srv", status)
    assert re.search(r"/payload +7\b", status)
    assert re.search(r"/payload +7\b", sutroctl("tree").out)
    assert "ReadBandwidthMin=/srv 5M" in sutroctl("explain", "/payload").out
    (unit,) = sutroctl("policy", "show", "--json").json()["units"]
    source = "/run/sutro/policy.control/payload.cgroup.policy:"
    assert unit["unit"] == "/payload"
    assert all(entry["source"].startswith(source) for entry in unit["policy"])
    machine.write(source.rstrip(":"), "[Match]\nCgroup=/payload\n[X-Sutro]\nWeight=many\n")
    assert sutroctl("policy", "reload").status == 1
    data = sutroctl("policy", "reset", "/payload", "--runtime", "--json").json()
    assert data["note"].startswith(f"gone with its file: {source}4: ")
    assert sutroctl("policy", "show", "--json").json()["units"] == []
    data = sutroctl("policy", "set", "/not-there/x", "Weight=7", "--json").json()
    note = "there is no cgroup '/not-there/x'; the setting takes effect when there is one"
    assert data["note"] == note
    assert sutroctl("policy", "reset", "/not-there/x", "--json").json()["note"] == ""
    assert sutroctl("policy", "show", "/nothing").status == 0
    assert sutroctl("policy", "set", "/a*", "Weight=7").status == 1
    assert sutroctl("set", "/payload", "7").status == 1


def test_policy_that_is_removed_awaits_no_unit(sutrod):
    assert "takes effect when" in sutroctl("policy", "set", "gone", "Weight=7").out
    run = sutroctl("policy", "reset", "gone", "Weight")
    assert (run.status, run.out) == (0, "gone.service: Weight is removed\n")


def test_policy_set_of_a_scope(sutrod):
    """The daemon keeps none for the next scope of this name; the hint has the options for it."""
    run = sutroctl("policy", "set", "session-3.scope", "Weight=7")
    assert (run.status, run.out) == (1, "")
    assert "cannot be persistent" in run.err and run.err.endswith("add --runtime, or --client\n")
    assert sutroctl("policy", "set", "session-3.scope", "Weight=7", "--runtime").status == 0
    run = sutroctl("policy", "set", "session-3.scope", "Weight=0", "--runtime")
    assert run.status == 1 and "--runtime" not in run.err


@pytest.mark.parametrize(
    ("floor", "limit", "is_above"),
    [
        ("/srv 50M", "/srv 40M", True),
        ("any 1.5G", "any 1G", True),
        ("/srv 40M", "/srv 40M", False),
        ("/srv 50M", "/dev/vg0/log 40M", False),
        ("/srv 50M", "/srv infinity", False),
        ("/srv 50%", "/srv 1M", False),
    ],
)
def test_floor_above_the_limit_of_the_unit(sutrod, floor, limit, is_above):
    """The daemon takes both, as they may be in different files; the note names both."""
    assert sutroctl("policy", "set", "web", f"ReadBandwidthMax={limit}").status == 0
    keys = [f"ReadBandwidthMin={floor}", "WriteBandwidthMin=/srv 1G"]
    data = sutroctl("policy", "set", "web", *keys, "--json").json()
    note = f"ReadBandwidthMin={floor} cannot hold: ReadBandwidthMax={limit} is less; change one"
    assert data["note"] == (note if is_above else "")


@pytest.mark.parametrize(
    ("assignment", "is_reported"),
    [
        ("WriteBandwidthMax=/srv 200", True),
        ("ReadBandwidthMin=any 4.095K", True),
        ("ReadBandwidthMin=/srv 4096", False),
        ("ReadBandwidthMin=/srv 1%", False),
        ("WriteIOPSMax=/srv 200", False),
    ],
)
def test_rate_without_a_suffix(sutrod, assignment, is_reported):
    """A limit of 200 bytes per second in the place of 200M would stop the unit."""
    data = sutroctl("policy", "set", "web", assignment, "--json").json()
    note = f"{assignment} is less than a page of 4096 bytes per second; "
    note += "rates have the suffixes K, M, G and T, such as 200M"
    assert data["note"] == (note if is_reported else "")


@pytest.mark.parametrize("how", [[], ["--runtime"], ["--client"]])
@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/mnt/backup", "it does not exist"),
        ("/proc", "it lies on proc, which has no block device"),
    ],
)
def test_policy_set_out_of_reach(sutrod, called, how, path, reason):
    """A path that leads to no block device is refused before anything is changed."""
    floors = ["ReadBandwidthMin=/srv 5M", f"WriteBandwidthMin='{path}' 5M"]
    run = sutroctl("policy", "set", "web", "Weight=5", *floors, *how)
    assert (run.status, run.out) == (1, "")
    assert f"web.service: '{path}' is out of reach of sutrod: {reason}" in run.err
    assert "sutroctl tree" in run.err and "sutroctl policy edit web.service" in run.err
    assert called("SetPolicy") == []
    assert sutroctl("policy", "show", "web", "--json").json()["units"][0]["policy"] == []


def test_policy_set_on_another_machine(monkeypatch):
    """Its paths are not those of this machine."""
    args = argparse.Namespace(
        host="db1", client=False, runtime=True, unit="/a", assignment=["ReadBandwidthMin=/x 5M"]
    )
    sent = []

    class Remote:
        async def set_policy(self, *words):
            sent.append(words)

        async def policy(self, _unit):
            return []

        async def capacities(self):
            return []

    asyncio.run(policy.set_(Remote(), args))
    assert sent == [("/a", [("ReadBandwidthMin", "/x 5M")], "runtime")]


CHECK = """#!/bin/sh
printf '%s\\n' "$*" >"$0.called"
echo 'a.policy:3: "x": allowed is y' >&2
exit 1
"""


def test_policy_check(tmp_path):
    """The daemon's own parser runs, and its output is shown; no bus is needed."""
    sutrod = tmp_path / "sutrod"
    sutrod.write_text(CHECK)
    sutrod.chmod(0o755)
    more = {"PATH": f"{tmp_path}:/usr/bin:/bin", "DBUS_SYSTEM_BUS_ADDRESS": "unix:path=/nowhere"}
    run = process("sutroctl", "policy", "check", "a.policy", "b.policy", **more)
    assert (run.status, run.out, run.err) == (1, "", 'a.policy:3: "x": allowed is y\n')
    assert Path(f"{sutrod}.called").read_text() == "--check a.policy b.policy\n"
    run = process("sutroctl", "--json", "policy", "check", "a.policy", **more)
    assert run.status == 1
    data = json.loads(run.out)
    fits(data, POLICY_CHECK)
    assert data["mistakes"] == ['a.policy:3: "x": allowed is y'] and data["notes"] == []
    sutrod.write_text(CHECK.replace("exit 1", ""))
    data = process("sutroctl", "--json", "policy", "check", "a.policy", **more)
    data = json.loads(data.out)
    fits(data, POLICY_CHECK)
    assert data["mistakes"] == [] and data["notes"] == ['a.policy:3: "x": allowed is y']


def test_policy_check_of_several_files(tmp_path, monkeypatch):
    """A file without a mistake, and a note about one, are no mistakes."""
    monkeypatch.chdir(tmp_path)
    floor, match = "ReadBandwidthMin=/x 5M\n", "[Match]\nUnit=a.service\n[X-Sutro]\n"
    for name, text in {
        "fine": floor,
        "wrong": "Class=fast\n",
        "noted": f"{floor}ReadBandwidthMax=/x 1M\n",
    }.items():
        Path(f"{name}.policy").write_text(match + text)
    names = [f"{name}.policy" for name in ("fine", "wrong", "noted")]
    path = f"{Path(SUTROD).parent}:{os.environ['PATH']}"
    run = sutroctl("--json", "policy", "check", *names, PATH=path)
    data = json.loads(run.out)
    assert run.status == 1 and data["files"] == names
    assert data["mistakes"] == ['wrong.policy:4: "[X-Sutro] Class=fast": rt, be or idle']
    (note,) = data["notes"]
    assert note.startswith("noted.policy:4: ReadBandwidthMin=/x 5M cannot hold")


def test_policy_check_without_sutrod(tmp_path):
    run = process("sutroctl", "policy", "check", "a.policy", PATH=str(tmp_path))
    if Path("/usr/sbin/sutrod").exists():
        assert run.status == 1 and "a.policy" in run.out + run.err
    else:
        assert (run.status, run.out) == (1, "")
        assert run.err.startswith("sutroctl: there is no sutrod in PATH or /usr/sbin\n")
