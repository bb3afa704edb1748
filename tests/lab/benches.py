# SPDX-License-Identifier: LGPL-2.1-or-later
"""`./lab bench KIND`: each kind of bench, in terms of artefacts and guests."""

from __future__ import annotations

import argparse
import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import replace
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

from . import blktests as foreign
from . import host, products, uml, virtual
from .cache import Cache
from .progress import LabError, step
from .roots import KERNEL
from .setup import SOURCE, has_place, in_guest, prepare


def bench(cache: Cache, options: argparse.Namespace) -> int:
    """Run a bench: one of those below."""
    has_place(options.json)
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
    setup = prepare(cache, "promises")
    shutil.copyfile(file, setup.folder / "out/promises.toml")
    words = ["--scenarios", "/mnt/out/promises.toml", "--json", "/mnt/out/promises.json"]
    words += [f"--scheduler={name}" for name in options.schedulers or ()]
    status = in_guest(setup, "promises", [*words, "--", *options.names], options.json)
    step(f"bench: all numbers as JSON are in {options.json or setup.folder / 'out'}")
    return status


def attribution(cache: Cache, options: argparse.Namespace) -> int:
    """Measure in a guest of each kernel who is charged for I/O through stacks."""
    file = options.stacks or stacks.SHIPPED
    stacks.only(stacks.load(file), options.names)
    worst, found = 0, []
    for kernel in options.kernels or [KERNEL]:
        # A guest without the packages of this clone is the stock system.
        setup = prepare(
            cache,
            f"attribution-{kernel}",
            kernel,
            bare=not options.patched,
            stacking=options.patched,
        )
        shutil.copyfile(file, setup.folder / "out/attribution.toml")
        words = ["--stacks", "/mnt/out/attribution.toml", "--json", "/mnt/out/attribution.json"]
        words += ["--patched"] if options.patched else []
        worst = max(worst, in_guest(setup, "attribution", [*words, "--", *options.names], None))
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
    has_place(options.plot)
    name = options.bench
    book = book.only(options.names, options.schedulers or ())
    machines = [machine for machine in costly.MACHINES if book.on(machine).scenarios]
    # All are made before the first is booted: of one state of the clone.
    setups = {m: prepare(cache, f"{name}-{m}", smp=m == "speed", tools=tools) for m in machines}
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
        status |= in_guest(setup, name, [*words, "--", *options.names], None)
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
    setup = prepare(cache, "harm", options.kernel, stacking=True)
    shutil.copyfile(file, setup.folder / "out/harm.toml")
    words = ["--scenarios", "/mnt/out/harm.toml", "--json", "/mnt/out/harm.json"]
    # No other clock counts instructions.
    setup = replace(setup, accelerator="tcg")
    status = in_guest(setup, "harm", [*words, "--", *options.names], options.json)
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
        name: prepare(cache, f"blktests-{name}", options.kernel, smp=True)
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


def _beside(file: Path, machine: str) -> Path:
    """The file for a machine: NAME.png becomes NAME-count.png."""
    return file.with_stem(f"{file.stem}-{machine}")
