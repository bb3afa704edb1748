# SPDX-License-Identifier: LGPL-2.1-or-later
"""Documentation/results.md and the table of README.md have the figures of Documentation/results."""

import re
import tomllib

from tree import TOP, passes

FOLDER = TOP / "Documentation/results"
TEXTS = ("conclusion", "before", "after")


def test_results_page() -> None:
    """`./lab report` makes the page out of the files that are in the tree."""
    passes("./lab", "report", "--check")


def test_each_section_has_a_command_and_a_conclusion() -> None:
    for section in tomllib.loads((FOLDER / "page.toml").read_text())["section"]:
        assert section["command"] and section["conclusion"].strip(), section["title"]


def test_each_figure_is_used() -> None:
    for section in tomllib.loads((FOLDER / "page.toml").read_text())["section"]:
        text = " ".join(section.get(key, "") for key in TEXTS)
        assert set(re.findall(r"{(\w+)}", text)) == set(section.get("figure", {}))


def test_each_file_of_results_is_shown() -> None:
    sections = tomllib.loads((FOLDER / "page.toml").read_text())["section"]
    names = {section["bench"] for section in sections if "bench" in section}
    assert names == {path.stem for path in FOLDER.glob("*.json")}
