# SPDX-License-Identifier: LGPL-2.1-or-later
"""Files of policies: the verbs `policy cat` and `policy edit`."""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from . import policy, units
from .answer import Answer, reply
from .client import Client
from .errors import NotPermitted, SutroError
from .files import replace
from .pager import words

FOLDER = Path("/etc/sutro/policy.d")
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
        await policy.must_be_known(client, args.unit)
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
        status = subprocess.run(command).returncode
    except OSError as error:
        raise SutroError(f"{command[0]}: {error.strerror}", "set EDITOR to another one") from None
    if status:
        raise SutroError(f"{command[0]} ended with status {status}; nothing was changed")


def _again() -> bool:
    """Offer to edit once more; false without a terminal."""
    return sys.stdin.isatty() and reply("Edit it again? [Y/n] ") in ("", "y", "yes")


def _edited(file: Path, before: str) -> str:
    """The text after the editor, without mistakes; SutroError if the user gives up."""
    with tempfile.TemporaryDirectory(prefix="sutro-") as folder:
        # The name shows in the editor and in the sentences of the check.
        draft = Path(folder, file.name)
        draft.write_text(before)
        while True:
            _edit(draft)
            if subprocess.run([policy.sutrod(), "--check", str(draft)]).returncode == 0:
                return policy.text_of(str(draft))
            if not _again():
                raise SutroError("the edited text has mistakes; nothing was changed")


async def edit(client: Client, args: argparse.Namespace) -> Answer:
    """Edit the file of a unit or cgroup in /etc/sutro/policy.d, check it, and put it in force."""
    file = FOLDER / f"{units.control_name(args.unit)}.policy"
    if not os.access(FOLDER, os.W_OK):
        raise NotPermitted(f"{FOLDER} cannot be written", "run it as root (sudo)")
    key = "Cgroup" if args.unit.startswith("/") else "Unit"
    is_new = not file.exists()
    before = TEMPLATE.format(key=key, subject=args.unit) if is_new else policy.text_of(str(file))
    after = _edited(file, before)
    if after == before:
        print("Nothing was changed.", file=sys.stderr)
        return Answer(None)
    replace(file, after.encode())
    await client.reload_policies()
    return await policy.show(client, args)
