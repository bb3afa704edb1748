# SPDX-License-Identifier: LGPL-2.1-or-later
"""Records of sutro-slurm: the epilog finds that of its job, and no record outlives its job.

The cgroup of a job is /system.slice/NODE_slurmstepd.scope/job_7 where slurmd was built for several
nodes on a machine, and /system.slice/slurmstepd.scope/job_7 elsewhere.
"""

import asyncio
import os
import shutil
import subprocess

import pytest
from conftest import POLICIES
from sutro import slurm
from sutro.errors import SutroError

PLAIN = "/system.slice/slurmstepd.scope/job_7"
JOB = "/system.slice/n1_slurmstepd.scope/job_7"
OTHER = "/system.slice/n2_slurmstepd.scope/job_7"
EXTRA = "sutro:read=/srv:60M"


def in_force(sutrod, *cgroups):
    """Those of the cgroups that have a floor."""
    return [
        cgroup
        for cgroup in cgroups
        if any(entry["in_force"] for entry in sutrod.call("GetPolicy", cgroup))
    ]


@pytest.mark.parametrize(
    ("begun", "ended"), [([JOB], JOB), ([JOB], PLAIN), ([PLAIN], JOB), ([JOB, OTHER], JOB)]
)
def test_epilog_finds_the_job_in_either_form(sutrod, tmp_path, begun, ended):
    """The scope of the prolog may be gone, so the record has the cgroup of the floors."""
    for cgroup in begun:
        asyncio.run(slurm.prolog(cgroup, EXTRA, tmp_path / "records"))
    assert in_force(sutrod, *begun) == begun
    asyncio.run(slurm.epilog(ended, tmp_path / "records"))
    assert in_force(sutrod, *begun) == begun[1:]
    assert len(list((tmp_path / "records").iterdir())) == len(begun) - 1


def test_epilog_does_not_guess_the_node(sutrod, tmp_path):
    """A job of two nodes of one machine has two records; nor is that of another job taken."""
    for cgroup in (JOB, OTHER, f"{JOB}7"):
        asyncio.run(slurm.prolog(cgroup, EXTRA, tmp_path / "records"))
    for cgroup in (PLAIN, JOB.replace("n1", "n3"), PLAIN.replace("_7", "_8")):
        asyncio.run(slurm.epilog(cgroup, tmp_path / "records"))
    assert in_force(sutrod, JOB, OTHER, f"{JOB}7") == [JOB, OTHER, f"{JOB}7"]


def test_epilog_whose_record_the_service_takes(tmp_path, monkeypatch):
    """It succeeds, since slurmd drains the node of a failing one."""
    (tmp_path / "n1:7").write_text(f"{JOB}\n")
    rename = slurm.Path.rename

    def taken(record, target):
        rename(record, target)
        return rename(record, target)

    monkeypatch.setattr(slurm.Path, "rename", taken)
    asyncio.run(slurm.epilog(JOB, tmp_path))
    assert [record.name for record in tmp_path.iterdir()] == ["n1:7.ended"]


@pytest.mark.parametrize(("node", "cgroup"), [("n1", JOB), ("", PLAIN)])
def test_script_of_the_epilog_names_the_node(tmp_path, node, cgroup):
    """It looks for no scope, for that of the job may be gone."""
    program = tmp_path / "sutro-slurm"
    program.write_text('#!/bin/sh\necho "$@"\n')
    program.chmod(0o755)
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "SLURM_JOB_ID": "7"}
    env |= {"SLURMD_NODENAME": node} if node else {}
    run = subprocess.run([POLICIES / "slurm/epilog"], env=env, capture_output=True, text=True)
    assert (run.returncode, run.stdout) == (0, f"epilog {cgroup}\n")


class Watched:
    """The service, with a clock of its own, and the numbers of jobs that Slurm has on each node."""

    def __init__(self, records):
        self.now_s, self.jobs, self.queries, self.reset = 0.0, {}, [], []
        self.client = self
        self.program = slurm.Watch(records, now=lambda: self.now_s, on_node=self.on_node)
        self.program.client = self

    def on_node(self, node):
        self.queries.append(node)
        if self.jobs is None:
            raise SutroError("squeue: no controller")
        return self.jobs.get(node, set())

    async def promises(self):
        return []

    async def reset_policy(self, cgroup, _lifetime):
        self.reset.append(cgroup)

    def after(self, seconds):
        """The cgroups that are reset after this time."""
        self.now_s += seconds
        self.reset.clear()
        asyncio.run(self.program.step())
        return sorted(self.reset)


@pytest.fixture
def watched(machine, tmp_path):
    """The service with records of the jobs 7 of n1 and of n2; that of n2 has a cgroup."""
    records = tmp_path / "records"
    records.mkdir()
    (records / "n1:7").write_text(f"{JOB}\n")
    (records / "n2:7").write_text(f"{OTHER}\n")
    machine.cgroup(OTHER)
    return Watched(records)


def test_floors_of_a_job_that_slurmd_lost(watched, tmp_path):
    """They end without an epilog, as soon as the cgroup has been gone for some time."""
    assert watched.after(0) == [] == watched.after(slurm.GONE_AFTER_S - 1)
    assert watched.queries == []
    assert watched.after(1) == [JOB]
    assert [record.name for record in (tmp_path / "records").iterdir()] == ["n2:7"]
    assert watched.after(2 * slurm.GONE_AFTER_S) == []
    assert watched.queries == ["n1"]


def test_job_that_has_no_cgroup_for_a_while(machine, watched):
    """The time begins anew when the cgroup is there."""
    watched.after(0)
    machine.cgroup(JOB)
    assert watched.after(slurm.GONE_AFTER_S) == []
    shutil.rmtree(machine.at(f"/sys/fs/cgroup{JOB}"))
    assert watched.after(1) == [] == watched.after(slurm.GONE_AFTER_S - 1)
    assert watched.after(1) == [JOB]


def test_job_without_steps_keeps_its_floors(watched, capsys):
    """It has no cgroup between two steps; Slurm is queried once in this time."""
    watched.jobs = {"n1": {"7", "9"}}
    watched.after(0)
    for _ in range(5):
        assert watched.after(slurm.GONE_AFTER_S / 2) == []
    assert watched.queries == ["n1", "n1"]
    watched.jobs = None
    for _ in range(4):
        assert watched.after(slurm.GONE_AFTER_S / 2) == []
    assert capsys.readouterr().err.count("squeue: no controller") == 2
    watched.jobs = {"n1": {"77"}}
    assert watched.after(slurm.GONE_AFTER_S) == [JOB]


def test_records_of_one_node_need_one_query(watched, tmp_path):
    """Files that are no records stay, such as one that a prolog writes."""
    for name in ("n1:8", ".n1:9.tmp", "9", "10"):
        (tmp_path / "records" / name).write_text(f"{JOB[:-1]}{name[-1]}\n")
    watched.jobs = {"n1": {"8"}}
    watched.after(0)
    assert watched.after(slurm.GONE_AFTER_S) == [f"{JOB[:-1]}0", JOB, f"{JOB[:-1]}9"]
    assert len(watched.queries) == 2
    left = sorted(record.name for record in (tmp_path / "records").iterdir())
    assert left == [".n1:9.tmp", "n1:8", "n2:7"]


def test_jobs_of_a_node(tmp_path, monkeypatch):
    """Those that Slurm has there, whatever their partition."""
    program = tmp_path / "squeue"
    program.write_text(f'#!/bin/sh\necho "$@" >{tmp_path}/words\nprintf "7\\n70\\n"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert slurm.on_node("n1") == {"7", "70"}
    words = (tmp_path / "words").read_text().split()
    assert words == ["--all", "--noheader", "--nodelist=n1", "--format=%A"]
