# SPDX-License-Identifier: LGPL-2.1-or-later
"""kernel/stacking/driver-source.sh takes the right drivers, patches them, and takes no others.

Runs for the newest installed headers of each kernel series that has patches. Whether the structures
of a tarball are those of the stock modules is proved where a kernel is installed: the guests of the
stages stacking* have drivers that passed.
"""

import re
import shutil
from functools import partial
from pathlib import Path

import pytest
from kernels import KERNEL, SERIES, SKIPPED, series_of, taken, unpack_drivers

STACKING = KERNEL / "stacking"
PATCHES = KERNEL / "patches"
take = partial(taken, STACKING / "driver-source.sh")


@pytest.fixture(scope="module")
def drivers(version: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The drivers of a kernel's source."""
    tree = tmp_path_factory.mktemp("drivers")
    unpack_drivers(series_of(version), tree)
    return tree


@pytest.fixture
def own_tree(drivers: Path, tmp_path: Path) -> Path:
    """A build tree that has drivers/md itself, as that of a kernel one built oneself has."""
    return shutil.copytree(drivers, tmp_path / "tree")


def test_every_series_has_patches() -> None:
    """kernel/compat/ is the list of supported series; each of them has patches."""
    assert {path.name for path in PATCHES.iterdir()} == set(SERIES)
    for series in SERIES:
        # A link that leads nowhere is no patch.
        assert all(path.is_file() for path in (PATCHES / series).iterdir()), series


def test_own_drivers_are_patched(own_tree: Path, version: str, tmp_path: Path) -> None:
    """All patches to drivers fit; the Makefile builds what dkms.conf installs, and nothing else."""
    done = take(version, tmp_path / "out", own_tree)
    assert done.returncode == 0, done.stderr
    series = series_of(version)
    patches = [path.read_text() for path in (PATCHES / series).glob("*.patch")]
    count = sum("\n--- a/drivers/md/" in patch for patch in patches)
    assert f"drivers of {own_tree} " in done.stdout
    assert done.stdout.strip().endswith(f"{count} patches")
    made = tmp_path / "out/md"
    assert "raid5_set_dev(sh, dev, bi, rdev->bdev, s)" in (made / "raid5.c").read_text()
    assert "dm_bio_set_dev(" in (made / "patched/linux/device-mapper.h").read_text()
    assert "dm_io_for(" in (made / "patched/linux/dm-io.h").read_text()
    assert "dm_kcopyd_copy_for(" in (made / "patched/linux/dm-kcopyd.h").read_text()
    built = re.findall(r"^obj-\S+\s*\+=\s*(.*)$", (made / "Makefile").read_text(), re.MULTILINE)
    conf = (STACKING / "dkms.conf").read_text()
    wanted = set(re.findall(r'^\s*BUILT_MODULE_NAME\[\d+\]="(.*)"$', conf, re.MULTILINE))
    assert {re.sub(r"(\.o|/)$", "", name) for line in built for name in line.split()} == wanted


def test_other_drivers_are_refused(own_tree: Path, version: str, tmp_path: Path) -> None:
    """A line that a patch stands on is another one: not even fuzz makes it fit."""
    path = own_tree / "drivers/md/dm.c"
    text = path.read_text()
    line = "	/* Set default bdev, but target must bio_set_dev() before issuing IO */\n"
    assert text.count(line) == 1
    path.write_text(text.replace(line, "\t/* Set default bdev */\n"))
    done = take(version, tmp_path / "out", own_tree)
    assert done.returncode == SKIPPED
    assert f"does not fit {own_tree}: this version of Sutro has no patches" in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.long
def test_source_of_another_update_is_refused(
    build_tree: Path, version: str, tmp_path: Path
) -> None:
    """linux-source may be newer or older than the kernel."""
    series = series_of(version)
    done = take(f"{series}.1-amd64", tmp_path / "out", build_tree)
    assert done.returncode == SKIPPED
    assert (
        f"kernel {series}.1-amd64 is {series}.1; install the package linux-source-{series} "
        "of the same version as the kernel, then run: dkms autoinstall" in done.stderr
    )
    assert not (tmp_path / "out").exists()


@pytest.mark.long
def test_drivers_without_a_stock_module_are_refused(
    build_tree: Path, version: str, tmp_path: Path
) -> None:
    """Nothing to compare with is no proof."""
    done = take(version.replace("+", "+other"), tmp_path / "out", build_tree)
    assert done.returncode == SKIPPED
    assert "cannot prove that the drivers of /usr/src/linux-source-" in done.stderr
    assert not (tmp_path / "out").exists()
