# SPDX-License-Identifier: LGPL-2.1-or-later
"""The screen of top with more rows than the window has lines, without a terminal."""

import io
import re
import sys

import pytest
from rich.segment import Segment
from sutro.keys import Click
from sutro.recording import Record
from sutro.show_top import NEAR_ROWS, Screen
from sutro.text import Output
from sutro.view import UNIT, View
from test_view import row


def rows(number):
    """Rows in the order of their names; each third one has two lines."""
    made = [row(f"/u{index:05}.service") for index in range(number)]
    for one in made[::3]:
        one["lines"] *= 2
    return made


class Window:
    """A screen, and the lines that it draws, in place of the Live of rich."""

    def __init__(self, number, height=24, width=60):
        out = Output(width=width, height=height, file=io.StringIO(), color_system=None)
        self.screen, self.view = Screen(out, self), View()
        self.rows, self.height = rows(number), height
        self.draw()

    def update(self, drawn, refresh):
        assert refresh
        self.lines = list(Segment.split_lines(drawn.segments))

    def draw(self):
        """The texts of the lines below the heads, and those of the selected row."""
        self.view.arrange(self.rows)
        self.screen.draw(self.view, Record(1.0), None)
        assert len(self.lines) == self.height
        texts = ["".join(part.text for part in line) for line in self.lines]
        selected = [
            text
            for text, line in zip(texts, self.lines, strict=True)
            if any(part.style and part.style.reverse for part in line)
        ]
        self.foot = texts[-1]
        return texts[1:-1], selected

    def names(self):
        """The units in the window, from the top."""
        return re.findall(r"u\d{5}", "\n".join(self.draw()[0]))


@pytest.mark.parametrize(
    ("number", "height"), [(5, 24), (3 * NEAR_ROWS + 1, 24), (1000, 3), (1000, 100)]
)
def test_keys_move_through_all_rows(number, height):
    """The selected row is in the window, with its neighbours, wherever it is."""
    window = Window(number, height)
    every = [one["unit"].removesuffix(".service") for one in window.rows]
    lines = sum(len(one["lines"]) for one in window.rows)
    more = lines - (height - 2)
    keys = ["end", "up", "home", "down", *["page-down"] * 14, *["page-up"] * 3, "end"]
    for key in keys:
        window.view.press(key)
        text, selected = window.draw()
        assert f"u{window.view.index():05}" in selected[0]
        shown = re.findall(r"u\d{5}", "\n".join(text))
        assert shown and "".join(shown) in "".join(every)
        assert len(text) == height - 2 and (more <= 0 or "" not in map(str.strip, text))
        assert window.foot.startswith(f"{more} lines more" if more > 0 else "by state"), window.foot
    assert shown[-1] == every[-1]


def test_click_on_a_row_far_below():
    window = Window(1000)
    window.view.press("end")
    names = window.names()
    assert names[-1] == "u00999"
    line = next(n for n, parts in enumerate(window.lines) if names[3] in parts[0].text)
    window.screen.click(window.view, Click(line, 2))
    assert f"u{window.view.index():05}" == names[3] and window.names() == names


def test_details_of_a_row_far_below():
    """The page of a unit begins at its top, and the table stays where it was."""
    window = Window(1000)
    window.view.press("end")
    names = window.names()
    window.view.press("enter")
    assert window.view.page == UNIT
    window.draw()
    assert "u00999.service" in "".join(part.text for part in window.lines[0])
    window.view.press("escape")
    assert window.names() == names


def calls(function) -> int:
    """The calls of functions, of Python and of C, until a function returns."""
    events = {"call": 0, "c_call": 0}

    def count(_frame, event, _argument):
        if event in events:
            events[event] += 1

    sys.setprofile(count)
    try:
        function()
    finally:
        sys.setprofile(None)
    return sum(events.values())


def test_cost_of_a_frame():
    """In calls of functions, which no load of the host changes: of 10,000 rows few have lines."""
    few, many = Window(3 * NEAR_ROWS), Window(10_000)
    costs = []
    for window in (few, many):
        window.view.press("down")
        costs.append(calls(window.draw))
    assert costs[1] < 2 * costs[0], costs


def test_narrow_window():
    """Names fold, and numbers are whole: the window shows the left part of the table."""
    window = Window(20, width=40)
    lines = window.draw()[0]
    assert all(len(line) == 40 for line in lines)
    rows = [line for line in lines if re.match(r"u\d{5}", line)]
    assert rows and all(re.match(r"u\d{5}  /dev/s  read +- +- ", line) for line in rows)
