# SPDX-License-Identifier: LGPL-2.1-or-later
"""`sutroctl test` of the package sutro-tests on model disks: its numbers against their truth.

A disk of a user does not report device time. Here the same command runs on a disk that does: the
ratio by bytes, the share by the elevator's account and the verdicts have to agree with it. The test
samples the truth while the command runs; the results have the times of each measurement.
"""

import bisect
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from bench import iocost
from rig import bus, scheduler
from rig.crowd import Watcher
from rig.modeldisk import ModelDisk, Truth
from rig.shell import run, wait_for
from rig.stack import Stack
from rig.unit import CGROUP_ROOT

BUILD = Path("/mnt/build")
STATE = Path("/run/sutro-tests/state.json")
CGROUPS = "/sutrotest.slice/"
# An emulated CPU can keep it busy with requests of 64 KiB.
DISK = {"size_mb": 512, "bus_kbps": 20000}
STRIPE = {"kind": "striped", "name": "str", "over": ["ssd0", "ssd1"]}
MEASURE_S = "8"
PATIENCE_S = 600.0
NR_REQUESTS = 77
SCHEDULERS = ("none", "mq-deadline", "kyber", "bfq", "iocost", "sutro")
# Bytes of equal jobs against their device time, and the elevator's account against it.
RATIO_ERROR, SHARE_ERROR = 0.05, 0.03


@pytest.fixture(scope="module", autouse=True)
def package() -> Iterator[None]:
    """The package sutro-tests is installed."""
    (deb,) = BUILD.glob("sutro-tests_*.deb")
    run("dpkg", "--install", deb)
    yield
    run("dpkg", "--purge", "sutro-tests")


class Watched(Watcher):
    """The truth of a disk over time."""

    PERIOD_S = 0.25

    def __init__(self, disk: ModelDisk) -> None:
        super().__init__()
        self._disk = disk
        self.samples: list[tuple[float, Truth]] = []

    def look(self) -> None:
        """Take a sample."""
        self.samples.append((time.monotonic(), self._disk.truth()))

    def time_ns(self, cgroup: str, from_s: float, to_s: float) -> float:
        """Device time between two moments, interpolated."""
        return self._at(cgroup, to_s) - self._at(cgroup, from_s)

    def _at(self, cgroup: str, at_s: float) -> float:
        right = bisect.bisect_left([when for when, _ in self.samples], at_s)
        right = min(max(right, 1), len(self.samples) - 1)
        (before_s, before), (after_s, after) = self.samples[right - 1 : right + 1]
        low, high = before.of(cgroup).time_ns, after.of(cgroup).time_ns
        return low + (high - low) * (at_s - before_s) / (after_s - before_s)


class Outcome:
    """The JSON of a test, and the truth of its runs."""

    def __init__(self, data: Any, watched: Watched) -> None:
        self.data, self.watched = data, watched
        self.results = data["results"]

    def value(self, name: str, scheduler: str, metric: str, of: str = "") -> dict[str, Any]:
        """A record; of several that with a goal."""
        found = [
            one
            for one in self.results
            if (one["scenario"], one["scheduler"], one["metric"], one.get("of", ""))
            == (name, scheduler, metric, of)
        ]
        return max(found, key=lambda one: one["goal"] is not None)

    def times(self, name: str, scheduler: str) -> dict[str, float]:
        """True device time of each unit in the measured time."""
        (window,) = (
            one
            for one in self.results
            if one["metric"] == "mbps"
            and (one["scenario"], one["scheduler"]) == (name, scheduler)
            and "from_s" in one
        )
        (units,) = (one["units"] for one in self.data["experiments"] if one["name"] == name)
        prefix = f"{CGROUPS}sutrotest-{name}-{scheduler}-"
        ends = window["from_s"], window["to_s"]
        return {unit: self.watched.time_ns(f"{prefix}{unit}.service", *ends) for unit in units}


def command(device: str, *words: str) -> list[str]:
    return ["sutroctl", "test", device, "--yes", "--json", "--duration", MEASURE_S, *words]


def outcome_of(disk: ModelDisk, *words: str) -> Outcome:
    """Run the command, and watch the disk."""
    with Watched(disk) as watched:
        done = subprocess.run(
            command(disk.node, *words), capture_output=True, text=True, timeout=PATIENCE_S
        )
    assert done.stdout, done.stderr
    outcome = Outcome(json.loads(done.stdout), watched)
    assert done.returncode == (outcome.data["met"] != outcome.data["judged"]), done.stderr
    failures = [one["why"] for one in outcome.results if "why" in one]
    assert not failures, failures
    return outcome


@pytest.fixture
def ssd(disk: Callable[..., ModelDisk], daemon: None) -> ModelDisk:
    """A disk with a scheduler and settings of an administrator."""
    one = disk("ssd", "ssd0", "mq-deadline", **DISK)
    (scheduler.queue("ssd0") / "nr_requests").write_text(str(NR_REQUESTS))
    (scheduler.queue("ssd0") / "iosched/fifo_batch").write_text("3")
    return one


def units_of_systemd() -> str:
    """All units that systemd has loaded."""
    return run("systemctl", "list-units", "--plain", "--no-legend", "--all")


def check_restored(*names: str) -> None:
    """Schedulers and their settings are those of the administrator, and no unit is left."""
    for name in names:
        assert scheduler.current(name) == "mq-deadline"
        assert (scheduler.queue(name) / "nr_requests").read_text().strip() == str(NR_REQUESTS)
        assert (scheduler.queue(name) / "iosched/fifo_batch").read_text().strip() == "3"
    assert not STATE.exists()
    wait_for(lambda: "sutrotest" not in units_of_systemd(), "no unit of the test", 60)
    assert bus.get("ManagedLeaves") == [] and bus.promises() == []


def test_shares_agree_with_the_truth(ssd: ModelDisk) -> None:
    """Equal jobs by bytes, unlike jobs by the account of sutro; the verdicts are the right ones."""
    words = ("--schedulers", "none,bfq,sutro", "--only", "two-to-one", "--only", "sizes")
    outcome = outcome_of(ssd, *words)
    check_restored("ssd0")
    for name in ("none", "bfq", "sutro"):
        times = outcome.times("two-to-one", name)
        true = times["g0"] / times["g1"]
        record = outcome.value("two-to-one", name, "ratio")
        assert record["value"] == pytest.approx(true, rel=RATIO_ERROR), name
        # Near a bound a verdict may be either.
        if not any(abs(true / bound - 1) <= RATIO_ERROR for bound in (1.9, 2.1)):
            assert record["met"] == (1.9 <= true <= 2.1), (name, true)
    assert outcome.value("two-to-one", "sutro", "ratio")["met"]
    assert not outcome.value("two-to-one", "none", "ratio")["met"]
    for name, units in (("two-to-one", ("g0", "g1")), ("sizes", ("small", "large"))):
        times = outcome.times(name, "sutro")
        for unit in units:
            record = outcome.value(name, "sutro", "share", unit)
            assert record["by"] == "account"
            true = times[unit] / sum(times.values())
            assert record["value"] == pytest.approx(true, abs=SHARE_ERROR), (name, unit)
    assert outcome.value("sizes", "none", "share", "small")["by"] == "progress"


def test_all_schedulers(ssd: ModelDisk) -> None:
    """Each has a run, whose ratio is true; iocost is enabled for its own only, and afterwards."""
    numbers = {"ssd0": {"kind": "ssd", "bus_kbps": DISK["bus_kbps"]}}
    with iocost.enabled([ssd], numbers, {"ssd0": ssd.truth()}):
        outcome = outcome_of(ssd, "--only", "two-to-one")
        check_restored("ssd0")
        assert f"{ssd.devno} enable=1" in (CGROUP_ROOT / "io.cost.qos").read_text()
    assert outcome.data["unavailable"] == {}
    for name in SCHEDULERS:
        times = outcome.times("two-to-one", name)
        record = outcome.value("two-to-one", name, "ratio")
        true = times["g0"] / times["g1"]
        assert record["value"] == pytest.approx(true, rel=RATIO_ERROR), name


def test_a_floor_and_one_reader(ssd: ModelDisk) -> None:
    """The floor holds under sutro only. P99 of one reader is that of fio."""
    words = ("--schedulers", "none,sutro", "--only", "floor", "--only", "one-read")
    outcome = outcome_of(ssd, *words)
    check_restored("ssd0")
    assert outcome.value("floor", "sutro", "worst_2s", "db")["met"]
    assert not outcome.value("floor", "none", "worst_2s", "db")["met"]
    # A quarter of the disk without a floor, half with it.
    for name, least, most in (("none", 0.2, 0.3), ("sutro", 0.45, 0.75)):
        times = outcome.times("floor", name)
        assert least < times["db"] / sum(times.values()) < most, name
    p99 = {
        name: outcome.value("one-read", name, "p99_vs_alone", "victim")["value"]
        for name in ("none", "sutro")
    }
    assert p99["sutro"] < p99["none"] / 2


def test_writes_to_a_file_of_a_stripe(
    disk: Callable[..., ModelDisk], stack: Callable[..., Stack], daemon: None, tmp_path: Path
) -> None:
    """A volume with a file system; a file elsewhere is refused; the report has no names."""
    disks = [disk("ssd", f"ssd{n}", "mq-deadline", **DISK) for n in range(2)]
    top = stack(disks, STRIPE).top
    mount = tmp_path / "mount"
    mount.mkdir()
    run("mkfs.ext4", "-q", "-E", "lazy_itable_init=1,nodiscard", top)
    run("mount", top, mount)
    try:
        refused = subprocess.run(
            command(top, "--write", "/var/tmp/sutro-test"), capture_output=True, text=True
        )
        assert refused.returncode == 1 and "its file system is on" in refused.stderr
        words = ("--schedulers", "none,sutro", "--only", "directions", "--report")
        done = subprocess.run(
            command(top, "--write", f"{mount}/sutro-test", *words),
            capture_output=True, text=True, timeout=PATIENCE_S,
        )  # fmt: skip
        report = json.loads(done.stdout)["report"]
        assert "directions: " in report and "FAILED" not in report, report + done.stderr
        assert all(name not in report for name in ("ssd0", "/dev", str(mount)))
        assert list(mount.iterdir()) == [mount / "lost+found"]
        assert [scheduler.current(one.name) for one in disks] == ["mq-deadline"] * 2
    finally:
        run("umount", mount)


@contextmanager
def begun(disk: ModelDisk) -> Iterator[subprocess.Popen[str]]:
    """The command while a run under bfq is measured."""
    words = command(disk.node, "--schedulers", "bfq,sutro", "--only", "two-to-one")
    process = subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # As in a shell, whatever started the tests.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        owner = f"{CGROUPS}sutrotest-two-to-one-bfq-g1.service"
        wait_for(lambda: disk.truth().of(owner).time_ns, "I/O of the test", PATIENCE_S)
        assert scheduler.current(disk.name) == "bfq" and STATE.exists()
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_nothing_stays_after_a_signal(ssd: ModelDisk, number: int, status: int) -> None:
    """To the whole group of processes, as a terminal sends it."""
    with begun(ssd) as process:
        os.killpg(process.pid, number)
        assert process.wait(PATIENCE_S) == status
        check_restored("ssd0")


def test_nothing_stays_after_a_kill(ssd: ModelDisk) -> None:
    """The guard restores the machine without the process."""
    with begun(ssd) as process:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        wait_for(lambda: not STATE.exists(), "restoration by the guard", 120)
    check_restored("ssd0")


def test_picture(ssd: ModelDisk, tmp_path: Path) -> None:
    """With python3-matplotlib, results become a picture, also later."""
    result, picture = tmp_path / "result.json", tmp_path / "picture.png"
    words = ("--schedulers", "none,sutro", "--only", "two-to-one")
    result.write_text(json.dumps(outcome_of(ssd, *words).data))
    # The status is that of the goals.
    drawn = subprocess.run(
        ["sutroctl", "test", "--from", result, "--plot", picture], capture_output=True, text=True
    )
    assert drawn.stderr == ""
    assert picture.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")


def test_a_leaf_in_the_care_of_the_daemon(ssd: ModelDisk) -> None:
    """It is so afterwards, and a release gives back the scheduler from before."""
    bus.use(ssd.node)
    outcome_of(ssd, "--schedulers", "none,sutro", "--only", "two-to-one")
    assert scheduler.current("ssd0") == "sutro"
    wait_for(lambda: bus.get("ManagedLeaves") == [ssd.node], "the leaf is managed", 10)
    bus.release(ssd.node)
    assert scheduler.current("ssd0") == "mq-deadline"
