# SPDX-License-Identifier: LGPL-2.1-or-later
"""The answers of verbs, and calls that several verbs make."""

import argparse
import asyncio
import importlib
import json
import os
import signal
import sys
from collections.abc import Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import reach, units, values
from .client import Client
from .errors import NoQueue, NoSuchPath, NoSuchUnit, SutroError, TooOld
from .pager import page
from .promises import worst_first
from .topology import Topology

Dict = dict[str, Any]


@dataclass
class Answer:
    """The result of a verb: data for JSON and show, and the failure, if there is one.

    Data of None: the verb has printed its results itself. The status is that of
    another program that was run.
    """

    data: Any
    failure: SutroError | None = None
    status: int = 0


def wants_json(args: argparse.Namespace) -> bool:
    """Is the answer to be JSON?"""
    return args.json != "off"


def _json(data: Any, mode: str) -> str:
    """`data` as JSON; `mode` is that of --json, and "auto" is short unless stdout is a terminal."""
    if mode == "short" or (mode == "auto" and not sys.stdout.isatty()):
        return json.dumps(data, separators=(",", ":")) + "\n"
    return json.dumps(data, indent=2) + "\n"


def show_answer(args: argparse.Namespace, data: Any) -> None:
    """Print an answer: as JSON, or as text by the function that `args.show` names."""
    if wants_json(args):
        text = _json(data, args.json)
    else:
        # rich takes 0.1 s to import, and JSON does not need it.
        module, _, function = args.show.rpartition(".")
        show = importlib.import_module("." + module, __package__)
        texts = importlib.import_module(".text", __package__)
        out = texts.console(legend=not args.no_legend)
        with out.capture() as captured:
            getattr(show, function)(out, data)
        text = texts.trimmed(captured.get())
    page(text, not args.no_pager)


async def _known_units(client: Client) -> list[str]:
    """All unit names, for suggestions; none if they cannot be read."""
    try:
        return await client.unit_names()
    except SutroError:
        return []


async def unknown_unit(client: Client, name: str) -> NoSuchUnit:
    """The failure for an unknown unit, with similar names as its hint."""
    meant = units.near(name, await _known_units(client))
    hint = "did you mean " + " or ".join(meant) + "?" if meant else "see: systemctl list-units"
    return NoSuchUnit(f"there is no unit '{name}'", hint)


async def must_be_known(client: Client, unit: str) -> None:
    """Raise NoSuchUnit for a unit that systemd has not found.

    Cgroups that are no units come and go, and may have settings before they exist: never an error.
    """
    if unit.startswith("/"):
        return
    if (await client.unit_settings(unit))["load_state"] == "not-found":
        raise await unknown_unit(client, unit)


def has_cgroup(cgroup: str) -> bool:
    """Whether this machine has a cgroup."""
    return os.path.isdir(f"{reach.ROOT}/sys/fs/cgroup{cgroup}")


async def awaited(client: Client, unit: str, is_here: bool) -> str:
    """A note if there is no such unit or cgroup yet, "" if there is one.

    A cgroup of another machine is not looked up.
    """
    note = "there is no {}; the setting takes effect when there is one"
    if unit.startswith("/"):
        is_missing = is_here and not has_cgroup(unit)
        return note.format(f"cgroup '{unit}'") if is_missing else ""
    try:
        await must_be_known(client, unit)
    except NoSuchUnit as error:
        meant = error.hint.startswith("did you mean")
        return note.format(f"unit '{unit}'") + (f" ({error.hint})" if meant else "")
    return ""


def mistakes_in(properties: Dict) -> Dict:
    """The mistakes in policy files, and these files, each with whether an earlier version holds."""
    files = properties.get("MistakenPolicyFiles", [])  # which a daemon of before does not have
    return {
        "policy_errors": properties.get("PolicyErrors", []),
        "mistaken_files": [{"file": file, "last_good": last_good} for file, last_good in files],
    }


async def without_io(client: Client, unit: str, is_here: bool) -> str:
    """A note if the io controller is not enabled for a unit or cgroup, "" if it is.

    A cgroup of another machine is not looked up.
    """
    cgroup = await client.control_group(unit) if is_here else ""
    try:
        names = Path(f"{reach.ROOT}/sys/fs/cgroup{cgroup}/cgroup.controllers").read_text()
    except OSError:  # it is gone
        return ""
    if not cgroup or "io" in names.split():
        return ""
    return f"the settings have no effect, because {units.without_io(unit)}"


async def on_partition(client: Client, path: str, what: str) -> str:
    """A note if a weight or limit for a path is that of a whole disk, "" if it is not."""
    try:
        node = (await client.resolve(path))["device"]
    except (NoSuchPath, NoQueue):  # it is on a volume that is mounted later
        return ""
    device = Topology(await client.devices()).find(node)
    if not device or device["kind"] != "partition":
        return ""
    disks = " ".join("/dev/" + name for name in device["slaves"])
    return (
        f"the {what} for {path} applies to all of {disks}, because {device['node']} is a partition"
    )


async def promises_if_known(client: Client) -> list[Dict] | None:
    """All promises, those that do not hold first; None from a daemon that is too old for them.

    For verbs with other results, too. SutroError for any other failure of the call.
    """
    try:
        return worst_first(await client.promises())
    except TooOld:
        return None


async def capacities_if_known(client: Client) -> list[Dict]:
    """Declared capacities, in bytes or operations per second; none from an older daemon."""
    try:
        return await client.capacities()
    except TooOld:
        return []


async def resyncs_if_known(client: Client) -> list[Dict]:
    """All resyncs in progress; none from a daemon that is too old for them."""
    try:
        return await client.resyncs()
    except TooOld:
        return []


async def policy_if_known(client: Client, subject: str) -> list[Dict]:
    """The settings of a unit or cgroup that are in force; none from an older daemon."""
    try:
        return [entry for entry in await client.policy(subject) if entry["in_force"]]
    except TooOld:
        return []


def policy_weights(entries: list[Dict]) -> list[Dict]:
    """The weights among settings of policies: path ("": of all devices), weight, source."""
    return [
        {"path": values.path(entry["value"]), "weight": int(entry["value"].split()[-1])}
        | {"source": entry["source"]}
        for entry in entries
        if entry["key"] == "Weight"
    ]


def reply(question: str) -> str:
    """The answer to a question on the terminal, in small letters; "" for an empty line.

    Ctrl-C ends it with KeyboardInterrupt. The handler of asyncio would wait for the line.
    """
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        print(question, end="", file=sys.stderr, flush=True)
        return sys.stdin.readline().strip().lower()
    finally:
        signal.signal(signal.SIGINT, before)


def interrupted() -> asyncio.Event:
    """An event that Ctrl-C sets from now on, for verbs that end in this way."""
    event = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, event.set)
    return event


async def wait(event: asyncio.Event, seconds: float) -> bool:
    """Wait for an event for at most `seconds`; return whether it was set."""
    if event.is_set():
        return True
    try:
        await asyncio.wait_for(event.wait(), max(seconds, 0))
    except TimeoutError:
        return False
    return True


async def answered(event: asyncio.Event, call: Coroutine[Any, Any, Any]) -> Any:
    """The result of a call; None if the event is set before there is one."""
    tasks = [asyncio.ensure_future(one) for one in (call, event.wait())]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return None if event.is_set() else tasks[0].result()
    finally:
        for task in tasks:
            task.cancel()
        # asyncio prints a failure that is not retrieved.
        await asyncio.gather(*tasks, return_exceptions=True)
