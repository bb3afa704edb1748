# SPDX-License-Identifier: LGPL-2.1-or-later
"""Policies of cgroups that are no units, by their paths: [Match] Cgroup=, SetPolicy, the result."""

import os
import shutil

import dbus
import pytest
from clients import client_of
from fakemachine import Bus, Machine, Sutrod, Systemd
from plant import LATENCY, LOGICAL, SETPOINT, SETTLES_S, STRIPE, Plant, set_policy
from test_policies import ETC, RUN, VENDOR, X, errors, mistaken, pairs
from test_policyfiles import check

BATCH = "/delegated/batch"
JOB = f"{BATCH}/job_7"
CONTROL_NAME = "delegated-batch-job_7.cgroup.policy"
PLAIN = "/system.slice/plain"
MATCH = f"[Match]\nCgroup={BATCH}/*\n"


def in_force(sutrod: Sutrod, subject: str) -> list[str]:
    """KEY=VALUE of the settings in force."""
    return [f"{e['key']}={e['value']}" for e in sutrod.call("GetPolicy", subject) if e["in_force"]]


@pytest.mark.parametrize(
    ("patterns", "subject", "matches"),
    [
        (f"{BATCH}/*", JOB, True),
        (f"{BATCH}/job_[0-9]", JOB, True),
        (f"{BATCH}/job_?", f"{BATCH}/job_77", False),
        ("/delegated/*/job_7 /other", JOB, True),
        (JOB, JOB, True),
        # No wildcard matches a slash.
        (f"{BATCH}/*", f"{JOB}/step_0", False),
        ("/delegated/*", JOB, False),
        ("/delegated?batch/job_7", JOB, False),
        (BATCH, JOB, False),
        # Names of units and paths never match each other's patterns.
        ("/*", "db.service", False),
        (f"{JOB}\nCgroup=", JOB, False),
        (f"/x\nCgroup=\nCgroup={JOB}", JOB, True),
        # An empty Unit= clears no Cgroup=.
        (f"{JOB}\nUnit=a.service\nUnit=", JOB, True),
    ],
)
def test_match(
    machine: Machine, sutrod: Sutrod, patterns: str, subject: str, matches: bool
) -> None:
    machine.write(f"{ETC}a.policy", f"[Match]\nCgroup={patterns}\n{X}Weight=1\n")
    sutrod.start()
    assert bool(in_force(sutrod, subject)) == matches


def test_unit_pattern_matches_no_path(machine: Machine, sutrod: Sutrod) -> None:
    machine.write(f"{ETC}a.policy", f"[Match]\nUnit=*\n{X}Weight=1\n")
    sutrod.start()
    assert in_force(sutrod, JOB) == []
    assert in_force(sutrod, "a.service") == ["Weight=1"]


def test_mistakes(machine: Machine) -> None:
    good = ("/a", "/a/*", "/a b*/x", "/[ab]?/é", "/a\\x2db.service/c")
    bad = ("a/b", "a*", "/", "/a/", "/a//b", "/a/../b", "/./a", "/a/..", "/a\x01", f"/{5000 * 'a'}")
    files = []
    for n, pattern in enumerate(good + bad):
        text = pattern.replace(" ", "?")
        machine.write(f"/files/{n:02}.policy", f"[Match]\nCgroup={text}\n{X}Weight=1\n")
        files.append(machine.at(f"/files/{n:02}.policy"))
    fine, mistakes = check(*files)
    assert len(fine) == len(good)
    assert len(mistakes) == len(bad)
    for mistake in mistakes:
        assert "paths or globs of cgroups that are no units, from the root" in mistake
    wrong = "/files/policy.control/delegated-batch-job_8.cgroup.policy"
    machine.write(wrong, f"[Match]\nCgroup={JOB}\n")
    assert "the unit or cgroup that the file is named after" in check(machine.at(wrong))[1][0]


def test_set(machine: Machine, sutrod: Sutrod) -> None:
    """Control files are named after the path; a reset removes them; a restart keeps them."""
    sutrod.start()
    for folder, lifetime in (("etc", "persistent"), ("run", "runtime")):
        set_policy(sutrod, JOB, lifetime, ReadIOPSMin=f"/a {len(folder)}")
        file = machine.at(f"/{folder}/sutro/policy.control/{CONTROL_NAME}")
        assert f"[Match]\nCgroup={JOB}\n\n{X}ReadIOPSMin=/a 3\n" in file.read_text()
    odd = "/a-b/.c.d\\x2d@e+f,g=h~i.scope"
    set_policy(sutrod, odd, Weight="7")
    name = r"a\x2db-.c.d\x5cx2d\x40e\x2bf\x2cg\x3dh\x7ei.scope.cgroup.policy"
    assert machine.at(f"/run/sutro/policy.control/{name}").exists()
    # The cgroup /d/a.service and the unit a.service have files of their own.
    set_policy(sutrod, "/d/a.service", Weight="1")
    set_policy(sutrod, "a.service", Weight="2")
    sutrod.stop()
    sutrod.start()
    assert in_force(sutrod, JOB) == ["ReadIOPSMin=/a 3"]
    assert in_force(sutrod, odd) == ["Weight=7"]
    assert in_force(sutrod, "/d/a.service") == ["Weight=1"]
    assert in_force(sutrod, "a.service") == ["Weight=2"]
    assert sutrod.property("PolicyErrors") == []
    for subject in (odd, "/d/a.service", "a.service"):
        sutrod.call("ResetPolicy", subject, "runtime")
    for lifetime in ("persistent", "runtime", "runtime"):
        sutrod.call("ResetPolicy", JOB, lifetime)
    assert in_force(sutrod, JOB) == []
    assert not list(machine.at("/run/sutro/policy.control").iterdir())
    assert not list(machine.at("/etc/sutro/policy.control").iterdir())


def test_names(sutrod: Sutrod, systemd: Systemd) -> None:
    """No glob, no blank, nothing that a line of a file cannot hold, no name too long for a file."""
    cgroup = systemd.start("db.service")
    sutrod.start()
    assignments = pairs(("Weight", "7"))
    no_paths = ("/", "/a/", "//a", "/a//b", "/a/../b", "/..", "/a/.", "/a*", "/a?", "/a[b]", "/a b")
    for name in (*no_paths, "/a\n", '/a"', "/a'", "/ä", "/a\\", "/#\x01", "a/b", f"/{4096 * 'a'}"):
        assert sutrod.error("SetPolicy", name, assignments, "runtime")[0] == "BadPolicy", name
        assert sutrod.error("ResetPolicy", name, "runtime")[0] == "BadPolicy", name
        assert sutrod.error("GetPolicy", name)[0] == "BadPolicy", name
    set_policy(sutrod, "/" + 241 * "a", Weight="7")
    text = sutrod.error("SetPolicy", "/" + 242 * "a", assignments, "runtime")[1]
    assert "at most 241 bytes as systemd-escape --path prints it" in text
    # A unit has the policies of its name.
    name, text = sutrod.error("SetPolicy", cgroup, assignments, "runtime")
    assert name == "BadPolicy"
    assert (
        text == "/system.slice/db.service is the cgroup of db.service: set the policy of that unit."
    )
    sutrod.call("ResetPolicy", cgroup, "runtime")


def test_paths_of_units_that_do_not_run(machine: Machine, sutrod: Sutrod) -> None:
    """A policy of such a path would end with the start of the unit. A cgroup by hand has one."""
    machine.cgroup("/system.slice/hand.scope")
    machine.cgroup("/hand.slice")
    sutrod.start()
    units = {"/later.slice": "later.slice", "/later.slice/a-b.slice/_io.service": "io.service"}
    for path, unit in {**units, "/system.slice/later.service": "later.service"}.items():
        name, text = sutrod.error("SetPolicy", path, pairs(("Weight", "7")), "runtime")
        assert name == "BadPolicy"
        assert text == f"{path} is the cgroup of {unit}: set the policy of that unit."
        sutrod.call("ResetPolicy", path, "runtime")
    others = ("hand.scope", "plain", "a.service/b.service", "later.timer", "docker-1")
    for path in (*(f"/system.slice/{name}" for name in others), "/hand.slice/a.service"):
        set_policy(sutrod, path, Weight="7")
        assert in_force(sutrod, path) == ["Weight=7"]


def test_root_slice_has_no_settings(systemd: Systemd, sutrod: Sutrod) -> None:
    systemd.unit("-.slice", "/")
    sutrod.start()
    name, text = sutrod.error("SetPolicy", "-.slice", pairs(("Weight", "7")), "runtime")
    assert name == "BadPolicy"
    assert text == (
        "-.slice is the root of the hierarchy, which has no settings: set the policy of a slice "
        "below it, such as system.slice."
    )
    assert in_force(sutrod, "-.slice") == []
    sutrod.call("ResetPolicy", "-.slice", "runtime")


def test_files_of_the_root_slice(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    """It has no settings, which is reported. Drop-ins of all slices are no mistake."""
    own, every = (f"/etc/systemd/system/{name}.d/50-io.conf" for name in ("-.slice", "slice"))
    systemd.unit("-.slice", "/", dropins=[own, every])
    systemd.start("a.slice", dropins=[every], slice="/")
    machine.write(own, f"[Slice]\nIOWeight=1\n{X}Weight=300\n")
    machine.write(every, f"{X}Weight=7\n")
    sutrod.start()
    mistake = (
        f'{own}:4: "[X-Sutro] Weight=300": in a file of a slice below the root, which has no '
        "settings, such as system.slice"
    )
    assert errors(machine, sutrod) == [mistake]
    assert mistaken(machine, sutrod) == [(own, False)]
    assert [e["value"] for e in sutrod.call("GetPolicy", "a.slice")] == ["7"]
    assert sutrod.call("GetPolicy", "-.slice") == []
    # A reload of systemd removes all units. Its begin was signalled before the daemon was there.
    path = dbus.ObjectPath(systemd.object_path("-.slice"))
    systemd.emit("UnitRemoved", "so", "-.slice", path)
    sutrod.settle()
    assert errors(machine, sutrod) == [mistake]
    # The mistake ends with the assignment.
    machine.write(own, "[Slice]\nIOWeight=1\n")
    sutrod.call("ReloadPolicies")
    sutrod.settle()
    assert errors(machine, sutrod) == []


def test_authority(bus: Bus, machine: Machine, sutrod: Sutrod) -> None:
    """Nothing is changed without an authorization, and the bus policy refuses other users."""
    sutrod.start()
    bus.allow(False)
    assignments = pairs(("Weight", "7"))
    assert "AccessDenied" in sutrod.error("SetPolicy", JOB, assignments, "runtime")[0]
    assert in_force(sutrod, JOB) == []
    bus.allow(True)
    set_policy(sutrod, JOB, Weight="7")
    assert in_force(sutrod, JOB) == ["Weight=7"]


def test_settings_follow_the_cgroup(machine: Machine, sutrod: Sutrod) -> None:
    """They hold as soon as it is made, each time; Weight= is above what its owner wrote."""
    machine.write(f"{VENDOR}a.policy", f"{MATCH}{X}Weight=300\nWeight=/dev/sdb 20\nClass=idle\n")
    machine.cgroup(f"{BATCH}/there", 30)
    sutrod.start()
    assert machine.weights(f"{BATCH}/there") == ["8:16 20", "default 300"]
    for _ in range(2):
        machine.cgroup(JOB, 50)
        machine.cgroup(f"{JOB}/step_0", 60)
        sutrod.until(lambda: machine.weights(JOB) == ["8:16 20", "default 300"])
        assert machine.weights(JOB, "io.sutro.class") == ["default idle"]
        assert machine.weights(f"{JOB}/step_0") == ["default 60"]
        assert machine.weights(JOB, "io.weight") == ["default 50"]
        e = sutrod.call("Explain", JOB, "/dev/sda")
        assert (e["unit"], e["cgroup"], e["weight"]) == ("", JOB, 300)
        source = f"{machine.root}{VENDOR}a.policy:4"
        assert e["leaves"][0]["reason"] == f"Weight=300 of {JOB}, {source}"
        shutil.rmtree(machine.at(f"/sys/fs/cgroup{JOB}"))
        sutrod.settle()
    # The owner's weight comes back with the end of the policy.
    machine.cgroup(JOB, 50)
    machine.at(f"{VENDOR}a.policy").unlink()
    sutrod.call("ReloadPolicies")
    sutrod.until(lambda: machine.weights(JOB) == ["default 50"])
    assert machine.weights(JOB, "io.sutro.class") == ["default be"]


def test_floor_holds(machine: Machine, systemd: Systemd, sutrod: Sutrod, plant: Plant) -> None:
    """A floor, a limit and a latency target of a cgroup beside units that is none."""
    machine.cgroup(PLAIN)
    plant.add("job", PLAIN)
    for n in range(4):
        plant.add(f"big{n}", systemd.start(f"big{n}.service", 1000))
    sutrod.start()
    assert plant.mbps("job", 1) < 10
    set_policy(sutrod, PLAIN, ReadBandwidthMin=f"{STRIPE} 60M")

    def promises() -> list[dict]:
        return [dict(p) for p in sutrod.call("ListPromises") if p["cgroup"] == PLAIN]

    sutrod.until(lambda: [p["state"] for p in promises()] == ["held"], SETTLES_S)
    sutrod.elapse(1)
    assert plant.mbps("job", 1) == pytest.approx(SETPOINT * 60, rel=0.01)
    (floor,) = promises()
    assert (floor["unit"], floor["device"]) == ("", "/dev/dm-0")
    assert "/system.slice-plain.cgroup.policy:" in floor["source"]
    assert len(sutrod.call("History", PLAIN, "ReadBandwidthMin", STRIPE)) > 0
    # A comparison of everything changes nothing.
    sutrod.elapse(61)
    assert plant.mbps("job", 1) == pytest.approx(SETPOINT * 60, rel=0.01)
    set_policy(sutrod, PLAIN, WriteBandwidthMax="/dev/sda 5M", LatencyTarget="/dev/sdb 5ms")
    sutrod.until(lambda: machine.at(f"/sys/fs/cgroup{PLAIN}/io.max").read_text() != "")
    assert "8:0" in machine.at(f"/sys/fs/cgroup{PLAIN}/io.max").read_text()
    sutrod.until(lambda: "8:16 5000" in machine.weights(PLAIN, LATENCY))
    sutrod.call("ResetPolicy", PLAIN, "runtime")
    sutrod.until(lambda: machine.weights(PLAIN) == ["default 100"])
    sutrod.until(lambda: "8:16 5000" not in machine.weights(PLAIN, LATENCY))
    assert promises() == []


def test_client(machine: Machine, sutrod: Sutrod) -> None:
    """The settings of a program end with its connection."""
    machine.cgroup(JOB)
    sutrod.start()
    client = client_of(sutrod.bus, JOB, Weight="9")
    sutrod.until(lambda: machine.weights(JOB) == ["default 9"])
    client.close()
    sutrod.until(lambda: machine.weights(JOB) == ["default 100"])


def test_names_of_any_bytes(machine: Machine, sutrod: Sutrod, plant: Plant) -> None:
    """A tenant names its cgroups as it likes; replies stay fit to be sent."""
    machine.write(f"{RUN}a.policy", f"{MATCH}{X}ReadBandwidthMin={STRIPE} 60M\n")
    cgroup = f"{BATCH}/" + os.fsdecode(b"\xff\x1b[2J")
    machine.cgroup(cgroup)
    plant.add("job", cgroup).shallow = True
    sutrod.start()
    (promise,) = sutrod.call("ListPromises")
    assert promise["cgroup"] == f"{BATCH}/??[2J"
    (state,) = sutrod.call("ListPromiseStates")
    assert state[1] == f"{BATCH}/??[2J"
    _, devices = sutrod.call("CheckPolicies", dbus.Array([], signature="(ss)"))
    assert [f["unit"] for d in devices for f in d["floors"]] == [f"{BATCH}/??[2J"]
    # A cause, too, names the cgroup whose limit throttles it.
    limit = f"{LOGICAL} rbps=1 wbps=max riops=max wiops=max\n"
    machine.write(f"/sys/fs/cgroup{cgroup}/io.max", limit)
    sutrod.until(lambda: sutrod.call("ListPromises")[0]["cause"], 4 * SETTLES_S)
    (promise,) = sutrod.call("ListPromises")
    assert promise["cause"].startswith(f"io.max of {BATCH}/??[2J has rbps=1 for /dev/dm-0")


def test_unit_has_no_policy_of_its_path(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    machine.write(f"{ETC}a.policy", f"[Match]\nCgroup=/system.slice/*\n{X}Weight=300\n")
    sutrod.start()
    db = systemd.start("db.service", 50)
    machine.cgroup(PLAIN)
    sutrod.until(lambda: machine.weights(PLAIN) == ["default 300"])
    sutrod.until(lambda: machine.weights(db) == ["default 50"])


def test_lines_of_iocost(machine: Machine, sutrod: Sutrod) -> None:
    """The daemon's line in io.weight is no setting of the owner, whose own value is restored."""
    machine.disk("sde", "8:64", "mq-deadline")
    machine.write("/sys/fs/cgroup/io.cost.qos", "8:64 enable=1 ctrl=auto\n")
    machine.cgroup(JOB)
    machine.write(f"/sys/fs/cgroup{JOB}/io.weight", "default 100\n8:64 70\n")
    sutrod.start()
    set_policy(sutrod, JOB, Weight="/dev/sde 500")
    sutrod.until(lambda: "8:64 500" in machine.weights(JOB, "io.weight"))
    sutrod.elapse(61)
    e = sutrod.call("Explain", JOB, "/dev/sde")
    assert [list(w) for w in e["device_weights"]] == [["/dev/sde", 500]]
    sutrod.call("ResetPolicy", JOB, "runtime")
    sutrod.until(lambda: machine.weights(JOB, "io.weight") == ["8:64 70", "default 100"])
