# SPDX-License-Identifier: LGPL-2.1-or-later
"""kernel/compat/block-headers.sh takes the right private headers, and no others.

Wrong headers make a module that corrupts memory without a warning, so the refusals matter most:
each test gives the script a kernel build tree whose block/ was tampered with. Every test runs for
the newest installed headers of each kernel series in kernel/compat/. Needs pahole and, for each of
these, the packages linux-headers-amd64 and linux-source-X.Y, as the build root has them.
"""

import re
from functools import partial
from pathlib import Path

import kernels
import pytest
from kernels import KERNEL, SKIPPED, series_of, taken

take = partial(taken, KERNEL / "compat/block-headers.sh")


@pytest.fixture(scope="session")
def right_headers(build_tree: Path, version: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The headers that the script finds in the linux-source package."""
    folder = tmp_path_factory.mktemp("right") / "block"
    done = take(version, folder, build_tree)
    assert done.returncode == 0, done.stderr
    assert f"/usr/src/linux-source-{series_of(version)}.tar.xz" in done.stdout
    return folder


@pytest.fixture
def own_tree(build_tree: Path, right_headers: Path, tmp_path: Path) -> Path:
    """A build tree that has block/ itself, as that of a kernel one built oneself has."""
    tree = kernels.own_tree(build_tree, tmp_path / "tree")
    (tree / "block").mkdir()
    for header in right_headers.iterdir():
        (tree / "block" / header.name).write_bytes(header.read_bytes())
    return tree


def tamper(tree: Path, header: str, pattern: str, replacement: str) -> None:
    path = tree / "block" / header
    text, changes = re.subn(pattern, replacement, path.read_text(), count=1)
    assert changes == 1, f"{header} has no {pattern}"
    path.write_text(text)


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
    assert done.returncode == SKIPPED
    assert f"block-headers: {what} of " in done.stderr
    assert "differs from the one kernel" in done.stderr
    assert not (tmp_path / "out").exists()


def test_headers_that_do_not_compile_are_refused(
    own_tree: Path, version: str, tmp_path: Path
) -> None:
    tamper(own_tree, "elevator.h", r"struct elevator_mq_ops \{", "struct elevator_other_ops {")
    done = take(version, tmp_path / "out", own_tree)
    assert done.returncode == SKIPPED
    assert "do not compile with the headers of kernel" in done.stderr
    assert not (tmp_path / "out").exists()


def test_another_update_with_equal_headers_is_proved(
    build_tree: Path, version: str, tmp_path: Path
) -> None:
    """linux-source may be newer or older than the kernel, as long as nothing shared changed."""
    done = take(f"{series_of(version)}.999-amd64", tmp_path / "out", build_tree)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out/elevator.h").is_file()
