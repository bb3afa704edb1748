# SPDX-License-Identifier: LGPL-2.1-or-later
"""Messages of commits: those of this history, and the rules on a made-up repository."""

import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import commits
import pytest
from tree import TOP, files

BODY = "A reason.\n\nSigned-off-by: A B <a@b.c>"
GOOD = f"daemon: a summary\n\n{BODY}"
WORDS = "elevator, cli, tree"


def history() -> commits.History | None:
    """Of this tree; the lab's copy has none, and a file in the place of it."""
    if saved := os.environ.get("SUTRO_HISTORY"):
        return commits.load(Path(saved))
    return commits.read(TOP, commits.SINCE) if (TOP / ".git").exists() else None


def test_messages_of_this_tree() -> None:
    """Each commit after SINCE has a message as CONTRIBUTING.md requires."""
    found = history()
    remark = found.remark if found else f"{TOP} has no history: no message of a commit is judged"
    if remark:
        warnings.warn(remark, stacklevel=1)
    mistakes = commits.problems(found, files()) if found else []
    assert not mistakes, "\n".join(mistakes)


Repository = Callable[..., str]


@pytest.fixture
def commit(tmp_path: Path) -> Repository:
    """A function that makes a commit with a message, and returns its hash."""
    folder = tmp_path / "clone"
    folder.mkdir()
    settings = ["-c", "user.name=A B", "-c", "user.email=a@b.c", "-c", "commit.gpgSign=false"]
    commits.git(folder, "init", "--quiet")

    def make(message: str = GOOD, file: str = "daemon/bus/varlink.c") -> str:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        with open(folder / file, "a") as opened:
            opened.write("line\n")
        commits.git(folder, "add", file)
        commits.git(folder, *settings, "commit", "--quiet", f"--message={message}")
        return commits.git(folder, "rev-parse", "HEAD").strip()

    return make


@pytest.fixture
def clone(commit: Repository, tmp_path: Path) -> Path:
    """The folder of the made-up repository."""
    return tmp_path / "clone"


@pytest.mark.parametrize(
    ("message", "mistakes"),
    [
        (GOOD, []),
        (f"tests/sim, elevator: {'x' * 72}\n\nWords: more.\n{BODY}", []),
        (f"bus: colons: allowed\n\n{BODY}", []),
        (f"varlink: a file without suffix\n\n{BODY}", []),
        (f"a summary\n\n{BODY}", ['the subject is not "room: summary"']),
        (f"daemon:a summary\n\n{BODY}", ['the subject is not "room: summary"']),
        (
            f"daemons, tests: a summary\n\n{BODY}",
            [f'"daemons" is not a room: name a file or folder of the tree, or one of {WORDS}'],
        ),
        (
            f"daemon: {'x' * 73}\n\n{BODY}",
            ["the summary has 73 characters: 72 are allowed"],
        ),
        (f"daemon: a summary\n{BODY}", ["the second line is not empty"]),
        (
            "daemon: a summary\n\nFixes: 1234\nSigned-off-by: A B <a@b.c>",
            ["the body is missing: state the reason and the measurements"],
        ),
        (
            "daemon: a summary\n\nA reason, without the address of A B.\n\nSigned-off-by: A B",
            ['"Signed-off-by: NAME <ADDRESS>" is missing: commit with --signoff'],
        ),
        (
            "daemon: a summary",
            [
                "the body is missing: state the reason and the measurements",
                '"Signed-off-by: NAME <ADDRESS>" is missing: commit with --signoff',
            ],
        ),
    ],
)
def test_rules(commit: Repository, clone: Path, message: str, mistakes: list[str]) -> None:
    """The report has the hash, the subject, each mistake, and the command that mends it."""
    since = commit()
    bad = commit(message)[:8]
    title, *lines = "".join(
        commits.problems(commits.read(clone, since), ["tests/sim/a.py"]) or [f"{bad} good"]
    ).split("\n  ")
    assert title.startswith(bad)
    assert lines[:-1] == mistakes
    assert not mistakes or f'"git rebase --interactive {bad}^"' in lines[-1]


def test_older_commits_are_not_judged(commit: Repository, clone: Path) -> None:
    commit("no message of today")
    since = commit("neither is this")
    assert commits.problems(commits.read(clone, since), []) == []
    wrong = [commit("wrong")[:8], commit()[:8], commit("wrong again")[:8]]
    found = commits.problems(commits.read(clone, since), [])
    assert [text.partition(" ")[0] for text in found] == [wrong[2], wrong[0]]


def test_room_that_is_gone(commit: Repository, clone: Path) -> None:
    """A commit may name what it changes, although a later commit removes that."""
    since = commit()
    commit(f"rig: a summary\n\n{BODY}", "tests/rig/a b.py")
    commits.git(clone, "rm", "--quiet", "tests/rig/a b.py")
    commit()
    found = commits.read(clone, since)
    assert found.commits[1].files == ["tests/rig/a b.py"]
    assert commits.problems(found, []) == []


def test_shallow_clone(commit: Repository, clone: Path, tmp_path: Path) -> None:
    """Missing commits are stated, and the commits that are there are judged."""
    since = commit()
    hidden, wrong = commit("not in the clone"), commit("wrong")
    commit()
    copy = tmp_path / "copy"
    commits.git(tmp_path, "clone", "--quiet", "--depth=2", clone.as_uri(), str(copy))
    found = commits.read(copy, since)
    assert f"commits after {since[:8]} are missing" in found.remark
    assert '"git fetch --unshallow"' in found.remark
    (text,) = commits.problems(found, [])
    assert text.startswith(wrong[:8])
    commits.git(copy, "fetch", "--quiet", "--unshallow")
    found = commits.read(copy, since)
    assert not found.remark
    assert hidden[:8] in "".join(commits.problems(found, []))


@pytest.mark.parametrize("since", ["", "0" * 40, "of another branch"])
def test_first_commit_that_is_not_there(commit: Repository, clone: Path, since: str) -> None:
    """A history that is whole needs SINCE; a folder without history has an error, too."""
    commit()
    if since == "of another branch":
        since = commit()
        commits.git(clone, "reset", "--quiet", "--hard", "HEAD^")
    with pytest.raises(commits.HistoryError, match="state another commit as SINCE"):
        commits.read(clone, since)
    with pytest.raises(commits.HistoryError, match="git cannot read the history"):
        commits.read(clone.parent, since)


def test_saved_history(commit: Repository, clone: Path, tmp_path: Path) -> None:
    """The file is as good as the clone."""
    since = commit()
    commit("wrong")
    found = commits.read(clone, since)
    commits.save(found, tmp_path / "history")
    assert commits.load(tmp_path / "history") == found


def test_program(commit: Repository, clone: Path, tmp_path: Path) -> None:
    """It runs without other modules, as in the lab, where Python may have no pytest."""
    since = commit()
    text = Path(commits.__file__).read_text().replace(commits.SINCE, since)
    program, saved = clone / "tests/check/commits.py", tmp_path / "history"
    program.parent.mkdir(parents=True)
    program.write_text(text)

    def run(*words: str) -> tuple[int, str]:
        command = [sys.executable, "-I", "-S", str(program), *words]
        done = subprocess.run(command, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    assert run() == (0, "")
    wrong = commit("wrong")
    status, output = run()
    assert status == 1 and output.startswith(f"{wrong[:8]} wrong\n")
    assert run("--save", str(saved)) == (0, "")
    assert commits.load(saved) == commits.read(clone, since)
    status, output = run("--save", "/nowhere/history")
    assert status == 1 and output.endswith("No such file or directory: '/nowhere/history'\n")
