# SPDX-License-Identifier: LGPL-2.1-or-later
"""Files and tests that documents of this tree name exist: ``tests/vm/test_floors.py::test_stripe``.

Decisions are left out: they have the names of their time. Their list has each of them.
"""

import os
import re
from collections.abc import Iterator
from functools import cache

import pytest
from tree import TOP, files, having

DOCUMENTS = [
    name
    for name in having(".rst", ".md")
    if not name.startswith("Documentation/decisions/") and not name.endswith("results.md")
]
SUFFIXES = "py|rst|md|c|h|toml|json|xml|lua|policy|config|patch|png|svg|js|css|go|yaml|packages"
ROOMS = "tests|kernel|daemon|policies|Documentation|nri|debian|packaging|cockpit|dist"
FILE = re.compile(rf"(?:\.\./)*[\w@./+-]+\.(?:{SUFFIXES})|(?:{ROOMS})/[\w@./+-]*")
# Files of the kernel and of users, series to come, and words that stand for a name.
OTHERS = re.compile(
    r"(include|fs|drivers|tools)/|(.*/)?iocost_coef_gen\.py$|kernel/(compat|patches)/[0-9.]+$"
    r"|.*\b[A-Z]{4,}\b|(new|result|capacity)\.[a-z]+$"
)


@cache
def places() -> set[str]:
    """Each file and folder of the tree, with each end of its path."""
    whole = {name for file in files() for name in (file, *_folders(file))}
    return {name[start:] for name in whole for start in _starts(name)}


def _folders(name: str) -> Iterator[str]:
    while name := os.path.dirname(name):
        yield name


def _starts(name: str) -> list[int]:
    return [0, *(place.end() for place in re.finditer("/", name))]


def literals(name: str) -> list[str]:
    """The words of literals and the targets of links."""
    text = (TOP / name).read_text()
    found = re.findall(r"``([^`]+)``|`([^`\n]+)`|\]\(([^)#]+)\)", text)
    return [word.rstrip(".,;:)") for groups in found for word in "".join(groups).split()]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_files_exist(name: str) -> None:
    lost = []
    for word in literals(name):
        file = word.partition("::")[0]
        if not FILE.fullmatch(file) or OTHERS.match(file) or file.startswith(("/", "-")):
            continue
        here = os.path.normpath(os.path.join(os.path.dirname(name), file))
        if file.rstrip("/") not in places() and here not in places():
            lost.append(word)
    assert not lost


@pytest.mark.parametrize("name", DOCUMENTS)
def test_tests_exist(name: str) -> None:
    known = {
        test
        for file in files()
        if file.endswith(".py") and file.startswith("tests/")
        for test in re.findall(r"(?m)^ *(?:async )?def (test_\w+)", (TOP / file).read_text())
    }
    named = [word.rpartition("::")[2] for word in literals(name)]
    assert {word for word in named if re.fullmatch(r"test_[a-z0-9_]+", word)} <= known


def test_documents_name_files() -> None:
    words = [word for name in DOCUMENTS for word in literals(name) if FILE.fullmatch(word)]
    assert len(words) > 200


CHANGE = r"sutroctl (use|release|set|measure|policy (set|reset|reload|check --fits \S+)) "
PRIVILEGED = re.compile(rf"^ +({CHANGE}|systemctl (set-property|reload|restart) ).*", re.MULTILINE)


@pytest.mark.parametrize("name", ["README.md", "Documentation/install.rst"])
def test_commands_for_root_have_sudo(name: str) -> None:
    """A reader copies them into the shell of a user. The guides are for administrators."""
    found = [match.group() for match in PRIVILEGED.finditer((TOP / name).read_text())]
    assert found == []


def test_decisions_are_listed() -> None:
    folder = TOP / "Documentation/decisions"
    listed = re.findall(r"<([^>]+)>`_", (folder / "README.rst").read_text())
    records = {file.name for file in folder.glob("*.rst")} - {"README.rst"}
    assert sorted(listed) == sorted(records)
