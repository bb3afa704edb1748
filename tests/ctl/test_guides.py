# SPDX-License-Identifier: LGPL-2.1-or-later
"""Commands and policies in the guides, on the landing page and among the examples are accepted."""

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from sutro import arguments

TOP = Path(__file__).resolve().parents[2]
PAGES = ["README.md", "Documentation/install.rst", *(
    str(path.relative_to(TOP)) for path in sorted(TOP.glob("Documentation/guides/*.rst"))
)]  # fmt: skip
EXAMPLES = sorted(path.name for path in TOP.glob("policies/*.policy"))
TABLE_CELL = re.compile(r"``(sutroctl [^`]+)``")


def commands(page: str) -> list[list[str]]:
    """The calls of sutroctl in examples, with their words."""
    text = (TOP / page).read_text()
    lines = [re.sub(r"^sudo | >\s*\S+$", "", line.strip()) for line in text.splitlines()]
    found = [line for line in lines if line.startswith("sutroctl ")]
    return [shlex.split(line, comments=True)[1:] for line in found]


def policies(page: str) -> list[str]:
    """Policies: examples with a section [X-Sutro], and a file for each `policy set`."""
    blocks = re.findall(r"(?:^    .*\n|^\n)+", (TOP / page).read_text(), re.MULTILINE)
    texts = [re.sub(r"^    ", "", block, flags=re.MULTILINE) for block in blocks]
    found = [text for text in texts if text.lstrip().startswith(("[Match]", "[X-Sutro]"))]
    for words in commands(page):
        if words[:2] == ["policy", "set"]:
            lines = [word for word in words[2:] if "=" in word]
            found.append("[X-Sutro]\n" + "\n".join(lines))
    return [text if "[Match]" in text else f"[Match]\nUnit=a.service\n{text}" for text in found]


@pytest.mark.parametrize("page", PAGES)
def test_commands_are_parsed(page: str) -> None:
    found = commands(page)
    assert found
    for words in found:
        args = arguments.parse(words)
        assert args.run
        # A name of a unit is no path of a device.
        assert "." not in (getattr(args, "device", None) or "") or "/" in args.device, words


@pytest.mark.parametrize("page", PAGES)
def test_commands_in_tables_are_verbs(page: str) -> None:
    """In a sentence or a table, options and arguments may be missing."""
    known = arguments.parser().format_help()
    for command in TABLE_CELL.findall((TOP / page).read_text()):
        assert re.search(rf"^ +{command.split()[1]} ", known, re.MULTILINE), command


def check(file: Path) -> None:
    """The parser of the daemon finds no mistake in a policy."""
    done = subprocess.run(
        [os.environ["SUTROD"], "--check", file], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, f"{file.read_text()}\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("page", PAGES)
def test_policies_have_no_mistake(page: str, tmp_path: Path) -> None:
    for number, text in enumerate(policies(page)):
        file = tmp_path / f"{number}.policy"
        file.write_text(text + "\n")
        check(file)


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_have_no_mistake_and_a_guide(name: str) -> None:
    check(TOP / "policies" / name)
    assert any(name in (TOP / page).read_text() for page in PAGES)


def test_guides_have_policies() -> None:
    assert sum(len(policies(page)) for page in PAGES) > 12
