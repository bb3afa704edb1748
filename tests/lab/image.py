# SPDX-License-Identifier: LGPL-2.1-or-later
"""The disk image of the guest, and the kernel and initramfs that boot it."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from .cache import Cache
from .namespace import namespaced, run
from .roots import RECIPES, Root, bootstrapped, recipe

IMAGE_MIB = 4096
# An image is thrown away after each boot: a journal and full tables of inodes are of no use in it.
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
    """The image with the packages in the folder debs installed, DKMS module and all."""
    base = image_root(cache)
    log = cache.run_dir / "image.log"

    def build(folder: Path) -> None:
        tree = folder / "tree"
        run(namespaced(["cp", "-a", "--reflink=auto", str(base.path), str(tree)]),
            "image: copying the tree", log)
        if debs:
            Root(tree).run(
                ["sh", "-e", "/mnt/lab/install"], "image: installing the Sutro packages", log,
                binds={"/mnt/lab": RECIPES, "/mnt/build": debs},
            )
        for name in ("lab-vmlinuz", "lab-initrd.img"):
            shutil.copyfile(tree / "boot" / name, folder / name)
        run(namespaced(["mkfs.ext4", "-q", "-F", *EXT4_OPTIONS, "-d", str(tree),
                        str(folder / "root.ext4"), f"{IMAGE_MIB}M"]), "image: mkfs.ext4", log)
        run(namespaced(["rm", "-rf", str(tree)]), "image: removing the tree", log)

    key = {
        "root": recipe("image"),
        "debs": debs.name if debs else None,
        "install": (RECIPES / "install").read_text() if debs else None,
        "size_mib": IMAGE_MIB,
        "mkfs": EXT4_OPTIONS,
    }
    folder = cache.artefact("image", key, "image: installing Sutro, making the file system", build)
    return Image(folder / "lab-vmlinuz", folder / "lab-initrd.img", folder / "root.ext4")
