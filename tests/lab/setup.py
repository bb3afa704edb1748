# SPDX-License-Identifier: LGPL-2.1-or-later
"""Steps that verbs of ./lab share: a guest that is ready to boot, and a program of tests/bench
in it."""

import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from . import accel, guest, host, image, products, roots, uml
from .cache import Cache
from .parallel import at_once
from .progress import LabError
from .roots import KERNEL

SOURCE = Path(__file__).resolve().parents[2]
# Where the width of the terminal is not known, tables are not cut.
WIDTH = 160
# Drivers are built in, and null_blk would make a disk at boot.
SERIES_PARAMETERS = "null_blk.nr_devices=0"


def has_place(*paths: Path | None) -> None:
    """Fail early if results cannot be written to this folder."""
    for path in paths:
        if path and not path.absolute().parent.is_dir():
            raise LabError(f"{path.absolute().parent} is no folder, so {path} cannot be written")


def in_guest(
    setup: guest.Setup,
    name: str,
    words: list[str],
    json: Path | None,
    echo: Callable[[str], None] = guest.to_stdout,
) -> int:
    """Run a program of tests/bench in a guest and copy its NAME.json; its exit status.

    echo gets its output.
    """
    width = shutil.get_terminal_size((WIDTH, 24)).columns if sys.stdout.isatty() else WIDTH
    words = ["python3", "-m", "bench", name, *words]
    command = f"export PYTHONPATH=/mnt/src/tests COLUMNS={width}; exec {guest.shell_words(words)}"
    with guest.boot(setup) as machine:
        status = machine.run(command, name=name, echo=echo)
        results = setup.folder / "out" / f"{name}.json"
        if json and results.exists():
            shutil.copyfile(results, json)
        machine.shutdown()
    return status


def prepare(
    cache: Cache,
    name: str,
    kernel: str = KERNEL,
    *,
    bare: bool = False,
    smp: bool = False,
    stacking: bool = False,
    series: bool = False,
    image_of: roots.Recipe | None = None,
    tools: Sequence[Path] = (),
) -> guest.Setup:
    """Everything up to the boot.

    bare: without the Sutro packages; smp: two CPUs instead of an exact clock; stacking: md and dm
    with patches; series: bare, with a kernel of Debian's configuration that has the patch series;
    image_of: another image root than that of the kernel, for the stable one; tools: folders whose
    files the guest has in /mnt/build, too.
    """
    host.ensure_packages()
    bare = bare or series
    image_of = image_of or roots.image_recipe(kernel)
    packages = roots.packages_of(image_of)
    recipes = [] if bare else [packages]
    if kernel == KERNEL:
        recipes.append(image_of)
    roots.prepared(cache, *recipes)
    debs, modules = at_once(
        [
            lambda: None if bare else products.debs(cache, SOURCE, packages),
            # They are for Debian's kernel.
            lambda: None if series else products.test_modules(cache, SOURCE, image_of),
        ]
    )
    own = uml.kernel(cache, SOURCE, uml.GUEST, kernel) if series else None
    disk = image.built(cache, debs, image_of, stacking=stacking, kernel=own)
    folder = cache.run_dir / name
    for share in ("out", "log"):
        (folder / share).mkdir(parents=True)
    products.gathered(folder / "build", [debs, modules, *tools])
    accelerator = accel.chosen(cache, disk, smp=smp)
    parameters = SERIES_PARAMETERS if series else ""
    return guest.Setup(disk, accelerator, SOURCE, folder, parameters=parameters)
