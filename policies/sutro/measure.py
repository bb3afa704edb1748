# SPDX-License-Identifier: LGPL-2.1-or-later
"""The verb measure: the rates of a device, measured with fio and kept as its capacity.

The device itself is only read. Writes are measured with --write FILE, in a file on the device.
fio uses random places, since a floor has to hold for requests of any kind, in a scope of the class
idle, so that other units are served first on leaves with the scheduler sutro. Nine tenths of the
rates are kept, in a drop-in of sutrod.conf that names the device.
"""

import argparse
import asyncio
import contextlib
import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import declared, reach, scratch, units, values
from .answer import Answer, capacities_if_known, reply
from .client import Client
from .errors import SutroError, UsageError, of_file
from .files import replace
from .policy import text_of
from .scratch import Scratch
from .topology import Topology, label

Dict = dict[str, Any]

FOLDER = Path("/etc/sutro/sutrod.conf.d")
PART = 0.9
SECONDS_MOST = 600
# From SIGTERM to SIGKILL.
END_S = 10.0


@dataclass(frozen=True)
class Step:
    """A rate: the key of its floors, its word in sutrod.conf, requests of fio, value of fio."""

    key: str
    word: str
    way: str
    size: str
    value: str


STEPS = (
    Step("ReadBandwidthMin", "read", "read", "128k", "bw_bytes"),
    Step("ReadIOPSMin", "read-iops", "read", "4k", "iops"),
    Step("WriteBandwidthMin", "write", "write", "128k", "bw_bytes"),
    Step("WriteIOPSMin", "write-iops", "write", "4k", "iops"),
)
KEYS = {step.word: step.key for step in STEPS}
WORDS = {step.key: step.word for step in STEPS}


def check(args: argparse.Namespace) -> None:
    """Find mistakes on the command line before any call; UsageError."""
    if not 1 <= args.seconds <= SECONDS_MOST:
        raise UsageError(f"--seconds={args.seconds}: allowed is 1 to {SECONDS_MOST}")
    _must_be_a_word(args.device)
    if args.write:
        scratch.check(args.write)
    if not args.yes and not sys.stdin.isatty():
        raise UsageError("there is no terminal to confirm the measurement on", "add --yes")


def _must_be_a_word(path: str) -> None:
    """UsageError for a path that no line of sutrod.conf can have."""
    if any(c.isspace() for c in path):
        raise UsageError(
            f"'{path}' has a blank: sutrod.conf has no such paths",
            "name the device by a path without blanks, such as /dev/vg/db",
        )


def _steps(file: Scratch | None) -> list[Step]:
    """The rates that are measured: those of writes need a file."""
    return [step for step in STEPS if file or step.way == "read"]


def _confirm(
    name: str,
    file: Scratch | None,
    users: list[str],
    others: list[str],
    args: argparse.Namespace,
) -> None:
    """Print the consequences, and require a yes on the terminal; SutroError without it.

    `others` are leaves on which the class idle has no effect.
    """
    seconds = args.seconds * len(_steps(None))
    how = "" if others else ", in class idle"
    lines = [f"{name} will be read at full speed for {seconds} s{how}."]
    if file:
        end = "emptied" if scratch.exists(file) else "removed"
        lines.append(
            f"{file.size_bytes >> 20} MiB will be written to {file.path}, followed by random "
            f"writes for {seconds} s{how}. The file is {end} at the end."
        )
    if others:
        what = "reads and writes" if file else "reads"
        lines.append(
            f"The scheduler of {', '.join(others)} is not sutro, so the {what} are not in class "
            "idle there: other units will be slower."
        )
    if users:
        lines.append(f"In use by {', '.join(users)}: the result may be too low.")
    print(*lines, sep="\n", file=sys.stderr)
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


def _random(step: Step, node: str, file: Scratch | None, seconds: int) -> list[str]:
    """The words of fio for random requests: reads of the device, or writes to the file."""
    words = [f"--rw=rand{step.way}", f"--bs={step.size}", "--iodepth=32", "--norandommap"]
    words += ["--time_based", f"--runtime={seconds}"]
    if step.way == "read" or not file:
        return [f"--filename={node}", "--readonly", *words]
    return [*_writes(file), *words]


def _writes(file: Scratch) -> list[str]:
    """The words of fio for writes to the file, which exists already."""
    return [f"--filename={file.path}", "--allow_file_create=0", f"--size={file.size_bytes}"]


def _fill(file: Scratch) -> list[str]:
    """The words of fio to write the whole file: its blocks are allocated before the measurement."""
    return [*_writes(file), "--rw=write", "--bs=1m", "--iodepth=8", "--end_fsync=1"]


async def _fio(words: list[str], scope: str) -> Dict:
    """The job in the report of fio, which runs in a scope with a cgroup of its own.

    SutroError with the last line of fio if it fails.
    """
    command = ["systemd-run", "--quiet", "--scope", f"--unit={scope}", "--property=IOWeight=100"]
    command += ["--", "fio", "--name=measure", "--direct=1", "--ioengine=libaio", *words]
    command += ["--output-format=json"]
    try:
        process = await _started(command)
    except FileNotFoundError as error:
        raise SutroError(f"there is no {error.filename}", "it needs systemd") from None
    try:
        out, err = await process.communicate()
    finally:
        if process.returncode is None:
            await _end(process)
    try:
        # Notes of fio stand before the object.
        job = json.loads(out[out.index(b"{") :])["jobs"][0]
    except (ValueError, LookupError):
        job = None
    if job is None or process.returncode:
        lines = (err or out).decode(errors="replace").strip().splitlines() or ["no output"]
        name = words[0].removeprefix("--filename=")
        raise SutroError(
            f"fio on {name} ended with status {process.returncode}: {lines[-1]}",
            "run it as root, with fio installed: apt install fio",
        )
    return job


async def _started(command: list[str]) -> asyncio.subprocess.Process:
    """Start a command; one whose start is cancelled is ended, too.

    asyncio sends SIGKILL then, after which the processes of fio's jobs would go on.
    """
    pipe = asyncio.subprocess.PIPE
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=pipe)
    )
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        await _end(await starting)
        raise


async def _end(process: asyncio.subprocess.Process) -> None:
    """End fio, and wait for it: it may write until then."""
    process.terminate()
    try:
        await asyncio.wait_for(process.wait(), END_S)
    except TimeoutError:
        process.kill()


@contextlib.contextmanager
def _signals() -> Iterator[None]:
    """SIGTERM and SIGHUP end the measurement as Ctrl-C does; SutroError then.

    The file is removed, and fio ends.
    """
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    received: list[signal.Signals] = []

    def stop(number: signal.Signals) -> None:
        received.append(number)
        if task:
            task.cancel()

    numbers = [
        number
        for number in (signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(number) is not signal.SIG_IGN
    ]
    for number in numbers:
        loop.add_signal_handler(number, stop, number)
    try:
        yield
    except asyncio.CancelledError:
        if not received:
            raise
        raise SutroError(
            f"{received[0].name} ended the measurement", "nothing was declared: measure again"
        ) from None
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


async def _measured(
    node: str, file: Scratch | None, scope: str, seconds: int
) -> list[tuple[Step, int]]:
    """The rates, in bytes or operations per second."""
    rates = []
    is_filled = False
    for step in _steps(file):
        if file and step.way == "write" and not is_filled:
            print(f"Writing {file.path} ...", file=sys.stderr, flush=True)
            await _fio(_fill(file), scope)
            is_filled = True
        async with _progress(f"{step.word}: random {step.way}s of {step.size}", seconds):
            job = await _fio(_random(step, node, file, seconds), scope)
        try:
            rates.append((step, int(job[step.way][step.value])))
        except (LookupError, TypeError, ValueError):
            raise SutroError(
                f"the report of fio has no rate of {step.way}s", "update fio: apt install fio"
            ) from None
    return rates


def _merged(before: str, path: str, line: str) -> str:
    """The text of a drop-in with this line for the path; its other lines stay."""
    same = re.compile(rf"^[ \t]*Device[ \t]*=[ \t]*{re.escape(path)}(?:[ \t].*)?$", re.MULTILINE)
    if same.search(before):
        return same.sub(lambda _: line, before)
    return f"{before}[Capacity]\n{line}\n"


def _keep(path: str, rates: dict[str, int]) -> Path:
    """Write the capacity of a path in its drop-in; return the file.

    Rates are in bytes or operations per second. SutroError if the file cannot be written.
    """
    file = FOLDER / f"50-capacity-{units.escaped(path)}.conf"
    words = " ".join(f"{word}={rate}" for word, rate in rates.items())
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        before = text_of(str(file)) if file.exists() else "# by sutroctl measure\n"
    except OSError as error:
        raise of_file(file, error, is_fixed=True) from None
    replace(file, _merged(before, path, f"Device={path} {words}").encode(), is_fixed=True)
    return file


async def _declared(client: Client, path: str) -> dict[str, int]:
    """The rates of a path that are declared in any file."""
    await client.reload()  # the files may have been edited
    rows = [row for row in await capacities_if_known(client) if row["path"] == path]
    return {WORDS[row["key"]]: row["capacity"] for row in rows if row["key"] in WORDS}


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
    """Measure a device, and declare nine tenths of the rates as its capacity."""
    topology = Topology(await client.devices())
    path = topology.path(args.device)
    _must_be_a_word(path)
    resolved = await client.resolve(path)
    node = resolved["device"]
    if path == node and (device := topology.find(node)):
        # A name that is the same after the next boot, if there is one.
        path = label(device)
    file = await scratch.find(client, args.write, node) if args.write else None
    if file:
        scratch.check_folder(file)
    leaves = filter(None, map(topology.find, resolved["leaves"]))
    others = [leaf["node"] for leaf in leaves if leaf["scheduler"] != "sutro"]
    _confirm(path, file, await _users(client, node, resolved["leaves"]), others, args)
    scope = f"sutro-measure-{os.getpid()}.scope"
    await client.set_policy(scope, [("Class", "idle")], "client")
    with _signals(), scratch.kept(file) if file else contextlib.nullcontext():
        found = await _measured(node, file, scope, args.seconds)
    rates = {step.word: int(rate * PART) for step, rate in found}
    if missing := [step.way for step, rate in found if not int(rate * PART)]:
        raise SutroError(
            f"{path}: no {missing[0]} was finished in {args.seconds} s, and nothing was declared",
            f"measure longer, up to --seconds={SECONDS_MOST}; errors of the device: journalctl -k",
        )
    name, failure = "", None
    if not args.dry_run:
        try:
            others_declared = await _declared(client, path)
            rates |= {word: rate for word, rate in others_declared.items() if word not in rates}
            kept = _keep(path, rates)
            name = str(kept)
            await client.reload()
            failure = await _shadowed(client, path, node, kept, rates)
        except SutroError as error:
            # The rates took long, and can still be declared by hand.
            failure = error
            if name:
                failure.message = f"{name} is written, but not in force: {error.message}"
    measured = [
        {"key": step.key, "measured": rate, "capacity": rates[step.word]} for step, rate in found
    ]
    return Answer({"path": path, "device": node, "file": name, "measured": measured}, failure)
