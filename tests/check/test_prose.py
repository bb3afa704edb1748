# SPDX-License-Identifier: LGPL-2.1-or-later
"""Documents and comments are in plain English: prose.py has the rules."""

import re
from pathlib import Path

import prose
import pytest
from tree import TOP, files

DOCUMENTS = [
    name
    for name in files()
    if name.endswith((".md", ".rst")) or re.fullmatch(r"Documentation/(man/.*\.[1-8]|ABI/.*)", name)
]
# Headers in the form of the kernel's.
FOREIGN = ("tests/sim/include/",)
SOURCES = [
    name for name in files() if name.endswith(tuple(prose.SOURCES)) and not name.startswith(FOREIGN)
]
# Files in which findings of the newest rules are still open.
OPEN = ("kernel/sutro-slots.c",)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_prose(name: str) -> None:
    """No sentence of the document breaks a rule."""
    found = [f"{name}:{text}" for text in prose.findings(TOP / name)]
    assert not found, "\n".join(found)


def test_prose_of_sources() -> None:
    """No comment, docstring or message of a patch breaks a rule."""
    names = [name for name in SOURCES if name not in OPEN]
    found = [f"{name}:{text}" for name in names for text in prose.findings(TOP / name)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("name", OPEN)
def test_open_file_has_findings(name: str) -> None:
    """A file without findings leaves the list."""
    assert prose.findings(TOP / name)


MARKDOWN = """\
<!-- Who wrote this? -->
# Who is next

It passes. What is left
waits (see `who`).

| Who | table |

    Who is in an example
* A file knows it.
"""
RST = """\
.. Who comments

Who is next
===========

It passes: ``who says``.  What is left
waits::

    What is in an example

=== ===
Who table
=== ===

term
    A file knows it.
"""
MAN = """\
.SH NAME
.SS Who is next
It passes.
What is left
waits, as
.B who says
shows.
.PP
.nf
What is in an example
.fi
.TP
.BR \\-\\-who ", " \\-w
A file knows it.
"""
ABI = """\
What:\t\t/sys/who
Description:
\t\tWho is next

\t\tIt passes.  What is left
\t\twaits::

\t\t\tWhat is in an example

\t\tA file knows it.
"""
PATCH = """\
From: Who
Subject: [PATCH] subject

Who is next

It passes.  What is left
waits:

  What is in an example	1 %

Signed-off-by: Who
---
 who.c | 2 +-

--- a/who.c
+++ b/who.c
@@ -1,2 +1,3 @@ who
-/* What is gone */
 /* Who is context */
+\t/*
+\t * A file knows it.
+\t */
"""
FOUND = ["Who is next", "What is left waits", "A file knows it."]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.md", MARKDOWN),
        ("a.rst", RST),
        ("a.8", MAN),
        ("a", ABI),
        ("a.patch", PATCH),
    ],
)
def test_prose_formats(name: str, text: str, tmp_path: Path) -> None:
    """Headings, paragraphs and items are read; examples, tables, literals and comments are not."""
    path = tmp_path / name
    path.write_text(text)
    assert len(prose.findings(path)) == len(FOUND)
    wrong = [one.text for one in prose.sentences(path) if prose.wrong(one.text)]
    starts = [found[: len(start)] for found, start in zip(wrong, FOUND, strict=True)]
    assert starts == FOUND


@pytest.mark.parametrize(
    "text",
    [
        "Whoever comes second waits.",
        "The slots go to who comes first.",
        "It is idle: who waits is served.",
        "It reports the size of what it reads.",
        "The disk is told the size.",
        "A CPU reads what he wrote.",
        "The request is too dear.",
        "A group that waits for so long is next.",
        "... but not shorter.",
        "Has a group no requests?",
        "sutro_waits - how long: has a group to wait?",
        "On how many leaves has a cgroup requests?",
        " ".join(["word"] * 36),
    ],
)
def test_prose_rules(text: str) -> None:
    assert prose.wrong(text)


@pytest.mark.parametrize(
    "text",
    [
        "Who is a submitter?",
        "Has a group used all of its part?",
        "Does a group have requests?",
        "For how long has a group been alone?",
        "The message has the reason and what to do.",
        "A task that waits for a slot sleeps.",
        "It takes so much time that few are made.",
        "A user who selects the scheduler reads this.",
        " ".join(["word"] * 35),
    ],
)
def test_prose_allows(text: str) -> None:
    assert not prose.wrong(text)
