# SPDX-License-Identifier: LGPL-2.1-or-later
"""sutroctl: show and set weights, guarantees and limits.

Each verb is a coroutine that calls the buses and returns plain data, which is printed as JSON, or
as text for people by the show modules. Verbs that run until Ctrl-C print by themselves. The exit
status is 0 if all was done, 1 if something was not (stderr has a sentence with the failure and a
line with the remedy), 2 if the command line is wrong whatever the state of the machine.
"""

import argparse
import asyncio
import importlib
import os
import sys
from collections.abc import Awaitable, Callable

from . import __version__, units
from .answer import Answer, tell
from .client import Client
from .errors import SutroError, UsageError
from .weights import parse_weight

Verb = Callable[[Client | None, argparse.Namespace], Awaitable[Answer]]
Add = Callable[..., argparse.ArgumentParser]

UNIT = "a unit (.service may be left out)"
SUBJECT = UNIT + " or /a/cgroup"
PLOT_FILE = "sutro.html"


def _verb(name: str) -> Verb:
    """The coroutine of a verb, `MODULE.FUNCTION`: a command imports the module of its verb only."""
    module, _, function = name.rpartition(".")
    return getattr(importlib.import_module("." + module, __package__), function)


class _Parser(argparse.ArgumentParser):
    """A parser whose help begins with the description of its verb."""

    def format_help(self) -> str:
        if run := self.get_default("run"):
            self.description = _verb(run).__doc__
        return super().format_help()


def _parser() -> argparse.ArgumentParser:
    # Both before and after the verb; SUPPRESS keeps the one from undoing the other.
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument(
        "--json", action="store_true", default=argparse.SUPPRESS, help="print JSON, see sutroctl(1)"
    )
    parser = _Parser(
        prog="sutroctl",
        description="Show and set I/O weights, guarantees and limits on stacked block devices.",
        epilog="sutroctl(1) explains each verb with examples.",
        parents=[common],
    )
    parser.add_argument("--version", action="version", version=f"sutroctl {__version__}")
    verbs = parser.add_subparsers(metavar="VERB", required=True)

    def add_to(family: argparse._SubParsersAction, prefix: str = "") -> Add:
        def add(name: str, run: str, show: str, text: str) -> argparse.ArgumentParser:
            verb = family.add_parser(name, help=text, parents=[common])
            verb.set_defaults(verb=prefix + name, run=run, show=show)
            return verb

        return add

    _add_verbs(add_to(verbs))
    below = verbs.add_parser("policy", help="settings of units: check, show, set, reset, reload")
    family = below.add_subparsers(metavar="VERB", required=True)
    _add_policy_verbs(add_to(family, "policy "))
    return parser


def _add_verbs(add: Add) -> None:
    add("status", "daemon.status", "show.status", "the daemon, promises, leaf disks, weights")

    verb = add(
        "tree", "stacks.tree", "show.tree", "the stacks, with weights and shares on the leaves"
    )
    verb.add_argument("device", nargs="?", metavar="DEVICE", help="only the stack of this device")

    text = "weights of a unit on its disks, and the state of its promises"
    verb = add("explain", "statements.explain", "show.explain", text)
    verb.add_argument("unit", metavar="UNIT", help=SUBJECT)
    verb.add_argument("path", nargs="?", metavar="PATH", help="a device, mount point or file")

    text = "latencies of a unit with a latency target"
    verb = add("latency", "latency.latency", "show_latency.latency", text)
    verb.add_argument("unit", metavar="UNIT", help=SUBJECT)

    verb = add("top", "top.top", "show_promises.top", "present use of devices by units")
    verb.add_argument("device", nargs="?", metavar="DEVICE", help="only this device")
    verb.add_argument("--once", action="store_true", help="one table, then end")

    add("watch", "watch.watch", "", "a line per second and promise")

    verb = add(
        "plot", "plot.plot", "show_promises.plot", "rates of promises over time, as a picture"
    )
    verb.add_argument("unit", nargs="*", metavar="UNIT", help="only these units")
    verb.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        default=PLOT_FILE,
        help=f"a .html or .png file ({PLOT_FILE})",
    )
    verb.add_argument("--from", dest="source", metavar="FILE", help="a file of watch --json")

    text = "counters and promises in the text format of Prometheus"
    verb = add("metrics", "textfile.metrics", "", text)
    verb.add_argument("--all", action="store_true", help="all cgroups, not 200 at the most")
    verb.add_argument("-o", "--output", metavar="FILE", help="replace this file by the text")

    text = "measure what a device can promise, and keep it as its capacity"
    verb = add("measure", "measure.measure", "show_promises.measured", text)
    verb.add_argument("device", metavar="DEVICE")
    verb.add_argument("--yes", "-y", action="store_true", help="do not ask for confirmation")
    verb.add_argument("--dry-run", action="store_true", help="measure, but keep nothing")
    verb.add_argument(
        "--seconds", type=int, default=10, metavar="N", help="for each of two rates (10)"
    )

    verb = add("set", "statements.set_", "show.set_", "set the weight of a unit, or for a device")
    verb.add_argument("unit", metavar="UNIT", help=UNIT)
    verb.add_argument("weight", metavar="WEIGHT", help="1 to 10000; 'default' removes it")
    verb.add_argument("--device", metavar="PATH", help="only for this device, mount point or path")
    verb.add_argument("--runtime", action="store_true", help="only until the next boot")

    text = "switch the leaves of devices to the sutro scheduler"
    verb = add("use", "stacks.use", "show.switched", text)
    verb.add_argument("device", nargs="+", metavar="DEVICE")

    text = "switch leaves back to their former scheduler"
    verb = add("release", "stacks.release", "show.switched", text)
    verb.add_argument("device", nargs="*", metavar="DEVICE")
    verb.add_argument("--all", action="store_true", help="all leaves that Sutro switched")

    text = "lines of Slurm's configuration for bandwidth that it is to count"
    verb = add("slurm-gres", "slurm.gres", "slurm.show", text)
    verb.add_argument("rate", nargs="*", metavar="KIND=PATH:RATE", help="read=/scratch:400M")
    verb.add_argument("--node", metavar="NAME", help="the name of the node (this machine's)")

    add("dump", "daemon.dump", "show.dump", "the whole state of the daemon, for bug reports")


def _add_policy_verbs(add: Add) -> None:
    text = "find mistakes in policy files; --fits: compare floors with the capacity of devices"
    verb = add("check", "policy.check", "show_promises.fits", text)
    verb.add_argument("file", nargs="*", metavar="FILE")
    verb.set_defaults(refuse=verb.error)
    verb.add_argument(
        "--fits", action="store_true", help="check whether the devices have room for the floors"
    )

    verb = add(
        "show", "policy.show", "show_promises.policy", "settings, their sources, and those in force"
    )
    verb.add_argument("unit", nargs="?", metavar="UNIT", help=SUBJECT)

    verb = add("set", "policy.set_", "show_promises.policy_set", "set policy keys of a unit")
    verb.add_argument("unit", metavar="UNIT", help=SUBJECT)
    verb.add_argument("assignment", nargs="+", metavar="KEY=VALUE", help="see sutro.policy(5)")
    how_long = verb.add_mutually_exclusive_group()
    how_long.add_argument("--runtime", action="store_true", help="only until the next boot")
    how_long.add_argument("--client", action="store_true", help="only until Ctrl-C")

    text = "remove settings of a unit"
    verb = add("reset", "policy.reset", "show_promises.policy_set", text)
    verb.add_argument("unit", metavar="UNIT", help=SUBJECT)
    verb.add_argument("key", nargs="*", metavar="KEY", help="only these keys")
    verb.add_argument("--runtime", action="store_true", help="settings of set --runtime, too")

    text = "let the daemon read all policy files again"
    add("reload", "policy.reload", "show_promises.policy_reload", text)


def _complain(error: SutroError, args: argparse.Namespace) -> int:
    print(f"sutroctl: {error.message}", file=sys.stderr)
    if error.hint:
        print(f"          {error.hint}", file=sys.stderr)
    # With --fits, 1 is an answer.
    return 2 if isinstance(error, UsageError) or getattr(args, "fits", False) else 1


def _check(args: argparse.Namespace) -> None:
    """Find the slips in the command line that need no bus to be found; complete the unit name."""
    unit = getattr(args, "unit", None)
    if isinstance(unit, list):
        args.unit = [_unit(name) for name in unit]
    elif unit is not None:
        # IOWeight= is a setting of systemd.
        args.unit = units.complete(unit) if args.verb == "set" else _unit(unit)
    if args.verb == "policy set":
        from . import policy

        policy.assignments(args.assignment)
    if args.verb == "policy check" and not args.file and not args.fits:
        args.refuse("either FILE or --fits is required")
    if args.verb == "plot":
        from . import plot

        plot.check_output(args.output)
    if args.verb == "measure":
        from . import measure

        measure.check(args)
    if args.verb == "set":
        args.weight = parse_weight(args.weight)
    if args.verb == "release" and bool(args.device) == args.all:
        raise UsageError("release needs either the devices to release, or --all")
    device = getattr(args, "device", None)
    paths = device if isinstance(device, list) else [device, getattr(args, "path", None)]
    if "" in paths:
        raise UsageError("the path is empty")


def _unit(name: str) -> str:
    """A unit name, or the path of a cgroup that systemd did not make."""
    return name if name.startswith("/") else units.complete(name)


def _needs_no_bus(args: argparse.Namespace) -> bool:
    if args.verb == "policy check":
        return not args.fits
    if args.verb == "slurm-gres":
        return bool(args.rate)
    # Metrics without a daemon have that as a value.
    return args.verb == "metrics" or (args.verb == "plot" and bool(args.source))


async def _run(args: argparse.Namespace) -> Answer:
    if _needs_no_bus(args):
        return await _verb(args.run)(None, args)
    async with Client() as client:
        return await _verb(args.run)(client, args)


def main(argv: list[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    args = _parser().parse_args(argv)
    try:
        _check(args)
        answer = asyncio.run(_run(args))
        if answer.data is not None:
            tell(args, answer.data)
    except SutroError as error:
        return _complain(error, args)
    except BrokenPipeError:
        # The reader (head, less) has had enough; nothing is left to flush at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return 130
    return _complain(answer.failure, args) if answer.failure else answer.status


if __name__ == "__main__":
    sys.exit(main())
