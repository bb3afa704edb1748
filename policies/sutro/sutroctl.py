# SPDX-License-Identifier: LGPL-2.1-or-later
"""sutroctl: show and set weights, guarantees and limits.

Each verb is a coroutine that calls the buses and returns plain data, which is printed as JSON, or
as text for people by the show modules. Verbs that run until Ctrl-C print their results themselves.
The exit status is 0 for success, 1 for a failure (stderr has a sentence, and a line with the
remedy), 2 if the command line is wrong whatever the state of the machine.
"""

import argparse
import asyncio
import errno
import io
import os
import re
import shlex
import sys

from . import units
from .answer import Answer, show_answer
from .arguments import parse, verb_function
from .client import Client
from .errors import SutroError, UsageError, of_file
from .weights import parse_weight

# Verbs that read or write files of the machine they run on.
LOCAL = ("measure", "metrics", "policy cat", "policy edit", "test")
OUTPUT_REMEDY = "make room there, or send the output to another file"
CLOSED_REMEDY = "it is closed: send the output to a file, or to /dev/null"


def _complain(error: SutroError, args: argparse.Namespace) -> int:
    """Print a failure; return the exit status."""
    print(f"sutroctl: {error.message}", file=sys.stderr)
    if error.hint:
        print(f"          {error.hint}", file=sys.stderr)
    return 2 if isinstance(error, UsageError) else _failure_status(args)


def _failure_status(args: argparse.Namespace) -> int:
    """The exit status of a failure: 1, which is an answer with --fits."""
    return 2 if getattr(args, "fits", False) else 1


def _check(args: argparse.Namespace) -> None:
    """Find mistakes on the command line before any call; complete the unit name."""
    unit = getattr(args, "unit", None)
    if isinstance(unit, list):
        args.unit = [units.subject(name) for name in unit]
    elif unit is not None:
        if args.verb == "set" and unit.startswith("/"):
            raise SutroError(
                f"'{unit}' is the path of a cgroup, and systemd sets weights of units only",
                f"set its weight in a policy: sutroctl policy set {units.word(unit)} Weight=N",
            )
        # IOWeight= is a setting of systemd.
        args.unit = units.complete(unit) if args.verb == "set" else units.subject(unit)
    if args.verb == "policy set":
        from . import policy

        policy.assignments(args.assignment)
    if args.verb == "policy check" and not args.file and not args.fits:
        args.refuse("either FILE or --fits is required")
    if args.host and (args.verb in LOCAL or (args.verb == "policy check" and not args.fits)):
        raise UsageError(
            f"{args.verb} reads files of this machine, so there is no --host",
            f"run it there: ssh {shlex.quote(args.host)} sutroctl {args.verb}",
        )
    if args.verb == "top":
        from . import top

        top.check(args)
    if args.verb == "metrics":
        from . import textfile

        textfile.check(args)
    if args.verb == "slurm-gres":
        from . import slurm

        slurm.check(args)
    if args.verb == "plot":
        from . import plot

        plot.check_output(args.output)
    if args.verb == "measure":
        from . import measure

        measure.check(args)
    if args.verb == "test":
        from . import fairness

        fairness.check(args)
    if args.verb == "set":
        args.weight = parse_weight(args.weight)
    if args.verb == "release" and bool(args.device) == args.all:
        raise UsageError(
            "release needs either the devices to release, or --all",
            "sutroctl tree shows the devices",
        )
    device = getattr(args, "device", None)
    paths = device if isinstance(device, list) else [device, getattr(args, "path", None)]
    if "" in paths:
        raise UsageError("the path is empty", "name a device, a mount point or a file")


def _needs_no_bus(args: argparse.Namespace) -> bool:
    """Does the verb work without a connection to the bus?"""
    if args.verb == "policy check":
        return not args.fits
    if args.verb == "slurm-gres":
        return bool(args.rate)
    if args.verb == "test":
        return not args.device
    # Metrics without a daemon have that as a value.
    return args.verb == "metrics" or (args.verb in ("plot", "top") and bool(args.source))


def _open_streams() -> None:
    """Open /dev/null as each standard stream that is closed, before a file gets its number.

    As stdout it is not open for writing: output that is lost is a failure (EBADF).
    A stdout that is not in UTF-8 has "?" for each letter that it lacks.
    """
    for name, mode, flags in (
        ("stdin", "r", os.O_RDONLY),
        ("stdout", "w", os.O_RDONLY),
        ("stderr", "w", os.O_WRONLY),
    ):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, flags), mode))
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.encoding.lower() != "utf-8":
        sys.stdout.reconfigure(errors="replace")


def _forget_sizes() -> None:
    """Remove sizes of the terminal that are no numbers: rich reads them with int()."""
    for name in ("COLUMNS", "LINES"):
        if not re.fullmatch("[0-9]{1,4}", os.environ.get(name, "0")):
            del os.environ[name]


def _discard_output() -> None:
    """Let nothing be left to flush at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _parsed(argv: list[str]) -> argparse.Namespace:
    """The arguments; the help is written before the exit, so that a failure can be reported."""
    try:
        return parse(argv)
    except SystemExit:
        sys.stdout.flush()
        raise


async def _run(args: argparse.Namespace) -> Answer:
    """Run the verb, with a connection if it needs one."""
    if _needs_no_bus(args):
        return await verb_function(args.run)(None, args)
    async with Client(args.host) as client:
        return await verb_function(args.run)(client, args)


def main(argv: list[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    _open_streams()
    _forget_sizes()
    args = argparse.Namespace()
    try:
        args = _parsed(sys.argv[1:] if argv is None else argv)
        _check(args)
        answer = asyncio.run(_run(args))
        if answer.data is not None:
            show_answer(args, answer.data)
    except SutroError as error:
        return _complain(error, args)
    except BrokenPipeError:
        # The reader (head, less) has had enough.
        _discard_output()
        return _failure_status(args)
    except OSError as error:
        if error.filename is not None:
            return _complain(of_file(error.filename, error), args)
        _discard_output()
        remedy = CLOSED_REMEDY if error.errno == errno.EBADF else OUTPUT_REMEDY
        return _complain(of_file("standard output", error, remedy=remedy), args)
    except KeyboardInterrupt:
        return 130
    return _complain(answer.failure, args) if answer.failure else answer.status


if __name__ == "__main__":
    sys.exit(main())
