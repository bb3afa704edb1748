# SPDX-License-Identifier: LGPL-2.1-or-later
"""The disk image of the guest, and the kernel and initramfs that boot it.

A copy of the image root gets the guest's settings (recipes/guest), the Sutro packages
(recipes/install) and a file system around it.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from .cache import Cache
from .namespace import namespaced, run
from .roots import RECIPES, Root, bootstrapped, recipe

IMAGE_MIB = 4096
# An image is thrown away after each boot: a journal is of no use in it.
EXT4_OPTIONS = ("-O", "^has_journal", "-E", "lazy_itable_init=1,root_owner=0:0", "-L", "lab")


@dataclass(frozen=True)
class Image:
    """What a guest boots: the kernel, its initramfs and the root file system."""

    kernel: Path
    initrd: Path
    disk: Path


def image_root(cache: Cache) -> Root:
    """The Debian tree of the guest, without Sutro."""
    return bootstrapped(cache, "image", "image root")


def built(cache: Cache, debs: Path | None) -> Image:
    """The image with the packages in the folder debs, DKMS module and all; None: stock Debian."""
    base = image_root(cache)
    log = cache.run_dir / "image.log"
    scripts = ["guest", "install"] if debs else ["guest"]

    def build(folder: Path) -> None:
        tree = folder / "tree"
        copy = ["cp", "-a", "--reflink=auto", str(base.path), str(tree)]
        run(namespaced(copy), "image: copying the tree", log)
        binds = {"/mnt/lab": RECIPES} | ({"/mnt/build": debs} if debs else {})
        for script in scripts:
            what = f"image: recipes/{script}"
            Root(tree).run(["sh", "-e", f"/mnt/lab/{script}"], what, log, binds=binds)
        for name in ("lab-vmlinuz", "lab-initrd.img"):
            shutil.copyfile(tree / "boot" / name, folder / name)
        disk = str(folder / "root.ext4")
        make = ["mkfs.ext4", "-q", "-F", *EXT4_OPTIONS, "-d", str(tree), disk, f"{IMAGE_MIB}M"]
        run(namespaced(make), "image: mkfs.ext4", log)
        run(namespaced(["rm", "-rf", str(tree)]), "image: removing the tree", log)

    key = {
        "root": recipe("image"),
        "debs": debs.name if debs else None,
        "scripts": [(RECIPES / script).read_text() for script in scripts],
        "size_mib": IMAGE_MIB,
        "mkfs": EXT4_OPTIONS,
    }
    what = "image: installing Sutro in a copy of the image root" if debs else "image: stock Debian"
    folder = cache.artefact("image", key, what, build)
    return Image(folder / "lab-vmlinuz", folder / "lab-initrd.img", folder / "root.ext4")
