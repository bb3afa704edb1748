# SPDX-License-Identifier: LGPL-2.1-or-later
"""DKMS builds the elevator for supported kernels and skips the others; no kernel upgrade fails.

The real dkms, in folders of its own: the source tree is what dh_install, dh_dkms and debian/rules
make of this one, the kernels are the installed headers under their own or another version. `dkms
autoinstall` is what /etc/kernel/postinst.d/dkms runs; if it fails, apt leaves a kernel package
half-configured.
"""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from kernels import (
    KERNEL,
    SERIES,
    SKIPPED,
    SOURCES,
    TREES,
    own_tree,
    series_of,
    unpack_drivers,
    version_of,
)

TOP = KERNEL.parent
PACKAGES = ("sutro-dkms", "sutro-stacking-dkms")
MODULES = [package.removesuffix("-dkms") for package in PACKAGES]
ERROR = "#error of another update"
# Of a kernel that is installed beside the one whose source is there.
UPDATES = pytest.mark.parametrize("point", [999, 0], ids=["newer", "older"])


def package_version() -> str:
    found = re.match(r"sutro \((.+)\)", (TOP / "debian/changelog").read_text())
    assert found
    return found[1]


@pytest.fixture(scope="session")
def packaged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the packages below /usr/src."""
    tree = tmp_path_factory.mktemp("packaged")
    for room in ("debian", "kernel"):
        shutil.copytree(TOP / room, tree / room, symlinks=True)
    options = [f"--package={package}" for package in PACKAGES]
    for command in (
        ["dh_install", *options],
        ["dh_dkms", *options],
        ["debian/rules", "execute_after_dh_dkms"],
    ):
        subprocess.run(
            command,
            cwd=tree,
            env=os.environ | {"DEB_VERSION_UPSTREAM": package_version()},
            check=True,
            timeout=60,
        )
    for package in PACKAGES:
        for source in (tree / "debian" / package / "usr/src").iterdir():
            source.rename(tree / source.name)
    return tree


@dataclass
class Dkms:
    """A dkms whose trees are folders of a test."""

    folder: Path
    source_tree: Path

    def run(
        self, action: str, *words: str, sources: Path = SOURCES
    ) -> subprocess.CompletedProcess[str]:
        """One command; standard output and error are one, as on a terminal."""
        places = {
            "--dkmstree": self.folder / "dkms",
            "--sourcetree": self.source_tree,
            "--installtree": self.folder / "modules",
        }
        options = [str(word) for place in places.items() for word in place]
        return subprocess.run(
            ["fakeroot", "dkms", action, *words, *options],
            env=os.environ | {"SUTRO_SOURCES": str(sources)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
        )

    def add(self, module: str) -> None:
        done = self.run("add", f"{module}/{package_version()}")
        assert done.returncode == 0, done.stdout

    def install_kernel(self, version: str, tree: Path) -> None:
        """A kernel of that version, whose headers are those in a build tree."""
        (self.folder / "modules" / version).mkdir(parents=True)
        (self.folder / "modules" / version / "build").symlink_to(tree)

    def autoinstall(self, version: str, sources: Path = SOURCES) -> str:
        """Run the steps of a new kernel's postinst, which succeeds without the module, too."""
        done = self.run("autoinstall", "--kernelver", version, sources=sources)
        assert done.returncode == 0, done.stdout
        return done.stdout

    def status(self) -> str:
        return self.run("status").stdout

    def log(self, module: str) -> str:
        """The log of a build that did not come to an end."""
        build = self.folder / "dkms" / module / package_version() / "build"
        return (build / "make.log").read_text()


@pytest.fixture
def dkms(tmp_path: Path, packaged: Path) -> Dkms:
    for name in ("dkms", "modules"):
        (tmp_path / name).mkdir()
    return Dkms(tmp_path, packaged)


@pytest.fixture
def other_source(build_tree: Path, version: str, tmp_path: Path) -> Path:
    """A folder with a linux-source whose private headers are those of another update."""
    name = f"linux-source-{series_of(version)}"
    folder = tmp_path / "sources"
    block = folder / name / "block"
    subprocess.run([KERNEL / "compat/block-headers.sh", version, block, build_tree], check=True)
    header = block / "elevator.h"
    text, changes = re.subn(
        r"(struct elevator_type\n?\s*\{\n)", r"\1\tvoid (*other)(void);\n", header.read_text()
    )
    assert changes == 1
    header.write_text(text)
    subprocess.run(["tar", "-cJf", folder / f"{name}.tar.xz", "-C", folder, name], check=True)
    return folder


@pytest.mark.long
@UPDATES
def test_held_back_source_skips_the_other_kernel_and_keeps_the_module(
    dkms: Dkms, build_tree: Path, version: str, other_source: Path, point: int
) -> None:
    """A supported kernel gets its module; another update, whose headers differ, a reason."""
    dkms.add("sutro")
    dkms.install_kernel(version, build_tree)
    assert f"Autoinstall on {version} succeeded for module(s) sutro." in dkms.autoinstall(version)
    installed = f"sutro/{package_version()}, {version}, x86_64: installed"
    assert installed in dkms.status()

    update = f"{series_of(version)}.{point}-amd64"
    dkms.install_kernel(update, build_tree)
    printed = dkms.autoinstall(update, other_source)
    assert f"Autoinstall on {update} was skipped for module(s) sutro." in printed
    assert "Building module(s)" not in printed
    assert dkms.status().splitlines() == [installed]
    reasons = re.findall(r"^block-headers: .*", dkms.log("sutro"), re.MULTILINE)
    assert reasons == [
        f"block-headers: struct elevator_type of {other_source}/linux-source-{series_of(version)}"
        f".tar.xz differs from the one kernel {update} was built with; install the package "
        f"linux-source-{series_of(version)} of the same version as the kernel, then run: "
        f"dkms autoinstall --kernelver {update}"
    ]
    assert list((dkms.folder / "modules" / version).rglob("sutro.ko*"))


@pytest.mark.long
@UPDATES
def test_drivers_of_another_update_are_skipped(
    dkms: Dkms, build_tree: Path, version: str, point: int
) -> None:
    """linux-source is that of the kernel to the last number, or the drivers stay stock."""
    dkms.add("sutro-stacking")
    update = f"{series_of(version)}.{point}-amd64"
    dkms.install_kernel(update, build_tree)
    printed = dkms.autoinstall(update)
    assert f"Autoinstall on {update} was skipped for module(s) sutro-stacking." in printed
    (reason,) = re.findall(r"^driver-source: .*", dkms.log("sutro-stacking"), re.MULTILINE)
    assert f"kernel {update} is {series_of(version)}.{point}; install the package " in reason


def test_missing_source_is_skipped(dkms: Dkms, build_tree: Path, version: str) -> None:
    for module in MODULES:
        dkms.add(module)
    dkms.install_kernel(version, build_tree)
    printed = dkms.autoinstall(version, dkms.folder)
    assert re.search(r"was skipped for module\(s\) sutro(-stacking)? sutro(-stacking)?\.", printed)
    for module, script in zip(MODULES, ("block-headers", "driver-source"), strict=True):
        (reason,) = re.findall(rf"^{script}: .*", dkms.log(module), re.MULTILINE)
        assert f"; install the package linux-source-{series_of(version)}, then run: " in reason


@pytest.mark.parametrize("module", MODULES)
def test_unsupported_kernel_is_skipped_in_one_sentence(dkms: Dkms, module: str) -> None:
    """DKMS's own message names neither the kernel nor those that are supported."""
    dkms.add(module)
    dkms.install_kernel("6.99.1-amd64", TREES[0])
    sentence = (
        f"{module}: kernel 6.99.1-amd64 is not supported: "
        f"this version of Sutro supports Linux {' '.join(SERIES)}"
    )
    printed = dkms.autoinstall("6.99.1-amd64")
    assert printed.splitlines().count(sentence) == 1
    assert f"Autoinstall on 6.99.1-amd64 was skipped for module(s) {module}." in printed

    done = dkms.run("build", f"{module}/{package_version()}", "--kernelver", "6.99.1-amd64")
    assert done.returncode == SKIPPED
    assert done.stdout.splitlines().count(sentence) == 1


def test_versions_that_only_look_like_a_series_are_not_supported(dkms: Dkms) -> None:
    """A dot in a series is a dot, and the series ends behind its last number."""
    dkms.add("sutro")
    for version in (f"{SERIES[0]}0.1-amd64", f"1{SERIES[0]}.1-amd64", SERIES[0].replace(".", "-")):
        dkms.install_kernel(version, TREES[0])
        assert f"sutro: kernel {version} is not supported: " in dkms.autoinstall(version)


@pytest.mark.long
def test_module_that_does_not_compile_is_skipped(tmp_path: Path, packaged: Path) -> None:
    """An update may change what no proof covers; that must not end the installation of a kernel."""
    for name in ("dkms", "modules", "src"):
        (tmp_path / name).mkdir()
    module = f"sutro-{package_version()}"
    shutil.copytree(packaged / module, tmp_path / "src" / module, symlinks=True)
    (tmp_path / "src" / module / "sutro-share.c").write_text(f"{ERROR}\n")
    dkms = Dkms(tmp_path, tmp_path / "src")
    dkms.add("sutro")
    check_trial(dkms, "sutro", TREES[0])


@pytest.mark.long
def test_drivers_that_do_not_compile_are_skipped(tmp_path: Path, dkms: Dkms) -> None:
    """Patches may fit the source of an update that does not compile with them."""
    tree, source = own_tree(TREES[0], tmp_path / "tree"), tmp_path / "source"
    source.mkdir()
    unpack_drivers(series_of(version_of(TREES[0])), source)
    # The drivers of a tree that the kernel was built from need no proof by a stock module.
    (source / "drivers").rename(tree / "drivers")
    (tree / "include").unlink()
    (source / "include").rename(tree / "include")
    for entry in (TREES[0] / "include").iterdir():
        (tree / "include" / entry.name).symlink_to(entry)
    with (tree / "drivers/md/dm.c").open("a") as file:
        file.write(f"{ERROR}\n")
    dkms.add("sutro-stacking")
    check_trial(dkms, "sutro-stacking", tree)


def check_trial(dkms: Dkms, module: str, tree: Path) -> None:
    """A kernel with a build tree gets no module, for its source has ERROR."""
    version = version_of(TREES[0])
    dkms.install_kernel(version, tree)
    printed = dkms.autoinstall(version)
    assert f"Autoinstall on {version} was skipped for module(s) {module}." in printed
    log = dkms.log(module)
    assert ERROR in log
    assert f"pre-build: this version of Sutro does not compile for kernel {version}: " in log
