# SPDX-License-Identifier: LGPL-2.1-or-later
"""Records of sutro-slurm: the epilog finds that of its job, and no record outlives its job.

The cgroup of a job is /system.slice/NODE_slurmstepd.scope/job_7 where slurmd was built for several
nodes on a machine, and /system.slice/slurmstepd.scope/job_7 elsewhere.
"""

import asyncio
import os
import subprocess

import pytest
from conftest import POLICIES
from sutro import slurm

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
