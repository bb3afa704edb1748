# SPDX-License-Identifier: LGPL-2.1-or-later
"""Scenario files of fairness: their meaning."""

import ast
import shlex
from pathlib import Path

import pytest
from bench.read import load
from bench.test_read import read

from uml import attacks, plan, protect
from uml.bench import needed, once
from uml.scenario import Book

HERE = Path(__file__).resolve().parent
GOOD = """
[common]
nr_requests = 64
[[goal]]
metric = "throughput_vs_best"
min = 0.9
[scenario.one]
disk = { kind = "ssd" }
group = [{ name = "a", weight = 300 }, { name = "a/b", job = { fio = { rw = "read" } } }]
goal = [{ metric = "share", of = "a/b", min = 0.5 }]
"""


@pytest.mark.parametrize("file", sorted(HERE.glob("*.toml")), ids=lambda path: path.name)
def test_every_shipped_file_makes_plans(file: Path) -> None:
    kinds = {protect.SHIPPED: protect.Book, attacks.SHIPPED: attacks.Book}
    kind = kinds.get(file, Book)
    for scenario in load(kind, file).scenario:
        for scheduler in scenario.schedulers:
            made = plan.make(scenario, scheduler, random_iops=200)
            assert len(made["jobs"]) == sum(len(group.job) for group in scenario.group)


def test_entitlement_is_the_product_of_the_shares_on_the_path(tmp_path: Path) -> None:
    more = '{ name = "c" }, { name = "a/c", weight = 300 }, { name = "a/b", job'
    (scenario,) = read(tmp_path, "fairness", GOOD.replace('{ name = "a/b", job', more)).scenario
    assert scenario.entitled(0) == {"a": 0.75, "c": 0.25, "a/c": 0.5625, "a/b": 0.1875}
    assert [goal.metric for goal in scenario.goal] == ["share", "throughput_vs_best"]


def test_random_weights_repeat(tmp_path: Path) -> None:
    text = """
[scenario.r]
nr_requests = 64
disk = { kind = "hdd" }
[[scenario.r.group]]
name = "g"
weights = { random = [1, 1000], count = 50, seed = 3 }
each = [{ fio = { rw = "randread" } }, { command = "true" }]
"""
    first, second = (read(tmp_path, "fairness", text).scenario[0] for _ in range(2))
    assert first == second
    assert len(first.group) == 50 and len({group.weight for group in first.group}) > 40
    assert first.group[1].job[0].command == "true"


def test_each_attack_is_a_function_of_the_program() -> None:
    """inside/attack.py runs in a machine only, and user.py needs a bus: their names are read."""
    book = load(attacks.Book, attacks.SHIPPED)
    for file, used in (
        (HERE / "inside/attack.py", {scenario.row for scenario in book.scenario}),
        (HERE.parent / "bench/attacks/user.py", {one.attack for one in book.bus}),
    ):
        tree = ast.parse(file.read_text())
        (listed,) = [
            {name.id for name in node.value.elts}
            for node in tree.body
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "ATTACKS"
        ]
        assert used == listed


def test_victim_is_compared_with_itself_alone_and_beside_a_neighbour() -> None:
    book = load(attacks.Book, attacks.SHIPPED)
    (scenario,) = [one for one in book.scenario if one.name == "ssd-deep-slots"]
    assert needed(scenario.under(["sutro"])) == [
        ("sutro", None), ("sutro", "victim"), ("sutro", "p99_vs_neighbour"),
    ]  # fmt: skip
    fair = scenario.beside_neighbour()
    assert fair.group[0] == scenario.group[0]
    assert fair.group[1].job == scenario.neighbour


def test_equal_plans_run_once() -> None:
    ran: list[str] = []

    def machine(name: str, made: dict) -> dict:
        ran.append(name)
        return made

    one = once(machine)
    assert [one("a", {"x": 1}), one("b", {"x": 1}), one("c", {"x": 2})] == [
        {"x": 1}, {"x": 1}, {"x": 2},
    ]  # fmt: skip
    assert ran == ["a", "c"]


STREAM = '{ name = "a", job = { fio = { rw = "read" } } }'
RANDOM = '{ name = "b", job = { fio = { rw = "randread" } } }'
FLOOD = '{ name = "c", job = { fio = { rw = "write", direct = 0 } } }'
FILE = '{ name = "c", job = { fio = { rw = "write", direct = 0, directory = "/tmp/fs" } } }'


@pytest.mark.parametrize(
    ("groups", "places"),
    [
        ((RANDOM,), [""]),
        ((STREAM, RANDOM), ["0% 100%", ""]),
        # Equal streams do not meet.
        ((STREAM, STREAM.replace('"a"', '"d"')), ["0% 50%", "50% 50%"]),
        ((STREAM, RANDOM, FLOOD), ["0% 50%", "", "/dev/d0p2"]),
        # A file is no place of the disk.
        ((RANDOM, FILE), ["", ""]),
    ],
)
def test_places(tmp_path: Path, groups: tuple[str, ...], places: list[str]) -> None:
    text = f"""
[scenario.one]
nr_requests = 64
disk = {{ kind = "ssd" }}
group = [{", ".join(groups)}]
"""
    (scenario,) = read(tmp_path, "fairness", text).scenario
    found = []
    for job in plan.make(scenario, "none")["jobs"]:
        words = dict(word[2:].split("=", 1) for word in shlex.split(job["command"]) if "=" in word)
        place = [words[key] for key in ("offset", "size") if key in words]
        found.append(" ".join(place or [words.get("filename", "")]).removesuffix("/dev/d0"))
    assert found == places


def test_partition_of_a_buffered_stream(tmp_path: Path) -> None:
    text = f"""
[scenario.one]
nr_requests = 64
disk = {{ kind = "ssd" }}
group = [{STREAM}, {FLOOD}]
"""
    (scenario,) = read(tmp_path, "fairness", text).scenario
    assert plan.make(scenario, "none")["partitions"] == [[2, 1, 2]]
