# SPDX-License-Identifier: LGPL-2.1-or-later
"""The verb measure against the real sutrod; fio and systemd-run are scripts that log their words.

tests/vm/test_metrics.py measures a disk.
"""

import asyncio
import errno
import io
import os
import re
import signal
import stat
from pathlib import Path

import pytest
from conftest import NOWHERE, running, sutroctl
from fakemachine import PATIENCE_S, wait_until
from sutro import declared, files, measure, reach, scratch
from sutro.errors import NotRunning, SutroError

RATES = '{"bw_bytes": 250000000, "iops": 7001.9}'
WRITES = '{"bw_bytes": 100000000, "iops": 3000}'
FIO = f"""echo 'fio: a note'; echo '{{"jobs": [{{"read": {RATES}, "write": {WRITES}}}]}}'"""
WRITTEN = "write=90000000 write-iops=2700"


@pytest.fixture
def tools(tmp_path, monkeypatch, machine):
    """The environment with the scripts; calls() has their words, one call a line."""
    folder, log = tmp_path / "bin", tmp_path / "calls"
    folder.mkdir()
    monkeypatch.setattr(measure, "FOLDER", machine.at("/etc/sutro/sutrod.conf.d"))

    class Tools:
        env = {"PATH": f"{folder}:{os.environ['PATH']}"}

        def script(self, name, text):
            file = folder / name
            file.write_text(f'#!/bin/sh\necho "{name} $*" >>{log}\n{text}\n')
            file.chmod(file.stat().st_mode | stat.S_IXUSR)

        def calls(self):
            return log.read_text().splitlines() if log.exists() else []

    tools = Tools()
    tools.script("systemd-run", 'while [ "$1" != -- ]; do shift; done; shift; exec "$@"')
    tools.script("fio", FIO)
    return tools


def test_measure(sutrod, tools, machine, called):
    """Nine tenths are kept for the name that lasts, and are in force at once."""
    run = sutroctl("measure", "dm-0", "--yes", "--seconds", "3", **tools.env)
    assert run.status == 0
    assert "/dev/vg0/db will be read at full speed for 6 s, in class idle." in run.err
    assert "In use by" in run.err and "db.service" in run.err
    (file,) = machine.at("/etc/sutro/sutrod.conf.d").iterdir()
    assert file.name == "50-capacity-dev-vg0-db.conf"
    assert file.read_text().endswith("\nDevice=/dev/vg0/db read=225000000 read-iops=6300\n")
    rows = sutroctl("status", "--json").json()["capacities"]
    assert {row["key"]: row["capacity"] for row in rows} == {
        "ReadBandwidthMin": 225_000_000,
        "ReadIOPSMin": 6300,
    }
    fio = [call for call in tools.calls() if call.startswith("fio ")]
    assert len(fio) == 2 and all("--readonly" in call and "--runtime=3" in call for call in fio)
    # Idle before it begins, and the policy ends with the command.
    ((scope, assignments, lifetime),) = called("SetPolicy")
    assert (assignments, lifetime) == ([["Class", "idle"]], "client")
    assert all(f"--unit={scope}" in call for call in tools.calls() if "systemd-run" in call)
    assert [name for name, *_ in (row.split() for row in run.out.splitlines()[1:3])] == ["read"] * 2


def test_leaves_with_another_scheduler(sutrod, tools):
    """The class idle has no effect there, and the question names them."""
    run = sutroctl("measure", "/dev/mapper/secret", "--yes", "--dry-run", **tools.env)
    assert run.status == 0
    first, second, *_ = run.err.splitlines()
    assert first == "/dev/mapper/secret will be read at full speed for 20 s."
    assert second.startswith("The scheduler of /dev/sda, /dev/sdb is not sutro")


# --write FILE


def use_file(tools, machine):
    """The script of fio writes to its file, and leaves a mark if it had a size before.

    fio creates no file with allow_file_create=0, and none that is too small.
    """
    path = f"{machine.root}/${{file#*=}}"
    tools.script(
        "fio",
        "for file; do case $file in --filename=/srv*) "
        f"[ -s {path} ] && touch {machine.root}/was-there; echo data >{path} ;; esac; done\n{FIO}",
    )


def test_writes(sutrod, tools, machine):
    """Random writes of the sizes of the reads to a new file, which is filled first."""
    use_file(tools, machine)
    run = sutroctl("measure", "/srv", "--yes", "--seconds", "3", "--write", "/srv/new", **tools.env)
    assert run.status == 0
    assert re.search(
        r"(?m)^\d+ MiB will be written to /srv/new, followed by random writes for 6 s, in class "
        r"idle\. The file is removed at the end\.$",
        run.err,
    )
    reads, fill, writes = [], [], []
    for call in tools.calls():
        if call.startswith("fio "):
            kind = call.partition("--rw=")[2].split()[0]
            {"randread": reads, "write": fill, "randwrite": writes}[kind].append(call)
    assert len(reads) == 2 and all("--readonly" in call for call in reads)
    assert not any("/srv/new" in call for call in reads)
    assert len(fill) == 1
    for call in fill + writes:
        for word in ("--filename=/srv/new", "--direct=1", "--allow_file_create=0"):
            assert word in call.split()
    assert [call.partition("--bs=")[2].split()[0] for call in writes] == ["128k", "4k"]
    assert machine.at("/was-there").exists() and not machine.at("/srv/new").exists()
    (file,) = machine.at("/etc/sutro/sutrod.conf.d").iterdir()
    assert file.read_text().endswith(f"\nDevice=/srv read=225000000 read-iops=6300 {WRITTEN}\n")
    rows = sutroctl("status", "--json").json()["capacities"]
    assert {row["key"]: row["capacity"] for row in rows}["WriteIOPSMin"] == 2700
    assert run.out.count("write") >= 2


def test_measured_writes_replace_declared_ones(sutrod, tools, machine):
    machine.write("/etc/sutro/sutrod.conf", "[Capacity]\nDevice=/srv write=7M write-iops=7\n")
    words = ("measure", "/srv", "--yes", "--write", "/srv/new")
    assert sutroctl(*words, **tools.env).status == 0
    (file,) = machine.at("/etc/sutro/sutrod.conf.d").iterdir()
    assert file.read_text().endswith(f" {WRITTEN}\n")


def test_an_empty_file_is_empty_again(sutrod, tools, machine):
    use_file(tools, machine)
    run = sutroctl("measure", "/srv", "--yes", "--write", "/srv/db/file", **tools.env)
    assert run.status == 0 and "The file is emptied at the end." in run.err
    assert machine.at("/was-there").exists()
    assert machine.at("/srv/db/file").read_text() == ""


@pytest.mark.parametrize(
    ("file", "status", "expected"),
    [
        ("/srv/data", 2, "--write=/srv/data has data"),
        ("/srv", 2, "--write=/srv is a directory"),
        ("/dev/hda", 2, "--write=/dev/hda is a device"),
        ("/srv/fifo", 2, "--write=/srv/fifo is no regular file"),
        ("/srv/a:b", 2, "fio allows"),
        ("/srv/no/such", 1, "there is no directory /srv/no"),
        ("/mnt/new", 1, "--write=/mnt/new: its file system is on /dev/sdb, not on /dev/dm-0"),
        # A device below that of the file system is not the one of its floors.
        ("/other/new", 1, "--write=/other/new: its file system is on /dev/dm-1, not on /dev/dm-0"),
        ("/proc/new", 1, "its file system is on no block device"),
        ("/srv/link", 2, "--write=/srv/link is a file of another user, or a link"),
        ("/srv/open/new", 1, "other users may replace files in /srv/open"),
        ("/srv/theirs/new", 1, "other users may replace files in /srv/theirs"),
    ],
)
def test_files_that_are_not_written(sutrod, tools, machine, monkeypatch, file, status, expected):
    """Nothing is measured, and the file is as before."""
    machine.mount("/mnt", "8:16", "ext4", "/dev/sdb")
    machine.mount("/other", "254:1", "ext4", "/dev/mapper/vg0-log")
    machine.write("/srv/data", "precious")
    machine.write("/srv/names", "")
    machine.at("/srv/link").hardlink_to(machine.at("/srv/names"))
    os.mkfifo(machine.at("/srv/fifo"))
    machine.at("/srv/open").mkdir()
    machine.at("/srv/open").chmod(0o777)
    machine.at("/srv/theirs").mkdir()
    theirs = machine.at("/srv/theirs").stat().st_ino
    lstat, stat_of = Path.lstat, Path.stat

    def as_a_device(path):
        found = lstat(path)
        if path == machine.at("/dev/hda"):
            return os.stat_result((stat.S_IFBLK, *found[1:]))
        return found

    def of_another(path, **more):
        found = stat_of(path, **more)
        is_theirs = found.st_ino == theirs
        return os.stat_result((*found[:4], 12345, *found[5:])) if is_theirs else found

    monkeypatch.setattr(Path, "lstat", as_a_device)
    monkeypatch.setattr(Path, "stat", of_another)
    run = sutroctl("measure", "/srv", "--yes", "--write", file, **tools.env)
    assert (run.status, run.out) == (status, "") and expected in run.err
    assert not [call for call in tools.calls() if call.startswith("fio ")]
    assert machine.at("/srv/data").read_text() == "precious"
    assert not machine.at(file).is_file() or file in ("/srv/data", "/srv/link", "/dev/hda")


def test_too_little_room(sutrod, tools, machine, monkeypatch):
    monkeypatch.setattr(scratch, "PART", 0)
    run = sutroctl("measure", "/srv", "--yes", "--write", "/srv/new", **tools.env)
    assert run.status == 1 and "half of the free space of /srv is 0 MiB, and 64 MiB" in run.err
    assert not machine.at("/srv/new").exists()


def test_a_failed_write_removes_the_file(sutrod, tools, machine):
    """The device is full: fio reports it by its status, and its report is whole."""
    full = "case $* in *--rw=write*) echo 'No space left on device' >&2; exit 1; esac"
    tools.script("fio", f"{FIO}\n{full}")
    run = sutroctl("measure", "/srv", "--yes", "--write", "/srv/new", **tools.env)
    assert run.status == 1
    assert "fio on /srv/new ended with status 1: No space left on device" in run.err
    assert not machine.at("/srv/new").exists()
    assert not machine.at("/etc/sutro/sutrod.conf.d").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_removes_the_file(sutrod, tools, machine, number):
    """And fio has ended before, so that it does not write the file again."""
    script = f"""case $* in *randwrite*) ;; *) {FIO}; exit ;; esac
        trap 'touch {machine.root}/ended; exit' TERM; touch {machine.root}/runs
        while :; do sleep 0.1; done"""
    tools.script("fio", script)
    words = ("measure", "/srv", "--yes", "--write", "/srv/new")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with running("sutroctl", *words, root=str(machine.root), **tools.env) as process:
            wait_until(machine.at("/runs").exists)
            assert machine.at("/srv/new").exists()
            process.send_signal(number)
            _, err = process.communicate(timeout=PATIENCE_S)
    finally:
        signal.signal(signal.SIGINT, before)
    assert process.returncode == (130 if number == signal.SIGINT else 1)
    assert number == signal.SIGINT or f"{number.name} ended the measurement" in err
    assert machine.at("/ended").exists() and not machine.at("/srv/new").exists()
    assert not machine.at("/etc/sutro/sutrod.conf.d").exists()


def test_a_signal_while_fio_starts(tools, machine, monkeypatch):
    """fio ends by SIGTERM then, too: after SIGKILL, the processes of its jobs would go on."""
    script = f"trap 'touch {machine.root}/ended; exit' TERM; touch {machine.root}/runs; sleep 0.5"
    tools.script("fio", script)
    monkeypatch.setenv("PATH", tools.env["PATH"])

    start, measuring = asyncio.create_subprocess_exec, []

    async def started(*words, **more):
        process = await start(*words, **more)
        wait_until(machine.at("/runs").exists)
        measuring[0].cancel()
        await asyncio.sleep(0)
        return process

    async def run():
        monkeypatch.setattr(asyncio, "create_subprocess_exec", started)
        measuring.append(asyncio.create_task(measure._fio(["--filename=/srv/new"], "x.scope")))
        with pytest.raises(asyncio.CancelledError):
            await measuring[0]

    asyncio.run(run())
    assert machine.at("/ended").exists()


# The drop-in


def test_a_file_for_each_path(tools, machine):
    """Paths that differ in "-" and "/" only have files of their own, and no other file is left."""
    for path in ("/dev/vg/a-b", "/dev/vg-a/b"):
        measure._keep(path, {"read": 5})
    folder = machine.at("/etc/sutro/sutrod.conf.d")
    files = sorted(folder.iterdir())
    names = [file.name for file in files]
    assert names == [r"50-capacity-dev-vg-a\x2db.conf", r"50-capacity-dev-vg\x2da-b.conf"]
    assert files[0].read_text().endswith("\nDevice=/dev/vg/a-b read=5\n")


def test_other_lines_stay(sutrod, tools, machine):
    """Rates of writes, of other devices, and comments; a rate in another file counts, too."""
    folder = machine.at("/etc/sutro/sutrod.conf.d")
    folder.mkdir(parents=True)
    file = folder / "50-capacity-dev-vg0-db.conf"
    lines = [
        "# mine",
        "[Capacity]",
        "Device = /dev/vg0/db  write=500M read=1G",
        "Device=/dev/mapper/secret read=1M",
    ]
    file.write_text("\n".join([*lines, "[Daemon]", "ResyncWeight=50", ""]))
    (folder / "40-other.conf").write_text("[Capacity]\nDevice=/dev/vg0/log write-iops=70\n")
    for device in ("dm-0", "/dev/vg0/log"):
        assert sutroctl("measure", device, "--yes", **tools.env).status == 0
    lines[2] = "Device=/dev/vg0/db read=225000000 read-iops=6300 write=500000000"
    assert file.read_text() == "\n".join([*lines, "[Daemon]", "ResyncWeight=50", ""])
    rows = sutroctl("status", "--json").json()["capacities"]
    declared = {(row["path"], row["key"]): row["capacity"] for row in rows}
    assert declared["/dev/vg0/db", "WriteBandwidthMin"] == 500_000_000
    assert declared["/dev/vg0/db", "ReadBandwidthMin"] == 225_000_000
    assert declared["/dev/vg0/log", "WriteIOPSMin"] == 70
    assert declared["/dev/mapper/secret", "ReadBandwidthMin"] == 1_000_000


MEASURED = "/dev/vg0/db read=225000000 read-iops=6300"


@pytest.mark.parametrize(
    ("text", "parts", "number"),
    [
        (
            "# mine\n[Capacity]\nDevice = /dev/vg0/db read=400M\n",
            ["read=400M instead of read=225M", "no read-iops instead of read-iops=6.30K"],
            3,
        ),
        (
            "[Capacity]\nDevice=/srv read=400M read-iops=5K\n",
            [
                "read=400M for /srv instead of read=225M",
                "read-iops=5.00K for /srv instead of read-iops=6.30K",
            ],
            2,
        ),
        ("[Capacity]\n\nDevice=\n", ["no read instead of read=225M"], 3),
        (f"[Capacity]\nDevice={MEASURED}\n", [], 0),
        ("[Capacity]\nDevice=/dev/mapper/secret read=1M\n", [], 0),
        ("[Daemon]\nResyncWeight=50\n", [], 0),
    ],
)
def test_a_later_line_for_the_device(sutrod, tools, machine, text, parts, number):
    """The measured rates are kept; the value in force and the line to change are reported."""
    folder = machine.at("/etc/sutro/sutrod.conf.d")
    folder.mkdir(parents=True)
    local = folder / "60-local.conf"
    local.write_text(text)
    run = sutroctl("measure", "dm-0", "--yes", **tools.env)
    kept = folder / "50-capacity-dev-vg0-db.conf"
    assert kept.read_text().endswith(f"\nDevice={MEASURED}\n")
    assert "kept for /dev/vg0/db" in run.out
    assert run.status == (1 if parts else 0)
    if not parts:
        assert "is not in force" not in run.err
        return
    assert f"{kept} is not in force: sutrod has " in run.err
    assert all(part in run.err for part in parts)
    name = "/etc/sutro/sutrod.conf.d/60-local.conf"
    assert f"change or remove line {number} of {name}: Device" in run.err
    # The remedy is one.
    local.unlink()
    assert sutroctl("measure", "dm-0", "--yes", **tools.env).status == 0


def test_lines_are_read_in_the_order_of_sutrod(machine, monkeypatch):
    """Of files with one name, that of /etc counts; the main file comes first."""
    monkeypatch.setattr(reach, "ROOT", str(machine.root))
    files = {
        "/etc/sutro/sutrod.conf": "[Capacity]\nDevice=/a read=1\n[Leaves]\nDevice=/b\n",
        "/etc/sutro/sutrod.conf.d/20-b.conf": "[Capacity]\n;Device=/c\n Device = /d read=2 \n",
        "/run/sutro/sutrod.conf.d/20-b.conf": "[Capacity]\nDevice=/e\n",
        "/usr/lib/sutro/sutrod.conf.d/10-a.conf": "[Capacity]\nDevice=/f read=3\nDevice=\n",
        "/usr/lib/sutro/sutrod.conf.d/.hidden.conf": "[Capacity]\nDevice=/g\n",
        "/usr/lib/sutro/sutrod.conf.d/30-c.conf.bak": "[Capacity]\nDevice=/h\n",
    }
    for name, text in files.items():
        file = machine.at(name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    found = [(line.number, line.path, line.value) for line in declared.lines()]
    assert found == [(2, "/a", "/a read=1"), (2, "/f", "/f read=3"), (3, "", ""),
                     (3, "/d", "/d read=2")]  # fmt: skip
    at_10 = "/usr/lib/sutro/sutrod.conf.d/10-a.conf"
    assert str(declared.shadowing("/a", "/etc/sutro/sutrod.conf", set())) == (
        f"line 3 of {at_10}: Device="
    )
    # A line before is one only where sutrod lists its path.
    at_20 = "/etc/sutro/sutrod.conf.d/20-b.conf"
    assert declared.shadowing("/d", at_20, {"/d"}) is None
    assert declared.shadowing("/d", at_20, {"/d", "/a"}).path == "/a"


def test_a_folder_with_a_blank(sutrod, tools, tmp_path, monkeypatch):
    """Its short name has none; nothing is measured."""
    (tmp_path / "a b").mkdir()
    monkeypatch.chdir(tmp_path / "a b")
    run = sutroctl("measure", ".", "--yes", **tools.env)
    assert (run.status, run.out) == (2, "") and "/a b' has a blank" in run.err
    assert tools.calls() == []


def test_a_file_is_whole_or_as_before(tools, machine, monkeypatch):
    """A write that fails leaves the capacity of before."""
    before = measure._keep("/srv", {"read": 5}).read_text()

    def full(descriptor):
        os.truncate(descriptor, 0)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(SutroError, match="No space left"):
        measure._keep("/srv", {"read": 6})
    (file,) = machine.at("/etc/sutro/sutrod.conf.d").iterdir()
    assert file.read_text() == before


def test_seconds_left(monkeypatch):
    """They are on the terminal while fio runs."""

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    async def run():
        async with measure._progress("read", 9):
            while "8 s" not in terminal.getvalue():
                await asyncio.sleep(0.01)

    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    asyncio.run(run())
    assert terminal.getvalue() == "\rread, 9 s left \rread, 8 s left \n"


def test_dry_run_keeps_nothing(sutrod, tools, machine):
    data = sutroctl("--json", "measure", "/srv", "-y", "--dry-run", **tools.env)
    assert data.status == 0 and '"file": ""' in data.out and '"measured": 7001' in data.out
    assert not machine.at("/etc/sutro/sutrod.conf.d").exists()
    assert sutroctl("status", "--json").json()["capacities"] == []


def full(_descriptor):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("fails", ["first", "second", "folder", "disk"])
def test_rates_that_are_not_in_force(sutrod, tools, machine, monkeypatch, fails):
    """They are printed all the same, and the message has what became of the file."""
    reload, calls = measure.Client.reload, []
    folder = machine.at("/etc/sutro/sutrod.conf.d")

    async def reloaded(client):
        calls.append(client)
        if fails == {1: "first", 2: "second"}[len(calls)]:
            raise NotRunning("sutrod is not running", "start it")
        await reload(client)

    monkeypatch.setattr(measure.Client, "reload", reloaded)
    if fails == "folder":
        folder.write_text("")
    if fails == "disk":
        monkeypatch.setattr(files.os, "fsync", full)
    run = sutroctl("measure", "/srv", "--yes", **tools.env)
    assert run.status == 1 and re.search(r"(?m)^read min +250M +225M$", run.out)
    file = folder / "50-capacity-srv.conf"
    assert file.exists() == (fails == "second") == ("kept for /srv in" in run.out)
    expected = {
        "first": "sutroctl: sutrod is not running\n          start it\n",
        "second": f"sutroctl: {file} is written, but not in force: sutrod is not running\n"
        "          start it\n",
        "folder": f"sutroctl: {file}: File exists\n"
        "          move the file away that is in the place of the folder\n",
        "disk": f"sutroctl: {file}: No space left on device\n"
        "          make room on its file system\n",
    }
    assert run.err.endswith(expected[fails])


@pytest.mark.parametrize(
    ("fio", "expected"),
    [
        ("echo 'cannot open /dev/dm-0: Permission denied' >&2; exit 1", "Permission denied"),
        ("exit 3", "status 3: no output"),
        ("echo '{'", "ended with status 0"),
        (FIO.replace("250000000", "0"), "measure longer, up to --seconds=600"),
    ],
)
def test_fio_fails(sutrod, tools, machine, fio, expected):
    tools.script("fio", fio)
    run = sutroctl("measure", "/srv", "--yes", **tools.env)
    assert (run.status, run.out) == (1, "") and expected in run.err
    assert not machine.at("/etc/sutro/sutrod.conf.d").exists()


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["/srv"], "there is no terminal to confirm the measurement on"),
        (["/srv", "--yes", "--seconds", "0"], "--seconds=0: allowed is 1 to 600"),
        (["/srv/a b", "--yes"], "has a blank"),
    ],
)
def test_slips(args, expected, monkeypatch, tmp_path):
    monkeypatch.setattr("sys.stdin", (tmp_path / "empty").open("w+"))
    run = sutroctl("measure", *args, **NOWHERE)
    assert (run.status, run.out) == (2, "") and expected in run.err


@pytest.mark.parametrize("typed", [b"n\n", b"\n"])
def test_it_is_confirmed_first(sutrod, tools, typed):
    """Anything but a yes measures nothing."""
    ours, theirs = os.openpty()
    with running("sutroctl", "measure", "/srv", stdin=theirs, **tools.env) as process:
        os.write(ours, typed)
        _, err = process.communicate(timeout=PATIENCE_S)
    os.close(ours)
    os.close(theirs)
    assert process.returncode == 1 and "Continue? [y/N]" in err and "nothing was measured" in err
    assert tools.calls() == []


def test_ctrl_c_at_the_question(sutrod, tools):
    """It ends the program at once, without another key."""
    ours, theirs = os.openpty()
    # A program inherits that Ctrl-C is ignored, as in the background of a shell.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with running("sutroctl", "measure", "/srv", stdin=theirs, **tools.env) as process:
            said = ""
            while not said.endswith("[y/N] "):
                said += process.stderr.read(1)
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE_S) == 130
    finally:
        signal.signal(signal.SIGINT, before)
    os.close(ours)
    os.close(theirs)
    assert tools.calls() == []
