# SPDX-License-Identifier: LGPL-2.1-or-later
"""The demo in several guests: each scenario runs once, and tables come whole."""

import pytest
from bench.demo import scenario
from bench.read import load

from lab.demo import Blocks, balanced, seconds

SHIPPED = load(scenario.Book, scenario.SHIPPED).runs()


@pytest.mark.parametrize("count", [1, 2, 3])
def test_each_scenario_runs_in_one_guest(count: int) -> None:
    parts = balanced(SHIPPED, count)
    assert len(parts) == count and all(parts)
    assert sorted(name for part in parts for name in part) == sorted(one.name for one in SHIPPED)


def test_two_guests_have_about_the_same_to_do() -> None:
    cost = {one.name: seconds(one) for one in SHIPPED}
    first, second = (sum(cost[name] for name in part) for part in balanced(SHIPPED, 2))
    assert 0.75 <= first / second <= 1.33


def test_the_tables_of_two_guests_do_not_mix(capsys: pytest.CaptureFixture[str]) -> None:
    one, other = Blocks(), Blocks()
    one.echo("[   1.0 s] a: measuring\n\na: title\n  row")
    other.echo("b: title\n")
    one.echo(" 1\n")
    other.echo("  row 2\n[  2.0 s] c: setting up\n")
    one.echo("\n3 of 3 goals met\n")
    one.flush()
    printed = capsys.readouterr()
    assert printed.out == "b: title\n  row 2\n\na: title\n  row 1\n\n"
    assert "demo: c: setting up" in printed.err and "goals met" not in printed.out
