# SPDX-License-Identifier: LGPL-2.1-or-later
"""The completions of the shells: their options are those of argparse, and values of options.

In bash after "=" above all: bash divides words there. zsh is not run: its file is read.
"""

import argparse
import re
import subprocess

import pytest
from conftest import POLICIES
from sutro import arguments

SCRIPT = r"""
compopt() { :; }
systemctl() { echo "db.service x"; echo "web.service x"; }
source "$0"
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_sutroctl
printf '%s\n' "${COMPREPLY[@]}"
"""


def parsers(parser=None, name=""):
    """The parser of each verb, and that of the words before any, by its name."""
    parser = parser or arguments.parser()
    if name != "policy":
        yield name, parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for verb, one in action.choices.items():
                yield from parsers(one, f"{name} {verb}".strip())


def options(parser):
    return {option for action in parser._actions for option in action.option_strings}


VERBS = dict(parsers())


def bash(words, folder):
    """The completions of the last word."""
    run = subprocess.run(
        ["bash", "-c", SCRIPT, POLICIES / "sutroctl.bash", "sutroctl", *words],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "HOSTFILE": str(folder.parent / "hosts")},
        capture_output=True,
        text=True,
    )
    assert (run.returncode, run.stderr) == (0, "")
    return run.stdout.split()


def fish(words, tmp_path):
    """The completions of the last word, without their descriptions."""
    script = 'source $argv[1]; complete --do-complete "$argv[2..]"'
    run = subprocess.run(
        ["fish", "--no-config", "-c", script, POLICIES / "sutroctl.fish", "sutroctl", *words],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    return [line.partition("\t")[0] for line in run.stdout.splitlines()]


def zsh(verb):
    """The specifications of _arguments for a verb: those of all verbs, and its own."""
    text = (POLICIES / "sutroctl.zsh").read_text()
    common = re.search(r"(?ms)^common=\((.*?)^\)", text)[1]
    if not verb:
        return common + re.search(r"(?m)^_arguments -C.*1:verb.*$", text)[0]
    arms = re.findall(r"(?ms)^  \(([^\n]*?)\)\s*(arguments=\(.*?\)) ;;", text)
    own = [body for names, body in arms if verb in names.replace("'", "").split("|")]
    return common + "".join(own)


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb or "none")
def test_options_of_bash_and_fish(tmp_path, verb):
    """Those that argparse has, no more and no less."""
    expected, words = options(VERBS[verb]), verb.split()
    assert {o.removesuffix("=") for o in bash([*words, "-"], tmp_path)} == expected
    found = {*fish([*words, "-"], tmp_path), *fish([*words, "--"], tmp_path)}
    assert {o.partition("=")[0] for o in found} == expected


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb or "none")
def test_options_of_zsh(verb):
    text = re.sub(r"\[[^]]*\]", "[]", zsh(verb))
    found = re.findall(r"[',{)*](--?[a-zA-Z][a-z-]*)", text)
    assert set(found) == options(VERBS[verb])


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--json=", "--json=pretty --json=short --json=off"),
        ("policy set db Class=", "Class= Class=rt Class=be Class=idle"),
        ("policy reset db Cl", "Class"),
        ("log-level de", "debug"),
        ("--json stat", "status"),
    ],
)
def test_fish(tmp_path, words, expected):
    """The value of --json is optional."""
    assert sorted(fish(words.split(" "), tmp_path)) == sorted(expected.split())


def test_zsh_has_the_values():
    text = (POLICIES / "sutroctl.zsh").read_text()
    modes = " ".join(arguments.JSON_MODES)
    assert f"--json=-[print JSON]::mode:({modes})" in text, "the value is optional, after ="
    assert "compset -P 'Class='; then\n    compadd rt be idle" in text


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("top --order = s", "state share"),
        ("top --order s", "state share"),
        ("top --order =", "state unit device value granted got leaf share weight"),
        ("--json = s", "short"),
        ("status --json =", "pretty short off"),
        ("top --json s", "sub/"),
        ("--host = no", "node1 node2"),
        ("-H no", "node1 node2"),
        ("-H x", ""),
        ("plot --output = s", "sub/"),
        ("plot --output s", "sub/"),
        ("plot --from = s d", "db.service"),
        ("metrics --output =", "a.html sub/"),
        ("set --device = s", "sub/"),
        ("set db 5 --device = s", "sub/"),
        ("set db d", "default"),
        ("test --schedulers = m", "mq-deadline"),
        ("policy set d", "db.service"),
        ("policy set db Cl", "Class="),
        ("policy set db Class = i", "idle"),
        ("policy set db Class =", "rt be idle"),
        ("policy set db Weight = 5", ""),
        ("policy set db ReadBandwidthMin = s", "sub/"),
        ("policy set db Weight = 5 Cl", "Class="),
        ("policy reset db Cl", "Class"),
        ("log-level de", "debug"),
    ],
)
def test_bash(tmp_path, words, expected):
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.html").touch()
    (tmp_path.parent / "hosts").write_text("192.0.2.1 node1\n192.0.2.2 node2\n")
    # A shell adds the slash.
    found = [name + "/" * (tmp_path / name).is_dir() for name in bash(words.split(" "), tmp_path)]
    assert sorted(found) == sorted(expected.split())
