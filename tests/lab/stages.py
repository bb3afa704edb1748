# SPDX-License-Identifier: LGPL-2.1-or-later
"""The stages of ./lab test: static checks, host-side tests, guest tests.

    checks      tests/check                               in the build root
    meson       meson setup, compile, test                in the build root
    guest       pytest tests/vm                           in a guest with two CPUs
    guest-7.2   those of tests/vm that a kernel decides   the same with another stock kernel
    measure-7.2 one of those that judge rates             the same, with an exact clock
    measure     all that judge rates                      in a guest with an exact clock
    stacking, stacking-7.2    test_stacking*.py           in guests with sutro-stacking-dkms
    uml         the patch series, tests/uml (virtual.py)  in User Mode Linux

The first two see a copy of the clone's files, as the user builder. Every stage runs, also after one
that failed, and every stage leaves JUnit's XML, which alone is counted. From measure-7.2 on they
have clocks that stand still while the host is busy with something else; all but the longest of
them run beside the guests, with a lower priority.

A guest is an emulated machine on a host that others may use as well, and some of its tests judge
times. So up to AGAIN tests that failed are run once more, alone, at the end of their stage. One
that passes then has passed, and the log says AGAIN and why it failed before; for more than that
there is another reason. A complaint of the kernel is never forgiven.

One more, deep (deep.py), runs only when it is asked for, and then alone.
"""

from __future__ import annotations

import fnmatch
import multiprocessing
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from . import junit, products
from .cache import Cache
from .guest import Guest, shell_words
from .junit import Results
from .namespace import remove_tree
from .progress import LabError, step
from .roots import KERNEL, KERNELS

# Tests that measure rates and shares: they want an exact clock more than a second CPU. And those
# that trace: the kernel patches code then, which two emulated CPUs survive only mostly (guest.py).
TRACING = ("test_elevator_debug.py", "test_elevator_prompt.py")
MEASURING = (
    "test_attribution.py", "test_elevator_stat.py", "test_floor_stacks.py", "test_floors.py",
    "test_modeldisk.py", "test_ordering.py", "test_promises.py", "test_shares.py", *TRACING,
)  # fmt: skip
# Tests that another kernel may decide otherwise; of those that measure time, one for all.
ON_EVERY_KERNEL = ("test_elevator*.py", "test_packages.py")
# Tests of the patched drivers.
STACKING = "test_stacking*.py"
MEASURED_ON_EVERY_KERNEL = (
    "test_attribution.py", *TRACING, "test_shares.py::test_two_to_one[ssd-randread]",
)  # fmt: skip
GUEST_TIMEOUT_S = 7200.0
# Beside a guest whose clock is the host's.
NICE = 5
# They remove packages, so there is nothing left to test.
LAST = "_purge.py"
# As many tests may meet a bad moment.
AGAIN = 3
# What tests/vm/conftest.py says of a kernel that complained while a test ran.
COMPLAINT = "the kernel said: "
# A failure's text is shown up to here; the report has all of it.
TEXT_LINES = 60
# A parameter may be the name of a test, and 5,000 characters long.
NAME_CHARS = 200


def checks(cache: Cache, source: Path) -> Results:
    """The static checks."""
    work, log = _work(cache, source, "checks")
    status = products.as_builder(
        products.build_root(cache),
        "checks",
        work,
        log,
        binds={"/opt/tools": products.tools(cache)},
        check=False,
    )
    return _without_work(work, junit.read_stage(work / "checks.xml", status, log))


def meson(cache: Cache, source: Path) -> Results:
    """Compilation and the tests that need no guest."""
    work, log = _work(cache, source, "meson")
    status = products.as_builder(products.build_root(cache), "test", work, log, check=False)
    return _without_work(work, junit.read_meson(work / "build", status, log))


@dataclass(frozen=True)
class GuestStage:
    """A stage in a guest: its kernel, whether it wants two CPUs, and the test files it runs.

    stacking: md and dm are those of sutro-stacking-dkms.
    """

    name: str
    kernel: str
    smp: bool
    tests: list[str]
    stacking: bool = False


def guest_stages(source: Path) -> list[GuestStage]:
    """The guest stages in their order."""
    names = sorted(path.name for path in (source / "tests" / "vm").glob("test_*.py"))

    def stage(
        name: str, kernel: str, smp: bool, tests: list[str], stacking: bool = False
    ) -> GuestStage:
        paths = [f"/mnt/src/tests/vm/{test}" for test in tests]
        return GuestStage(name, kernel, smp, paths, stacking)

    stacking = fnmatch.filter(names, STACKING)
    smp = [name for name in names if name not in (*MEASURING, *stacking)]
    everywhere = [n for pattern in ON_EVERY_KERNEL for n in fnmatch.filter(smp, pattern)]
    return [
        stage("guest", KERNEL, True, smp),
        *(stage(f"guest-{k}", k, True, everywhere) for k in KERNELS if k != KERNEL),
        *(
            stage(f"measure-{k}", k, False, [*MEASURED_ON_EVERY_KERNEL])
            for k in KERNELS
            if k != KERNEL
        ),
        stage("measure", KERNEL, False, [name for name in names if name in MEASURING]),
        stage("stacking", KERNEL, False, stacking, True),
        *(stage(f"stacking-{k}", k, False, stacking, True) for k in KERNELS if k != KERNEL),
    ]


def guest(machine: Guest, stage: str, tests: list[str]) -> Results:
    """Tests inside a guest; what the kernel says there is judged by the caller."""
    last = [test for test in tests if test.endswith(LAST)]
    results = _with_again(machine, stage, [test for test in tests if test not in last] or last)
    if last and last != tests:
        results.add(_with_again(machine, f"{stage}-last", last))
    return results


def _with_again(machine: Guest, stage: str, tests: list[str]) -> Results:
    results = _pytest(machine, stage, tests)
    paths = [junit.path(name, "/mnt/src") for name in results.failed]
    complained = any(COMPLAINT in text for text in results.failed.values())
    if 0 < len(paths) <= AGAIN and all(paths) and not complained:
        first = dict(results.failed)
        step(f"test: {stage}: {len(paths)} failed, and run again")
        results.take_again(_pytest(machine, f"{stage}-again", [path for path in paths if path]))
        for name in sorted(first.keys() - results.failed.keys()):
            told("AGAIN", stage, name, "it passed now; before:\n" + first[name])
    return results


def _pytest(machine: Guest, stage: str, tests: list[str]) -> Results:
    command = ["python3", "-m", "pytest", "-v", "-p", "no:cacheprovider", "--tb=short"]
    command += [f"--junitxml=/mnt/out/{stage}.xml", "--rootdir=/mnt/src", *tests]
    status = machine.run(
        "export PYTHONPATH=/mnt/src/tests; exec " + shell_words(command),
        name=f"pytest-{stage}",
        timeout_s=GUEST_TIMEOUT_S,
        echo=_to_stderr,
    )
    log = machine.folder / "log"
    return junit.read_stage(machine.folder / "out" / f"{stage}.xml", status, log)


def run(name: str, stage: Callable[[], Results]) -> Results:
    """Run one stage and say how it went; a stage that breaks down is one failed test."""
    step(f"test: {name}")
    try:
        results = stage()
    except LabError as error:
        text = str(error) if error.log is None else f"{error}\nthe whole log is {error.log}"
        results = Results([], {name: text})
    for test, text in results.failed.items():
        told("FAILED", name, test, text)
    print(f"{name}: {results.line()}", flush=True)
    return results


def told(word: str, stage: str, test: str, text: str) -> None:
    """Show what became of a test, and why."""
    lines = text.splitlines()
    shown = lines[:TEXT_LINES]
    if len(lines) > len(shown):
        shown.append(f"... and {len(lines) - len(shown)} lines more")
    print(f"{word} {stage}: {test[:NAME_CHARS]}", *(f"    {line}" for line in shown), sep="\n")


@contextmanager
def beside(others: dict[str, Callable[[], Results]], log: Path, total: Results) -> Iterator[None]:
    """Run stages one by one while the body runs another; what they print comes when all is done."""
    names = ", ".join(others)
    step(f"test: {names} begin, beside what follows; their output is in {log} until then")
    ours, theirs = multiprocessing.Pipe(duplex=False)

    def work() -> None:
        os.nice(NICE)
        with log.open("wb", buffering=0) as file:
            for output in (1, 2):
                os.dup2(file.fileno(), output)
        theirs.send([run(name, stage) for name, stage in others.items()])

    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    theirs.close()
    try:
        yield
    finally:
        # Before they are waited for: a pipe is small.
        with suppress(EOFError):
            for results in ours.recv():
                total.add(results)
            others = {}
        process.join()
    print(log.read_text(errors="replace"), end="", flush=True)
    for name in others:
        total.failed[name] = f"it ended early, status {process.exitcode}; see {log}"


def _work(cache: Cache, source: Path, name: str) -> tuple[Path, Path]:
    """A folder with a copy of the clone in sutro/, and the log of the stage."""
    work = cache.run_dir / name
    products.copied(source, products.source_files(source), work / "sutro")
    return work, cache.run_dir / f"{name}.log"


def _without_work(work: Path, results: Results) -> Results:
    """The results; what they were got from is kept only if there is something to look for."""
    if not results.failed:
        remove_tree(work)
    return results


def _to_stderr(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
