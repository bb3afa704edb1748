# SPDX-License-Identifier: LGPL-2.1-or-later
"""Conventions of systemd's commands that sutroctl follows: JSON modes, legend, pager, host, help,
completions, and files of settings that can be printed and edited."""

import argparse
import asyncio
import json
import os
import re
import shutil
import signal
import tempfile
from pathlib import Path
from types import SimpleNamespace

import dbus
import pytest
from conftest import NOWHERE, POLICIES, POLICIES_OF, process, running, sutroctl
from fakemachine import NAME, PATIENCE_S, TOP, wait_until
from privatebus import PrivateBus
from sutro import arguments, policy_files
from sutro.sutroctl import LOCAL
from test_live import on, terminal  # noqa: F401  (a fixture)
from test_sutroctl import MAN

# As ssh -xT -- HOST COMMAND...: the shell of the user there runs the words, joined by spaces.
SSH = """#!/bin/sh
printf '%s|' "$@" >>"{log}"
printf '\\n' >>"{log}"
[ "$1 $2" = "-xT --" ] || exit 64
[ "$3" != nowhere ] || exit 255
shift 3
# A bridge may complain if the connection ends before ssh does.
trap 'kill $!; exit 143' TERM
exec 3<&0
PATH="{there}:$PATH" sh -c "exec $*" <&3 &
wait $!
echo "Failed to send message: Connection reset by peer" >&2
"""
BRIDGE = """#!/bin/sh
[ $# = 0 ] || exit 64
exec "{bridge}" --bus-path="{bus}"
"""


def script(tmp_path, name, text):
    file = tmp_path / "bin" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(0o755)
    return {"PATH": f"{file.parent}:{os.environ['PATH']}"}


@pytest.mark.parametrize("place", ["before", "after"])
def test_json_modes(sutrod, place):
    """--json without a mode is pretty; -j is pretty on a terminal, and short elsewhere."""

    def run(*option):
        words = [*option, "status"] if place == "before" else ["status", *option]
        run = sutroctl(*words)
        assert (run.status, run.err) == (0, "")
        return run.out

    short = run("--json=short")
    assert short.count("\n") == 1 and ": " not in short.replace('": "', "")
    assert run("-j") == short, "no terminal"
    assert run("--json=pretty") == run("--json") == json.dumps(json.loads(short), indent=2) + "\n"
    assert run("--json=off") == run()
    assert sutroctl("status", "--json=yes").status == 2


def test_no_legend(promised):
    """Neither heads nor hints; the rows are the same, but for their widths."""
    words = re.split(r"\s{2,}|\n", sutroctl("status").out)
    bare = sutroctl("status", "--no-legend").out
    left = re.split(r"\s{2,}|\n", bare)
    gone = [word for word in words if word not in left]
    assert {"UNIT", "LEAF", "SCHEDULER", "UNDER", "WEIGHT"} <= set(gone)
    assert any(word.startswith("* switched") for word in gone)
    assert "db.service" in left and "web.service" in left
    assert all(word.isupper() or word.startswith("* switched") for word in gone), gone


def test_pager(sutrod, terminal, tmp_path):  # noqa: F811
    """The pager of systemd's tools gets the text, on a terminal only."""
    pager = f"cat >{tmp_path}/paged; printf %s $LESS >{tmp_path}/less; echo paged-it"
    path = script(tmp_path, "less", f"#!/bin/sh\n{pager}\n")
    with on(terminal, "tree", **path) as tree:
        terminal.expect("paged-it")
        assert tree.wait(PATIENCE_S) == 0
    assert "/dev/vg0/db" in (tmp_path / "paged").read_text()
    assert (tmp_path / "less").read_text() == "FRSXMK"
    for more in ({"args": ["--no-pager"]}, {"PAGER": ""}, {"SYSTEMD_PAGER": "cat"}):
        with on(terminal, "tree", *more.pop("args", []), **path, **more) as tree:
            assert "paged-it" not in terminal.expect("/dev/mapper/secret.*sdb")
            assert tree.wait(PATIENCE_S) == 0
    assert "/dev/vg0/db" in process("sutroctl", "tree", **path).out


@pytest.mark.parametrize(("ending", "status"), [("exit 0", 0), ("exit 2", 130)])
def test_ctrl_c_in_the_pager(sutrod, terminal, tmp_path, ending, status):  # noqa: F811
    """less without its option K goes on, and has to end by itself to restore the terminal."""
    pager = f"cat >/dev/null; kill -INT $PPID; sleep 1; echo at-its-end; {ending}"
    path = script(tmp_path, "less", f"#!/bin/sh\n{pager}\n")
    with on(terminal, "tree", **path, SYSTEMD_LESS="FRSXM") as tree:
        terminal.expect("at-its-end")
        assert tree.wait(PATIENCE_S) == status
        assert tree.stderr.read() == ""


@pytest.fixture
def there(sutrod, tmp_path):
    """An environment whose ssh reaches another machine, and the log of ssh."""
    bus, bridge = os.environ["DBUS_SYSTEM_BUS_ADDRESS"], shutil.which("systemd-stdio-bridge")
    script(tmp_path / "there", "systemd-stdio-bridge", BRIDGE.format(bridge=bridge, bus=bus))
    log = tmp_path / "ssh.log"
    ssh = SSH.format(log=log, there=tmp_path / "there/bin")
    return NOWHERE | script(tmp_path, "ssh", ssh), log


def test_host(there):
    """The bus of another machine, through the bridge that systemctl --host uses, too."""
    path, log = there
    for option in (["-H", "root@db1"], ["--host=root@db1"]):
        run = process("sutroctl", *option, "status", **path)
        assert (run.status, run.err) == (0, "")
        assert run.out == process("sutroctl", "status").out != ""
    assert log.read_text() == "-xT|--|root@db1|systemd-stdio-bridge|\n" * 2
    with running("sutroctl", "-H", "db1", "top", "-b", **path) as top:
        assert top.stdout.readline()
        top.send_signal(signal.SIGINT)
        assert top.wait(PATIENCE_S) == 0
    run = process("sutroctl", "-H", "nowhere", "tree", **path)
    assert (run.status, run.out) == (1, "")
    assert "sutroctl: the system bus of nowhere cannot be reached\n" in run.err
    run = process("sutroctl", "-H", "db1", "tree", PATH="/nonexistent")
    assert run.err.startswith("sutroctl: ssh: No such file or directory\n")


def test_policy_set_client_on_another_machine(sutrod, there):
    """The setting is held there: this machine has no bus here, and no path of that machine."""
    path, log = there
    words = ["policy", "set", "web", "ReadBandwidthMin=/mnt/there 5M", "--client"]
    with running("sutroctl", "-H", "db1", *words, **path) as process:
        wait_until(lambda: sutrod.held("web.service") == ["ReadBandwidthMin=/mnt/there 5M"])
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0 and "ReadBandwidthMin" in out
    assert err == "ending: its promises end with it\n"
    assert set(log.read_text().splitlines()) == {"-xT|--|db1|systemd-stdio-bridge|"}
    wait_until(lambda: sutrod.held("web.service") == [])


NASTY = "it's $(touch pwned) `id`; a  b # \\"


@pytest.mark.parametrize("host", ["db1;id", "a b", "$(id)", "-oProxyCommand=id", "it's"])
def test_host_is_one_word(there, host):
    """No shell of either machine sees it, and ssh takes it for no option."""
    path, log = there
    run = process("sutroctl", f"--host={host}", "tree", **path)
    assert (run.status, run.err) == (0, "")
    assert log.read_text() == f"-xT|--|{host}|systemd-stdio-bridge|\n"


def without_rates(text):
    """A text of the daemon, whose clock goes on between two calls."""
    return re.sub(r" +(<?[0-9.]+ (%|[KMG]?i?B)|-)(?=\s)", " RATE", text)


def test_words_for_another_machine(there, tmp_path):
    """Names reach the daemon there as they are: they go over the bus, not through its shell."""
    path, log = there
    for words in (["policy", "show", NASTY], ["explain", "db", f"/srv/{NASTY}"]):
        run = process("sutroctl", "-H", "db1", *words, **path)
        here = process("sutroctl", *words)
        assert (run.status, run.err) == (here.status, here.err)
        assert without_rates(run.out) == without_rates(here.out)
    assert set(log.read_text().splitlines()) == {"-xT|--|db1|systemd-stdio-bridge|"}
    assert not list(tmp_path.rglob("pwned"))


@pytest.mark.parametrize("verb", ["tree", "use", "explain db", "top --once"])
def test_paths_of_another_machine(there, tmp_path, monkeypatch, verb):
    """They begin with a slash: a file of this machine is none of that machine."""
    path, _ = there
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").touch()
    for name in ("./data", "..", "sub/data"):
        run = process("sutroctl", "-H", "db1", *verb.split(), name, **path)
        assert (run.status, run.out) == (2, "")
        assert f"'{name}' is relative to a directory of this machine, not of db1" in run.err
    run = process("sutroctl", "-H", "db1", *verb.split(), "data", **path)
    assert (run.status, run.out) == (1, "") and "there is no device named 'data'" in run.err


def test_host_without_a_name(sutrod):
    """As of "-H $HOST" with a variable that is not set: this machine is not meant."""
    for option in (["-H", ""], ["--host="]):
        run = sutroctl(*option, "status")
        assert (run.status, run.out) == (2, "") and "the name of the host is empty" in run.err


@pytest.mark.parametrize(
    "words",
    [
        *("measure /srv --yes", "metrics", "policy cat db", "policy edit db"),
        *("policy check a.policy", "test /srv --yes"),
    ],
)
def test_verbs_of_this_machine(words):
    run = sutroctl("-H", "db1", *words.split(), **NOWHERE)
    assert (run.status, run.out) == (2, "")
    assert "reads files of this machine, so there is no --host" in run.err


def verbs():
    """Each verb with its parser."""

    def below(parser, prefix=""):
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                for name, one in action.choices.items():
                    yield from below(one, f"{prefix}{name} ")
                    if one.get_default("run"):
                        yield prefix + name, one

    return dict(below(arguments.parser()))


def test_help_has_every_verb_in_a_group():
    text = sutroctl("--help", **NOWHERE).out
    for name in verbs():
        assert re.search(rf"(?m)^  {name}  +\S", text), name
    assert text.index("\nPresent state:\n") < text.index("\nPolicies:\n") < text.index("\noptions:")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completions_have_all_verbs_and_options(shell):
    text = (POLICIES / f"sutroctl.{shell}").read_text()
    known = set(re.findall(r"[\w-]+", re.sub(r"-l |--", "--", text)))
    every = verbs()
    assert len(every) > 20
    for name, parser in every.items():
        options = {o for a in parser._actions for o in a.option_strings if o.startswith("--")}
        assert options <= known, (name, options - known)
        assert set(name.split()) <= known


def test_man_page_has_all_verbs_and_options():
    text = MAN.read_text().replace("\\-", "-")
    for name, parser in verbs().items():
        assert f".SS {name}" in text or f", {name}" in text, name
        for action in parser._actions:
            for option in action.option_strings:
                assert option in text, (name, option)
    synopsis = text.partition(".SH SYNOPSIS")[2].partition(".SH")[0]
    shown = re.findall(r"\[\\fIOPTION\\fR\.\.\.\] \\fB([a-z -]+?)(?: --fits)?\\fR", synopsis)
    assert set(shown) == verbs().keys()


def test_man_page_has_the_verbs_without_a_host():
    text = MAN.read_text().partition("have to run there:\n")[2].partition(".TP")[0]
    shown = re.findall(r"^\.BR? \"?([a-z]+(?: [a-z]+)?)", text, re.M)
    assert sorted(shown) == sorted([*LOCAL, "policy check"])


# policy cat, policy edit


def test_policy_cat(promised, machine):
    run = process("sutroctl", "policy", "cat", "db")
    assert (run.status, run.err) == (0, "")
    names = re.findall(r"(?m)^# (\S+)$", run.out)
    files = [
        "/usr/lib/sutro/policy.d/50-services.policy",
        "/etc/sutro/policy.d/db.policy",
        "/etc/systemd/system/db.service.d/sutro.conf",
    ]
    assert sorted(names) == sorted(str(machine.at(file)) for file in files)
    for expected in POLICIES_OF["/etc/sutro/policy.d/db.policy"][1:]:
        assert f"\n{expected}\n" in run.out
    data = json.loads(process("sutroctl", "policy", "cat", "db", "-j").out)
    assert {entry["file"]: entry["text"] for entry in data} == {
        name: Path(name).read_text() for name in names
    }


def test_policy_cat_of_an_unknown_unit(promised):
    run = sutroctl("policy", "cat", "bd")
    assert (run.status, run.out) == (1, "")
    assert "there is no unit 'bd.service'" in run.err


@pytest.fixture
def folder(machine, monkeypatch, tmp_path):
    """The folder of policies; drafts that are kept are in tmp_path."""
    folder = machine.at("/etc/sutro/policy.d")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(policy_files, "FOLDER", folder)
    return folder


def editor(tmp_path, text):
    """An editor that appends a text."""
    path = script(tmp_path, "sutrod", f'#!/bin/sh\nexec {os.environ["SUTROD"]} "$@"\n')
    script(tmp_path, "append", f"#!/bin/sh\nprintf %s '{text}' >>\"$2\"\n")
    return path | {"EDITOR": "append --wait"}


@pytest.mark.parametrize(
    ("unit", "expected"), [("db", "Unit=db.service"), ("/payload", "Cgroup=/payload")]
)
def test_policy_edit(promised, folder, tmp_path, unit, expected):
    """A file that is there is edited, a new one names its unit; the daemon reads it at once."""
    run = sutroctl("policy", "edit", unit, **editor(tmp_path, "Weight=77\n"))
    assert (run.status, run.err) == (0, "")
    assert re.search(r"\* +Weight +77 +/etc/sutro/policy.d/", run.out)
    (file,) = (file for file in folder.iterdir() if "Weight=77\n" in file.read_text())
    assert expected in file.read_text() and file.stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("text", ["Weight=heavy\n", "[Nonsense\n"])
def test_policy_edit_with_a_mistake(promised, folder, tmp_path, text):
    before = {file: file.read_text() for file in folder.iterdir()}
    run = sutroctl("policy", "edit", "web", **editor(tmp_path, text))
    assert run.status == 1 and "the edited text has mistakes; nothing was changed" in run.err
    assert {file: file.read_text() for file in folder.iterdir()} == before


@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        *((name, "is no name of a unit") for name in ("*.service", "foo@.service", "a b", "a/b")),
        *((name, "is no name of a unit") for name in ("../evil", "/", "x" * 300)),
        ("x" * 239, "the name is too long"),
    ],
)
def test_policy_edit_of_a_bad_name(promised, folder, tmp_path, unit, expected):
    """It is refused before the editor starts."""
    before = sorted(folder.iterdir())
    mark = tmp_path / "started"
    run = sutroctl("policy", "edit", unit, **editor(tmp_path, "") | {"EDITOR": f"touch {mark}"})
    assert (run.status, run.out) == (1, "") and expected in run.err
    assert sorted(folder.iterdir()) == before and not mark.exists()


def test_policy_edit_with_the_longest_name(promised, folder, tmp_path):
    unit = "x" * 238
    assert sutroctl("policy", "edit", unit, **editor(tmp_path, "Weight=7\n")).status == 0
    assert (folder / f"{unit}.service.policy").exists()


def test_policy_edit_without_a_setting(promised, folder, tmp_path):
    """A file of comments for a unit that does not exist yet is no failure."""
    run = sutroctl("policy", "edit", "gone", **editor(tmp_path, "# later\n"))
    assert (run.status, run.err) == (0, "") and (folder / "gone.service.policy").exists()


def test_policy_edit_without_a_daemon(own_bus, folder, tmp_path):
    """The editor does not start: nothing could be put in force."""
    run = sutroctl("policy", "edit", "web", **editor(tmp_path, "Weight=7\n"))
    assert (run.status, run.out) == (1, "") and "sutrod is not running" in run.err
    assert not folder.exists()


@pytest.mark.parametrize("is_masked_before", [True, False])
def test_policy_edit_of_a_masked_file(promised, folder, tmp_path, is_masked_before):
    """The text is not lost in /dev/null; the editor does not start if the link is there before."""
    file, path = folder / "idle.service.policy", editor(tmp_path, "")
    mask = f"ln -s /dev/null {file}"
    script(tmp_path, "append", f'#!/bin/sh\n{mask}\necho Weight=7 >>"$2"\n')
    if is_masked_before:
        file.symlink_to("/dev/null")
    run = sutroctl("policy", "edit", "idle", **path)
    assert (run.status, run.out) == (1, "") and f"{file} is masked by a link" in run.err
    drafts = [Path(draft) for draft in re.findall(r"the edited text is in (\S+)$", run.err)]
    assert len(drafts) == (not is_masked_before) and file.readlink() == Path("/dev/null")
    assert all(draft.read_text().endswith("Weight=7\n") for draft in drafts)


def test_policy_edit_json(promised, folder, tmp_path, capfd):
    """The check of the edited text prints nothing before the JSON."""
    data = sutroctl("--json", "policy", "edit", "idle", **editor(tmp_path, "Weight=7\n")).json()
    assert capfd.readouterr().out == ""
    assert "7" in [e["value"] for e in data["units"][0]["policy"] if e["key"] == "Weight"]


def test_policy_edit_on_a_read_only_file_system(promised, folder, tmp_path, monkeypatch):
    """sudo is no remedy for that; the editor does not start."""
    before, mark = os.statvfs(folder), tmp_path / "started"
    flags = SimpleNamespace(f_flag=before.f_flag | os.ST_RDONLY)
    monkeypatch.setattr(os, "statvfs", lambda _folder: flags)
    run = sutroctl("policy", "edit", "web", **editor(tmp_path, "") | {"EDITOR": f"touch {mark}"})
    assert run.status == 1 and not mark.exists()
    assert f"{folder}: Read-only file system" in run.err and "remount" in run.err
    assert "sudo" not in run.err


def test_policy_edit_makes_the_folder(sutrod, folder, tmp_path):
    assert not folder.exists()
    assert sutroctl("policy", "edit", "web", **editor(tmp_path, "Weight=7\n")).status == 0
    assert (folder / "web.service.policy").exists()


def test_policy_edit_of_a_file_that_changes(promised, folder, tmp_path):
    """A change by another program is not lost, and neither is the draft."""
    file = folder / "web.service.policy"
    path = editor(tmp_path, "")
    script(tmp_path, "append", f"#!/bin/sh\necho '# other' >{file}\necho Weight=7 >>\"$2\"\n")
    run = sutroctl("policy", "edit", "web", **path)
    assert (run.status, run.out) == (1, "")
    assert f"{file} was changed by another program while it was edited" in run.err
    assert "edit it again: sutroctl policy edit " in run.err
    assert file.read_text() == "# other\n"
    (draft,) = re.findall(r"the edited text is in (\S+)$", run.err)
    assert Path(draft).read_text().endswith("Weight=7\n")


def test_policy_edit_that_cannot_be_written(promised, folder, tmp_path):
    """The edited text is kept; a text that was not edited is not."""
    path = editor(tmp_path, "")
    file = folder / "web.service.policy"
    script(tmp_path, "append", f'#!/bin/sh\nmkdir {file}\necho Weight=7 >>"$2"\n')
    run = sutroctl("policy", "edit", "web", **path)
    file.rmdir()
    assert run.status == 1 and f"{file}: this is no regular file" in run.err
    (draft,) = re.findall(r"the edited text is in (\S+)$", run.err)
    assert Path(draft).read_text().endswith("Weight=7\n")
    run = sutroctl("policy", "edit", "web", EDITOR="false")
    assert "the edited text is in" not in run.err


def test_policy_edit_with_ctrl_c_in_the_editor(promised, folder, tmp_path, called):
    """The terminal sends it to both programs: it is for the editor, and the edit goes on."""
    path = editor(tmp_path, "")
    ctrl_c = "kill -INT $PPID; sleep 0.2\n" * 2
    script(tmp_path, "append", f"#!/bin/sh\ntrap '' INT\n{ctrl_c}echo Weight=7 >>\"$2\"\n")
    run = sutroctl("policy", "edit", "web", **path)
    assert (run.status, run.err) == (0, "") and re.search(r"\* +Weight +7 ", run.out)
    assert called("ReloadPolicies") == [[]]


def interrupt(*_words):
    raise KeyboardInterrupt


def interrupted_check(*_words):
    signal.raise_signal(signal.SIGINT)
    return True


@pytest.mark.parametrize("text", ["Weight=heavy\n", "Weight=7\n"])
def test_policy_edit_with_ctrl_c_before_it_is_written(
    promised, folder, tmp_path, monkeypatch, text
):
    """At the question after a mistake, or in the check: the text is kept, and no file changes."""
    monkeypatch.setattr(policy_files, "_again", interrupt)
    if "7" in text:
        monkeypatch.setattr(policy_files, "_is_good", interrupted_check)
    run = sutroctl("policy", "edit", "idle", **editor(tmp_path, text))
    assert (run.status, run.out) == (130, "")
    (draft,) = re.findall(r"sutroctl: nothing was changed; the edited text is in (\S+)$", run.err)
    assert Path(draft).read_text().endswith(text)
    assert not (folder / "idle.service.policy").exists()


def test_policy_edit_with_ctrl_c_after_it_is_written(promised, folder, tmp_path, monkeypatch):
    async def reload(_client):
        signal.raise_signal(signal.SIGINT)
        await asyncio.sleep(0)

    monkeypatch.setattr(policy_files.Client, "reload_policies", reload)
    run = sutroctl("policy", "edit", "idle", **editor(tmp_path, "Weight=7\n"))
    file = folder / "idle.service.policy"
    assert run.status == 130 and file.read_text().endswith("Weight=7\n")
    assert run.err == (
        f"sutroctl: {file} is written, but not in force\n"
        "          put it in force: sutroctl policy reload\n"
    )


def test_policy_edit_without_a_change(promised, folder, tmp_path, called):
    run = sutroctl("policy", "edit", "db", **editor(tmp_path, ""))
    assert (run.status, run.out, run.err) == (0, "", "Nothing was changed.\n")
    assert called("ReloadPolicies") == []


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("false", "status 1"),
        ("/nonexistent", "No such"),
        ("ed '", "EDITOR: No closing quotation: ed '"),
    ],
)
def test_policy_edit_with_an_editor_that_fails(promised, folder, command, expected):
    run = sutroctl("policy", "edit", "db", EDITOR=command)
    assert (run.status, run.out) == (1, "")
    assert expected in run.err


# log-level


def test_log_level(sutrod):
    """The level takes effect at once; an unknown one is refused with those that there are."""
    assert sutroctl("log-level").out == "debug\n"
    assert sutroctl("log-level", "err").out == "err\n"
    before = sutrod.log()
    sutroctl("set", "web", "300")
    assert sutrod.log() == before
    assert sutroctl("log-level", "info", "-j").json() == {"level": "info"}
    sutroctl("set", "web", "301")
    assert "IOWeight=301 of web.service" in sutrod.log()
    run = sutroctl("log-level", "loud")
    assert (run.status, run.out) == (2, "")
    assert "loud" in run.err and "emerg" in run.err and "debug" in run.err
    assert sutroctl("log-level").out == "info\n"


def test_only_root_sets_the_level(monkeypatch):
    """The bus policy refuses it to others, whether or not there is a daemon that could."""
    monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", "")
    own = PrivateBus(f"<include>{TOP}/dist/org.sutro1.conf</include>")
    try:
        daemon, caller = (dbus.bus.BusConnection(own.address) for _ in range(2))
        daemon.request_name(NAME)
        path = "/org/freedesktop/LogControl1"
        properties = caller.get_object(NAME, path, introspect=False)

        def refusal(member, *words, timeout_s=1):
            method = properties.get_dbus_method(member, "org.freedesktop.DBus.Properties")
            with pytest.raises(dbus.DBusException) as caught:
                method("org.freedesktop.LogControl1", "LogLevel", *words, timeout=timeout_s)
            return caught.value.get_dbus_name()

        # The daemon of this test never answers: a call that the bus passes on ends by its timeout.
        denied = "org.freedesktop.DBus.Error.AccessDenied"
        if os.getuid() == 0:
            assert refusal("Set", "debug") != denied
        else:
            assert refusal("Set", "debug", timeout_s=PATIENCE_S) == denied
        assert refusal("Get") != denied
    finally:
        own.stop()
