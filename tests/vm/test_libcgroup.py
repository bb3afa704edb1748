# SPDX-License-Identifier: LGPL-2.1-or-later
"""libcgroup's tools in a delegated scope: weights by true device time.

Documentation/guides/libcgroup.rst has the same commands. systemd makes the scope and leaves its
inside to the tools, sutrod gives io.weight of the cgroups there to the elevator.
"""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from rig.cgroup import Group
from rig.modeldisk import ModelDisk
from rig.sampler import device_time_ns
from rig.shell import run, wait_for
from rig.unit import CGROUP_ROOT, fio

SCOPE = "system.slice/rig-tools.scope"
HEAVY, LIGHT = f"{SCOPE}/heavy", f"{SCOPE}/light"
SOON_S = 60.0
RAMP_S, MEASURE_S = 2, 6
# No process may be in the scope itself once its children have controllers.
ENTER = f"mkdir {CGROUP_ROOT}/{SCOPE}/main && echo $$ > {CGROUP_ROOT}/{SCOPE}/main/cgroup.procs"


@pytest.fixture
def scope(leaf: ModelDisk) -> Iterator[Group]:
    """A delegated scope whose one process is in the cgroup `main`."""
    command = ["systemd-run", "--scope", "--quiet", f"--unit={Path(SCOPE).name}"]
    command += ["--slice=system.slice", "--property=Delegate=io"]
    holder = subprocess.Popen([*command, "sh", "-c", f"{ENTER} && exec sleep infinity"])
    made = Group(CGROUP_ROOT / SCOPE)
    main = made.folder / "main/cgroup.procs"
    wait_for(lambda: main.exists() and main.read_text(), f"{SCOPE} has no process", SOON_S)
    yield made
    run("systemctl", "kill", "--signal=KILL", Path(SCOPE).name)
    holder.wait()
    wait_for(lambda: not made.folder.exists(), f"{SCOPE} stays", SOON_S)


def read(disk: ModelDisk, cgroup: str, seed: int) -> subprocess.Popen:
    """Random reads that never end, started in a cgroup by cgexec."""
    job = fio(disk.node, "randread", "64k", 32, seed=seed)
    return subprocess.Popen(["cgexec", "-g", f"io:{cgroup}", "sh", "-c", job])


def ratio(disk: ModelDisk) -> float:
    """Device time of heavy over that of light, both at work."""
    paths = [f"/{HEAVY}", f"/{LIGHT}"]
    disk.reset()
    wait_for(lambda: all(disk.truth().of(path).rios for path in paths), "no reads", SOON_S)
    used = device_time_ns(disk, paths, RAMP_S, MEASURE_S)
    return used[paths[0]] / used[paths[1]]


def follows(cgroup: str, weight: int) -> None:
    """sutrod has given the weight to the elevator."""
    file = CGROUP_ROOT / cgroup / "io.sutro.weight"
    wait_for(lambda: file.read_text().startswith(f"default {weight}\n"), str(file), SOON_S)


def test_cgcreate_cgset_cgexec(leaf: ModelDisk, scope: Group) -> None:
    """A cgroup of weight 300 beside one of the default weight; then the weights are equal."""
    run("cgcreate", "-g", f"io:{HEAVY}", "-g", f"io:{LIGHT}")
    run("cgset", "-r", "io.weight=300", HEAVY)
    follows(HEAVY, 300)
    jobs = [read(leaf, cgroup, seed) for seed, cgroup in enumerate((HEAVY, LIGHT), start=1)]
    assert 2.85 <= ratio(leaf) <= 3.15
    run("cgset", "-r", "io.weight=100", HEAVY)
    follows(HEAVY, 100)
    assert 0.95 <= ratio(leaf) <= 1.05
    for job in jobs:
        job.terminate()
        job.wait()
    run("cgdelete", "-g", f"io:{HEAVY}", "-g", f"io:{LIGHT}")
    assert not (CGROUP_ROOT / HEAVY).exists()


def test_cgclassify(leaf: ModelDisk, scope: Group) -> None:
    """A running program moves, and its requests with it."""
    run("cgcreate", "-g", f"io:{HEAVY}", "-g", f"io:{LIGHT}")
    run("cgset", "-r", "io.weight=400", HEAVY)
    moved, _stays = (read(leaf, LIGHT, seed) for seed in (1, 2))
    wait_for(lambda: leaf.truth().of(f"/{LIGHT}").rios, "no reads", SOON_S)
    assert not leaf.truth().of(f"/{HEAVY}").rios
    run("cgclassify", "-g", f"io:{HEAVY}", moved.pid)
    follows(HEAVY, 400)
    assert 3.8 <= ratio(leaf) <= 4.2


def test_cgconfig(leaf: ModelDisk, scope: Group, tmp_path: Path) -> None:
    """A cgconfig.conf makes the cgroups with their weights."""
    file = tmp_path / "cgconfig.conf"
    weights = {HEAVY: 250, LIGHT: 50}
    file.write_text(
        "".join(
            f'group "{cgroup}" {{ io {{ io.weight = {weight}; }} }}\n'
            for cgroup, weight in weights.items()
        )
    )
    run("cgconfigparser", "-l", file)
    for seed, (cgroup, weight) in enumerate(weights.items(), start=1):
        follows(cgroup, weight)
        read(leaf, cgroup, seed)
    assert 4.75 <= ratio(leaf) <= 5.25
