# SPDX-License-Identifier: LGPL-2.1-or-later
"""Limits and classes in the whole daemon: io.max and io.sutro.class, and their restoration."""

import pytest
from fakemachine import Machine, Sutrod, Systemd
from plant import LEAVES, LOGICAL, MB, SETTLES_S, STRIPE, promise, set_policy, state


def test_ceiling_target_and_weight_on_any_volume(
    machine: Machine, systemd: Systemd, sutrod: Sutrod
) -> None:
    a = systemd.start("a.service")
    most = "rbps=5000000 wbps=max riops=max wiops=max"
    lines = {devno: f"{devno} {most}" for devno in (LOGICAL, "8:32")}
    stat = f"{LOGICAL} rbytes=1 wbytes=0\n8:0 rbytes=1 wbytes=0\n8:48 rbytes=0 wbytes=0\n"
    machine.write(f"/sys/fs/cgroup{a}/io.stat", stat)
    sutrod.start()
    set_policy(
        sutrod, "a.service", ReadBandwidthMax="any 5M", LatencyTarget="any 5ms", Weight="any 700"
    )
    sutrod.until(lambda: machine.weights(a, "io.max") == [lines[LOGICAL]])
    sutrod.until(lambda: machine.weights(a) == ["default 700"])
    machine.write(f"/sys/fs/cgroup{a}/io.stat", stat + "8:32 rbytes=0 wbytes=7\n")
    sutrod.until(lambda: machine.weights(a, "io.max") == list(lines.values()))
    found = [(p["key"], p["device"]) for p in sutrod.call("ListPromises")]
    keys, devices = ("ReadBandwidthMax", "LatencyTarget"), ("/dev/dm-0", "/dev/sdc")
    assert found == [(key, device) for key in keys for device in devices]
    set_policy(sutrod, "a.service", ReadBandwidthMax=f"{STRIPE} infinity")
    sutrod.until(lambda: machine.weights(a, "io.max") == [lines["8:32"]])
    assignments = [e["value"] for e in sutrod.call("GetPolicy", "a.service")]
    assert assignments == ["any 5M", "any 5ms", "700", f"{STRIPE} infinity"]


def test_weight_and_class_of_a_policy(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    a = systemd.start("a.service", 200, [(STRIPE, 300)])
    sutrod.start()
    set_policy(sutrod, "a.service", Weight="700", Class="idle")
    sutrod.until(lambda: machine.weights(a) == ["8:0 300", "8:16 300", "default 700"])
    sutrod.until(lambda: machine.weights(a, "io.sutro.class") == ["default idle"])
    set_policy(sutrod, "a.service", Weight=f"{STRIPE} 50", Class="")
    sutrod.until(lambda: machine.weights(a) == ["8:0 50", "8:16 50", "default 700"])
    sutrod.until(lambda: machine.weights(a, "io.sutro.class") == ["default be"])
    explained = sutrod.call("Explain", "a.service", STRIPE)
    assert "Weight=" in explained["leaves"][0]["reason"]


@pytest.mark.parametrize("is_seen", [True, False])
def test_owner_changes_an_overridden_class(
    machine: Machine, systemd: Systemd, sutrod: Sutrod, is_seen: bool
) -> None:
    """The class of the policy stays in force, and the stop restores the new one of the owner."""
    a = systemd.start("a.service", 200)
    machine.write(f"/sys/fs/cgroup{a}/io.sutro.class", "default be\n")
    sutrod.start()
    set_policy(sutrod, "a.service", Class="rt")
    sutrod.until(lambda: machine.weights(a, "io.sutro.class") == ["default rt"])
    machine.write(f"/sys/fs/cgroup{a}/io.sutro.class", "default idle\n")
    if is_seen:
        sutrod.elapse(61)
        assert machine.weights(a, "io.sutro.class") == ["default rt"]
    assert sutrod.stop() == 0
    assert machine.weights(a, "io.sutro.class") == ["default idle"]


def test_ceiling(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    a = systemd.start("a.service", 200)
    machine.write(f"/sys/fs/cgroup{a}/io.max", f"{LOGICAL} rbps=max wbps=9 riops=max wiops=max\n")
    before = machine.weights(a, "io.max")
    sutrod.start()
    set_policy(sutrod, "a.service", ReadBandwidthMax=f"{STRIPE} 5M", WriteIOPSMax=f"{STRIPE} 200")
    line = f"{LOGICAL} rbps=5000000 wbps=9 riops=max wiops=200"
    sutrod.until(lambda: machine.weights(a, "io.max") == [line])
    set_policy(sutrod, "a.service", WriteBandwidthMax=f"{STRIPE} 6M", ReadIOPSMax=f"{STRIPE} 100")
    line = f"{LOGICAL} rbps=5000000 wbps=9 riops=100 wiops=200"
    sutrod.until(lambda: machine.weights(a, "io.max") == [line])
    sutrod.call("ResetPolicy", "a.service", "runtime")
    sutrod.until(lambda: machine.weights(a, "io.max") == before)
    # A stop gives everything back, too.
    set_policy(sutrod, "a.service", ReadBandwidthMax=f"{STRIPE} 5M")
    sutrod.until(lambda: machine.weights(a, "io.max") != before)
    assert sutrod.stop() == 0
    assert machine.weights(a, "io.max") == before


@pytest.mark.parametrize("ends", ["reset", "stop"])
def test_ceiling_on_a_disk_that_was_exchanged(
    machine: Machine, systemd: Systemd, sutrod: Sutrod, ends: str
) -> None:
    """A limit that was written before the daemon found the new disk ends with its policy, too."""
    a = systemd.start("a.service", 200)
    line = "8:48 rbps=5000000 wbps=max riops=max wiops=max"
    sutrod.start()
    set_policy(sutrod, "a.service", ReadBandwidthMax="/dev/sdd 5M")
    sutrod.until(lambda: machine.weights(a, "io.max") == [line])
    machine.unplug("sdd", "8:48")
    machine.disk("sdd", "8:48", "none", diskseq=2)
    # The kernel has dropped the line with the disk, and a change of the unit brings it back.
    machine.write(f"/sys/fs/cgroup{a}/io.max", "")
    sutrod.until(lambda: machine.weights(a, "io.max") == [line])
    sutrod.elapse(61)
    assert machine.weights(a, "io.max") == [line]
    if ends == "reset":
        sutrod.call("ResetPolicy", "a.service", "runtime")
        sutrod.until(lambda: machine.weights(a, "io.max") == [])
    assert sutrod.stop() == 0
    assert machine.weights(a, "io.max") == []


def test_killed_with_a_ceiling(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    """The next daemon finds it in force and leaves it so, also before systemd answers."""
    a = systemd.start("a.service", 200)
    sutrod.start()
    set_policy(sutrod, "a.service", "persistent", ReadBandwidthMax=f"{STRIPE} 5M", Class="idle")
    line = f"{LOGICAL} rbps=5000000 wbps=max riops=max wiops=max"
    sutrod.until(lambda: machine.weights(a, "io.max") == [line])
    sutrod.until(lambda: machine.weights(a, "io.sutro.class") == ["default idle"])
    sutrod.stop(9)
    before = machine.writes()
    sutrod.start()
    assert machine.writes() == before
    sutrod.call("ResetPolicy", "a.service", "persistent")
    sutrod.until(lambda: machine.weights(a, "io.max") == [])
    sutrod.until(lambda: machine.weights(a, "io.sutro.class") == ["default be"])


def test_limit_without_io_controller(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    """It is in no file: the limit is unobserved until systemd enables the controller."""
    a = systemd.start("a.service", 200)
    folder = f"/sys/fs/cgroup{a}"
    machine.write(f"{folder}/cgroup.controllers", "cpu memory pids\n")
    machine.at(f"{folder}/io.max").unlink()
    sutrod.start()
    set_policy(sutrod, "a.service", ReadBandwidthMax=f"{STRIPE} 5M")
    sutrod.until(lambda: state(sutrod, "a.service") == "unobserved")
    assert [s[5] for s in sutrod.call("ListPromiseStates")] == ["unobserved"]
    cause = promise(sutrod, "a.service")["cause"]
    assert "the io controller is not enabled for a.service" in cause
    assert 'run "systemctl set-property a.service IOAccounting=yes"' in cause
    machine.write(f"{folder}/io.max", "")
    machine.write(f"{folder}/cgroup.controllers", "cpu io memory pids\n")
    sutrod.until(lambda: state(sutrod, "a.service") == "stated")
    assert promise(sutrod, "a.service")["cause"] == ""
    sutrod.elapse(61)
    line = f"{LOGICAL} rbps=5000000 wbps=max riops=max wiops=max"
    assert machine.weights(a, "io.max") == [line]


def test_refusal_counts_for_one_file(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    """A refused io.max hides no failure of io.sutro.class and stops no repair of a weight."""
    a = systemd.start("a.service", 200)
    sutrod.start()
    machine.write("/faults", "io.max fail io.sutro.class fail\n")
    set_policy(sutrod, "a.service", ReadBandwidthMax=f"{STRIPE} 5M", Class="idle")
    sutrod.until(lambda: "to io.max: Input/output error" in sutrod.log())
    sutrod.settle()
    assert "to io.sutro.class: Input/output error" in sutrod.log()
    assert promise(sutrod, "a.service")["cause"].endswith("for io.max: Input/output error")
    assert state(sutrod, "a.service") == "refused"
    machine.write(f"/sys/fs/cgroup{a}/io.sutro.weight", "default 5\n")
    sutrod.until(lambda: machine.weights(a) == ["default 200"])


def test_ceiling_that_the_kernel_refuses(
    machine: Machine, systemd: Systemd, sutrod: Sutrod
) -> None:
    """A limit that was not written is not restored, and one too large for io.max is no limit."""
    a = systemd.start("a.service", 200)
    sutrod.start()
    machine.fault("io.max", "fail")
    set_policy(sutrod, "a.service", ReadBandwidthMax=f"{STRIPE} 5M")
    sutrod.until(lambda: "io.max" in sutrod.log())
    sutrod.call("ResetPolicy", "a.service", "runtime")
    sutrod.until(lambda: sutrod.call("GetPolicy", "a.service") == [])
    machine.write("/faults", "")
    # More IOPS than the kernel can count are no limit, and nothing to complain about.
    set_policy(sutrod, "a.service", WriteIOPSMax=f"{STRIPE} 5G")
    sutrod.until(lambda: len(sutrod.call("ListPromises")) == 1)
    sutrod.elapse(1)
    assert machine.at("/run/sutro/ceilings").read_text() == ""
    assert len([line for line in machine.writes() if "io.max" in line]) == 1
    assert machine.weights(a, "io.max") == []


def test_limit_of_a_slice_throttles_a_floor(
    machine: Machine, systemd: Systemd, sutrod: Sutrod
) -> None:
    """Two units use up the limit of their slice on a volume, which io.stat of the slice shows."""
    systemd.start("apps.slice", slice="/")
    a, b = (systemd.start(f"{unit}.service", slice="/apps.slice") for unit in "ab")
    rates = {a: 20, b: 30, "/apps.slice": 50}
    passed = 0.0

    def read(seconds: float) -> None:
        nonlocal passed
        passed += seconds
        ns = int(passed * 1e9)
        waits = f"wait_ns={ns // 2} pending_ns={ns} busy_ns={ns} backlog_ns={ns // 4} queued=0"
        for cgroup, rate in rates.items():
            done = int(passed * rate * MB)
            counts = "rbytes={0} wbytes=0 rios={0} wios=0"
            lines = [
                f"{devno} time_ns={10 * done} {counts.format(done // 2)} {waits}\n"
                for devno in LEAVES.values()
            ]
            folder = f"/sys/fs/cgroup{cgroup}"
            machine.write(f"{folder}/io.stat", f"{LOGICAL} {counts.format(done)}\n")
            if cgroup != "/apps.slice":
                machine.write(f"{folder}/io.sutro.stat", "".join(lines))

    sutrod.clock.loads.append(read)
    limit = f"{LOGICAL} rbps=50000000 wbps=max riops=max wiops=max\n"
    machine.write("/sys/fs/cgroup/apps.slice/io.max", limit)
    sutrod.start()
    set_policy(sutrod, "a.service", ReadBandwidthMin=f"{STRIPE} 40M")
    sutrod.until(lambda: promise(sutrod, "a.service")["cause"], 5 * SETTLES_S)
    cause = promise(sutrod, "a.service")["cause"]
    assert cause.startswith("io.max of /apps.slice has rbps=50000000 for /dev/dm-0, which")


def test_ceiling_beside_limits_of_systemd(
    machine: Machine, systemd: Systemd, sutrod: Sutrod
) -> None:
    """IOWriteIOPSMax= holds beside a ceiling, and is followed when it changes."""
    a = systemd.start("a.service", 200)
    file = f"/sys/fs/cgroup{a}/io.max"
    limits = "rbps=max wbps=max riops=max wiops="
    machine.write(file, f"{LOGICAL} {limits}200\n")
    sutrod.start()
    set_policy(sutrod, "a.service", ReadBandwidthMax=f"{STRIPE} 5M")
    ours = f"{LOGICAL} {limits.replace('rbps=max', 'rbps=5000000')}"
    sutrod.until(lambda: machine.weights(a, "io.max") == [ours + "200"])
    # As long as ours: the file has never a part of a line.
    theirs = f"{LOGICAL} {limits.replace('rbps=max', 'rbps=6000000')}300"
    machine.write(file, theirs + "\n")
    assert sutrod.until(lambda: machine.weights(a, "io.max") == [ours + "300"]) == 0
    sutrod.call("ResetPolicy", "a.service", "runtime")
    sutrod.until(lambda: machine.weights(a, "io.max") == [theirs])


def test_any_volume_without_a_request_queue(
    machine: Machine, systemd: Systemd, sutrod: Sutrod
) -> None:
    """A limit holds there. A floor leaves the device out, and the row of "any" names it."""
    a = systemd.start("a.service", 200)
    machine.stripe("dm-1", "254:1", "", "zero")
    stat = f"/sys/fs/cgroup{a}/io.stat"
    machine.write(stat, "254:1 rbytes=1 wbytes=0\n")
    sutrod.start()
    set_policy(sutrod, "a.service", ReadBandwidthMax="any 5M", ReadBandwidthMin="any 1M")
    line = "rbps=5000000 wbps=max riops=max wiops=max"
    sutrod.until(lambda: machine.weights(a, "io.max") == [f"254:1 {line}"])

    def floors() -> dict[str, tuple[str, str]]:
        promises = [p for p in sutrod.call("ListPromises") if p["key"] == "ReadBandwidthMin"]
        return {str(p["path"]): (str(p["state"]), str(p["cause"])) for p in promises}

    cause = "no floor or latency target holds on /dev/dm-1, which the unit uses; sutro.policy(5)"
    assert floors() == {"any": ("idle", cause)}
    machine.write(stat, "254:1 rbytes=1 wbytes=0\n8:32 rbytes=1 wbytes=0\n")
    sutrod.until(lambda: "/dev/sdc" in floors())
    assert floors()["any"] == ("idle", cause)
    assert machine.weights(a, "io.max") == [f"254:1 {line}", f"8:32 {line}"]
    states = {(s[2], s[3]): s[5] for s in sutrod.call("ListPromiseStates")}
    assert states["ReadBandwidthMin", "any"] == "idle"
    # A setting for the path takes its place.
    set_policy(sutrod, "a.service", ReadBandwidthMin="/dev/mapper/zero 1M")
    sutrod.until(lambda: "any" not in floors())
    assert floors()["/dev/mapper/zero"][0] == "unweighted"


def test_device_without_a_request_queue(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    """A limit becomes a line, as the kernel throttles bios. No floor and no target holds."""
    a = systemd.start("a.service", 200)
    machine.stripe("dm-1", "254:1", "", "zero")
    sutrod.start()
    path = "/dev/mapper/zero"
    set_policy(
        sutrod,
        "a.service",
        ReadBandwidthMax=f"{path} 5M",
        ReadBandwidthMin=f"{path} 1M",
        WriteIOPSMin=f"{path} 10%",
        LatencyTarget=f"{path} 5ms",
    )
    line = "254:1 rbps=5000000 wbps=max riops=max wiops=max"
    sutrod.until(lambda: machine.weights(a, "io.max") == [line])

    def listed() -> dict[str, dict[str, object]]:
        return {str(p["key"]): p for p in sutrod.call("ListPromises")}

    promises = listed()
    limit = promises.pop("ReadBandwidthMax")
    assert (limit["state"], limit["cause"]) == ("stated", "")
    assert len(promises) == 3
    for p in promises.values():
        assert p["state"] == "unweighted"
        assert str(p["cause"]).startswith("/dev/dm-1 has no request queue, so no weight")
    assert {str(s[2]): s[5] for s in sutrod.call("ListPromiseStates")} == {
        "ReadBandwidthMax": "stated",
        **dict.fromkeys(promises, "unweighted"),
    }
    # No leaf gets the line instead: a refusal is reported.
    machine.fault("io.max", "fail")
    set_policy(sutrod, "a.service", ReadBandwidthMax=f"{path} 6M")
    sutrod.until(lambda: listed()["ReadBandwidthMax"]["state"] == "refused")
    machine.write("/faults", "")
    sutrod.call("ResetPolicy", "a.service", "runtime")
    sutrod.until(lambda: machine.weights(a, "io.max") == [])
