# SPDX-License-Identifier: LGPL-2.1-or-later
"""The tests of sutro-nri in Go: gofmt, go vet and go test, with Debian's packages of libraries."""

import json
from pathlib import Path

from . import products
from .cache import Cache
from .junit import Results
from .namespace import remove_tree
from .progress import tail
from .roots import bootstrapped, package_nri_recipe


def run(cache: Cache, source: Path) -> Results:
    """Run them in the tree that sutro-nri is built in."""
    work, log = products.nri_work(cache, source), cache.run_dir / "go.log"
    root = bootstrapped(cache, package_nri_recipe())
    status = products.as_builder(
        root, "go", work, log, check=False, **products.go_cache(cache, root, log)
    )
    report = work / "go.json"
    results = read(report.read_text() if report.exists() else "")
    if (status or not results.passed) and not results.failed:
        last_lines = "\n".join(tail(log))
        results.failed["go"] = f"ended with status {status}; see {log}\n{last_lines}"
    if not results.failed:
        remove_tree(work)
    return results


def read(report: str) -> Results:
    """The results in the output of go test -json; a test that was skipped has failed."""
    results, output = Results(), dict[str, str]()
    for line in report.splitlines():
        event = json.loads(line)
        name = f"go.{event.get('Test', '')}"
        if event["Action"] == "output":
            output[name] = output.get(name, "") + event["Output"]
        elif not event.get("Test"):
            continue
        elif event["Action"] == "pass":
            results.passed.append(name)
        elif event["Action"] in ("fail", "skip"):
            results.failed[name] = output.get(name, "")
    return results
