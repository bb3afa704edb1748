# SPDX-License-Identifier: LGPL-2.1-or-later
"""Test stages in User Mode Linux, most of them in virtual time: the kernel with our patch series.

A complaint of the kernel fails the stage.
"""

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from bench.read import load
from rig.result import Result
from uml import layers, owners, plan, robustness, weights
from uml.bench import run_all
from uml.measure import Run
from uml.scenario import Book

from . import uml
from .cache import Cache
from .junit import Results, judged, reason
from .progress import LabError, step

QUICK, LOCKS = "tests/uml/quick.toml", "tests/uml/locks.toml"
# Of direct I/O, and of a file system.
REPEATED = ("two-to-one-hdd", "writeback-slots-light")
REPEATED_S = 6
STRESS_S = 60
# Of each layer.
LAYER_S = 1.0
# Real time.
OWNERS_TIMEOUT_S = 300
LAYERS_TIMEOUT_S = 1800
WEIGHTS_TIMEOUT_S = 1200
# Real time: to begin with, and for each second in the machine.
STRESS_TIMEOUT_S, STRESS_TIMEOUT_PER_S = 300, 60


def smoke(cache: Cache, source: Path) -> Results:
    """The goals of quick.toml, and that they repeat."""
    results = Results()
    for part in (_facts, _repeats):
        results.add(part(cache, source))
    return results


def series(cache: Cache, source: Path, *, version: str) -> Results:
    """Each patch of the series for a kernel is a test."""
    log = uml.series(cache, source, version)
    applied = re.findall(r"^ok (.+)\.patch$", log.read_text(errors="replace"), re.MULTILINE)
    if not applied:
        raise LabError(f"no patch was applied to {version}", log)
    return Results([f"uml.series.{version}.{name}" for name in applied])


def kunit(cache: Cache, source: Path) -> Results:
    """Each KUnit case is a test."""
    cases = _cases("uml.kunit", uml.kunit(cache, source))
    results = judged((name, "" if status == "PASS" else status or "none") for name, status in cases)
    if not results.passed and not results.failed:
        raise LabError("kunit.py ran no test")
    return results


def _cases(where: str, group: dict) -> Iterator[tuple[str, str]]:
    """Each case in kunit.py's tree of groups, with its status."""
    for case in group.get("test_cases", []):
        yield f"{where}.{case['name']}", case["status"]
    for inner in group.get("sub_groups", []):
        yield from _cases(f"{where}.{inner['name']}", inner)


def _facts(cache: Cache, source: Path) -> Results:
    scenarios = load(Book, source / QUICK).runs()
    rows = run_all(scenarios, uml.machine(cache, source), step, os.cpu_count() or 1)
    return _judged(
        replace(row, scenario=f"{row.scenario}.{row.scheduler}") for row in rows if row.counts
    )


def _repeats(cache: Cache, source: Path) -> Results:
    machine = uml.machine(cache, source)
    rows = []
    for whole in load(Book, source / QUICK).only(REPEATED, ["sutro"]).runs():
        scenario = replace(whole, measure_s=REPEATED_S)
        made = plan.make(scenario, "sutro")
        first, second = (
            Run(scenario, "sutro", machine(f"repeat-{scenario.name}-{n}", made)).counts
            for n in (1, 2)
        )
        differ = "" if first == second else f"{first}\n{second}"
        rows.append((f"uml.repeats.{scenario.name}", differ))
    return judged(rows)


def owners_stage(cache: Cache, source: Path, *, version: str) -> Results:
    """The cgroups that a kernel charges buffered writes to."""
    folder = cache.run_dir / f"owners-{version}"
    uml.prepared(source, uml.kernel(cache, source, "plain", version), folder)
    return _judged(owners.judge(uml.run(cache, folder, "owners", {}, OWNERS_TIMEOUT_S)))


def stress_stage(cache: Cache, source: Path) -> Results:
    """STRESS_S seconds of load, faults and reconfiguration."""
    results = Results(["uml.stress.kernel log"])
    results.add(_judged(robustness.judge(stress(cache, source, 1, STRESS_S))))
    return results


def layers_stage(cache: Cache, source: Path, *, version: str) -> Results:
    """Drivers with the patches for a kernel, under all that may happen to them."""
    folder = cache.run_dir / f"layers-{version}"
    uml.prepared(source, uml.kernel(cache, source, "layers", version), folder)
    results = Results(["uml.layers.kernel log"])
    made = {"seed": 1, "seconds": LAYER_S}
    results.add(_judged(layers.judge(uml.run(cache, folder, "layers", made, LAYERS_TIMEOUT_S))))
    return results


def weights_stage(cache: Cache, source: Path, *, version: str) -> Results:
    """Shares by io.weight and by the files of schedulers, without sutrod."""
    folder = cache.run_dir / f"weights-{version}"
    uml.prepared(source, uml.kernel(cache, source, "layers", version), folder)
    results = Results(["uml.weights.kernel log"])
    found = uml.run(cache, folder, "weights", weights.plan(), WEIGHTS_TIMEOUT_S)
    results.add(_judged(weights.judge(found)))
    return results


def locks_stage(cache: Cache, source: Path) -> Results:
    """Lock acquisitions for a request under Sutro."""
    scenarios = [one for one in load(Book, source / LOCKS).only([], ["sutro"]).runs() if one.goal]
    machine = uml.machine(cache, source, "locks")
    rows = run_all(scenarios, machine, step, os.cpu_count() or 1)
    return _judged(replace(row, scenario=f"locks.{row.scenario}") for row in rows if row.counts)


def _judged(rows: Iterable[Result]) -> Results:
    """A test for each row."""
    return judged((f"uml.{row.scenario}.{row.metric}", reason(row)) for row in rows)


def stress(cache: Cache, source: Path, seed: int, seconds: int) -> dict:
    """Run tests/uml/inside/stress.py on the kernel that checks itself; its result."""
    folder = cache.run_dir / f"stress-{seed}"
    uml.prepared(source, uml.kernel(cache, source, "debug"), folder)
    plan = {"seed": seed, "seconds": seconds}
    patience_s = STRESS_TIMEOUT_S + STRESS_TIMEOUT_PER_S * seconds
    return uml.run(cache, folder, "stress", plan, patience_s)
