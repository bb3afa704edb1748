# SPDX-License-Identifier: LGPL-2.1-or-later
"""Loads the drivers of the kernel, or the patched ones, in a guest that has the package.

All modules of the package are removed from the kernel, with the modules that depend on them, and
loaded again, each from the selected file; no device may use them. A module that the package does
not have is the kernel's own both times.
"""

from pathlib import Path

from rig.dkms import kernel, out_of_tree
from rig.shell import run, run_again

from bench.harm.scenario import PATCHED, STOCK

# Of each driver that the package has, one module that is in use.
MODULES = ("dm-mod", "dm-integrity", "dm-thin-pool", "dm-snapshot", "raid456", "raid1", "bcache")
# Where DKMS puts modules, below those of a kernel, and where it keeps those that it replaces.
PACKAGED = "updates"
KEPT = Path("/var/lib/dkms/sutro-stacking/original_module")


def load(drivers: str) -> None:
    """Exchange the drivers; raises RuntimeError if another one than selected is loaded then."""
    for module in MODULES:
        _remove(_folder(module))
    for module in MODULES:
        for line in run("modprobe", "--show-depends", module).splitlines():
            word, path = line.split()[:2]
            if word == "insmod" and not _folder(Path(path).name.split(".")[0]).exists():
                run("insmod", _stock(Path(path)) if drivers == STOCK else path)
    for module in MODULES:
        if out_of_tree(module) != (drivers == PATCHED):
            raise RuntimeError(f"the module {module} that was loaded is not the {drivers} one")


def _folder(module: str) -> Path:
    return Path("/sys/module", module.replace("-", "_"))


def _remove(folder: Path) -> None:
    """Take out a module that may be loaded, after those that hold it."""
    if not folder.exists():
        return
    for holder in list((folder / "holders").iterdir()):
        _remove(_folder(holder.name))
    run_again("rmmod", folder.name)


def _stock(file: Path) -> Path:
    """The kernel's own module for one of the package; DKMS may have taken it out of its way."""
    if not file.is_relative_to(Path("/lib/modules", kernel(), PACKAGED)):
        return file
    for folder in (Path("/lib/modules", kernel(), "kernel"), KEPT / kernel()):
        for found in folder.rglob(file.name):
            return found
    raise RuntimeError(f"{file.name}: the kernel's own is neither in its folder nor in {KEPT}")
