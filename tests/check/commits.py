# SPDX-License-Identifier: LGPL-2.1-or-later
"""Messages of commits: the rules, and the history that they are judged in.

    python3 tests/check/commits.py                 what the rules find in the commits after SINCE
    python3 tests/check/commits.py --save FILE     write these commits, for a copy without history

A message has the subject `room: summary`, an empty line, a body, and Signed-off-by. A room is a
file or folder of this tree, as its path or the last part of it, with or without suffix, or one of
WORDS. Commas divide several rooms:

    tests/sim, kernel: disks have latencies of writes

CONTRIBUTING.md has the rules for people.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
# This commit and those before it are not judged.
SINCE = "362f3630468f58382e701d8a65c02c639efde4f5"
SUMMARY_MAX = 72
# Rooms that are no file: kernel/ with its tests, sutroctl, and all of the tree.
WORDS = ("elevator", "cli", "tree")
# Around a message; the names of changed files follow.
BEGIN, END = "\x01", "\x02"
SIGNED = re.compile(r"^Signed-off-by: \S.* <\S+@\S+>$", re.M)
# Lines such as "Fixes: 1234", which are no body.
TRAILER = re.compile(r"^[A-Z][a-z]+(-[a-z]+)*: ")
REMEDY = 'reword it: "git commit --amend", or "git rebase --interactive {id}^" for an older commit'


class HistoryError(Exception):
    """The history cannot be read."""


@dataclass(frozen=True)
class Commit:
    """The hash, the message and the changed files of a commit."""

    id: str
    message: str
    files: list[str] = field(default_factory=list)

    @property
    def title(self) -> str:
        """A short hash and the subject."""
        return f"{self.id[:8]} {self.message.partition(chr(10))[0]}"


@dataclass(frozen=True)
class History:
    """The commits to judge, the newest first, and a remark about commits that are missing."""

    commits: list[Commit]
    remark: str = ""


def git(folder: Path, *words: str) -> str:
    """The output of git in a clone, whoever owns it."""
    settings = ["-c", f"safe.directory={folder}", "-c", "core.quotePath=false"]
    command = ["git", *settings, "-C", str(folder), *words]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        raise HistoryError(f"{folder}: git cannot read the history: {done.stderr.strip()}")
    return done.stdout


def is_before(folder: Path, since: str) -> bool:
    """Is a commit there, and in the history of HEAD?"""
    try:
        git(folder, "merge-base", "--is-ancestor", since, "HEAD")
    except HistoryError:
        return False
    return True


def read(folder: Path, since: str) -> History:
    """The commits of a clone after `since`, or all that are there if the clone is shallow."""
    remark, commits = "", "HEAD"
    if is_before(folder, since):
        commits = f"{since}..HEAD"
    elif git(folder, "rev-parse", "--is-shallow-repository").strip() == "true":
        remark = (
            f"{folder}: the clone is shallow, so commits after {since[:8]} are missing and not "
            'judged; for all of them: "git fetch --unshallow"'
        )
    else:
        raise HistoryError(
            f"{folder}: {since[:8]} is not in the history of HEAD; state another commit as SINCE "
            "of tests/check/commits.py"
        )
    log = git(folder, "log", "--name-only", f"--format={BEGIN}%H%n%B{END}", commits)
    return History([parse(record) for record in log.split(BEGIN)[1:]], remark)


def parse(record: str) -> Commit:
    """A commit of the log, with the names of changed files."""
    text, _, names = record.partition(END)
    commit, _, message = text.partition("\n")
    return Commit(commit, message.strip(), names.split("\n\n")[-1].strip().splitlines())


def save(history: History, file: Path) -> None:
    """Write a history."""
    file.write_text(json.dumps(asdict(history)))


def load(file: Path) -> History:
    """The history that save() has written."""
    found = json.loads(file.read_text())
    return History([Commit(**one) for one in found["commits"]], found["remark"])


def rooms(files: Iterable[str]) -> set[str]:
    """The rooms of these files."""
    found = set()
    for name in files:
        for path in (Path(name), *Path(name).parents[:-1]):
            found |= {str(path), path.name, str(path.with_suffix("")), path.stem}
    return found


def judge(commit: Commit, known: set[str]) -> list[str]:
    """The mistakes in a message; known: rooms besides those of its own files."""
    subject, _, rest = commit.message.partition("\n")
    room, colon, summary = subject.partition(": ")
    if not colon or not summary:
        return ['the subject is not "room: summary"']
    known = known | rooms(commit.files) | set(WORDS)
    found = [
        f'"{one}" is not a room: name a file or folder of the tree, or one of {", ".join(WORDS)}'
        for one in room.split(", ")
        if one not in known
    ]
    if len(summary) > SUMMARY_MAX:
        found.append(f"the summary has {len(summary)} characters: {SUMMARY_MAX} are allowed")
    if rest and not rest.startswith("\n"):
        found.append("the second line is not empty")
    if all(TRAILER.match(line) for line in rest.splitlines() if line.strip()):
        found.append("the body is missing: state the reason and the measurements")
    if not SIGNED.search(rest):
        found.append('"Signed-off-by: NAME <ADDRESS>" is missing: commit with --signoff')
    return found


def problems(history: History, files: Iterable[str]) -> list[str]:
    """A paragraph for each commit with mistakes; files: of the tree."""
    known = rooms(files)
    return [
        "\n  ".join([commit.title, *mistakes, REMEDY.format(id=commit.id[:8])])
        for commit in history.commits
        if (mistakes := judge(commit, known))
    ]


def main(words: list[str]) -> str:
    """Run the program, and return the problems."""
    try:
        history = read(TOP, SINCE)
        if words[:1] == ["--save"]:
            save(history, Path(words[1]))
            return ""
        print(history.remark, end="\n" if history.remark else "", file=sys.stderr)
        return "\n".join(problems(history, git(TOP, "ls-files").splitlines()))
    except (HistoryError, OSError) as error:
        return str(error)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]) or None)
