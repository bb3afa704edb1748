# SPDX-License-Identifier: LGPL-2.1-or-later
"""sutroctl slurm-gres: lines of gres.conf and slurm.conf for rates, or for declared capacities."""

import pytest
from conftest import NOWHERE, sutroctl
from sutro import slurm
from test_slurm import CONF, JOB, SERVICE, pairs


def test_gres():
    run = sutroctl("slurm-gres", "--node", "n1", "read=/scratch:400M", "write=/dev/vg/a:2999K")
    assert run.out.splitlines() == [
        "# gres.conf",
        "NodeName=n1 Name=sutro_read Type=scratch Count=400 Flags=CountOnly",
        "NodeName=n1 Name=sutro_write Type=dev__vg__a Count=2 Flags=CountOnly",
        "# slurm.conf; the last line goes into that of the node",
        "GresTypes=sutro_read,sutro_write",
        "NodeName=n1 Gres=sutro_read:scratch:400,sutro_write:dev__vg__a:2",
    ]
    data = sutroctl("slurm-gres", "read=/scratch:400M", "--json").json()
    assert data["resources"] == [{"name": "sutro_read", "type": "scratch", "count": 400}]


@pytest.mark.parametrize("word", ["foo=/srv:1G", "read=/a b:1G", "read=/srv:1K", "read=/a:1.5G"])
def test_gres_with_a_mistake(word):
    """The error has the form of an argument, which is not that of a job."""
    run = sutroctl("slurm-gres", word)
    assert (run.status, run.out) == (2, "") and "sutro:" not in run.err
    assert "RATE a whole number, 1M to 1000T" in run.err
    example = run.err.rpartition("such as ")[2].strip()
    assert sutroctl("slurm-gres", example).status == 0


def test_gres_of_another_machine():
    """The lines are for the node of --host, whose capacities they have."""
    words = ("slurm-gres", "read=/scratch:400M")
    assert sutroctl("-H", "root@n7.example.org", *words, "--json").json()["node"] == "n7"
    assert sutroctl("-H", "n7", *words, "--node", "n8", "--json").json()["node"] == "n8"
    run = sutroctl("-H", "192.0.2.7", *words)
    assert (run.status, run.out) == (2, "") and "name it: --node NAME" in run.err


@pytest.mark.parametrize(
    "name",
    "n1|n-1.example_a|node[1-4]|node[001-3,7]|r[0-1]n[2-3]x|[1-4]|n[1-65536]|n[10-010]|n1,n2|"
    "node[1-4,7],x|defaults".split("|"),
)
def test_gres_of_nodes(name):
    """Names that "scontrol show hostnames" of Slurm 24.11.5 accepts."""
    run = sutroctl("slurm-gres", "--node", name, "read=/scratch:400M")
    assert (run.status, run.err) == (0, "")
    assert run.out.splitlines()[-1] == f"NodeName={name} Gres=sutro_read:scratch:400"


@pytest.mark.parametrize(
    "name",
    "a b| |a=b|a#b|a\"b|a'b|a\\b|a\nb|a:b|a/b|a;b|a*b|-a|n,-a|ä|,|n,|n1,,n2|node[4-1]|node[a-b]|"
    "node[]|node[1|node1]|node[1,]|node[1 ,2]|node[1-2-3]|n[1-65537]|DEFAULT|n1,default".split("|"),
)
def test_gres_of_a_node_that_slurm_cannot_name(name):
    """Slurm refuses the line, or takes it for another one."""
    run = sutroctl("slurm-gres", f"--node={name}", "read=/scratch:400M", **NOWHERE)
    assert (run.status, run.out) == (2, "")
    message, form = run.err.rsplit("\n", 2)[:2]
    assert message == f"sutroctl: '{name}' is no name of a node for Slurm"
    assert "node[1-4,7] or n1,n2: --node NAME" in form


def test_gres_of_a_machine_that_slurm_cannot_name(monkeypatch):
    """Before any call, for the host's name, too."""
    monkeypatch.setattr(slurm.socket, "gethostname", lambda: "a b")
    run = sutroctl("slurm-gres", **NOWHERE)
    assert run.status == 2 and "'a b' is no name of a node for Slurm" in run.err


def gres():
    """Counts by type that sutroctl slurm-gres prints without rates, and skipped capacities."""
    run = sutroctl("slurm-gres", "--node", "n1", "--json").json()
    return {one["type"]: one["count"] for one in run["resources"]}, run["skipped"]


def test_gres_of_declared_capacities(machine, sutrod):
    """Floors of services are not for jobs; floors of jobs are what the lines are about."""
    machine.write(CONF, "[Capacity]\nDevice=/srv read=400M read-iops=9K\nDevice=/dev/sda read=1M\n")
    sutrod.call("Reload")
    sutrod.call("SetPolicy", SERVICE, pairs("ReadBandwidthMin=/srv 90M"), "runtime")
    assert gres() == ({"srv": 310, "dev__sda": 1}, [])
    sutrod.call("SetPolicy", JOB, pairs("ReadBandwidthMin=/srv 60M"), "runtime")
    machine.cgroup(JOB)
    sutrod.until(lambda: JOB in [one[1] for one in sutrod.call("ListPromiseStates")])
    assert gres() == ({"srv": 310, "dev__sda": 1}, [])
    sutrod.call("SetPolicy", JOB, pairs("ReadBandwidthMin=/srv 10%"), "runtime")
    sutrod.until(lambda: gres() == ({"srv": 310, "dev__sda": 1}, []))
    sutrod.call("SetPolicy", SERVICE, pairs("ReadBandwidthMin=/dev/sda 600K"), "runtime")
    assert gres() == (
        {"srv": 310},
        ["ReadBandwidthMin: less than 1M of '/dev/sda' is left for jobs"],
    )


def test_gres_of_a_volume_that_is_not_mounted(machine, sutrod):
    """Without a device, nothing can be promised."""
    machine.write(CONF, "[Capacity]\nDevice=/mnt/away read=400M\n")
    sutrod.call("Reload")
    run = sutroctl("slurm-gres")
    assert (run.status, run.out) == (1, "") and "'/mnt/away' leads to no device" in run.err


def test_gres_of_a_path_that_slurm_cannot_name(machine, sutrod):
    """The others are printed, and a comment names it."""
    machine.write(CONF, "[Capacity]\nDevice=/srv read=400M\nDevice=/dev/disk/my.disk read=7M\n")
    sutrod.call("Reload")
    out = sutroctl("slurm-gres", "--node", "n1").out.splitlines()
    assert out[0].startswith(
        "# not counted: ReadBandwidthMin: '/dev/disk/my.disk' is no path for Slurm"
    )
    assert out[-1] == "NodeName=n1 Gres=sutro_read:srv:400"
