# SPDX-License-Identifier: LGPL-2.1-or-later
"""What each verb of ./lab does, in terms of artefacts and guests."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

from bench import tables
from bench.attribution import page, stacks
from bench.blktests import results
from bench.harm import scenario as harmed
from bench.overhead import scenario as costly
from bench.promises import scenario as promised
from bench.scale import scenario as growing
from rig import result
from uml import robustness as unbroken
from uml import scenario as fair
from uml.bench import all_met, limited, run_all, write_json

from . import accel, deep, guest, host, image, products, stages, uml, virtual
from . import blktests as foreign
from .cache import Cache
from .junit import Results
from .progress import LabError, step
from .roots import KERNEL, KERNELS

# They have clocks of their own, which no busy host disturbs, so they run beside the others that
# boot a guest; in this order, for what is compiled first leaves the guests most of the host.
BESIDE = ("uml", "measure-7.2", "stacking", "stacking-7.2")
ALONE = ("checks", "meson")
SOURCE = Path(__file__).resolve().parents[2]
# Where a table does not know how wide it may be, it is not cut.
WIDTH = 160


def demo(cache: Cache, options: argparse.Namespace) -> int:
    """Run the scenarios in a guest, show their table, bring JSON and pictures out."""
    _has_place(options.json, options.out)
    setup = _prepare(cache, "demo")
    words = ["--out", "/mnt/out", "--json", "/mnt/out/demo.json", *options.rest]
    status = _in_guest(setup, "demo", words, options.json)
    results = setup.folder / "out"
    if options.out:
        results = Path(shutil.copytree(results, options.out, dirs_exist_ok=True))
    step(f"demo: the table as JSON and a picture per scenario are in {results}")
    return status


def test(cache: Cache, options: argparse.Namespace) -> int:
    """Run the usual stages of tests and sum them up; the last line is `N passed, M failed`."""
    host.ensure_packages()
    steps: dict[str, Callable[[], Results]] = {
        "checks": lambda: stages.checks(cache, SOURCE),
        "meson": lambda: stages.meson(cache, SOURCE),
    }
    for stage in stages.guest_stages(SOURCE):
        steps[stage.name] = partial(_guest_stage, cache, stage, options.rest or stage.tests)
    steps["uml"] = lambda: virtual.stage(cache, SOURCE)
    usual = list(steps)
    for kernel in KERNELS:
        steps[f"owners-{kernel}"] = partial(virtual.owners_stage, cache, SOURCE, kernel)
    steps["layers"] = lambda: virtual.layers_stage(cache, SOURCE)
    total = Results()
    names = list(options.stages or (["guest"] if options.rest else usual))
    # Not one of all: it takes a kernel of its own.
    steps["deep"] = lambda: deep.stage(cache, SOURCE)
    for name in names:
        if name in ALONE:
            total.add(stages.run(name, steps[name]))
    guests = [name for name in names if name not in (*ALONE, *BESIDE)]
    beside = {name: steps[name] for name in BESIDE if name in names}
    with ExitStack() as together:
        if guests and beside:
            log = cache.run_dir / "beside.out"
            together.enter_context(stages.beside(beside, log, total))
        for name in guests or beside:
            total.add(stages.run(name, steps[name]))
    step(f"logs and reports are in {cache.run_dir}")
    for name in total.failed:
        print(f"FAILED {name[: stages.NAME_CHARS]}")
    print(total.line(), flush=True)
    return 0 if total.passed and not total.failed else 1


def bench(cache: Cache, options: argparse.Namespace) -> int:
    """Run a bench: one of those below."""
    _has_place(options.json)
    kinds = {
        "fairness": fairness, "promises": promises, "attribution": attribution,
        "overhead": overhead, "scale": scale, "harm": harm, "robustness": robustness,
        "blktests": blktests,
    }  # fmt: skip
    try:
        return kinds[options.bench](cache, options)
    except tables.ScenarioError as error:
        raise LabError(str(error)) from error


def fairness(cache: Cache, options: argparse.Namespace) -> int:
    """Run fairness scenarios in virtual time, print their table, say whether goals are met."""
    file = options.scenarios or SOURCE / "tests/uml/fairness.toml"
    scenarios = fair.load(file)
    unknown = sorted(set(options.names) - {scenario.name for scenario in scenarios})
    if unknown:
        known = ", ".join(scenario.name for scenario in scenarios)
        raise LabError(f"{file}: no scenario {unknown[0]}; there are {known}")
    chosen = [s for s in scenarios if not options.names or s.name in options.names]
    for name in options.schedulers or ():
        if name not in fair.SCHEDULERS:
            raise LabError(f"no scheduler {name}; there are {', '.join(fair.SCHEDULERS)}")
    if options.schedulers:
        chosen = [limited(scenario, tuple(options.schedulers)) for scenario in chosen]
    if options.jobs is not None and options.jobs < 1:
        raise LabError(f"--jobs {options.jobs}: at least 1")
    host.ensure_packages()
    machine = uml.machine(cache, SOURCE)
    objects = run_all(chosen, machine, step, options.jobs or os.cpu_count() or 1)
    if options.json:
        write_json(objects, options.json)
    judged = [item for item in objects if item.get("judged")]
    met = sum(item["met"] for item in judged)
    print(f"{met} of {len(judged)} goals met")
    return 0 if all_met(objects) else 1


def promises(cache: Cache, options: argparse.Namespace) -> int:
    """Run scenarios of floors in a guest, print a line for each goal, say whether they are met."""
    file = options.scenarios or promised.SHIPPED
    # A mistake is told before anything is built or booted.
    promised.load(file).only(options.names, options.schedulers or ())
    setup = _prepare(cache, "promises")
    shutil.copyfile(file, setup.folder / "out/promises.toml")
    words = ["--scenarios", "/mnt/out/promises.toml", "--json", "/mnt/out/promises.json"]
    words += [f"--scheduler={name}" for name in options.schedulers or ()]
    status = _in_guest(setup, "promises", [*words, "--", *options.names], options.json)
    step(f"bench: all numbers as JSON are in {options.json or setup.folder / 'out'}")
    return status


def attribution(cache: Cache, options: argparse.Namespace) -> int:
    """Measure in a guest of each kernel who is charged for I/O through stacks."""
    file = options.stacks or stacks.SHIPPED
    stacks.only(stacks.load(file), options.names)
    worst, found = 0, []
    for kernel in options.kernels or [KERNEL]:
        # A guest without the packages of this clone is the stock system.
        setup = _prepare(
            cache,
            f"attribution-{kernel}",
            kernel,
            bare=not options.patched,
            stacking=options.patched,
        )
        shutil.copyfile(file, setup.folder / "out/attribution.toml")
        words = ["--stacks", "/mnt/out/attribution.toml", "--json", "/mnt/out/attribution.json"]
        words += ["--patched"] if options.patched else []
        worst = max(worst, _in_guest(setup, "attribution", [*words, "--", *options.names], None))
        results = setup.folder / "out/attribution.json"
        if results.exists():
            found += page.read([results])
            if options.json:
                page.write_json(found, options.json)
            step(f"bench: all numbers of {kernel} as JSON are in {options.json or results}")
    return worst


def overhead(cache: Cache, options: argparse.Namespace) -> int:
    """Measure what schedulers cost, where instructions are counted and on two CPUs; judge sutro."""
    file = options.scenarios or costly.SHIPPED
    return _by_machine(cache, options, file, costly.load(file))


def scale(cache: Cache, options: argparse.Namespace) -> int:
    """Measure how what schedulers cost grows with groups, queues and CPUs; judge sutro."""
    file = options.scenarios or growing.SHIPPED
    book = growing.load(file)
    queues = [case.queues for one in book.on("speed").scenarios for case in one.cases()]
    host.ensure_packages()
    load = products.crowd(cache, SOURCE)
    return _by_machine(cache, options, file, book, [load], cpus=max(queues, default=None))


def _by_machine(
    cache: Cache,
    options: argparse.Namespace,
    file: Path,
    book: costly.Book,
    tools: Sequence[Path] = (),
    cpus: int | None = None,
) -> int:
    """Run a bench in a guest whose clock counts instructions and in one with several CPUs."""
    _has_place(options.plot)
    name = options.bench
    book = book.only(options.names, options.schedulers or ())
    machines = [machine for machine in costly.MACHINES if book.on(machine).scenarios]
    # All are made before the first is booted: of one state of the clone.
    setups = {m: _prepare(cache, f"{name}-{m}", smp=m == "speed", tools=tools) for m in machines}
    status, found = 0, []
    for machine, setup in setups.items():
        # No other clock counts instructions.
        setup = replace(setup, accelerator="tcg") if machine == "count" else setup
        setup = replace(setup, cpus=cpus) if machine == "speed" else setup
        out = setup.folder / "out"
        shutil.copyfile(file, out / f"{name}.toml")
        words = ["--machine", machine, "--scenarios", f"/mnt/out/{name}.toml"]
        words += ["--json", f"/mnt/out/{name}.json", "--plot", f"/mnt/out/{name}.png"]
        words += [f"--scheduler={one}" for one in options.schedulers or ()]
        status |= _in_guest(setup, name, [*words, "--", *options.names], None)
        if (out / f"{name}.json").exists():
            found += json.loads((out / f"{name}.json").read_text())
        if options.plot and (out / f"{name}.png").exists():
            shutil.copyfile(out / f"{name}.png", _beside(options.plot, machine))
        step(f"bench: all numbers as JSON, and a picture, are in {out}")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    judged = [result for result in found if result["goal"]]
    print(f"{sum(result['met'] for result in judged)} of {len(judged)} goals met")
    return 0 if judged and not status else 1


def harm(cache: Cache, options: argparse.Namespace) -> int:
    """Count in a guest what an I/O through stock drivers takes, and through patched ones."""
    file = options.stacks or harmed.SHIPPED
    harmed.only(harmed.load(file), options.names)
    setup = _prepare(cache, "harm", options.kernel, stacking=True)
    shutil.copyfile(file, setup.folder / "out/harm.toml")
    words = ["--scenarios", "/mnt/out/harm.toml", "--json", "/mnt/out/harm.json"]
    # No other clock counts instructions.
    setup = replace(setup, accelerator="tcg")
    status = _in_guest(setup, "harm", [*words, "--", *options.names], options.json)
    step(f"bench: all numbers as JSON are in {options.json or setup.folder / 'out'}")
    return status


def robustness(cache: Cache, options: argparse.Namespace) -> int:
    """Change everything under load in virtual time, and count what is left in the end."""
    if options.seconds < 1:
        raise LabError(f"--seconds {options.seconds}: at least 1")
    host.ensure_packages()
    seeds = options.seeds or [1]
    rows: list[result.Result] = []
    for number, seed in enumerate(seeds, start=1):
        step(f"bench: {number} of {len(seeds)}: {options.seconds} s with seed {seed}")
        found = virtual.stress(cache, SOURCE, seed, options.seconds)
        rows += [replace(row, scenario=f"stress-{seed}") for row in unbroken.judge(found)]
    for row in rows:
        word = "met   " if row.met else "MISSED"
        print(f"  {word}  {row.scenario}: {row.metric} {row.goal}: {row.value:g}")
    if options.json:
        result.write_json(rows, options.json)
    print(f"{sum(bool(row.met) for row in rows)} of {len(rows)} goals met")
    return 0 if result.all_met(rows) else 1


def blktests(cache: Cache, options: argparse.Namespace) -> int:
    """Run the kernel's tests of its block layer under mq-deadline, then under sutro; compare."""
    if options.seconds < 1:
        raise LabError(f"--seconds {options.seconds}: at least 1")
    wanted = foreign.tests(options.clone, options.names)
    setups = {
        name: _prepare(cache, f"blktests-{name}", options.kernel, smp=True)
        for name in (results.BASELINE, results.OURS)
    }
    before, after = (
        foreign.under(name, setup, options.clone, wanted, options.seconds)
        for name, setup in setups.items()
    )
    cases = results.cases(before.rows, after.rows)
    complaints = results.new_complaints(before.complaints, after.complaints)
    print(f"{'':24}{results.BASELINE:13}{results.OURS}")
    for case in cases:
        print(case.text())
    for line in complaints:
        print(f"the kernel under {results.OURS}: {line}")
    numbers = results.judged(cases, complaints)
    if options.json:
        result.write_json(numbers, options.json)
    step(f"bench: what each test left is in {cache.run_dir}")
    print(results.summary(cases))
    passed = any(case.verdict == results.PASSED for case in cases)
    return 0 if passed and result.all_met(numbers) else 1


def shell(cache: Cache, options: argparse.Namespace) -> int:
    """A root login in a guest with everything set up, on this terminal."""
    setup = _prepare(cache, "shell", options.kernel, smp=True, stacking=options.stacking)
    step("guest: booting; Ctrl-A x or `exit` ends it")
    guest.interactive(setup)
    step(f"guest: ended; its console and /mnt/out are in {setup.folder}")
    return 0


def run(cache: Cache, options: argparse.Namespace) -> int:
    """Boot a guest, run one command in it, pass its output and exit status on."""
    if options.bare and options.stacking:
        raise LabError("--bare and --stacking: a stock system has no package of Sutro")
    setup = _prepare(
        cache,
        "run",
        options.kernel,
        bare=options.bare,
        smp=options.smp,
        stacking=options.stacking,
    )
    words = options.command
    with guest.boot(setup) as machine:
        command = words[0] if len(words) == 1 else guest.shell_words(words)
        status = machine.run(command, echo=guest.to_stdout)
        machine.shutdown()
    step(f"status {status}; logs and /mnt/out are in {setup.folder}")
    return status


def clean(cache: Cache, options: argparse.Namespace) -> int:
    """Remove the cache folder."""
    cache.clean()
    step(f"removed {cache.root}")
    return 0


def _has_place(*paths: Path | None) -> None:
    """Results can be written there: said before they are got."""
    for path in paths:
        if path and not path.absolute().parent.is_dir():
            raise LabError(f"{path.absolute().parent} is no folder, so {path} cannot be written")


def _beside(file: Path, machine: str) -> Path:
    """The file for a machine: NAME.png becomes NAME-count.png."""
    return file.with_stem(f"{file.stem}-{machine}")


def _in_guest(setup: guest.Setup, name: str, words: list[str], json: Path | None) -> int:
    """Run a program of tests/bench in a guest and copy its NAME.json; its exit status."""
    width = shutil.get_terminal_size((WIDTH, 24)).columns if sys.stdout.isatty() else WIDTH
    words = ["python3", "-m", f"bench.{name}", *words]
    command = f"export PYTHONPATH=/mnt/src/tests COLUMNS={width}; exec {guest.shell_words(words)}"
    with guest.boot(setup) as machine:
        status = machine.run(command, name=name, echo=guest.to_stdout)
        results = setup.folder / "out" / f"{name}.json"
        if json and results.exists():
            shutil.copyfile(results, json)
        machine.shutdown()
    return status


def _guest_stage(cache: Cache, stage: stages.GuestStage, tests: list[str]) -> Results:
    setup = _prepare(cache, stage.name, stage.kernel, smp=stage.smp, stacking=stage.stacking)
    with guest.boot(setup) as machine:
        results = stages.guest(machine, stage.name, tests)
        try:
            machine.shutdown()
        except LabError as error:
            results.failed["kernel log"] = str(error)
    return results


def _prepare(
    cache: Cache,
    name: str,
    kernel: str = KERNEL,
    *,
    bare: bool = False,
    smp: bool = False,
    stacking: bool = False,
    tools: Sequence[Path] = (),
) -> guest.Setup:
    """Everything up to the boot.

    bare: without the Sutro packages; smp: with two CPUs for sure; stacking: md and dm with patches;
    tools: folders whose files the guest has in /mnt/build, too.
    """
    host.ensure_packages()
    debs = None if bare else products.debs(cache, SOURCE)
    disk = image.built(cache, debs, kernel, stacking=stacking)
    modules = products.test_modules(cache, SOURCE, kernel)
    folder = cache.run_dir / name
    for share in ("out", "log"):
        (folder / share).mkdir(parents=True)
    products.gathered(folder / "build", [debs, modules, *tools])
    return guest.Setup(disk, accel.chosen(cache, disk, smp=smp), SOURCE, folder)
