# SPDX-License-Identifier: LGPL-2.1-or-later
"""Products of the clone: the .deb packages and the kernel module of the model disk.

A build sees a copy of exactly the files that its key was made from, so what is not in the key
cannot change the product.
"""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import archive, host
from .cache import Cache, digest_files
from .image import image_root
from .namespace import namespaced, remove_tree, run
from .progress import LabError
from .roots import (
    KERNEL,
    RECIPES,
    Recipe,
    Root,
    applications_recipe,
    bootstrapped,
    build_recipe,
    build_root,
    package_nri_recipe,
    package_recipe,
    page_recipe,
)

# Rooms that no package is made from, and files there that are packaged all the same: a change
# of other files there costs no rebuild.
NOT_PACKAGED = (
    "lab",
    ".ci/",
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "tests/",
    "Documentation/",
)
PACKAGED = ("Documentation/guides/", "Documentation/hardware.rst",
            "Documentation/images/cockpit", "Documentation/install.rst", "Documentation/man/",
            "Documentation/meson.build", "Documentation/org.sutro1.xml", "tests/hardware/",
            "tests/bench/__init__.py", "tests/bench/book.py", "tests/bench/read.py",
            "tests/rig/__init__.py", "tests/rig/result.py")  # fmt: skip
# Files that have the version.
VERSIONED = ("debian/changelog", "meson.build", "kernel/sutro-iosched.c",
             "policies/sutro/__init__.py")  # fmt: skip
# The sources of sutro-nri, and of the tests of it.
NRI, NRI_TESTS = "nri/", "tests/nri/"
MODELDISK = "tests/modeldisk/"
CROWD = "tests/bench/scale/crowd.c"
# Names that are left out without git.
NOT_SOURCE = {".git", "__pycache__", ".pytest_cache", "build", "builddir"}


def git(source: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run git in the clone, which may belong to another user than that of the lab."""
    command = ["git", "-c", f"safe.directory={source}", "-C", str(source), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def source_files(source: Path) -> list[str]:
    """The files of the clone: tracked, and new ones that git does not ignore."""
    if (source / ".git").exists():
        done = git(source, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
        if done.returncode != 0:
            raise LabError(f"git cannot list the files of {source}: {done.stderr.strip()}")
        names = {name for name in done.stdout.split("\0") if name}
    else:
        names = {
            str(path.relative_to(source))
            for path in source.rglob("*")
            if not NOT_SOURCE & set(path.relative_to(source).parts)
        }
    return sorted(n for n in names if (source / n).is_symlink() or (source / n).is_file())


def copied(source: Path, names: list[str], target: Path) -> None:
    """Copy these files of the clone, and nothing else, to a new folder."""
    target.mkdir(parents=True)
    for name in names:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source / name, target / name, follow_symlinks=False)


def debs(cache: Cache, source: Path, recipe: Recipe | None = None, *, version: str = "") -> Path:
    """The folder of .deb packages of this clone, with sutro-nri in the tree that has Go.

    version: with this number in the place of their own.
    """
    recipe = recipe or package_recipe()
    has_go = recipe.name == package_nri_recipe().name
    root, kind = bootstrapped(cache, recipe), "debs-nri" if has_go else "debs"
    names = [
        name
        for name in source_files(source)
        if name.startswith(PACKAGED) or not name.startswith(NOT_PACKAGED)
        if has_go or not name.startswith(NRI)
    ]
    profiles = ("pkg.sutro.nri",) if has_go else ()

    def build(folder: Path) -> None:
        copied(source, names, folder / "work" / "sutro")
        if version:
            renumber(folder / "work" / "sutro", version)
        log = cache.run_dir / f"{recipe.name}s.log"
        go = go_cache(cache, root, log) if has_go else {}
        as_builder(root, "package", folder / "work", log, arguments=profiles, **go)
        for deb in (folder / "work").glob("*.deb"):
            shutil.copyfile(deb, folder / deb.name)
        remove_tree(folder / "work")

    key = _key(source, recipe, names, "package")
    what = "packages: building sutro and its DKMS packages"
    if version:
        key["version"] = version
        kind, what = f"{kind}-former", f"{what} as version {version}"
    return cache.artefact(kind, key, what, build)


def _key(source: Path, recipe: Recipe, names: list[str], script: str) -> dict[str, Any]:
    """The inputs of a product: a tree, files of the clone, and a script in that tree."""
    files, text = digest_files(source, names), (RECIPES / script).read_text()
    return {"root": recipe.key(), "files": files, "script": text}


def renumber(clone: Path, version: str) -> None:
    """Give the packages, the daemon and the module of a copy of the clone another version."""
    changelog = clone / "debian/changelog"
    own = changelog.read_text().partition("(")[2].partition(")")[0]
    for file in VERSIONED:
        path = clone / file
        text = path.read_text()
        if own not in text:
            raise LabError(f"{file} does not have the version {own} of debian/changelog")
        path.write_text(text.replace(own, version, 1))


def go_cache(cache: Cache, root: Root, log: Path) -> dict[str, Any]:
    """Arguments of `as_builder` for Go: its library is compiled once, not for each program."""
    folder = cache.root / "gocache"
    folder.mkdir(exist_ok=True)
    binds = {"/gocache": folder}
    root.run(["chown", "builder:builder", "/gocache"], "the cache of Go", log, binds=binds)
    return {"binds": binds, "env": {"GOCACHE": "/gocache"}}


def nri_work(cache: Cache, source: Path) -> Path:
    """A folder with the sources of sutro-nri and its tests, for `as_builder`."""
    work = cache.run_dir / "nri-work"
    names = [name for name in source_files(source) if name.startswith((NRI, NRI_TESTS))]
    copied(source, names, work / "sutro")
    return work


def cri_client(cache: Cache, source: Path) -> Path:
    """The folder with the client of a container runtime."""
    root = bootstrapped(cache, package_nri_recipe())
    names = [name for name in source_files(source) if name.startswith((NRI_TESTS, NRI + "build"))]

    def build(folder: Path) -> None:
        copied(source, names, folder / "work" / "sutro")
        log = cache.run_dir / "cri.log"
        as_builder(root, "cri", folder / "work", log, **go_cache(cache, root, log))
        shutil.copyfile(folder / "work/cri", folder / "cri")
        remove_tree(folder / "work")

    key = _key(source, package_nri_recipe(), names, "cri")
    return cache.artefact("cri", key, "nri: building a client of containerd", build)


def test_modules(cache: Cache, source: Path, recipe: Recipe) -> Path | None:
    """The folder with modeldisk.ko, built for the kernel of the image root of a recipe."""
    if not (source / MODELDISK / "Kbuild").exists():
        return None
    root = bootstrapped(cache, recipe)
    names = [name for name in source_files(source) if name.startswith(MODELDISK)]

    def build(folder: Path) -> None:
        copied(source, names, folder / "work")
        root.run(
            ["sh", "-e", "/mnt/lab/modules"],
            "building modeldisk.ko",
            cache.run_dir / "modules.log",
            binds={"/mnt/lab": RECIPES, "/build": folder / "work" / MODELDISK},
        )
        for module in (folder / "work" / MODELDISK).glob("*.ko"):
            shutil.copyfile(module, folder / module.name)
        remove_tree(folder / "work")

    key = _key(source, recipe, names, "modules")
    kind = recipe.name.replace("image", "modules", 1)
    return cache.artefact(kind, key, f"model disk: building modeldisk.ko for {recipe.name}", build)


def other_kernel(cache: Cache) -> Path:
    """The folder of the packages of a stable kernel that the guest does not run."""
    modules = image_root(cache, KERNEL).path / "usr/lib/modules"
    (running,) = (path.name for path in modules.iterdir())

    def build(folder: Path) -> None:
        archive.other_kernel(cache, running, folder)

    key = {"running": running}
    return cache.artefact("other-kernel", key, f"packages: another kernel than {running}", build)


def crowd(cache: Cache, source: Path) -> Path:
    """The folder with the load of the bench of scale."""
    root = build_root(cache)

    def build(folder: Path) -> None:
        copied(source, [CROWD], folder / "work")
        as_builder(root, "crowd", folder / "work", cache.run_dir / "crowd.log")
        shutil.copyfile(folder / "work/crowd", folder / "crowd")
        remove_tree(folder / "work")

    key = _key(source, build_recipe(), [CROWD], "crowd")
    return cache.artefact("crowd", key, "bench: building the load of scale", build)


def databases(cache: Cache) -> Path:
    """The folder with the data of the bench of applications."""
    recipe = applications_recipe()
    root = bootstrapped(cache, recipe)
    log = cache.run_dir / "databases.log"

    def build(folder: Path) -> None:
        work = folder / "work"
        work.mkdir()
        what, binds = "making the data of databases", {"/mnt/lab": RECIPES, "/build": work}
        root.run(["chown", "postgres:postgres", "/build"], what, log, binds=binds)
        root.run(["sh", "-e", "/mnt/lab/databases"], what, log, binds=binds, user="postgres")
        shutil.copyfile(work / "postgresql.tar", folder / "postgresql.tar")
        remove_tree(work)

    key = {"root": recipe.key(), "script": (RECIPES / "databases").read_text()}
    return cache.artefact("databases", key, "bench: making the data of databases", build)


def gathered(target: Path, folders: list[Path | None]) -> Path:
    """One folder with copies of all files in these folders."""
    target.mkdir()
    for folder in folders:
        for path in folder.iterdir() if folder else ():
            shutil.copyfile(path, target / path.name)
    return target


def tools(cache: Cache) -> Path:
    """The folder of Python tools that the checks need and Debian 13 does not have."""
    return _tools(cache, build_recipe(), "tools")


def page_tools(cache: Cache) -> Path:
    """The folder of the same for the browser test: axe-core, in a package for another driver."""
    return _tools(cache, page_recipe(), "page-tools", "--no-deps")


def _tools(cache: Cache, recipe: Recipe, kind: str, *options: str) -> Path:
    """The lines of recipes/NAME.pip for the tree of the same name, with options of pip."""
    root = bootstrapped(cache, recipe)
    log = cache.run_dir / f"{kind}.log"

    def build(folder: Path) -> None:
        work = folder / "work"
        work.mkdir()
        binds, env = host.network_files(), host.pip_settings()
        words = (recipe.name, *options)
        as_builder(root, "tools", work, log, arguments=words, binds=binds, env=env)
        run(namespaced(["mv", *map(str, (work / "tools").iterdir()), str(folder)]), "tools", log)
        remove_tree(work)

    key = {"root": recipe.key(), "list": (RECIPES / f"{recipe.name}.pip").read_text()}
    return cache.artefact(kind, key, f"{kind}: from the Python package index", build)


def compilations(cache: Cache, root: Root, log: Path) -> dict[str, Path]:
    """Binds of `as_builder` for a recipe that compiles with ccache: its folder is /ccache."""
    folder = cache.root / "ccache"
    folder.mkdir(exist_ok=True)
    root.run(["chown", "builder:builder", "/ccache"], "ccache", log, binds={"/ccache": folder})
    return {"/ccache": folder}


def as_builder(
    root: Root,
    script: str,
    work: Path,
    log: Path,
    *,
    arguments: Sequence[str] = (),
    binds: dict[str, Path] | None = None,
    env: dict[str, str] | None = None,
    check: bool = True,
) -> int:
    """Run recipes/SCRIPT in /build of a root as the user builder, who owns /build for that time."""
    what = f"recipes/{script} in the build root"
    binds = {"/mnt/lab": RECIPES, "/build": work} | (binds or {})
    settings = [f"{name}={value}" for name, value in (env or {}).items()]
    root.run(["chown", "-R", "builder:builder", "/build"], what, log, binds={"/build": work})
    try:
        command = ["env", *settings, "sh", "-e", f"/mnt/lab/{script}", *arguments]
        return root.run(command, what, log, binds=binds, user="builder", check=check)
    finally:
        run(namespaced(["chown", "-R", "0:0", str(work)]), what, log)
