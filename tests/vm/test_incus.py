# SPDX-License-Identifier: LGPL-2.1-or-later
"""Containers of Debian's Incus: limits.disk.priority by true device time, and policies.

Documentation/guides/incus.rst has the same options and policies.
"""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from rig import container
from rig.container import DATA, SLOW_S, Engine
from rig.shell import run

IMAGE = "lab"
POOL = "/var/lib/lab-pool"
PRESEED = {
    "storage_pools": [{"name": "default", "driver": "dir", "config": {"source": POOL}}],
    "profiles": [
        {
            "name": "default",
            "devices": {
                "root": {"type": "disk", "path": "/", "pool": "default"},
                "usr": {"type": "disk", "path": "/usr", "source": "/usr", "readonly": "true"},
                "data": {"type": "disk", "path": "/data", "source": str(DATA), "readonly": "true"},
            },
        }
    ],
}


class Incus(Engine):
    """The daemon, and the containers of a test."""

    PROGRAM = ("incus",)

    def start(self, name: str, *options: str, project: str = "default") -> str:
        """Start a container that reads the volume; its cgroup."""
        self.names.append(name)
        job = " ".join(container.reads(len(self.names)))
        words = [f"--config={option}" for option in (f"environment.JOB={job}", *options)]
        self("launch", IMAGE, name, f"--project={project}", *words)
        return f"/lxc.payload.{name}" if project == "default" else f"/lxc.payload.{project}_{name}"

    def clear(self) -> None:
        """Remove all containers; nothing of them is left."""
        found = json.loads(self("list", "--all-projects", "--format=json"))
        self.names.clear()
        for one in found:
            self("delete", "--force", f"--project={one['project']}", one["name"])
        if found:
            container.forgotten("lxc.payload", "lxc.monitor")


def metadata(folder: Path) -> Path:
    """The archive that describes the image."""
    text = folder / "metadata.yaml"
    text.write_text(json.dumps({"architecture": "x86_64", "creation_date": 1}))
    file = folder / "lab-metadata.tar"
    with tarfile.open(file, "w") as tar:
        tar.add(text, text.name)
    return file


@pytest.fixture(scope="module")
def engine() -> Iterator[Incus]:
    """Incus with a pool and an image."""
    with ExitStack() as undo:
        made = Incus(undo.enter_context(container.volume()))
        run("systemctl", "start", "incus.socket", "incus", timeout_s=SLOW_S)
        undo.callback(run, "systemctl", "stop", "incus.socket", "incus", timeout_s=SLOW_S)
        Path(POOL).mkdir(exist_ok=True)
        made("admin", "init", "--preseed", stdin=json.dumps(PRESEED))
        root = container.root_tar(Path("/run/lab-incus.tar"))
        made("image", "import", str(metadata(Path("/run"))), str(root), f"--alias={IMAGE}")
        yield made


@pytest.fixture
def incus(engine: Incus) -> Iterator[Incus]:
    """Incus without containers, before and after."""
    yield engine
    engine.clear()


def test_priorities(incus: Incus) -> None:
    """A weight is 100 times the priority; without one it is 100, and 500 after an unset."""
    cgroups = [incus.start(f"c{n}", f"limits.disk.priority={n}") for n in (0, 3)]
    cgroups.append(incus.start("plain"))
    for cgroup, weight in zip(cgroups, (10, 300, 100), strict=True):
        assert container.weight(cgroup, "io.weight") == weight
        container.becomes(cgroup, weight)
    _least, heavy, plain = cgroups
    assert container.explained(heavy) == (heavy, {300}, {f"io.weight 300 of {heavy}"})
    assert incus.volume.ratio(heavy, plain) == pytest.approx(3, rel=0.05)
    # Running containers follow their own setting and that of the profile.
    incus("config", "set", "c3", "limits.disk.priority=8")
    incus("profile", "set", "default", "limits.disk.priority=2")
    container.becomes(heavy, 800)
    container.becomes(plain, 200)
    # systemd leaves these cgroups alone.
    run("systemctl", "daemon-reload")
    run("systemd-run", "--wait", "--quiet", "--property=IOWeight=200", "true")
    container.becomes(heavy, 800)
    incus("profile", "unset", "default", "limits.disk.priority")
    container.becomes(plain, 500)
    incus("restart", "--force", "plain")
    container.becomes(plain, 100)


def test_policy_by_name(incus: Incus) -> None:
    """incus.policy is for each container, also of a project, and a policy for one container."""
    web = "[Match]\nCgroup=/lxc.payload.web\n[X-Sutro]\n"
    web += f"ReadBandwidthMin={DATA} 4M\n"
    incus("project", "create", "shop", *(
        f"--config=features.{kind}=false" for kind in ("images", "profiles")
    ))  # fmt: skip
    try:
        with container.policies("incus.policy", web=web):
            cgroups = [incus.start("web"), incus.start("web", project="shop")]
            assert cgroups == ["/lxc.payload.web", "/lxc.payload.shop_web"]
            for cgroup, floor in zip(cgroups, (4 * 10**6, 5), strict=True):
                found = container.reached(cgroup, "ReadBandwidthMin", "held")
                assert (found["ReadBandwidthMin"][0], found["WriteBandwidthMin"][0]) == (floor, 5)
            assert not container.stated("/lxc.monitor.web")
            incus.clear()
    finally:
        incus("project", "delete", "shop")
