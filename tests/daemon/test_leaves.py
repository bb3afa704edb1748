# SPDX-License-Identifier: LGPL-2.1-or-later
"""Leaves: switching their schedulers by the bus and by sutrod.conf, and what is remembered."""

import shutil
import signal
from typing import Any

import dbus
import pytest
from fakemachine import TOP, Machine, Sutrod, Systemd

CONF = "/etc/sutro/sutrod.conf"
EVERY = dbus.Array([], signature="s")
NOT_THERE = (
    '/dev/sdd: the kernel has no scheduler "sutro". Install the package sutro-dkms, and see '
    '"dkms status".'
)
USE = "absolute paths or globs of devices, separated by spaces"
SECONDS = "seconds, 1 to 3600"
KEYS = "[Leaves] Use=, [Daemon] ResyncWeight=, [Daemon] ReconcileSec="


def managed(sutrod: Sutrod) -> list[str]:
    """The names of the leaves that the daemon has switched."""
    return [str(node).removeprefix("/dev/") for node in sutrod.property("ManagedLeaves")]


def change(sutrod: Sutrod, method: str, *nodes: str) -> list[tuple[Any, ...]]:
    """Use or release leaves; name, scheduler, the one before and "changed" of each."""
    results = sutrod.call(f"{method}Devices", list(nodes) or EVERY)
    assert not [r["error"] for r in results if r["error"]]
    return [
        (r["leaf"].removeprefix("/dev/"), r["scheduler"], r["previous"], bool(r["changed"]))
        for r in results
    ]


def test_use_and_release(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    machine.set_scheduler("sda", "none")
    machine.set_scheduler("sdb", "mq-deadline")
    a = systemd.start("a.service", 200)
    sutrod.start()
    assert machine.weights(a) == ["default 100"]
    assert change(sutrod, "Use", "/dev/mapper/vg-db", "/dev/sda") == [
        ("sda", "sutro", "none", True),
        ("sdb", "sutro", "mq-deadline", True),
    ]
    sutrod.until(lambda: machine.weights(a) == ["default 200"])
    assert managed(sutrod) == ["sda", "sdb"]
    assert change(sutrod, "Use", "/dev/sdb") == [("sdb", "sutro", "sutro", False)]
    assert machine.at("/run/sutro/leaves/sdb").read_text() == "mq-deadline 1 used\n"
    # A restart and a crash remember the former schedulers, and a dry run changes none.
    sutrod.stop()
    assert machine.scheduler("sda") == "sutro"
    sutrod.start("--dry-run")
    assert change(sutrod, "Release", "/dev/sda") == [("sda", "sutro", "sutro", False)]
    sutrod.stop(signal.SIGKILL)
    sutrod.start()
    assert managed(sutrod) == ["sda", "sdb"]
    assert change(sutrod, "Release", "/dev/sdc") == [("sdc", "bfq", "bfq", False)]
    assert change(sutrod, "Release") == [
        ("sda", "none", "sutro", True),
        ("sdb", "mq-deadline", "sutro", True),
    ]
    assert (machine.scheduler("sda"), machine.scheduler("sdb")) == ("none", "mq-deadline")
    assert managed(sutrod) == change(sutrod, "Release") == []


def test_leaf_with_the_scheduler_is_released_to_none(sutrod: Sutrod) -> None:
    """A leaf is not managed before UseDevices."""
    sutrod.start()
    assert managed(sutrod) == []
    assert change(sutrod, "Use", "/dev/sda") == [("sda", "sutro", "sutro", False)]
    assert managed(sutrod) == ["sda"]
    assert change(sutrod, "Release", "/dev/sda") == [("sda", "none", "sutro", True)]


def test_another_disk_of_the_same_name_is_not_managed(machine: Machine, sutrod: Sutrod) -> None:
    sutrod.start()
    assert change(sutrod, "Use", "/dev/sdd") == [("sdd", "sutro", "none", True)]
    for diskseq, names, scheduler in ((8, [], "sutro"), (1, ["sdd"], "none")):
        machine.write("/sys/class/block/sdd/diskseq", f"{diskseq}\n")
        sutrod.call("Reload")
        assert managed(sutrod) == names
        assert change(sutrod, "Release", "/dev/sdd")[0][1] == scheduler


def test_disk_that_is_gone_needs_no_release(machine: Machine, sutrod: Sutrod) -> None:
    """The daemon has not seen yet that it was removed."""
    sutrod.start()
    change(sutrod, "Use", "/dev/sda", "/dev/sdb")
    shutil.rmtree(machine.at("/sys/class/block/sda/queue"))
    assert change(sutrod, "Release", "/dev/sda", "/dev/sdb")[1][1] != "sutro"
    assert not machine.at("/run/sutro/leaves/sda").exists()


def test_scheduler_that_is_not_there(machine: Machine, sutrod: Sutrod) -> None:
    machine.write("/sys/class/block/sdd/queue/scheduler", "[none] bfq\n")
    machine.write(CONF, "[Leaves]\nUse=/dev/sdd\n")
    sutrod.start()
    assert sutrod.error("UseDevices", ["/dev/sdd"]) == ("NotSupported", NOT_THERE)
    # One of two works: the other's error is in its result.
    results = sutrod.call("UseDevices", ["/dev/sdc", "/dev/sdd"])
    assert [r["error"] for r in results] == ["", NOT_THERE]
    assert managed(sutrod) == ["sdc"]
    # When the module is there, the next change of devices switches the leaf.
    machine.set_scheduler("sdd", "none")
    sutrod.call("Reload")
    assert managed(sutrod) == ["sdc", "sdd"]


@pytest.mark.parametrize(
    ("fault", "reason"), [("ignore", "Input/"), ("fail", "Input/output error")]
)
def test_switch_that_fails(machine: Machine, sutrod: Sutrod, fault: str, reason: str) -> None:
    machine.fault("sdd/queue/scheduler", fault)
    sutrod.start()
    _, message = sutrod.error("UseDevices", ["/dev/sdd"])
    assert message.startswith(f'/dev/sdd: cannot switch to the scheduler "sutro": {reason}')
    assert managed(sutrod) == []


def test_configuration(machine: Machine, sutrod: Sutrod) -> None:
    machine.mount("/srv", "8:48", "ext4", "/dev/sdd")
    machine.write(CONF, "[Leaves]\nUse=/srv /dev/nothing /dev/mapper/v*\n")
    sutrod.start("--dry-run")
    assert managed(sutrod) == []
    sutrod.stop()
    sutrod.start()
    assert machine.scheduler("sdd") == "sutro" and managed(sutrod) == ["sda", "sdb", "sdd"]
    machine.write(CONF, "[Leaves]\nUse=/dev/sd[cd]\n")
    sutrod.call("Reload")
    assert managed(sutrod) == ["sda", "sdb", "sdc", "sdd"]
    # The configuration takes neither a released leaf again nor one that was switched by hand.
    change(sutrod, "Release", "/dev/sdc")
    machine.set_scheduler("sdd", "mq-deadline")
    sutrod.call("Reload")
    assert (machine.scheduler("sdc"), machine.scheduler("sdd")) == ("bfq", "mq-deadline")
    assert managed(sutrod) == ["sda", "sdb"]
    assert change(sutrod, "Use", "/dev/sdc") == [("sdc", "sutro", "bfq", True)]


def test_device_without_an_event(machine: Machine, sutrod: Sutrod) -> None:
    """An event that was lost: the periodic comparison finds the disk, and that it went."""
    sutrod.start()
    machine.disk("sdz", "65:144")
    sutrod.elapse(61)
    assert "sdz" in {d["name"] for d in sutrod.call("ListDevices")}
    machine.unplug("sdz", "65:144")
    sutrod.elapse(61)
    assert "sdz" not in {d["name"] for d in sutrod.call("ListDevices")}


@pytest.mark.parametrize("version", [None, "0.0.9"])
def test_module_of_another_version(machine: Machine, sutrod: Sutrod, version: str | None) -> None:
    """It is reported once, and everything that the module has is used."""
    machine.at("/sys/module/sutro").mkdir(parents=True)
    if version:
        machine.write("/sys/module/sutro/version", version + "\n")
    sutrod.start()
    sutrod.call("Reload")
    sutrod.settle()
    words = f"The kernel module sutro in memory has version {version or '0'}, sutrod has "
    assert sutrod.log().count(words) == 1


def test_module_of_this_version(machine: Machine, sutrod: Sutrod) -> None:
    source = (TOP / "kernel/sutro-iosched.c").read_text()
    version = source.split('MODULE_VERSION("')[1].split('"')[0]
    machine.write("/sys/module/sutro/version", version + "\n")
    sutrod.start()
    assert sutrod.property("Version") == version
    assert "The kernel module sutro" not in sutrod.log()


def test_hangup_reloads(machine: Machine, sutrod: Sutrod) -> None:
    sutrod.start()
    machine.write(CONF, "[Leaves]\nUse=/dev/sdd\n")
    assert sutrod.process
    sutrod.process.send_signal(signal.SIGHUP)
    sutrod.until(lambda: machine.scheduler("sdd") == "sutro")


def test_order_of_configuration_files(machine: Machine, sutrod: Sutrod) -> None:
    """Drop-ins follow the file, by name; one in /etc replaces one of the vendor."""
    sutrod.start()

    def reads(file: str, text: str, use: str, seconds: int = 60) -> None:
        machine.write(file, text)
        sutrod.call("Reload")
        assert f"configuration: ReconcileSec={seconds} Use={use}\n" in sutrod.call("Dump")

    reads(CONF, "# nothing\n[Leaves]\nUse=/a  /b/*\nUse=/c\n; more\n", "/a /b/* /c")
    reads(CONF, "[Daemon]\nReconcileSec=5\n[Leaves]\nUse=/a\nUse=\nUse=/m\n", "/m", 5)
    reads(CONF, "[Leaves]\nUse=/m\n", "/m")
    folder = "sutro/sutrod.conf.d"
    reads(f"/usr/lib/{folder}/20-b.conf", "[Leaves]\nUse=/vb\n", "/m /vb")
    reads(f"/usr/lib/{folder}/10-a.conf", "[Leaves]\nUse=/va\n", "/m /va /vb")
    reads(f"/run/{folder}/30-c.conf", "[Leaves]\nUse=/rc\n", "/m /va /vb /rc")
    reads(f"/etc/{folder}/25-x.conf", "[Leaves]\nUse=/ex\n", "/m /va /vb /ex /rc")
    reads(f"/etc/{folder}/README", "not read\n", "/m /va /vb /ex /rc")
    reads(f"/etc/{folder}/10-a.conf", "[Leaves]\nUse=\nUse=/ea\n", "/ea /vb /ex /rc")


@pytest.mark.parametrize(
    ("text", "mistakes"),
    [
        ("[Leaves]\nUse=/dev/sda\nUse=sdb\n", [(3, "[Leaves] Use=sdb", USE)]),
        (
            "[Daemon]\n" + "".join(f"ReconcileSec={s}\n" for s in ("0", "soon", "-1", "3601")),
            [
                (line, f"[Daemon] ReconcileSec={s}", SECONDS)
                for line, s in enumerate(("0", "soon", "-1", "3601"), 2)
            ],
        ),
        (
            "[Leaves]\nUser=/dev/sda\n[Leafs]\nUse=/dev/sda\n",
            [(2, "[Leaves] User=/dev/sda", KEYS), (4, "[Leafs] Use=/dev/sda", KEYS)],
        ),
        (
            "[Leaves]\nUse=/dev/sda\nnonsense\n",
            [(3, "...", "a [Section], Key=value, or a comment that begins with # or ;")],
        ),
        ("[Leaves]\nUse=/" + 400 * "x" + "\nUse=/dev/sda\n", [(2, "", "the line is too long; ")]),
    ],
    ids=["path", "seconds", "keys", "line", "length"],
)
def test_mistakes_in_configuration_files(
    machine: Machine, sutrod: Sutrod, text: str, mistakes: list[tuple[int, str, str]]
) -> None:
    """Each mistake is reported, its assignment is ignored, and all others hold."""
    machine.write(CONF, text)
    for number in (1, 2):
        mistake = f"[Leaves]\nUse=a\nUse=/dev/{number}\nUse=/dev/3 b\n"
        machine.write(f"/etc/sutro/sutrod.conf.d/{number}.conf", mistake)
    sutrod.start()
    use = "/dev/sda " if "\nUse=/dev/sda\n" in text.replace("[Leafs]\nUse", "") else ""
    assert f"ReconcileSec=60 Use={use}/dev/1 /dev/2\n" in sutrod.call("Dump")
    lines = [line for line in sutrod.log().splitlines() if ".conf" in line]
    wanted = [(f"{CONF}:{line}: ", words, f'": {allowed}') for line, words, allowed in mistakes]
    wanted += [
        (f"{CONF}.d/{n}.conf:{line}: ", f"[Leaves] Use={words}", f'": {USE}')
        for n in (1, 2)
        for line, words in ((2, "a"), (4, "/dev/3 b"))
    ]
    assert len(lines) == len(wanted)
    for found, parts in zip(lines, wanted, strict=True):
        assert all(part in found for part in parts), found
