# SPDX-License-Identifier: LGPL-2.1-or-later
"""Documents and comments are in plain English: prose.py has the rules."""

import re
from pathlib import Path

import prose
import pytest
from tree import TOP, files

# Headers in the form of the kernel's, inputs of fuzzers, and figures.
FOREIGN = ("tests/sim/include/", "tests/unit/fuzz-", "LICENSES/")
FIGURES = (".png", ".svg", ".json")
READ = {
    name: reader
    for name in files()
    if not name.startswith(FOREIGN) and not name.endswith(FIGURES)
    if (reader := prose.reader(TOP / name))
}
DOCUMENTS = [name for name, reader in READ.items() if reader in prose.DOCUMENTS]
SOURCES = [name for name in READ if name not in DOCUMENTS]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_prose(name: str) -> None:
    """No sentence of the document breaks a rule."""
    found = [f"{name}:{text}" for text in prose.findings(TOP / name)]
    assert not found, "\n".join(found)


def test_prose_of_sources() -> None:
    """No comment, docstring, message of a patch or description of a package breaks a rule."""
    found = [f"{name}:{text}" for name in SOURCES for text in prose.findings(TOP / name)]
    assert not found, "\n".join(found)


# Words in capitals that are no abbreviations of a term: names of formats, licences and programs;
NAMES = {
    *("AVX2", "DEVLINKS", "GPL", "JSON", "LGPL", "LUKS2", "NULL", "PKGBUILD"),
    *("PNG", "QEMU", "RPM", "SPDX", "SVG", "TOML", "UTF", "XML", "ZFS"),
    # heads of columns and marks in the output of sutroctl; and arguments.
    *("CAPACITY", "COST", "ENTITLED", "GOT", "LINE", "NEEDED", "PARTIAL", "READ", "SET", "WEIGHT"),
    *("DIR", "MAJ", "MIN", "NAME", "PATH", "VOLUME"),
}
# Numbers of errors and signals.
CODE = re.compile(r"E[A-Z]{3,}|SIG[A-Z]+")


def glossary() -> set[str]:
    """The terms of the section "Abbreviations" of the glossary."""
    text = (TOP / "Documentation/glossary.rst").read_text().partition("\nAbbreviations\n")[2]
    return {word for line in re.findall(r"^\w.*$", text, re.M) for word in line.split(", ")}


def test_abbreviations() -> None:
    """Each abbreviation in a document is in the glossary, and each in the glossary is used."""
    allowed = glossary() | NAMES
    used, found = set(), []
    for name in DOCUMENTS:
        for line, word in prose.abbreviations(TOP / name):
            used.add(word)
            if word not in allowed and not CODE.fullmatch(word):
                found.append(f"{name}:{line}: {word} is not in Documentation/glossary.rst")
    assert not found, "\n".join(found)
    assert not allowed - used


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
SHELL = """\
#!/bin/sh
# SPDX-License-Identifier: who
# shellcheck disable=what
# CONFIG_WHO is not set

# Who is next

# It passes. What is left
# waits: `who says`.
echo "Who ${1#what} says" # A file knows it.
"""
LUA = """\
-- Who is next

local who = 1 --- It passes.

-- What is left
-- waits.
print("who") -- A file knows it.
"""
GO = """\
// Who is next

/*
 * It passes. What is left
 * waits.
 */
who := "http://what/who" // A file knows it.
"""
JAVASCRIPT = """\
/**
 * Who is next
 * @param {(asked: {who: string}) => Promise<string>} said It passes.
 * @returns {string}
 */
const who = "//who"; // What is left waits.
/* A file knows it. */
"""
CSS = """\
/* Who is next */
a::who { what: 1 }
/*
 * What is left
 * waits.
 */
b { what: 1 } /* A file knows it. */
"""
XML = """\
<!-- Who is next -->
<who name="what">
  <!--
    It passes.
      who s, said a{sv}  What is left
                         waits.

    A file knows it.
  -->
</who>
"""
CATALOG = """\
# Who comments
-- 08a07eb35ae240f7b33512fd167551bf
Subject: Who is next
Defined-By: who

It passes on @WHO@. What is left
waits, see "who says".

A file knows it.
"""
CONTROL = """\
# Who is next
Source: who
Build-Depends: what,
 who
Description: What is left waits
 It passes.
 .
 A file knows it.
"""
LITMUS = """\
C who

(* Who is next *)
(*
 * It passes.
 *
 * What is left
 * waits.  A file knows it.
 *)
P0(int *who)
"""
PYTHON = """\
#!/usr/bin/env python3
# Who is next

WHO = "what"  # It passes.

# What is left
# waits.

# A file knows it.
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
        ("a.sh", SHELL),
        ("recipe", SHELL),
        ("a.config", SHELL),
        ("a.lua", LUA),
        ("a.go", GO),
        ("a.js", JAVASCRIPT),
        ("a.css", CSS),
        ("a.xml", XML),
        ("a.catalog", CATALOG),
        ("control", CONTROL),
        ("a.litmus", LITMUS),
        ("program", PYTHON),
    ],
)
def test_prose_formats(name: str, text: str, tmp_path: Path) -> None:
    """Text for people is read; examples, tables, literals, code and lines for tools are not."""
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


def test_abbreviations_of_a_document(tmp_path: Path) -> None:
    """Plurals count, and headings, literals, names of files and assignments do not."""
    path = tmp_path / "a.md"
    path.write_text("# ABC\n\nTwo CPUs, `DEF`, GHI.rst and JKL=1 of RAM.\n")
    assert [word for _, word in prose.abbreviations(path)] == ["CPU", "RAM"]
