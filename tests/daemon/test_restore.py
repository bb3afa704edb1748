# SPDX-License-Identifier: LGPL-2.1-or-later
"""sutrod --restore: nothing stays in force without a daemon, unless the next one continues."""

import signal
from concurrent.futures import ThreadPoolExecutor

import pytest
from fakemachine import Machine, Sutrod, Systemd, restore, wait_until

LIMITS = "rbps=max wbps=max riops=max wiops=77"
CHANGED = (["8:0 300", "8:16 300", "default 200"], ["default idle"])
ORIGINAL = (["default 100"], ["default be"])


def state(machine: Machine, cgroup: str) -> tuple[list[str], list[str]]:
    """Weights and class of a cgroup."""
    return machine.weights(cgroup), machine.weights(cgroup, "io.sutro.class")


@pytest.fixture
def a(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> str:
    """The cgroup of a.service, for which a daemon that was killed has written much."""
    a = systemd.start("a.service", 200, [("/dev/mapper/vg-db", 300)])
    machine.write(f"/sys/fs/cgroup{a}/io.max", f"254:0 {LIMITS}\n")
    sutrod.start()
    stated = [("ReadBandwidthMax", "/dev/mapper/vg-db 5M"), ("Class", "idle")]
    sutrod.call("SetPolicy", "a.service", stated, "runtime")
    sutrod.until(lambda: state(machine, a) == CHANGED)
    sutrod.call("UseDevices", ["/dev/sdd"])
    sutrod.settle()
    sutrod.stop(signal.SIGKILL)
    return a


def test_by_hand(machine: Machine, a: str) -> None:
    assert machine.weights(a, "io.max") == [f"254:0 {LIMITS.replace('rbps=max', 'rbps=5000000')}"]
    assert restore(machine) == 0
    assert state(machine, a) == ORIGINAL
    assert machine.weights(a, "io.max") == [f"254:0 {LIMITS}"]
    assert machine.weights(a, "io.bfq.weight") == ["default 100"]
    assert machine.at("/run/sutro/ceilings").read_text() == ""
    assert machine.scheduler("sdd") == "sutro"


def test_release(machine: Machine, a: str) -> None:
    assert restore(machine, "--release") == 0
    assert machine.scheduler("sdd") == "none"
    assert restore(machine, "--release") == 0


def test_without_the_devices(machine: Machine, a: str) -> None:
    """Schedulers need the list of disks; weights and limits do not."""
    machine.at("/sys/class/block").rename(machine.at("/sys/class/gone"))
    machine.write("/sys/class/block", "")
    assert restore(machine, "--release") == 1
    assert state(machine, a) == ORIGINAL
    assert machine.weights(a, "io.max") == [f"254:0 {LIMITS}"]


def test_disk_that_cannot_be_released(machine: Machine, a: str) -> None:
    """The status is for the script that removes the package; the weights go all the same."""
    machine.fault("sdd/queue/scheduler", "fail")
    assert restore(machine, "--release") == 1
    assert state(machine, a) == ORIGINAL


def test_disk_that_does_not_answer_is_not_released(machine: Machine, a: str) -> None:
    """The removal of the package does not wait for it."""
    machine.fault("sdd/queue/scheduler", "hang")
    assert restore(machine, "--release") == 1
    assert state(machine, a) == ORIGINAL


def test_after_a_stop(machine: Machine, a: str) -> None:
    assert restore(machine, result="success") == 0
    assert state(machine, a) == ORIGINAL


def test_weight_of_the_kernel_holds_after_a_stop(
    machine: Machine, systemd: Systemd, sutrod: Sutrod
) -> None:
    """Where io.weight is that of all schedulers, no io.sutro.weight hides it afterwards."""
    machine.write("/weight-series", "")
    a, b = (systemd.start(f"{name}.service", 200) for name in "ab")
    sutrod.start()
    sutrod.call("SetPolicy", "a.service", [("Weight", "500")], "runtime")
    sutrod.until(lambda: machine.weights(a) == ["default 500"])
    # The daemon writes the number again with which the kernel begins.
    sutrod.call("ResetPolicy", "a.service", "runtime")
    sutrod.until(lambda: machine.weights(a) == machine.weights(b) == ["default 200"])
    sutrod.call("SetPolicy", "b.service", [("Weight", "500")], "runtime")
    sutrod.until(lambda: machine.weights(b) == ["default 500"])
    before = len(machine.writes())
    sutrod.stop(signal.SIGKILL)
    assert restore(machine, result="success") == 0
    assert machine.weights(b) == ["default 200"]
    for cgroup in (a, b):
        line = f"/sys/fs/cgroup{cgroup}/io.sutro.weight default default"
        assert line in machine.writes()[before:]


def test_cgroup_that_takes_no_weight(
    machine: Machine, systemd: Systemd, capfd: pytest.CaptureFixture[str]
) -> None:
    """The kernel has no level for a deep cgroup; that its weight stays is no failure."""
    systemd.start("a.service", 200)
    machine.fault("io.sutro.weight", "unsupported")
    assert restore(machine) == 0
    assert any(line.endswith("io.sutro.weight default default") for line in machine.writes())
    assert "cannot write" not in capfd.readouterr().err


def test_crashes_in_a_row(machine: Machine, sutrod: Sutrod, a: str) -> None:
    """The next daemon keeps the present lines; the third one in a row does not."""
    for result in ("signal", "exit-code"):
        assert restore(machine, result=result) == 0
        assert state(machine, a) == CHANGED
    # A daemon that has served for ReconcileSec= begins a new row.
    sutrod.start()
    sutrod.elapse(61)
    sutrod.stop(signal.SIGKILL)
    for result in ("watchdog", "core-dump"):
        assert restore(machine, result=result) == 0
        assert state(machine, a) == CHANGED
    assert restore(machine, result="exit-code") == 0
    assert state(machine, a) == ORIGINAL


def test_comparison_without_end(machine: Machine, sutrod: Sutrod, a: str) -> None:
    """A daemon that the watchdog ends in its first comparison has not served: its crash counts."""
    assert restore(machine, result="watchdog") == 0
    sutrod.start()
    sutrod.settle()
    # Without an event: the comparison finds the change.
    machine.replace(f"/sys/fs/cgroup{a}/io.sutro.weight", "default 5\n")
    machine.fault("a.service/io.sutro.weight", "hang")
    before = len(machine.writes())
    with ThreadPoolExecutor(1) as pool:
        comparison = pool.submit(sutrod.elapse, 61)
        wait_until(lambda: len(machine.writes()) > before)
        assert machine.at("/run/sutro/crashes").exists()
        machine.fault("none", "ignore")
        comparison.result()
    assert state(machine, a) == CHANGED
    assert not machine.at("/run/sutro/crashes").exists()


def test_cgroups_that_were_removed(
    machine: Machine, systemd: Systemd, sutrod: Sutrod, a: str
) -> None:
    """Records of cgroups that went while no daemon ran do not stay for ever."""
    assert a in machine.at("/run/sutro/ceilings").read_text()
    systemd.vanish("a.service")
    sutrod.start()
    for file in ("ceilings", "classes"):
        assert machine.at(f"/run/sutro/{file}").read_text() == ""


def test_records_of_any_size(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    """More than 4 MiB, and a line that is no record, do not keep the daemon from starting."""
    a = systemd.start("a.service", 200)
    lines = [f"8:0 /gone{'x' * 200}{i}\tdefault\n" for i in range(20000)]
    machine.write("/run/sutro/iocost", "".join(lines) + "no record\n")
    machine.write("/run/sutro/classes", f"{a}\trt\n" + "x" * (5 << 20))
    sutrod.start()
    assert "Cannot read all of" in sutrod.log()
    sutrod.until(lambda: machine.weights(a, "io.sutro.class") == ["default rt"])
    assert machine.at("/run/sutro/iocost").read_text() == ""
