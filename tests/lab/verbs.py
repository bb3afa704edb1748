# SPDX-License-Identifier: LGPL-2.1-or-later
"""What each verb of ./lab does, in terms of artefacts and guests."""

from __future__ import annotations

import argparse
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from . import accel, guest, host, image, products, stages
from .cache import Cache
from .junit import Results
from .progress import LabError, step

SOURCE = Path(__file__).resolve().parents[2]
# Where a table does not know how wide it may be, it is not cut.
WIDTH = 160


@dataclass(frozen=True)
class Prepared:
    """What a guest of this clone boots."""

    image: image.Image
    accelerator: str
    source: Path
    build: Path


def demo(cache: Cache, options: argparse.Namespace) -> int:
    """Run the scenarios in a guest, show their table, bring JSON and pictures out."""
    for path in (options.json, options.out):
        if path and not path.absolute().parent.is_dir():
            raise LabError(f"{path.absolute().parent} is no folder, so {path} cannot be written")
    prepared = _prepare(cache)
    words = ["python3", "-m", "bench.demo", "--out", "/mnt/out", "--json", "/mnt/out/demo.json"]
    words += options.rest
    width = shutil.get_terminal_size((WIDTH, 24)).columns if sys.stdout.isatty() else WIDTH
    command = f"export PYTHONPATH=/mnt/src/tests COLUMNS={width}; exec {guest.shell_words(words)}"
    with _boot(cache, prepared) as machine:
        status = machine.run(command, name="demo", echo=guest.to_stdout)
        results = cache.run_dir / "out"
        if options.json and (results / "demo.json").exists():
            shutil.copyfile(results / "demo.json", options.json)
        if options.out:
            results = Path(shutil.copytree(results, options.out, dirs_exist_ok=True))
        step(f"demo: the table as JSON and a picture per scenario are in {results}")
        machine.shutdown()
    return status


def test(cache: Cache, options: argparse.Namespace) -> int:
    """Run every stage of tests and sum them up; the last line is `N passed, M failed`."""
    host.ensure_packages()
    total = Results()
    wanted = options.stages or ("checks", "meson", "guest")
    if "checks" in wanted:
        total.add(stages.run("checks", lambda: stages.checks(cache, SOURCE)))
    if "meson" in wanted:
        total.add(stages.run("meson", lambda: stages.meson(cache, SOURCE)))
    if "guest" in wanted:
        total.add(stages.run("guest", lambda: _guest_stage(cache, options.rest)))
    step(f"logs and reports are in {cache.run_dir}")
    print(total.line(), flush=True)
    return 0 if total.passed and not total.failed else 1


def shell(cache: Cache, options: argparse.Namespace) -> int:
    """A root login in a guest with everything set up, on this terminal."""
    prepared = _prepare(cache)
    step("guest: booting; Ctrl-A x or `exit` ends it")
    guest.interactive(
        prepared.image, prepared.accelerator, prepared.source, prepared.build, cache.run_dir
    )
    step(f"guest: ended; its console and /mnt/out are in {cache.run_dir}")
    return 0


def run(cache: Cache, options: argparse.Namespace) -> int:
    """Boot a guest, run one command in it, pass its output and exit status on."""
    prepared = _prepare(cache, bare=options.bare)
    words = options.command
    with _boot(cache, prepared) as machine:
        command = words[0] if len(words) == 1 else guest.shell_words(words)
        status = machine.run(command, echo=guest.to_stdout)
        machine.shutdown()
    step(f"status {status}; logs and /mnt/out are in {cache.run_dir}")
    return status


def clean(cache: Cache, options: argparse.Namespace) -> int:
    """Remove the cache folder."""
    cache.clean()
    return 0


def _guest_stage(cache: Cache, arguments: list[str]) -> Results:
    with _boot(cache, _prepare(cache)) as machine:
        results = stages.guest(machine, arguments)
        try:
            machine.shutdown()
        except LabError as error:
            results.failed["kernel log"] = str(error)
    return results


def _prepare(cache: Cache, *, bare: bool = False) -> Prepared:
    """Everything up to the boot; bare means a guest without the Sutro packages."""
    host.ensure_packages()
    debs = None if bare else products.debs(cache, SOURCE)
    disk = image.built(cache, debs)
    modules = products.test_modules(cache, SOURCE)
    build = products.gathered(cache.run_dir / "build", [debs, modules])
    return Prepared(disk, accel.chosen(cache, disk), SOURCE, build)


def _boot(cache: Cache, prepared: Prepared):
    return guest.boot(
        prepared.image, prepared.accelerator, prepared.source, prepared.build, cache.run_dir
    )
