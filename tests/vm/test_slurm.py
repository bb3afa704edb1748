# SPDX-License-Identifier: LGPL-2.1-or-later
"""Floors of Slurm jobs: a controller and two nodes of Debian's Slurm in one guest.

Each node has a slurmd of its own and a stack of its own, and a text names the volume of both alike:

    n1  /dev/scratch                       LVM stripe of ssd0 and ssd1
    n2  /dev/scratch, here /dev/scratch2   dm-crypt on raid1 of ssd2 and ssd3

On two machines one path leads to the volume of each. Here the prolog of n2 replaces the path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from rig import bus
from rig.modeldisk import ModelDisk
from rig.sampler import mbps_by_window
from rig.shell import CommandError, run, wait_for
from rig.stack import devno, standing
from rig.unit import CGROUP_ROOT, Unit, fio

KBPS = 20000
STRIPE = {"kind": "striped", "name": "lv", "over": ["ssd0", "ssd1"]}
MIRROR = {"kind": "md", "name": "mir", "level": "raid1", "over": ["ssd2", "ssd3"]}
CRYPT = {"kind": "crypt", "name": "sec", "over": ["mir"]}
VOLUMES = {"n1": "/dev/scratch", "n2": "/dev/scratch2"}
# Nine tenths of the rate of the disks, or less.
DECLARED = {"n1": 36, "n2": 8}
FLOORS = {"n1": 24, "n2": 7}
NOISY = 4
KEPT = 0.95
WINDOW_S = 2.0
# Slurm's daemons on an emulated CPU that the jobs keep busy.
SLOW_S = 240.0

ADDRESS = "198.51.100.1"
SLURM = Path("/etc/slurm")
SHARE = Path("/usr/share/sutro-slurm")
CONTROL = Path("/run/sutro/policy.control")
RECORDS = Path("/run/sutro-slurm")

CONF = """\
ClusterName=lab
SlurmctldHost=lab({address})
SlurmUser=slurm
StateSaveLocation=/var/lib/slurm/ctld
SlurmdSpoolDir=/var/lib/slurm/%n
SlurmctldPidFile=/run/slurmctld/slurmctld.pid
SlurmdPidFile=/run/slurmd-%n.pid
SlurmctldLogFile=/var/lib/slurm/ctld/log
SlurmdLogFile=/var/lib/slurm/%n/log
SlurmdParameters=config_overrides
ProctrackType=proctrack/cgroup
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
KillWait=2
MessageTimeout=100
SlurmctldTimeout=600
SlurmdTimeout=600
PrologFlags=Alloc
JobSubmitPlugins=lua
Prolog=/etc/slurm/prolog
Epilog=/usr/share/sutro-slurm/epilog
"""
NODE = "NodeHostname=lab NodeAddr={address} Port={port} CPUs=16 RealMemory=64 State=UNKNOWN"
PROLOG = f"""\
#!/bin/sh
[ "$SLURMD_NODENAME" = n1 ] ||
	export SLURM_JOB_EXTRA="$(echo "$SLURM_JOB_EXTRA" | sed 's,/dev/scratch:,/dev/scratch2:,')"
exec {SHARE}/prolog
"""
SLURMD = """\
[Unit]
After=munge.service
[Service]
Type=notify
ExecStart=/usr/sbin/slurmd --systemd -N %i
KillMode=process
Delegate=yes
TasksMax=infinity
LimitMEMLOCK=infinity
TimeoutStartSec=600
"""


class Job:
    """A job of Slurm that reads the volume of its node as fast as it may."""

    def __init__(self, node: str = "", mbps: float = 0, *options: str, seed: int = 1):
        words = ["--parsable", "--output=/dev/null", "--chdir=/", *options]
        words += [f"--nodelist={node}"] if node else []
        words += [f"--extra=sutro:read=/dev/scratch:{mbps}M"] if mbps else []
        read = fio("VOLUME", "randread", "64k", 32, seed=seed).replace("VOLUME", "$volume")
        script = "volume=/dev/scratch; [ $SLURMD_NODENAME = n1 ] || volume=/dev/scratch2; "
        self.id = run("sbatch", *words, f"--wrap={script}{read}").strip()
        self.name, self.mbps = f"job{self.id}", mbps

    def show(self, key: str) -> str:
        """A field of scontrol show job."""
        pairs = run("scontrol", "--oneliner", "show", "job", self.id).split()
        return next((p.partition("=")[2] for p in pairs if p.startswith(f"{key}=")), "")

    @property
    def state(self) -> str:
        """PENDING, RUNNING, ..."""
        return self.show("JobState")

    @property
    def cgroup(self) -> str:
        """Its path from the root of the hierarchy."""
        return f"/system.slice/{self.show('NodeList')}_slurmstepd.scope/job_{self.id}"

    def cancel(self) -> None:
        """End it."""
        run("scancel", self.id)


class Seen:
    """A job as Sampler takes units: its node, and so its cgroup, does not change any more."""

    def __init__(self, job: Job):
        self.name, self.cgroup = job.name, job.cgroup

    def read(self, file: str) -> str:
        """A file of its cgroup."""
        return (CGROUP_ROOT / self.cgroup[1:] / file).read_text()


class Cluster:
    """Both nodes, and their jobs."""

    def __init__(self, disks: list[ModelDisk]):
        self.disks = {"n1": disks[:2], "n2": disks[2:]}
        self.jobs: list[Job] = []

    def job(self, node: str = "", mbps: float = 0, *options: str) -> Job:
        """Submit a job."""
        self.jobs.append(Job(node, mbps, *options, seed=len(self.jobs) + 1))
        return self.jobs[-1]

    def runs(self, job: Job) -> Job:
        """Wait until it runs and has its floor; Slurm reports RUNNING before the prolog ends."""
        wait_for(lambda: job.state == "RUNNING", f"job {job.id} runs: {job.show('Reason')}", SLOW_S)
        cgroup = job.cgroup if job.mbps else ""
        wait_for(
            lambda: not cgroup or cgroup in [one["cgroup"] for one in bus.promises()],
            f"a floor of job {job.id}",
            SLOW_S,
        )
        return job

    def clear(self) -> None:
        """End all jobs, and wait until their epilogs are through."""
        if self.jobs:
            run("scancel", *(job.id for job in self.jobs))
        wait_for(lambda: not run("squeue", "--noheader").strip(), "no jobs", SLOW_S)
        self.jobs.clear()

    def mbps(self, node: str, jobs: list[Job], seconds: float) -> dict[str, list[float]]:
        """The rate of each job in each WINDOW_S of a time, half a second apart."""
        seen = [Seen(job) for job in jobs]
        number = devno(VOLUMES[node])
        return mbps_by_window(self.disks[node], seen, number, seconds, WINDOW_S)  # type: ignore


def left_behind() -> list[str]:
    """Policies and records of jobs."""
    return [str(file) for file in (*CONTROL.glob("*job_*"), *RECORDS.glob("*"))]


def configure() -> None:
    """The files of Slurm, with the lines of sutroctl slurm-gres."""
    gres, nodes, types = [], [], ""
    for number, (node, mbps) in enumerate(DECLARED.items(), 1):
        printed = run("sutroctl", "slurm-gres", f"--node={node}", f"read=/dev/scratch:{mbps}M")
        lines = [line for line in printed.splitlines() if not line.startswith("#")]
        gres.append(lines[0])
        types = lines[1]
        nodes.append(f"{lines[2]} {NODE.format(address=ADDRESS, port=17000 + number)}")
    conf = [
        CONF.replace("{address}", ADDRESS) + types,
        *nodes,
        "PartitionName=all Nodes=n1,n2 Default=YES MaxTime=INFINITE",
    ]
    (SLURM / "slurm.conf").write_text("\n".join(conf) + "\n")
    (SLURM / "gres.conf").write_text("\n".join(gres) + "\n")
    (SLURM / "cgroup.conf").write_text("CgroupPlugin=cgroup/v2\nSystemdTimeout=600000\n")
    (SLURM / "prolog").write_text(PROLOG)
    (SLURM / "prolog").chmod(0o755)
    (SLURM / "job_submit.lua").symlink_to(SHARE / "job_submit.lua")
    Path("/etc/systemd/system/slurmd@.service").write_text(SLURMD)
    for folder in ("ctld", "n1", "n2"):
        run("install", "--directory", "--owner=slurm", f"/var/lib/slurm/{folder}")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A cluster of two nodes, both idle."""
    numbers = {"size_mb": 64, "bus_kbps": KBPS}
    with ExitStack() as undo:
        disks = [ModelDisk(f"ssd{n}", "ssd", {**numbers, "seed": n + 1}) for n in range(2)]
        # The cipher is emulated, too.
        numbers["bus_kbps"] = KBPS // 2
        disks += [ModelDisk(f"ssd{n}", "ssd", {**numbers, "seed": n + 1}) for n in (2, 3)]
        for one in disks:
            undo.enter_context(one)
        tops = [
            undo.enter_context(standing(disks[:2], [STRIPE])).top,
            undo.enter_context(standing(disks[2:], [MIRROR, CRYPT])).top,
        ]
        for link, top in zip(VOLUMES.values(), tops, strict=True):
            Path(link).symlink_to(top)
            undo.callback(Path(link).unlink)
        run("systemctl", "start", "sutrod")
        undo.callback(run, "systemctl", "stop", "sutrod")
        undo.callback(bus.release)
        bus.use(*tops)
        configure()
        # Slurm looks up no address, not even 127.0.0.1, on a machine that has no other one.
        run("ip", "address", "add", f"{ADDRESS}/32", "dev", "lo")
        undo.callback(run, "ip", "address", "delete", f"{ADDRESS}/32", "dev", "lo")
        run("systemctl", "daemon-reload")
        for unit in ("munge", "slurmctld", "slurmd@n1", "slurmd@n2", "sutro-slurm"):
            undo.callback(run, "systemctl", "stop", unit)
            run("systemctl", "start", unit)
        undo.callback(run, "systemctl", "stop", "n1_slurmstepd.scope", "n2_slurmstepd.scope")
        idle = ["idle", "idle"]
        states = ("sinfo", "--Node", "--noheader", "--format=%T")
        wait_for(lambda: run(*states).split() == idle, "two idle nodes", SLOW_S)
        yield Cluster(disks)


@pytest.fixture
def jobs(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster without jobs, before and after; and nothing of them is left."""
    yield cluster
    cluster.clear()
    wait_for(lambda: not left_behind(), f"nothing stale: {left_behind()}", SLOW_S)


@pytest.mark.parametrize("node", VOLUMES)
def test_guaranteed_job_beside_four(jobs: Cluster, node: str) -> None:
    """It has 0.95 of its floor in the worst 2 s, and loses it without the daemon."""
    with bus.none_infeasible():
        keep_and_lose(jobs, node)


def keep_and_lose(jobs: Cluster, node: str) -> None:
    """Measure a job with a floor beside noisy ones, with the daemon and without it."""
    job = jobs.runs(jobs.job(node, FLOORS[node]))
    noisy = [jobs.job(node) for _ in range(NOISY)]
    for one in noisy:
        jobs.runs(one)

    def held() -> bool:
        return [p["state"] for p in bus.promises() if p["cgroup"] == job.cgroup] == ["held"]

    wait_for(held, f"held: {bus.promises()}", SLOW_S)
    with_floor = jobs.mbps(node, [job, *noisy], 10)
    run("systemctl", "stop", "sutrod")
    without = jobs.mbps(node, [job], 6)[job.name]
    run("systemctl", "start", "sutrod")
    print(node, {name: (min(rates), max(rates)) for name, rates in with_floor.items()}, without)
    assert min(with_floor[job.name]) >= KEPT * FLOORS[node]
    assert max(without) < KEPT * FLOORS[node]
    wait_for(held, "held again", SLOW_S)


def promised() -> dict[str, float]:
    """The sum of the floors of the jobs on each node, in MB/s."""
    floors = [(one["cgroup"], one["value"] / 1e6) for one in bus.promises()]
    return {
        node: sum(mbps for cgroup, mbps in floors if f"/{node}_slurmstepd.scope/" in cgroup)
        for node in DECLARED
    }


def test_capacity_is_counted(jobs: Cluster) -> None:
    """A job waits for bandwidth, or goes to the node that has some left.

    The jobs that Slurm places together fit: no floor is infeasible, though all read at full speed.
    """
    with bus.none_infeasible():
        first = jobs.runs(jobs.job("", 24))
        assert first.show("NodeList") == "n1"
        assert "gres/sutro_read:dev__scratch" in first.show("TresPerNode")
        big = jobs.job("", 30)
        wait_for(lambda: big.show("Reason") in ("Resources", "Priority"), "it waits", SLOW_S)
        assert promised() == {"n1": 24, "n2": 0}
        big.cancel()
        jobs.runs(jobs.job("n1", 12))
        # Of n1 nothing is left.
        small = jobs.runs(jobs.job("", 8))
        assert small.show("NodeList") == "n2"
        waiting = jobs.job("", 1)
        wait_for(lambda: waiting.show("Reason") in ("Resources", "Priority"), "it waits", SLOW_S)
        assert waiting.state == "PENDING"
        assert promised() == DECLARED
        small.cancel()
        jobs.runs(waiting)
        assert promised() == {"n1": 36, "n2": 1}


def refused(command: Callable[[], object]) -> str:
    """The text of a command that has to fail."""
    with pytest.raises(CommandError) as caught:
        command()
    return str(caught.value)


def test_refused(jobs: Cluster) -> None:
    """A malformed text, and each way past the plugin; the user reads the accepted form."""
    form = "--extra=sutro:KIND=PATH:RATE"
    for text in ("sutro:read=/dev/scratch", "sutro:read=/dev/../scratch:5M", "sutro"):
        assert form in refused(lambda text=text: jobs.job("", 0, f"--extra={text}"))
    gres = "--gres=sutro_read:dev__scratch:1"
    assert form in refused(lambda: jobs.job("", 0, gres))
    assert form in refused(lambda: jobs.job("", 5, gres))
    job = jobs.runs(jobs.job("n1", 5))
    held = jobs.job("n1", 5, "--hold")
    plain = jobs.job("n1", 0, "--hold")
    for one in (job, held, plain):
        for change in ("Extra=sutro:read=/dev/scratch:50M", "Gres=sutro_read:dev__scratch:1"):
            printed = refused(lambda one=one, change=change: run(
                "scontrol", "update", f"JobId={one.id}", change))  # fmt: skip
            assert printed
    assert refused(lambda: run("scontrol", "update", f"JobId={held.id}", "Gres=none"))
    assert job.show("Extra") == "sutro:read=/dev/scratch:5M"
    (floor,) = [p for p in bus.promises() if p["cgroup"] == job.cgroup]
    assert floor["value"] == 5 * 10**6


def test_missing_volume_holds_the_job(jobs: Cluster) -> None:
    """The job waits with the reason, and the node is not drained."""
    link = Path(VOLUMES["n1"])
    top = link.readlink()
    link.unlink()
    try:
        job = jobs.job("n1", 5)
        reason = "job_requeued_in_held_state"
        wait_for(lambda: job.show("Reason") == reason, f"held: {job.show('Reason')}", SLOW_S)
    finally:
        link.symlink_to(top)
    comment = "'/dev/scratch' is out of reach of sutrod: it does not exist"
    assert f"AdminComment=sutro on n1: {comment}" in run("scontrol", "show", "job", job.id)
    idle = ("sinfo", "--noheader", "--nodes=n1", "--format=%T")
    wait_for(lambda: run(*idle).strip() == "idle", f"n1 is {run(*idle)}", SLOW_S)


def test_nothing_stays(jobs: Cluster) -> None:
    """Jobs that end, are cancelled, or outlive slurmd and sutrod leave no policy."""
    for how in ("end", "cancel", "slurmd", "sutrod", "no sutrod"):
        job = jobs.runs(jobs.job("n1", 5, *(["--time=1"] if how == "end" else [])))
        assert len(left_behind()) == 2, how
        if how == "slurmd":
            run("systemctl", "restart", "slurmd@n1")
        if how == "sutrod":
            run("systemctl", "restart", "sutrod")
        assert job.state == "RUNNING"
        assert len(left_behind()) == 2, how
        if how == "no sutrod":
            run("systemctl", "stop", "sutrod")
        if how != "end":
            job.cancel()
        wait_for(lambda: not run("squeue", "--noheader").strip(), f"{how}: ended", SLOW_S)
        if how == "no sutrod":
            assert any(file.endswith(".ended") for file in left_behind())
            run("systemctl", "start", "sutrod")
        wait_for(lambda: not left_behind(), f"{how}: {left_behind()}", SLOW_S)


@pytest.fixture
def service() -> Iterator[None]:
    """A service on n1 with a floor that Slurm does not count, more important than those of jobs."""
    unit = Unit("service", fio(VOLUMES["n1"], "randread", "64k", 32, seed=99))
    unit.start()
    bus.set_policy(unit.unit, ReadBandwidthMin=f"{VOLUMES['n1']} 30M", Importance="1000")
    yield
    bus.call("ResetPolicy", "ss", unit.unit, "runtime")
    unit.stop()


@pytest.mark.usefixtures("service")
def test_lasting_infeasible_drains(jobs: Cluster) -> None:
    """The disks of n1 do less than is promised: the node is drained, the job goes on."""
    job = jobs.runs(jobs.job("n1", 36))
    reasons = ("sinfo", "--noheader", "--nodes=n1", "--format=%E")
    wait_for(lambda: "sutro: ReadBandwidthMin=/dev/scratch" in run(*reasons), "drained", SLOW_S)
    assert f"job {job.id} is infeasible" in run(*reasons)
    assert job.state == "RUNNING"
    other = jobs.job("n1", 0)
    wait_for(lambda: other.show("Reason") not in ("None", ""), "a reason", SLOW_S)
    assert other.state == "PENDING"
    jobs.clear()
    run("scontrol", "update", "nodename=n1", "state=resume")
