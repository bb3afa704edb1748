# SPDX-License-Identifier: LGPL-2.1-or-later
"""The daemon's picture of real stacks: any path goes down to the right leaves."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from rig import bus
from rig.shell import run, wait_for

MIRROR = "0 {sectors} mirror core 1 1024 2 {0} 0 {1} 0"


def layer(kind: str, over: int | str = 2, **keys: object) -> dict[str, object]:
    """A layer over a number of disks, or over the layer of that name."""
    below = [over] if isinstance(over, str) else [f"ssd{n}" for n in range(over)]
    return {"kind": kind, "name": f"the_{kind}", "over": below, **keys}


# Layers, disks, and the kinds from the top down as the daemon shall name them.
STACKS = {
    "linear": ([layer("linear")], 2, ["linear", "disk"]),
    "striped": ([layer("striped")], 2, ["striped", "disk"]),
    "thin": ([layer("thin")], 2, ["thin", "thin-pool", "linear", "disk"]),
    "mirror": ([layer("dm", table=MIRROR)], 2, ["mirror", "disk"]),
    "partition": ([layer("partition", 1)], 1, ["partition"]),
    "crypt on raid1": (
        [layer("md", level="raid1"), layer("crypt", "the_md")], 2, ["crypt", "raid1", "disk"]
    ),
    "loop": ([layer("ext4", 1), layer("loop", "the_ext4")], 1, ["loop", "disk"]),
    **{
        level: ([layer("md", count, level=level)], count, [level, "disk"])
        for level, count in (("raid0", 2), ("raid10", 4), ("raid5", 3), ("raid6", 4))
    },
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def running() -> Iterator[None]:
    """These tests call a running daemon."""
    run("systemctl", "start", "sutrod.service")
    yield
    run("systemctl", "stop", "sutrod.service")


@pytest.mark.parametrize("name", STACKS)
def test_stack(disk, stack, name: str) -> None:
    """Kind, slaves, leaves and steps of each stack."""
    layers, count, kinds = STACKS[name]
    made = stack([disk("ssd", f"ssd{n}") for n in range(count)], *layers)
    node = os.path.realpath(made.top)

    def found() -> list[str]:
        _, _, steps = bus.resolve(made.top)
        return list(dict.fromkeys(step["kind"] for step in steps))[: len(kinds)]

    # lvm makes a mirror out of a linear volume; the daemon's event of udev comes a little later.
    wait_for(lambda: found() == kinds, f"{made.top} as {kinds}", 60)
    device, leaves, _ = bus.resolve(made.top)
    assert device == node
    # A loop device is a leaf on leaves.
    is_loop = kinds[0] == "loop"
    assert sorted(leaves) == [node] * is_loop + [f"/dev/ssd{n}" for n in range(count)]
    known = bus.devices()
    top = known[Path(node).name]
    assert top["kind"] == kinds[0]
    assert top["leaf"] == is_loop
    assert top["devno"] == made.devno
    assert all(
        known[f"ssd{n}"]["leaf"] and known[f"ssd{n}"]["kind"] == "disk" for n in range(count)
    )
    if made.top != node:
        # The daemon gets names from udev, a little later than the device.
        name = Path(node).name
        wait_for(lambda: made.top in bus.devices()[name]["aliases"], f"{made.top} as alias", 60)


def test_mount_point_and_file(disk, stack) -> None:
    """A mount point, and any file below it, is its file system's device."""
    made = stack([disk("ssd", "ssd0")], {"kind": "ext4", "name": "fs", "over": ["ssd0"]})
    file = Path(made.top) / "folder with blank" / "file"
    file.parent.mkdir()
    file.write_text("x")
    link = Path(made.top) / "link"
    link.symlink_to(file)
    for path in (made.top, str(file.parent), str(file), str(link)):
        device, leaves, _ = bus.resolve(path)
        assert (device, leaves) == ("/dev/ssd0", ["/dev/ssd0"]), path


def test_leaf_and_its_scheduler(disk) -> None:
    """A leaf resolves to itself, with its scheduler."""
    one = disk("ssd", "ssd0")
    assert bus.resolve(one.node)[:2] == (one.node, [one.node])
    known = bus.devices()["ssd0"]
    assert known["scheduler"] in ("none", "mq-deadline", "bfq", "kyber")
    assert known["size_bytes"] == 256 << 20
    assert known["devno"] == one.devno
    assert not known["managed"]


def test_disks_come_and_go(disk) -> None:
    """A disk is known once it is there and unknown once it is gone."""
    one = disk("ssd", "ssd0")
    assert "ssd0" in bus.devices()
    one.unplug()
    with pytest.raises(bus.BusError, match=re.escape("/dev/ssd0")):
        bus.resolve("/dev/ssd0")
    # The node is gone at once; the daemon's event about the device comes a little later.
    wait_for(lambda: "ssd0" not in bus.devices(), "ssd0 forgotten", 60)


@pytest.mark.parametrize("path", ["/proc", "/sys/kernel", "/run", "/dev/null", "/dev/shm"])
def test_path_without_queue(path: str) -> None:
    """A path on no block device has no queue, and the error names that."""
    with pytest.raises(bus.BusError, match="(?i)queue|block device"):
        bus.resolve(path)
