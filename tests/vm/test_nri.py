# SPDX-License-Identifier: LGPL-2.1-or-later
"""Guarantees of pods: sutro-nri with Debian's containerd, and a client in place of the kubelet.

All pods have one volume, a file system on an LVM stripe, where the kubelet would mount it:

    /var/lib/kubelet/pods/UID/volumes/kubernetes.io~local-volume/data -> /srv/data

There is no API server in the guest.
"""

from __future__ import annotations

import io
import json
import shutil
import tarfile
from collections.abc import Iterator
from contextlib import ExitStack
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from rig import bus, container
from rig.container import DATA, SLOW_S, Volume
from rig.sampler import mbps_by_window
from rig.shell import CommandError, run, wait_for
from rig.stack import devno
from rig.unit import CGROUP_ROOT, Unit

KBPS = 20000
DECLARED_MBPS, FLOOR_MBPS = 40, 24
KEPT, WINDOW_S = 0.95, 2.0

CRI = Path("/usr/local/bin/cri")
PODS = Path("/var/lib/kubelet/pods")
CONTROL = Path("/run/sutro/policy.control")
RECORDS = Path("/run/sutro-nri")
CONF = Path("/etc/sutro/sutrod.conf.d/rig.conf")
IMAGE = "docker.io/lab/pod:1"
CONTAINERD = f"""\
version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{IMAGE}"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
  SystemdCgroup = true
[plugins."io.containerd.nri.v1.nri"]
  disable = false
  plugin_registration_timeout = "60s"
  plugin_request_timeout = "60s"
"""
NODE_NETWORK = 2


def cri(method: str, **request: Any) -> dict[str, Any]:
    """Call the runtime."""
    return json.loads(run(CRI, method, json.dumps(request), timeout_s=SLOW_S))


class Pod:
    """A pod with a container that reads the volume as fast as it may."""

    def __init__(self, name: str, **annotations: str):
        self.name, self.uid, self.id = name, f"0000-{name}", ""
        self.slice = f"kubepods-pod{name}.slice"
        self.cgroup = f"/kubepods.slice/{self.slice}"
        self.volume = PODS / self.uid / "volumes/kubernetes.io~local-volume/data"
        keys = {key.replace("_", "-"): value for key, value in annotations.items()}
        options = {"network": NODE_NETWORK}
        self.config = {
            "metadata": {"name": name, "uid": self.uid, "namespace": "lab"},
            "annotations": {f"io.sutro/{key}": value for key, value in keys.items()},
            "linux": {
                "cgroup_parent": self.cgroup,
                "security_context": {"namespace_options": options},
            },
        }

    def mount(self) -> None:
        """Mount the volume, as the kubelet does before it calls the runtime."""
        self.volume.mkdir(parents=True)
        run("mount", "--bind", DATA, self.volume)

    def start(self, seed: int = 1) -> Pod:
        """The sandbox and the container."""
        self.id = cri("RunPodSandbox", config=self.config)["pod_sandbox_id"]
        config = {
            "metadata": {"name": "reader"},
            "image": {"image": IMAGE},
            "command": container.reads(seed),
            "mounts": [
                {"container_path": "/usr", "host_path": "/usr", "readonly": True},
                {"container_path": "/data", "host_path": str(self.volume)},
            ],
            "linux": {},
        }
        made = cri(
            "CreateContainer", pod_sandbox_id=self.id, config=config, sandbox_config=self.config
        )
        cri("StartContainer", container_id=made["container_id"])
        return self

    def end(self) -> None:
        """All of it, whether it runs or not."""
        if self.id:
            cri("StopPodSandbox", pod_sandbox_id=self.id)
            cri("RemovePodSandbox", pod_sandbox_id=self.id)
        if self.volume.exists():
            run("umount", self.volume)
        shutil.rmtree(PODS / self.uid, ignore_errors=True)

    def read(self, file: str) -> str:
        """A file of its cgroup, for Sampler."""
        return (CGROUP_ROOT / self.cgroup[1:] / file).read_text()

    def floors(self) -> list[tuple[str, int, str]]:
        """Its floors: key, rate, state."""
        mine = [one for one in bus.promises() if one["unit"] == self.slice]
        return [(one["key"], one["value"], one["state"]) for one in mine]


class Node:
    """The pods of a test."""

    def __init__(self, volume: Volume):
        self.volume = volume
        self.pods: list[Pod] = []

    def pod(self, name: str, **annotations: str) -> Pod:
        """A pod that is ended with the test."""
        self.pods.append(Pod(name, **annotations))
        self.pods[-1].mount()
        return self.pods[-1]

    def clear(self) -> None:
        """End all pods."""
        while self.pods:
            self.pods.pop().end()

    def mbps(self, pods: list[Pod], seconds: float) -> dict[str, list[float]]:
        """The rate of each pod in each WINDOW_S of a time, half a second apart."""
        number = devno(self.volume.node)
        return mbps_by_window(self.volume.disks, pods, number, seconds, WINDOW_S)  # type: ignore


def left_behind() -> list[str]:
    """Policies and records of pods."""
    return [str(file) for file in (*CONTROL.glob("*kubepods-*"), *RECORDS.glob("*.json"))]


def import_image() -> None:
    """An image whose programs are those of the guest, in the mount /usr."""
    layer = container.root_tar(Path("/run/lab-layer.tar")).read_bytes()
    digest = sha256(layer).hexdigest()
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Entrypoint": ["/busybox", "sleep", "100000000"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
    }
    manifest = [{"Config": "config.json", "RepoTags": [IMAGE], "Layers": ["layer.tar"]}]
    file = Path("/run/lab-image.tar")
    with tarfile.open(file, "w") as tar:
        for name, content in (
            ("layer.tar", layer),
            ("config.json", json.dumps(config).encode()),
            ("manifest.json", json.dumps(manifest).encode()),
        ):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    run("ctr", "--namespace=k8s.io", "images", "import", file, timeout_s=SLOW_S)


def is_connected() -> bool:
    """The plugin is registered: a malformed annotation is refused."""
    try:
        probe = Pod("probe", weight="none")
        probe.id = cri("RunPodSandbox", config=probe.config)["pod_sandbox_id"]
    except CommandError as error:
        return "malformed" in str(error)
    probe.end()
    return False


def connected() -> None:
    """Wait until the plugin is registered."""
    wait_for(is_connected, "the plugin is registered", SLOW_S, 1)


@pytest.fixture(scope="module")
def machine() -> Iterator[Node]:
    """A node with a runtime, and a volume with a file."""
    with ExitStack() as undo:
        CONF.parent.mkdir(exist_ok=True)
        CONF.write_text(f"[Capacity]\nDevice={DATA} read={DECLARED_MBPS}M\nAdmission=refuse\n")
        undo.callback(CONF.unlink)
        volume = undo.enter_context(container.volume(KBPS))
        shutil.copy("/mnt/build/cri", CRI)
        CRI.chmod(0o755)
        Path("/etc/containerd").mkdir(exist_ok=True)
        # The runtime copies it for pods with the network of the node.
        run("cp", "/dev/null", "/etc/resolv.conf")
        Path("/etc/containerd/config.toml").write_text(CONTAINERD)
        run("systemctl", "start", "containerd", "sutro-nri", timeout_s=SLOW_S)
        undo.callback(run, "systemctl", "stop", "sutro-nri", "containerd")
        import_image()
        connected()
        yield Node(volume)


@pytest.fixture
def node(machine: Node) -> Iterator[Node]:
    """The node without pods, before and after; and nothing of them is left."""
    yield machine
    machine.clear()
    wait_for(lambda: not left_behind(), f"nothing stale: {left_behind()}", SLOW_S)


def test_guaranteed_pod_beside_two(node: Node) -> None:
    """It has 0.95 of its floor in the worst 2 s, and loses it without the daemon."""
    with bus.none_infeasible():
        keep_and_lose(node)


def keep_and_lose(node: Node) -> None:
    """Measure a pod with a floor beside noisy ones, with the daemon and without it."""
    pod = node.pod("kept", **{"read-min.data": f"{FLOOR_MBPS}M"}).start()
    noisy = [node.pod(f"noisy{n}").start(seed=n + 2) for n in range(2)]

    def held() -> bool:
        return pod.floors() == [("ReadBandwidthMin", FLOOR_MBPS * 10**6, "held")]

    wait_for(held, f"held: {bus.promises()}", SLOW_S)
    with_floor = node.mbps([pod, *noisy], 10)
    run("systemctl", "stop", "sutrod")
    without = node.mbps([pod], 6)[pod.name]
    run("systemctl", "start", "sutrod")
    print({name: (min(rates), max(rates)) for name, rates in with_floor.items()}, without)
    assert min(with_floor[pod.name]) >= KEPT * FLOOR_MBPS
    assert max(without) < KEPT * FLOOR_MBPS
    wait_for(held, "held again", SLOW_S)


def refused(pod: Pod) -> str:
    """The text with which the runtime refuses a pod."""
    with pytest.raises(CommandError) as caught:
        pod.start()
    return str(caught.value)


def test_refused(node: Node) -> None:
    """A malformed annotation, a missing volume, one out of reach, and more than the capacity."""
    form = "bytes per second, such as 200M"
    assert form in refused(node.pod("bad1", **{"read-min.data": "fast"}))
    assert "io.sutro/KEY.VOLUME" in refused(node.pod("bad2", **{"read-mim.data": "1M"}))
    assert 'volume "log" is missing' in refused(node.pod("bad3", **{"read-min.log": "1M"}))
    place = {"read-min.x": "1M", "path.x": "reader:/nowhere"}
    assert "no mount and no block device" in refused(node.pod("bad4", **place))
    memory = node.pod("bad5", **{"read-min.data": "1M"})
    run("mount", "-t", "tmpfs", "tmpfs", memory.volume)
    message = refused(memory)
    run("umount", memory.volume)
    assert 'volume "data" is out of reach' in message
    assert "tmpfs: it is in memory" in message
    with bus.none_infeasible():
        first = node.pod("first", **{"read-min.data": "30M"}).start()
        too_much = node.pod("second", **{"read-min.data": "11M"})
        assert "can promise 40M, of which 30M are promised" in refused(too_much)
        mine = [one["unit"] for one in bus.promises()]
        assert mine == ["kubepods-podfirst.slice"]
        wait_for(lambda: first.floors()[0][2] == "held", f"held: {bus.promises()}", SLOW_S)


def test_image_is_complete(tmp_path: Path) -> None:
    """The program runs with the files that the Containerfile copies, and without any others."""
    text = Path("/usr/share/sutro-nri/Containerfile").read_text()
    lines = [line.split(maxsplit=1) for line in text.splitlines() if line and line[0] != "#"]
    assert [word for word, _ in lines] == ["FROM", "COPY", "ENTRYPOINT"]
    base, copied, entry = (rest for _, rest in lines)
    source, target = copied.split()
    assert base == "scratch"
    shutil.copy(f"/usr/bin/{source}", tmp_path / target.removeprefix("/"))
    assert "usage: sutro-nri plugin" in run("chroot", tmp_path, *json.loads(entry), "--help")


@pytest.mark.parametrize(
    "how", ["end", "containerd", "plugin", "sutrod", "without plugin", "without sutrod"]
)
def test_nothing_stays(node: Node, how: str) -> None:
    """Pods keep their policy over restarts, and leave none, whatever is away when they end."""
    pod = node.pod("one", **{"read-min.data": "5M"}).start()
    path = {"read-max.x": "20M", "path.x": "reader:/data"}
    node.pod("two", **path).start(seed=2)
    floor = ("ReadBandwidthMin", 5 * 10**6)
    unit = {"containerd": "containerd", "plugin": "sutro-nri", "sutrod": "sutrod"}.get(how)
    if unit:
        run("systemctl", "restart", unit, timeout_s=SLOW_S)
    if unit in ("containerd", "sutro-nri"):
        connected()
    wait_for(lambda: [f[:2] for f in pod.floors()] == [floor], f"{how}: a floor", SLOW_S)
    assert len(left_behind()) == 4, how
    away = {"without plugin": "sutro-nri", "without sutrod": "sutrod"}.get(how)
    if away:
        run("systemctl", "stop", away)
    node.clear()
    if away:
        assert left_behind()
        run("systemctl", "start", away)
    wait_for(lambda: not left_behind(), f"{how}: {left_behind()}", SLOW_S)


def test_capacity_of_the_node(node: Node) -> None:
    """Floors of services are subtracted, and those of pods are not."""
    node.pod("one", **{"read-min.data": "5M"}).start()
    host = Unit("host", "exec sleep 100000")
    assignment = ("1", "ReadBandwidthMin", f"{DATA} 7M")
    host.start()
    try:
        bus.call("SetPolicy", "sa(ss)s", host.unit, *assignment, "runtime")
        wait_for(lambda: len(bus.promises()) == 2, "two floors", SLOW_S)
        patch = json.loads(run("sutro-nri", "capacity", "--name", f"scratch={DATA}"))
    finally:
        bus.call("ResetPolicy", "ss", host.unit, "runtime")
        host.stop()
    path = "/status/capacity/io.sutro~1read.scratch"
    amount = str(DECLARED_MBPS - 7)
    assert patch == [{"op": "add", "path": path, "value": amount}]
