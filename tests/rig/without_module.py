# SPDX-License-Identifier: LGPL-2.1-or-later
"""A kernel without the module sutro, whose new disks get bfq as in guides/without-module.rst."""

import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rig import scheduler
from rig.shell import run

GUIDE = Path(__file__).resolve().parents[2] / "Documentation/guides/without-module.rst"
RULE = Path("/etc/udev/rules.d/61-bfq.rules")
# modprobe runs this command instead, and the kernel has no scheduler of that name.
NO_MODULE = Path("/etc/modprobe.d/rig-no-sutro.conf")


def rule() -> str:
    """The udev rule of the guide, for the names of model disks."""
    found = re.search(r"^    (ACTION==(?:.*\\\n)?.*low_latency.*)$", GUIDE.read_text(), re.M)
    if not found:
        raise RuntimeError(f"{GUIDE} has no udev rule with low_latency")
    text, count = re.subn(r'KERNEL=="[^"]*"', 'KERNEL=="ssd*"', found[1])
    if count != 1:
        raise RuntimeError(f"{GUIDE}: the udev rule has no KERNEL==: {text}")
    return text + "\n"


def apply_rule() -> None:
    """The commands of the guide that apply the rule to present disks."""
    commands = re.findall(r"^    (udevadm .*)$", GUIDE.read_text(), re.M)
    if not commands:
        raise RuntimeError(f"{GUIDE} has no udevadm command")
    for command in commands:
        run(*shlex.split(command))


def install() -> None:
    """End what without() began, as an administrator does who installs the module."""
    NO_MODULE.unlink(missing_ok=True)
    RULE.unlink(missing_ok=True)
    run("udevadm", "control", "--reload")


@contextmanager
def without() -> Iterator[None]:
    """The kernel has no scheduler sutro while the body runs; sutrod is stopped before."""
    scheduler.stop_daemon()
    run("modprobe", "--remove", "sutro")
    try:
        NO_MODULE.write_text("install sutro /bin/false\n")
        RULE.write_text(rule())
        apply_rule()
        yield
    finally:
        install()
        run("modprobe", "sutro")
