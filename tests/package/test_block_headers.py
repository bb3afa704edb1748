# SPDX-License-Identifier: LGPL-2.1-or-later
"""kernel/compat/block-headers.sh takes the right private headers, and no others.

Wrong headers make a module that corrupts memory without a warning, so the refusals matter most:
each test gives the script a kernel build tree whose block/ was tampered with. Every test runs for
the newest installed headers of each kernel series that kernel/compat/ knows. Needs pahole and, for
each of these, the packages linux-headers-amd64 and linux-source-X.Y, as the build root has them.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

COMPAT = Path(__file__).resolve().parents[2] / "kernel/compat"
SCRIPT = COMPAT / "block-headers.sh"
SOURCES = Path("/usr/src")


def newest(series: str) -> list[Path]:
    """The build tree of the newest installed headers of a series, if there are any."""
    trees = [path.parent for path in SOURCES.glob(f"linux-headers-{series}.*/vmlinux")]
    return sorted(trees, key=lambda tree: [int(n) for n in re.findall(r"\d+", tree.name)])[-1:]


SERIES = sorted(path.name for path in COMPAT.iterdir() if path.is_dir())
TREES = [tree for series in SERIES for tree in newest(series)]


@pytest.fixture(scope="session", params=TREES, ids=lambda tree: tree.name.split("-")[2])
def build_tree(request: pytest.FixtureRequest) -> Path:
    """The build tree of an installed kernel."""
    return request.param


@pytest.fixture(scope="session")
def version(build_tree: Path) -> str:
    return build_tree.name.removeprefix("linux-headers-")


@pytest.fixture(scope="session")
def right_headers(build_tree: Path, version: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the script finds in the linux-source package."""
    folder = tmp_path_factory.mktemp("right") / "block"
    done = take(version, folder, build_tree)
    assert done.returncode == 0, done.stderr
    series = ".".join(version.split(".")[:2])
    assert f"/usr/src/linux-source-{series}.tar.xz" in done.stdout
    return folder


@pytest.fixture
def own_tree(build_tree: Path, right_headers: Path, tmp_path: Path) -> Path:
    """A build tree that has block/ itself, as that of a kernel one built oneself has."""
    tree = tmp_path / "tree"
    (tree / "block").mkdir(parents=True)
    for entry in build_tree.iterdir():
        (tree / entry.name).symlink_to(entry)
    # That of 7.2 says where the tree is.
    makefile = (tree / "Makefile").read_text()
    (tree / "Makefile").unlink()
    (tree / "Makefile").write_text(makefile.replace(str(build_tree), str(tree)))
    for header in right_headers.iterdir():
        (tree / "block" / header.name).write_bytes(header.read_bytes())
    return tree


def take(version: str, outdir: Path, tree: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [SCRIPT, version, outdir, tree], capture_output=True, text=True, timeout=120
    )


def tamper(tree: Path, header: str, pattern: str, replacement: str) -> None:
    path = tree / "block" / header
    text, changes = re.subn(pattern, replacement, path.read_text(), count=1)
    assert changes == 1, f"{header} has no {pattern}"
    path.write_text(text)


def test_some_kernel_is_installed() -> None:
    """The other tests are about something, and Debian's own kernel is among it."""
    assert TREES[0].name.startswith("linux-headers-6.12.")


def test_headers_of_linux_source_are_proved(right_headers: Path) -> None:
    names = {path.name for path in right_headers.iterdir()}
    assert {"elevator.h", "blk.h", "blk-mq.h", "blk-mq-sched.h", "blk-cgroup.h"} <= names


def test_own_block_folder_is_preferred(own_tree: Path, version: str, tmp_path: Path) -> None:
    done = take(version, tmp_path / "out", own_tree)
    assert done.returncode == 0, done.stderr
    assert f"block/*.h of {own_tree}/block" in done.stdout
    assert "15 structures and " in done.stdout


@pytest.mark.parametrize(
    ("header", "pattern", "replacement", "what"),
    [
        pytest.param(
            "elevator.h",
            r"void \(\*depth_updated\)\(struct \w+ \*\)",
            "void (*depth_updated)(struct elevator_queue *)",
            "struct elevator_mq_ops",
            id="argument of a callback",
        ),
        pytest.param(
            "elevator.h",
            r"(void \(\*exit_sched\))",
            r"void *(*alloc_more_data)(struct request_queue *);\n\t\1",
            "struct elevator_type",
            id="callback of another kernel",
        ),
        pytest.param(
            "elevator.h",
            r"void elv_rb_add\(struct rb_root \*, struct request \*\)",
            "void elv_rb_add(struct request *, struct rb_root *)",
            "elv_rb_add()",
            id="argument of a function",
        ),
        pytest.param(
            "blk-mq.h",
            r"(struct blk_mq_alloc_data \{\n)",
            r"\1\tint more;\n",
            "struct blk_mq_alloc_data",
            id="one more member",
        ),
        pytest.param(
            "blk-cgroup.h",
            r"(struct blkg_policy_data\s*\*pd\[)BLKCG_MAX_POLS\]",
            r"\g<1>BLKCG_MAX_POLS + 1]",
            "struct blkcg_gq",
            id="longer array",
        ),
    ],
)
def test_other_headers_are_refused(
    own_tree: Path,
    version: str,
    tmp_path: Path,
    header: str,
    pattern: str,
    replacement: str,
    what: str,
) -> None:
    tamper(own_tree, header, pattern, replacement)
    done = take(version, tmp_path / "out", own_tree)
    assert done.returncode == 1
    assert f"block-headers: {what} of " in done.stderr
    assert "differs from the one kernel" in done.stderr
    assert not (tmp_path / "out").exists()


def test_headers_that_do_not_compile_are_refused(
    own_tree: Path, version: str, tmp_path: Path
) -> None:
    tamper(own_tree, "elevator.h", r"struct elevator_mq_ops \{", "struct elevator_other_ops {")
    done = take(version, tmp_path / "out", own_tree)
    assert done.returncode == 1
    assert "do not compile with the headers of kernel" in done.stderr
    assert not (tmp_path / "out").exists()


def test_missing_source_package_is_named(build_tree: Path, tmp_path: Path) -> None:
    done = take("6.99.1-amd64", tmp_path / "out", build_tree)
    assert done.returncode == 1
    assert "install the package linux-source-6.99" in done.stderr


def test_missing_kernel_headers_are_named(version: str, tmp_path: Path) -> None:
    done = take(version, tmp_path / "out", tmp_path / "nowhere")
    assert done.returncode == 1
    assert f"install the package linux-headers-{version}" in done.stderr


def test_nonsense_version_is_named(build_tree: Path, tmp_path: Path) -> None:
    done = take("newest", tmp_path / "out", build_tree)
    assert done.returncode == 1
    assert "'newest' is not a kernel version" in done.stderr
