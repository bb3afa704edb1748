# SPDX-License-Identifier: LGPL-2.1-or-later
"""User Mode Linux in virtual time: the kernel of a linux-source package with our series in it.

    plain   that             debug   the same, checking itself
    layers  that, with drivers that the series patches
    locks   plain, with counts of lock acquisitions
    suites  plain, with options that xfstests and LTP need (umlsuites.py)
    deep    the same kernel as one of a PC that looks for data races (deep.py)
    guest   Debian's configuration with the series, for guests (setup.py)

A flavour is its fragments of configuration in tests/uml. Two artefacts each: the source, configured
and compiled without anything of ours (minutes, seldom), and a copy of it with the series, the model
disk and so on (seconds, for each change). Compilations go through ccache, in the cache.

A machine runs as the user builder in the build root. Its root file system is the tree of the
guest image, read-only; /mnt is a folder of the host:

    inside/     tests/uml/inside: its first process `init`, and NAME.py, which init runs; tests/rig
    plan.json   the input of NAME.py         result.json   its results
    output      the output of NAME.py        status        its exit status
"""

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from rig.kernel_log import kernel_complaint

from . import namespace
from .cache import Cache, digest_files
from .image import image_root
from .namespace import remove_tree
from .products import as_builder, compilations, copied, source_files
from .progress import LabError
from .roots import KERNEL, RECIPES, Root, build_recipe, build_root, image_recipe

CONFIGS = {
    "plain": ("common.config", "uml.config", "uml-owners.config", "uml-machines.config"),
    "debug": ("common.config", "uml.config", "debug.config", "uml-debug.config"),
    "layers": ("common.config", "uml.config", "debug.config", "uml-debug.config",
               "uml-layers.config"),
    "locks": ("common.config", "uml.config", "uml-locks.config"),
    "suites": ("common.config", "uml.config", "uml-owners.config", "uml-suites.config"),
    "deep": ("common.config", "debug.config", "deep.config"),
    "guest": ("guest.config",),
}  # fmt: skip
PC, GUEST = "deep", "guest"
# The configuration for a kernel on which the series is only compiled.
SERIES = ("common.config", "uml.config")
OURS = ("kernel/", "tests/modeldisk/", "tests/uml/fio-clock.c", "tests/uml/host-random.c",
        "Documentation/block/", "Documentation/ABI/")  # fmt: skip
# The second for each job beyond some; with too little, all time goes into looking for memory.
MEMORY_MIB, JOB_MIB, JOBS = 2048, 32, 64
# Real time. A minute of a fast disk is some minutes.
TIMEOUT_S = 3600.0
# Virtual time begins here, so that nothing depends on the date.
EPOCH_S = 1700000000


def kernel(cache: Cache, source: Path, flavour: str, version: str = KERNEL) -> Path:
    """The folder with `linux`, `fio-clock.so` and `host-random.so` of this clone.

    That of a PC has `bzImage`, its release and lists of built-in drivers.
    """
    tree = _tree(cache, source, flavour, version)
    names = [name for name in source_files(source) if name.startswith(OURS)]

    def build(folder: Path) -> None:
        work = folder / "work"
        copied(source, names, work / "sutro")
        binds = {"/mnt/tree": tree}
        _make(cache, source, "uml-kernel", flavour, work, binds, version, CONFIGS[flavour])
        for path in (work / "product").iterdir():
            shutil.copy2(path, folder / path.name)
        remove_tree(work)

    scripts = [(RECIPES / name).read_text() for name in ("uml-source", "uml-kernel")]
    key = {"tree": tree.name, "files": digest_files(source, names), "scripts": scripts}
    what = f"UML ({flavour}): building our kernel"
    return cache.artefact(_named(f"uml-{flavour}", version), key, what, build)


def series(cache: Cache, source: Path, version: str) -> Path:
    """Apply and compile the series patch by patch; the log, which has an `ok` line for each."""
    work = cache.run_dir / f"series-{version}"
    copied(source, [n for n in source_files(source) if n.startswith(OURS)], work / "sutro")
    tree = _tree(cache, source, "plain") if version == KERNEL else _bare(cache, source, version)
    log = _make(cache, source, "uml-series", version, work, {"/mnt/tree": tree}, version)
    remove_tree(work)
    return log


def kunit(cache: Cache, source: Path) -> dict:
    """Run the KUnit suites of the series on the kernel that checks itself; kunit.py's results."""
    work = cache.run_dir / "kunit"
    work.mkdir()
    binds = {
        "/mnt/tree": _tree(cache, source, "debug"),
        "/mnt/kernel": kernel(cache, source, "debug"),
    }
    log = _make(cache, source, "uml-kunit", "debug", work, binds)
    return json.loads((work / "kunit.json").read_text()) | {"log": str(log)}


def _named(name: str, version: str) -> str:
    return name if version == KERNEL else f"{name}-{version}"


def _tree(cache: Cache, source: Path, flavour: str, version: str = KERNEL) -> Path:
    def build(folder: Path) -> None:
        binds = {}
        if flavour == GUEST:
            binds["/mnt/stock"] = image_root(cache, version).path / "boot"
        _make(cache, source, "uml-tree", flavour, folder, binds, version, CONFIGS[flavour])

    texts = [(source / "tests/uml" / name).read_text() for name in CONFIGS[flavour]]
    scripts = [
        (RECIPES / name).read_text() for name in ("uml-tree", "uml-xstate.patch", "uml-make")
    ]
    key = {"root": build_recipe().key(), "configs": texts, "scripts": scripts}
    if flavour == GUEST:
        key["stock"] = image_recipe(version).key()
    what = f"UML ({flavour}): compiling linux-source-{version}, some minutes"
    return cache.artefact(_named(f"uml-tree-{flavour}", version), key, what, build)


def _bare(cache: Cache, source: Path, version: str) -> Path:
    """The source of another Linux, configured and not compiled."""

    def build(folder: Path) -> None:
        _make(cache, source, "series-tree", version, folder, {}, version)

    texts = [(source / "tests/uml" / name).read_text() for name in SERIES]
    texts.append((RECIPES / "series-tree").read_text())
    key = {"root": build_recipe().key(), "version": version, "texts": texts}
    what = f"series: unpacking linux-source-{version}"
    return cache.artefact(f"series-tree-{version}", key, what, build)


def _make(
    cache: Cache,
    source: Path,
    script: str,
    flavour: str,
    work: Path,
    binds: dict[str, Path],
    version: str = KERNEL,
    configs: tuple[str, ...] = (),
) -> Path:
    """Run recipes/SCRIPT VERSION CONFIG... in the build root of that kernel; its log."""
    root = build_root(cache, version)
    log = cache.run_dir / f"{script}-{flavour}.log"
    binds = {"/mnt/uml": source / "tests/uml"} | compilations(cache, root, log) | binds
    env = {"ARCH": "x86_64" if flavour in (PC, GUEST) else "um"}
    words = (version, *configs)
    as_builder(root, script, work, log, arguments=words, binds=binds, env=env)
    return log


def machine(cache: Cache, source: Path, flavour: str = "plain") -> Callable[[str, dict], dict]:
    """A function that runs a plan of tests/uml/plan.py on a machine of its own: name, plan, result.

    Several may run at a time. The console and all else of a run is in runs/.../NAME.
    """
    ours = kernel(cache, source, flavour)
    image_root(cache, KERNEL)

    def one(name: str, plan: dict) -> dict:
        folder = cache.run_dir / name
        prepared(source, ours, folder)
        try:
            result = run(cache, folder, "run", plan, TIMEOUT_S)
        except LabError as error:
            raise LabError(f"{name}: {error}", error.log) from error
        (folder / "linux").unlink()
        return result

    return one


def prepared(source: Path, kernel: Path, folder: Path) -> None:
    """A new folder that a machine can run in."""
    folder.mkdir(parents=True)
    for path in kernel.iterdir():
        if path.is_file():
            shutil.copy2(path, folder / path.name)
    shutil.copytree(source / "tests/uml/inside", folder / "inside")
    shutil.copytree(source / "tests/rig", folder / "inside/rig")
    folder.chmod(0o777)


def _memory_mib(plan: dict) -> int:
    return MEMORY_MIB + JOB_MIB * max(len(plan.get("jobs", ())) - JOBS, 0)


def run(cache: Cache, folder: Path, name: str, plan: dict, timeout_s: float) -> dict:
    """Run inside/NAME.py with a plan on a machine of its own; the result it leaves.

    A kernel that complains, a status that is not 0 and a result that is missing are LabErrors.
    """
    root = image_root(cache, KERNEL)
    clock = f"time-travel=inf-cpu time-travel-start={EPOCH_S}"
    command = machine_command(cache, folder, name, plan, root, _memory_mib(plan), clock)
    console = folder / "console.log"
    namespace.run(command, f"UML: {name}", console, check=False, timeout_s=timeout_s)
    if complaint := kernel_complaint(console.read_text(errors="replace")):
        raise LabError("the kernel complained:\n" + complaint, console)
    return left(folder, name)


def machine_command(
    cache: Cache,
    folder: Path,
    name: str,
    plan: dict,
    root: Root,
    memory_mib: int,
    clock: str,
    binds: Mapping[str, Path] = MappingProxyType({}),
) -> list[str]:
    """The command line of a machine that runs inside/NAME.py, and the folder ready for it.

    root: its root file system. binds: names in /mnt of the machine to folders of the host. Its
    messages go to standard output.
    """
    for old in ("result.json", "status", "output", "console.log"):
        (folder / old).unlink(missing_ok=True)
    (folder / "plan.json").write_text(json.dumps(plan))
    arguments = (
        f"mem={memory_mib}M root=/dev/root rootfstype=hostfs rootflags=/guest ro "
        "init=/mnt/inside/init con0=null,fd:1 con=null ssl=null panic=-1 panic_on_oops=1 "
        # qemu-nbd keeps a disk open that is mounted.
        "bdev_allow_write_mounted=1 "
        f"{clock} lab.run={name}"
    )
    # So that it repeats: random numbers of the plan's seed, and memory at the same addresses.
    random = f"LD_PRELOAD=/guest/mnt/host-random.so HOST_RANDOM_SEED={plan.get('seed', 1)}"
    linux = f"setarch --addr-no-randomize /guest/mnt/linux {arguments}"
    command = f"cd /tmp; TMPDIR=/dev/shm {random} exec {linux}"
    outside = {"/guest": root.path, "/guest/mnt": folder}
    outside |= {f"/guest/mnt/{inside}": path for inside, path in binds.items()}
    return build_root(cache).command(["sh", "-c", command], outside, "builder")


def left(folder: Path, name: str) -> dict:
    """The result of inside/NAME.py; a LabError with its last lines if it did not end well."""
    if _text(folder / "status") != "0":
        last_lines = "\n".join(_text(folder / "output").splitlines()[-20:]) or "it printed nothing"
        raise LabError(f"{name} ended early: {last_lines}", folder / "console.log")
    return json.loads((folder / "result.json").read_text())


def _text(path: Path) -> str:
    return path.read_text(errors="replace").strip() if path.exists() else ""
