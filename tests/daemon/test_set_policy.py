# SPDX-License-Identifier: LGPL-2.1-or-later
"""SetPolicy and ResetPolicy: the files that they write, and the calls that they refuse."""

import os

import dbus
import pytest
from clients import calling
from fakemachine import Bus, Machine, Sutrod, Systemd, wait_until
from test_policies import CONTROL, CONTROL_RUN, UNIT, errors, pairs, set_two

PERCENT = "a path and 1% to 100% of the capacity of the device, with at most two decimals"


def test_set(machine: Machine, sutrod: Sutrod, systemd: Systemd) -> None:
    """Files that all can read, all or nothing; a file without statements is removed."""
    systemd.start(UNIT)
    file, control = f"{CONTROL}{UNIT}.policy", machine.at(CONTROL)
    machine.at("/etc/sutro").rmdir()
    mask = os.umask(0o077)
    sutrod.start()
    os.umask(mask)
    for value in ("/a 1", "'/b c' 2K", "/a/ 3"):
        set_two(sutrod, "persistent", "ReadIOPSMin", value)
    text = '[Match]\nUnit=db.service\n\n[X-Sutro]\nReadIOPSMin="/b c" 2K\nImportance=7\n'
    assert text + "ReadIOPSMin=/a 3\n" in machine.at(file).read_text()
    assert machine.at(file).stat().st_mode & 0o7777 == 0o644
    assert [d.stat().st_mode & 0o7777 for d in (control, control.parent)] == [0o755, 0o755]
    set_two(sutrod, "runtime", "ReadIOPSMin", "/a 4")

    def values() -> list[str]:
        return [f"{e['key']}={e['value']}" for e in sutrod.call("GetPolicy", UNIT) if e["in_force"]]

    assert values() == ['ReadIOPSMin="/b c" 2K', "Importance=7", "ReadIOPSMin=/a 4"]
    sutrod.stop()
    sutrod.start()
    sutrod.call("ResetPolicy", UNIT, "runtime")
    kept = ['ReadIOPSMin="/b c" 2K', "Importance=7", "ReadIOPSMin=/a 3"]
    for key, value, message in (
        (
            "ReadIOPSMin",
            "a 1",
            'db.service: "ReadIOPSMin=a 1": first an absolute path without ".." and control '
            "characters, in quotes if it has blanks, at most 4095 bytes, or the word any: each "
            "volume that the unit uses",
        ),
        (
            "Wait",
            "1",
            'db.service: "Wait": one of ReadBandwidthMin, WriteBandwidthMin, ReadIOPSMin, '
            "WriteIOPSMin, ReadBandwidthMax, WriteBandwidthMax, ReadIOPSMax, WriteIOPSMax, "
            "LatencyTarget, WriteLatencyTarget, FsyncLatencyTarget, Weight, Class, Importance",
        ),
    ):
        assignments = pairs(("Importance", "7"), (key, value))
        assert sutrod.error("SetPolicy", UNIT, assignments, "runtime") == ("BadPolicy", message)
        assert values() == kept
    for percent in ("0%", "0.99%", "100.01%", "101%", "-5%", "30.5.1%", "1.234%", "30 %", ".5%"):
        assignments = pairs(("Importance", "7"), ("WriteIOPSMin", f"/a {percent}"))
        _, message = sutrod.error("SetPolicy", UNIT, assignments, "runtime")
        assert message.startswith(f'db.service: "WriteIOPSMin=/a {percent}": {PERCENT}')
        assert values() == kept
    for percent, kept_as in (
        ("1%", "1%"),
        ("100%", "100%"),
        ("012.50%", "12.5%"),
        ("7.05%", "7.05%"),
    ):
        set_two(sutrod, "runtime", "WriteIOPSMin", f"/a {percent}")
        assert f"WriteIOPSMin=/a {kept_as}" in values()
    sutrod.call("ResetPolicy", UNIT, "runtime")
    for _ in range(2):
        assignments = pairs(("ReadIOPSMin", ""), ("Importance", ""))
        sutrod.call("SetPolicy", UNIT, assignments, "persistent")
        assert values() == []
        assert not machine.at(file).exists()


def test_disk_of_the_policies_does_not_answer(
    bus: Bus, machine: Machine, systemd: Systemd, sutrod: Sutrod
) -> None:
    """Weights are written meanwhile, the caller gets an error, and settings in force stay."""
    a = systemd.start("a.service", 200)
    systemd.start(UNIT)
    sutrod.start()
    sutrod.call("SetPolicy", UNIT, [("Weight", "300")], "persistent")
    machine.fault("policy.control/.new", "hang")
    change = (UNIT, [("Weight", "400")], "persistent")
    with calling(bus, "SetPolicy", *change) as done:
        wait_until(machine.at(CONTROL + ".new").exists)
        systemd.change("a.service", 300)
        sutrod.until(lambda: machine.weights(a) == ["default 300"], 1)
        assert not done.done()
        sutrod.elapse(10)
        with pytest.raises(dbus.DBusException, match="policy was not on the disk within 10 s"):
            done.result()
    assert [p["value"] for p in sutrod.call("GetPolicy", UNIT)] == ["300"]
    # The process has ended, and its lock with it.
    machine.write("/faults", "")
    sutrod.call("SetPolicy", *change)
    assert [p["value"] for p in sutrod.call("GetPolicy", UNIT)] == ["400"]


def test_file_that_would_be_too_large(machine: Machine, sutrod: Sutrod) -> None:
    """It could not be read again, so it is refused, and the file stays as it was."""
    sutrod.start()
    file = machine.at(f"{CONTROL_RUN}{UNIT}.policy")
    message = ""
    written = 0
    for number in range(17):
        names = (f"/{number:03}{i:03}/" + 2043 * "a/" + "b 1999999999" for i in range(15))
        assignments = pairs(*(("ReadIOPSMin", name) for name in names))
        try:
            sutrod.call("SetPolicy", UNIT, assignments, "runtime")
        except dbus.DBusException as error:
            message = str(error.get_dbus_message())
            break
        written = file.stat().st_size
    assert "would have more than 1024 KiB" in message
    assert file.stat().st_size == written < 1 << 20
    sutrod.call("ReloadPolicies")
    assert errors(machine, sutrod) == []


NAMES = "db.service -.slice a.scope a@b.service a@b@c.service dev-a\\x2db.swap a:b_c.mount"
NO_NAMES = (
    "|db|db.timer|.service|../a.service|../../x.service|a/b.service|a b.service|a*.service|"
    "@.service|a@.service|@b.service|..service|a\n.service|ä.service"
)


def test_names_of_units(sutrod: Sutrod) -> None:
    """A name has at most 255 bytes, and 248 if a control file is named after the unit."""
    sutrod.start()
    for name in (*NAMES.split(), 249 * "a" + ".slice"):
        assert sutrod.call("GetPolicy", name) == []
    assignments = pairs(("Weight", "7"))
    for name in (*NO_NAMES.split("|"), 250 * "a" + ".slice"):
        for arguments in (("SetPolicy", name, assignments), ("ResetPolicy", name)):
            assert sutrod.error(*arguments, "runtime")[0] == "BadPolicy"
        assert sutrod.error("GetPolicy", name)[0] == "BadPolicy"
    set_two(sutrod, "runtime", "Weight", "7", 242 * "a" + ".scope")
    assert sutrod.error("SetPolicy", 243 * "a" + ".scope", assignments, "runtime")[0] == "BadPolicy"
    assert "forever" in sutrod.error("SetPolicy", UNIT, assignments, "forever")[1]


def test_scope_has_no_persistent_policy(machine: Machine, sutrod: Sutrod) -> None:
    """The next session-3.scope is that of another user."""
    sutrod.start()
    assignments = pairs(("Weight", "7"))
    name, text = sutrod.error("SetPolicy", "session-3.scope", assignments, "persistent")
    assert (name, text.startswith("session-3.scope is a scope, which ends")) == ("BadPolicy", True)
    assert not list(machine.at("/etc/sutro").glob("policy.control/session*"))
    for unit, lifetime in (("session-3.scope", "runtime"), ("init.scope", "persistent")):
        sutrod.call("SetPolicy", unit, assignments, lifetime)
        assert len(sutrod.call("GetPolicy", unit)) == 1


def test_links_are_replaced_and_not_followed(machine: Machine, sutrod: Sutrod) -> None:
    sutrod.start()
    machine.write("/outside", "untouched\n")
    machine.link(f"{CONTROL_RUN}.new", str(machine.at("/outside")))
    machine.link(f"{CONTROL_RUN}{UNIT}.policy", "/dev/null")
    set_two(sutrod, "runtime", "Weight", "7")
    assert "Weight=7" in machine.at(f"{CONTROL_RUN}{UNIT}.policy").read_text()
    assert not machine.at(f"{CONTROL_RUN}{UNIT}.policy").is_symlink()
    assert machine.at("/outside").read_text() == "untouched\n"
    machine.at("/elsewhere").mkdir()
    machine.link("/etc/sutro/policy.control", "../../elsewhere")
    assert (
        "Not a directory"
        in sutrod.error("SetPolicy", UNIT, pairs(("Weight", "7")), "persistent")[1]
    )
    assert not list(machine.at("/elsewhere").iterdir())


def test_full_disk(machine: Machine, sutrod: Sutrod) -> None:
    """It is reported as one, not as a limit of the daemon, and the former setting stays."""
    sutrod.start()
    set_two(sutrod, "persistent", "Weight", "7")
    machine.fault("policy.control/.new", "full")
    name, text = sutrod.error("SetPolicy", UNIT, pairs(("Weight", "8")), "persistent")
    reason = "cannot keep the policy: No space left on device."
    assert (name, text) == ("org.freedesktop.DBus.Error.Failed", f"{UNIT}: {reason}")
    assert "Weight=7" in machine.at(f"{CONTROL}{UNIT}.policy").read_text()
    assert {e["value"] for e in sutrod.call("GetPolicy", UNIT)} == {"7"}


def test_most_statements_of_a_client(sutrod: Sutrod, systemd: Systemd) -> None:
    systemd.start(UNIT)
    sutrod.start()
    for first in range(0, 255, 15):
        more = [("ReadIOPSMin", f"/{n} 1") for n in range(first, first + 15)]
        sutrod.call("SetPolicy", UNIT, pairs(*more), "client")
    _, message = sutrod.error("SetPolicy", UNIT, pairs(("Weight", "1")), "client")
    assert message == 'db.service: "Weight=1": too many, at most 255 for one unit'
    assert len(sutrod.call("GetPolicy", UNIT)) == 255
    sutrod.call("ResetPolicy", UNIT, "client")
