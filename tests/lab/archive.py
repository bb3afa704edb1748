# SPDX-License-Identifier: LGPL-2.1-or-later
"""The Debian archive: one download for several trees, and the kernels that backports have today.

apt of the host works here with folders of its own, so it neither reads nor changes what the host
has installed:

    CACHE/packages      .deb files, shared by all trees; unused ones are removed after 60 days
    CACHE/apt/SUITE     package lists

Two trees that are made side by side need mostly the same packages: `fetched` downloads the union
once, and mmdebstrap finds the files in its own archive folder (roots.py).

Backports replace kernels as they like. `backports` maps each kernel series that the archive has to
its newest version, so that a series that is gone is one clear line and not a failed build.
"""

import re
import time
from collections.abc import Sequence
from pathlib import Path

from . import host
from .cache import Cache
from .namespace import run
from .progress import LabError, step

SUITE = "trixie"
BACKPORTS = f"{SUITE}-backports"
# The packages that mmdebstrap's variant minbase installs before those of a recipe.
MINBASE = ("?essential", "?priority(required)", "apt")
# Not those for clouds and for real time (+deb13-cloud-amd64).
STABLE_IMAGE = re.compile(r"linux-image-(\d+\.\d+\.\d+\+deb\d+-amd64)")
KEEP_DAYS = 60
DAY_S = 86400.0


def packages(cache: Cache) -> Path:
    """The folder of downloaded .deb files."""
    return cache.root / "packages"


def fetched(cache: Cache, names: Sequence[str]) -> None:
    """Download these packages of the stable suite and all that they need, unless they are there.

    Does nothing where the host's apt names no Debian mirror: mmdebstrap then downloads by itself.
    """
    lines = host.mirrors(SUITE)
    if not lines:
        return
    with cache.locked("archive", "another run that downloads packages"):
        options = _updated(cache, SUITE, lines)
        _drop_old(packages(cache))
        step("packages: downloading what is not in the cache from the Debian archive")
        command = ["apt-get", *options, "--quiet=2", "--yes", "--no-install-recommends"]
        command += ["install", "--download-only", *MINBASE, *sorted(set(names))]
        what = "downloading Debian packages"
        with cache.names_full_disk(what):
            run(command, what, cache.run_dir / "packages-download.log")


def backports(cache: Cache) -> dict[str, str]:
    """Kernel series to the newest version that backports offer with headers and source.

    A LabError if the archive cannot be reached, or the host's apt names no mirror of it.
    """
    lines = host.mirrors(BACKPORTS)
    if not lines:
        raise LabError(
            "apt of this host names no mirror of Debian with its security archive, so no kernel "
            f"of {BACKPORTS} can be found: add both to /etc/apt/sources.list"
        )
    with cache.locked("archive", "another run that downloads packages"):
        options = _updated(cache, BACKPORTS, lines[:1])
        listed = host.output(["apt-cache", *options, "pkgnames", "linux-"])
    return newest_kernels(listed.split())


def newest_kernels(names: Sequence[str]) -> dict[str, str]:
    """Series to newest version among package names: image, headers and source must be there.

    >>> newest_kernels(["linux-image-7.3.4+deb13-amd64", "linux-headers-7.3.4+deb13-amd64",
    ...                 "linux-source-7.3", "linux-image-7.1.3+deb13-amd64"])
    {'7.3': '7.3.4+deb13-amd64'}
    """
    found: dict[str, str] = {}
    for name in sorted(names, key=_numbers):
        kernel = re.fullmatch(r"linux-image-((\d+\.\d+)\.\d+\+deb\d+-amd64)", name)
        if not kernel:
            continue
        version, series = kernel.groups()
        if {f"linux-headers-{version}", f"linux-source-{series}"} <= set(names):
            found[series] = version
    return found


def other_kernel(cache: Cache, running: str, folder: Path) -> None:
    """Download a stable kernel of another version than `running`, with its headers, to a folder."""
    lines = host.mirrors(SUITE)
    with cache.locked("archive", "another run that downloads packages"):
        options = _updated(cache, SUITE, lines)
        series = ".".join(running.split(".")[:2])
        names = host.output(["apt-cache", *options, "pkgnames", f"linux-image-{series}."]).split()
        found = filter(None, map(STABLE_IMAGE.fullmatch, names))
        others = sorted((m[1] for m in found if m[1] != running), key=_numbers)
        if not others:
            raise LabError(f"{SUITE} has no Linux {series} but {running}: nothing to upgrade to")
        base = others[-1].removesuffix("-amd64")
        command = ["sh", "-c", 'cd "$0" && exec apt-get "$@"', str(folder), *options, "--quiet=2"]
        command += ["download", f"linux-image-{base}-amd64", f"linux-headers-{base}-amd64"]
        command += [f"linux-headers-{base}-common", f"linux-kbuild-{base}"]
        run(command, f"downloading Linux {base}", cache.run_dir / "other-kernel.log")


def _numbers(name: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", name)]


def _updated(cache: Cache, suite: str, lines: Sequence[str]) -> list[str]:
    """Fetch the package lists of a suite; the apt options that make them the only ones."""
    folder = cache.root / "apt" / suite
    for part in (folder / "lists/partial", folder / "cache", packages(cache) / "partial"):
        part.mkdir(parents=True, exist_ok=True)
    signed = [line.replace("deb ", f"deb [signed-by={host.KEYRING}] ", 1) for line in lines]
    (folder / "sources.list").write_text("\n".join(signed) + "\n")
    (folder / "status").touch()
    settings = {
        "Dir::Etc::sourcelist": folder / "sources.list",
        "Dir::Etc::sourceparts": "-",
        "Dir::Etc::preferencesparts": "-",
        "Dir::State": folder,
        "Dir::State::status": folder / "status",
        "Dir::Cache": folder / "cache",
        "Dir::Cache::archives": packages(cache),
        "APT::Architecture": "amd64",
        "APT::Sandbox::User": "root",
        "APT::Install-Recommends": "false",
    }
    options = [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]
    log = cache.run_dir / f"{suite}-update.log"
    try:
        # A list that cannot be fetched is an error, not a reason to go on with an old one.
        run(["apt-get", *options, "-o", "APT::Update::Error-Mode=any", "--quiet=2", "update"],
            f"fetching the package lists of {suite}", log)  # fmt: skip
    except LabError as error:
        raise LabError(
            f"the Debian mirror of this host does not deliver {suite}: check the network and "
            "`apt-get update`, then run the lab again",
            error.log,
        ) from error
    return options


def _drop_old(folder: Path) -> None:
    """Remove packages that no download or tree has used for KEEP_DAYS."""
    for path in folder.glob("*.deb"):
        # The modification time is that of the archive; a link in a new tree changes this one.
        if time.time() - path.stat().st_ctime > KEEP_DAYS * DAY_S:
            path.unlink(missing_ok=True)
