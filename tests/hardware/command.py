# SPDX-License-Identifier: LGPL-2.1-or-later
"""The verb test: `check` finds slips before the bus is needed, `test` does the rest.

    sutroctl test DEVICE      run, restore, print
    sutroctl test --from F    print what an earlier --json has
    sutroctl test --restore   what the guard calls when a test was killed

The data of the answer: device, leaves, kernel, `experiments` with name, title and units,
`results`, a record for each number (judge.py), and `partial` after a signal (stop.py).
"""

import argparse
import os
import shutil
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.read import ScenarioError, load
from rig.result import Result
from sutro import __version__, objects, scratch
from sutro.answer import Answer, reply
from sutro.client import Client
from sutro.errors import NotPermitted, SutroError, UsageError, of_file
from sutro.objects import BOOL, STRING, Kind, Map, Optional, is_number

from . import fio, leaf, picture, plan, report, run, state, stop
from .experiment import OURS, SCHEDULERS, SHIPPED, Book, Experiment
from .judge import Comparison, floors
from .leaf import IOCOST
from .machine import Machine
from .target import Target, find

Dict = dict[str, Any]

LEAST_S, MOST_S = 2, 600
NEEDED = {"fio": "fio", "systemd-run": "systemd", "tail": "coreutils"}
LARGEST_BYTES = 32 << 20
# Fields of the data, and of its parts, that show, report and picture read.
COUNT = Kind("a whole number from 0", lambda value: type(value) is int and is_number(value))
# Null is a number that there cannot be.
VALUE = Kind(
    "a number, or null",
    lambda value: value is None or is_number(abs(value) if type(value) in (int, float) else ""),
)
NAMES = Kind(
    "a list with names",
    lambda value: isinstance(value, list) and bool(value) and all(map(STRING.passes, value)),
)
EXPERIMENT = {"name": STRING, "title": STRING, "units": NAMES}
RESULT = {"scenario": STRING, "scheduler": STRING, "metric": STRING, "value": VALUE, "judged": BOOL}
RESULT |= {"goal": Optional(STRING), "met": Optional(BOOL), "of": Optional(STRING)}
RESULT |= {"due": Optional(VALUE), "by": Optional(STRING), "why": Optional(STRING)}
LEAF = dict.fromkeys(("leaf", "kind", "model", "scheduler"), STRING)
LEAF |= {"rotational": BOOL, "size_bytes": COUNT, "nr_requests": COUNT}
DATA = dict.fromkeys(("version", "kernel", "machine", "device", "path", "stack", "write"), STRING)
DATA |= dict.fromkeys(("cpus", "seconds", "judged", "met"), COUNT)
DATA |= {"schedulers": [STRING], "notes": [STRING], "unavailable": Map(STRING)}
DATA |= {"leaves": [LEAF], "experiments": [EXPERIMENT], "results": [RESULT]}
DATA |= {"partial": Optional({"done": COUNT, "runs": COUNT})}


def is_root() -> bool:
    """This process may switch schedulers."""
    return os.geteuid() == 0


def system() -> Dict:
    """The kernel and the processor."""
    one = os.uname()
    return {"kernel": one.release, "machine": one.machine, "cpus": os.cpu_count() or 0}


# Slips that need no bus


def _experiments(names: Sequence[str], writes: bool) -> list[Experiment]:
    """The chosen ones; without a file those that need none."""
    try:
        book = load(Book, SHIPPED).only(names)
    except ScenarioError as error:
        raise UsageError(str(error), "see: sutroctl test --list") from None
    found = list(book.scenario)
    for one in found:
        if names and one.writes and not writes:
            raise UsageError(
                f"experiment {one.name} writes", "name a new file on the device: --write FILE"
            )
    return [one for one in found if writes or not one.writes]


def _schedulers(text: str) -> list[str]:
    """The named ones, in the usual order."""
    names = text.split(",") if text else []
    for name in names:
        if name not in SCHEDULERS:
            raise UsageError(f"no scheduler '{name}': allowed is {', '.join(SCHEDULERS)}")
    return [name for name in SCHEDULERS if name in names]


def check(args: argparse.Namespace) -> None:
    """Refuse a command line that cannot be right."""
    ways = {
        "DEVICE": args.device, "--list": args.list, "--restore": args.restore,
        "--from": args.source,
    }  # fmt: skip
    given = [way for way, value in ways.items() if value]
    if len(given) != 1:
        problem = " and ".join(given) + " exclude each other" if given else "a device is missing"
        raise UsageError(problem, "sutroctl test DEVICE, or --list, --restore, --from FILE")
    if not LEAST_S <= args.duration <= MOST_S:
        raise UsageError(f"--duration={args.duration}: allowed is {LEAST_S} to {MOST_S} seconds")
    _schedulers(args.schedulers)
    _experiments(args.only, bool(args.write) or not args.device)
    if args.plot:
        picture.check_output(args.plot)
    if not args.device:
        return
    if args.write:
        scratch.check(args.write)
    if not args.yes and not sys.stdin.isatty():
        raise UsageError("there is no terminal to confirm the test on", "add --yes")


# The verb


async def test(client: Client | None, args: argparse.Namespace) -> Answer:
    """Run the verb."""
    if args.list:
        return Answer([_about(one) for one in _experiments(args.only, True)])
    if args.restore:
        return _restore()
    failure, number = None, None
    if args.source:
        data = _recorded(args.source)
    else:
        assert client
        data, failure, number = await _tested(client, args)
    if number:
        status = 128 + number
    else:
        status = 0 if data["met"] == data["judged"] else 1
    if number and not data["results"]:
        return Answer(None, failure, status)
    if args.plot:
        try:
            picture.draw(data, args.plot)
            data["plot"] = args.plot
        except SutroError as error:
            if args.source:
                raise
            # The results took long: they are printed all the same.
            failure = failure or error
    if args.report:
        return Answer({"report": report.text(data)}, failure, status)
    return Answer(data, failure, status)


def _about(one: Experiment) -> Dict:
    return {
        "name": one.name,
        "title": one.title,
        "source": one.source,
        "writes": one.writes,
        "units": [group.name for group in one.group],
    }


def _recorded(file: str) -> Dict:
    """The data of an earlier test; SutroError with the field of a mistake."""
    try:
        with open(file, encoding="utf-8") as stream:
            data = objects.parse(stream.read(LARGEST_BYTES))
        objects.checked(data, DATA)
        _check_parts(data["results"])
    except OSError as error:
        raise of_file(file, error) from None
    except ValueError as error:  # a Mistake, or bytes that are no text
        raise SutroError(
            f"{file}: this is no result of a test: {error}",
            "make one: sutroctl test DEVICE --json >FILE",
        ) from None
    return data


def _check_parts(results: list[Dict]) -> None:
    """Mistake if a share has no entitled one, or there is no throughput of all units."""
    free = [(index, one) for index, one in enumerate(results) if one.get("goal") is None]
    mbps = [(index, one) for index, one in free if one["metric"] == "mbps"]
    of_all = {(one["scenario"], one["scheduler"]) for _, one in mbps if one.get("of", "") == ""}
    for index, one in mbps:
        if (one["scenario"], one["scheduler"]) not in of_all:
            raise objects.WrongField("one of a run with a throughput", f"results[{index}]")
    for index, one in free:
        if one["metric"] == "share" and "due" not in one:
            raise objects.WrongField(VALUE.expected, f"results[{index}].due")


def _restore() -> Answer:
    if not state.is_left():
        return Answer({"restored": False})
    _need_root()
    with state.locked():
        failures = state.restore()
    return Answer({"restored": not failures}, _not_restored(failures))


def _not_restored(failures: Sequence[str]) -> SutroError | None:
    if not failures:
        return None
    return SutroError(
        f"not restored: {'; '.join(failures)}",
        "resolve this, then run: sutroctl test --restore",
    )


def _need_root() -> None:
    if not is_root():
        raise NotPermitted("only root can switch schedulers and start units", "run it with sudo")


def _need_tools() -> None:
    for tool, package in NEEDED.items():
        if not shutil.which(tool):
            raise SutroError(f"{tool} is not installed", f"install it: apt install {package}")


async def _tested(
    client: Client, args: argparse.Namespace
) -> tuple[Dict, SutroError | None, signal.Signals | None]:
    """Run all; the data, the failure if not all was restored, and the signal that ended it."""
    _need_root()
    _need_tools()
    with state.locked():
        if state.is_left():
            print("An earlier test has not restored all: restoring.", file=sys.stderr)
            if failure := _not_restored(state.restore()):
                raise failure
        target = await find(client, args.device, args.write)
        unavailable = _unavailable(target, _schedulers(args.schedulers))
        schedulers = [
            name for name in _schedulers(args.schedulers) or SCHEDULERS if name not in unavailable
        ]
        if not schedulers:
            raise SutroError(
                f"{target.path}: no scheduler can be run: {'; '.join(unavailable)}",
                "load one of them, for example: modprobe bfq",
            )
        experiments = _experiments(args.only, bool(target.file))
        steps = plan.steps(experiments, schedulers)
        _confirm(target, schedulers, plan.seconds(steps, args.duration), args)
        failures: list[str] = []
        done = _Done()
        async with stop.Stops() as stops:
            try:
                await _all_run(client, target, steps, args.duration, done)
            finally:
                with stop.undisturbed():
                    failures = state.restore()
                    for failure in failures:
                        print(f"not restored: {failure}", file=sys.stderr)
                    state.unguard()
    found = [result for one in done.comparisons.values() for result in one.results()]
    data = _data(target, experiments, schedulers, unavailable, args) | _sum(found)
    # A signal behind the last run ends nothing early.
    number = stops.number if len(done.steps) < len(steps) else None
    if number:
        data = _partial(data, stop.partial(number, steps, done.steps, args))
        _report_stop(data, not failures)
    return data, _not_restored(failures), number


class _Done:
    """The runs of a test that came to their end, well or with a failure."""

    def __init__(self) -> None:
        self.steps: list[plan.Step] = []
        self.comparisons: dict[str, Comparison] = {}


def _partial(data: Dict, about: Dict) -> Dict:
    """The data of a test that was ended early: experiments without results are left out."""
    named = {one["scenario"] for one in data["results"]}
    return data | {
        "partial": about,
        "experiments": [one for one in data["experiments"] if one["name"] in named],
        "notes": [*data["notes"], *stop.notes(about)],
    }


def _report_stop(data: Dict, restored: bool) -> None:
    """Print what became of the test."""
    first, command = stop.notes(data["partial"])
    lines = [first] if data["results"] else [f"{data['partial']['signal']} ended the test."]
    lines += ["The machine is restored."] if restored else []
    lines += [command] if data["results"] else ["No run has results yet."]
    print("\n".join(lines), file=sys.stderr)


def _unavailable(target: Target, wanted: Sequence[str]) -> dict[str, str]:
    """Schedulers that cannot be run, with the reason; SutroError for one that the user named."""
    found: dict[str, str] = {}
    loaded = set.intersection(*(set(one.schedulers()) for one in target.leaves))
    modules = leaf.modules()
    for name in SCHEDULERS:
        if name == IOCOST:
            without = [one.node for one in target.leaves if not one.has_iocost()]
            if without:
                found[name] = f"iocost is not enabled on {', '.join(without)}"
        elif name != "none" and name not in loaded and not leaf.is_loadable(name, modules):
            found[name] = f"the kernel has no scheduler {name}"
    for name in wanted:
        if name in found:
            raise SutroError(found[name], _remedy(name))
    return found


def _remedy(name: str) -> str:
    if name == IOCOST:
        return (
            "write a model and 'MAJ:MIN enable=1' to io.cost.model and io.cost.qos, or leave it out"
        )
    return "apt install sutro-dkms" if name == OURS else "leave it out of --schedulers"


def _confirm(target: Target, schedulers: list[str], seconds: float, args: Any) -> None:
    """Describe the test, and request a confirmation."""
    leaves = ", ".join(one.node for one in target.leaves)
    lines = [
        f"The test of {target.path} takes about {plan.duration(seconds)}.",
        f"It reads the device at full speed and switches {leaves} between {', '.join(schedulers)}.",
    ]
    if target.file:
        size = target.file.size_bytes >> 20
        lines.append(f"It writes {size} MiB to {target.file.path}, and removes that file.")
    if target.others:
        lines.append(f"On the same disks: {', '.join(target.others)}.")
    lines.append("Other users of the disks are slow meanwhile, and distort the result.")
    lines.append("Schedulers and their settings are restored at the end, also after Ctrl-C.")
    print("\n".join(lines), file=sys.stderr)
    if not args.yes and reply("Continue? [y/N] ") not in ("y", "yes"):
        raise SutroError("nothing was tested")


# Runs


async def _all_run(
    client: Client, target: Target, steps: Sequence[plan.Step], measure_s: float, done: _Done
) -> None:
    """Do all runs, and add each to those that are done."""
    state.begin(target.leaves, target.file.path if target.file else "")
    state.guard(str(Path(sys.argv[0]).absolute()))
    machine = Machine(target.leaves, [one for one in target.leaves if one.has_iocost()])
    if target.file:
        print(f"Writing {target.file.path} ...", file=sys.stderr, flush=True)
        try:
            await machine.fill(fio.fill_command(target.file.path, target.file.size_bytes))
        except run.RunError as error:
            raise SutroError(
                f"{target.file.path} cannot be written: {error}",
                "name a file on another file system of the device: --write FILE",
            ) from None
    runner = run.Runner(client, machine, target, measure_s)
    left_s = plan.seconds(steps, measure_s)
    for number, step in enumerate(steps, start=1):
        left = plan.duration(left_s)
        print(f"[{number}/{len(steps)}] {step.name} ({left} left)", file=sys.stderr, flush=True)
        left_s -= step.seconds(measure_s)
        one = done.comparisons.setdefault(step.experiment.name, Comparison(step.experiment))
        await _one_run(runner, step, one)
        done.steps.append(step)


async def _one_run(runner: run.Runner, step: plan.Step, one: Comparison) -> None:
    """Add a run, or its failure. Without the units alone there is nothing to compare with."""
    if one.broken and not step.only:
        one.failures[step.scheduler] = one.broken
        return
    try:
        done = await runner.run(step, {} if step.only else floors(step.experiment, one.alone))
    except (SutroError, *run.TROUBLE) as error:
        print(f"  failed: {error}", file=sys.stderr)
        if step.only:
            one.broken = f"{step.only} alone: {error}"
        else:
            one.failures[step.scheduler] = str(error)
    else:
        if step.only:
            one.alone[step.only] = done
        else:
            one.runs[step.scheduler] = done


def _data(
    target: Target, experiments: Sequence[Experiment], schedulers: list[str],
    unavailable: Mapping[str, str], args: argparse.Namespace,
) -> Dict:  # fmt: skip
    notes = []
    if not target.file and not args.only:
        notes.append("Experiments with writes were left out: --write FILE runs them, too.")
    if OURS not in schedulers:
        notes.append("sutro was not run, so there is nothing to judge.")
    leaves = f"{len(target.leaves)} leaves" if len(target.leaves) > 1 else "one leaf"
    return {
        "version": __version__,
        **system(),
        "device": target.device.path,
        "path": target.path,
        "stack": f"{target.kind} on {leaves}",
        "leaves": list(target.about),
        "write": target.file.path if target.file else "",
        "seconds": args.duration,
        "schedulers": schedulers,
        "unavailable": dict(unavailable),
        "notes": notes,
        "experiments": [_about(one) for one in experiments],
    }


def _sum(found: Sequence[Result]) -> Dict:
    judged = [result for result in found if result.counts]
    return {
        "results": [result.as_object() for result in found],
        "judged": len(judged),
        "met": sum(bool(result.met) for result in judged),
    }
