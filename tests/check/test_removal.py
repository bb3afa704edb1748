# SPDX-License-Identifier: LGPL-2.1-or-later
"""Instances of templates follow the package sutro, although tools of distributions leave them.

The scripts run with tools that only log their calls, below another root. Instances are the policy
programs of an administrator, such as sutro-window@backup.service.
"""

import os
import re
import subprocess
from pathlib import Path

import pytest
from tree import TOP

TEMPLATES = [f"sutro-{name}@.service" for name in ("window", "latency-guard")]
INSTANCES = " ".join(name.replace("@", "@*") for name in TEMPLATES)
STOP, TRY_RESTART = f"systemctl stop {INSTANCES}", f"systemctl try-restart {INSTANCES}"
# A unit without [Install], which the guide links to the daemon.
LINKED = "resync.slice"
DISABLE = "systemctl --no-reload disable " + " ".join([*TEMPLATES, LINKED])
SPEC = (TOP / "packaging/sutro.spec").read_text()


def preun(package: str) -> str:
    """The scriptlet of the spec without macros of systemd."""
    (body,) = re.findall(rf"^%preun{package}\n(.*?)^\n", SPEC, re.MULTILINE | re.DOTALL)
    return re.sub(r"^%\{\?systemd_.*\n", "", body, flags=re.MULTILINE)


SCRIPTS = {
    "debian": ((TOP / "debian/sutro.prerm").read_text(), "remove", "upgrade"),
    "rpm": (preun(""), "0", "1"),
    "arch": ((TOP / "packaging/sutro.install").read_text() + "\npre_remove\n", "", None),
}


def run(root: Path, script: str, *action: str) -> list[str]:
    """The calls of programs by a script."""
    tools, log = root / "bin", root / "log"
    tools.mkdir()
    log.touch()
    (root / "run/systemd/system").mkdir(parents=True)
    for name in ("systemctl", "sutrod", "sutro-slurm", "sutro-nri"):
        (tools / name).write_text(f'#!/bin/sh\necho "{name} $*" >>{log}\n')
        (tools / name).chmod(0o755)
    # The tests may run in a chroot, where scripts of Debian leave disks and cgroups alone.
    (tools / "ischroot").symlink_to("/bin/false")
    script = re.sub(r"(?<=\s)/(?=(?:run|var|etc)/)", f"{root}/", script.replace("#DEBHELPER#", ""))
    env = {**os.environ, "PATH": f"{tools}:/usr/bin:/bin"}
    subprocess.run(["/bin/sh", "-ec", script, "sh", *action], env=env, check=True)
    return log.read_text().splitlines()


def test_templates() -> None:
    """All templates of the package are named here."""
    assert sorted(TEMPLATES) == sorted(path.stem for path in (TOP / "dist").glob("*@.service.in"))


@pytest.mark.parametrize("name", SCRIPTS)
def test_instances_are_stopped_before_the_daemon(tmp_path: Path, name: str) -> None:
    script, removal, _ = SCRIPTS[name]
    calls = run(tmp_path, script, removal)
    daemon = ["systemctl stop sutrod.service", "sutrod --restore --release"]
    disabled = [] if name == "debian" else [DISABLE]
    assert calls == [STOP, *disabled, *daemon]


@pytest.mark.parametrize("name", ["debian", "rpm"])
def test_an_upgrade_stops_nothing(tmp_path: Path, name: str) -> None:
    script, _, upgrade = SCRIPTS[name]
    assert run(tmp_path, script, upgrade) == []


@pytest.mark.parametrize(
    ("name", "program"),
    [("debian", "sutro-slurm"), ("debian", "sutro-nri"), ("rpm", "sutro-slurm")],
)
def test_policies_of_jobs_and_pods_end_with_their_package(
    tmp_path: Path, name: str, program: str
) -> None:
    """Afterwards no epilog resets them, no service and no plugin."""
    text = (TOP / f"debian/{program}.prerm").read_text() if name == "debian" else preun(" slurm")
    for folder, action, count in zip("ab", SCRIPTS[name][1:], (1, 0), strict=True):
        (tmp_path / folder).mkdir()
        assert run(tmp_path / folder, text, action) == [f"{program} reset"] * count


@pytest.mark.parametrize(("before", "restart"), [("", []), ("0.0.9", [TRY_RESTART])])
def test_an_upgrade_restarts_instances(tmp_path: Path, before: str, restart: list[str]) -> None:
    script = (TOP / "debian/sutro.postinst").read_text()
    assert run(tmp_path, script, "configure", before) == restart


@pytest.mark.parametrize(("action", "stays"), [("remove", True), ("purge", False)])
def test_purge_disables_instances(tmp_path: Path, action: str, stays: bool) -> None:
    """As dpkg does with other units; those of other packages stay."""
    wants = tmp_path / "etc/systemd/system/multi-user.target.wants"
    wants.mkdir(parents=True)
    links = [wants / name.replace("@", "@x") for name in (*TEMPLATES, "other@.service")]
    for link in links:
        link.symlink_to("/usr/lib/systemd/system/nowhere")
    run(tmp_path, (TOP / "debian/sutro.postrm").read_text(), action)
    assert [link.is_symlink() for link in links] == [stays, stays, True]


@pytest.mark.parametrize("action", ["remove", "purge"])
@pytest.mark.parametrize("other", [[], ["other.service"]])
def test_purge_removes_the_link_of_the_guide(tmp_path: Path, action: str, other: list[str]) -> None:
    """deb-systemd-helper removes links that it has made; those to other units stay."""
    for file in ("guides/layouts.rst", "man/sutrod.conf.5"):
        text = (TOP / "Documentation" / file).read_text()
        assert f"systemctl add-wants sutrod.service {LINKED}\n" in text
    wants = tmp_path / "etc/systemd/system/sutrod.service.wants"
    wants.mkdir(parents=True)
    for name in [LINKED, *other]:
        (wants / name).symlink_to(f"/usr/lib/systemd/system/{name}")
    run(tmp_path, (TOP / "debian/sutro.postrm").read_text(), action)
    kept = {path.name for path in wants.iterdir()} if wants.exists() else None
    assert kept == ({LINKED, *other} if action == "remove" else set(other) or None)
