# SPDX-License-Identifier: LGPL-2.1-or-later
"""The plugin of container runtimes starts by hand, and follows upgrades and removal of its package.

debian/rules runs dh_installsystemd, whose scripts are run with tools that log their calls.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from kernels import KERNEL

TOP = KERNEL.parent
PACKAGE, SERVICE = "sutro-nri", "sutro-nri.service"


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The parts of scripts by their names, such as prerm."""
    tree = tmp_path_factory.mktemp("tree")
    shutil.copytree(TOP / "debian", tree / "debian")
    units = tree / "debian" / PACKAGE / "usr/lib/systemd/system"
    units.mkdir(parents=True)
    shutil.copy(TOP / "nri" / SERVICE, units)
    # As dh does: --remaining-packages then leaves out those that had the command.
    override = {"DH_INTERNAL_OVERRIDE": "dh_installsystemd"}
    env = os.environ | override | {"DEB_BUILD_PROFILES": "pkg.sutro.nri"}
    subprocess.run(
        ["debian/rules", "override_dh_installsystemd"], cwd=tree, env=env, check=True, timeout=60
    )
    found: dict[str, str] = {}
    generated = [*(tree / "debian/.debhelper/generated" / PACKAGE).iterdir()]
    for file in [*generated, *(tree / "debian").glob(f"{PACKAGE}.*.debhelper")]:
        (name,) = set(re.split(r"[./]", file.name)) & {"preinst", "postinst", "prerm", "postrm"}
        found[name] = found.get(name, "") + file.read_text()
    return found


def actions(root: Path, script: str, *arguments: str) -> list[str]:
    """The calls of a script that start, stop or enable the service, on a machine with systemd."""
    log = root / "log"
    log.touch()
    tools = {
        "deb-systemd-invoke": 'echo "$1 $2"',
        "deb-systemd-helper": '[ "$1" != enable ] || echo "$1 $2"',
        "systemctl": ":",
    }
    # By its last command, deb-systemd-helper finds that the package was not installed before.
    for name, command in tools.items():
        (root / name).write_text(f"#!/bin/sh\n{command} >>{log}\n[ $1 != debian-installed ]\n")
        (root / name).chmod(0o755)
    (root / "system").mkdir()
    script = script.replace("/run/systemd/system", str(root / "system"))
    env = {"PATH": f"{root}:/usr/bin:/bin"}
    subprocess.run(["/bin/sh", "-ec", script, "sh", *arguments], env=env, check=True)
    return log.read_text().splitlines()


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        # deb-systemd-invoke starts no service that is not enabled, as here.
        ("postinst", ("configure", ""), ["start"]),
        ("preinst", ("upgrade", "0.0.9"), []),
        ("prerm", ("upgrade", "0.2.0"), []),
        # It restarts one that is enabled or runs.
        ("postinst", ("configure", "0.0.9"), ["restart"]),
        ("prerm", ("remove",), ["stop"]),
    ],
)
def test_life_of_the_service(
    scripts: dict[str, str],
    tmp_path: Path,
    name: str,
    arguments: tuple[str, ...],
    expected: list[str],
) -> None:
    found = actions(tmp_path, scripts.get(name, ""), *arguments)
    assert found == [f"{action} {SERVICE}" for action in expected]
