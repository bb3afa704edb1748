# SPDX-License-Identifier: LGPL-2.1-or-later
"""Debian 13 trees: making them with mmdebstrap, and running commands in them.

    package-root         packages for dpkg-buildpackage: recipes/package.packages
    build-root           these, and those of checks and host-side tests: recipes/build.packages,
                         with the headers and the source of Debian's stable kernel
    image-SERIES-root    the tree of a guest: recipes/image.packages and a kernel
    page-root            build-root without a kernel, with recipes/page.packages: Cockpit, a browser
    image-applications-SERIES-root
                         the same with recipes/applications.packages, for one bench
    image-metrics-SERIES-root
                         the same with recipes/metrics.packages, for one stage
    image-slurm-SERIES-root
                         the same with recipes/slurm.packages, for one stage
    image-cockpit-SERIES-root
                         the same with recipes/cockpit.packages, for one stage
    image-nri-SERIES-root
                         the same with recipes/nri.packages, for one stage
    image-containers-SERIES-root
                         the same with recipes/containers.packages, for one stage
    package-nri-root     package-root with recipes/package-nri.packages: Go and its libraries
    distributions-root   package-root with recipes/distributions.packages: rpm, makepkg, nix;
                         and recipes/autopkgtest.packages
    suites-root          recipes/suites.packages: compilers and programs for xfstests and LTP
    build-SERIES-root    a copy of build-root with headers and source of a backports kernel

The list of packages is the key of a tree, and nothing else is: the mirror is the host's business,
and further changes of a tree are made in a copy of it, or in it at the time of use.

Only Debian stable is required. A backports kernel is an optional input: its trees are made when a
stage or `--kernel` names its series, and a series that the archive no longer has is one clear line.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from . import archive, host
from .archive import BACKPORTS, SUITE
from .cache import Cache
from .namespace import namespaced, run
from .parallel import at_once
from .progress import LabError

RECIPES = Path(__file__).resolve().parent / "recipes"
COMPAT = Path(__file__).resolve().parents[2] / "kernel/compat"
# The series of Debian's linux-image-amd64: commands that name no kernel use it.
KERNEL = "6.12"


def _series(folder: Path) -> list[int]:
    return [int(number) for number in folder.name.split(".")]


# All series that the elevator supports, the stable one first, and the suite that has each.
KERNELS = {KERNEL: SUITE} | {
    path.name: BACKPORTS
    for path in sorted(filter(Path.is_dir, COMPAT.glob("[0-9]*.[0-9]*")), key=_series)
    if path.name != KERNEL
}

# Documentation is of no use in these trees, and unpacking it takes a tenth of the time.
DPKG_OPTIONS = (
    "force-unsafe-io",
    "force-confold",
    "path-exclude=/usr/share/doc/*",
    "path-exclude=/usr/share/man/*",
    "path-exclude=/usr/share/info/*",
    "path-exclude=/usr/share/locale/*",
)

# Backports are on the same mirror; apt takes nothing from there that is not named with the suite.
WITH_BACKPORTS = (
    f"--setup-hook=sed -n 's/ {SUITE} main$/ {BACKPORTS} main/p' \"$1/etc/apt/sources.list\" | "
    'tee "$1/etc/apt/sources.list.d/backports.list" | grep .'
)


@dataclass(frozen=True)
class Recipe:
    """The recipe of a tree: its name, its packages, and hooks of mmdebstrap."""

    name: str
    packages: tuple[str, ...]
    hooks: tuple[str, ...] = ()

    def key(self) -> dict[str, object]:
        """All of it, for the key of the tree and of the artefacts made in it."""
        return {"suite": SUITE, "dpkg": DPKG_OPTIONS} | asdict(self)


# Packages are built and tests are run as the user builder, never as root.
WITH_BUILDER = '--customize-hook=chroot "$1" useradd --create-home --uid 1000 --user-group builder'


def package_recipe() -> Recipe:
    """The tree that packages are built in: small, so that the first demo starts early."""
    return Recipe("package", _listed("package"), (WITH_BUILDER,))


def package_nri_recipe() -> Recipe:
    """The tree that packages are built in with sutro-nri: Go and libraries are 600 MB more."""
    packages = (*_listed("package"), *_listed("package-nri"))
    return Recipe("package-nri", packages, (WITH_BUILDER,))


def packages_of(image: Recipe) -> Recipe:
    """The tree that the packages for an image root are built in."""
    return package_nri_recipe() if image.name == nri_recipe().name else package_recipe()


def build_recipe() -> Recipe:
    """The tree that the checks and all host-side tests run in."""
    stable = ("linux-headers-amd64", f"linux-source-{KERNEL}")
    packages = (*_listed("package"), *_listed("build"), *stable)
    return Recipe("build", packages, (WITH_BUILDER,))


def page_recipe() -> Recipe:
    """The tree of the browser test, which nothing else needs: a browser is 300 MB."""
    packages = (*_listed("package"), *_listed("build"), *_listed("page"))
    # The names of metrics, which the service pmcd makes when it starts.
    names = '--customize-hook=chroot "$1" sh -ec "cd /var/lib/pcp/pmns; ./Rebuild -u"'
    return Recipe("page", packages, (WITH_BUILDER, names))


def image_recipe(series: str) -> Recipe:
    """The tree of a guest with the kernel of a series.

    An initramfs of Debian's making is never booted here; making it would cost ten seconds.
    """
    hooks = [_setting("initramfs-tools/update-initramfs.conf", "update_initramfs=no")]
    own = ["linux-image-amd64", "linux-headers-amd64", f"linux-source-{series}"]
    if KERNELS[series] == BACKPORTS:
        hooks += [WITH_BACKPORTS, *_of_backports(series, "image", "headers")]
        own = []
    return Recipe(f"image-{series}", (*_listed("image"), *own), tuple(hooks))


def applications_recipe() -> Recipe:
    """The tree of a guest with applications, and no database before the guest makes one."""
    return _guest_with(
        "applications",
        _setting("postgresql-common/createcluster.conf", "create_main_cluster=false"),
    )


def metrics_recipe() -> Recipe:
    """The tree of a guest with Prometheus, which a test starts."""
    hook = '--customize-hook=chroot "$1" systemctl disable prometheus.service'
    return _guest_with("metrics", hook)


def slurm_recipe() -> Recipe:
    """The tree of a guest with Slurm."""
    return _guest_with("slurm")


def cockpit_recipe() -> Recipe:
    """The tree of a guest with Cockpit and a browser."""
    return _guest_with("cockpit")


def nri_recipe() -> Recipe:
    """The tree of a guest with a container runtime."""
    return _guest_with("nri")


def containers_recipe() -> Recipe:
    """The tree of a guest with engines of containers and virtual machines."""
    return _guest_with("containers")


def _guest_with(name: str, *hooks: str) -> Recipe:
    """A guest with more packages has a tree of its own, so that the image of others stays small."""
    base = image_recipe(KERNEL)
    packages = (*base.packages, *_listed(name))
    return Recipe(f"image-{name}-{KERNEL}", packages, (*base.hooks, *hooks))


def distributions_recipe() -> Recipe:
    """The tree with the package tools of other distributions and autopkgtest, for one stage."""
    packages = (*_listed("package"), *_listed("distributions"), *_listed("autopkgtest"))
    return Recipe("distributions", packages, (WITH_BUILDER,))


def suites_recipe() -> Recipe:
    """The tree that xfstests and LTP are built in, and the root of the machine that runs them."""
    # A machine is the user builder, who shall be able to read the passwords that su looks up: none.
    users = (
        '--customize-hook=chroot "$1" sh -ec "for user in fsgqa fsgqa2 123456-fsgqa; do '
        "useradd --badname --create-home --shell /bin/bash --user-group \\$user; done; "
        'chmod 644 /etc/shadow /etc/gshadow"'
    )
    return Recipe("suites", _listed("suites"), (WITH_BUILDER, users))


def _setting(file: str, line: str) -> str:
    """A hook that writes a file below /etc before packages are configured."""
    folder = file.partition("/")[0]
    return f'--essential-hook=mkdir -p "$1/etc/{folder}"; echo {line} >"$1/etc/{file}"'


def _listed(name: str) -> tuple[str, ...]:
    """The packages that recipes/NAME.packages lists."""
    lines = (RECIPES / f"{name}.packages").read_text().splitlines()
    return tuple(line.strip() for line in lines if line.strip() and not line.startswith("#"))


def _of_backports(series: str, *kinds: str) -> list[str]:
    """Hooks that install the newest linux-KIND of a series, and its source, from backports.

    They use the full names, because linux-KIND-amd64 goes on to the next series while the packages
    of the old one stay. Their dependencies may come from that suite, too.
    """
    return [
        f'--customize-hook=chroot "$1" apt-cache pkgnames linux-{kind}-{series}. | '
        f"grep -xE 'linux-{kind}-[0-9.]+[+]deb[0-9]+-amd64' | sort -V | tail -n 1 | "
        f"(read -r name || {{ echo 'E: no linux-{kind} of {series} there' >&2; exit 1; }}; "
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
        command = self.command(argv, binds or {}, user)
        return run(command, what, log, check=check, timeout_s=timeout_s)

    def command(self, argv: Sequence[str], binds: Mapping[str, Path], user: str) -> list[str]:
        """The command line that runs argv in the tree as this user, in namespaces of its own."""
        mounts = [arg for inside, outside in binds.items() for arg in (inside, str(outside))]
        enter = ["sh", str(RECIPES / "enter"), str(self.path), user, *mounts, "--", *argv]
        return namespaced(enter)

    def versions(self) -> str:
        """A digest of all installed packages with their versions: part of the key of a result."""
        status = (self.path / "var/lib/dpkg/status").read_text(errors="replace")
        wanted = ("Package: ", "Version: ")
        lines = [line for line in status.splitlines() if line.startswith(wanted)]
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def bootstrapped(cache: Cache, recipe: Recipe) -> Root:
    """The tree of a recipe from the cache, bootstrapped from the Debian archive if not there."""

    def build(folder: Path) -> None:
        _bootstrap(cache, folder / "tree", recipe)

    what = f"{recipe.name} root: {len(recipe.packages)} packages and what they need"
    return Root(cache.artefact(f"{recipe.name}-root", recipe.key(), what, build) / "tree")


def prepared(cache: Cache, *recipes: Recipe) -> None:
    """Bootstrap several trees side by side, after one download of all their packages."""
    missing = [r for r in recipes if not cache.existing(f"{r.name}-root", r.key())]
    if not missing:
        return
    archive.fetched(cache, [name for recipe in missing for name in recipe.packages])
    at_once([partial(bootstrapped, cache, recipe) for recipe in missing])


def build_root(cache: Cache, series: str = KERNEL) -> Root:
    """The tree that checks and host-side tests run in, with headers and source of a kernel series.

    For a backports series it is a copy of the one for the stable kernel (of links to its files),
    in which the packages of the newest kernel of that series are unpacked.
    """
    base = bootstrapped(cache, build_recipe())
    if series == KERNEL:
        return base

    def build(folder: Path) -> None:
        require(cache, series)
        tree, log = folder / "tree", cache.run_dir / f"kernel-{series}.log"
        what = f"the headers and the source of Linux {series}"
        run(namespaced(["cp", "--archive", "--link", str(base.path), str(tree)]), what, log)
        binds = {"/mnt/lab": RECIPES} | host.network_files()
        words = ["sh", "-e", "/mnt/lab/kernel-headers", series, BACKPORTS, *host.apt_options()]
        Root(tree).run(words, f"fetching {what}", log, binds=binds)

    what = f"build root for Linux {series}: headers and source from {BACKPORTS}"
    path = cache.artefact(f"build-{series}-root", build_key(series), what, build)
    return Root(path / "tree")


def build_key(series: str) -> dict[str, object]:
    """The key of `build_root` for a backports series."""
    script = (RECIPES / "kernel-headers").read_text()
    base = build_recipe().key()
    return {"base": base, "series": series, "suite": BACKPORTS, "script": script}


def require(cache: Cache, series: str) -> None:
    """Raise a LabError if the archive has no kernel of this series today."""
    offered = archive.backports(cache)
    if series not in offered:
        raise LabError(absent(series, offered))


def absent(series: str, offered: dict[str, str]) -> str:
    """The one line about a kernel series that backports do not have."""
    there = ", ".join(offered.values()) or "no kernel with headers and source"
    return f"{BACKPORTS} has no Linux {series} today; it has {there}"


def _bootstrap(cache: Cache, tree: Path, recipe: Recipe) -> None:
    """mmdebstrap in root mode: a user is root of the user namespace it runs in."""
    if any(c in str(tree) for c in ' "\\'):
        raise LabError(
            f"mmdebstrap cannot work below {tree}: choose a --cache without blanks or quotes"
        )
    if BACKPORTS in " ".join(recipe.hooks):
        require(cache, recipe.name.rpartition("-")[2])
    # Packages that are already there are linked into apt's folder, new ones are kept for the next.
    shared = archive.packages(cache)
    shared.mkdir(exist_ok=True)
    inside = '"$1/var/cache/apt/archives"'
    command = ["mmdebstrap", "--mode=root", "--variant=minbase"]
    command += ["--skip=download/empty", "--skip=essential/unlink", "--skip=cleanup/apt/cache"]
    command += [
        f"--setup-hook=mkdir -p {inside}; find '{shared}' -maxdepth 1 -name '*.deb' "
        f"-exec cp --link --target-directory={inside} {{}} +",
        *recipe.hooks,
        f"--customize-hook=find {inside} -name '*.deb' -links 1 "
        f"-exec cp --link --no-clobber --target-directory='{shared}' {{}} +; "
        f"find {inside} -name '*.deb' -delete",
    ]
    command += ["--include=" + ",".join(recipe.packages)]
    command += [f"--dpkgopt={option}" for option in DPKG_OPTIONS]
    command += [f"--aptopt={option}" for option in host.apt_options()]
    command += [SUITE, str(tree), *host.mirrors(SUITE)]
    log = cache.run_dir / f"{recipe.name}-root.log"
    run(namespaced(command), f"mmdebstrap of the {recipe.name} root", log)
