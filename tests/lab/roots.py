# SPDX-License-Identifier: LGPL-2.1-or-later
"""Debian 13 trees: making them with mmdebstrap, and running commands in them.

There is one to build in, with the headers and sources of every kernel in KERNELS, and for each of
them one to make a guest of, with that kernel. A tree is described by a list of packages, one per
line of recipes/build.packages or image.packages. That list is its key, and nothing else is: the
mirror is the host's business, and what a tree needs beyond its packages is done to a copy of it, or
in it at the time of use.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from . import host
from .cache import Cache
from .namespace import namespaced, run
from .progress import LabError

SUITE = "trixie"
BACKPORTS = f"{SUITE}-backports"
# The stock kernels, by series, and the suite that has them. The first is Debian's own, the one of
# its linux-image-amd64: what names no kernel gets it.
KERNELS = {"6.12": SUITE, "7.2": BACKPORTS}
KERNEL = next(iter(KERNELS))
RECIPES = Path(__file__).resolve().parent / "recipes"

# Nobody reads documentation in these trees, and unpacking it costs a tenth of the time.
DPKG_OPTIONS = (
    "force-unsafe-io",
    "force-confold",
    "path-exclude=/usr/share/doc/*",
    "path-exclude=/usr/share/man/*",
    "path-exclude=/usr/share/info/*",
    "path-exclude=/usr/share/locale/*",
)

# Backports come from where the rest comes from; nothing is taken from there unless it is asked for.
WITH_BACKPORTS = (
    f"--setup-hook=sed -n 's/ {SUITE} main$/ {BACKPORTS} main/p' \"$1/etc/apt/sources.list\" | "
    'tee "$1/etc/apt/sources.list.d/backports.list" | grep .'
)


@dataclass(frozen=True)
class Recipe:
    """What a tree is made from: its name, its packages, and hooks of mmdebstrap."""

    name: str
    packages: list[str]
    hooks: list[str]

    def key(self) -> dict[str, object]:
        """All of it, for the key of the tree and of what is made in it."""
        return {"suite": SUITE, "dpkg": DPKG_OPTIONS} | asdict(self)


def build_recipe() -> Recipe:
    """The tree to build in. Everything is built and tested as the user builder, never as root."""
    hooks = ['--customize-hook=chroot "$1" useradd --create-home --uid 1000 --user-group builder']
    hooks.append(WITH_BACKPORTS)
    hooks += [hook for series in KERNELS for hook in _of_backports(series, "headers")]
    own = ["linux-headers-amd64", f"linux-source-{KERNEL}"]
    return Recipe("build", _listed("build") + own, hooks)


def image_recipe(series: str) -> Recipe:
    """The tree of a guest with the kernel of a series.

    An initramfs of Debian's making is never booted here; making it would cost ten seconds.
    """
    hooks = [
        '--essential-hook=mkdir -p "$1/etc/initramfs-tools"; '
        'echo update_initramfs=no >"$1/etc/initramfs-tools/update-initramfs.conf"'
    ]
    if KERNELS[series] == BACKPORTS:
        hooks += [WITH_BACKPORTS, *_of_backports(series, "image", "headers")]
        own = []
    else:
        own = ["linux-image-amd64", "linux-headers-amd64", f"linux-source-{series}"]
    return Recipe(f"image-{series}", _listed("image") + own, hooks)


def _listed(name: str) -> list[str]:
    """The packages that recipes/NAME.packages lists."""
    lines = (RECIPES / f"{name}.packages").read_text().splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def _of_backports(series: str, *kinds: str) -> list[str]:
    """Hooks that install the newest linux-KIND of a series, and its source, if backports have it.

    By their full names, for linux-KIND-amd64 goes on to the next series while the packages of the
    old one stay. What they depend on may be of that suite, too.
    """
    if KERNELS[series] != BACKPORTS:
        return []
    return [
        f'--customize-hook=chroot "$1" apt-cache pkgnames linux-{kind}-{series}. | '
        f"grep -xE 'linux-{kind}-[0-9.]+[+]deb[0-9]+-amd64' | sort -V | tail -n 1 | "
        f"(read -r name || {{ echo 'E: {BACKPORTS} has no linux-{kind} of {series} any more: "
        "change KERNELS in tests/lab/roots.py' >&2; exit 1; }; "
        'chroot "$1" apt-get install --yes --no-install-recommends '
        f'"$name/{BACKPORTS}" linux-source-{series})'
        for kind in kinds
    ]


class Root:
    """A finished Debian tree."""

    def __init__(self, path: Path):
        self.path = path

    def run(
        self,
        argv: Sequence[str],
        what: str,
        log: Path,
        *,
        binds: dict[str, Path] | None = None,
        user: str = "root",
        check: bool = True,
        timeout_s: float | None = None,
    ) -> int:
        """Run argv in the tree, in namespaces of its own; binds: paths inside to host folders."""
        mounts = [
            arg for inside, outside in (binds or {}).items() for arg in (inside, str(outside))
        ]
        enter = ["sh", str(RECIPES / "enter"), str(self.path), user, *mounts, "--", *argv]
        return run(namespaced(enter), what, log, check=check, timeout_s=timeout_s)


def bootstrapped(cache: Cache, recipe: Recipe) -> Root:
    """The tree of a recipe from the cache, bootstrapped from the Debian archive if not there."""

    def build(folder: Path) -> None:
        _bootstrap(folder / "tree", recipe, cache.run_dir / f"{recipe.name}-root.log")

    what = f"{recipe.name} root: {len(recipe.packages)} packages and what they need, "
    what += "from the Debian archive"
    return Root(cache.artefact(f"{recipe.name}-root", recipe.key(), what, build) / "tree")


def _bootstrap(tree: Path, recipe: Recipe, log: Path) -> None:
    """mmdebstrap in root mode: a user is root of the user namespace it runs in."""
    if any(c in str(tree) for c in ' "\\'):
        raise LabError(
            f"mmdebstrap cannot work below {tree}: choose a --cache without blanks or quotes"
        )
    command = ["mmdebstrap", "--mode=root", "--variant=minbase", *recipe.hooks]
    command += ["--include=" + ",".join(recipe.packages)]
    command += [f"--dpkgopt={option}" for option in DPKG_OPTIONS]
    command += [f"--aptopt={option}" for option in host.apt_options()]
    command += [SUITE, str(tree), *host.mirrors(SUITE)]
    run(namespaced(command), f"mmdebstrap of the {recipe.name} root", log)
