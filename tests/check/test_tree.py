# SPDX-License-Identifier: LGPL-2.1-or-later
"""Static checks of this tree: licences, spelling, formatters and linters.

They run in a Debian 13 root with the packages of tests/lab/recipes/build.packages (./lab test does
that) and write nothing into the tree. A tool that is missing is a failure.

    python3 -m pytest tests/check               all checks
    python3 -m pytest tests/check -k ruff       those of ruff

tests/package has the checks of the kernel modules.
"""

import re
from pathlib import Path

from tree import TOP, files, having, passes, shebang

GPL = (
    "kernel/",
    "tests/modeldisk/",
    "tests/sim/",
    "tests/uml/fio-clock.c",
    "tests/uml/host-random.c",
    "Documentation/block/",
    "Documentation/litmus-tests/",
    "Documentation/ABI/",
)
HERE = str(Path(__file__).resolve().relative_to(TOP))
PYTHON = having(".py", interpreter=r"\bpython3?$")
SHELL = having(".sh", interpreter=r"/(ba|da)?sh\b|\A# shellcheck shell=")


def test_spdx() -> None:
    """The licence of each source file, in its first line (or the second, after #!)."""
    problems = []
    no_comments = (".json", ".sum", ".txt", ".gitkeep", ".png", ".patch")
    for name in files():
        # debian/copyright has that of debian/; the kernel's ABI files have a format of their own.
        if name.startswith(("debian/", "LICENSES/", "Documentation/ABI/")) and not shebang(name):
            continue
        if name.endswith(no_comments) or not (TOP / name).stat().st_size:
            continue
        head = (TOP / name).read_text(errors="replace").splitlines()[:3]
        is_gpl = name.startswith((*GPL, ".clang-format"))
        wanted = "GPL-2.0-only" if is_gpl else "LGPL-2.1-or-later"
        found = re.search(r"SPDX-License-Identifier: ([\w.-]+)", "\n".join(head))
        if not found or found[1] != wanted:
            problems.append(f"{name}: {found[1] if found else 'no licence'}, wanted {wanted}")
    assert not problems, "\n".join(problems)


def test_unfinished() -> None:
    """No marker of work to do, no test that is skipped or expected to fail."""
    marker = re.compile(
        r"\b(TODO|FIXME|XXX)\b|\bpytest\.(skip|xfail|importorskip)|mark\.(skip|skipif|xfail)"
        r"|\bunittest\.skip|\bskipTest\("
    )
    problems = []
    for name in files():
        if name.startswith(("LICENSES/", HERE)) or name.endswith(".png"):
            continue
        text = (TOP / name).read_text(errors="replace")
        lines = enumerate(text.splitlines(), 1)
        problems += [f"{name}:{n}: {line.strip()}" for n, line in lines if marker.search(line)]
    assert not problems, "\n".join(problems)


def test_spelling() -> None:
    """codespell on everything a person reads."""
    no_text = (".inputs", ".json", ".patch", ".png")
    names = [name for name in files() if not name.endswith(no_text)]
    passes("codespell", "--", *(name for name in names if "LICENSES/" not in name))


def test_versions() -> None:
    """meson.build and debian/changelog have the same version."""
    meson = re.search(r"version: '([^']+)'", (TOP / "meson.build").read_text())
    debian = re.match(r"\w+ \(([^)]+)\)", (TOP / "debian/changelog").read_text())
    assert meson and debian and meson[1] == debian[1]


def test_clang_format() -> None:
    """The kernel's C style."""
    passes("clang-format", "--dry-run", "-Werror", *having(".c", ".h"))


def test_lines_of_the_kernel() -> None:
    """100 columns at most, the limit of checkpatch, which runs late and not in this stage."""
    names = [name for name in having(".c", ".h") if name.startswith("kernel/")]
    names.remove("kernel/sutro-trace.h")  # TP_printk() of checkpatch's exception
    problems = [
        f"{name}:{number}: {len(line)} columns"
        for name in names
        for number, line in enumerate((TOP / name).read_text().expandtabs(8).splitlines(), 1)
        if len(line) > 100
    ]
    assert not problems, "\n".join(problems)


def test_ruff() -> None:
    passes("ruff", "check", "--quiet", "--no-cache", *PYTHON)


def test_ruff_format() -> None:
    passes("ruff", "format", "--check", "--quiet", "--no-cache", *PYTHON)


def test_shellcheck() -> None:
    passes("shellcheck", *SHELL)


def test_shellcheck_of_recipes() -> None:
    """The recipes of the lab have no first line: roots.py runs each with `sh -e`."""
    folder = "tests/lab/recipes/"
    recipes = [name for name in files() if name.startswith(folder) and "." not in name]
    plain = [name for name in recipes if name not in SHELL]
    passes("shellcheck", "--shell=sh", "--exclude=SC2164", *plain)


def test_completion_of_zsh_is_parsed() -> None:
    passes("zsh-static", "-n", "policies/sutroctl.zsh")


def test_completion_of_fish_is_parsed() -> None:
    passes("fish", "--no-execute", "policies/sutroctl.fish")


def test_xml() -> None:
    """Bus policy, polkit actions and interface are well-formed."""
    names = having(".xml", "org.sutro1.conf", "org.sutro1.policy")
    passes("xmllint", "--noout", "--nonet", *names)


def test_man_pages() -> None:
    """mandoc finds nothing to warn of."""
    pages = having(*(f".{section}" for section in range(1, 9)))
    assert pages
    passes("mandoc", "-T", "lint", "-W", "warning", *pages)


def test_kunit_suites_run_everywhere() -> None:
    """Each suite of the elevator runs in the kernel, and in a program of the first tier."""
    suites = {path.name.removesuffix("_test.c") for path in TOP.glob("kernel/tests/*_test.c")}
    in_kernel = (TOP / "kernel/tests/Makefile").read_text()
    in_program = (TOP / "tests/sim/meson.build").read_text()
    names = re.search(
        r"^foreach name : \[([^]]*)\]\n  test\(\n    'kunit-'", in_program, re.MULTILINE
    )
    assert names
    assert set(re.findall(r"(\w+)_test\.o", in_kernel)) == suites
    assert {f"sutro_{name}" for name in re.findall(r"\w+", names[1])} == suites


def test_mechanisms_name_their_files() -> None:
    """The table at the top of sutro-core.c has each file of the elevator, and no other."""
    text = (TOP / "kernel/sutro-core.c").read_text()
    section = text.partition("3. Mechanisms\n")[2].partition("*/")[0]
    prose, _, table = section.partition("mechanism\t")
    others = re.findall(r"\(([^)]*)\)", prose)
    rows = re.findall(r"^ \*\t ([^\t\n]*)", table, re.MULTILINE)
    names = re.findall(r"\w+", " ".join([*others, *(re.sub(r"\(.*?\)", "", row) for row in rows)]))
    files = {path.stem.removeprefix("sutro-") for path in TOP.glob("kernel/sutro-*.c")}
    assert set(names) == files


def test_every_file_of_the_simulation_runs() -> None:
    """Each file with tests is named where meson's tests are listed."""
    build = (TOP / "tests/sim/meson.build").read_text()
    listed = re.search(r"^foreach name, long : \{(.*?)^\}", build, re.MULTILINE | re.DOTALL)
    assert listed
    files = {path.stem.removeprefix("test_") for path in TOP.glob("tests/sim/test_*.py")}
    assert set(re.findall(r"^  '(\w+)'", listed[1], re.MULTILINE)) == files
