# SPDX-License-Identifier: LGPL-2.1-or-later
"""Is all as configured? Prints what is not, a line each; the status is 1 then.

    python3 -m boot.check [--stock-drivers] [--only-files]

The values of settings that changed before a power cut come from the journal, which begins anew with
the values that are found. Nothing here judges a rate.
"""

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from rig import bus, scheduler
from rig.dkms import out_of_tree
from rig.shell import CommandError, run, wait_for
from rig.unit import CGROUP_ROOT

from boot import files, journal
from boot.settings import (
    DB_WEIGHT,
    FILES,
    FOREIGN_BYTES,
    FOREIGN_WEIGHT,
    LEAVES,
    OTHER,
    OTHER_SCHEDULER,
    ROOT,
    VOLUME,
)

SOON_S = 120.0
SLICE = CGROUP_ROOT / "system.slice"
# db reads less than its floor: it has all that it requests.
KEPT = ("held", "idle", "settling")


def becomes(found: Callable[[], object], wanted: object, what: str) -> Iterator[str]:
    """A line if two values differ after a while."""
    try:
        wait_for(lambda: found() == wanted, what, SOON_S, 0.5)
    except TimeoutError:
        yield f"{what}: {found()!r}, wanted {wanted!r}"
    except (OSError, bus.BusError, CommandError) as error:
        yield f"{what}: {error}"


def line_of(unit: str, file: str, key: str) -> str | None:
    """The line of a cgroup file of a unit that begins with a key."""
    for line in (SLICE / unit / file).read_text().splitlines():
        if line.split()[0] == key:
            return line.removeprefix(key).strip()
    return None


def numbers() -> tuple[str, str]:
    """MAJ:MIN of the volume, and of the array below it."""
    volume = Path("/sys/class/block") / Path(VOLUME).resolve().name
    (array,) = (volume / "slaves").iterdir()
    return (volume / "dev").read_text().strip(), (array / "dev").read_text().strip()


def read(path: str) -> str | None:
    """The text of a file of this machine."""
    try:
        return Path(path).read_text()
    except FileNotFoundError:
        return None


def promise(unit: str) -> list[tuple[object, ...]]:
    """Key, path, value and state of each promise of a unit; the states of a kept floor are one."""
    return [
        (one["key"], one["path"], one["value"], "kept" if one["state"] in KEPT else one["state"])
        for one in bus.promises(unit)
    ]


def in_files() -> Iterator[str]:
    """Files: whole, and with one of the values that they may have."""
    yield from files.problems(read, journal.read())
    for path, text in FILES.items():
        if read(path) != text:
            yield f"{path} was changed: {read(path)!r}"


def in_force(found: dict[str, int | None]) -> Iterator[str]:
    """Schedulers, weights and promises."""
    for leaf in LEAVES:
        yield from becomes(lambda leaf=leaf: scheduler.current(leaf), "sutro", f"{leaf}: scheduler")
    yield from becomes(lambda: scheduler.current(OTHER), OTHER_SCHEDULER, f"{OTHER}: scheduler")
    weights = {
        "foreign.service": FOREIGN_WEIGHT,
        "job.service": found["weight"],
        "batch.service": found["policy"],
        "db.service": DB_WEIGHT,
    }
    for unit, weight in weights.items():
        yield from becomes(
            lambda unit=unit: line_of(unit, "io.sutro.weight", "default"),
            str(weight),
            f"{unit}: weight",
        )
    floor = ("ReadBandwidthMin", VOLUME, found["floor"], "kept")
    yield from becomes(lambda: promise("db.service"), [floor], "db.service: promises")
    ceiling = ("ReadBandwidthMax", VOLUME, found["ceiling"], "stated")
    yield from becomes(lambda: promise("batch.service"), [ceiling], "batch.service: promises")
    # systemd sets the limit of a volume on the device from which it originates.
    volume, array = numbers()
    limits = {
        "batch.service": (volume, found["ceiling"]),
        "foreign.service": (array, FOREIGN_BYTES),
    }
    for unit, (number, limit) in limits.items():
        yield from becomes(
            lambda unit=unit, number=number: line_of(unit, "io.max", number),
            f"rbps={limit} wbps=max riops=max wiops=max",
            f"{unit}: io.max of {number}",
        )
    yield from becomes(lambda: bus.get("PolicyErrors"), [], "mistakes in policies")


def of_the_system(patched: bool) -> Iterator[str]:
    """The root, its drivers, the daemon, the packages."""
    mounted = run("findmnt", "--noheadings", "--output=SOURCE,FSTYPE", "/").split()
    if mounted != ["/dev/mapper/lab-root", "ext4"]:
        yield f"the root is {mounted}"
    device, leaves, steps = bus.resolve("/")
    kinds = list(dict.fromkeys(step["kind"] for step in steps))
    if sorted(leaves) != [f"/dev/{leaf}" for leaf in LEAVES] or kinds != [
        "linear",
        "raid1",
        "disk",
    ]:
        yield f"{ROOT} is {device}: {kinds} on {leaves}"
    if "[UU]" not in Path("/proc/mdstat").read_text():
        yield f"the array is not whole: {Path('/proc/mdstat').read_text()}"
    for driver in ("raid1", "dm_mod"):
        if out_of_tree(driver) != patched:
            yield f"{driver} is {'not ' * patched}the driver of sutro-stacking-dkms"
    if audit := run("dpkg", "--audit"):
        yield f"dpkg --audit: {audit}"
    # The image leaves documentation out.
    listed = run("dpkg-query", "--show", "--showformat=${Package} ${db:Status-Status}\n", "sutro*")
    packages = re.findall(r"^(\S+) installed$", listed, re.MULTILINE)
    for line in run("dpkg", "--verify", *packages).splitlines():
        if not re.search(r" /usr/share/(doc|man)/", line):
            yield f"dpkg --verify: {line}"


def main() -> int:
    """Print all problems."""
    patched = "--stock-drivers" not in sys.argv
    found = files.values(read)
    problems = list(in_files())
    if "--only-files" not in sys.argv:
        problems += [*in_force(found), *of_the_system(patched)]
    print("\n".join(problems), end="\n" if problems else "")
    if not problems:
        journal.begin({key: value for key, value in found.items() if value is not None})
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
