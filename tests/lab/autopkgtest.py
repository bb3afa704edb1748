# SPDX-License-Identifier: LGPL-2.1-or-later
"""debian/tests by autopkgtest, with the packages of this clone in a copy of a Debian tree.

daemon      PASS                            passed
daemon      FAIL non-zero exit status 1     failed, with the log of the test
elevator    SKIP Test restriction ...       not named in TESTS: tests/vm/test_autopkgtest.py
"""

import shutil
from pathlib import Path

from . import products
from .cache import Cache
from .junit import Results
from .namespace import remove_tree
from .progress import tail
from .roots import RECIPES, Root

# Those that need no machine of their own.
TESTS = ("daemon",)


def run(cache: Cache, source: Path, root: Root) -> Results:
    """Run them in a tree that has the program and the dependencies."""
    work, log = cache.run_dir / "autopkgtest", cache.run_dir / "autopkgtest.log"
    products.copied(source, products.source_files(source), work / "sutro")
    for deb in products.debs(cache, source).glob("sutro_*.deb"):
        shutil.copyfile(deb, work / deb.name)
    binds = {"/mnt/lab": RECIPES, "/build": work}
    command = ["sh", "-e", "/mnt/lab/autopkgtest", *TESTS]
    status = root.run(command, "autopkgtest", log, binds=binds, check=False)
    results = read(work / "report", TESTS, f"ended with status {status}; see {log}")
    if not results.failed:
        remove_tree(work)
    return results


def read(report: Path, tests: tuple[str, ...], ended: str) -> Results:
    """The results in a folder of autopkgtest; a test that was skipped or has none has failed."""
    summary = report / "summary"
    lines = summary.read_text().splitlines() if summary.exists() else []
    outcomes = dict((line.split(maxsplit=1) + [""])[:2] for line in lines if line.strip())
    results = Results()
    for test in tests:
        if outcomes.get(test) == "PASS":
            results.passed.append(f"autopkgtest.{test}")
            continue
        printed = report / f"{test}-stdout"
        text = "\n".join(tail(printed)) if printed.exists() else ""
        outcome = outcomes.get(test, "no result")
        results.failed[f"autopkgtest.{test}"] = f"{outcome}, {ended}\n{text}"
    return results
