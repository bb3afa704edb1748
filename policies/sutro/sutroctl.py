# SPDX-License-Identifier: LGPL-2.1-or-later
"""sutroctl: ask and tell Sutro.

Each verb is a coroutine that asks the buses and returns plain data; the same data is
printed as JSON, or given to show.py as text for people. The exit status is 0 when all was
done, 1 when something was not (with a sentence on stderr that says what and what to do
next), 2 when the command line itself cannot be right.
"""

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from . import __version__, units
from .client import Client
from .errors import NoSuchPath, NoSuchUnit, SutroError, UsageError
from .topology import Topology, label
from .weights import WEIGHT_DEFAULT, parse_weight

Dict = dict[str, Any]

# The daemon hears of a change in systemd within milliseconds and writes at once; but on a machine
# with more work than processors all of it, and the first samples for Explain, take their time.
SETTLE_TIMEOUT_S = 10.0
SETTLE_POLL_S = 0.05


@dataclass
class Answer:
    """What a verb found: data for JSON and show, and what makes it a failure, if anything."""

    data: Any
    failure: SutroError | None = None


# What the verbs share


async def _known_units(client: Client) -> list[str]:
    """All names that could have been meant; only for a suggestion, so no failure is one."""
    try:
        return await client.unit_names()
    except SutroError:
        return []


async def _unknown_unit(client: Client, name: str) -> NoSuchUnit:
    meant = units.near(name, await _known_units(client))
    hint = "did you mean " + " or ".join(meant) + "?" if meant else "see: systemctl list-units"
    return NoSuchUnit(f"there is no unit '{name}'", hint)


def _settled(leaf: Dict) -> bool:
    """The file has the line that was written to it, or nothing is to be written."""
    return leaf["written"] in ("", leaf["read_back"])


async def _explain(client: Client, unit: str, path: str) -> Dict:
    explanation = await client.explain(unit, path)
    explanation["path"] = path
    explanation["leaves"] = [leaf | {"settled": _settled(leaf)} for leaf in explanation["leaves"]]
    return explanation


async def _unit_rows(client: Client, path: str) -> dict[str, list[Dict]]:
    """For each leaf under a path ("": all): the units that use it or state a weight for it."""

    async def one(unit: Dict) -> list[tuple[str, Dict]]:
        try:
            explanation = await client.explain(unit["unit"], path)
        except NoSuchUnit:
            return []  # it has ended in the meantime

        def matters(leaf: Dict) -> bool:
            stated = explanation["weight_set"] or leaf["asked"] != explanation["weight"]
            return leaf["got"] > 0 or (stated and leaf["backend"] != "none")

        return [
            (leaf["leaf"], {"unit": unit["unit"], "cgroup": unit["cgroup"]} | leaf)
            for leaf in explanation["leaves"]
            if matters(leaf)
        ]

    rows: dict[str, list[Dict]] = {}
    below_root = [unit for unit in await client.units() if unit["cgroup"] != "/"]
    found = await asyncio.gather(*(one(unit) for unit in below_root))
    for leaf, row in sorted(
        (pair for pairs in found for pair in pairs), key=lambda pair: pair[1]["cgroup"].split("/")
    ):
        rows.setdefault(leaf, []).append(row)
    return rows


# The verbs


async def status(client: Client, _args: argparse.Namespace) -> Answer:
    """The daemon, the leaves, the units that state a weight."""
    properties = await client.properties()
    topology = Topology(await client.devices())
    leaves = [
        device | {"stacks": [label(top) for top in topology.stacks_on(device)]}
        for device in topology.by_name.values()
        if device["leaf"] and device["size_bytes"] > 0
    ]
    stated = [unit for unit in await client.units() if unit["weight_set"] or unit["device_weights"]]
    daemon = {
        "version": properties["Version"],
        "dry_run": properties["DryRun"],
        "managed_leaves": properties["ManagedLeaves"],
    }
    return Answer(
        {
            "daemon": daemon,
            "leaves": sorted(leaves, key=lambda leaf: leaf["name"]),
            "units": sorted(stated, key=lambda unit: unit["unit"]),
        }
    )


async def tree(client: Client, args: argparse.Namespace) -> Answer:
    """The stacks from the top down, with the units on the leaves."""
    topology = Topology(await client.devices())
    tops, path = topology.tops(), ""
    if args.device:
        resolved = await client.resolve(topology.path(args.device))
        path = resolved["device"]
        top = topology.find(path)
        if top is None:
            raise NoSuchPath(f"device {path} behind '{args.device}' has just gone", "try again")
        tops = [top]
    rows = await _unit_rows(client, path)

    def grow(device: Dict) -> Dict:
        if device["leaf"]:
            return device | {"children": [], "units": rows.get(device["node"], [])}
        return device | {"children": [grow(slave) for slave in topology.slaves(device)]}

    return Answer([grow(top) for top in tops])


async def explain(client: Client, args: argparse.Namespace) -> Answer:
    """How a unit's weight becomes a share of the leaves under a path."""
    unit, path, steps = args.unit, "", []
    if args.path:
        path = Topology(await client.devices()).path(args.path)
        steps = (await client.resolve(path))["steps"]
    try:
        explanation = await _explain(client, unit, path)
    except NoSuchUnit:
        if unit.startswith("/"):
            raise NoSuchUnit(f"there is no cgroup '{unit}'", "see: systemd-cgls") from None
        settings = await client.unit_settings(unit)
        if settings["load_state"] == "not-found":
            raise await _unknown_unit(client, unit) from None
        if not settings["active"]:
            raise NoSuchUnit(
                f"unit '{unit}' is not active, so it has no cgroup",
                f"start it: systemctl start {unit}",
            ) from None
        raise
    # Its slices share the disk first, then the unit its slice.
    slices = [
        above
        for above in sorted(await client.units(), key=lambda above: above["cgroup"])
        if explanation["cgroup"].startswith(above["cgroup"] + "/")
    ]
    return Answer(explanation | {"slices": slices, "steps": steps})


async def _wait_until_written(
    client: Client, unit: str, path: str, weight: int | None, dry_run: bool
) -> Answer:
    """Ask until the daemon knows the new weight and the files say what it wrote, but not for long.

    The answer is the last explanation, a failure if it still does not show the weight.
    """

    def heard(explanation: Dict) -> bool:
        if path:
            said = {entry["path"]: entry["weight"] for entry in explanation["device_weights"]}
            return said.get(path) == weight
        return (explanation["weight"], explanation["weight_set"]) == (
            WEIGHT_DEFAULT if weight is None else weight,
            weight is not None,
        )

    def written(explanation: Dict) -> bool:
        return dry_run or all(leaf["settled"] for leaf in explanation["leaves"])

    loop = asyncio.get_running_loop()
    deadline = loop.time() + SETTLE_TIMEOUT_S
    while True:
        explanation = await _explain(client, unit, path)
        if heard(explanation) and written(explanation):
            return Answer(explanation)
        if loop.time() >= deadline:
            break
        await asyncio.sleep(SETTLE_POLL_S)
    late = "not written it to the files" if heard(explanation) else "not heard of it"
    return Answer(
        explanation,
        SutroError(
            f"the weight is set in systemd, but sutrod has {late} in {SETTLE_TIMEOUT_S:.0f} s",
            "see: journalctl -u sutrod -n 20",
        ),
    )


async def set_(client: Client, args: argparse.Namespace) -> Answer:
    """State a weight through systemd; wait until the daemon has carried it to the leaves."""
    unit, weight = args.unit, args.weight
    properties = await client.properties()
    path = ""
    if args.device:
        path = Topology(await client.devices()).path(args.device)
        if any(character.isspace() for character in path):
            raise UsageError(f"systemd takes no path with white space: '{path}'")
    settings = await client.unit_settings(unit)
    if settings["load_state"] == "not-found":
        raise await _unknown_unit(client, unit)

    if path:
        previous = await _set_device(client, unit, path, weight, settings, args.runtime)
    else:
        previous = settings["weight"]
        await client.set_weight(unit, weight, args.runtime)

    answer = Answer(None)
    if settings["active"]:
        try:
            answer = await _wait_until_written(client, unit, path, weight, properties["DryRun"])
        except NoSuchUnit:
            pass  # it ended just now; the statement is made all the same
    data = {
        "unit": unit,
        "path": path or None,
        "weight": weight,
        "previous": previous,
        "runtime": args.runtime,
        "dry_run": properties["DryRun"],
        "explanation": answer.data,
    }
    return Answer(data, answer.failure)


async def _set_device(
    client: Client, unit: str, path: str, weight: int | None, settings: Dict, runtime: bool
) -> int | None:
    """Set or take away one device's weight; return what it was."""
    before = settings["device_weights"]
    previous = next((entry["weight"] for entry in before if entry["path"] == path), None)
    if weight is not None:
        await client.resolve(path)  # a statement about nothing is a slip: say so before it is made
        await client.set_device_weights(unit, [{"path": path, "weight": weight}], runtime)
        return previous
    if previous is None:
        stated = ", ".join(entry["path"] for entry in before) or "none"
        raise NoSuchPath(
            f"unit '{unit}' has no IODeviceWeight= for {path}", f"it has one for: {stated}"
        )
    rest = [entry for entry in before if entry["path"] != path]
    await client.set_device_weights(unit, rest, runtime, replace=True)
    return previous


def _failed(results: list[Dict], verb: str) -> SutroError | None:
    failed = [result["leaf"] for result in results if result["error"]]
    return SutroError(f"could not {verb} {', '.join(failed)}") if failed else None


async def use(client: Client, args: argparse.Namespace) -> Answer:
    """Switch the leaves under devices to sutro."""
    topology = Topology(await client.devices())
    results = await client.use([topology.path(name) for name in args.device])
    return Answer(results, _failed(results, "switch"))


async def release(client: Client, args: argparse.Namespace) -> Answer:
    """Give leaves back to the scheduler they had."""
    topology = Topology(await client.devices())
    results = await client.release([topology.path(name) for name in args.device])
    return Answer(results, _failed(results, "release"))


async def dump(client: Client, _args: argparse.Namespace) -> Answer:
    """The daemon's whole state as text."""
    return Answer({"dump": await client.dump()})


# The command line

Verb = Callable[[Client, argparse.Namespace], Awaitable[Answer]]


def _parser() -> argparse.ArgumentParser:
    # Both before and after the verb; SUPPRESS keeps the one from undoing the other.
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument(
        "--json", action="store_true", default=argparse.SUPPRESS, help="print JSON, see sutroctl(1)"
    )
    parser = argparse.ArgumentParser(
        prog="sutroctl",
        description="Ask and tell Sutro, which keeps I/O weights on stacked block devices.",
        epilog="sutroctl(1) explains each verb with examples.",
        parents=[common],
    )
    parser.add_argument("--version", action="version", version=f"sutroctl {__version__}")
    verbs = parser.add_subparsers(metavar="VERB", required=True)

    def add(name: str, run: Verb, show: str, text: str) -> argparse.ArgumentParser:
        verb = verbs.add_parser(name, help=text, description=run.__doc__, parents=[common])
        verb.set_defaults(verb=name, run=run, show=show)
        return verb

    add("status", status, "status", "the daemon, the leaf disks, the units with a weight")

    verb = add("tree", tree, "tree", "the stacks, with the units' weights and shares on the leaves")
    verb.add_argument("device", nargs="?", metavar="DEVICE", help="only the stack of this device")

    verb = add("explain", explain, "explain", "how a unit's weight becomes a share of the disks")
    verb.add_argument("unit", metavar="UNIT", help="a unit (.service may be left out) or /a/cgroup")
    verb.add_argument("path", nargs="?", metavar="PATH", help="a device, mount point or file")

    verb = add("set", set_, "set_", "set the weight of a unit, in general or for a device")
    verb.add_argument("unit", metavar="UNIT", help="a unit (.service may be left out)")
    verb.add_argument("weight", metavar="WEIGHT", help="1 to 10000; 'default' takes it away")
    verb.add_argument("--device", metavar="PATH", help="only for this device, mount point or path")
    verb.add_argument("--runtime", action="store_true", help="only until the next boot")

    verb = add("use", use, "switched", "switch the leaves of devices to the sutro scheduler")
    verb.add_argument("device", nargs="+", metavar="DEVICE")

    verb = add("release", release, "switched", "give the leaves their former scheduler back")
    verb.add_argument("device", nargs="*", metavar="DEVICE")
    verb.add_argument("--all", action="store_true", help="all leaves that Sutro switched")

    add("dump", dump, "dump", "the whole state of the daemon, for bug reports")
    return parser


def _complain(error: SutroError) -> int:
    print(f"sutroctl: {error.message}", file=sys.stderr)
    if error.hint:
        print(f"          {error.hint}", file=sys.stderr)
    return 2 if isinstance(error, UsageError) else 1


def _show(args: argparse.Namespace, data: Any) -> None:
    if getattr(args, "json", False):
        json.dump(data, sys.stdout, indent=2)
        sys.stdout.write("\n")
        return
    from . import show  # rich takes 0.1 s to import, and JSON does not need it

    out = show.console()
    with out.capture() as text:
        getattr(show, args.show)(out, data)
    # rich fills each line of a table to its full width
    sys.stdout.write("".join(line.rstrip() + "\n" for line in text.get().splitlines()))


def _check(args: argparse.Namespace) -> None:
    """Find the slips in the command line that need no bus to be found; complete the unit name."""
    if args.verb in ("explain", "set") and not (args.verb == "explain" and args.unit[:1] == "/"):
        args.unit = units.complete(args.unit)
    if args.verb == "set":
        args.weight = parse_weight(args.weight)
    if args.verb == "release" and bool(args.device) == args.all:
        raise UsageError("release needs either the devices to release, or --all")
    device = getattr(args, "device", None)
    paths = device if isinstance(device, list) else [device, getattr(args, "path", None)]
    if "" in paths:
        raise UsageError("the path is empty")


async def _run(args: argparse.Namespace) -> Answer:
    async with Client() as client:
        return await args.run(client, args)


def main(argv: list[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    args = _parser().parse_args(argv)
    try:
        _check(args)
        answer = asyncio.run(_run(args))
        _show(args, answer.data)
        sys.stdout.flush()
    except SutroError as error:
        return _complain(error)
    except BrokenPipeError:
        # The reader (head, less) has had enough; nothing is left to flush at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return 130
    return _complain(answer.failure) if answer.failure else 0


if __name__ == "__main__":
    sys.exit(main())
