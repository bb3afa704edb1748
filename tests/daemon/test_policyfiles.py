# SPDX-License-Identifier: LGPL-2.1-or-later
"""Lines, sections and mistakes of policy files, and files that are none.

GetPolicy returns the settings of a file, "sutrod --check" its mistakes.
"""

import os
import subprocess
from pathlib import Path

import pytest
from fakemachine import PATIENCE_S, SUTROD, TOP, Machine, Sutrod, Systemd

X, MATCH = "[X-Sutro]\n", "[Match]\nUnit=db.service\n"
POLICY = "/etc/sutro/policy.d/db.policy"
FRAGMENT = "/etc/systemd/system/db.service"
LINE = "a [Section], Key=value, or a comment that begins with # or ;"
SECTIONS = "[Match] or [X-Sutro]"
MOST = "at most 256 assignments and names in one file"
WEIGHTS = "1 to 10000, or a path and 1 to 10000, such as /dev/vg/db 300"
PATHS = (
    'first an absolute path without ".." and control characters, in quotes if it has blanks, '
    "at most 4095 bytes"
)
KEYS = (
    "ReadBandwidthMin=, WriteBandwidthMin=, ReadIOPSMin=, WriteIOPSMin=, ReadBandwidthMax=, "
    "WriteBandwidthMax=, ReadIOPSMax=, WriteIOPSMax=, LatencyTarget=, WriteLatencyTarget=, "
    "FsyncLatencyTarget=, Weight=, Class=, Importance="
)

# The text, a unit, and "KEY=VALUE LINE; ..." of all statements about it.
POLICIES = [
    (
        "# databases\n[Match]\nUnit=db.service kubepods-*.slice\n"
        f"\n{X}ReadBandwidthMin=/dev/vg/db 200M\n"
        "  Weight = 300 \r\n;Weight=1\n#Weight=2\nClass=rt",
        "kubepods-a.slice",
        "ReadBandwidthMin=/dev/vg/db 200M 6; Weight=300 7; Class=rt 10",
    ),
    # Sections may come again, lists add up, empty values reset.
    (f"{X}Weight=1\n[Match]\nUnit=a.service\nUnit=\n{MATCH}", "a.service", ""),
    (
        f"{X}Weight=1\nClass=rt\n[Match]\nUnit=\tb.slice  db*\n",
        "db.service",
        "Weight=1 2; Class=rt 3",
    ),
    (f"{MATCH}{X}Weight=1\nClass=rt\n{X}Weight=\n", "db.service", "Weight=1 4; Class=rt 5"),
    (MATCH, "db.service", ""),
    # The byte order mark of editors of another system.
    (f"\ufeff{MATCH}{X}Weight=1", "db.service", "Weight=1 4"),
    # Lines that go on: comments within them are left out, an empty line or the end ends them.
    (
        "[Match]\nUnit=a.service \\\n# not this\n  ; nor this\n"
        f"   b.service\\\n\tdb.service\n{X}Weight=1\n",
        "db.service",
        "Weight=1 8",
    ),
    (f"[Match]\nUnit=db.service \\\n\n{X}Weight=1\\", "db.service", "Weight=1 5"),
    (f"\\\n[Match]\\\r\n\nUnit=\\\ndb.service\n{X}Weight=1", "db.service", "Weight=1 7"),
]
FRAGMENTS = [
    # Two backslashes are one, and none is left for the end of the line.
    (f"{X}ReadIOPSMin=/a\\\\ \\\n5\nWeight=1\n", 'ReadIOPSMin="/a\\\\" 5 2; Weight=1 4'),
    (
        f"[Service]\nExecStart=a\\\\\n{X}Weight=1\n[Service]\nExecStart=a\\\\\\\n{X}Weight=2\n",
        "Weight=1 4",
    ),
    # A header within a line that goes on is none.
    (f"[Service]\nExecStart=/bin/sh -c \\\n{X}Weight=1\nUser=x\n{X}Weight=2\n", "Weight=2 7"),
    # Other sections belong to systemd.
    (
        "[Unit]\nDescription=[X-Sutro] Weight=5\n= what\nnonsense\n[\n[Service]\nWeight=many\n"
        f"\x01\udcff\n{X}Importance=5\n[X-Other]\nImportance=no\n[Match]\nUnit=/\n",
        "Importance=5 10",
    ),
    ("", ""),
    ("no section at all\n", ""),
]


def test_what_files_say(machine: Machine, systemd: Systemd, sutrod: Sutrod) -> None:
    systemd.start("db.service", fragment=FRAGMENT)
    sutrod.start()
    cases = [(POLICY, *case) for case in POLICIES]
    cases += [(FRAGMENT, text, "db.service", mistakes) for text, mistakes in FRAGMENTS]
    for file, text, unit, mistakes in cases:
        for other in (POLICY, FRAGMENT):
            machine.write(other, "")
        machine.at(file).write_bytes(os.fsencode(text))
        sutrod.call("ReloadPolicies")
        sutrod.settle()
        assert list(sutrod.property("PolicyErrors")) == []
        found = [
            f"{e['key']}={e['value']} {e['source'].rpartition(':')[2]}"
            for e in sutrod.call("GetPolicy", unit)
        ]
        assert sorted(found) == sorted(filter(None, mistakes.split("; "))), text


# Lists of patterns, a unit, and whether it matches.
MATCHES = [
    ("db.service", "db.service", True),
    ("db.service", "dba.service", False),
    ("a.slice d*", "db.service", True),
    ("d* a.slice", "db.service", True),
    ("db.service\nUnit=\nUnit=a.slice", "db.service", False),
    ("db.service\nUnit=\nUnit=db*", "db.service", True),
    ("user-[12]*.slice", "user-10.slice", True),
    ("user-[12]*.slice", "user-30.slice", False),
    ("kubepods-*.slice", "kubepods-burstable.slice", True),
    ("kubepods-*.slice", "kubepods.slice", False),
    ("dev-a\\x2db.swap", "dev-a\\x2db.swap", True),
    ("dev-a\\x2d*", "dev-a\\x2db.swap", True),
    ("dev-ax2db.swap", "dev-a\\x2db.swap", False),
    # A pattern that is slow in bad matchers; a test that hangs is a failure.
    (125 * "*a" + "b*", 247 * "a" + ".service", False),
]


def test_match(machine: Machine, sutrod: Sutrod) -> None:
    sutrod.start()
    for patterns, unit, matches in MATCHES:
        machine.write(POLICY, f"[Match]\nUnit={patterns}\n{X}Weight=1\n")
        sutrod.call("ReloadPolicies")
        assert bool(sutrod.call("GetPolicy", unit)) == matches, patterns


def check(*files: Path) -> tuple[list[str], list[str]]:
    """The verdicts on good files, and the mistakes, without the directory of the first file."""
    command = [SUTROD, "--check", *files]
    nowhere = {"DBUS_SYSTEM_BUS_ADDRESS": "unix:path=/nowhere"}
    done = subprocess.run(command, capture_output=True, timeout=PATIENCE_S, env=nowhere)
    parts = [os.fsdecode(text).splitlines() for text in (done.stdout, done.stderr)]
    assert done.returncode == bool(parts[1])
    folder = f"{files[0].parent}/"
    return tuple([line.removeprefix(folder) for line in part] for part in parts)  # type: ignore


# A text, and ":LINE: "TEXT": ALLOWED" of each mistake.
MISTAKES = [
    (
        f"{MATCH}{X}ReadBandwidthMin=/dev/vg/db many\nLatencyTarget=srv 5ms\n\nClass=fast\n",
        ':4: "[X-Sutro] ReadBandwidthMin=/dev/vg/db many": a path and bytes per second, such as '
        "/dev/vg/db 200M, at most 1000T (K, M, G, T: powers of 1000)",
        f':5: "[X-Sutro] LatencyTarget=srv 5ms": {PATHS}',
        ':7: "[X-Sutro] Class=fast": rt, be or idle',
    ),
    (
        f"{MATCH}{X}ReadBandwidthMin=/srv 101%\nReadIOPSMax=/srv 30%\n",
        ':4: "[X-Sutro] ReadBandwidthMin=/srv 101%": a path and 1% to 100% of the capacity '
        "of the device, with at most two decimals, such as /dev/vg/db 12.5%",
        ':5: "[X-Sutro] ReadIOPSMax=/srv 30%": a path and requests per second',
    ),
    (f"{MATCH}{X}Wait=5\n", f':4: "[X-Sutro] Wait=5": {KEYS}'),
    (
        "[Match]\nUnit=db.service w@.service\nUnit=-.slice\n",
        ':2: "[Match] Unit=db.service w@.service": names of units; no unit has the name of a '
        "template, so match its instances, as with w@*.service",
        ':3: "[Match] Unit=-.slice": slices below the root, which has no '
        "settings, such as system.slice user.slice",
    ),
    *(
        (
            f"[Match]\nUnit=db.service {name}\n",
            f':2: "[Match] Unit=db.service {name}": names with the type of a unit that has a '
            "cgroup: .service, .slice, .scope, .socket, .mount or .swap",
        )
        for name in ("postgresql", "backup.timer", "w@1")
    ),
    # A unit has the policies of its name only.
    *(
        (
            f"[Match]\nCgroup=/a/b {path}\n",
            f':2: "[Match] Cgroup=/a/b {path}": cgroups that are no units; this is the cgroup of a '
            f"unit, so write Unit={unit}",
        )
        for path, unit in (
            ("/system.slice/db.service", "db.service"),
            ("/system.slice", "system.slice"),
            ("/a.slice/a-b.slice/_io.service", "io.service"),
            ("/machine.slice/libpod-1.scope", "libpod-1.scope"),
        )
    ),
    ("[Match]\nUnits=db.service\n", ':2: "[Match] Units=db.service": [Match] Unit= or Cgroup='),
    (
        f"{X}Weight=1\n",
        ': "[Match] Unit=": is missing: names or globs of units, separated by blanks, such as '
        "db.service kubepods-*.slice",
    ),
    (f"[Match]\nUnit=db.service\nUnit=\n{X}Weight=1\n", ': "[Match] Unit=": is missing: names'),
    ("Weight=1\n", f':1: "Weight=1": first a section, {SECTIONS}'),
    (f"{MATCH}[X-Sutra]\nWeight=1\n", f':3: "X-Sutra": {SECTIONS}'),
    (
        f"{MATCH}[X-Sutro\nWeight=1\n",
        f':3: "[X-Sutro": {LINE}',
        ':4: "[Match] Weight=1": [Match] Unit= or Cgroup=',
    ),
    (f"{MATCH}{X}=5\n[]\n", f':4: "=5": {LINE}', f':5: "[]": {LINE}'),
    # The quoted text is fit for a terminal and the bus, and not longer than 160 bytes.
    (
        f"{MATCH}{X}Class=\x1b[31m\udcff\xe4\t\udcc3\n",
        ':4: "[X-Sutro] Class=?[31m?\xe4??": rt, be or idle',
    ),
    (f"{MATCH}{X}Class={50000 * 'xyz '}\n", f':4: "{("[X-Sutro] Class=" + 50 * "xyz ")[:160]}..."'),
    # Bytes that are no UTF-8, or no character.
    *(
        (f"{MATCH}{X}ReadIOPSMin=/{text} 1K\n", f':4: "[X-Sutro] ReadIOPSMin=/{shown} 1K": {PATHS}')
        for text, shown in (
            ("\udcff", "?"),
            ("\udcc0\udcaf", "??"),
            ("\udced\udca0\udc80", "???"),
            ("\uffff", "???"),
            ("\udcf4\udc90\udc80\udc80", "????"),
            ("\udce2\udc82", "??"),
        )
    ),
    # One statement more than the most, and the first 20 of many mistakes.
    (
        MATCH + X + "".join(f"ReadIOPSMin=/{n} 1\n" for n in range(255)) + "Weight=1\n",
        f':259: "[X-Sutro] Weight=1": {MOST}',
    ),
    (5000 * "what is this\n", *(f':{n}: "what is this": {LINE}' for n in range(1, 21))),
    (f"{MATCH}\0{X}", ': "zero byte": text'),
    ((MATCH + X).ljust(1024**2 + 1, "\n"), ': "too large": at most 1 MiB'),
]
PATTERNS = (
    "db.service|*|user-*.slice|*.service|db*|db.servic?|a@*.service|a@b.service|a@*|db.s[elc]*|"
    "dev-a\\x2db.swap|[-].slice|[!a-c]*.service|db.[^t]*|a[]]b.service"
)
NO_PATTERNS = (
    "postgresql|db.timer|/db.service|a/*.service|db.service,|.service|db.\x01*|a@.service|"
    'a.service,b.service|d\xe4.service|"db.service"|[a-z.service|db.s[elc]*[|'
    "*@.slice|@.service|-.slice"
)
CGROUPS = (
    "/system.slice/* /*.slice/db.service /system.slice/db.servic[e] /system.slice/db.servic?",
    "/system.slice/plain /system.slice/db.service/x.scope /db.slice/x/a.service",
    "/system.slice/w@.service /system.slice/later.timer /batch/a.service",
)
NO_ROOT = "in a file of a slice below the root, which has no settings, such as system.slice"
NAMED = {
    "db.policy.d/a.conf": ("[Service]\nWeight=1\n", f':1: "Service": {SECTIONS}'),
    "db.service": (
        f"[Service]\nWeight=x\n{X}Weight=x\nnonsense\n",
        f':4: "[X-Sutro] Weight=x": {WEIGHTS}',
        f':5: "nonsense": {LINE}',
    ),
    "-.slice.d/50-io.conf": (
        f"[Slice]\nIOWeight=1\n{X}Weight=300\n",
        f':4: "[X-Sutro] Weight=300": {NO_ROOT}',
    ),
    "policy.control/db.service.policy": (
        "[Match]\nUnit=db*\n",
        ':2: "[Match] Unit=db*": the unit or cgroup that the file is named after',
    ),
}


def test_mistakes(tmp_path: Path) -> None:
    """Each mistake is reported with its line, in all files."""
    cases = {f"{n}.policy": case for n, case in enumerate(MISTAKES)} | NAMED
    wanted = []
    for name, (text, *mistakes) in cases.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(os.fsencode(text))
        wanted += [name + mistake for mistake in mistakes]
    fine, mistakes = check(*(tmp_path / name for name in cases))
    assert fine == [] and len(mistakes) == len(wanted)
    for found, expected in zip(mistakes, wanted, strict=True):
        assert found.startswith(expected) and len(found) < 600


ABOVE = "{0} cannot hold: {1} is less; change one"
SMALL = (
    "{0} is less than a page of 4096 bytes per second; rates have the suffixes K, M, G and T, "
    "such as 200M"
)
REPLACED = "{0} has no effect: {1} follows; remove one"


@pytest.mark.parametrize(
    ("note", "first", "then"),
    [
        (ABOVE, "ReadBandwidthMin=/srv 300M", "ReadBandwidthMax=/srv 100M"),
        (ABOVE, "WriteIOPSMin=any 1001", "WriteIOPSMax=any 1K"),
        ("", "ReadBandwidthMin=/srv 100M", "ReadBandwidthMax=/srv 100M"),
        ("", "ReadBandwidthMin=/srv 300M", "ReadBandwidthMax=/srv infinity"),
        ("", "ReadBandwidthMin=/srv 300M", "WriteBandwidthMax=/srv 100M"),
        ("", "ReadBandwidthMin=/srv 300M", "ReadIOPSMax=/srv 100"),
        ("", "ReadBandwidthMin=/srv 300M", "ReadBandwidthMax=/home 100M"),
        ("", "ReadBandwidthMin=/srv 30%", "ReadBandwidthMax=/srv 1M"),
        # 200 for 200M, which systemd takes, too.
        (SMALL, "ReadBandwidthMin=/srv 200", ""),
        (SMALL, "WriteBandwidthMax=any 4095", ""),
        ("", "WriteBandwidthMax=any 4096", ""),
        ("", "ReadBandwidthMin=/srv 1%", ""),
        ("", "ReadBandwidthMax=/srv infinity", ""),
        ("", "ReadIOPSMin=/srv 200", ""),
        (REPLACED, "ReadBandwidthMin=/srv 300M", "ReadBandwidthMin=/srv 30%"),
        (REPLACED, "Weight=any 300", "Weight=200"),
        (REPLACED, "Class=idle", "Class=idle"),
        ("", "ReadBandwidthMin=/srv 300M", "ReadBandwidthMin=/home 300M"),
        ("", "ReadBandwidthMin=/srv 300M", "WriteBandwidthMin=/srv 300M"),
        ("", "Weight=/srv 300", "Weight=200"),
        # A reset before the later one is deliberate.
        ("", "Class=idle", "Class=\nClass=be"),
    ],
)
def test_notes(tmp_path: Path, note: str, first: str, then: str) -> None:
    """It is reported, and is no mistake: the daemon takes the file."""
    file = tmp_path / "a.policy"
    file.write_text(f"{MATCH}{X}{first}\n{then}\n")
    done = subprocess.run([SUTROD, "--check", file], capture_output=True, text=True)
    # A statement that is replaced, or reset, is none.
    number = 1 + bool(then and note != REPLACED and "\n" not in then)
    assert (done.returncode, done.stdout) == (0, f"{file}: patterns: 1, promises: {number}: fine\n")
    shown = first.replace("any ", "") if note == REPLACED else first
    assert done.stderr == (f"{file}:4: {note.format(shown, then)}\n" if note else "")


def test_patterns(tmp_path: Path) -> None:
    """Good files and mistakes are reported apart."""
    texts = {f"{n}.policy": text for n, text in enumerate(f"{PATTERNS}|{NO_PATTERNS}".split("|"))}
    for name, text in texts.items():
        (tmp_path / name).write_text(f"[Match]\nUnit=a.service\nUnit={text}\n")
    fine, mistakes = check(*(tmp_path / name for name in texts))
    assert len(fine) == len(PATTERNS.split("|"))
    for line, name in zip(fine + mistakes, texts, strict=True):
        mistakes = ": patterns: 2, promises: 0: fine" if line in fine else ':3: "[Match] Unit='
        assert line.startswith(f"{name}{mistakes}")


def test_paths_of_cgroups(tmp_path: Path) -> None:
    """Those of units are mistakes; a pattern may match other cgroups, too."""
    file = tmp_path / "a.policy"
    file.write_text("[Match]\n" + "".join(f"Cgroup={paths}\n" for paths in CGROUPS))
    assert check(file) == (["a.policy: patterns: 10, promises: 0: fine"], [])


def test_shipped_policies(tmp_path: Path) -> None:
    """The policies that we ship have no mistake, nor have sections of systemd's files."""
    unit = tmp_path / "db.service"
    unit.write_text(f"[Service]\nWeight=x\n{X}Class=idle\n")
    shipped = [*(TOP / "policies").glob("*.policy")]
    fine, mistakes = check(unit, *shipped)
    assert fine[0] == "db.service: promises: 1: fine"
    assert (len(fine), mistakes) == (1 + len(shipped), [])


KINDS = (
    "no file with settings has this name: allowed is NAME.policy, NAME.policy.d/NAME.conf, a unit "
    "file such as NAME.service, NAME.slice or NAME.scope, a drop-in such as "
    "NAME.service.d/NAME.conf, sutrod.conf or sutrod.conf.d/NAME.conf"
)


@pytest.mark.parametrize(
    "name", ["x.txt", "db", "db.timer", "x.conf", "x.d/x.conf", "db.service.d/x", ".policy.d"]
)
def test_file_of_another_kind(tmp_path: Path, name: str) -> None:
    """Read as a unit file, it would have no mistake."""
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"{X}Weight=x\n")
    fine, (mistake,) = check(file)
    assert (fine, mistake) == ([], f"{file.name}: {KINDS}")


UNIT_FILES = (
    "db.service",
    "db@.service",
    "db.socket",
    "db.service.d/x.conf",
    "db-.slice.d/x.conf",
    "service.d/x.conf",
)


@pytest.mark.parametrize("name", UNIT_FILES)
def test_unit_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Its folder is found, too, if the path does not have it."""
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"{X}Weight=7\n")
    assert check(file) == ([f"{file.name}: promises: 1: fine"], [])
    monkeypatch.chdir(file.parent)
    for path in (file.name, f"./{file.name}"):
        done = subprocess.run([SUTROD, "--check", path], capture_output=True, text=True)
        assert done.stdout == f"{path}: promises: 1: fine\n"


@pytest.mark.parametrize("name", ["sutrod.conf", "sutrod.conf.d/x.conf"])
def test_check_of_the_configuration(tmp_path: Path, name: str) -> None:
    """It has another syntax and other sections; the mistakes are those of the journal."""
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    assert check(file) == ([], [f"{file.name}: no such file"])
    file.write_text("[Daemon]\nReconcileSec=60\n")
    assert check(file) == ([f"{file.name}: fine"], [])
    file.write_text("[Daemon]\n\nReconcileSec=0\n")
    mistake = f'{file.name}:3: "[Daemon] ReconcileSec=0": seconds, 1 to 3600, ignoring.'
    assert check(file) == ([], [mistake])


HIDES = "hides files of this name in other folders: fine"
TARGETS = [
    ("/dev/null", HIDES),
    ("empty", HIDES),
    ("other", "patterns: 1, promises: 1: fine"),
    ("largest", "patterns: 1, promises: 0: fine"),
    ("most", "patterns: 1, promises: 255: fine"),
    ("/dev/full", '"no regular file": '),
    ("fifo", '"no regular file": '),
    (".", '"no regular file": '),
    ("a.policy", '"Too many levels of symbolic links": a readable file'),
    ("nothing", '"a link to no file": a link to a regular file or to /dev/null'),
]


@pytest.mark.parametrize(("target", "verdict"), TARGETS)
def test_files(tmp_path: Path, target: str, verdict: str) -> None:
    """A link to a file of each kind; nothing waits for a pipe, and 1 MiB is not too large."""
    (tmp_path / "other").write_text(f"{MATCH}{X}Weight=7\n")
    (tmp_path / "empty").touch()
    (tmp_path / "largest").write_text((MATCH + X).ljust(1024**2, "\n"))
    lines = "".join(f"ReadIOPSMin=/{n} 1\n" for n in range(255))
    (tmp_path / "most").write_text(MATCH + X + lines)
    os.mkfifo(tmp_path / "fifo")
    link = tmp_path / "a.policy"
    link.symlink_to(target)
    fine, mistakes = check(link)
    (line,) = fine + mistakes
    assert line.startswith(f"{link.name}: {verdict}")
