# SPDX-License-Identifier: LGPL-2.1-or-later
"""Packages of other distributions have exactly the files that meson installs.

Each description in packaging/ calls `meson setup` with options of its own. The file lists of the
RPM spec are compared with that installation, and its packages with those of Debian. The stage
`distributions` of ./lab test runs the tools of the distributions on the same files.
"""

import json
import re
import shlex
from fnmatch import fnmatch
from pathlib import Path

import pytest
from tree import TOP, passes

SPEC, PKGBUILD, NIX = (
    TOP / "packaging" / name for name in ("sutro.spec", "PKGBUILD", "default.nix")
)
# As Fedora defines them; of Python, the folder that meson prints.
MACROS = {
    "_prefix": "/usr",
    "_bindir": "/usr/bin",
    "_sbindir": "/usr/bin",
    "_sysconfdir": "/etc",
    "_localstatedir": "/var",
    "_datadir": "/usr/share",
    "_mandir": "/usr/share/man",
    "_unitdir": "/usr/lib/systemd/system",
    "_udevrulesdir": "/usr/lib/udev/rules.d",
    "_sysusersdir": "/usr/lib/sysusers.d",
    "_catalogdir": "/usr/lib/systemd/catalog",
    "_tmpfilesdir": "/usr/lib/tmpfiles.d",
}
# meson does not list empty folders.
EMPTY = {"/usr/lib/sutro/policy.d", "/etc/sutro/policy.d", "/etc/sutro/policy.control"}


def options(file: Path) -> list[str]:
    """The options of `meson setup` in a description, without the folders."""
    text = file.read_text().replace("\\\n", " ")
    (line,) = re.findall(r"^\s*meson setup (.*)$", text, re.MULTILINE)
    words = shlex.split(expanded(line, {}))
    return [word for word in words if word.startswith("-")]


def expanded(text: str, more: dict[str, str]) -> str:
    """A text of the spec with its macros replaced."""
    return re.sub(r"%\{(\w+)\}", lambda found: (MACROS | more).get(found[1], found[0]), text)


def installed(folder: Path, file: Path) -> set[str]:
    """All that meson installs with the options of a description."""
    passes("meson", "setup", *options(file), folder, TOP)
    found = json.loads(passes("meson", "introspect", "--installed", folder))
    return set(found.values())


def sections() -> dict[str, list[str]]:
    """The lines of %files by the name of the package."""
    parts = re.split(r"^%files(.*)\n", SPEC.read_text().partition("%changelog")[0], flags=re.M)[1:]
    found = {}
    for name, text in zip(parts[::2], parts[1::2], strict=True):
        words = name.split()
        package = words[1] if words[:1] == ["-n"] else "-".join(["sutro", *words])
        found[package] = [line for line in text.splitlines() if line]
    return found


def belongs(path: str, entry: str) -> bool:
    """Is this path meant by a line of %files?"""
    return path.startswith(entry) if entry.endswith("/") else fnmatch(path, entry)


def debian(path: str) -> str:
    """The package of Debian that has a path."""
    for file in (TOP / "debian").glob("*.files"):
        names = file.read_text().split()
        if any(f"{path}/".startswith(f"/{name}/") for name in names):
            return file.stem
    return "sutro"


def test_files_of_the_spec(tmp_path: Path) -> None:
    """Each installed file is in one package, the same as in Debian, and each line names a file."""
    paths = installed(tmp_path, SPEC)
    module = next(path for path in paths if path.endswith("/sutro/sutroctl.py"))
    sitelib = {"python3_sitelib": module.removesuffix("/sutro/sutroctl.py")}
    used: dict[str, list[str]] = {path: [] for path in paths}
    for package, lines in sections().items():
        for line in lines:
            kind, _, entry = expanded(line, sitelib).rpartition(" ")
            if kind == "%license":
                assert (TOP / entry).is_file()
                continue
            if kind == "%dir":
                assert any(f"{path}/".startswith(f"{entry}/") for path in paths | EMPTY), line
                continue
            matching = [path for path in paths if belongs(path, entry)]
            assert matching, f"{package}: {line} names no installed file"
            for path in matching:
                used[path].append(package)
    assert used == {path: [debian(path)] for path in paths}
    assert EMPTY <= {expanded(line.partition(" ")[2], {}) for line in sections()["sutro"]}


def test_scriptlets_of_units() -> None:
    """Each service of a package is enabled by its preset, and stops with removal."""
    text = SPEC.read_text()
    for package, lines in sections().items():
        units = {Path(line).name for line in lines if line.startswith("%{_unitdir}/")}
        services = {name for name in units if name.endswith(".service") and "@" not in name}
        suffix = package.removeprefix("sutro").replace("-", " ")
        for scriptlet in ("post", "preun", "postun_with_restart") if services else ():
            head = f"%{scriptlet.partition('_')[0]}{suffix}"
            (body,) = re.findall(rf"^{head}\n(.*?)^\n", text, re.MULTILINE | re.DOTALL)
            (words,) = re.findall(rf":%systemd_{scriptlet} (.*)\}}", body)
            assert services <= set(words.split()) <= units


def test_udev_rule_applies_to_devices_that_are_there() -> None:
    """As in the package of Debian."""
    trigger = re.compile(r"^\s+(udevadm trigger .*) \|\| \S+$", re.MULTILINE)
    files = (TOP / "debian/sutro.postinst", SPEC, TOP / "packaging/sutro.install")
    assert len({tuple(trigger.findall(file.read_text())) for file in files}) == 1
    assert trigger.search(SPEC.read_text().partition("%post\n")[2].partition("%preun\n")[0])
    assert "\ninstall=sutro.install\n" in PKGBUILD.read_text()


@pytest.fixture
def left(tmp_path: Path) -> Path:
    """A root file system on which the packages left their files."""
    for name in ("var/lib/sutro/costs/disk", "run/sutro/learnt", "etc/sutro/policy.d/own.policy"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    report = tmp_path / "run/systemd/report/io.sutro.Status"
    report.parent.mkdir(parents=True)
    report.symlink_to("/run/sutro/io.sutro.Status")
    return tmp_path


def on(root: Path, text: str) -> str:
    """A scriptlet with the paths of another root file system, without macros of systemd."""
    text = re.sub(r"^%\{\?systemd_.*\n", "", text, flags=re.MULTILINE)
    return re.sub(r"(?<=\s)/(?=(?:run|var|etc)/)", f"{root}/", text)


def remaining(root: Path) -> set[str]:
    """The files and links of a root file system."""
    return {str(path.relative_to(root)) for path in root.rglob("*") if not path.is_dir()}


def test_removal_of_the_rpm(left: Path) -> None:
    """An upgrade keeps what the daemon has learnt; a removal keeps settings only."""
    (body,) = re.findall(r"^%postun\n(.*?)^\n", SPEC.read_text(), re.MULTILINE | re.DOTALL)
    before = remaining(left)
    passes("sh", "-ec", on(left, body), "sh", "1")
    assert remaining(left) == before
    passes("sh", "-ec", on(left, body), "sh", "0")
    assert remaining(left) == {"etc/sutro/policy.d/own.policy"}
    assert not (left / "var/lib/sutro").exists()


def test_removal_of_the_package_of_arch(left: Path) -> None:
    """pacman keeps files that no package has; the scriptlet prints where they are."""
    script = on(left, (TOP / "packaging/sutro.install").read_text())
    printed = passes("bash", "-ec", f"{script}\npost_remove")
    assert re.findall(r"rm -r (\S+)", printed) == [
        f"{left}/etc/sutro/policy.d",
        f"{left}/var/lib/sutro",
    ]
    assert "run/systemd/report/io.sutro.Status" not in remaining(left)


@pytest.mark.parametrize("file", [SPEC, PKGBUILD], ids=lambda file: file.name)
def test_configuration_is_kept(tmp_path: Path, file: Path) -> None:
    """Each file below /etc is one that an upgrade does not overwrite."""
    below = {path for path in installed(tmp_path, file) if path.startswith("/etc/")}
    if file == SPEC:
        lines = [line for every in sections().values() for line in every]
        kept = {expanded(line.split()[1], {}) for line in lines if line.startswith("%config")}
    else:
        (words,) = re.findall(r"^backup=\((.*)\)$", file.read_text(), re.MULTILINE)
        kept = {f"/{word}" for word in words.split()}
    assert below == kept


def test_options_of_nix(tmp_path: Path) -> None:
    """meson accepts them, and installs into the folder of the package, as a build of Nix has to."""
    (flags,) = re.findall(r"^  mesonFlags = \[\n(.*?)^  \]", NIX.read_text(), re.M | re.S)
    store = "/nix/store/sutro"
    words = re.findall(r'"([^"]+)"', flags.replace('${placeholder "out"}', store))
    assert "-Dtests=false" in words
    passes("meson", "setup", *words, f"--prefix={store}", tmp_path, TOP)
    found = json.loads(passes("meson", "introspect", "--installed", tmp_path))
    assert [path for path in found.values() if not path.startswith(f"{store}/")] == []


def test_versions() -> None:
    """All descriptions have the version of meson.build."""
    (version,) = re.findall(r"version: '([0-9.]+)',\n  license", (TOP / "meson.build").read_text())
    for file, pattern in (
        (SPEC, r"^Version:\s+(\S+)$"),
        (PKGBUILD, r"^pkgver=(\S+)$"),
        (NIX, r'^  version = "(\S+)";$'),
    ):
        assert re.findall(pattern, file.read_text(), re.MULTILINE) == [version], file.name
