# SPDX-License-Identifier: LGPL-2.1-or-later
"""Debian 13 trees: making them with mmdebstrap, and running commands in them.

A tree is described by recipes/NAME.packages, one package per line. That list is its key, and
nothing else is: the mirror is the host's business, and what a tree needs beyond its packages is
done to a copy of it, or in it at the time of use.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from . import host
from .cache import Cache
from .namespace import namespaced, run
from .progress import LabError

SUITE = "trixie"
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

# Everything is built and tested as the user builder, never as root. An initramfs of Debian's making
# is never booted here; making it would cost ten seconds.
HOOKS = {
    "build": [
        '--customize-hook=chroot "$1" useradd --create-home --uid 1000 --user-group builder',
    ],
    "image": [
        '--essential-hook=mkdir -p "$1/etc/initramfs-tools"; '
        'echo update_initramfs=no >"$1/etc/initramfs-tools/update-initramfs.conf"',
    ],
}


def packages(name: str) -> list[str]:
    """The packages that recipes/NAME.packages lists."""
    lines = (RECIPES / f"{name}.packages").read_text().splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def recipe(name: str) -> dict[str, object]:
    """What the tree NAME is made from, for its key."""
    return {
        "suite": SUITE,
        "packages": packages(name),
        "dpkg": DPKG_OPTIONS,
        "hooks": HOOKS[name],
    }


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


def bootstrapped(cache: Cache, name: str, what: str) -> Root:
    """The tree NAME from the cache, bootstrapped from the Debian archive if it is not there."""

    def build(folder: Path) -> None:
        _bootstrap(folder / "tree", name, cache.run_dir / f"{name}-root.log")

    what += f": {len(packages(name))} packages and what they need, from the Debian archive"
    return Root(cache.artefact(f"{name}-root", recipe(name), what, build) / "tree")


def _bootstrap(tree: Path, name: str, log: Path) -> None:
    """mmdebstrap in root mode: a user is root of the user namespace it runs in."""
    if any(c in str(tree) for c in ' "\\'):
        raise LabError(
            f"mmdebstrap cannot work below {tree}: choose a --cache without blanks or quotes"
        )
    command = ["mmdebstrap", "--mode=root", "--variant=minbase", *HOOKS[name]]
    command += ["--include=" + ",".join(packages(name))]
    command += [f"--dpkgopt={option}" for option in DPKG_OPTIONS]
    command += [f"--aptopt={option}" for option in host.apt_options()]
    command += [SUITE, str(tree), *host.mirrors(SUITE)]
    run(namespaced(command), f"mmdebstrap of the {name} root", log)
