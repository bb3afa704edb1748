# SPDX-License-Identifier: LGPL-2.1-or-later
"""The verbs of ./lab, in terms of artefacts and guests."""

import argparse
from functools import partial

from . import archive, guest, host, keys, parallel, roots, selection, stages
from .benches import bench as bench
from .cache import Cache
from .demo import demo as demo
from .junit import Results
from .progress import LabError, step
from .report import report as report
from .roots import KERNEL
from .setup import SOURCE, prepare


def test(cache: Cache, options: argparse.Namespace) -> int:
    """Run a tier or some stages of tests; the last line is `N passed, M failed`."""
    tests = selection.in_guest(SOURCE, options.rest)
    host.ensure_packages()
    extent = (options.fuzz_minutes, options.cuts, options.cut_seed)
    known = {stage.name: stage for stage in stages.stages(SOURCE, tests, *extent)}
    chosen = [s for s in known.values() if options.all or s.first]
    if options.stages or options.rest:
        chosen = [known[name] for name in options.stages or ["guest"]]
    roots.prepared(cache, *dict.fromkeys(tree for s in chosen for tree in _stable_trees(s)))
    chosen = _without_absent(cache, chosen)
    forced = options.force or not options.all
    results = _run_stages(cache, chosen, forced=forced, kept=not options.rest)
    return 0 if results.all_passed() else 1


def _stable_names() -> tuple[str, ...]:
    kinds = ("", "cockpit-", "metrics-", "slurm-", "nri-", "containers-")
    images = (f"image-{kind}{KERNEL}" for kind in kinds)
    return ("build", "distributions", "page", *images)


def _stable_trees(stage: stages.Stage) -> list[roots.Recipe]:
    """The trees that a stage needs from the stable archive; packages are built in one of them."""
    trees = [tree for tree in stage.trees if tree.name in _stable_names()]
    images = [tree for tree in stage.trees if tree.name.startswith("image-")]
    return [*trees, *map(roots.packages_of, images)]


def _without_absent(cache: Cache, chosen: list[stages.Stage]) -> list[stages.Stage]:
    """The stages whose kernel is in the cache or the archive; a line for each other series."""
    missing = {
        stage.series
        for stage in chosen
        if stage.series != KERNEL and keys.key(cache, stage, SOURCE) is None
    }
    if not missing:
        return chosen
    try:
        offered = archive.backports(cache)
        reasons = {series: roots.absent(series, offered) for series in missing - offered.keys()}
    except LabError as error:
        reasons = dict.fromkeys(missing, str(error))
    for series, reason in sorted(reasons.items()):
        names = [stage.name for stage in chosen if stage.series == series]
        print(f"{reason}: not run: {', '.join(names)}", flush=True)
    return [s for s in chosen if s.series not in reasons]


def _run_stages(cache: Cache, chosen: list[stages.Stage], *, forced: bool, kept: bool) -> Results:
    """Run stages, as many at a time as the host carries, and print their results.

    forced: also those with a kept result; kept: keep the new results.
    """
    total, left, spent = Results(), [], {}
    before = {stage.name: keys.key(cache, stage, SOURCE) for stage in chosen}
    for stage in chosen:
        known = None if forced or stage.first else keys.find(cache, stage, before[stage.name])
        if known:
            print(f"{stage.name}: {known.line()}", flush=True)
            total.add(Results(known.passed))
        else:
            left.append(stage)
    tasks = [partial(stages.run, stage, cache, SOURCE) for stage in left]
    workers = min(parallel.workers(), max(len(tasks), 1))
    for number, (results, seconds) in parallel.as_they_end(tasks, workers):
        stage = left[number]
        stages.show(stage.name, results, seconds)
        spent[stage.name] = f"{stage.name} {stages.minutes(seconds)}"
        total.add(results)
        after = keys.key(cache, stage, SOURCE)
        # A file that changed meanwhile leaves open which version was tested.
        if kept and not stage.first and after and before[stage.name] in (after, None):
            keys.keep(cache, stage, after, results, SOURCE)
    step(f"logs and reports are in {cache.run_dir}")
    print("stages: " + (", ".join(spent.values()) or "all cached"))
    for name in total.failed:
        print(f"FAILED {name[: stages.NAME_CHARS]}")
    print(total.line(), flush=True)
    return total


def shell(cache: Cache, options: argparse.Namespace) -> int:
    """A root login in a guest with everything set up, on this terminal."""
    setup = prepare(cache, "shell", options.kernel, smp=True, stacking=options.stacking)
    step("guest: booting; Ctrl-A x or `exit` ends it")
    guest.interactive(setup)
    step(f"guest: ended; its console and /mnt/out are in {setup.folder}")
    return 0


def run(cache: Cache, options: argparse.Namespace) -> int:
    """Boot a guest, run one command in it, pass its output and exit status on."""
    if options.bare and options.stacking:
        raise LabError("--bare and --stacking: a stock system has no package of Sutro")
    setup = prepare(
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
