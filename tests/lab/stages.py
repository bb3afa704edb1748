# SPDX-License-Identifier: LGPL-2.1-or-later
"""The stages of ./lab test: how and where each runs, and the inputs of its result.

README.rst has the list of stages. Stages of the first tier always run; the others run with `--all`
or by name. An exact clock counts instructions: a busy host makes the guest slower and changes no
result. Every stage leaves JUnit's XML, which alone is counted. Stages run in threads, two at a time
on two CPUs; a stage that fails stops no other one.
"""

import fnmatch
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from . import autopkgtest, deep, gotest, guest, junit, namespace, products, reboots, virtual
from .cache import Cache
from .junit import Results
from .namespace import remove_tree
from .progress import LabError, step
from .roots import (
    KERNEL,
    KERNELS,
    Recipe,
    bootstrapped,
    build_recipe,
    build_root,
    cockpit_recipe,
    containers_recipe,
    distributions_recipe,
    image_recipe,
    metrics_recipe,
    nri_recipe,
    package_recipe,
    packages_of,
    page_recipe,
    slurm_recipe,
)
from .setup import prepare

Run = Callable[[Cache, Path], Results]

# Files of tests/vm, by the properties of the guest that they need. Tracing patches kernel
# code, which emulated SMP guests survive only mostly (guest.py): these tests get one CPU.
TRACING = ("test_elevator_debug.py", "test_elevator_prompt.py")
SMP = ("test_elevator.py", "test_elevator_load.py", "test_elevator_requests.py")
DAEMON = (
    "test_autopkgtest.py", "test_daemon.py", "test_first_guarantee.py", "test_libcgroup.py",
    "test_packages.py", "test_policies.py", "test_purge.py", "test_reach.py", "test_sutroctl.py",
    "test_topology.py", "test_without_module.py",
)  # fmt: skip
# Its commands are tested.
LANDING_PAGE = "README.md"
UPGRADE = "test_kernel_upgrade.py"
METRICS = "test_metrics.py"
STACKING = "test_stacking*.py"
SLURM = "test_slurm.py"
NRI = "test_nri.py"
COCKPIT = "test_cockpit.py"
CONTAINERS = ("test_docker.py", "test_incus.py", "test_libvirt.py", "test_podman.py",
              "test_sessions.py")  # fmt: skip
# With another kernel: of the tests of rates, one for all.
ON_EVERY_KERNEL = (
    "test_attribution.py", "test_latency.py", "test_packages.py", *TRACING,
    "test_shares.py::test_two_to_one",
)  # fmt: skip
FIRST, REST = "first", "not first"
FIRST_MARK = "pytest.mark.first"
GUEST_TIMEOUT_S = 7200.0
# With AVX2 of QEMU 7.2, vpgatherdd in Chromium's GPU process reads far from the picture that it
# draws, and the process ends with SIGSEGV.
NO_GATHER = ",-avx2"
# Time of each fuzz target with `--all`; eight targets, two at a time, take 8 minutes.
FUZZ_MINUTES = 2.0
PROGRESS_S = 30.0
# Lines of the beginning and of the end of a failure that are shown; the report has all of it.
# libFuzzer prints hundreds of lines of progress before the reason.
BEGINNING_LINES, END_LINES = 20, 40
# A parameter may be the name of a test, and 5,000 characters long.
NAME_CHARS = 200

# Parts of the clone that a result may depend on, as prefixes; keys.py makes keys of them.
KERNEL_HALF = ("kernel/", "tests/modeldisk/", "Documentation/block/", "Documentation/ABI/")
HOST_HALF = ("daemon/", "policies/", "cockpit/", "dist/", "debian/", "meson.build", "meson.options",
             "Documentation/man/", "Documentation/guides/", "Documentation/hardware.rst",
             "Documentation/images/cockpit", "Documentation/install.rst",
             "Documentation/meson.build", "Documentation/org.sutro1.xml", "LICENSES/",
             "tests/hardware/")  # fmt: skip
PACKAGES = (*KERNEL_HALF, *HOST_HALF)
CHECKED = (*PACKAGES, "tests/package/")
UNIT = (*PACKAGES, "tests/unit/", "tests/daemon/", "tests/ctl/", "tests/sim/", "tests/slurm/",
        "tests/package/", "tests/meson.build", "tests/fakemachine.py", "tests/livedaemon.py",
        "tests/mocksystemd.py", "tests/privatebus.py", "tests/virtualclock.py",
        "tests/bench/", "tests/uml/", "tests/rig/")  # fmt: skip
PAGE = (*HOST_HALF, "tests/page/", "tests/browser.py", "tests/unit/", "tests/daemon/",
        "tests/meson.build", "tests/fakemachine.py", "tests/livedaemon.py", "tests/mocksystemd.py",
        "tests/privatebus.py", "tests/virtualclock.py")  # fmt: skip
DISTRIBUTIONS = (*HOST_HALF, "packaging/", "tests/packaging/", "tests/unit/", "tests/daemon/",
                 "tests/fakemachine.py", "tests/livedaemon.py", "tests/mocksystemd.py",
                 "tests/privatebus.py", "tests/virtualclock.py")  # fmt: skip
VIRTUAL = (*KERNEL_HALF, "tests/uml/", "tests/rig/", "tests/bench/")
BOOT = (*PACKAGES, "tests/boot/", "tests/rig/")


@dataclass(frozen=True)
class Stage:
    """One stage: how it runs, and the inputs of its result.

    rooms are prefixes of files of the clone; trees are the Debian trees that it uses; series is its
    kernel, source states that it uses the headers or the source of that kernel. extent is how much
    of the stage the user selected.
    """

    name: str
    run: Run
    rooms: tuple[str, ...]
    trees: tuple[Recipe, ...]
    first: bool = False
    series: str = KERNEL
    source: bool = False
    extent: str = ""


def stages(
    source: Path,
    tests: list[str] | None = None,
    fuzz_minutes: float = FUZZ_MINUTES,
    cuts: int = reboots.CUTS,
    seed: int = reboots.SEED,
) -> list[Stage]:
    """All stages, the longest first.

    tests: those that guest stages run instead of their own; fuzz_minutes: time of each fuzz
    target; cuts: of the power in the stage boot, at moments drawn from the seed.
    """
    files = sorted((source / "tests" / "vm").glob("test_*.py"))
    names = [path.name for path in files]
    # An emulated CPU needs 0.1 G instructions to collect a file: files without the mark stay out.
    first = [path.name for path in files if FIRST_MARK in path.read_text(encoding="utf-8")]
    stacking = fnmatch.filter(names, STACKING)
    others = (*SMP, *DAEMON, *stacking, UPGRADE, METRICS, SLURM, NRI, COCKPIT, *CONTAINERS)
    measure = [name for name in names if name not in others]
    build, image = build_recipe(), image_recipe(KERNEL)

    def in_guest(
        name: str, files: Iterable[str], mark: str, series: str = KERNEL, **keys: Any
    ) -> Stage:
        paths = [f"/mnt/src/tests/vm/{file}" for file in files]
        words = tests or [*paths, "-m", mark]
        run = partial(_guest, name=name, tests=words, series=series, **keys)
        rooms = [f"tests/vm/{file.split('::')[0]}" for file in files]
        rooms += [*PACKAGES, "tests/vm/conftest.py", "tests/vm/lab-shell", "tests/rig/"]
        rooms += ["tests/bench/"]
        tree = keys.get("image_of") or image_recipe(series)
        # Its packages are built in a tree of their own.
        return Stage(name, run, tuple(rooms), (tree, packages_of(tree)), mark == FIRST, series)

    def in_uml(name: str, run: Run, series: str = KERNEL) -> Stage:
        first, source = name == "smoke", series != KERNEL
        return Stage(name, run, VIRTUAL, (build, image), first, series, source)

    others = [series for series in KERNELS if series != KERNEL]
    return [
        in_guest("guest", first, FIRST),
        Stage("meson", meson, UNIT, (build,), first=True),
        Stage("checks", checks, ("",), (build,), first=True),
        in_uml("smoke", virtual.smoke),
        in_guest("stacking", stacking, REST, stacking=True),
        in_guest("measure", measure, REST),
        with_rooms(in_guest("daemon", DAEMON, REST), LANDING_PAGE),
        in_guest("smp", SMP, REST, smp=True),
        in_guest("metrics", [METRICS], REST, image_of=metrics_recipe()),
        in_guest("upgrade", [UPGRADE], REST, other_kernel=True),
        in_guest("slurm", [SLURM], REST, image_of=slurm_recipe()),
        with_go(in_guest("nri", [NRI], REST, image_of=nri_recipe(), host_tests=gotest.run)),
        with_page(in_guest("page", [COCKPIT], REST, image_of=cockpit_recipe(), host_tests=page)),
        Stage(
            "boot",
            partial(reboots.stage, cuts=cuts, seed=seed),
            BOOT,
            (image, packages_of(image)),
            extent=f"{cuts} cuts, seed {seed}",
        ),
        in_guest("containers", CONTAINERS, REST, image_of=containers_recipe()),
        in_uml("stress", virtual.stress_stage),
        Stage("deep", lambda cache, source: deep.stage(cache, source), VIRTUAL, (build, image)),
        Stage("long", long, UNIT, (build,)),
        Stage(
            "fuzz",
            partial(fuzz, minutes=fuzz_minutes),
            UNIT,
            (build,),
            extent=f"{fuzz_minutes:g} minutes",
        ),
        Stage(
            "distributions",
            distributions,
            DISTRIBUTIONS,
            (distributions_recipe(), package_recipe()),
        ),
        in_uml("kunit", virtual.kunit),
        in_uml("locks", virtual.locks_stage),
        *(in_uml(f"owners-{s}", partial(virtual.owners_stage, version=s), s) for s in KERNELS),
        *(in_uml(f"layers-{s}", partial(virtual.layers_stage, version=s), s) for s in KERNELS),
        *(in_uml(f"weights-{s}", partial(virtual.weights_stage, version=s), s) for s in KERNELS),
        *(in_uml(f"series-{s}", partial(virtual.series, version=s), s) for s in KERNELS),
        *(in_guest(f"stacking-{s}", stacking, REST, s, stacking=True) for s in others),
        *(in_guest(f"smp-{s}", SMP, REST, s, smp=True) for s in others),
        *(in_guest(f"measure-{s}", ON_EVERY_KERNEL, f"{FIRST} or {REST}", s) for s in others),
        *(
            Stage(f"checks-{s}", partial(checks_of, series=s), CHECKED, (build,), False, s, True)
            for s in others
        ),
    ]


def checks(cache: Cache, source: Path) -> Results:
    """The static checks."""
    work, log = _work(cache, source, "checks")
    # The copy of the clone has no history.
    if (source / ".git").exists():
        save = [sys.executable, str(source / "tests/check/commits.py"), "--save"]
        namespace.run([*save, str(work / "history.json")], "the history of the clone", log)
    root, binds = build_root(cache), {"/opt/tools": products.tools(cache)}
    status = products.as_builder(root, "checks", work, log, binds=binds, check=False)
    return _without_work(work, junit.read_stage(work / "checks.xml", status, log))


def checks_of(cache: Cache, source: Path, *, series: str) -> Results:
    """The package tests, which depend on the kernel, for another one."""
    work, log = _work(cache, source, f"checks-{series}")
    root = build_root(cache, series)
    status = products.as_builder(root, "checks-kernel", work, log, arguments=(series,), check=False)
    return _without_work(work, junit.read_stage(work / "checks.xml", status, log))


def meson(cache: Cache, source: Path) -> Results:
    """Compilation and the tests that need no guest, but the long ones."""
    return _tested(cache, source, "meson", "--no-suite", "long", "--no-suite", "fuzz")


def long(cache: Cache, source: Path) -> Results:
    """The long ones: random runs by the thousand."""
    return _tested(cache, source, "long", "--suite", "long")


def fuzz(cache: Cache, source: Path, *, minutes: float) -> Results:
    """The fuzz targets for some minutes each, each time with other inputs."""
    option = f"-Dfuzz_seconds={max(round(60 * minutes), 1)}"
    return _tested(cache, source, "fuzz", "--suite", "fuzz", setup=option)


def with_rooms(one: Stage, *rooms: str) -> Stage:
    """The stage, with further files that its tests read."""
    return replace(one, rooms=(*one.rooms, *rooms))


def with_go(one: Stage) -> Stage:
    """The stage, with the sources of sutro-nri; its packages are built in the tree that has Go."""
    return with_rooms(one, products.NRI, products.NRI_TESTS)


def with_page(one: Stage) -> Stage:
    """The stage, with the files and the tree of the tests on the host."""
    return replace(one, rooms=(*one.rooms, *PAGE), trees=(*one.trees, page_recipe()))


def page(cache: Cache, source: Path) -> Results:
    """The page of Cockpit in a browser, with a daemon on a fake machine."""
    work, log = _work(cache, source, "page-host")
    root, tools = bootstrapped(cache, page_recipe()), products.page_tools(cache)
    binds = {"/opt/tools": tools} | products.compilations(cache, root, log)
    status = products.as_builder(root, "page", work, log, binds=binds, check=False)
    return _without_work(work, junit.read_stage(work / "page.xml", status, log))


def distributions(cache: Cache, source: Path) -> Results:
    """The packages of other distributions, by the tools of those in Debian's archive, and our own.

    Those of Debian are tested by autopkgtest.
    """
    work, log = _work(cache, source, "distributions")
    root = bootstrapped(cache, distributions_recipe())
    status = products.as_builder(root, "distributions", work, log, check=False)
    results = junit.read_stage(work / "distributions.xml", status, log)
    results = _without_work(work, results)
    results.add(autopkgtest.run(cache, source, root))
    return results


def _tested(cache: Cache, source: Path, name: str, *suites: str, setup: str = "") -> Results:
    work, log = _work(cache, source, name)
    root, env = build_root(cache), {"MESON_SETUP": setup}
    status = products.as_builder(
        root,
        "test",
        work,
        log,
        arguments=suites,
        binds=products.compilations(cache, root, log),
        env=env,
        check=False,
    )
    return _without_work(work, junit.read_meson(work / "build", status, log))


def _guest(
    cache: Cache,
    source: Path,
    *,
    name: str,
    tests: list[str],
    series: str,
    smp: bool = False,
    stacking: bool = False,
    other_kernel: bool = False,
    image_of: Recipe | None = None,
    host_tests: Run | None = None,
) -> Results:
    """Tests inside a guest, after those of the host; a complaint of its kernel is a failed test."""
    before = host_tests(cache, source) if host_tests else Results()
    tools = [products.other_kernel(cache)] if other_kernel else []
    if image_of == nri_recipe():
        tools.append(products.cri_client(cache, source))
    setup = prepare(cache, name, series, smp=smp, stacking=stacking, image_of=image_of, tools=tools)
    if image_of == cockpit_recipe():
        setup = replace(setup, cpu_flags=NO_GATHER)
    command = ["python3", "-m", "pytest", "-v", "-p", "no:cacheprovider", "--tb=short"]
    command += [f"--junitxml=/mnt/out/{name}.xml", "--rootdir=/mnt/src", *tests]
    with guest.boot(setup) as machine:
        status = machine.run(
            "export PYTHONPATH=/mnt/src/tests; exec " + guest.shell_words(command),
            name=f"pytest-{name}",
            timeout_s=GUEST_TIMEOUT_S,
            echo=_progress(name),
        )
        report = machine.folder / "out" / f"{name}.xml"
        results = junit.read_stage(report, status, machine.log)
        try:
            machine.shutdown()
        except LabError as error:
            results.failed[f"{name}.kernel log"] = str(error)
    results.add(before)
    return results


def run(stage: Stage, cache: Cache, source: Path) -> tuple[Results, float]:
    """Run one stage; its results and seconds. A stage that breaks down is one failed test."""
    step(f"test: {stage.name}: begins")
    began_s = time.monotonic()
    try:
        results = stage.run(cache, source)
    except LabError as error:
        text = str(error) if error.log is None else f"{error}\nthe whole log is {error.log}"
        results = Results([], {stage.name: text})
    return results, time.monotonic() - began_s


def show(name: str, results: Results, seconds: float) -> None:
    """Print the failures of a stage with their reasons, and its line."""
    lines = []
    for test, text in results.failed.items():
        shown = text.splitlines()
        if (left_out := len(shown) - BEGINNING_LINES - END_LINES) > 0:
            shown[BEGINNING_LINES:-END_LINES] = [f"... {left_out} lines are left out ..."]
        lines += [f"FAILED {name}: {test[:NAME_CHARS]}", *(f"    {line}" for line in shown)]
    lines.append(f"{name}: {results.line()} ({minutes(seconds)})")
    print("\n".join(lines), flush=True)


def minutes(seconds: float) -> str:
    """Seconds as M:SS."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def _progress(stage: str) -> Callable[[str], None]:
    """An echo for pytest's output in a guest: a line now and then, and each failure at once."""
    shown_s, rest = time.monotonic(), ""

    def echo(text: str) -> None:
        nonlocal shown_s, rest
        # pytest writes the name of a test before its outcome.
        *lines, rest = (rest + text).split("\n")
        for found in filter(None, map(junit.PYTEST_LINE.match, lines)):
            test, outcome, percent = found.groups()
            if outcome != "PASSED" or time.monotonic() - shown_s > PROGRESS_S:
                step(f"test: {stage}: {percent.strip()} {test[:NAME_CHARS]} {outcome.lower()}")
                shown_s = time.monotonic()

    return echo


def _work(cache: Cache, source: Path, name: str) -> tuple[Path, Path]:
    """A folder with a copy of the clone in sutro/, and the log of the stage."""
    work = cache.run_dir / name
    products.copied(source, products.source_files(source), work / "sutro")
    return work, cache.run_dir / f"{name}.log"


def _without_work(work: Path, results: Results) -> Results:
    """The results; the files they come from are kept only after a failure."""
    if not results.failed:
        remove_tree(work)
    return results
