# SPDX-License-Identifier: LGPL-2.1-or-later
"""xfstests and LTP in User Mode Linux: inside/suite.py runs the tests, in one machine at a time.

The machine skips waits, and otherwise has the pace of the host (time-travel without inf-cpu): a
test that hangs with all processes asleep reaches its limit at once. Limits are of the machine's
time. The host ends a machine only if its tests print nothing for long.
"""

import re
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.suites import ltp, xfstests
from bench.suites.results import FAILED, STUCK, Row, text

from . import uml
from .cache import Cache, digest_files
from .namespace import remove_tree, started
from .products import as_builder, git
from .progress import LabError, step
from .roots import RECIPES, bootstrapped, suites_recipe
from .setup import SOURCE
from .suites import Found, Turn

# Seconds of the machine; the time of the host without a line of output before the machine is ended.
LIMIT_S, SILENCE_S = 900, 3600.0
POLL_S = 2.0
MEMORY_MIB = 6144
DISKS = {"xfstests": 8, "ltp": 2}
DISK_MIB = 10240
# A volatile cache, so that flushes and FUA mean something.
DISK = {"kind": "ssd", "size_mb": DISK_MIB, "cache_kb": 16384}
# Discards that cost time, as they do on a drive: figures of tests/modeldisk.
DISCARDING = {"kind": "nvme", "size_mb": DISK_MIB, "cache_kb": 16384, "discard_us": 50,
              "discard_us_per_mb": 20}  # fmt: skip
# Time begins in 2023: some tests compare dates of files.
START_NS = uml.EPOCH_S * 10**9
RUNS = re.compile(r"\] run (?:fstests|suite) (\S+)")


@dataclass(frozen=True)
class Suite:
    """A suite, the key words of its plan, and how to read what it leaves."""

    name: str
    copy: Path
    tests: Mapping[str, str] | Sequence[str]
    rows: Callable[[Path], list[Row]]
    running: Callable[[Path], str]
    plan: dict[str, Any] = field(default_factory=dict)


def of_xfstests(copy: Path, fs: str, names: Sequence[str], *, discard: bool = False) -> Suite:
    """Tests of a user's copy of xfstests."""
    try:
        xfstests.check(copy)
        wanted = xfstests.tests(copy, fs, names)
    except xfstests.CopyError as error:
        raise LabError(str(error)) from error
    plan = {"fs": fs, "options": "-o discard" if discard else "",
            "disk": DISCARDING if discard else DISK}  # fmt: skip
    return Suite(
        "xfstests", copy, wanted,
        lambda out: xfstests.rows(_text(out / "check.log")),
        lambda out: xfstests.running(_text(out / "check.log")), plan,
    )  # fmt: skip


def of_ltp(copy: Path, names: Sequence[str]) -> Suite:
    """Tests of a user's copy of LTP."""
    try:
        ltp.check(copy)
        wanted = ltp.tests(copy, names)
    except ltp.CopyError as error:
        raise LabError(str(error)) from error
    plan = {"fs": "ext4", "options": "", "disk": DISK}
    return Suite("ltp", copy, wanted, ltp.rows, lambda out: _text(out / "now"), plan)


def built(cache: Cache, suite: Suite) -> Path:
    """The folder with the suite, built from the user's copy in the tree that it will run in."""
    recipe, script = suites_recipe(), f"suite-{suite.name}"
    root, names = bootstrapped(cache, recipe), _files(suite.copy)

    def build(folder: Path) -> None:
        work = folder / "work"
        for name in names:
            (work / "suite" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(suite.copy / name, work / "suite" / name, follow_symlinks=False)
        as_builder(root, script, work, cache.run_dir / f"{script}.log")
        (work / "product").rename(folder / "product")
        remove_tree(work)

    key = {
        "root": recipe.key(),
        "files": digest_files(suite.copy, names),
        "script": (RECIPES / script).read_text(),
    }
    what = f"{suite.name}: building it, some minutes"
    return cache.artefact(script, key, what, build) / "product"


def _files(copy: Path) -> list[str]:
    """All files of a copy; of a clone, those of the repository, without what was built there."""
    if (copy / ".git").exists():
        listed = git(copy, "ls-files", "-z").stdout.split("\0")
    else:
        listed = [str(path.relative_to(copy)) for path in copy.rglob("*")]
    return sorted(
        name for name in listed if name and ((copy / name).is_symlink() or (copy / name).is_file())
    )


def turn(cache: Cache, suite: Suite, scheduler: str) -> Turn:
    """A function that runs tests in a machine, until one breaks it."""
    kernel, product = uml.kernel(cache, SOURCE, "suites"), built(cache, suite)
    plan = suite.plan | {
        "suite": suite.name, "scheduler": scheduler, "disks": DISKS[suite.name], "limit_s": LIMIT_S,
    }  # fmt: skip

    def one(wanted: list[str], found: Found) -> int:
        folder = cache.run_dir / f"{suite.name}-{scheduler}-{len(wanted)}-left"
        uml.prepared(SOURCE, kernel, folder)
        (folder / "out").mkdir()
        (folder / "out").chmod(0o777)
        tests = suite.tests
        chosen = {name: tests[name] for name in wanted} if isinstance(tests, Mapping) else wanted
        gone = _machine(cache, folder, plan | {"tests": chosen}, product, suite)
        (folder / "linux").unlink()
        return read(suite, folder, wanted, gone, found)

    return one


def _machine(cache: Cache, folder: Path, plan: dict, product: Path, suite: Suite) -> str:
    """Run a machine to its end, and print each row; why it ended early, or nothing."""
    console = folder / "console.log"
    root = bootstrapped(cache, suites_recipe())
    command = uml.machine_command(
        cache, folder, "suite", plan, root, MEMORY_MIB,
        f"time-travel time-travel-start={START_NS}", {"suite": product},
    )  # fmt: skip
    out, shown, size, since = folder / "out", 0, 0, time.monotonic()
    with started(command, f"UML: {suite.name}", console) as process:
        while True:
            ended = process.poll() is not None
            found = suite.rows(out)
            for row in found[shown:]:
                print(text(row, plan["scheduler"]), flush=True)
            shown = len(found)
            if ended:
                break
            time.sleep(POLL_S)
            now = console.stat().st_size + len(_text(out / "check.log"))
            if now != size:
                size, since = now, time.monotonic()
            elif time.monotonic() - since > SILENCE_S:
                return f"no line of output for {SILENCE_S:g} s"
    status = _text(folder / "status")
    if status == str(STUCK):
        return f"did not end within {plan['limit_s']} s"
    if status:
        return "" if status == "0" else "the suite ended early"
    return "the kernel did not survive it"


def read(suite: Suite, folder: Path, wanted: list[str], gone: str, found: Found) -> int:
    """Add what a machine has left; how many tests have had their turn."""
    out, console = folder / "out", folder / "console.log"
    now = suite.running(out)
    if gone and not now:
        raise LabError(f"{suite.name}: no test was run: {_last(folder)}", console)
    rows = suite.rows(out)
    if gone:
        rows.append(Row(now, "", FAILED, gone))
        step(f"bench: {now}: {gone}")
    found.rows += rows
    test, lines = "", []
    for line in _text(console).splitlines():
        if runs := RUNS.search(line):
            found.complained(test, lines)
            test, lines = runs[1], []
        lines.append(line)
    found.complained(test, lines)
    if not rows:
        raise LabError(f"{suite.name}: no test was run: {_last(folder)}", console)
    return wanted.index(now) + 1 if gone else len(wanted)


def _last(folder: Path) -> str:
    """The last lines of the program in the machine, and of the suite."""
    lines = [*_text(folder / "output").splitlines()[-5:],
             *_text(folder / "out/check.log").splitlines()[-5:]]  # fmt: skip
    return "; ".join(lines) or "it printed nothing"


def _text(path: Path) -> str:
    return path.read_text(errors="replace").strip() if path.exists() else ""
