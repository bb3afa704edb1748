# SPDX-License-Identifier: LGPL-2.1-or-later
"""What each verb of ./lab does, in terms of artefacts and guests."""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from . import deep, guest, host, stages, virtual
from .benches import bench as bench
from .cache import Cache
from .junit import Results
from .progress import LabError, step
from .roots import KERNELS
from .setup import SOURCE, has_place, in_guest, prepare

# They have clocks of their own, which no busy host disturbs, so they run beside the others that
# boot a guest; in this order, for what is compiled first leaves the guests most of the host.
BESIDE = ("uml", "measure-7.2", "stacking", "stacking-7.2")
ALONE = ("checks", "meson")


def demo(cache: Cache, options: argparse.Namespace) -> int:
    """Run the scenarios in a guest, show their table, bring JSON and pictures out."""
    has_place(options.json, options.out)
    setup = prepare(cache, "demo")
    words = ["--out", "/mnt/out", "--json", "/mnt/out/demo.json", *options.rest]
    status = in_guest(setup, "demo", words, options.json)
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


def _guest_stage(cache: Cache, stage: stages.GuestStage, tests: list[str]) -> Results:
    setup = prepare(cache, stage.name, stage.kernel, smp=stage.smp, stacking=stage.stacking)
    with guest.boot(setup) as machine:
        results = stages.guest(machine, stage.name, tests)
        try:
            machine.shutdown()
        except LabError as error:
            results.failed["kernel log"] = str(error)
    return results
