# SPDX-License-Identifier: LGPL-2.1-or-later
"""The first guarantee of a new user: the commands of README.md, as they are written there."""

import re
import shlex
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import MakeDisk
from rig import bus, scheduler
from rig.sampler import Sampler
from rig.shell import run, run_again, wait_for
from rig.stack import devno
from rig.unit import Unit, fio

README = Path(__file__).resolve().parents[2] / "README.md"
COMMANDS = 3
WITHIN_S = 60.0
# README.md names a volume, a unit and a floor.
VOLUME, UNIT, FLOOR_MBPS = "/dev/vg/db", "db.service", 200
# Of each of two disks: the floor is 0.65 of both.
KBPS = 150000


def commands() -> list[list[str]]:
    """The commands below the heading. The tests run as root, without sudo."""
    section = README.read_text().partition("\n## First guarantee\n")[2].partition("\n## ")[0]
    lines = re.findall(r"^    (?:sudo )?(.+)$", section, re.M)
    return [shlex.split(line, comments=True) for line in lines]


class Database(Unit):
    """A unit with the name in README.md."""

    def __init__(self, command: str):
        super().__init__("db", command, 100)
        self.unit = UNIT


@pytest.fixture
def database(disk: MakeDisk, units: Callable[..., Unit]) -> Iterator[Sampler]:
    """The unit reads the volume beside two of ten times its weight; sutrod runs."""
    disks = [disk("ssd", f"ssd{n}", bus_kbps=KBPS) for n in range(2)]
    nodes = [one.node for one in disks]
    read = {"rw": "randread", "bs": "256k", "iodepth": 16}
    db = Database(fio(VOLUME, seed=1, **read))
    run("systemctl", "start", "sutrod.service")
    run_again("vgcreate", "--yes", "--quiet", "vg", *nodes)
    try:
        run("lvcreate", "--yes", "--quiet", "--stripes=2", "--extents=100%FREE", "--name=db", "vg")
        db.start()
        for n in range(2):
            units(f"big{n}", fio(VOLUME, seed=n + 2, **read), weight=1000)
        with Sampler(disks, [db], devno(VOLUME)) as watch:
            yield watch
    finally:
        bus.call("ResetPolicy", "ss", UNIT, "persistent")
        db.stop()
        run("systemctl", "stop", "rig-big0.service", "rig-big1.service")
        bus.release()
        run_again("vgremove", "--quiet", "--force", "--yes", "vg")
        run("pvremove", "--quiet", "--force", "--yes", *nodes)
        run("systemctl", "stop", "sutrod.service")


def test_first_guarantee(database: Sampler) -> None:
    """Three commands, and within a minute the last one reports that the floor holds."""
    found = commands()
    assert len(found) == COMMANDS, found
    time.sleep(2)
    began_s = time.monotonic()
    assert 0 < database.mbps("db", began_s - 1, began_s) < 0.5 * FLOOR_MBPS
    *settings, explain = found
    for words in settings:
        run(*words)
    assert [scheduler.current(f"ssd{n}") for n in range(2)] == ["sutro", "sutro"]
    held = rf"ReadBandwidthMin={VOLUME} +{FLOOR_MBPS}M +held "
    wait_for(lambda: re.search(held, run(*explain)), shlex.join(explain), WITHIN_S, pause_s=1.0)
    assert time.monotonic() - began_s < WITHIN_S
    # It is true.
    now_s = time.monotonic()
    time.sleep(2)
    assert database.mbps("db", now_s, now_s + 2) > 0.95 * FLOOR_MBPS
    # The command reports it, too, when a floor cannot hold.
    run("sutroctl", "policy", "set", UNIT, f"ReadBandwidthMin={VOLUME} 900M")
    broken = rf"ReadBandwidthMin={VOLUME} +900M +infeasible .*\n  because "
    wait_for(lambda: re.search(broken, run(*explain)), "infeasible", WITHIN_S, pause_s=1.0)
