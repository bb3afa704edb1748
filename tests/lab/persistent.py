# SPDX-License-Identifier: LGPL-2.1-or-later
"""A machine with disks of its own: it reboots, and survives power cuts or not.

    vda, vdb   serial root0, root1: md raid1, on that LVM with the volumes root and data
    vdc        serial boot: /boot

The tree is that of the test image with the packages, sutro-stacking-dkms included, and with
Debian's initramfs. No boot loader runs. Before each boot the lab takes the newest kernel and its
initramfs from the disk with /boot; debugfs reads ext4 without its journal, as boot loaders do.

All writes of a boot go to an overlay and to a log (writelog.py). When the machine has ended, they
go to the disks. A power cut is SIGKILL for QEMU; then writes after the last flush of each disk are
kept, lost, or each of them is, by the seed.
"""

import contextlib
import json
import random
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from . import accel, guest, image, roots, writelog
from .cache import Cache
from .crashes import Volume
from .guest import Guest, Setup
from .image import IMAGE_MIB, Image
from .namespace import ENVIRONMENT, run
from .progress import LabError, step
from .roots import KERNEL, RECIPES, image_recipe
from .setup import SOURCE

DISKS = ("root0", "root1", "boot")
SIZE_MIB = {"root0": IMAGE_MIB + 512, "root1": IMAGE_MIB + 512, "boot": 512}
PARAMETERS = "root=/dev/mapper/lab-root ro"
TIMEOUT_S = 3600.0
KERNEL_NAME = re.compile(r"vmlinuz-(\S+)")


def disks(cache: Cache, debs: Path) -> Path:
    """The folder with the disks of a machine that has the packages in the folder debs."""
    recipe = image_recipe(KERNEL)
    maker = image.built(cache, None, recipe)
    copied = image.built(cache, debs, recipe, boots=True).disk
    script = (RECIPES / "boot-disks").read_text()

    def build(folder: Path) -> None:
        work = folder / "work"
        for share in ("build", "out", "log"):
            (work / share).mkdir(parents=True)
        options = ["-drive", f"file={copied},format=raw,if=virtio,readonly=on"]
        for name in DISKS:
            with open(folder / name, "wb") as file:
                file.truncate(SIZE_MIB[name] << 20)
            options += ["-drive", f"file={folder / name},format=raw,if=virtio,cache=unsafe"]
        setup = Setup(maker, accelerator(cache, maker), SOURCE, work, disks=tuple(options))
        (work / "build/boot-disks").write_text(script)
        with guest.boot(setup) as machine:
            what = "sh /mnt/build/boot-disks"
            if machine.run(what, name="disks", timeout_s=TIMEOUT_S) != 0:
                raise LabError("making root on LVM on raid1 failed", machine.log)
            machine.reboot()
        (work / "out/offset").rename(folder / "offset")
        shutil.rmtree(work)

    assert copied
    key = {"image": copied.parent.name, "script": script, "sizes": SIZE_MIB}
    return cache.artefact("boot-disks", key, "boot: making a root on LVM on raid1", build)


class Machine:
    """A machine whose disks are copies of those in a folder; all that it has lies in another one.

    The end of `with machine.boot()` is a power cut, unless the guest has ended before.
    """

    def __init__(self, original: Path, setup: Setup, seed: random.Random):
        self.folder = setup.folder
        self._setup = setup
        self._seed = seed
        self._boots = 0
        self._offset = int((original / "offset").read_text())
        # Of the next power cut: it loses all that was not flushed; a function of the volume of the
        # root, as it was before this boot, and the log of the writes since then.
        self.loses_all = False
        self.examine: Callable[[Volume, Path], None] | None = None
        for name in DISKS:
            command = ["cp", "--sparse=always", "--reflink=auto", str(original / name)]
            run([*command, str(self.folder)], "copying a disk", self.folder / "cp.log")

    @contextlib.contextmanager
    def boot(self) -> Iterator[Guest]:
        """The running machine, whose writes are on its disks at the end."""
        self._boots += 1
        options = []
        for name in DISKS:
            options += self._disk(name)
        setup = replace(
            self._setup,
            image=self._boot_files(),
            disks=tuple(options),
            parameters=PARAMETERS,
            folder=self._shares(),
        )
        # A machine that does not boot leaves its disks as they were for this boot.
        with guest.boot(setup) as running:
            try:
                yield running
            finally:
                ended = running.ended()
                running.kill()
                self._settle(ended)

    def _shares(self) -> Path:
        """A folder for this boot; /mnt/out and /mnt/build are the same in all boots."""
        folder = self.folder / f"boot-{self._boots}"
        (folder / "log").mkdir(parents=True)
        for share in ("build", "out"):
            (folder / share).symlink_to(self.folder / share)
        return folder

    def _boot_files(self) -> Image:
        """The newest kernel on the disk with /boot that has an initramfs."""
        names = {
            line.split("/")[5] for line in self._debugfs("ls -p /").splitlines() if "/" in line
        }
        found = [match[1] for match in map(KERNEL_NAME.fullmatch, names) if match]
        versions = [v for v in found if f"initrd.img-{v}" in names]
        if not versions:
            raise LabError(f"no kernel with an initramfs in /boot: {sorted(names)}")
        version = max(versions, key=lambda v: [int(n) for n in re.findall(r"\d+", v)])
        files = []
        for name in ("vmlinuz", "initrd.img"):
            self._debugfs(f"dump /{name}-{version} {self.folder / name}")
            files.append(self.folder / name)
        return Image(*files, disk=None)

    def _debugfs(self, request: str) -> str:
        command = ["debugfs", "-R", request, str(self.folder / "boot")]
        return subprocess.run(
            command, env=ENVIRONMENT, capture_output=True, text=True, check=True
        ).stdout

    def _disk(self, name: str) -> list[str]:
        """Options of QEMU for a disk whose writes go to an overlay and a log."""
        overlay, log = (self.folder / f"{name}.{kind}" for kind in ("overlay", "writes"))
        writelog.empty_overlay(overlay, SIZE_MIB[name] << 20)
        with open(log, "wb") as file:
            file.truncate(writelog.LOG_BYTES)

        def file_of(path: Path, **more: object) -> dict[str, object]:
            # The host keeps its power.
            return {"driver": "file", "filename": str(path), "cache": {"no-flush": True}} | more

        node = {
            "driver": "blklogwrites",
            "node-name": name,
            "log-sector-size": writelog.SECTOR_BYTES,
            "log": {"driver": "raw", "file": file_of(log)},
            "file": {
                "driver": "qcow2",
                "file": file_of(overlay),
                "backing": {"driver": "raw", "file": file_of(self.folder / name)},
            },
        }
        # QEMU joins up to 1024 pages of neighbouring requests. blklogwrites adds two parts, and the
        # host refuses a write of more than 1024.
        device = f"virtio-blk-pci,drive={name},serial={name},request-merging=off"
        return ["-blockdev", json.dumps(node), "-device", f"{device},discard=off,write-zeroes=off"]

    def _settle(self, ended: bool) -> None:
        """Take the writes of this boot over to the disks."""
        lost = 0
        if self.examine:
            volume = Volume(self.folder / DISKS[0], self._offset, IMAGE_MIB << 20, self.folder)
            self.examine(volume, self.folder / f"{DISKS[0]}.writes")
            self.examine = None
        for name in DISKS:
            log = self.folder / f"{name}.writes"
            survives = writelog.caches(self._seed)
            if ended or self.loses_all:
                survives = partial(bool, ended)
            lost += writelog.applied(log, self.folder / name, survives)[1]
            log.unlink()
            (self.folder / f"{name}.overlay").unlink()
        if not ended:
            step(f"boot: power cut; {lost} writes lost")
        self.loses_all = False


def machine(cache: Cache, debs: Path, name: str, seed: random.Random) -> Machine:
    """A machine that has never booted, with the packages in the folder debs."""
    recipe = image_recipe(KERNEL)
    roots.prepared(cache, recipe)
    made = disks(cache, debs)
    folder = cache.run_dir / name
    for share in ("build", "out"):
        (folder / share).mkdir(parents=True)
    stock = image.built(cache, None, recipe)
    return Machine(made, Setup(stock, accelerator(cache, stock), SOURCE, folder), seed)


def accelerator(cache: Cache, probed: Image) -> str:
    """KVM, or the emulation for a guest that waits for disks of its own."""
    return "kvm" if accel.chosen(cache, probed, smp=True) == "kvm" else "tcg-disks"
