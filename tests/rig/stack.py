# SPDX-License-Identifier: LGPL-2.1-or-later
"""Stacks of block devices on top of leaves, described as data, taken down in reverse order always.

A stack is a list of layers. Each has a kind, a name, and the devices that it stands on:

    [{"kind": "md", "name": "mirror", "level": "raid1", "over": ["disk0", "disk1"]},
     {"kind": "crypt", "name": "secret", "over": ["mirror"]}]

`over` names an earlier layer or a leaf. The last layer is the top: the logical device that
services use, or a mount point. Kinds and their own keys:

| kind | keys | becomes |
| --- | --- | --- |
| striped | stripe_kib (64) | LVM volume, `lvcreate -iN -Ik` over all of `over` |
| linear | | LVM volume, the physical volumes one after another |
| thin | size_mb | thin LVM volume in a pool over `over` |
| lvraid | level | LVM volume `--type LEVEL` (dm-raid) |
| group | | LVM volume group, for several volumes |
| volume | on, size_mb, stripe_kib (64) | LVM volume in a group, striped over `on` of its disks |
| md | level, chunk_kib (64), options ([]), slow ([]), fail ("") | md array, assumed clean; `options` \
of mdadm, in which {NAME} is a device; `slow` members are write-mostly; member `fail` fails |
| crypt | cipher (aes-xts-plain64), key_bits (256), options of cryptsetup (none) | dm-crypt, plain |
| dm | table | `dmsetup create`; {0}, {1}: devices of `over`, {sectors}: size of the first |
| message | text, paused ("") | `dmsetup message` to a dm device, a layer suspended meanwhile |
| partition | start_mb, size_mb | partition 1 of a disk |
| ext4 | options ("") | file system, mounted at /run/rig/NAME |
| loop | size_mb, direct (true) | loop device on a file in the file system below |

rig.layers has more of them.
"""  # noqa: E501

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Self

from rig import layers
from rig.modeldisk import ModelDisk, hurried
from rig.shell import run, run_again

KINDS = (
    "striped", "linear", "thin", "lvraid", "group", "volume", "md", "crypt", "dm", "message",
    "partition", "ext4", "loop", *layers.KINDS,
)  # fmt: skip

# No question, and nothing is written to a new volume.
PLAIN = ("--yes", "--quiet", "--wipesignatures=n", "--zero=n")
# Thin pools are checked by a tool that a minimal system lacks; a new pool needs no check.
NO_THIN_CHECK = 'global/thin_check_executable=""'


class Stack:
    """Layers made one after another; use it in a `with` statement."""

    def __init__(self, leaves: Mapping[str, str]):
        self.nodes = dict(leaves)
        self.top = ""
        self._undo = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._undo.__exit__(*exc)

    def build(self, layers: Sequence[Mapping[str, object]]) -> str:
        """Make all layers and return the path of the top one."""
        for layer in layers:
            self.add(**layer)
        return self.top

    def add(self, kind: str, name: str, over: Sequence[str], **keys: object) -> str:
        """Make one layer and return its path."""
        if kind not in KINDS:
            raise ValueError(f"layer {name}: no kind {kind!r}; kinds are {', '.join(KINDS)}")
        missing = [below for below in over if below not in self.nodes]
        if missing:
            raise ValueError(f"layer {name}: nothing named {', '.join(missing)} below it")
        if kind in layers.KINDS:
            make = partial(layers.KINDS[kind], self._undo)
        else:
            make = getattr(self, f"_{kind}")
        self.top = make(name, [self.nodes[below] for below in over], **keys)
        self.nodes[name] = self.top
        return self.top

    @property
    def devno(self) -> str:
        """`MAJ:MIN` of the top; of the file system's device if the top is a mount point."""
        return devno(self.top)

    # LVM: a volume group of its own for each volume

    def _group(self, name: str, over: Sequence[str]) -> str:
        group = f"rig_{name}"
        run_again("vgcreate", "--yes", "--quiet", group, *over)
        self._undo.callback(run, "pvremove", "--quiet", "--force", "--yes", *over)
        self._undo.callback(run_again, "vgremove", "--quiet", "--force", "--yes", group)
        return group

    def _whole(self, name: str, over: Sequence[str], *how: str) -> str:
        group = self._group(name, over)
        run("lvcreate", *PLAIN, "--name", name, *how, group)
        return f"/dev/{group}/{name}"

    def _striped(self, name: str, over: Sequence[str], stripe_kib: int = 64) -> str:
        return self._whole(name, over, *stripes(over, stripe_kib), "--extents=100%FREE")

    def _volume(
        self, name: str, over: Sequence[str], on: Sequence[str], size_mb: int, stripe_kib: int = 64
    ) -> str:
        disks = [self.nodes[disk] for disk in on]
        how = (*stripes(disks, stripe_kib), f"--size={size_mb}m")
        run("lvcreate", *PLAIN, "--name", name, *how, over[0], *disks)
        return f"/dev/{over[0]}/{name}"

    def _linear(self, name: str, over: Sequence[str]) -> str:
        return self._whole(name, over, "--extents=100%FREE")

    def _lvraid(self, name: str, over: Sequence[str], level: str) -> str:
        return self._whole(name, over, f"--type={level}", "--nosync", "--extents=100%FREE")

    def _thin(self, name: str, over: Sequence[str], size_mb: int = 256) -> str:
        group = self._group(name, over)
        run(
            "lvcreate", "--yes", "--quiet", "--config", NO_THIN_CHECK, "--type=thin",
            "--extents=80%FREE", f"--thinpool={name}_pool", f"--virtualsize={size_mb}m",
            "--name", name, group,
        )  # fmt: skip
        return f"/dev/{group}/{name}"

    # the other device-mapper targets, md, partitions

    def _crypt(
        self,
        name: str,
        over: Sequence[str],
        cipher: str = "aes-xts-plain64",
        key_bits: int = 256,
        options: Sequence[str] = (),
    ) -> str:
        run(
            "cryptsetup", "open", "--batch-mode", "--type=plain", f"--cipher={cipher}",
            f"--key-size={key_bits}", "--key-file=-", *(f"--{option}" for option in options),
            over[0], name,
            stdin="k" * (key_bits // 8),
        )  # fmt: skip
        self._undo.callback(run_again, "cryptsetup", "close", name)
        return f"/dev/mapper/{name}"

    def _dm(self, name: str, over: Sequence[str], table: str) -> str:
        sectors = run("blockdev", "--getsz", over[0]).strip()
        run("dmsetup", "create", name, stdin=table.format(*over, sectors=sectors))
        self._undo.callback(run_again, "dmsetup", "remove", name)
        return f"/dev/mapper/{name}"

    def _message(self, name: str, over: Sequence[str], text: str, paused: str = "") -> str:
        if paused:
            run("dmsetup", "suspend", paused)
        run("dmsetup", "message", over[0], "0", text)
        if paused:
            run("dmsetup", "resume", paused)
        return over[0]

    def _md(
        self,
        name: str,
        over: Sequence[str],
        level: str,
        chunk_kib: int = 64,
        options: Sequence[str] = (),
        slow: Sequence[str] = (),
        fail: str = "",
    ) -> str:
        node = f"/dev/md/{name}"
        chunk = () if level in ("raid1", "linear") else (f"--chunk={chunk_kib}",)
        clean = () if level in ("raid0", "linear") else ("--assume-clean",)
        policy = [option.format(**self.nodes) for option in options]
        if clean and not policy:
            policy = ["--bitmap=none"]
        late = [self.nodes[member] for member in slow]
        members = [member for member in over if member not in late]
        run(
            "mdadm", "--create", node, "--run", "--quiet", f"--level={level}", *chunk, *clean,
            *policy, f"--raid-devices={len(over)}", *members,
            *(word for member in late for word in ("--write-mostly", member)),
        )  # fmt: skip
        self._undo.callback(run, "mdadm", "--zero-superblock", "--quiet", *over)
        self._undo.callback(run_again, "mdadm", "--stop", "--quiet", node)
        if fail:
            run("mdadm", "--quiet", node, "--fail", self.nodes[fail])
        run("udevadm", "settle", "--timeout=10")
        return node

    def _partition(
        self, name: str, over: Sequence[str], start_mb: int = 1, size_mb: int = 64
    ) -> str:
        disk, end_mb = over[0], start_mb + size_mb
        run(
            "parted", "--script", disk, "mklabel", "msdos",
            "mkpart", "primary", f"{start_mb}MiB", f"{end_mb}MiB",
        )  # fmt: skip
        self._undo.callback(run, "parted", "--script", disk, "rm", "1")
        run("udevadm", "settle", "--timeout=10")
        return f"{disk}p1" if disk[-1].isdigit() else f"{disk}1"

    # file systems and devices on files in them

    def _ext4(self, name: str, over: Sequence[str], options: str = "") -> str:
        run("mkfs.ext4", "-q", "-F", "-E", "nodiscard,lazy_itable_init=0", over[0])
        return layers.mounted(self._undo, name, over[0], options)

    def _loop(self, name: str, over: Sequence[str], size_mb: int = 64, direct: bool = True) -> str:
        file = Path(over[0]) / f"{name}.img"
        # Blocks that were never written are read without the disk.
        blocks = ("bs=1M", f"count={size_mb}", "conv=fsync", "status=none")
        run("dd", "if=/dev/zero", f"of={file}", *blocks)
        how = f"--direct-io={'on' if direct else 'off'}"
        node = run("losetup", "--find", "--show", how, file).strip()
        self._undo.callback(run_again, "losetup", "--detach", node)
        return node


@contextmanager
def standing(
    disks: Sequence[ModelDisk],
    layers: Sequence[Mapping[str, object]],
    prepare: Callable[[Stack], object] = lambda stack: None,
) -> Iterator[Stack]:
    """A stack over model disks, which are fast while it is made and prepared."""
    with Stack({disk.name: disk.node for disk in disks}) as stack:
        with hurried(disks):
            stack.build(layers)
            prepare(stack)
        yield stack


def fill(node: str) -> None:
    """Write all of a device: a block that was never written may be read without a disk."""
    size_mb = int(run("blockdev", "--getsize64", node)) >> 20
    words = ("bs=1M", f"count={size_mb}", "oflag=direct", "conv=fsync", "status=none")
    run("dd", "if=/dev/zero", f"of={node}", *words)


def snapshot(volume: str) -> None:
    """Make the snapshot `s` of a volume GROUP/NAME."""
    words = ("--quiet", "--yes", "--snapshot", "--name=s", "--config", NO_THIN_CHECK)
    run("lvcreate", *words, volume)


def stripes(over: Sequence[str], stripe_kib: int) -> tuple[str, ...]:
    """Options of lvcreate for a volume striped over some disks; over one it is linear."""
    return (f"--stripes={len(over)}", f"--stripesize={stripe_kib}k") if len(over) > 1 else ()


def devno(path: str | Path) -> str:
    """`MAJ:MIN` of a device node, or of the device below a path in a file system."""
    status = os.stat(path)
    number = status.st_rdev or status.st_dev
    return f"{os.major(number)}:{os.minor(number)}"
