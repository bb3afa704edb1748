# SPDX-License-Identifier: LGPL-2.1-or-later
"""Scenario files: what they mean, and that each mistake is named with file, scenario and key."""

from __future__ import annotations

from pathlib import Path

import pytest

from uml import plan
from uml.scenario import ScenarioError, load

HERE = Path(__file__).resolve().parent
GOOD = """
[common]
nr_requests = 64
[[common.goal]]
metric = "throughput_vs_none"
min = 0.9
[[scenario]]
name = "one"
title = "One"
disk = { kind = "ssd" }
group = [{ name = "a", weight = 300 }, { name = "a/b", job = { fio = { rw = "read" } } }]
goal = [{ metric = "share", of = "a/b", min = 0.5 }]
[[scenario.group]]
name = "never"
"""


def read(folder: Path, text: str):
    file = folder / "s.toml"
    file.write_text(text)
    return load(file)


@pytest.mark.parametrize("file", sorted(HERE.glob("*.toml")), ids=lambda path: path.name)
def test_every_shipped_file_makes_plans(file: Path) -> None:
    for scenario in load(file):
        for scheduler in scenario.schedulers:
            made = plan.make(scenario, scheduler, random_iops=200)
            assert len(made["jobs"]) == sum(len(group.job) for group in scenario.group)


def test_entitlement_is_the_product_of_the_shares_on_the_path(tmp_path: Path) -> None:
    (scenario,) = read(
        tmp_path,
        GOOD.replace('[[scenario.group]]\nname = "never"\n', "").replace(
            '{ name = "a/b", job',
            '{ name = "c" }, { name = "a/c", weight = 300 }, { name = "a/b", job',
        ),
    )
    assert scenario.entitled(0) == {"a": 0.75, "c": 0.25, "a/c": 0.5625, "a/b": 0.1875}
    assert [goal.metric for goal in scenario.goal] == ["share", "throughput_vs_none"]


def test_random_weights_repeat(tmp_path: Path) -> None:
    text = """
[[scenario]]
name = "r"
title = "R"
nr_requests = 64
disk = { kind = "hdd" }
[[scenario.group]]
name = "g"
weights = { random = [1, 1000], count = 50, seed = 3 }
each = [{ fio = { rw = "randread" } }, { command = "true" }]
"""
    first, second = read(tmp_path, text)[0], read(tmp_path, text)[0]
    assert first == second
    assert len(first.group) == 50 and len({group.weight for group in first.group}) > 40
    assert first.group[1].job[0].command == "true"


MISTAKES = {
    'kind = "tape"': ("disk: kind",),
    "": ("no [[scenario]]",),
    "nr_requests = 1": ("nr_requests",),
    "colour = 1": ("colour", "unknown key"),
    "title = 3": ("title", "3"),
    'schedulers = ["cfq"]': ("schedulers", "cfq"),
    "event = [{ at_s = 1, weight = { zz = 3 } }]": ("zz",),
    'goal = [{ metric = "beauty", min = 1 }]': ("metric", "beauty"),
    'goal = [{ metric = "jain" }]': ("jain", "min or max"),
    'group = [{ name = "x/y", job = { command = "true" } }]': ("x/y", "no group x"),
    'group = [{ name = "x", weight = 0, job = { command = "true" } }]': ("weight", "1 to 10000"),
    'group = [{ name = "x", class = "vip", job = { command = "true" } }]': ("class",),
    'group = [{ name = "x", job = { } }]': ("either fio or command",),
    'group = [{ name = "x" }]': ("no group has a job",),
}


@pytest.mark.parametrize("line", MISTAKES, ids=lambda line: line or "empty")
def test_mistakes_are_named(tmp_path: Path, line: str) -> None:
    lines = {
        "name": 'name = "wrong"', "title": 'title = "T"', "nr_requests": "nr_requests = 64",
        "disk": 'disk = { kind = "ssd" }', "kind": "",
        "group": 'group = [{ name = "x", job = { command = "true" } }]',
    }  # fmt: skip
    if line.startswith("kind"):
        lines["disk"] = f"disk = {{ {line} }}"
    else:
        lines[line.partition(" ")[0]] = line
    text = "[[scenario]]\n" + "\n".join(lines.values()) + "\n" if line else ""
    with pytest.raises(ScenarioError) as caught:
        read(tmp_path, text)
    for part in (str(tmp_path / "s.toml"), *MISTAKES[line]):
        assert part in str(caught.value)
    assert not line or "scenario wrong" in str(caught.value)


def test_a_file_that_is_no_toml_is_named(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="s.toml"):
        read(tmp_path, "[[scenario]")
    with pytest.raises(ScenarioError, match="nowhere"):
        load("nowhere.toml")
