# SPDX-License-Identifier: LGPL-2.1-or-later
"""The policies that are shipped as examples apply to the names that their pages state.

tests/ctl/test_guides.py checks that they have no mistake. tests/vm/test_docker.py, test_podman.py,
test_incus.py, test_libvirt.py and test_sessions.py run them with the engines, but not those of
Kubernetes.
"""

from pathlib import Path

import pytest
from fakemachine import Machine, Sutrod
from test_cgroup_policies import in_force
from test_policies import ETC, X

TOP = Path(__file__).resolve().parents[2]
ID = "4f5e7c0d9a" * 6 + "beef"
WRITES = "WriteBandwidthMax=any 200M"
FLOORS = [f"{way}BandwidthMin=any {{}}%" for way in ("Read", "Write")]
TENTH, TWENTIETH = ([floor.format(part) for floor in FLOORS] for part in (10, 5))
MACHINE = r"machine-qemu\x2d12\x2dweb.scope"
DISK = "/var/lib/containerd"
SETTINGS = {
    "containers.policy": {
        "kubepods-burstable.slice": [
            f"ReadBandwidthMin={DISK} 100M",
            f"ReadIOPSMin={DISK} 2K",
            "Weight=300",
        ],
        "kubepods-burstable-pod1.slice": [],
        "kubepods-besteffort.slice": [],
    },
    "containers-besteffort.policy": {
        "kubepods-besteffort.slice": ["Importance=10", "Weight=20"],
        "kubepods-burstable.slice": [],
    },
    "podman.policy": {
        f"libpod-{ID}.scope": [WRITES],
        f"docker-{ID}.scope": [WRITES],
        # Its ID begins with a c, which is hexadecimal, too.
        f"libpod-c{ID[1:]}.scope": [WRITES],
        f"libpod-conmon-{ID}.scope": [],
        "docker.service": [],
    },
    "tenants.policy": {"tenant-a.slice": TENTH, "tenant.slice": [], "tenant-a.service": []},
    "machines.policy": {
        MACHINE: [*TWENTIETH, "WriteBandwidthMax=any 300M"],
        f"libpod-{ID}.scope": [],
        "machine.slice": [],
    },
    "incus.policy": {
        "/lxc.payload.web": TWENTIETH,
        "/lxc.payload.web/system.slice": [],
        "/lxc.monitor.web": [],
    },
    "users.policy": {"user-1000.slice": [WRITES], "user.slice": [], "user@1000.service": []},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_units_of_an_example(machine: Machine, sutrod: Sutrod, name: str) -> None:
    machine.write(f"{ETC}{name}", (TOP / "policies" / name).read_text())
    sutrod.start()
    assert list(sutrod.property("PolicyErrors")) == []
    found = {subject: sorted(in_force(sutrod, subject)) for subject in SETTINGS[name]}
    assert found == {subject: sorted(wanted) for subject, wanted in SETTINGS[name].items()}


def test_a_machine_by_its_name(machine: Machine, sutrod: Sutrod) -> None:
    """The glob of Documentation/guides/libvirt.rst: a dash of libvirt's name is escaped."""
    match = "[Match]\nUnit=machine-qemu?x2d*?x2dweb.scope\n"
    assert match.splitlines()[1] in (TOP / "Documentation/guides/libvirt.rst").read_text()
    machine.write(f"{ETC}web.policy", f"{match}{X}Weight=7\n")
    sutrod.start()
    assert in_force(sutrod, MACHINE) == ["Weight=7"]
    for other in ("webmail", "intranet"):
        assert in_force(sutrod, MACHINE.replace("web", other)) == []
