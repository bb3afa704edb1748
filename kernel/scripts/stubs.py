# SPDX-License-Identifier: GPL-2.0-only
"""Stubs: functions that the files of a patch call, and that a later patch of the series adds.

    text = stubs.text(present, absent, bodies)

`present` and `absent` are texts of source files by name, `bodies` the bodies of stubs that do
more than return 0. The text is that of block/sutro-stubs.c, "" if no function is missing. Headers
come with the first patch that needs them, so the file includes those that declare its functions.
"""

from __future__ import annotations

import re

HEAD = """\
// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sutro I/O scheduler: functions of mechanisms that later patches of this series add.
 */
"""

COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
# Functions begin in the first column; macros of the kernel that look like one have capitals.
DEFINITION = re.compile(
    r"^(?!static\b|typedef\b)((?:[a-z]\w*[ \n*]+)+)(sutro_\w+)(\([^;{}]*?\))\n\{", re.MULTILINE
)
PROTOTYPE = re.compile(r"^(?!static\b|typedef\b)[a-z][^;{}#]*?\);\n", re.MULTILINE)


class StubError(Exception):
    """A body of no function."""


def definitions(text: str) -> dict[str, tuple[str, str]]:
    """Functions that other files may call: the type and the declaration of each, by name."""
    found = DEFINITION.finditer(COMMENT.sub("", text))
    return {one[2]: (one[1], one[1] + one[2] + one[3]) for one in found}


def names_in(files: dict[str, str]) -> set[str]:
    """The names in the code of files, without those of prototypes."""
    texts = (PROTOTYPE.sub("", COMMENT.sub("", text)) for text in files.values())
    return {name for text in texts for name in re.findall(r"\bsutro_\w+", text)}


def declaring(files: dict[str, str], code: str) -> list[str]:
    """The headers with prototypes of the functions that some code names."""
    names = {*re.findall(r"\bsutro_\w+(?=\()", code)}
    headers = {name: "".join(PROTOTYPE.findall(COMMENT.sub("", text)))
               for name, text in files.items() if name.endswith(".h")}  # fmt: skip
    return sorted(
        header for header, text in headers.items() if names & {*re.findall(r"\bsutro_\w+", text)}
    )


def default_body(kind: str) -> str:
    """The body of a function of some type without an effect."""
    if "*" in kind:
        return "return NULL;"
    if kind.split() == ["void"]:
        return ""
    return "return false;" if kind.split() == ["bool"] else "return 0;"


def missing(present: dict[str, str], absent: dict[str, str]) -> dict[str, tuple[str, str]]:
    """The functions of the absent files that the present ones name."""
    wanted = names_in(present)
    found: dict[str, tuple[str, str]] = {}
    for _, text in sorted(absent.items()):
        found |= {name: one for name, one in definitions(text).items() if name in wanted}
    return found


def text(present: dict[str, str], absent: dict[str, str], bodies: dict[str, str]) -> str:
    """The file with the stubs, "" if there is none."""
    parts = []
    for name, (kind, declaration) in missing(present, absent).items():
        lines = bodies.get(name, default_body(kind)).strip().splitlines()
        body = "".join(f"\t{line}".rstrip() + "\n" for line in lines)
        parts.append(f"{declaration}\n{{\n{body}}}\n")
    if not parts:
        return ""
    includes = "".join(f'#include "{name}"\n' for name in declaring(present, "".join(parts)))
    return "\n".join([HEAD + includes, *parts])


def check(sources: dict[str, str], bodies: dict[str, str]) -> None:
    """StubError for a body of a function that no source has."""
    known = {name for one in sources.values() for name in definitions(one)}
    if unknown := sorted(set(bodies) - known):
        raise StubError(f"series.toml: stubs of unknown functions: {', '.join(unknown)}")
