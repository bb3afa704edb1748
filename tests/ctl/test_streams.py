# SPDX-License-Identifier: LGPL-2.1-or-later
"""Standard streams and files that are closed or cannot be written: a sentence, no traceback."""

import os
import subprocess
import sys

import pytest
from conftest import POLICIES, environment, process, running, sutroctl
from fakemachine import PATIENCE_S
from test_live import terminal  # noqa: F401  (a fixture)

FULL = "No space left on device"
FULL_FILE = (
    f"sutroctl: /dev/full: {FULL}\n          make room on its file system, or name another file\n"
)
COMPLAINT = (
    f"sutroctl: standard output: {FULL}\n"
    "          make room there, or send the output to another file\n"
)


def redirected(redirection, *args):
    """Run sutroctl with a redirection of the shell: its status, output and errors."""
    shell = ["sh", "-c", f'exec "$@" {redirection}', "sh", sys.executable, POLICIES / "sutroctl"]
    run = subprocess.run(
        [*shell, *args], env=environment(), capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert "Traceback" not in run.stderr, run.stderr
    return run.returncode, run.stdout, run.stderr


@pytest.mark.parametrize(
    "verb", ["status", "tree --json", "metrics", "watch", "top --once", "top --batch", "dump"]
)
def test_full_disk(sutrod, verb):
    sutroctl("policy", "set", "web", "ReadBandwidthMin=/srv 5M", "--runtime")
    status, _, err = redirected(">/dev/full", *verb.split())
    assert (status, err) == (1, COMPLAINT)


def test_recording_on_a_full_disk(sutrod):
    """The file is named, not the output."""
    run = sutroctl("top", "--batch", "-n", "2", "--record", "/dev/full")
    assert (run.status, run.out, run.err) == (1, "", FULL_FILE)


@pytest.mark.parametrize("verb", ["status", "tree -j", "top --once", "top --batch -n 1"])
@pytest.mark.parametrize("streams", ["<&-", "2>&-", "<&- 2>&-"])
def test_closed_streams(sutrod, verb, streams):
    """As with /dev/null; no file takes the number of a stream."""
    status, out, err = redirected(streams, *verb.split())
    assert (status, err) == (0, "") and out


@pytest.mark.parametrize(
    "words",
    ["status", "tree -j", "top --once", "top --batch -n 1", "metrics", "--help", "top --version"],
)
def test_closed_output(sutrod, words):
    """The output is lost, which is a failure; a file does not take its number."""
    assert redirected(">&-", *words.split()) == (
        1,
        "",
        "sutroctl: standard output: Bad file descriptor\n"
        "          it is closed: send the output to a file, or to /dev/null\n",
    )
    assert redirected("<&- >&- 2>&-", *words.split()) == (1, "", "")


def test_lost_output_of_policy_check(tmp_path):
    file = tmp_path / "a.policy"
    file.write_text("[Match]\nUnit=db.service\n[X-Sutro]\nClass=idle\n")
    for lost in (">&-", ">/dev/full"):
        assert redirected(lost, "policy", "check", str(file))[:2] == (1, "")


def test_no_terminal_for_a_confirmation():
    status, out, err = redirected("<&-", "measure", "/dev/hda")
    assert (status, out) == (2, "")
    assert "there is no terminal to confirm the measurement on" in err


@pytest.mark.parametrize("variable", ["PAGER", "SYSTEMD_PAGER"])
def test_pager_with_an_open_quote(sutrod, terminal, variable):  # noqa: F811
    """The variable is named, and the pager that it hides is not used."""
    ends = {"stdin": terminal.theirs, "stdout": terminal.theirs}
    with running("sutroctl", "tree", **ends, TERM="xterm", **{variable: "less '"}) as tree:
        _, err = tree.communicate(timeout=PATIENCE_S)
    assert (tree.returncode, err) == (
        1,
        f"sutroctl: {variable}: No closing quotation: less '\n"
        f"          correct {variable}, or unset it\n",
    )


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["top", "--help"]])
def test_help_on_a_full_disk(words):
    assert redirected(">/dev/full", *words) == (1, "", COMPLAINT)


@pytest.mark.parametrize(
    ("words", "status"), [(["--help"], 1), (["status"], 1), (["policy", "check", "--fits"], 2)]
)
def test_a_reader_that_has_ended(sutrod, words, status):
    """With --fits, 1 is an answer."""
    ours, theirs = os.pipe()
    os.close(ours)
    with running("sutroctl", *words, stdout=theirs) as process:
        os.close(theirs)
        _, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, err) == (status, "")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_stdout_without_all_letters(promised, encoding):
    """The bars of a histogram are question marks there."""
    run = process("sutroctl", "latency", "db", PYTHONIOENCODING=encoding)
    assert (run.status, run.err) == (0, "")
    assert "100.0 %  ???" in run.out


def test_ctrl_c_during_an_import(tmp_path):
    (tmp_path / "dbus_next.py").write_text("raise KeyboardInterrupt")
    run = process("sutroctl", "status", PYTHONPATH=f"{tmp_path}:{POLICIES}")
    assert (run.status, run.out, run.err) == (130, "", "")
