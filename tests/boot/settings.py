# SPDX-License-Identifier: LGPL-2.1-or-later
"""Settings of the machine: those of its administrator, and those that changes.py changes.

db.service       reads /dev/lab/data; a floor by `sutroctl policy set`, IOWeight= in its unit file
batch.service    a ceiling in a file of /etc/sutro/policy.d, Weight= by `sutroctl policy set`
job.service      IOWeight= by `systemctl set-property`
foreign.service  IOReadBandwidthMax= and IOWeight=, with which Sutro has nothing to do
vda, vdb         the disks of the root volume, for sutro by [Leaves] Use=
vdc              the scheduler of a rule of udev
"""

import os
from pathlib import Path

from rig import bus
from rig.shell import run
from rig.unit import fio

from boot import files, journal

VOLUME, ROOT = "/dev/lab/data", "/dev/lab/root"
LEAVES, OTHER = ("vda", "vdb"), "vdc"
OTHER_SCHEDULER = "kyber"
FOREIGN_BYTES, FOREIGN_WEIGHT, DB_WEIGHT = 50_000_000, 333, 222
# Less than the floor, so it has all that it requests.
READER = fio(VOLUME, "read", "64k", rate_iops=4)
# Values at the beginning.
VALUES = {"floor": 1_000_000, "ceiling": 20_000_000, "policy": 400, "weight": 500}


def unit(name: str, command: str, *lines: str) -> tuple[str, str]:
    """Path and text of a unit file that is started at boot."""
    text = [
        "[Unit]",
        f"Description=Test {name}",
        "[Service]",
        "KillSignal=SIGKILL",
        f"ExecStart=/bin/sh -c '{command}'",
        *lines,
        "[Install]",
        "WantedBy=multi-user.target",
    ]
    return f"/etc/systemd/system/{name}.service", "\n".join(text) + "\n"


# Files of the administrator, which nothing changes.
FILES = dict(
    [
        ("/etc/sutro/sutrod.conf.d/local.conf", f"[Leaves]\nUse={ROOT}\n"),
        (
            "/etc/udev/rules.d/61-local.rules",
            f'KERNEL=="{OTHER}", SUBSYSTEM=="block", ACTION=="add|change", '
            f'ATTR{{queue/scheduler}}="{OTHER_SCHEDULER}"\n',
        ),
        unit("db", READER, f"IOWeight={DB_WEIGHT}"),
        unit("batch", "exec sleep infinity", "IOAccounting=yes"),
        unit("job", "exec sleep infinity", "IOAccounting=yes"),
        unit(
            "foreign",
            "exec sleep infinity",
            f"IOWeight={FOREIGN_WEIGHT}",
            f"IOReadBandwidthMax={VOLUME} {FOREIGN_BYTES}",
        ),
    ]
)  # fmt: skip


def write(path: Path | str, text: str) -> None:
    """Replace a file as a careful editor does: it is whole and on the disk when this returns."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.new")
    with open(new, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    new.rename(path)
    folder = os.open(path.parent, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)


def set_floor(value: int) -> None:
    """The floor of db, which lasts."""
    bus.set_policy("db.service", "persistent", ReadBandwidthMin=f"{VOLUME} {value}")


def set_policy(value: int) -> None:
    """The weight of batch, which lasts."""
    bus.set_policy("batch.service", "persistent", Weight=str(value))


def set_ceiling(value: int) -> None:
    """The ceiling of batch, in a file of the administrator."""
    text = f"[Match]\nUnit=batch.service\n[X-Sutro]\nReadBandwidthMax={VOLUME} {value}\n"
    write(files.POLICY, text)
    bus.call("Reload")


def set_weight(value: int) -> None:
    """The weight of job, which lasts as far as systemd lets it."""
    run("systemctl", "set-property", "job.service", f"IOWeight={value}")


SETTERS = {
    "floor": set_floor,
    "policy": set_policy,
    "ceiling": set_ceiling,
    "weight": set_weight,
}


def main() -> None:
    """Configure a machine that has only the packages, by the commands of the guide."""
    for path, text in FILES.items():
        write(path, text)
    run("systemctl", "daemon-reload")
    run(
        "systemctl", "enable", "--now", *(f"{n}.service" for n in ("db", "batch", "job", "foreign"))
    )
    run("udevadm", "control", "--reload")
    run("udevadm", "trigger", "--action=change", f"--sysname-match={OTHER}", "--settle")
    run("sutroctl", "use", ROOT)
    run("sutroctl", "policy", "set", "db.service", f"ReadBandwidthMin={VOLUME} {VALUES['floor']}")
    for setting in ("policy", "ceiling", "weight"):
        SETTERS[setting](VALUES[setting])
    journal.begin(VALUES)
    journal.sync()


if __name__ == "__main__":
    main()
