# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measured costs of requests survive a boot and a switch of the scheduler, disk by disk."""

import os
from contextlib import suppress

import pytest
from fakemachine import Machine, Sutrod, restore, wait_until

FOLDER = "/var/lib/sutro/costs"
NONE = "version 1\n"
COSTS = "version 1\nread 4096 29629\nwrite 262144 1896288\n"
OTHER = "version 1\nread 4096 5000\n"
DISK = {"device/model": "Fast  SSD/9", "wwid": "eui.0025", "device/firmware_rev": "5B2Q"}
NAME = "Fast__SSD_9_eui.0025"
HOUR_S = 3600
# Less than the limit of the child that saves: the clock of the daemon is faster than a busy host.
CHILD_S = 50
MOST = 256


def attribute(leaf: str) -> str:
    """The file in which the elevator has costs."""
    return f"/sys/devices/virtual/block/{leaf}/queue/iosched/costs"


def have(machine: Machine, leaf: str, costs: str = NONE, **changed: str) -> None:
    """A disk under the elevator; changed: attributes other than those of DISK, "": none."""
    machine.set_scheduler(leaf, "sutro")
    machine.write(attribute(leaf), costs)
    names = {name.rpartition("/")[2]: name for name in DISK}
    for name, text in (DISK | {names[key]: text for key, text in changed.items()}).items():
        file = machine.at(f"/sys/devices/virtual/block/{leaf}/{name}")
        file.unlink(missing_ok=True)
        if text:
            machine.write(str(file.relative_to(machine.root)), text + "  \n")


def costs(machine: Machine, leaf: str) -> str:
    """The costs that the elevator has."""
    return machine.at(attribute(leaf)).read_text()


def files(machine: Machine) -> dict[str, str]:
    """The saved files; sutrod may remove one meanwhile."""
    folder = machine.at(FOLDER)
    found = {}
    for file in folder.iterdir() if folder.exists() else ():
        with suppress(FileNotFoundError):
            found[file.name] = file.read_text()
    return found


def boot(machine: Machine, leaf: str = "sda") -> None:
    """A new elevator has no costs."""
    machine.at(attribute(leaf)).unlink()
    machine.write(attribute(leaf), NONE)


@pytest.fixture
def saved(machine: Machine, sutrod: Sutrod) -> Machine:
    """The costs of sda were saved when the daemon ended, and the machine has booted."""
    have(machine, "sda", COSTS)
    sutrod.start()
    sutrod.stop()
    assert restore(machine) == 0
    assert files(machine)[NAME].endswith(COSTS + "end\n")
    boot(machine)
    return machine


def test_boot(saved: Machine, sutrod: Sutrod) -> None:
    """The next daemon writes the costs to the elevator of the same disk."""
    sutrod.start()
    sutrod.until(lambda: costs(saved, "sda") == COSTS)


def test_other_name(saved: Machine, sutrod: Sutrod) -> None:
    """Names of disks change from boot to boot; the serial decides."""
    have(saved, "sda", wwid="eui.0026")
    have(saved, "sdb")
    sutrod.start()
    sutrod.until(lambda: costs(saved, "sdb") == COSTS)
    assert costs(saved, "sda") == NONE


def test_switch(saved: Machine, sutrod: Sutrod) -> None:
    """A leaf that is switched to the elevator, by hand or by a call, has its costs again."""
    saved.set_scheduler("sda", "none")
    sutrod.start()
    sutrod.elapse(1)
    assert costs(saved, "sda") == NONE
    sutrod.call("UseDevices", ["/dev/sda"])
    sutrod.until(lambda: costs(saved, "sda") == COSTS)
    saved.set_scheduler("sda", "none")
    sutrod.settle()
    boot(saved)
    saved.set_scheduler("sda", "sutro")
    sutrod.until(lambda: costs(saved, "sda") == COSTS)


@pytest.fixture
def used(machine: Machine, sutrod: Sutrod) -> Machine:
    """sda was switched to the elevator, which has measured costs since the last save."""
    have(machine, "sda")
    machine.set_scheduler("sda", "none")
    sutrod.start()
    sutrod.call("UseDevices", ["/dev/sda"])
    sutrod.elapse(HOUR_S)
    machine.write(attribute("sda"), COSTS)
    return machine


def test_release(used: Machine, sutrod: Sutrod) -> None:
    """The costs are saved before the kernel frees them with the elevator."""
    assert files(used) == {}
    sutrod.call("ReleaseDevices", ["/dev/sda"])
    assert used.scheduler("sda") == "none"
    wait_until(lambda: NAME in files(used))
    assert files(used)[NAME].endswith(COSTS + "end\n")


def test_release_beside_a_hanging_file_system(used: Machine, sutrod: Sutrod) -> None:
    """The disk is released at once, and the costs are lost."""
    used.fault("costs/.new", "hang")
    (result,) = sutrod.call("ReleaseDevices", ["/dev/sda"])
    assert (result["changed"], result["error"]) == (True, "")
    assert used.scheduler("sda") == "none"


def test_measured_costs_stay(saved: Machine, sutrod: Sutrod) -> None:
    """An elevator that has measured is not disturbed, and its costs replace the saved ones."""
    have(saved, "sda", OTHER)
    sutrod.start()
    sutrod.until(lambda: OTHER + "end\n" in files(saved)[NAME], 2 * HOUR_S)
    assert costs(saved, "sda") == OTHER
    assert files(saved).keys() == {NAME}


def test_saved_when_changed(saved: Machine, sutrod: Sutrod) -> None:
    """Each hour, costs that have changed are saved; a file with the same costs is not written."""
    sutrod.start()
    sutrod.until(lambda: costs(saved, "sda") == COSTS)
    file = saved.at(f"{FOLDER}/{NAME}")
    before = file.stat()
    sutrod.elapse(2 * HOUR_S)
    assert file.stat().st_ino == before.st_ino
    have(saved, "sda", OTHER)
    workers = len(sutrod.children().split())
    for _ in range(HOUR_S // CHILD_S + 1):
        sutrod.elapse(CHILD_S)
        wait_until(lambda: len(sutrod.children().split()) <= workers)
    sutrod.until(lambda: file.read_text().endswith(OTHER + "end\n"))


def test_forgotten_costs_are_kept(saved: Machine, sutrod: Sutrod) -> None:
    """An elevator without costs does not replace a file."""
    before = files(saved)
    saved.at(attribute("sda")).unlink()
    sutrod.start()
    sutrod.elapse(2 * HOUR_S)
    saved.write(attribute("sda"), NONE)
    sutrod.stop()
    assert restore(saved) == 0
    assert files(saved) == before


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("29629", "0"), "the module refuses its costs"),
        (("end\n", ""), "it is damaged"),
        (("end\n", "en"), "it is damaged"),
        (("model=Fast", "model=Slow"), "it is of another disk, firmware or size"),
        (("serial=eui", "serial=naa"), "it is of another disk, firmware or size"),
        (("firmware=5B", "firmware=6B"), "it is of another disk, firmware or size"),
        (("bytes=1", "bytes=2"), "it is of another disk, firmware or size"),
        (("rotational=0", "rotational=1"), "it is of another disk, firmware or size"),
        (("version 1", "version 2"), "the module of that time had another version of costs"),
        (("version 1", "version 10"), "the module of that time had another version of costs"),
        (("end\n", "read 4096 1\n" * 1000 + "end\n"), "it is damaged"),
    ],
)
def test_file_of_no_use(
    saved: Machine, sutrod: Sutrod, change: tuple[str, str], reason: str
) -> None:
    """A file that does not fit is logged once, and ignored; the elevator checks its own lines."""
    text = files(saved)[NAME]
    assert change[0] in text
    saved.at(f"{FOLDER}/{NAME}").write_text(text.replace(*change))
    sutrod.start()
    line = (
        f"/dev/sda: ignoring {saved.root}{FOLDER}/{NAME}: {reason}. Costs are measured again, "
        "and replace the file within an hour."
    )
    sutrod.until(lambda: line in sutrod.log())
    sutrod.elapse(60)
    assert sutrod.log().count(line) == 1
    assert costs(saved, "sda") == NONE


def test_write_that_fails(saved: Machine, sutrod: Sutrod) -> None:
    """The message has the error and the consequence."""
    saved.fault("iosched/costs", "fail")
    sutrod.start()
    line = f"{saved.root}{FOLDER}/{NAME}: Input/output error. They are measured again."
    sutrod.until(lambda: line in sutrod.log())


def test_restore_that_hangs(saved: Machine, sutrod: Sutrod) -> None:
    """The message has the consequence: the elevator measures, and nothing is tried again."""
    file = saved.at(f"{FOLDER}/{NAME}")
    file.unlink()
    os.mkfifo(file)
    sutrod.start()
    sutrod.until(lambda: "Cannot restore costs of requests from" in sutrod.log(), 120)
    (line,) = [line for line in sutrod.log().splitlines() if "Cannot restore" in line]
    assert line.endswith("They are measured again. Is a disk busy or dead?")
    sutrod.elapse(2)
    assert "tries again" not in sutrod.log()


@pytest.mark.parametrize("attributes", [{"wwid": ""}, {"wwid": " "}])
def test_no_serial(machine: Machine, sutrod: Sutrod, attributes: dict[str, str]) -> None:
    """Another disk could take the place of one without a serial."""
    have(machine, "sda", COSTS, **attributes)
    sutrod.start()
    sutrod.elapse(2 * HOUR_S)
    sutrod.stop()
    assert restore(machine) == 0
    assert files(machine) == {}


def test_restart(machine: Machine, sutrod: Sutrod) -> None:
    """An elevator without the file, and a dry run, leave everything as it is."""
    machine.set_scheduler("sda", "sutro")
    sutrod.start()
    sutrod.elapse(2 * HOUR_S)
    sutrod.stop()
    have(machine, "sda", COSTS)
    sutrod.start("--dry-run")
    sutrod.elapse(2 * HOUR_S)
    assert files(machine) == {}


def test_number_of_files(saved: Machine, sutrod: Sutrod) -> None:
    """Of more files than are kept, the oldest is removed."""
    for number in range(MOST - 1):
        file = saved.at(f"{FOLDER}/old-{number}")
        file.write_text("")
        os.utime(file, (1000 + number, 1000 + number))
    have(saved, "sdb", OTHER, wwid="eui.0027")
    sutrod.start()
    sutrod.until(lambda: "Fast__SSD_9_eui.0027" in files(saved), 2 * HOUR_S)
    names = files(saved).keys()
    assert len(names) == MOST
    assert "old-0" not in names
    assert {"old-1", NAME} <= names
