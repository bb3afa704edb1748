# SPDX-License-Identifier: LGPL-2.1-or-later
"""Names of units as people type them, and of the files that the daemon keeps about them."""

import difflib
import re
import shlex
from collections.abc import Iterable

from .errors import SutroError, UsageError

# Only these have a cgroup, and with it a weight; the value is the D-Bus interface of systemd
# that shows the weights of such a unit.
INTERFACES = {
    "service": "org.freedesktop.systemd1.Service",
    "scope": "org.freedesktop.systemd1.Scope",
    "slice": "org.freedesktop.systemd1.Slice",
    "socket": "org.freedesktop.systemd1.Socket",
    "mount": "org.freedesktop.systemd1.Mount",
    "swap": "org.freedesktop.systemd1.Swap",
}
OTHERS = ("automount", "device", "path", "target", "timer")


def suffix(name: str) -> str:
    """The unit type that a name ends with, "" if it ends with none."""
    kind = name.rpartition(".")[2] if "." in name else ""
    return kind if kind in INTERFACES or kind in OTHERS else ""


def stem(name: str) -> str:
    """A unit name without its type."""
    return name.removesuffix("." + suffix(name))


def complete(name: str) -> str:
    """The full unit name that `name` stands for: `.service` where no type is given."""
    if not name:
        raise UsageError("the unit name is empty", "sutroctl status lists the units")
    if not suffix(name):
        name += ".service"
    if suffix(name) in OTHERS:
        raise SutroError(
            f"unit '{name}' has no cgroup, so it has no weight",
            "weights belong to units of the types " + ", ".join(INTERFACES),
        )
    if stem(name).endswith("@"):
        raise SutroError(
            f"'{name}' is no name of a unit, but that of a template",
            f"name an instance, such as {stem(name)}1.{suffix(name)}; in a policy file, "
            f"Unit={stem(name)}*.{suffix(name)} matches all of them",
        )
    return name


def subject(name: str) -> str:
    """A unit name, or the path of a cgroup that systemd did not make, with single slashes."""
    if not name.startswith("/"):
        return complete(name)
    return "/" + "/".join(filter(None, name.split("/")))


def control_name(subject: str) -> str:
    """The name of the control file of a unit or a cgroup path, without `.policy`.

    Of a path that is the one of `systemd-escape --path`, with a suffix that no unit has.
    """
    return escaped(subject) + ".cgroup" if subject.startswith("/") else subject


def escaped(path: str) -> str:
    """A name for a path that no other path has, as of `systemd-escape --path`."""
    words = re.sub(r"^\.|[^\w:./]", lambda c: f"\\x{ord(c[0]):02x}", path[1:], flags=re.ASCII)
    return words.replace("/", "-")


def word(subject: str) -> str:
    """A name in a command to copy: a shell removes the backslashes of dev-a\\x2db.mount."""
    return shlex.quote(subject)


def without_io(subject: str) -> str:
    """Why settings of a unit or a cgroup path have no effect without the io controller, and how to
    change this.
    """
    remedy = f"systemctl set-property {word(subject)} IOAccounting=yes"
    if subject.startswith("/"):
        remedy = "write +io to cgroup.subtree_control of the cgroups above"
    return f"the io controller is not enabled for {subject}; to change this: {remedy}"


def near(name: str, known: Iterable[str]) -> list[str]:
    """Up to three known units that `name` may have meant, the likeliest first."""
    by_stem: dict[str, list[str]] = {}
    for unit in sorted(unit for unit in set(known) if suffix(unit) in INTERFACES):
        by_stem.setdefault(stem(unit), []).append(unit)
    # Types apart: ".service" alone would make any two services look alike. In a short name one
    # slip is half of it.
    cutoff = 0.5 if len(stem(name)) < 4 else 0.65
    alike = difflib.get_close_matches(stem(name), by_stem, n=3, cutoff=cutoff)
    return [unit for found in alike for unit in by_stem[found]][:3]
