# SPDX-License-Identifier: LGPL-2.1-or-later
"""Numbers as text, and tables in a narrow window."""

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.padding import Padding
from rich.tree import Tree
from sutro.show_promises import reserved
from sutro.text import Output, columns, console, scheduler, size
from sutro.values import percent


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "0.98 KiB"),
        (2**20, "1.00 MiB"),
        (20 * 2**30, "20.0 GiB"),
        (999.9 * 2**30, "0.98 TiB"),
        (2**64 - 1, "16.0 EiB"),
    ],
)
def test_size(count, text):
    assert size(count) == text


@given(st.integers(0, 2**63))
def test_size_is_short_and_near(count):
    text = size(count)
    assert len(text) <= 8
    number, unit = re.fullmatch(r"([0-9.]+) ([KMGTPE]?i?B)", text).groups()
    power = "BKMGTPE".index(unit[0])
    assert float(number) * 1024**power == pytest.approx(count, rel=0.006, abs=0.5)


@pytest.mark.parametrize(
    ("prices", "text"),
    [
        ((0.12, 0.034), "12.0 % of /dev/sda, 3.4 % of /dev/sdb"),
        ((0.0, 0.034), "3.4 % of /dev/sdb"),
        ((0.0, 0.0), "nothing"),
    ],
)
def test_price_of_reserved_time(prices, text):
    leaves = [
        {"leaf": f"/dev/sd{letter}", "price": price}
        for letter, price in zip("ab", prices, strict=True)
    ]
    line = "30.0 % of the time of its leaves is reserved for it, which costs other units " + text
    assert reserved({"reserve": 0.3, "leaves": leaves}) == line


@pytest.mark.parametrize(
    ("share", "text"),
    [(0, "-"), (0.0001, "<0.1 %"), (0.0005, "0.1 %"), (2 / 3, "66.7 %"), (1, "100.0 %")],
)
def test_percent(share, text):
    assert percent(share) == text


@pytest.mark.parametrize(
    ("more", "text"),
    [({}, "sutro"), ({"managed": True, "hung": False}, "sutro*"), ({"hung": True}, "sutro (hung)")],
)
def test_scheduler_with_its_state(more, text):
    """A daemon that is older than sutroctl does not report every state."""
    assert scheduler({"scheduler": "sutro"} | more).plain == text


def printed(width, *shown):
    """The lines of tables and trees in a window of this width."""
    file = io.StringIO()
    Output(width=width, file=file, color_system=None).print(*shown)
    return file.getvalue().splitlines()


@pytest.mark.parametrize("width", [1, 40, 80])
@pytest.mark.parametrize("depth", [0, 3, 12])
def test_numbers_are_whole_in_a_narrow_window(width, depth):
    """A weight of 30 in the place of 300 would be a wrong one; names fold, to six letters."""
    table = columns("UNIT", ">WEIGHT", ">GOT", ">READ/s")
    table.add_row("database.service", "300", "100.0 %", "30.1 MiB")
    root = branch = Tree("disk")
    for _ in range(depth):
        branch = branch.add("disk")
    branch.add(Padding(table, (0, 0, 0, 2)))
    head, row = (line.rstrip() for line in printed(width, root)[depth + 1 : depth + 3])
    assert head.endswith("WEIGHT      GOT    READ/s")
    assert re.search(r"databa\S*\s+300  100.0 %  30.1 MiB$", row)


@given(st.integers(1, 80), st.lists(st.text("abcdef", max_size=30), min_size=1, max_size=5))
def test_names_have_all_letters_in_a_narrow_window(width, names):
    """In the lines of a cell that folds, the last column as well."""
    table = columns(">N", *("NAME" for _ in names))
    table.add_row("1", *names)
    # "unresolved" may be "unreso" above "lved", but not above "ved".
    shown = "".join(printed(width, table)[1:]).replace(" ", "")
    assert sorted(shown) == sorted("1" + "".join(names))


@pytest.mark.parametrize("depth", [0, 3])
def test_names_are_whole_in_a_pipe(monkeypatch, depth):
    """So grep finds them; sentences have at most 100 columns there as well."""
    pipe = io.StringIO()
    monkeypatch.setattr("sys.stdout", pipe)
    name = f"/machine.slice/{150 * 'x'}.scope"
    table = columns("UNIT", "PATH", ">WEIGHT")
    table.add_row(name, "/dev/disk/by-id/a b c", "300")
    root = branch = Tree("disk")
    for _ in range(depth):
        branch = branch.add("disk")
    branch.add(table)
    out = console()
    out.print(root)
    assert f"{name}  /dev/disk/by-id/a b c     300" in pipe.getvalue()
    out.print(40 * "word ")
    assert max(len(line) for line in pipe.getvalue().splitlines()[-2:]) <= 100


def test_a_wide_table_does_not_widen_other_texts():
    table = columns(">VALUE")
    table.add_row(60 * "9")
    out = Output(width=20, file=io.StringIO(), color_system=None)
    out.print(table)
    out.print("two words and two more")
    assert out.file.getvalue().splitlines()[-2:] == ["two words and two ", "more"]
