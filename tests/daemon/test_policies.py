# SPDX-License-Identifier: LGPL-2.1-or-later
"""Policies of a unit: the files that count, and the statement that is in force."""

import os
import random
from collections.abc import Callable

import dbus
import pytest
from clients import client_of, heard
from fakemachine import Bus, Machine, Sutrod, Systemd, happens

UNIT = "db.service"
X, MATCH = "[X-Sutro]\n", f"[Match]\nUnit={UNIT}\n"
VENDOR, RUN, ETC = (f"/{top}/sutro/policy.d/" for top in ("usr/lib", "run", "etc"))
CONTROL, CONTROL_RUN = (f"/{top}/sutro/policy.control/" for top in ("etc", "run"))
OWN = f"/etc/systemd/system/{UNIT}"

Expect = Callable[[str, str], None]


@pytest.fixture
def expect(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> Expect:
    """Reads all files and compares: "KEY=VALUE SOURCE; ..." in force and overridden.

    The unit has a file and two drop-ins, of which one is missing.
    """
    systemd.start(UNIT, fragment=OWN, dropins=[f"{OWN}.d/{name}.conf" for name in ("10", "gone")])
    sutrod.start()

    def compare(in_force: str, overridden: str) -> None:
        sutrod.call("ReloadPolicies")
        sutrod.settle()
        found: dict[bool, list[str]] = {True: [], False: []}
        for e in sutrod.call("GetPolicy", UNIT):
            source = e["source"].removeprefix(str(machine.root))
            found[bool(e["in_force"])].append(f"{e['key']}={e['value']} {source}")
        assert ("; ".join(found[True]), "; ".join(found[False])) == (in_force, overridden)

    return compare


def pairs(*assignments: tuple[str, str]) -> dbus.Array:
    """The second argument of SetPolicy."""
    return dbus.Array(assignments, signature="(ss)")


def set_two(sutrod: Sutrod, lifetime: str, key: str, value: str, unit: str = UNIT) -> None:
    """SetPolicy of Importance=7 and one more."""
    sutrod.call("SetPolicy", unit, pairs(("Importance", "7"), (key, value)), lifetime)


def errors(machine: Machine, sutrod: Sutrod) -> list[str]:
    """PolicyErrors, without the path of the machine; each was logged once."""
    found = [str(e) for e in sutrod.property("PolicyErrors")]
    assert all(sutrod.log().count(error) == 1 for error in found)
    return sorted(error.removeprefix(str(machine.root)) for error in found)


def mistaken(machine: Machine, sutrod: Sutrod) -> list[tuple[str, bool]]:
    """Each file with a mistake, and whether its last good version is in force."""
    found = sutrod.property("MistakenPolicyFiles")
    return sorted((str(file).removeprefix(str(machine.root)), bool(good)) for file, good in found)


def test_directories(machine: Machine, expect: Expect) -> None:
    """The name of a file is its order; /etc replaces /run, and that the vendor's."""
    expect("", "")
    machine.write(f"{VENDOR}20-b.policy", f"{MATCH}{X}Weight=20\n")
    machine.write(f"{VENDOR}10-a.policy", f"{MATCH}{X}Weight=10\nClass=rt\n")
    machine.write(f"{RUN}30-c.policy", f"[Match]\nUnit=other.slice\n{X}Weight=3\n")
    machine.write(f"{ETC}README", "not read")
    machine.write(f"{ETC}.hidden.policy", "not read")
    weight, hidden = f"Weight=10 {VENDOR}10-a.policy:4", f"Class=rt {VENDOR}10-a.policy:5"
    expect(f"{hidden}; Weight=20 {VENDOR}20-b.policy:4", weight)
    for folder, number in ((RUN, 21), (ETC, 22)):
        machine.write(f"{folder}20-b.policy", f"{MATCH}{X}Weight={number}\n")
        expect(f"{hidden}; Weight={number} {folder}20-b.policy:4", weight)
    machine.at(f"{ETC}20-b.policy").unlink()
    machine.link(f"{ETC}20-b.policy", "/dev/null")
    expect(f"{weight}; {hidden}", "")


def test_dropins(machine: Machine, expect: Expect) -> None:
    """Drop-ins follow their file, are replaced by name, and may reset and match."""
    a = f"{VENDOR}a.policy"
    machine.write(a, f"{MATCH}{X}ReadIOPSMin=/a 1\nReadIOPSMin=/b 2\nWeight=5\n")
    machine.write(f"{a}.d/20.conf", f"{X}ReadIOPSMin=/a 3\n")
    machine.write(f"{RUN}a.policy.d/10.conf", f"{X}ReadIOPSMin=/a 4\n")
    machine.write(f"{ETC}a.policy.d/not-read", "nonsense\n")
    machine.write(f"{ETC}b.policy.d/10.conf", f"{MATCH}{X}Weight=9\n")
    first, second = f"ReadIOPSMin=/a 1 {a}:4", f"ReadIOPSMin=/b 2 {a}:5"
    third = f"ReadIOPSMin=/a 3 {a}.d/20.conf:2"
    expect(
        f"{second}; Weight=5 {a}:6; {third}",
        f"{first}; ReadIOPSMin=/a 4 {RUN}a.policy.d/10.conf:2",
    )
    machine.link(f"{ETC}a.policy.d/10.conf", "/dev/null")
    reset = f"[Match]\nUnit=\nUnit=db*\n{X}ReadIOPSMin=\nWeight=6\n"
    machine.write(f"{ETC}a.policy.d/30.conf", reset)
    expect(f"Weight=6 {ETC}a.policy.d/30.conf:6", f"{first}; {second}; {third}; Weight=5 {a}:6")
    machine.write(f"{ETC}a.policy.d/40.conf", "[Match]\nUnit=\nUnit=x.slice\n")
    expect("", "")
    # Without the file its drop-ins have no effect.
    machine.write(f"{ETC}a.policy.d/40.conf", MATCH)
    machine.link(f"{ETC}a.policy", "/dev/null")
    expect("", "")


def test_order_of_sources(machine: Machine, sutrod: Sutrod, expect: Expect) -> None:
    """Policy files, the unit's files, persistent, runtime, client: the last statement holds."""
    control, control_run = f"{CONTROL}{UNIT}.policy", f"{CONTROL_RUN}{UNIT}.policy"
    machine.write(f"{ETC}a.policy", f"{MATCH}{X}ReadIOPSMin=/a 1\nReadIOPSMax=/a 9\nClass=be\n")
    machine.write(OWN, f"[Service]\nExecStart=/x\n{X}ReadIOPSMin=/a 2\nWeight=2\nImportance=2\n")
    machine.write(f"{OWN}.d/10.conf", f"{X}ReadIOPSMin=/a 3\n")
    machine.write(control, f"{MATCH}{X}ReadIOPSMin=/a 4\nImportance=4\n")
    machine.write(control_run, f"{MATCH}{X}ReadIOPSMin=/a 5\nWeight=\n")
    # The control file of another unit has no effect on this one.
    machine.write(f"{CONTROL}x.service.policy", f"{MATCH}{X}Weight=77\n")
    client = client_of(sutrod.bus, UNIT, ReadIOPSMin="/a 6", ReadIOPSMax="/a infinity")
    name = f"client {client.get_unique_name()} of the bus"
    expect(
        f"Class=be {ETC}a.policy:6; Weight=2 {OWN}:5; Importance=4 {control}:5; "
        f"ReadIOPSMin=/a 6 {name}; ReadIOPSMax=/a infinity {name}",
        f"ReadIOPSMin=/a 2 {OWN}:4; ReadIOPSMin=/a 1 {ETC}a.policy:4; "
        f"ReadIOPSMin=/a 3 {OWN}.d/10.conf:2; Importance=2 {OWN}:6; "
        f"ReadIOPSMin=/a 4 {control}:4; ReadIOPSMin=/a 5 {control_run}:4; "
        f"ReadIOPSMax=/a 9 {ETC}a.policy:5",
    )
    client.close()
    for path in (OWN, f"{OWN}.d/10.conf"):
        machine.at(path).unlink()
    for _ in range(2):
        sutrod.call("ResetPolicy", UNIT, "runtime")
    expect(
        f"ReadIOPSMax=/a 9 {ETC}a.policy:5; Class=be {ETC}a.policy:6; "
        f"ReadIOPSMin=/a 4 {control}:4; Importance=4 {control}:5",
        f"ReadIOPSMin=/a 1 {ETC}a.policy:4",
    )


def test_last_good_version_stays(machine: Machine, sutrod: Sutrod, expect: Expect) -> None:
    a, control, dropin = f"{VENDOR}a.policy", f"{CONTROL}{UNIT}.policy", f"{OWN}.d/10.conf"
    texts = {
        a: f"{MATCH}{X}Weight=",
        f"{a}.d/1.conf": f"{X}Class=",
        OWN: f"{X}Importance=",
        control: f"{MATCH}{X}ReadIOPSMin=",
    }
    for (file, text), good in zip(texts.items(), ("1", "rt", "1", "/a 1"), strict=True):
        machine.write(file, f"{text}{good}\n")
    good = f"Weight=1 {a}:4; Class=rt {a}.d/1.conf:2; Importance=1 {OWN}:2"
    good += f"; ReadIOPSMin=/a 1 {control}:4"
    expect(good, "")
    assert errors(machine, sutrod) == mistaken(machine, sutrod) == []
    for file, text in texts.items():
        machine.write(file, f"{text}x\n")
    for _ in range(3):
        expect(good, "")
        assert [e.split(": ")[0] for e in errors(machine, sutrod)] == sorted(
            [f"{a}:4", f"{a}.d/1.conf:2", f"{OWN}:2", f"{control}:4"]
        )
        assert f'{a}:4: "[X-Sutro] Weight=x"' in "\n".join(errors(machine, sutrod))
    # A file that replaces it and has a mistake does not end it either.
    machine.write(f"{ETC}a.policy", f"{MATCH}{X}Weight=y\n")
    machine.write(dropin, f"{X}Importance=y\n")
    expect(good, "")
    assert len(errors(machine, sutrod)) == 5
    files = {file: True for file in texts if file != a} | {f"{ETC}a.policy": True, dropin: False}
    assert mistaken(machine, sutrod) == sorted(files.items())
    # Corrected, emptied, removed.
    machine.write(f"{ETC}a.policy", f"{MATCH}{X}Weight=3\n")
    machine.write(f"{a}.d/1.conf", X)
    machine.write(OWN, "")
    machine.at(dropin).unlink()
    sutrod.call("ResetPolicy", UNIT, "persistent")
    expect(f"Weight=3 {ETC}a.policy:4", "")
    assert errors(machine, sutrod) == []
    # A daemon that starts has no last good version.
    machine.write(f"{ETC}a.policy", f"{MATCH}{X}Weight=y\n")
    sutrod.stop()
    sutrod.start()
    expect("", "")
    assert mistaken(machine, sutrod) == [(f"{ETC}a.policy", False)]


def test_last_good_version_of_dropins_of_one_name(
    machine: Machine, systemd: Systemd, sutrod: Sutrod
) -> None:
    service = "/etc/systemd/system/service.d/10.conf"
    files = [service, f"{OWN}.d/10.conf"]
    systemd.start(UNIT, dropins=files)
    machine.write(files[0], f"{X}Weight=1\nClass=rt\n")
    machine.write(files[1], f"{X}Weight=2\n")
    sutrod.start()
    good = sutrod.call("GetPolicy", UNIT)
    assert [(e["value"], bool(e["in_force"])) for e in good] == [("1", 0), ("rt", 1), ("2", 1)]
    for file in files:
        machine.write(file, f"{X}Weight=x\n")
    for _ in range(2):
        sutrod.call("ReloadPolicies")
        sutrod.settle()
        assert len(errors(machine, sutrod)) == 2
        assert sutrod.call("GetPolicy", UNIT) == good
    systemd.vanish(UNIT)
    sutrod.settle()
    assert errors(machine, sutrod) == sutrod.call("GetPolicy", UNIT) == []


@pytest.mark.parametrize("later", ["j@1.service", "j@2.service"])
def test_last_good_version_of_a_unit_that_starts_again(
    machine: Machine, systemd: Systemd, sutrod: Sutrod, later: str
) -> None:
    """It is that of the file: of the unit itself, and of other instances of a template."""
    file = "/etc/systemd/system/j@.service"
    machine.write(file, f"{X}Weight=7\n")
    systemd.start("j@1.service", fragment=file)
    sutrod.start()
    machine.write(file, f"{X}Weight=8\nClass=x\n")
    sutrod.call("ReloadPolicies")
    sutrod.settle()
    systemd.vanish("j@1.service")
    sutrod.settle()
    assert sutrod.call("GetPolicy", "j@1.service") == mistaken(machine, sutrod) == []
    cgroup = systemd.start(later, fragment=file)
    sutrod.until(lambda: machine.weights(cgroup) == ["default 7"])
    assert len(errors(machine, sutrod)) == 1 and mistaken(machine, sutrod) == [(file, True)]
    # A new file at this path has no earlier version.
    systemd.vanish(later)
    machine.at(file).unlink()
    sutrod.call("ReloadPolicies")
    machine.write(file, f"{X}Weight=x\n")
    systemd.start(later, fragment=file)
    sutrod.until(lambda: mistaken(machine, sutrod) == [(file, False)])
    assert sutrod.call("GetPolicy", later) == []


def test_mistakes_of_units_that_do_not_run(
    bus: Bus, machine: Machine, systemd: Systemd, sutrod: Sutrod
) -> None:
    """Their files are read again with all others, and when systemd has loaded units anew."""
    files = {unit: f"/etc/systemd/system/{unit}" for unit in (UNIT, "a.service", "b.service")}
    for unit, file in files.items():
        machine.write(file, f"{X}Weight=x\n")
        systemd.start(unit, fragment=file)
    sutrod.start()
    for unit in files:
        systemd.vanish(unit, forget=False)
    sutrod.settle()
    assert len(errors(machine, sutrod)) == 3

    machine.write(files[UNIT], f"{X}Weight=5\n")
    sutrod.call("ReloadPolicies")
    assert [e.split(":")[0] for e in errors(machine, sutrod)] == list(files.values())[1:]
    assert [e["value"] for e in sutrod.call("GetPolicy", UNIT)] == ["5"]

    with heard(bus, "PropertiesChanged", dbus.PROPERTIES_IFACE) as changes:
        machine.at(files["a.service"]).unlink()
        sutrod.call("Reload")
        # systemd removes each unit and makes it anew, unless its file is gone.
        machine.at(files["b.service"]).unlink()
        systemd.emit("Reloading", "b", True)
        path = dbus.ObjectPath(systemd.object_path("b.service"))
        systemd.emit("UnitRemoved", "so", "b.service", path)
        sutrod.settle()
        assert [e.split(":")[0] for e in errors(machine, sutrod)] == [files["b.service"]]
        systemd.emit("Reloading", "b", False)
        sutrod.until(lambda: errors(machine, sutrod) == [])
        key = "PolicyErrors"
        happens(lambda: [len(new[key]) for _, new, _ in changes if key in new] == [1, 0])


def test_set_keeps_what_was_edited(machine: Machine, sutrod: Sutrod, expect: Expect) -> None:
    """A file with a mistake is not written over, only reset."""
    file = f"{CONTROL_RUN}{UNIT}.policy"
    set_two(sutrod, "runtime", "Weight", "5")
    machine.write(file, f"{MATCH}{X}Class=idle\n")
    set_two(sutrod, "runtime", "Weight", "6")
    expect(f"Class=idle {file}:6; Importance=7 {file}:7; Weight=6 {file}:8", "")
    machine.write(file, f"{MATCH}{X}Class=no\n")
    _, message = sutrod.error("SetPolicy", UNIT, pairs(("Weight", "7")), "runtime")
    assert f'{file}:4: "[X-Sutro] Class=no": rt, be or idle; correct' in message
    assert machine.at(file).read_text() == f"{MATCH}{X}Class=no\n"
    sutrod.call("ResetPolicy", UNIT, "runtime")
    set_two(sutrod, "runtime", "Weight", "7")


# Files with the same number are one layer, and a reset ends the layers below.
LAYERS = {
    f"{ETC}a.policy": 0,
    f"{ETC}a.policy.d/1.conf": 0,
    f"{ETC}a.policy.d/2.conf": 0,
    f"{VENDOR}b.policy": 1,
    OWN: 2,
    f"{OWN}.d/10.conf": 2,
    f"{CONTROL}{UNIT}.policy": 3,
    f"{CONTROL_RUN}{UNIT}.policy": 4,
}
RANDOM_KEYS = ("ReadIOPSMin=/a", "ReadIOPSMin=/b", "WriteIOPSMax=/a", "Weight=")


def test_random_sources(machine: Machine, sutrod: Sutrod, expect: Expect) -> None:
    """The oracle goes from the strongest source on; the first statement of a key holds."""
    draw = random.Random(4)
    for _ in range(300 if "SUTRO_LONG" in os.environ else 30):
        values: dict[tuple[str, str], int] = {}
        resets = {file: draw.random() < 1 / 3 for file in LAYERS}
        for file in LAYERS:
            text = X if file.startswith(OWN) else MATCH + X
            if resets[file]:
                text += "ReadIOPSMin=\nWriteIOPSMax=\nWeight=\n"
            for key in RANDOM_KEYS:
                if draw.random() < 1 / 2:
                    values[file, key] = draw.randrange(1, 10000, 2)  # written without a suffix
                    text += f"{key} {values[file, key]}\n"
            machine.write(file, text)
        holds = set()
        for key in RANDOM_KEYS:
            ended = None
            for file, layer in reversed(LAYERS.items()):
                if layer == ended:
                    continue
                if (file, key) in values:
                    holds.add(
                        (key.split("=")[0], f"{key.split('=')[1]} {values[file, key]}".strip())
                    )
                    break
                if resets[file]:
                    ended = layer
        sutrod.call("ReloadPolicies")
        sutrod.settle()
        found = [e for e in sutrod.call("GetPolicy", UNIT) if e["in_force"]]
        assert {(e["key"], e["value"]) for e in found} == holds and len(found) == len(holds)


def test_folder_that_cannot_be_read(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    """Its policies stay in force, and the caller gets the reason; those of others are read."""
    a, b = systemd.start("a.service", 200), systemd.start("b.service", 200)
    folder = machine.at("/etc/sutro/policy.d")
    machine.write(
        "/etc/sutro/policy.d/a.policy", "[Match]\nUnit=a.service\n[X-Sutro]\nWeight=555\n"
    )
    sutrod.start()
    assert machine.weights(a) == ["default 555"]
    folder.chmod(0)
    try:
        machine.write(
            "/run/sutro/policy.control/b.service.policy",
            "[Match]\nUnit=b.service\n[X-Sutro]\nWeight=666\n",
        )
        with pytest.raises(dbus.DBusException, match="cannot be read .Permission denied."):
            sutrod.call("ReloadPolicies")
        sutrod.until(lambda: machine.weights(b) == ["default 666"], 1)
        assert machine.weights(a) == ["default 555"]
        assert f"Cannot read the folder {folder}: Permission denied" in sutrod.log()
        # Weights that stay when the daemon starts again are those of the other folders.
        assert sutrod.stop() == 0
        sutrod.start()
        assert (machine.weights(a), machine.weights(b)) == (["default 200"], ["default 666"])
    finally:
        folder.chmod(0o755)
    sutrod.call("ReloadPolicies")
    sutrod.until(lambda: machine.weights(a) == ["default 555"], 1)


def test_dropins_that_cannot_be_listed(machine: Machine, sutrod: Sutrod, expect: Expect) -> None:
    """Their policy stays as it is in force, and the caller gets the reason; others are read."""
    for name in "abc":
        machine.write(f"{ETC}{name}.policy", f"{MATCH}{X}ReadIOPSMin=/{name} 1\n")
    machine.write(f"{ETC}b.policy.d/1.conf", f"{X}ReadIOPSMax=/b 1\n")
    a, b, c = (f"ReadIOPSMin=/{name} {{}} {ETC}{name}.policy:4" for name in "abc")
    dropin = f"ReadIOPSMax=/b 1 {ETC}b.policy.d/1.conf:2"
    expect("; ".join((a.format(1), b.format(1), dropin, c.format(1))), "")

    machine.at(f"{ETC}b.policy.d/1.conf").unlink()
    machine.at(f"{ETC}b.policy.d").rmdir()
    machine.link(f"{ETC}b.policy.d", "b.policy.d")
    for number in (2, 3):
        for name in "abc":
            machine.write(f"{ETC}{name}.policy", f"{MATCH}{X}ReadIOPSMin=/{name} {number}\n")
        with pytest.raises(dbus.DBusException, match="Too many levels of symbolic links"):
            sutrod.call("ReloadPolicies")
        sutrod.settle()
        values = [e["value"] for e in sutrod.call("GetPolicy", UNIT)]
        assert values == [f"/a {number}", "/b 1", "/b 1", f"/c {number}"]
    machine.at(f"{ETC}b.policy.d").unlink()
    expect("; ".join((a.format(3), b.format(3), c.format(3))), "")


@pytest.mark.parametrize("length", [253, 254, 255])
def test_longest_name_of_a_policy_file(machine: Machine, expect: Expect, length: int) -> None:
    """No folder of drop-ins can be named after a file of 254 bytes: the file has none."""
    name = "b" * (length - len(".policy")) + ".policy"
    files = ("a.policy", name, "c.policy")
    for file in files:
        machine.write(f"{ETC}{file}", f"{MATCH}{X}ReadIOPSMin=/{file[0]} 1\n")
    expect("; ".join(f"ReadIOPSMin=/{file[0]} 1 {ETC}{file}:4" for file in files), "")
