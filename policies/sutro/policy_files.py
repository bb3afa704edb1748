# SPDX-License-Identifier: LGPL-2.1-or-later
"""Files of policies: the verbs `policy cat` and `policy edit`."""

import argparse
import asyncio
import contextlib
import errno
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from . import policy, units
from .answer import Answer, must_be_known, reply, wants_json
from .client import Client
from .errors import NotPermitted, SutroError, of_file
from .files import replace
from .pager import without_ctrl_c, words

FOLDER = Path("/etc/sutro/policy.d")
# Of a file, in bytes: sutrod reads the folder FILE.d, too.
NAME_MOST = 253
TEMPLATE = """\
# Settings of {subject}; sutro.policy(5) has the keys, "sutroctl policy show" those in force.
[Match]
{key}={subject}

[X-Sutro]
"""
# In the order of systemctl edit.
VARIABLES = ("SYSTEMD_EDITOR", "EDITOR", "VISUAL")
EDITORS = ("editor", "nano", "vim", "vi")


async def cat(client: Client, args: argparse.Namespace) -> Answer:
    """The files with settings of a unit or cgroup, each below its name."""
    entries = await client.policy(args.unit)
    if not entries:
        await must_be_known(client, args.unit)
    # A source is FILE:LINE, or a client of the bus.
    sources = (entry["source"].rpartition(":")[0] for entry in entries)
    files = dict.fromkeys(source for source in sources if source.startswith("/"))
    return Answer([{"file": file, "text": policy.text_of(file)} for file in files])


def _editor() -> list[str]:
    """The editor of the environment, else the first one of EDITORS; SutroError without any."""
    for variable in VARIABLES:
        if os.environ.get(variable):
            return words(variable)
    for name in EDITORS:
        if found := shutil.which(name):
            return [found]
    raise SutroError("there is no editor", "set EDITOR to one")


def _edit(draft: Path) -> None:
    """Run the editor on a file; SutroError if it fails."""
    command = [*_editor(), str(draft)]
    try:
        with without_ctrl_c():
            status = subprocess.run(command).returncode
    except OSError as error:
        raise SutroError(f"{command[0]}: {error.strerror}", "set EDITOR to another one") from None
    if status:
        raise SutroError(
            f"{command[0]} ended with status {status}; nothing was changed",
            "run it again, or set EDITOR to another editor",
        )


def _again() -> bool:
    """Offer to edit once more; false without a terminal."""
    return sys.stdin.isatty() and reply("Edit it again? [Y/n] ") in ("", "y", "yes")


@contextlib.contextmanager
def _draft(name: str, text: str) -> Iterator[Path]:
    """A new file with a text to edit; a failure or Ctrl-C after an edit keeps it, and names it."""
    # The name shows in the editor and in the sentences of the check.
    draft = Path(tempfile.mkdtemp(prefix="sutro-"), name)
    is_kept = False
    try:
        draft.write_text(text)
        yield draft
    except (SutroError, KeyboardInterrupt, asyncio.CancelledError) as error:
        is_kept = draft.exists() and draft.read_bytes() != text.encode()
        where = f"the edited text is in {draft}"
        if is_kept and isinstance(error, SutroError):
            error.hint = "; ".join(filter(None, (error.hint, where)))
        elif is_kept:
            # At a question, the cursor is behind "^C".
            print(f"\nsutroctl: nothing was changed; {where}", file=sys.stderr)
        raise
    finally:
        if not is_kept:
            shutil.rmtree(draft.parent)


def _is_good(draft: Path, is_json: bool) -> bool:
    """Let the daemon's parser look for mistakes, which it prints."""
    # Mistakes are on stderr; on stdout a JSON has to be alone.
    stdout = subprocess.DEVNULL if is_json else None
    return subprocess.run([policy.sutrod(), "--check", str(draft)], stdout=stdout).returncode == 0


def _edited(draft: Path, is_json: bool) -> str:
    """The text after the editor, without mistakes; SutroError if the user gives up."""
    while True:
        _edit(draft)
        if _is_good(draft, is_json):
            return policy.text_of(str(draft))
        if not _again():
            raise SutroError(
                "the edited text has mistakes; nothing was changed",
                "correct the lines that are named above; sutro.policy(5) has the keys",
            )


def _text(file: Path) -> str | None:
    """The text of a file, None if there is none; SutroError for one that cannot be edited."""
    try:
        mode = file.stat().st_mode
    except FileNotFoundError:
        return None
    except OSError as error:
        raise of_file(file, error) from None
    if file.resolve() == Path(os.devnull):
        raise SutroError(f"{file} is masked by a link to {os.devnull}", f"remove it: rm {file}")
    if not stat.S_ISREG(mode):
        raise SutroError(f"{file}: this is no regular file", f"move it away: mv {file} {file}.old")
    return policy.text_of(str(file))


def _must_be_writable(folder: Path) -> None:
    """Make the folder if there is none; NotPermitted if no file can be written there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # access() of root succeeds in every folder, but for one that is read-only.
        if os.statvfs(folder).f_flag & os.ST_RDONLY:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        if not os.access(folder, os.W_OK):
            raise OSError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise of_file(folder, error, NotPermitted, is_fixed=True) from None


async def edit(client: Client, args: argparse.Namespace) -> Answer:
    """Edit the file of a unit or cgroup in /etc/sutro/policy.d, check it, and put it in force."""
    await client.policy(args.unit)  # sutrod refuses the name now, not after the work
    file = FOLDER / f"{units.control_name(args.unit)}.policy"
    key = "Cgroup" if args.unit.startswith("/") else "Unit"
    if len(os.fsencode(file.name)) > NAME_MOST:
        hint = f"write a file with another name, with {key}={args.unit} in [Match]"
        raise SutroError(f"{file}: the name is too long", hint)
    _must_be_writable(FOLDER)
    there = _text(file)
    before = TEMPLATE.format(key=key, subject=args.unit) if there is None else there
    with _draft(file.name, before) as draft:
        after = _edited(draft, wants_json(args))
        if after == before:
            print("Nothing was changed.", file=sys.stderr)
            return Answer(None)
        # Ctrl-C until now ends it here, before anything is changed.
        await asyncio.sleep(0)
        if _text(file) != there:
            raise SutroError(
                f"{file} was changed by another program while it was edited; nothing was changed",
                f"edit it again: sutroctl policy edit {units.word(args.unit)}",
            )
        replace(file, after.encode(), is_fixed=True)
    try:
        await client.reload_policies()
    except SutroError as error:
        error.message = f"{file} is written, but not in force: {error.message}"
        raise
    except asyncio.CancelledError:
        print(f"sutroctl: {file} is written, but not in force", file=sys.stderr)
        print("          put it in force: sutroctl policy reload", file=sys.stderr)
        raise
    return await policy.shown_one(client, args.unit, is_new=True)
