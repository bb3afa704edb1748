# SPDX-License-Identifier: LGPL-2.1-or-later
"""The verb measure: the rates of a device, measured with fio and kept as its capacity.

Only reads are measured: writes would destroy data. fio reads at random places, since a floor has
to hold for requests of any kind, in a scope of the class idle, so that other units are served
first on leaves with the scheduler sutro. Nine tenths of the rates are kept, in a drop-in of
sutrod.conf that names the device.
"""

import argparse
import asyncio
import contextlib
import json
import os
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from . import declared, reach, units, values
from .answer import Answer, capacities_if_known, reply
from .client import Client
from .errors import NotPermitted, SutroError, UsageError
from .files import replace
from .policy import text_of
from .topology import Topology, label

Dict = dict[str, Any]

FOLDER = Path("/etc/sutro/sutrod.conf.d")
PART = 0.9
SECONDS_MOST = 600
# Key of the floors, word in sutrod.conf, size of a request, value of fio.
STEPS = (
    ("ReadBandwidthMin", "read", "128k", "bw_bytes"),
    ("ReadIOPSMin", "read-iops", "4k", "iops"),
)
# The rates that are not measured, as declared by hand.
OTHERS = {"WriteBandwidthMin": "write", "WriteIOPSMin": "write-iops"}
KEYS = {word: key for key, word, _, _ in STEPS} | {word: key for key, word in OTHERS.items()}


def check(args: argparse.Namespace) -> None:
    """Find mistakes on the command line before any call; UsageError."""
    if not 1 <= args.seconds <= SECONDS_MOST:
        raise UsageError(f"--seconds={args.seconds}: allowed is 1 to {SECONDS_MOST}")
    _must_be_a_word(args.device)
    if not args.yes and not sys.stdin.isatty():
        raise UsageError("there is no terminal to confirm the measurement on", "add --yes")


def _must_be_a_word(path: str) -> None:
    """UsageError for a path that no line of sutrod.conf can have."""
    if any(c.isspace() for c in path):
        raise UsageError(
            f"'{path}' has a blank: sutrod.conf has no such paths",
            "name the device by a path without blanks, such as /dev/vg/db",
        )


def _confirm(name: str, users: list[str], others: list[str], args: argparse.Namespace) -> None:
    """Print the consequences, and require a yes on the terminal; SutroError without it.

    `others` are leaves on which the class idle has no effect.
    """
    seconds = args.seconds * len(STEPS)
    how = "" if others else ", in class idle"
    print(f"{name} will be read at full speed for {seconds} s{how}.", file=sys.stderr)
    if others:
        print(
            f"The scheduler of {', '.join(others)} is not sutro, so the reads are not in class "
            "idle there: other units will be slower.",
            file=sys.stderr,
        )
    if users:
        print(f"In use by {', '.join(users)}: the result may be too low.", file=sys.stderr)
    if not args.yes and reply("Continue? [y/N] ") not in ("y", "yes"):
        raise SutroError("nothing was measured")


async def _users(client: Client, node: str, leaves: list[str]) -> list[str]:
    """Units that used the device, or a leaf of it, in the last second."""
    return sorted(
        {
            row["unit"] or row["cgroup"]
            for row in await client.usage()
            if row["device"] == node or {leaf["leaf"] for leaf in row["leaves"]} & set(leaves)
        }
    )


@contextlib.asynccontextmanager
async def _progress(text: str, seconds: int) -> AsyncIterator[None]:
    """Print what is done, and on a terminal the seconds that are left of it."""

    async def count() -> None:
        for left in range(seconds, 0, -1):
            print(f"\r{text}, {left} s left ", end="", file=sys.stderr, flush=True)
            await asyncio.sleep(1)

    if not sys.stderr.isatty():
        print(f"{text}, {seconds} s ...", file=sys.stderr, flush=True)
        yield
        return
    counting = asyncio.create_task(count())
    try:
        yield
    finally:
        counting.cancel()
        print(file=sys.stderr, flush=True)


async def _fio(node: str, size: str, seconds: int, scope: str) -> Dict:
    """The results of fio for random reads of `size`, in a scope with a cgroup of its own.

    SutroError with the last line of fio if it fails.
    """
    command = ["systemd-run", "--quiet", "--scope", f"--unit={scope}", "--property=IOWeight=100"]
    command += ["--", "fio", "--name=measure", f"--filename={node}", "--readonly", "--direct=1"]
    command += [
        "--rw=randread",
        f"--bs={size}",
        "--ioengine=libaio",
        "--iodepth=32",
        "--norandommap",
    ]
    command += ["--time_based", f"--runtime={seconds}", "--output-format=json"]
    try:
        process = await asyncio.create_subprocess_exec(
            *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
    except FileNotFoundError as error:
        raise SutroError(f"there is no {error.filename}", "it needs systemd") from None
    try:
        out, err = await process.communicate()
    finally:
        if process.returncode is None:
            process.terminate()
    try:
        # Notes of fio stand before the object.
        return json.loads(out[out.index(b"{") :])["jobs"][0]["read"]
    except (ValueError, LookupError):
        lines = (err or out).decode(errors="replace").strip().splitlines() or ["no output"]
        hint = "run it as root, with fio installed: apt install fio"
        raise SutroError(
            f"fio on {node} ended with status {process.returncode}: {lines[-1]}", hint
        ) from None


def _merged(before: str, path: str, line: str) -> str:
    """The text of a drop-in with this line for the path; its other lines stay."""
    same = re.compile(rf"^[ \t]*Device[ \t]*=[ \t]*{re.escape(path)}(?:[ \t].*)?$", re.MULTILINE)
    if same.search(before):
        return same.sub(lambda _: line, before)
    return f"{before}[Capacity]\n{line}\n"


def _keep(path: str, rates: dict[str, int]) -> Path:
    """Write the capacity of a path in its drop-in; return the file.

    Rates are in bytes or operations per second. NotPermitted if the file cannot be written.
    """
    file = FOLDER / f"50-capacity-{units.escaped(path)}.conf"
    words = " ".join(f"{word}={rate}" for word, rate in rates.items())
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        before = text_of(str(file)) if file.exists() else "# by sutroctl measure\n"
        replace(file, _merged(before, path, f"Device={path} {words}").encode())
    except OSError as error:
        raise NotPermitted(f"{file}: {error.strerror}", "run it as root (sudo)") from None
    except SutroError as error:
        raise NotPermitted(error.message, "run it as root (sudo)") from None
    return file


async def _declared(client: Client, path: str) -> dict[str, int]:
    """The rates of a path that are declared in any file and are not measured."""
    await client.reload()  # the files may have been edited
    rows = [row for row in await capacities_if_known(client) if row["path"] == path]
    return {OTHERS[row["key"]]: row["capacity"] for row in rows if row["key"] in OTHERS}


async def _shadowed(
    client: Client, path: str, node: str, file: Path, rates: dict[str, int]
) -> SutroError | None:
    """The failure if the rates that were kept in a file are not in force; None if they are.

    A later line replaces them, of the same path or of another one to the device. sutrod does not
    list a path then.
    """
    rows = [row for row in await capacities_if_known(client) if row["device"] == node]
    parts = []
    for word, rate in rates.items():
        same = [row for row in rows if row["key"] == KEYS[word]]
        if [(row["path"], row["capacity"]) for row in same] == [(path, rate)]:
            continue
        others = [row for row in same if (row["path"], row["capacity"]) != (path, rate)]
        kept = f"{word}={values.short(KEYS[word], rate)}"
        text = f"no {word}"
        if others:
            text = f"{word}={values.short(KEYS[word], others[-1]['capacity'])}"
            text += f" for {others[-1]['path']}" if others[-1]["path"] != path else ""
        parts.append(f"{text} instead of {kept}")
    if not parts:
        return None
    line = declared.shadowing(path, _name(file), {row["path"] for row in rows})
    where = f"change or remove {line}" if line else "see its messages: journalctl -u sutrod"
    return SutroError(
        f"{file} is not in force: sutrod has {', '.join(parts)}",
        f"{where}; then: systemctl reload sutrod",
    )


def _name(file: Path) -> str:
    """The name of a file that sutrod has for it."""
    return str(file).removeprefix(reach.ROOT)


async def measure(client: Client, args: argparse.Namespace) -> Answer:
    """Measure the reads of a device, and declare nine tenths of the rates as its capacity."""
    topology = Topology(await client.devices())
    path = topology.path(args.device)
    _must_be_a_word(path)
    resolved = await client.resolve(path)
    node = resolved["device"]
    if path == node and (device := topology.find(node)):
        # A name that is the same after the next boot, if there is one.
        path = label(device)
    leaves = filter(None, map(topology.find, resolved["leaves"]))
    others = [leaf["node"] for leaf in leaves if leaf["scheduler"] != "sutro"]
    _confirm(path, await _users(client, node, resolved["leaves"]), others, args)
    scope = f"sutro-measure-{os.getpid()}.scope"
    await client.set_policy(scope, [("Class", "idle")], "client")
    measured, rates = [], {}
    for key, word, size, value in STEPS:
        async with _progress(f"{word}: random reads of {size}", args.seconds):
            rate = int((await _fio(node, size, args.seconds, scope))[value])
        rates[word] = int(rate * PART)
        measured.append({"key": key, "measured": rate, "capacity": rates[word]})
    if not all(rates.values()):
        raise SutroError(
            f"{path}: no read was finished in {args.seconds} s, and nothing was declared",
            f"measure longer, up to --seconds={SECONDS_MOST}; errors of the device: journalctl -k",
        )
    file, failure = "", None
    if not args.dry_run:
        rates |= await _declared(client, path)
        kept = _keep(path, rates)
        await client.reload()
        file, failure = str(kept), await _shadowed(client, path, node, kept, rates)
    return Answer({"path": path, "device": node, "file": file, "measured": measured}, failure)
