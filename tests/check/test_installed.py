# SPDX-License-Identifier: LGPL-2.1-or-later
"""meson builds and installs the daemon without a warning, its data are well-formed, and the files
and units that installed documents refer to are installed as well.
"""

import json
import os
import re
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest
from tree import TOP, files, passes


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that has what meson installs; a warning of the compiler is an error."""
    build, root = (tmp_path_factory.mktemp(name) for name in ("build", "root"))
    passes("meson", "setup", "--werror", "-Dtests=false", build, TOP)
    passes("meson", "compile", "-C", build)
    passes("meson", "install", "-C", build, "--quiet", "--destdir", root)
    return root


def test_units(installed: Path, tmp_path: Path) -> None:
    """systemd understands each key of the units."""
    suffixes = ("service", "socket", "path")
    units = [unit for suffix in suffixes for unit in installed.rglob(f"systemd/system/*.{suffix}")]
    assert {unit.suffix.removeprefix(".") for unit in units} == {*suffixes}
    for unit in units:
        # The daemon is not installed here: let the unit name the one that was built.
        text = re.sub(
            r"^(Exec\w+=[@:+!-]*)/usr/", rf"\1{installed}/usr/", unit.read_text(), flags=re.M
        )
        # Below, systemd verifies as a manager of units of its own, for which one need not be root;
        # the keys are the same but for these, which need root.
        text = re.sub(r"^(User|DynamicUser)=.*\n", "", text, flags=re.M)
        (tmp_path / unit.name).write_text(text)
    folders = (f"HOME={tmp_path}", f"XDG_RUNTIME_DIR={tmp_path}")
    for unit in units:
        copy = tmp_path / unit.name
        printed = passes("env", *folders, "systemd-analyze", "--user", "verify", "--man=no", copy)
        assert not printed.strip()


def test_sandbox(installed: Path, tmp_path: Path) -> None:
    """systemd's judgement of the service, and SECURITY.md has the reason for each open setting."""
    unit = next(installed.rglob("sutrod.service"))
    tool = ("env", f"XDG_RUNTIME_DIR={tmp_path}", "systemd-analyze", "--user", "security")
    text = passes(*tool, "--offline=true", "--no-pager", unit)
    level = re.search(r"exposure level for sutrod.service: ([0-9.]+)", text)
    assert level and float(level.group(1)) <= 1.5
    rows = json.loads(passes(*tool, "--offline=true", "--json=short", unit))
    found = {row["name"] for row in rows if float(row["exposure"] or 0) > 0}
    table = (TOP / "SECURITY.md").read_text().replace("\\|", "|")
    assert set(re.findall(r"^\| `([A-Z][^`]*=[^`]*)` \|", table, re.M)) == found


def test_udev_rules(installed: Path) -> None:
    rules = list(installed.rglob("*.rules"))
    assert rules
    passes("udevadm", "verify", *rules)


def test_udev_rules_of_the_administrator() -> None:
    """The documented file is read after the rules that set ID_SERIAL, and before those of Sutro."""
    for name in ("Documentation/man/sutrod.8", "dist/60-sutro.rules"):
        (file,) = re.findall(r"/etc/udev/rules\.d/(\S+\.rules)", (TOP / name).read_text())
        assert "60-persistent-storage.rules" < file < "60-sutro.rules", name


# References of documents

DOCUMENTS = "usr/share/doc/sutro"
# A path with a suffix, or with a folder of the source; not a part of a longer one.
NAME = re.compile(
    r"(?<![\w./<*{}-])(?:\.{1,2}/)*(?:[\w@{},*+-][\w@{},*+.-]*/)*[\w@*+.-]+/?(?![\w/])"
)
UNIT = re.compile(
    r"(?<![\w./-])((?:sutro(?!test)|resync)[\w-]*@?)[\w\\\\-]*(\.(?:service|socket|slice))\b"
)


def of_nri() -> Iterator[str]:
    """The files of sutro-nri, which meson does not install."""
    for line in (TOP / "debian/sutro-nri.install").read_text().splitlines():
        source, folder = line.split()
        yield from (folder, f"{folder}/{Path(source).name}")
        for file in (TOP / source).glob("*"):
            yield f"{folder}/{Path(source).name}/{file.name}"


@pytest.fixture(scope="module")
def names(installed: Path) -> set[str]:
    """Every file and folder of the packages, without the first slash."""
    return {str(path.relative_to(installed)) for path in installed.rglob("*")} | set(of_nri())


@pytest.fixture(scope="module")
def documents(installed: Path) -> dict[str, Path]:
    """The text documents that are installed, by their place."""
    found = [*installed.joinpath(DOCUMENTS).rglob("*.*"), *installed.rglob("man/man*/*")]
    texts = [file for file in found if file.suffix != ".png" and file.is_file()]
    every = {str(file.relative_to(installed)): file for file in texts}
    return every | {"usr/share/man/man8/sutro-nri.8": TOP / "Documentation/man/sutro-nri.8"}


def paragraphs(file: Path) -> list[str]:
    """The paragraphs of a document; those of a man page without fonts and escapes."""
    text = file.read_text()
    if file.suffix.strip(".").isdigit():
        text = re.sub(r"\\f[BIR]|(?m:^\.(?:[BI][BIR]?|TH|SH|TP|PP).*?(?= |$))", "", text).replace(
            "\\-", "-"
        )
    return re.split(r"\n\s*\n", text)


def of_the_tree(paragraph: str) -> Iterator[str]:
    """The names in a paragraph that are files or folders of the source."""
    tree = files()
    for name in NAME.findall(paragraph):
        bare = name.lstrip("./").rstrip("/")
        whole = any(bare == file or file.startswith(bare + "/") for file in tree)
        inner = "." in bare and any(file.endswith("/" + bare) for file in tree)
        if (whole and "/" in name) or inner or (whole and "." in bare):
            yield name


def test_documents_refer_to_installed_files(names: set[str], documents: dict[str, Path]) -> None:
    """A file is installed at the place that a name leads to, or is named as one of the source."""
    bare = {Path(name).name for name in names}
    lost, found = [], 0
    for place, file in documents.items():
        before = ""
        for paragraph in paragraphs(file):
            for name in of_the_tree(paragraph):
                found += 1
                here = [Path(place).parent / name, Path(DOCUMENTS) / name]
                there = any(os.path.normpath(path) in names for path in here) or name in bare
                if not there and not re.search(r"\b(of|in)\sthe\ssource\b", before + paragraph):
                    lost.append(f"{place}: {name}")
            before = paragraph
    assert not lost, "\n".join(lost)
    assert found > 40


def command(text: str) -> list[str]:
    """The words of the last ExecStart= of a unit or a drop-in."""
    words: list[str] = re.findall(r"(?m)^ *ExecStart=(.+)$", text)[-1].split()
    return words


def test_drop_ins_replace_the_command(installed: Path, documents: dict[str, Path]) -> None:
    """A documented drop-in clears ExecStart=, and adds options to the command of the unit."""
    found = []
    for place, file in documents.items():
        text = "\n\n".join(paragraphs(file))
        for before, after in re.findall(r"(?s)(.{0,200})\[Service\]\n(.{0,200})", text):
            units = re.findall(r"systemctl edit (sutro\S+\.service)", before)
            if "ExecStart=" not in after:
                continue
            unit = next(
                file
                for file in (TOP / "nri", *installed.rglob("system"))
                for file in file.glob(units[-1])
            )
            words = command(unit.read_text())
            assert re.match(" *ExecStart=\n *ExecStart=.*--", after), place
            assert command(after)[: len(words)] == words, place
            assert f"systemctl restart {units[-1]}" in after, place
            found.append(place)
    assert len(found) == 4, found


def test_documents_name_installed_paths_and_units(
    names: set[str], documents: dict[str, Path]
) -> None:
    """Paths of Sutro in /usr, and its units, exist."""
    units = {Path(name).name for name in names}
    texts = documents | {name: TOP / name for name in ("README.md", "SECURITY.md")}
    lost, found = [], 0
    for place, file in texts.items():
        text = "\n\n".join(paragraphs(file))
        # /usr/lib/sutro is for files of other packages.
        for path in re.findall(r"(?<![\w.])/(usr/(?!lib/sutro/)[\w./@*+-]*sutro[\w./@*+-]*)", text):
            found += 1
            if not any(fnmatch(name, path.rstrip("./")) for name in names):
                lost.append(f"{place}: /{path}")
        for name, suffix in UNIT.findall(text):
            found += 1
            if name + suffix not in units:
                lost.append(f"{place}: {name}{suffix}")
    assert not lost, "\n".join(lost)
    assert found > 40
