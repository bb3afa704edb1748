# SPDX-License-Identifier: LGPL-2.1-or-later
"""meson builds and installs the daemon without a warning, and its data are well-formed."""

import json
import re
from pathlib import Path

import pytest
from tree import TOP, passes


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
    units = [*installed.rglob("*.service"), *installed.rglob("*.socket")]
    assert len({unit.suffix for unit in units}) == 2
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
