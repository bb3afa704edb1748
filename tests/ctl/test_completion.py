# SPDX-License-Identifier: LGPL-2.1-or-later
"""The completion of bash, after "=" above all: bash divides words there."""

import subprocess

import pytest
from conftest import POLICIES

SCRIPT = r"""
compopt() { :; }
systemctl() { echo "db.service x"; echo "web.service x"; }
source "$0"
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_sutroctl
printf '%s\n' "${COMPREPLY[@]}"
"""


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("top --order = s", "state share"),
        ("top --order s", "state share"),
        ("top --order =", "state unit device value granted got share weight"),
        ("--json = s", "short"),
        ("status --json =", "pretty short off"),
        ("top --json s", "sub/"),
        ("--host = p", ""),
        ("-H p", ""),
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
    run = subprocess.run(
        ["bash", "-c", SCRIPT, POLICIES / "sutroctl.bash", "sutroctl", *words.split(" ")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert (run.returncode, run.stderr) == (0, "")
    # A shell adds the slash.
    found = [name + "/" * (tmp_path / name).is_dir() for name in run.stdout.split()]
    assert sorted(found) == sorted(expected.split())
