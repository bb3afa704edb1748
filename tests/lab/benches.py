# SPDX-License-Identifier: LGPL-2.1-or-later
"""`./lab bench KIND`: each kind of bench, in terms of artefacts and guests."""

import argparse
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from bench import show
from bench.applications import scenario as databases
from bench.attribution import scenario as stacks
from bench.book import Book
from bench.harm import scenario as harmed
from bench.overhead import scenario as costly
from bench.program import RAN
from bench.promises import scenario as promised
from bench.read import ScenarioError, load
from bench.scale import scenario as growing
from bench.suites import results
from rig import result
from uml import attacks as hostile
from uml import drawn, drawn_pairs
from uml import locks as locking
from uml import protect as favoured
from uml import robustness as unbroken
from uml import scenario as fair
from uml import v7 as founding
from uml.bench import run_all

from . import blktests as block
from . import guest, host, keys, products, report, suites, uml, umlsuites, virtual
from .cache import Cache
from .progress import LabError, step
from .roots import KERNEL, RECIPES, applications_recipe, build_root
from .setup import SOURCE, has_place, in_guest, prepare

# The module of each kind that reads a file.
FILES = {
    "fairness": fair, "protect": favoured, "v7": founding, "attacks": hostile,
    "locks": locking, "promises": promised,
    "attribution": stacks,
    "overhead": costly, "scale": growing, "harm": harmed, "applications": databases,
}  # fmt: skip
# The module that draws scenarios of a kind.
RANDOM = {"fairness": drawn, "protect": drawn_pairs}
SCHEDULERS = (results.BASELINE, results.OURS)


def bench(cache: Cache, options: argparse.Namespace) -> int:
    """Run a bench: one of those below. A mistake in a file is named before anything is built."""
    has_place(getattr(options, "json", None), getattr(options, "plot", None))
    name, options.commit = options.bench, ""
    if name not in FILES:
        kinds = {
            "robustness": robustness, "scrape": scrape,
            "blktests": blktests, "xfstests": xfstests, "ltp": ltp,
        }  # fmt: skip
        return kinds[name](cache, options)
    random = getattr(options, "random", None)
    if random is not None and (random < 1 or options.scenarios):
        raise LabError(f"--random {random}: at least 1, and not together with --scenarios")
    file = options.scenarios = options.scenarios or FILES[name].SHIPPED
    # Figures of the report come from scenarios in files of the repository.
    options.commit = keys.commit(SOURCE) if not random and keys.is_tracked(SOURCE, file) else ""
    schedulers = getattr(options, "schedulers", None) or ()
    try:
        if random:
            book = RANDOM[name].book(options.seed, random)
        else:
            book = load(FILES[name].Book, file)
        book = book.only(options.names, schedulers)
    except ScenarioError as error:
        raise LabError(str(error)) from error
    kinds = {
        "fairness": fairness, "protect": fairness, "v7": fairness, "attacks": attacks,
        "locks": fairness, "promises": promises,
        "attribution": attribution,
        "overhead": by_machine, "scale": by_machine, "harm": harm, "applications": applications,
    }  # fmt: skip
    return kinds[name](cache, options, book)


def fairness(cache: Cache, options: argparse.Namespace, book: Book) -> int:
    """Run scenarios of shares, latencies or locks in virtual time."""
    if options.jobs is not None and options.jobs < 1:
        raise LabError(f"--jobs {options.jobs}: at least 1")
    host.ensure_packages()
    machine = uml.machine(cache, SOURCE, "locks" if options.bench == "locks" else "plain")
    found = run_all(book.runs(), machine, step, options.jobs or os.cpu_count() or 1)
    if getattr(options, "random", None):
        total = RANDOM[options.bench].summary(options.seed, found)
        show.goals(total)
        found += total
    return _summed_up(cache, [one.as_object() for one in found], options)


def attacks(cache: Cache, options: argparse.Namespace, book: hostile.Book) -> int:
    """Attack victims on a disk in virtual time, and sutrod by the clock of the host."""
    host.ensure_packages()
    found: list[Mapping] = []
    if book.scenario:
        machine, jobs = uml.machine(cache, SOURCE), options.jobs or os.cpu_count() or 1
        found += [one.as_object() for one in run_all(book.scenario, machine, step, jobs)]
    if book.bus:
        found += _on_daemon(cache, options.scenarios, [one.name for one in book.bus])
    return _summed_up(cache, found, options)


def _on_daemon(cache: Cache, scenarios: Path, names: Sequence[str]) -> list[Mapping]:
    """Attack the sutrod of this clone in the build root; return the measurements."""
    work, log = cache.run_dir / "attacks", cache.run_dir / "attacks-on-sutrod.log"
    products.copied(SOURCE, products.source_files(SOURCE), work / "sutro")
    shutil.copyfile(scenarios, work / "attacks.toml")
    root = build_root(cache)
    products.as_builder(root, "attacks-build", work, cache.run_dir / "attacks-build.log")
    # As root, because only root can start a program of another user.
    command = ["sh", "-e", "/mnt/lab/attacks", *names]
    binds = {"/mnt/lab": RECIPES, "/build": work}
    root.run(command, "recipes/attacks in the build root", log, binds=binds, check=False)
    numbers = work / "attacks.json"
    if not numbers.exists():
        raise LabError("no attack on sutrod was run to its end", log)
    # Without the line with the number of goals: a report may have further goals.
    print(log.read_text().rpartition("\n\n")[0])
    return json.loads(numbers.read_text())


def promises(cache: Cache, options: argparse.Namespace, book: Book) -> int:
    """Run scenarios of floors in a guest."""
    return _in_guests(cache, options, {"promises": prepare(cache, "promises")})


def attribution(cache: Cache, options: argparse.Namespace, book: Book) -> int:
    """Measure in a guest of each kernel which cgroup is charged for I/O through stacks."""
    patched = options.patched
    # A guest without the packages of this clone is the stock system.
    setups = {
        kernel: prepare(
            cache, f"attribution-{kernel}", kernel, bare=not patched, stacking=patched
        )
        for kernel in options.kernels or [KERNEL]
    }  # fmt: skip
    return _in_guests(cache, options, setups, ["--patched"] if patched else [])


def by_machine(cache: Cache, options: argparse.Namespace, book: costly.PaceBook) -> int:
    """Measure costs in guests whose clock counts instructions and in guests with several CPUs."""
    name, tools, cpus = options.bench, [], None
    if name == "scale":
        host.ensure_packages()
        tools = [products.crowd(cache, SOURCE)]
        queues = [case.queues for one in book.runs() for case in one.cases()]
        cpus = max(queues, default=None)
    machines = [machine for machine in costly.MACHINES if book.on(machine).runs()]
    # All are made before the first is booted: of one state of the clone.
    setups: dict[str, guest.Setup] = {}
    for machine in machines:
        clock, _, series = machine.partition("-")
        smp = clock == "speed"
        setup = prepare(cache, f"{name}-{machine}", smp=smp, series=bool(series), tools=tools)
        setups[machine] = replace(setup, cpus=cpus) if smp else _counting(setup)
    return _in_guests(cache, options, setups, ["--machine"])


def harm(cache: Cache, options: argparse.Namespace, book: Book) -> int:
    """Count in a guest what an I/O through stock drivers takes, and through patched ones."""
    setup = prepare(cache, "harm", options.kernel, stacking=True)
    return _in_guests(cache, options, {"harm": _counting(setup)})


def applications(cache: Cache, options: argparse.Namespace, book: Book) -> int:
    """Run databases beside backups and writers in a guest that has them."""
    tools = [products.databases(cache)]
    setup = prepare(cache, "applications", image_of=applications_recipe(), tools=tools)
    return _in_guests(cache, options, {"applications": _counting(setup)})


def _counting(setup: guest.Setup) -> guest.Setup:
    """A guest whose clock counts instructions: no other accelerator has one."""
    return replace(setup, accelerator="tcg")


def _in_guests(
    cache: Cache,
    options: argparse.Namespace,
    setups: Mapping[str, guest.Setup],
    more: Sequence[str] = (),
) -> int:
    """Run a bench in one guest after the other; gather numbers and pictures.

    more: words for its program; after "--machine", the name of the setup.
    """
    kind = options.bench
    ran, found = True, []
    for name, setup in setups.items():
        out = setup.folder / "out"
        shutil.copyfile(options.scenarios, out / f"{kind}.toml")
        words = ["--scenarios", f"/mnt/out/{kind}.toml", "--json", f"/mnt/out/{kind}.json"]
        words += ["--out", "/mnt/out", *more, *([name] if "--machine" in more else [])]
        words += [f"--scheduler={one}" for one in getattr(options, "schedulers", None) or ()]
        ran &= in_guest(setup, kind, [*words, "--", *options.names], None) in RAN
        if (out / f"{kind}.json").exists():
            found += json.loads((out / f"{kind}.json").read_text())
        if getattr(options, "plot", None) and (out / f"{kind}.png").exists():
            shutil.copyfile(out / f"{kind}.png", _beside(options.plot, name))
        step(f"bench: all numbers as JSON, and pictures, are in {out}")
        _kept(cache, found, options)
    line, status = result.summary(found)
    if len(setups) > 1:
        print(line)
    return status if ran else 1


def _summed_up(cache: Cache, objects: Sequence[Mapping], options: argparse.Namespace) -> int:
    """Write all records, print how many goals are met; the exit status."""
    _kept(cache, objects, options)
    line, status = result.summary(objects)
    print(line)
    return status


def _kept(cache: Cache, objects: Sequence[Mapping], options: argparse.Namespace) -> None:
    """Write all records to --json, and those of shipped scenarios for `./lab report`."""
    if options.json:
        result.write_objects(objects, options.json)
    if options.commit:
        kernel = getattr(options, "kernel", KERNEL)
        shipped = options.scenarios == FILES[options.bench].SHIPPED
        name = options.bench if shipped else options.scenarios.stem
        report.keep(cache, name, _command(options, kernel), options.commit, kernel, objects)


def _command(options: argparse.Namespace, kernel: str) -> list[str]:
    """The words that repeat a run."""
    more = ["--kernel", kernel] if kernel != KERNEL else []
    if options.scenarios != FILES[options.bench].SHIPPED:
        more += ["--scenarios", str(options.scenarios.resolve().relative_to(SOURCE))]
    return ["./lab", "bench", options.bench, *more, *options.names]


def _beside(file: Path, machine: str) -> Path:
    """The file for a machine: NAME.png becomes NAME-count.png."""
    return file.with_stem(f"{file.stem}-{machine}")


def robustness(cache: Cache, options: argparse.Namespace) -> int:
    """Change everything under load in virtual time, and count what is left in the end."""
    if options.seconds < 1:
        raise LabError(f"--seconds {options.seconds}: at least 1")
    host.ensure_packages()
    seeds = options.seeds or [1]
    rows: list[result.Result] = []
    for number, seed in enumerate(seeds, start=1):
        step(f"bench: {number} of {len(seeds)}: {options.seconds} s with seed {seed}")
        found = unbroken.judge(virtual.stress(cache, SOURCE, seed, options.seconds))
        show.goals(found)
        rows += [replace(row, scenario=f"stress-{seed}") for row in found]
    return _summed_up(cache, [row.as_object() for row in rows], options)


def scrape(cache: Cache, options: argparse.Namespace) -> int:
    """Measure the CPU time of scrapes on a fake machine in the build root."""
    work = cache.run_dir / "scrape"
    products.copied(SOURCE, products.source_files(SOURCE), work / "sutro")
    products.as_builder(build_root(cache), "scrape", work, cache.run_dir / "scrape.log")
    print((work / "scrape.txt").read_text())
    return 0


def blktests(cache: Cache, options: argparse.Namespace) -> int:
    """Run the kernel's tests of its block layer under mq-deadline, then under sutro; compare."""
    if options.seconds < 1:
        raise LabError(f"--seconds {options.seconds}: at least 1")
    wanted = block.tests(options.clone, options.names)
    setups = {
        name: prepare(cache, f"blktests-{name}", options.kernel, smp=True) for name in SCHEDULERS
    }
    before, after = (
        suites.under(name, wanted, block.turn(name, setup, options.clone, options.seconds))
        for name, setup in setups.items()
    )
    return _compared(cache, before, after, options)


def xfstests(cache: Cache, options: argparse.Namespace) -> int:
    """Run tests of file systems on model disks under mq-deadline, then under sutro; compare."""
    names, discard = options.names, options.discard
    return _in_machines(
        cache, umlsuites.of_xfstests(options.clone, options.fs, names, discard=discard), options
    )


def ltp(cache: Cache, options: argparse.Namespace) -> int:
    """Do so with tests of I/O and cgroups of the Linux Test Project."""
    return _in_machines(cache, umlsuites.of_ltp(options.clone, options.names), options)


def _in_machines(cache: Cache, suite: umlsuites.Suite, options: argparse.Namespace) -> int:
    """Run a suite in User Mode Linux."""
    host.ensure_packages()
    wanted = list(suite.tests)
    before, after = (
        suites.under(name, wanted, umlsuites.turn(cache, suite, name)) for name in SCHEDULERS
    )
    return _compared(cache, before, after, options)


def _compared(
    cache: Cache, before: suites.Found, after: suites.Found, options: argparse.Namespace
) -> int:
    """Compare what both schedulers found."""
    step(f"bench: what each test left is in {cache.run_dir}")
    return suites.compared(before, after, options.json)
