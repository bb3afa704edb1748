# SPDX-License-Identifier: LGPL-2.1-or-later
"""Containers of Debian's Docker: weights by true device time, and policies.

Documentation/guides/podman.rst and containers.rst have the same options and policies.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from rig import container
from rig.container import DATA, SLOW_S, Engine
from rig.shell import run

IMAGE = "lab"
SETTINGS = Path("/etc/docker/daemon.json")
# The guest has no network, and none of the modules of a bridge.
OFFLINE = {"bridge": "none", "iptables": False, "ip6tables": False}


class Docker(Engine):
    """The daemon, and the containers of a test."""

    PROGRAM = ("docker",)

    def start(self, name: str, *options: str) -> str:
        """Start a container that reads the volume; its ID."""
        self.names.append(name)
        mounts = ("--volume=/usr:/usr:ro", f"--volume={DATA}:/data:ro", "--network=none")
        job = container.reads(len(self.names))
        return self("run", "--detach", f"--name={name}", *mounts, *options, IMAGE, *job)


def scope(container_id: str) -> str:
    """The cgroup of a container with the systemd cgroup driver."""
    return f"/system.slice/docker-{container_id}.scope"


@pytest.fixture(scope="module")
def engine() -> Iterator[Docker]:
    """Docker with the settings of Debian, and an image."""
    with ExitStack() as undo:
        made = Docker(undo.enter_context(container.volume()))
        SETTINGS.parent.mkdir(exist_ok=True)
        SETTINGS.write_text(json.dumps(OFFLINE))
        run("systemctl", "start", "docker", timeout_s=SLOW_S)
        undo.callback(run, "systemctl", "stop", "docker.socket", "docker", "containerd")
        made("import", str(container.root_tar(Path("/run/lab-docker.tar"))), IMAGE)
        yield made


@pytest.fixture
def docker(engine: Docker) -> Iterator[Docker]:
    """Docker without containers, before and after."""
    yield engine
    engine.clear()


@pytest.fixture
def bfq(request: pytest.FixtureRequest) -> Iterator[bool]:
    """The kernel has io.bfq.weight, or not."""
    if not request.param:
        run("modprobe", "--remove", "bfq")
    yield request.param
    run("modprobe", "bfq")


# runc writes --blkio-weight to io.bfq.weight, or 1 + (number - 10) * 9999 / 990 to io.weight.
@pytest.mark.parametrize(
    ("bfq", "option", "weight", "file"),
    [(True, 300, 300, "io.bfq.weight"), (False, 40, 304, "io.weight")],
    indirect=["bfq"],
    ids=["bfq", "no bfq"],
)
def test_blkio_weight(docker: Docker, bfq: bool, option: int, weight: int, file: str) -> None:
    """A number of --blkio-weight beside a container without one."""
    heavy = docker.start("heavy", f"--blkio-weight={option}")
    light = docker.start("light")
    assert container.weight(scope(heavy), file) == weight
    container.becomes(scope(heavy), weight)
    container.becomes(scope(light), 100)
    cgroup, weights, reasons = container.explained(f"docker-{heavy}.scope")
    assert (cgroup, weights) == (scope(heavy), {weight})
    assert all(reason.startswith(f"{file} {weight} of docker-") for reason in reasons), reasons
    assert docker.volume.ratio(scope(heavy), scope(light)) == pytest.approx(weight / 100, rel=0.05)


def test_policies_and_updates(docker: Docker) -> None:
    """podman.policy, a policy of one run, which has to be reset, and a weight that is changed."""
    with container.policies("podman.policy"):
        name = docker.start("db")
        unit, cgroup = f"docker-{name}.scope", scope(name)
        ceiling = {"WriteBandwidthMax": (200 * 10**6, "stated")}
        container.promised(cgroup, ceiling)
        limits = container.limits(cgroup)
        assert limits and set(limits.values()) == {"rbps=max wbps=200000000 riops=max wiops=max"}
        assert not container.stated("docker.service")
        run("sutroctl", "policy", "set", "--runtime", unit, f"ReadBandwidthMin={DATA} 4M")
        container.promised(cgroup, ceiling | {"ReadBandwidthMin": (4 * 10**6, "held")})
        run("sutroctl", "policy", "reset", "--runtime", unit)
        container.promised(cgroup, ceiling)
    docker("update", "--blkio-weight=700", "db")
    container.becomes(cgroup, 700)


def test_cgroupfs(docker: Docker) -> None:
    """With the driver cgroupfs, a container is /docker/ID: its weight, and policies by path."""
    # The last test: the settings stay.
    driver = {"exec-opts": ["native.cgroupdriver=cgroupfs"]}
    SETTINGS.write_text(json.dumps(OFFLINE | driver))
    run("systemctl", "restart", "docker", timeout_s=SLOW_S)
    match = "[Match]\nCgroup=/docker/*\n[X-Sutro]\nWriteBandwidthMax=any 200M\n"
    with container.policies(docker=match):
        heavy, light = (
            f"/docker/{docker.start(name, f'--blkio-weight={weight}')}"
            for name, weight in (("heavy", 300), ("light", 150))
        )
        container.becomes(heavy, 300)
        container.becomes(light, 150)
        assert container.explained(heavy)[:2] == (heavy, {300})
        container.promised(heavy, {"WriteBandwidthMax": (200 * 10**6, "stated")})
        assert docker.volume.ratio(heavy, light) == pytest.approx(2, rel=0.05)
