# SPDX-License-Identifier: LGPL-2.1-or-later
"""Containers of Debian's Podman with crun: weights by true device time, policies, Quadlets.

Documentation/guides/podman.rst and containers.rst have the same options and policies.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from rig import container
from rig.container import DATA, SLOW_S, Engine
from rig.shell import CommandError, run, wait_for

IMAGE = "localhost/lab:1"
# Under the filter of system calls, fio gets errors when it waits for requests.
UNFILTERED = "--security-opt=seccomp=unconfined"
MOUNTS = ("/usr:/usr:ro", f"{DATA}:/data:ro")
QUADLETS = Path("/etc/containers/systemd")
HOOKS = Path("/etc/containers/oci/hooks.d")
HOOKS_CONF = Path("/etc/containers/containers.conf.d/hooks.conf")
QUADLET = """\
[Container]
Image={image}
Network=none
Pull=never
SeccompProfile=unconfined
Volume={mounts[0]}
Volume={mounts[1]}
Exec={job}

[Service]
{service}

[X-Sutro]
ReadBandwidthMin={data} {floor}M
"""


class Podman(Engine):
    """The containers of a test."""

    # As from a login: in a service it leaves the monitor in the service.
    PROGRAM = ("env", "--unset=INVOCATION_ID", "podman")
    REMOVE = ("rm", "--force", "--time=0")

    def start(self, name: str, *options: str, manager: str = "systemd") -> str:
        """Start a container that reads the volume; its ID."""
        self.names.append(name)
        mounts = [f"--volume={mount}" for mount in MOUNTS]
        job = container.reads(len(self.names))
        words = ("--detach", f"--name={name}", "--network=none", UNFILTERED, *mounts, *options)
        return self(f"--cgroup-manager={manager}", "run", *words, IMAGE, *job)


def scope(container_id: str) -> str:
    """The cgroup of a container."""
    return f"/machine.slice/libpod-{container_id}.scope"


@pytest.fixture(scope="module")
def engine() -> Iterator[Podman]:
    """Podman with the settings of Debian, and an image."""
    with ExitStack() as undo:
        made = Podman(undo.enter_context(container.volume()))
        made("import", str(container.root_tar(Path("/run/lab-podman.tar"))), IMAGE)
        yield made


@pytest.fixture
def podman(engine: Podman) -> Iterator[Podman]:
    """Podman without containers, before and after."""
    yield engine
    engine.clear()


@pytest.fixture
def quadlet() -> Iterator[Path]:
    """The folder of Quadlets, whose services end with the test."""
    QUADLETS.mkdir(parents=True, exist_ok=True)
    yield QUADLETS
    files = list(QUADLETS.glob("*.container"))
    # db*.service would be dbus.service as well.
    names = [f"{file.stem}{'*' * file.stem.endswith('@')}.service" for file in files]
    for file in files:
        file.unlink()
    for verb in ("stop", "reset-failed"):
        run("systemctl", verb, *names, timeout_s=SLOW_S)
    run("systemctl", "daemon-reload")
    container.forgotten("libpod", *(name.removesuffix("*.service") for name in names))


def test_weights_and_limits(podman: Podman) -> None:
    """--cgroup-conf=io.weight is the weight, crun converts --blkio-weight; all have a limit."""
    options = {"--cgroup-conf=io.weight=300": 300, "--blkio-weight=200": 1200, "": 100}
    with container.policies("podman.policy"):
        cgroups = {}
        for number, (option, weight) in enumerate(options.items()):
            name = podman.start(f"c{number}", *filter(None, [option]))
            cgroups[weight] = scope(name)
            unit = f"libpod-{name}.scope"
            shown = run("systemctl", "show", "--property=IOWeight", "--value", unit).strip()
            assert shown == (str(weight) if option else "[not set]")
            container.becomes(scope(name), weight)
        reason = f"IOWeight=300 of {Path(cgroups[300]).name}"
        wanted = cgroups[300], {300}, {reason}
        assert container.explained(Path(cgroups[300]).name) == wanted
        times = podman.volume.device_time_ns([cgroups[n] for n in (1200, 300, 100)])
        assert times[0] / times[2] == pytest.approx(12, rel=0.1)
        assert times[1] / times[2] == pytest.approx(3, rel=0.1)
        for cgroup in cgroups.values():
            container.promised(cgroup, {"WriteBandwidthMax": (200 * 10**6, "stated")})
            assert set(container.limits(cgroup).values()) == {
                "rbps=max wbps=200000000 riops=max wiops=max"
            }
        # The process beside a container has a scope of its own, which the policy does not match.
        monitor = f"libpod-conmon-{name}.scope"
        assert monitor in container.known()
        assert not container.stated(monitor)


@pytest.fixture
def hook() -> Iterator[None]:
    """The hook is enabled as in the guide."""
    files = {
        HOOKS / "sutro-oci.json": (container.EXAMPLES / "sutro-oci.json").read_text(),
        HOOKS_CONF: f'[engine]\nhooks_dir = ["/usr/share/containers/oci/hooks.d", "{HOOKS}"]\n',
    }
    for file, text in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    yield
    for file in files:
        file.unlink()


def test_annotations(podman: Podman, hook: None) -> None:
    """The policy of a container lasts as long as it runs; with a mistake, it does not start."""
    floor = "--annotation=io.sutro/read-min.db=4M"
    name = podman.start("a0", "--annotation=io.sutro/path.db=/data", floor)
    unit = f"libpod-{name}.scope"
    (one,) = container.stated(unit)
    assert (one["key"], one["value"]) == ("ReadBandwidthMin", f"{DATA} 4M")
    container.promised(scope(name), {"ReadBandwidthMin": (4 * 10**6, "held")})
    podman("stop", "--time=0", "a0")
    wait_for(lambda: not container.stated(unit), f"no policy of {unit}", SLOW_S, 1)
    with pytest.raises(CommandError, match="hook `/usr/bin/sutro-oci`"):
        podman.start("a1", floor)
    text = run("journalctl", "--identifier=sutro-oci", "--output=cat", "--no-pager")
    assert "annotation io.sutro/read-min.db: the container has no named volume 'db'" in text
    assert "--annotation io.sutro/path.db=PATH" in text
    assert "running" not in podman("ps", "--all", "--format={{.State}}")


def test_containers_that_end_without_their_hook(podman: Podman, hook: None) -> None:
    """A service resets the policy: one whose monitor is killed, one that ends without sutrod."""
    options = ("--annotation=io.sutro/path.db=/data", "--annotation=io.sutro/read-min.db=1M")
    killed, stopped = (f"libpod-{podman.start(f'a{n}', *options)}.scope" for n in range(2))
    for pid in podman("inspect", "--format={{.State.ConmonPid}} {{.State.Pid}}", "a0").split():
        run("kill", "-KILL", pid)
    wait_for(lambda: not container.stated(killed), f"no policy of {killed}", SLOW_S, 1)
    assert container.stated(stopped)
    run("systemctl", "stop", "sutrod.service", timeout_s=SLOW_S)
    podman("stop", "--time=0", "a1")
    run("systemctl", "start", "sutrod.service", timeout_s=SLOW_S)
    wait_for(lambda: not container.stated(stopped), f"no policy of {stopped}", SLOW_S, 1)
    state = ("systemctl", "show", "--property=ActiveState", "--value", "sutro-oci.service")
    wait_for(lambda: run(*state).strip() == "inactive", "the end of the service", SLOW_S, 1)
    # Podman removes such a container with the second try: the first one sets its state.
    with suppress(CommandError):
        podman("rm", "--force", "--time=0", "a0")


def test_tenants(podman: Podman) -> None:
    """tenants.policy: a floor of the slice, whose share bounds its containers."""
    with container.policies("tenants.policy"):
        podman.start("a0", "--cgroup-parent=tenant-a.slice", "--cgroup-conf=io.weight=1000")
        podman.start("b0", "--cgroup-parent=tenant-b.slice")
        slices = [f"/tenant.slice/tenant-{name}.slice" for name in "ab"]
        for one in slices:
            found = container.reached(one, "ReadBandwidthMin", "held")
            assert found["ReadBandwidthMin"][0] == found["WriteBandwidthMin"][0] == 10
        assert podman.volume.ratio(*slices) == pytest.approx(1, rel=0.1)


def test_quadlet(podman: Podman, quadlet: Path) -> None:
    """A Quadlet is a service with a weight and a floor, a template is one for each instance."""
    job = " ".join(container.reads())

    def write(name: str, service: str, floor: int) -> None:
        keys = {"service": service, "data": DATA, "floor": floor, "mounts": MOUNTS}
        text = QUADLET.format(image=IMAGE, job=job, **keys)
        (quadlet / f"{name}.container").write_text(text)

    write("db", "IOWeight=300", 4)
    write("worker@", "", 1)
    run("systemctl", "daemon-reload")
    services = {"db": ("/system.slice/db.service", 4)}
    slices = "/system.slice/system-worker.slice"
    services |= {f"worker@{n}": (f"{slices}/worker@{n}.service", 1) for n in (1, 2)}
    run("systemctl", "start", *services, timeout_s=SLOW_S)
    for cgroup, floor in services.values():
        container.promised(cgroup, {"ReadBandwidthMin": (floor * 10**6, "held")})
    assert "IOWeight=300" in run("systemctl", "show", "--property=IOWeight", "db.service")
    (one,) = container.stated("db.service")
    assert "/db.service:" in one["source"]


def test_cgroupfs(podman: Podman) -> None:
    """With the cgroup manager cgroupfs, a container is a cgroup below /libpod_parent."""
    match = "[Match]\nCgroup=/libpod_parent/libpod-*\n[X-Sutro]\nWriteBandwidthMax=any 200M\n"
    with container.policies(libpod=match):
        options = ("--cgroup-conf=io.weight=300", "--cgroup-conf=io.weight=150")
        heavy, light = (
            f"/libpod_parent/libpod-{podman.start(f'c{n}', option, manager='cgroupfs')}"
            for n, option in enumerate(options)
        )
        container.becomes(heavy, 300)
        container.becomes(light, 150)
        assert container.explained(heavy)[:2] == (heavy, {300})
        container.promised(heavy, {"WriteBandwidthMax": (200 * 10**6, "stated")})
        assert podman.volume.ratio(heavy, light) == pytest.approx(2, rel=0.05)
