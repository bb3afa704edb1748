# SPDX-License-Identifier: LGPL-2.1-or-later
"""The import lines of Python: modules form no cycle, with the imports inside functions, too."""

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from os.path import normpath
from pathlib import Path

import pytest
from tree import TOP, having

# Each folder is on the path of those who import its modules.
ROOTS = ("policies/", "tests/", "tests/daemon/", "tests/ctl/", "tests/check/", "tests/vm/")


def module(name: str) -> str:
    """policies/sutro/show.py is the module policies/sutro/show, a package is its folder."""
    return name.removesuffix(".py").removesuffix("/__init__")


def imported(text: str, package: str, known: set[str]) -> Iterator[str]:
    """The modules of the tree that a text imports anywhere; `from . import a` imports a."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names = [(alias.name, []) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [(node.module or "", [alias.name for alias in node.names])]
        else:
            continue
        for base, members in names:
            path = base.replace(".", "/")
            roots = ROOTS
            if getattr(node, "level", 0):
                roots = (normpath(Path(package, *[".."] * (node.level - 1))) + "/",)
            for root in roots:
                whole = [f"{root}{path}/{member}".replace("//", "/") for member in members]
                found = [one for one in whole if one in known]
                base_path = f"{root}{path}".rstrip("/")
                # A package that only leads to its modules is no arrow.
                if len(found) < len(whole) or not whole:
                    found += [base_path] if base_path in known else []
                yield from found


def cycle(top: Path, names: list[str]) -> list[str]:
    """The modules of the first cycle that is found; none if there is no cycle."""
    known = {module(name) for name in names}
    graph = {}
    for name in names:
        mine, package = module(name), str(Path(name).parent)
        graph[mine] = {one for one in imported((top / name).read_text(), package, known)} - {mine}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_imports_form_no_cycle() -> None:
    found = cycle(TOP, having(".py", below=("policies/", "tests/")))
    assert not found, " <- ".join(found)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("from . import b\n", "from .a import x\n"),
        ("from .b import x\n", "def f():\n    from . import a\n"),
        ("import sutro.b\n", "from sutro import a\n"),
    ],
)
def test_imports_finds_a_cycle(tmp_path: Path, one: str, two: str) -> None:
    names = ["policies/sutro/__init__.py", "policies/sutro/a.py", "policies/sutro/b.py"]
    (tmp_path / "policies/sutro").mkdir(parents=True)
    for name, text in zip(names, ("", one, two), strict=True):
        (tmp_path / name).write_text(text)
    assert {"policies/sutro/a", "policies/sutro/b"} == set(cycle(tmp_path, names))
    (tmp_path / names[2]).write_text("import json\n")
    assert cycle(tmp_path, names) == []
