# SPDX-License-Identifier: LGPL-2.1-or-later
"""The rules for alerts, the dashboard and the man page name metrics that the verb prints.

test_metrics.py has their values.
"""

import json
import re

from conftest import CONF, HERE
from samples import metrics

TREE = HERE.parent.parent
RULES, DASHBOARD = TREE / "dist/sutro-rules.yml", TREE / "dist/sutro-dashboard.json"
PROMISE_LABELS = ("cgroup", "unit", "key", "path", "device")
# Metrics that not every state has.
SOMETIMES = {
    "sutro_cgroup_wait_seconds_total",
    "sutro_cgroup_busy_seconds_total",
    "sutro_down_info",
}


def exposed(declared):
    declared.machine.write(CONF, "[Capacity]\nDevice=/srv read=150M write-iops=20\n")
    declared.call("Reload")
    with declared.lock:
        names = {name for name, _ in metrics()}
    return names | SOMETIMES


def test_rules_and_dashboard_name_metrics_that_exist(declared):
    """A misspelt name would be a query that never has a result."""
    names = exposed(declared)
    board = json.loads(DASHBOARD.read_text())
    targets = [target["expr"] for panel in board["panels"] for target in panel.get("targets", [])]
    assert len(targets) > 8
    rules = re.sub(r"^ *(- )?(#|alert:|name:).*$", "", RULES.read_text(), flags=re.M)
    for text in (rules, *targets):
        used = set(re.findall(r"\bsutro_\w+", text))
        assert used and used <= names


def test_machines_of_a_dashboard_are_apart():
    """Two machines have units and disks of equal names: no sum and no legend mixes them."""
    panels = [p for p in json.loads(DASHBOARD.read_text())["panels"] if p["type"] == "timeseries"]
    targets = [target for panel in panels for target in panel["targets"]]
    for target in targets:
        assert "{{instance}}" in target["legendFormat"], target
        kept = re.findall(r"\b(?:sum|max|min|avg|count)\b *(?:by *\((.*?)\))?", target["expr"])
        assert all("instance" in labels.split(", ") for labels in kept), target
    guide = (TREE / "Documentation/guides/metrics.rst").read_text()
    sums = re.findall(r"\bsum by \((.*?)\)", guide)
    assert len(sums) == 3 and all("instance" in labels.split(", ") for labels in sums)


def test_variables_of_the_dashboard_without_the_module(without_module):
    """The kernel counts requests on each leaf, so the list of units is not empty."""
    names = {name for name, _ in metrics()}
    variables = json.loads(DASHBOARD.read_text())["templating"]["list"]
    queries = [one["query"]["query"] for one in variables if one["type"] == "query"]
    assert len(queries) == 2
    for query in queries:
        assert set(re.findall(r"\bsutro_\w+", query)) <= names


def test_capacities_of_all_units(declared):
    """The alert compares, and the dashboard shows, those in bytes and those in requests."""
    names = {name for name in exposed(declared) if name.startswith("sutro_capacity_")}
    assert len(names) == 6
    (alert,) = re.findall(r"alert: SutroOvercommitted\n *expr: (.*)\n", RULES.read_text())
    for promised in (name for name in names if "_promised_" in name):
        assert f"{promised} > {promised.replace('promised_', '')}" in alert.split(" or ")
    assert names == set(re.findall(r"\bsutro_capacity_\w+", DASHBOARD.read_text()))


def rendered(text, labels):
    """An annotation with labels instead of `{{ $labels.a }}` and `{{ or $labels.a $labels.b }}`."""

    def found(match):
        names = re.findall(r"\$labels\.(\w+)", match[1])
        return next(filter(None, (labels.get(name) for name in names)), "")

    return re.sub(r"{{ (?:or )?((?:\$labels\.\w+ )+)}}", found, text)


def test_alert_names_the_cgroup_of_a_path_policy(machine, promised):
    """A promise of a cgroup that belongs to no unit is named by its path."""
    machine.write(
        "/etc/sutro/policy.d/payload.policy",
        "[Match]\nCgroup=/payload\n[X-Sutro]\nReadBandwidthMin=/srv 90M\n",
    )
    promised.call("ReloadPolicies")
    broken = [dict(has) for name, has in metrics() if name == "sutro_promise_broken"]
    labels = {one["cgroup"]: one for one in broken if one["path"] == "/srv"}
    (alert,) = re.findall(r"alert: SutroPromiseBroken\n(.*?)\n\n", RULES.read_text(), re.S)
    summary, remedy = re.findall(r'^ *(?:summary|description): "(.*)"$', alert, re.M)
    for cgroup, name in (("/payload", "/payload"), ("/system.slice/web.service", "web.service")):
        text = rendered(summary, labels[cgroup])
        assert re.fullmatch(rf"\w+=/srv of {name} does not hold", text)
        assert rendered(remedy, labels[cgroup]) == f"Cause and remedy: sutroctl explain {name}"


def test_man_page_has_all_metrics(declared):
    page = (TREE / "Documentation/man/sutro-exporter.1").read_text().replace("\\-", "-")
    for name in exposed(declared):
        assert re.search(rf"\b{re.escape(name)}\b", page), name
    assert all(label in page for label in PROMISE_LABELS)
