# SPDX-License-Identifier: LGPL-2.1-or-later
"""Virtual machines of Debian's libvirt: weights of <blkiotune>, limits, and policies by name.

Documentation/guides/libvirt.rst has the same options and policies. A machine has no operating
system: its boot sector reads the image, a file on the volume, by calls of the BIOS, and halts. An
emulator on an emulated CPU is slow, so all tests have the same two machines.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from rig import bus, container
from rig.container import DATA, SLOW_S, Volume
from rig.shell import run, wait_for

READS, SECTORS = 32, 64
PACKET = 0x7C40
# ds = 0, si = PACKET, bp = READS; ah = 0x42, int 0x13: read; LBA += SECTORS; dec bp, jnz; cli, hlt
CODE = (
    bytes.fromhex("31c08ed8be407cbd") + struct.pack("<H", READS) + bytes.fromhex("b442b280cd138106")
    + struct.pack("<HH", PACKET + 8, SECTORS) + bytes.fromhex("4d75f1faf4")
)  # fmt: skip
# Size, sectors, offset and segment of the buffer, LBA.
REQUEST = struct.pack("<BBHHHQ", 16, 0, SECTORS, 0, 0x1000, 0)
SECTOR = CODE.ljust(0x40, b"\0") + REQUEST.ljust(0x1BE, b"\0") + b"\x55\xaa"
READ_BYTES = READS * SECTORS * 512

DOMAIN = """\
<domain type='qemu'>
  <name>{name}</name>
  <memory unit='MiB'>32</memory>
  <vcpu>1</vcpu>
  {tune}
  <os><type arch='x86_64' machine='pc'>hvm</type></os>
  <devices>
    <disk type='file' device='disk'>
      <driver name='qemu' type='raw' cache='none' io='native'/>
      <source file='{image}'/>
      <target dev='vda' bus='virtio'/>
    </disk>
    <controller type='usb' model='none'/>
    <video><model type='none'/></video>
    <memballoon model='none'/>
  </devices>
</domain>
"""
TUNE = "<blkiotune><weight>{}</weight></blkiotune>"


WEB = f"""\
[Match]
Unit=machine-qemu?x2d*?x2dweb.scope
[X-Sutro]
ReadBandwidthMin={DATA} 1M
Importance=500
"""


def virsh(*words: str) -> str:
    """Run the client."""
    return run("virsh", "--quiet", *words, timeout_s=SLOW_S).strip()


def start(name: str, tune: str = "") -> str:
    """Start a machine; its scope."""
    image = DATA / f"{name}.img"
    run("dd", "if=/dev/urandom", f"of={image}", "bs=1M", "count=2", "oflag=direct")
    with image.open("r+b") as file:
        file.write(SECTOR)
    file = Path(f"/run/{name}.xml")
    file.write_text(DOMAIN.format(name=name, tune=tune, image=image))
    virsh("define", str(file))
    virsh("start", name)
    end = f"\\x2d{name}.scope"
    (scope,) = [one for one in bus.units() if "machine-qemu" in one and one.endswith(end)]
    return scope


def cgroup(scope: str) -> str:
    """The cgroup of a machine."""
    return f"/machine.slice/{scope}"


@dataclass(frozen=True)
class Machines:
    """The volume, and the scopes of the machines."""

    volume: Volume
    web: str
    webmail: str


@pytest.fixture(scope="module")
def machines() -> Iterator[Machines]:
    """libvirt with the settings of Debian, policies, and two machines that read their images."""
    with ExitStack() as undo:
        volume = undo.enter_context(container.volume())
        undo.enter_context(container.policies("machines.policy", web=WEB))
        run("systemctl", "start", "libvirtd", timeout_s=SLOW_S)
        units = ("libvirtd", "libvirtd.socket", "libvirtd-ro.socket", "libvirtd-admin.socket")
        undo.callback(run, "systemctl", "stop", *units, "virtlogd", "virtlogd.socket")
        for disk in volume.disks:
            disk.reset()
        made = Machines(volume, start("web", TUNE.format(300)), start("webmail"))
        cgroups = [cgroup(made.web), cgroup(made.webmail)]

        def have_read() -> bool:
            return all(volume.read_bytes(one) >= READ_BYTES for one in cgroups)

        wait_for(have_read, f"reads of {cgroups}", SLOW_S, 1)
        yield made


def test_weights(machines: Machines) -> None:
    """<blkiotune> is IOWeight= of the scope, at start and in a running machine; else it is 100."""
    shown = run("systemctl", "show", "--property=IOWeight", machines.web, machines.webmail)
    assert shown.split() == ["IOWeight=300", "IOWeight=[not", "set]"]
    container.becomes(cgroup(machines.web), 300)
    container.becomes(cgroup(machines.webmail), 100)
    assert container.explained(machines.web)[:2] == (cgroup(machines.web), {300})
    virsh("blkiotune", "webmail", "--weight", "500", "--live", "--config")
    container.becomes(cgroup(machines.webmail), 500)
    run("systemctl", "set-property", "--runtime", "machine.slice", "IOWeight=800")
    container.becomes("/machine.slice", 800)
    run("systemctl", "revert", "machine.slice")


def test_policies_by_name(machines: Machines) -> None:
    """machines.policy for all machines, and a glob with the name of one."""
    for scope, floor in ((machines.web, 10**6), (machines.webmail, 5)):
        found = {key: value for key, (value, _) in container.promises(cgroup(scope)).items()}
        assert found == {
            "ReadBandwidthMin": floor, "WriteBandwidthMin": 5, "WriteBandwidthMax": 300 * 10**6
        }  # fmt: skip
        assert not any(one["state"] == "unresolved" for one in bus.promises(scope))


def test_limits_of_libvirt(machines: Machines) -> None:
    """They are in io.max of a cgroup inside the scope; that of the scope has those of a policy."""
    node = str(Path(machines.volume.node).resolve())
    virsh("blkiotune", "web", "--device-read-bytes-sec", f"{node},5000000", "--live")
    inside = container.limits(f"{cgroup(machines.web)}/libvirt")
    assert list(inside.values()) == ["rbps=5000000 wbps=max riops=max wiops=max"]
    of_policy = container.limits(cgroup(machines.web))
    assert set(of_policy.values()) == {"rbps=max wbps=300000000 riops=max wiops=max"}


def test_device_weights(machines: Machines) -> None:
    """The path that libvirt gives to systemd is that of a file, and no device has the weight."""
    node = str(Path(machines.volume.node).resolve())
    virsh("blkiotune", "web", "--device-weights", f"{node},700", "--live")
    shown = run("systemctl", "show", "--property=IODeviceWeight", "--value", machines.web)
    assert shown.strip().endswith("/io.weight 700")
    assert container.explained(machines.web)[1] == {300}


def test_nothing_stays(machines: Machines) -> None:
    """The last test ends the machines."""
    for name in ("web", "webmail"):
        virsh("destroy", name)
        virsh("undefine", name)
        (DATA / f"{name}.img").unlink()
    container.forgotten("machine-qemu")
