# SPDX-License-Identifier: LGPL-2.1-or-later
"""The host: the Debian packages that the lab needs on it, and the mirrors of its apt."""

import os
import pwd
import re
import shutil
import subprocess
from pathlib import Path

from .namespace import ENVIRONMENT, is_root
from .progress import LabError, step

# A file that each package brings, so that a host where it came another way is content too.
PACKAGES = {
    "mmdebstrap": "mmdebstrap",
    "qemu-system-x86": "qemu-system-x86_64",
    "e2fsprogs": "mkfs.ext4",
    "uidmap": "newuidmap",
    "git": "git",
    "mount": "mount",
}
KEYRING_PACKAGE = "debian-archive-keyring"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


def ensure_packages() -> None:
    """Install what is missing if we are root; otherwise name it in one apt line."""
    missing = [
        p for p, tool in PACKAGES.items() if not shutil.which(tool, path=ENVIRONMENT["PATH"])
    ]
    if not os.path.exists(KEYRING):
        missing.append(KEYRING_PACKAGE)
    if is_root():
        missing = [package for package in missing if package != "uidmap"]
    if missing:
        _install(sorted(missing))
    if not is_root():
        _check_subordinate_ids()


def mirrors(suite: str) -> list[str]:
    """Source lines for suite on the mirrors of this host's apt; none: mmdebstrap's choice."""
    fields = "$(ORIGIN)|$(CODENAME)|$(COMPONENT)|$(REPO_URI)"
    lines = output(["apt-get", "indextargets", "--format", fields, "Created-By: Packages"])
    archive, security = "", ""
    for line in lines.splitlines():
        origin, codename, component, uri = line.split("|", 3)
        if origin != "Debian" or component != "main":
            continue
        if codename.endswith("-security"):
            security = security or uri
        elif "-" not in codename:
            archive = archive or uri
    if not archive or not security:
        return []
    return [
        f"deb {archive} {suite} main",
        f"deb {archive} {suite}-updates main",
        f"deb {security} {suite}-security main",
    ]


def apt_options() -> list[str]:
    """How this host reaches its mirrors (proxies, certificates, clock checks), as apt options."""
    options = []
    for line in output(["apt-config", "dump", "Acquire"]).splitlines():
        name, _, value = line.rstrip(";").partition(" ")
        wanted = ("http::", "https::", "Check-Date", "Check-Valid-Until", "Retries")
        if name.removeprefix("Acquire::").startswith(wanted) and value not in ("", '""'):
            options.append(f"{name} {value}")
    return options


def network_files() -> dict[str, Path]:
    """Files with which a tree has the network of this host, as binds for Root.run."""
    found = {}
    for name in ("/etc/resolv.conf", "/etc/pip.conf", "/etc/ssl/certs/ca-certificates.crt"):
        if os.path.exists(name):
            found[name] = Path(name).resolve()
    return found


def pip_settings() -> dict[str, str]:
    """The environment variables with the index and the proxy of pip."""
    wanted = re.compile(r"PIP_(EXTRA_)?INDEX_URL|PIP_TRUSTED_HOST|PIP_PROXY|(https?|all|no)_proxy")
    return {name: value for name, value in os.environ.items() if wanted.fullmatch(name)}


def _install(missing: list[str]) -> None:
    line = "apt-get install --no-install-recommends --yes " + " ".join(missing)
    if not is_root() or not shutil.which("apt-get"):
        raise LabError(f"this host lacks Debian packages; as root: {line}")
    step(f"host: installing {' '.join(missing)}")
    for command in ("apt-get update --quiet=2", line + " --quiet=2"):
        done = subprocess.run(
            command.split(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"},
        )
        if done.returncode != 0:
            raise LabError(f"`{command}` failed:\n{done.stdout.strip()}")


def _check_subordinate_ids() -> None:
    """A user needs a range of subordinate ids: the owners of the files of a Debian tree."""
    user = pwd.getpwuid(os.geteuid()).pw_name
    for path in ("/etc/subuid", "/etc/subgid"):
        try:
            with open(path, encoding="utf-8") as table:
                names = {line.split(":", 1)[0] for line in table}
        except OSError:
            names = set()
        if not names & {user, str(os.geteuid())}:
            raise LabError(
                f"{user} has no range in {path}; as root: "
                f"usermod --add-subuids 100000-165535 --add-subgids 100000-165535 {user}"
            )


def output(argv: list[str]) -> str:
    """The output of a command; empty if it is missing or fails."""
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, env=os.environ | {"LC_ALL": "C"}
        )
    except OSError:
        return ""
    return done.stdout if done.returncode == 0 else ""
