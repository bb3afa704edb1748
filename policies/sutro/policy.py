# SPDX-License-Identifier: LGPL-2.1-or-later
"""Settings of units and cgroups: the verbs below `policy`."""

import argparse
import asyncio
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from . import reach, units, values
from .answer import (
    Answer,
    awaited,
    capacities_if_known,
    mistakes_in,
    must_be_known,
    on_partition,
    show_answer,
    wants_json,
    without_io,
)
from .client import Client
from .errors import BadPolicy, OutOfReach, SutroError, UsageError, of_file
from .program import Program

Dict = dict[str, Any]

# The exit status of check --fits by verdict; 2 is an error.
FITS = {"fits": 0, "does-not-fit": 1, "unknown": 3}
# The verdicts that come first in a list.
WORST = ("does-not-fit", "unknown")

# The smallest request of most programs.
PAGE_BYTES = 4096

CLIENT, RUNTIME, PERSISTENT = "client", "runtime", "persistent"
# Where the daemon keeps what was set over the bus; sources begin with it.
CONTROL = {RUNTIME: "/run/sutro/policy.control/", PERSISTENT: "/etc/sutro/policy.control/"}


def lifetime(args: argparse.Namespace) -> str:
    """The lifetime of a setting, from the options: client, runtime or persistent."""
    return CLIENT if getattr(args, "client", False) else RUNTIME if args.runtime else PERSISTENT


def assignments(texts: list[str]) -> list[tuple[str, str]]:
    """KEY=VALUE as typed, in pairs; UsageError for another form, and for one that cannot hold.

    The daemon checks the rest.
    """
    pairs = []
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise UsageError(
                f"'{text}' is no assignment: allowed is KEY=VALUE",
                "for example: ReadBandwidthMin='/dev/vg/db 200M'; see sutro.policy(5)",
            )
        pairs.append((key.strip(), value.strip()))
    _must_all_hold(pairs)
    return pairs


def _must_all_hold(pairs: list[tuple[str, str]]) -> None:
    """UsageError for an assignment that a later one replaces or takes back."""
    for index, (key, value) in enumerate(pairs):
        for later_key, later in pairs[index + 1 :]:
            is_replaced = not later or values.place(value) == values.place(later)
            if key == later_key and value and is_replaced:
                raise UsageError(
                    f"{key}={value} and {key}={later}: only the later one would hold",
                    f"omit one of them; {key}= may stand once for each path",
                )


# check

# The bus carries no other text.
TO_UTF8 = "write the file as UTF-8 text"


def sutrod() -> str:
    """The path of the daemon, which is rarely in the PATH of a user; SutroError without it."""
    path = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin"))
    found = shutil.which("sutrod", path=path)
    if not found:
        raise SutroError("there is no sutrod in PATH or /usr/sbin", "install it: apt install sutro")
    return found


def text_of(file: str) -> str:
    """The text of a file that can be sent over the bus; SutroError for any other."""
    try:
        text = Path(file).read_bytes().decode()
    except OSError as error:
        raise of_file(file, error) from None
    except UnicodeDecodeError:
        raise SutroError(f"{file}: this is not UTF-8", TO_UTF8) from None
    if "\0" in text:
        raise SutroError(f"{file}: this has a zero byte, so it is no text", TO_UTF8)
    return text


def _worst_first(devices: list[Dict]) -> list[Dict]:
    """Those without room, then the unknown ones; devices by path, and floors by unit and key.

    sutrod has them in the order in which it has found the cgroups.
    """

    def rank(device: Dict) -> tuple:
        verdict = device["verdict"]
        return (WORST.index(verdict) if verdict in WORST else len(WORST), device["path"])

    for device in devices:
        device["floors"].sort(key=lambda floor: (floor["unit"], floor["key"], floor["path"]))
    return sorted(devices, key=rank)


async def check(client: Client | None, args: argparse.Namespace) -> Answer:
    """Find mistakes in policy files; with --fits: do the devices have room for the floors?"""
    if args.fits:
        assert client
        files = [(os.path.abspath(file), text_of(file)) for file in args.file]
        found = await client.check_policies(files)
        found["devices"] = _worst_first(found["devices"])
        return Answer(found, status=FITS.get(found["verdict"], FITS["unknown"]))
    files = ["./" + file if file.startswith("-") else file for file in args.file]
    command = [sutrod(), "--check"]
    if not wants_json(args):
        sys.stdout.flush()
        return Answer(None, status=subprocess.run([*command, *files]).returncode)
    data: Dict = {"files": args.file, "mistakes": [], "notes": []}
    status = 0
    for file in files:
        run = subprocess.run([*command, file], capture_output=True, text=True)
        # A file with a mistake has no notes.
        data["mistakes" if run.returncode else "notes"] += run.stderr.splitlines()
        status = status or run.returncode
    return Answer(data, status=status)


# show


async def show(client: Client, args: argparse.Namespace) -> Answer:
    """Settings of a unit or cgroup, or of all of them: key, value, source, and those in force."""
    if args.unit:
        return await shown_one(client, args.unit)
    followed = await client.units() + await client.promises()
    answer = await shown(client, sorted({unit["unit"] or unit["cgroup"] for unit in followed}))
    answer.data["units"] = [unit for unit in answer.data["units"] if unit["policy"]]
    return answer


async def shown_one(client: Client, unit: str, is_new: bool = False) -> Answer:
    """The settings of a unit or cgroup; NoSuchUnit for one without any that is not there.

    The note is about a unit that does not run: the daemon has not read its own files.
    """
    answer = await shown(client, [unit])
    if not answer.data["units"][0]["policy"] and not is_new:
        await must_be_known(client, unit)
    settings = {} if unit.startswith("/") else await client.unit_settings(unit)
    if settings and settings["load_state"] == "loaded" and not settings["active"]:
        answer.data["note"] = f"{unit} is not active: its section [X-Sutro] is read when it starts"
    return answer


async def shown(client: Client, names: list[str]) -> Answer:
    """The settings of these units and cgroups, and the mistakes in all policy files."""
    properties = await client.properties()
    every = await asyncio.gather(*map(client.policy, names))
    found = [{"unit": n, "policy": entries} for n, entries in zip(names, every, strict=True)]
    return Answer({"units": found, "note": ""} | mistakes_in(properties))


# set, reset, reload


async def set_(client: Client, args: argparse.Namespace) -> Answer:
    """Set policy keys of a unit or cgroup, all or nothing; with --client hold them until Ctrl-C."""
    pairs = assignments(args.assignment)
    if not args.host:  # the paths of another machine are not here
        _must_be_in_reach(args.unit, pairs)
    if args.client:
        await client.properties()  # a sutrod that is not there is waited for later, but not now
        await Held(pairs, args).run()
        return Answer(None)
    try:
        await client.set_policy(args.unit, pairs, lifetime(args))
    except BadPolicy as error:
        if units.suffix(args.unit) == "scope" and "persistent" in error.message:
            error.hint = "add --runtime, or --client"
        raise
    return Answer(await _outcome(client, args, pairs))


def _must_be_in_reach(unit: str, pairs: list[tuple[str, str]]) -> None:
    """OutOfReach for a path that sutrod cannot follow to a block device."""
    for path in filter(None, (values.path(value) for _, value in pairs)):
        if why := reach.obstacle(path):
            raise OutOfReach(
                f"{unit}: '{path}' is out of reach of sutrod: {why}; nothing was changed",
                "name a volume of the system, see: sutroctl tree; for one that is mounted later: "
                f"sutroctl policy edit {units.word(unit)}",
            )


def _contradictions(entries: list[Dict]) -> list[str]:
    """Notes about floors in force that are above the limit of the same unit and path."""
    found = []
    in_force = [entry for entry in entries if entry["in_force"]]
    limits = {(e["key"], values.path(e["value"])): e["value"] for e in in_force}
    for entry in in_force:
        key, text = entry["key"], entry["value"]
        limit = limits.get((values.CEILING_OF.get(key, ""), values.path(text)))
        if limit and values.rate(key, text) > values.rate(values.CEILING_OF[key], limit):
            found.append(
                f"{key}={text} cannot hold: {values.CEILING_OF[key]}={limit} is less; change one"
            )
    return found


def _without_suffix(pairs: list[tuple[str, str]]) -> list[str]:
    """Notes about rates below a page per second, whose suffix may be missing."""
    return [
        f"{key}={value} is less than a page of 4096 bytes per second; "
        "rates have the suffixes K, M, G and T, such as 200M"
        for key, value in pairs
        if values.KINDS.get(key) == values.BYTES and 0 < values.rate(key, value) < PAGE_BYTES
    ]


async def _settings_of_disks(client: Client, pairs: list[tuple[str, str]]) -> list[str]:
    """Notes about limits and weights for partitions, which are those of their disks."""
    limits = [(key, value) for key, value in pairs if value and key in values.CEILINGS]
    limited = {values.path(v): None for k, v in limits if values.rate(k, v) != values.INFINITY}
    weighted = {values.path(value): None for key, value in pairs if value and key == "Weight"}
    found = []
    for path in filter(None, limited):
        if note := await on_partition(client, path, "limit"):
            found.append(note + "; of several the lowest holds")
    for path in filter(None, weighted):
        found += filter(None, [await on_partition(client, path, "weight")])
    return found


async def _outcome(client: Client, args: argparse.Namespace, pairs: list[tuple[str, str]]) -> Dict:
    """The settings in force after a change, with a note.

    The note is about a unit or cgroup that does not exist yet or has no io controller, a class
    without a leaf that has classes, rates of a few bytes, floors above a limit of the unit, limits
    and weights for partitions, and floors beyond a declared capacity.
    """
    notes, unit = [], args.unit
    entries = await client.policy(unit)
    keys = {key for key, value in pairs if value}
    if keys:
        note = await awaited(client, unit, not args.host)
        notes += filter(None, [note or await without_io(client, unit, not args.host)])
    if "Class" in keys and not any(d.get("scheduler") == "sutro" for d in await client.devices()):
        notes.append("Class= has no effect until a leaf uses sutro: sutroctl use DEVICE")
    notes += _without_suffix([(key, value) for key, value in pairs if value])
    notes += _contradictions(entries)
    notes += await _settings_of_disks(client, pairs)
    for one in await capacities_if_known(client):
        # With Admission=refuse the daemon has not set it.
        if one["key"] in keys and one["promised"] > one["capacity"]:
            promised, capacity = (
                values.short(one["key"], one[k]) for k in ("promised", "capacity")
            )
            over = (
                f"{one['path']} can promise {capacity} ({one['key']}), and {promised} are promised"
            )
            notes.append(over)
    return {
        "unit": unit,
        "lifetime": lifetime(args),
        "said": [{"key": key, "value": value} for key, value in pairs],
        "policy": entries,
        "note": "; ".join(notes),
    }


class Held(Program):
    """`policy set --client`: a program with one setting."""

    def __init__(self, pairs: list[tuple[str, str]], args: argparse.Namespace) -> None:
        super().__init__()
        self.host = args.host
        self._pairs, self._args = pairs, args

    async def state_again(self) -> None:
        """Set it again in a new sutrod."""
        await self.client.set_policy(self._args.unit, self._pairs, CLIENT)
        show_answer(self._args, await _outcome(self.client, self._args, self._pairs))

    async def step(self) -> float:
        """Nothing changes with time: return an hour, in seconds."""
        return 3600.0


async def reset(client: Client, args: argparse.Namespace) -> Answer:
    """Remove settings of a unit or cgroup that were made at run time: all, or some keys."""
    folder = CONTROL[lifetime(args)]
    entries = await client.policy(args.unit)
    set_here = dict.fromkeys(e["key"] for e in entries if e["source"].startswith(folder))
    if args.key:
        _must_be_set(args, folder, set_here)
        pairs = [(key, "") for key in args.key]
        await client.set_policy(args.unit, pairs, lifetime(args))
        return Answer(await _outcome(client, args, pairs))
    mistakes = await _mistakes(client, f"{folder}{units.control_name(args.unit)}.policy:")
    if not set_here and not mistakes:
        if not entries:
            await must_be_known(client, args.unit)
        return Answer(_nothing_to_reset(args, entries))
    await client.reset_policy(args.unit, lifetime(args))
    outcome = await _outcome(client, args, [(key, "") for key in set_here])
    return Answer(outcome | ({"note": f"gone with its file: {mistakes[0]}"} if mistakes else {}))


def _must_be_set(args: argparse.Namespace, folder: str, set_here: dict[str, None]) -> None:
    """SutroError for a key to reset that has no setting here."""
    lost = [key for key in args.key if key not in set_here]
    if unknown := [f"'{key}'" for key in lost if key not in values.KEYS]:
        raise SutroError(f"{', '.join(unknown)} is no key of a policy", "see: man sutro.policy")
    if lost:
        there = ", ".join(set_here) or "nothing"
        raise SutroError(
            f"{', '.join(lost)} of {args.unit} is not set in {folder}: there is {there}",
            f"to see where it is set: sutroctl policy show {units.word(args.unit)}",
        )


async def _mistakes(client: Client, file: str) -> list[str]:
    """The mistakes that the daemon found in one file."""
    every = (await client.properties()).get("PolicyErrors", [])
    return [mistake for mistake in every if mistake.startswith(file)]


def _nothing_to_reset(args: argparse.Namespace, entries: list[Dict]) -> Dict:
    """The outcome without a change, with the reason."""
    note = f"nothing to take back: nothing is set in {CONTROL[lifetime(args)]}"
    other = PERSISTENT if args.runtime else RUNTIME
    if any(entry["source"].startswith(CONTROL[other]) for entry in entries):
        note += ", but something is " + ("without" if args.runtime else "with") + " --runtime"
    return {
        "unit": args.unit,
        "lifetime": lifetime(args),
        "said": [],
        "policy": entries,
        "note": note,
    }


async def reload(client: Client, _args: argparse.Namespace) -> Answer:
    """Let the daemon read all policy files again; mistakes in them are a failure."""
    await client.reload_policies()
    data = mistakes_in(await client.properties())
    failure = None
    if mistakes := data["policy_errors"]:
        files = len({mistake.split(":")[0] for mistake in mistakes})
        failure = SutroError(
            f"{len(mistakes)} mistakes in {files} files" if len(mistakes) > 1 else "a mistake",
            "correct it, and try it first: sutroctl policy check FILE",
        )
    return Answer(data, failure)
