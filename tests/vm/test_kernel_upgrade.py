# SPDX-License-Identifier: LGPL-2.1-or-later
"""A second kernel is installed while linux-source is held back, and removed. dpkg succeeds always.

The packages of that kernel are files in /mnt/build, as apt would download them for an upgrade:
linux-image-VERSION_*.deb, linux-headers-VERSION_*.deb and all that they depend on and the guest has
not (linux-headers-*-common, linux-kbuild-*). Nothing is downloaded, and the guest goes on with the
kernel that it runs.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from rig.dkms import built, kernel, skip_reason
from rig.shell import run

BUILD = Path("/mnt/build")
# That of a kernel without its source, and that of one for which the module does not compile.
REMEDY = re.compile("; install the package linux-source-|: install a later one, or report ")
# DKMS compiles the module, on CPUs that may be emulated.
TIMEOUT_S = 3600


def files() -> list[Path]:
    """The packages of the second kernel."""
    return sorted(BUILD.glob("linux-*.deb"))


def new_kernel() -> str:
    """The version that the second kernel's image is named after."""
    (image,) = BUILD.glob("linux-image-*.deb")
    return image.name.removeprefix("linux-image-").split("_")[0]


def modules() -> dict[Path, bytes]:
    """The files that DKMS installed for the running kernel."""
    folder = Path("/lib/modules", kernel(), "updates/dkms")
    return {path: path.read_bytes() for path in folder.iterdir()}


def not_configured() -> list[str]:
    """Packages that dpkg left half-way."""
    listed = run("dpkg-query", "--show", "--showformat=${db:Status-Abbrev}${Package}\n")
    return [line for line in listed.splitlines() if not re.match(r"[hi][inc] ", line)]


def outcome() -> str:
    """`installed`, or the reason why the second kernel has no elevator."""
    new = new_kernel()
    if re.search(rf"^sutro/\S+, {re.escape(new)}, x86_64: installed", status(), re.MULTILINE):
        assert f"vermagic:       {new} " in run("modinfo", "--set-version", new, "sutro")
        return "installed"
    (log,) = Path("/var/lib/dkms/sutro").glob("*/build/make.log")
    return skip_reason(log.read_text(), new)


def status() -> str:
    return run("dkms", "status")


@pytest.fixture
def held_source() -> Iterator[None]:
    """linux-source stays at its version."""
    name = f"linux-source-{'.'.join(kernel().split('.')[:2])}"
    run("apt-mark", "hold", name)
    yield
    run("apt-mark", "unhold", name)


def test_upgrade_and_way_back_with_linux_source_held_back(held_source: None) -> None:
    """The running kernel keeps its module; the other one has it, or there is a reason why not.

    The way back from an upgrade is the removal of the other kernel. Nothing of it is left then.
    """
    new = new_kernel()
    assert new != kernel()
    assert built()
    before, status_before = modules(), status()

    # The command of apt: dpkg ends with an error if a package cannot be configured.
    run("dpkg", "--install", *files(), timeout_s=TIMEOUT_S)
    try:
        assert not_configured() == []
        assert run("dpkg", "--audit") == ""
        assert modules() == before
        assert built()
        assert Path("/lib/modules", new, "build/Makefile").is_file()
        result = outcome()
        if result != "installed":
            # The same reason again, and no error, when the hook of DKMS runs once more.
            run("/etc/kernel/postinst.d/dkms", new, timeout_s=TIMEOUT_S)
            assert outcome() == result
            assert new in result
            assert REMEDY.search(result), result
    finally:
        names = [path.name.split("_")[0] for path in files()]
        run("dpkg", "--purge", *names, timeout_s=TIMEOUT_S)
    assert not_configured() == []
    assert not Path("/lib/modules", new, "updates").exists()
    assert status() == status_before
    assert modules() == before
