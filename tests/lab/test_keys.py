# SPDX-License-Identifier: LGPL-2.1-or-later
"""Which change invalidates which stages, and which results are kept."""

from dataclasses import replace
from pathlib import Path

import pytest

from lab import keys, stages
from lab.cache import Cache
from lab.junit import Results
from lab.products import source_files
from lab.roots import Recipe

SOURCE = Path(keys.__file__).parents[2]
STAGES = stages.stages(SOURCE)
FILES = source_files(SOURCE)
ALL = {one.name for one in STAGES if not one.first}


def each(*kinds: str) -> set[str]:
    """The stages of these kinds, for every kernel that has them."""
    return {name for name in ALL if name.rpartition("-")[0] in kinds or name in kinds}


GUESTS = each(
    "containers", "daemon", "measure", "metrics", "nri", "page", "slurm", "smp", "stacking",
    "upgrade",
)  # fmt: skip
VIRTUAL = each("stress", "layers", "deep", "kunit", "locks", "owners", "series", "weights")
KERNEL_HALF = ALL - {"distributions"}
HOST_HALF = GUESTS | each("boot", "checks", "distributions", "fuzz", "long")
# One file of each room, and the stages that it invalidates.
ROOMS = {
    "kernel/sutro-core.c": KERNEL_HALF,
    "kernel/compat/6.12/sutro-blk.h": KERNEL_HALF,
    "kernel/tests/sutro_core_test.c": KERNEL_HALF,
    "daemon/control/governor.c": HOST_HALF,
    "policies/sutro/sutroctl.py": HOST_HALF,
    "cockpit/app.js": HOST_HALF,
    "dist/sutrod.conf": HOST_HALF,
    "debian/control": HOST_HALF,
    "nri/plugin.go": {"nri"},
    "packaging/sutro.spec": {"distributions"},
    "Documentation/man/sutroctl.1": HOST_HALF,
    "Documentation/install.rst": HOST_HALF,
    "Documentation/images/cockpit.png": HOST_HALF,
    "tests/hardware/command.py": HOST_HALF,
    "Documentation/design.rst": set(),
    "Documentation/block/sutro-iosched.rst": KERNEL_HALF,
    "README.md": {"daemon"},
    "CONTRIBUTING.md": set(),
    "SECURITY.md": set(),
    ".ci/run": set(),
    "tests/check/test_tree.py": set(),
    "tests/modeldisk/modeldisk-main.c": KERNEL_HALF,
    "tests/sim/leaf.c": {"fuzz", "long"},
    "tests/unit/test-control.c": {"distributions", "fuzz", "long", "page"},
    "tests/daemon/test_bus.py": {"distributions", "fuzz", "long", "page"},
    "tests/ctl/test_errors.py": {"fuzz", "long"},
    "tests/slurm/test_sutro.lua": {"fuzz", "long"},
    "tests/nri/cri.go": {"nri"},
    "tests/packaging/test_tools.py": {"distributions"},
    "tests/page/test_page.py": {"page"},
    "tests/browser.py": {"page"},
    "tests/livedaemon.py": {"distributions", "fuzz", "long", "page"},
    "tests/virtualclock.py": {"distributions", "fuzz", "long", "page"},
    "tests/package/test_block_headers.py": each("checks", "fuzz", "long"),
    "tests/bench/judge.py": GUESTS | VIRTUAL | {"fuzz", "long"},
    "tests/boot/check.py": {"boot"},
    "tests/rig/unit.py": GUESTS | VIRTUAL | {"boot", "fuzz", "long"},
    "tests/uml/inside/stress.py": VIRTUAL | {"fuzz", "long"},
    "tests/vm/conftest.py": GUESTS,
    "tests/vm/test_cockpit.py": {"page"},
    "tests/vm/test_docker.py": {"containers"},
    "tests/vm/test_floors.py": {"measure"},
    "tests/vm/test_metrics.py": {"metrics"},
    "tests/vm/test_nri.py": {"nri"},
    "tests/vm/test_slurm.py": {"slurm"},
    "tests/vm/test_shares.py": each("measure"),
    "tests/vm/test_elevator_load.py": each("smp"),
    "tests/vm/test_stacking.py": each("stacking"),
    "tests/lab/stages.py": ALL,
    "tests/lab/recipes/image": ALL,
    "tests/lab/test_keys.py": set(),
    "lab": ALL,
}


@pytest.mark.parametrize("file", ROOMS)
def test_a_changed_file_invalidates_the_stages_that_it_decides(file: str) -> None:
    assert file in FILES
    found = {one.name for one in STAGES if not one.first and file in keys.inputs(one, FILES)}
    assert found == ROOMS[file]


def test_every_room_has_a_line_in_the_table() -> None:
    rooms = {name.split("/")[0] for name in FILES}
    unread = {"LICENSES", ".clang-format", ".clang-format-ignore", ".gitignore", "pyproject.toml"}
    tests = {"/".join(name.split("/")[:2]) for name in FILES if "tests/" in name[:6]}
    known = {file.split("/")[0] for file in ROOMS}
    assert rooms - known - unread <= {"meson.build", "meson.options"}
    assert {room for room in tests if (SOURCE / room).is_dir()} <= {
        "/".join(file.split("/")[:2]) for file in ROOMS
    }


@pytest.fixture
def stage(tmp_path: Path) -> stages.Stage:
    """A stage of one room and one tree, and a clone with a file in that room."""
    (tmp_path / "clone/room").mkdir(parents=True)
    (tmp_path / "clone/room/file").write_text("1")
    recipe = Recipe("tree", ("package",))

    def build(folder: Path) -> None:
        (folder / "tree/var/lib/dpkg").mkdir(parents=True)
        (folder / "tree/var/lib/dpkg/status").write_text("Package: package\nVersion: 1\n")

    Cache(tmp_path / "cache").artefact("tree-root", recipe.key(), "", build)
    return stages.Stage("some", lambda cache, source: Results(["a"]), ("room/",), (recipe,))


def test_a_result_is_found_until_a_file_or_a_version_changes(
    tmp_path: Path, stage: stages.Stage
) -> None:
    cache, clone = Cache(tmp_path / "cache"), tmp_path / "clone"
    key = keys.key(cache, stage, clone)
    assert key and keys.find(cache, stage, key) is None
    keys.keep(cache, stage, key, Results(["a", "b"]), clone)
    kept = keys.find(cache, stage, keys.key(cache, stage, clone))
    assert kept and kept.line().startswith("cached: 2 passed (")
    (clone / "room/file").write_text("2")
    assert keys.find(cache, stage, keys.key(cache, stage, clone)) is None
    (clone / "room/file").write_text("1")
    assert keys.find(cache, stage, keys.key(cache, stage, clone)) == kept
    (status,) = (tmp_path / "cache/tree-root").glob("*/tree/var/lib/dpkg/status")
    status.write_text("Package: package\nVersion: 2\n")
    assert keys.find(cache, stage, keys.key(cache, stage, clone)) is None


def test_a_file_elsewhere_changes_no_key(tmp_path: Path, stage: stages.Stage) -> None:
    cache, clone = Cache(tmp_path / "cache"), tmp_path / "clone"
    before = keys.key(cache, stage, clone)
    (clone / "README").write_text("")
    assert keys.key(cache, stage, clone) == before


def test_a_shorter_run_is_no_result_of_a_longer_one(tmp_path: Path, stage: stages.Stage) -> None:
    cache, clone = Cache(tmp_path / "cache"), tmp_path / "clone"
    shorter, longer = (replace(stage, extent=f"{n} minutes") for n in (1, 10))
    assert keys.key(cache, shorter, clone) != keys.key(cache, longer, clone)


def test_a_failure_is_not_kept(tmp_path: Path, stage: stages.Stage) -> None:
    cache, clone = Cache(tmp_path / "cache"), tmp_path / "clone"
    key = keys.key(cache, stage, clone)
    assert key
    keys.keep(cache, stage, key, Results(["a"], {"b": "why"}), clone)
    keys.keep(cache, stage, key, Results(), clone)
    assert keys.find(cache, stage, key) is None


def test_without_its_tree_a_stage_has_no_key(tmp_path: Path, stage: stages.Stage) -> None:
    assert keys.key(Cache(tmp_path / "empty"), stage, tmp_path / "clone") is None
