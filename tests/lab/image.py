# SPDX-License-Identifier: LGPL-2.1-or-later
"""The disk image of the guest, and the kernel and initramfs that boot it.

A copy of the image root gets the guest's settings (recipes/guest), the Sutro packages
(recipes/install) and a file system around it.
"""

from dataclasses import dataclass
from pathlib import Path

from .cache import Cache
from .namespace import namespaced, remove_tree, run
from .roots import (
    RECIPES,
    Recipe,
    Root,
    bootstrapped,
    cockpit_recipe,
    containers_recipe,
    image_recipe,
    nri_recipe,
    slurm_recipe,
)

IMAGE_MIB = 4096


@dataclass(frozen=True)
class Image:
    """The files that a guest boots: the kernel, its initramfs and the root file system.

    disk is None if the guest has its root on other disks.
    """

    kernel: Path
    initrd: Path
    disk: Path | None


def image_root(cache: Cache, series: str) -> Root:
    """The Debian tree of the guest with the kernel of a series, without Sutro."""
    return bootstrapped(cache, image_recipe(series))


def built(
    cache: Cache,
    debs: Path | None,
    recipe: Recipe,
    *,
    stacking: bool = False,
    boots: bool = False,
    kernel: Path | None = None,
) -> Image:
    """The image with the packages in the folder debs, DKMS module and all; None: stock Debian.

    recipe: of the image root, with sutro-slurm in one that has Slurm, sutro-nri in one that has
    containerd, and cockpit-sutro in one that has Cockpit; stacking: with the patched drivers of md,
    dm and bcache, too; boots: with these, and with the settings of a machine that has disks of its
    own (persistent.py); kernel: the folder of another one (uml.kernel), for stock Debian.
    """
    base = bootstrapped(cache, recipe)
    scripts = ["guest", "install"] if debs else ["guest"]
    if kernel:
        scripts.insert(0, "kernel")
    if stacking or boots:
        scripts.append("stacking")
    if boots:
        scripts.append("boot")
    own = {
        "cockpit": cockpit_recipe(),
        "slurm": slurm_recipe(),
        "nri": nri_recipe(),
        "containers": containers_recipe(),
    }
    scripts += [script for script, image in own.items() if image.name == recipe.name]

    def build(folder: Path) -> None:
        work, nothing = folder / "work", folder / "work" / "nothing"
        nothing.mkdir(parents=True)
        command = ["sh", str(RECIPES / "image"), str(base.path), str(work)]
        command += [str(folder / "root.ext4"), str(IMAGE_MIB), str(debs or kernel or nothing)]
        command += scripts
        run(namespaced(command), "making the image", cache.run_dir / "image.log")
        remove_tree(work)

    key = {
        "root": recipe.key(),
        "debs": debs.name if debs else None,
        "scripts": [(RECIPES / script).read_text() for script in ("image", *scripts)],
        "size_mib": IMAGE_MIB,
    }
    what = "installing Sutro in a copy of the image root" if debs else "stock Debian"
    if kernel:
        key["kernel"] = kernel.name
        what += ", a kernel with the series"
    if stacking or boots:
        what += ", and md and dm with patches"
    kind = f"boot-{recipe.name}" if boots else recipe.name
    kind = f"series-{kind}" if kernel else kind
    folder = cache.artefact(kind, key, f"{recipe.name}: {what}", build)
    return Image(folder / "lab-vmlinuz", folder / "lab-initrd.img", folder / "root.ext4")
