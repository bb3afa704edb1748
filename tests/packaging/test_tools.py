# SPDX-License-Identifier: LGPL-2.1-or-later
"""rpm, makepkg and nix of Debian accept packaging/; two of them build packages with it.

The dependencies are not checked: their names are those of other distributions. The files of both
packages are compared with each other; tests/check/test_packaging.py compares the lists with meson.
"""

import subprocess
import tarfile
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
PACKAGING = TOP / "packaging"
SITELIB = "/usr/lib/python3/dist-packages"
NAMES = ["cockpit-sutro", "sutro", "sutro-exporter", "sutro-slurm", "sutro-tests"]


def run(*command: str | Path, cwd: Path = TOP) -> str:
    """Run a tool; its output is the reason of a failure."""
    done = subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, timeout=1800, check=False
    )
    if done.returncode:
        pytest.fail(f"{command[0]}: {done.returncode}\n{done.stdout}{done.stderr}", pytrace=False)
    return done.stdout


def made(folder: Path) -> Path:
    """The tarball of a release."""
    file = folder / "sutro-0.1.0.tar.gz"
    with tarfile.open(file, "w:gz") as tar:
        tar.add(TOP, "sutro-0.1.0")
    return file


def test_spec_is_parsed() -> None:
    spec = PACKAGING / "sutro.spec"
    assert "%files exporter" in run("rpmspec", "--parse", spec)
    named = run("rpmspec", "--query", "--queryformat=%{NAME} %{VERSION}\n", spec).split("\n")
    assert sorted(filter(None, named)) == [f"{name} 0.1.0" for name in NAMES]


@pytest.fixture(scope="module")
def rpms(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The packages that rpmbuild makes."""
    top = tmp_path_factory.mktemp("rpm")
    (top / "SOURCES").mkdir()
    made(top / "SOURCES")
    # The last one is where meson puts modules of Python on Debian.
    macros = (f"_topdir {top}", "debug_package %{nil}", f"python3_sitelib {SITELIB}")
    words = [word for macro in macros for word in ("--define", macro)]
    run("rpmbuild", "-bb", "--nodeps", *words, PACKAGING / "sutro.spec")
    return sorted(top.glob("RPMS/*/*.rpm"))


def test_rpms_are_built(rpms: list[Path]) -> None:
    """rpmbuild refuses files that are installed and in no list, and lists of files that are not."""
    names = [run("rpm", "--query", "--package", "--queryformat=%{NAME}", file) for file in rpms]
    assert sorted(names) == NAMES


def test_package_of_arch_has_the_files_of_the_rpms(rpms: list[Path], tmp_path: Path) -> None:
    """makepkg parses the PKGBUILD and builds with it."""
    for name in ("PKGBUILD", "sutro.install"):
        (tmp_path / name).write_text((PACKAGING / name).read_text())
        run("bash", "-n", tmp_path / name)
    info = run("makepkg", "--printsrcinfo", cwd=tmp_path)
    assert "pkgver = 0.1.0" in info and "depends = libinih" in info
    assert "install = sutro.install" in info
    made(tmp_path)
    run("makepkg", "--nodeps", "--nocheck", cwd=tmp_path)
    (package,) = tmp_path.glob("sutro-0.1.0-1-x86_64.pkg.tar*")
    lines = run("bsdtar", "--list", "--file", package).splitlines()
    arch = {f"/{line}" for line in lines if not line.startswith(".") and not line.endswith("/")}
    query = "[%{FILEMODES:perms} %{FILENAMES}\\n]"
    listed = [
        line.split(" ", 1)
        for file in rpms
        for line in run("rpm", "--query", "--package", f"--queryformat={query}", file).splitlines()
    ]
    # The spec installs a licence, which meson does not.
    files = {path for mode, path in listed if mode[0] == "-" and "/licenses/" not in path}
    assert {plain(path) for path in arch} == {plain(path) for path in files}


def plain(path: str) -> str:
    """A path without what the tools of a distribution do to it."""
    return path.removesuffix(".gz").replace("/usr/sbin/", "/usr/bin/")


def test_expression_of_nix() -> None:
    """It is parsed, and it is a function of packages; nixpkgs is not there."""
    file = PACKAGING / "default.nix"
    tool = ("nix-instantiate", "--store", "dummy://")
    run(*tool, "--parse", file)
    names = f"builtins.attrNames (builtins.functionArgs (import {file}))"
    found = run(*tool, "--eval", "--strict", "--expr", names)
    assert '"meson"' in found and '"systemd"' in found
