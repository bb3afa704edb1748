# SPDX-License-Identifier: LGPL-2.1-or-later
"""The use of devices as text for people; on a terminal, a screen with a selected row.

The segments of a line carry the number of its row, and those of a head its column, as metadata of
rich: so a click is resolved without a second calculation of widths and folds.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

from rich.console import RenderableType
from rich.live import Live
from rich.segment import Segment, Segments
from rich.style import Style
from rich.table import Table
from rich.text import Text

from .keys import Click
from .promises import fails, granted, stated
from .recording import Record
from .show_promises import number, state
from .text import BAD, FAINT, NAME, Output, columns, trimmed
from .values import percent
from .view import HELP, ORDERS, PROCESSES, TABLE, UNIT, Placed, View, name

Dict = dict[str, Any]
Line = list[Segment]

# In a window with fewer columns the leaves would leave no room for names.
WITH_LEAVES = 96
HEADERS = ("UNIT", "DEVICE", "", ">VALUE", ">GRANTED", ">GOT", "STATE")
LEAF_HEADERS = ("LEAF", ">SHARE", ">WEIGHT")
# Of more than three times as many rows, a screen makes lines of those near the selected one only: a
# row takes 0.5 ms. A window with more lines has more.
NEAR_ROWS = 64


def _lines(row: Dict, width: int) -> int:
    """The number of lines of a row in which no name folds."""
    return max(len(row["lines"]), len(row["leaves"]) if width >= WITH_LEAVES else 1)


def _table(shown: list[Placed], width: int, first: int = 0) -> Table:
    """The rows as a table, with the leaves if the window is wide enough.

    `first` is the number of the first one.
    """
    with_leaves = width >= WITH_LEAVES
    table = columns(*HEADERS, *(LEAF_HEADERS if with_leaves else ()))
    for column in table.columns[2:]:
        column.no_wrap = True  # names of units and devices fold, and nothing else
    for index, placed in enumerate(shown, first):
        row = placed.row
        for line in range(_lines(row, width)):
            table.add_row(
                _name(placed) if line == 0 else "",
                row["name"] if line == 0 else "",
                *_line_cells(row["lines"], line),
                *(_leaf_cells(row["leaves"], line) if with_leaves else []),
                style=Style(meta={"row": index}),
            )
    return table


def _name(placed: Placed) -> Text:
    """The name of a row, indented by its depth."""
    hidden = f" (+{placed.hidden})" if placed.hidden else ""
    return Text.assemble("  " * placed.depth, (name(placed.row), NAME), hidden)


def _line_cells(lines: list[Dict], index: int) -> list[str | Text]:
    """The cells of one promise or kind of traffic of a row; empty below the last."""
    if index >= len(lines):
        return [""] * 5
    line = lines[index]
    key = line["key"] or "ReadBandwidthMin"
    return [
        line["about"],
        stated(line),
        granted(line),
        number(key, line["got"]),
        state(line) if line["state"] else "",
    ]


def _leaf_cells(leaves: list[Dict], index: int) -> list[str]:
    """The cells of one leaf of a row; empty below the last."""
    if index >= len(leaves):
        return [""] * 3
    leaf = leaves[index]
    return [leaf["leaf"].removeprefix("/dev/"), percent(leaf["share"]), str(leaf["weight"])]


def top(out: Output, rows: list[Dict]) -> None:
    """One table."""
    out.print(_table([Placed(row) for row in rows], out.width))


def below(out: Output, view: View, note: str) -> None:
    """Print a table, and an empty line, below the former one."""
    if note:
        out.print(note)
    with out.capture() as text:
        out.print(_table(view.shown, out.width) if view.shown else view.empty())
    out.file.write(trimmed(text.get()) + "\n")
    out.file.flush()


class Screen:
    """A full screen: draws a view, and finds the row or column of a click."""

    def __init__(self, out: Output, live: Live) -> None:
        self._out, self._live = out, live
        self._lines: list[Line] = []
        self._first = 0

    def draw(self, view: View, record: Record, processes: list[Dict] | str | None) -> None:
        """Draw as many lines as the window has; the last one is the status line."""
        out, room = self._out, max(self._out.size.height - 1, 1)
        above = below = 0  # lines that are not made
        if view.help:
            head, body = [], out.render_lines(_help(), pad=False)
        elif view.page == TABLE:
            first, end = _near(view, room)
            head, body = self._rows(view, first, end)
            above = sum(_lines(placed.row, out.width) for placed in view.shown[:first])
            below = sum(_lines(placed.row, out.width) for placed in view.shown[end:])
        else:
            head, body = [], out.render_lines(_details(view, processes), pad=False)
        head = head[: max(room - 1, 0)]
        room_body, total = room - len(head), above + len(body) + below
        self._scroll(view.index(), body, above, room_body, total)
        shown = head + body[max(self._first - above, 0) :][:room_body]
        self._lines = shown
        style = out.get_style(BAD if record.note and not view.typing else FAINT)
        foot = Segment(_foot(view, record, total - room_body)[: out.width], style)
        rest = [[] for _ in range(room - len(shown))]
        segments = [part for line in shown + rest for part in (*line, Segment.line())]
        self._live.update(Segments([*segments, foot]), refresh=True)

    def click(self, view: View, click: Click) -> None:
        """Select the row of a click, or sort by its column."""
        if click.line >= len(self._lines) or view.page != TABLE or view.help:
            return
        at = 0
        for part in self._lines[click.line]:
            at += part.cell_length
            if click.column < at:
                meta = part.style.meta if part.style else {}
                if (row := meta.get("row")) is not None and row < len(view.shown):
                    view.selected = view.shown[row].place
                elif order := meta.get("order"):
                    view.sort_by(order)
                return

    def _rows(self, view: View, first: int, end: int) -> tuple[list[Line], list[Line]]:
        """The line of heads, and the lines of the rows from `first` to `end`."""
        out = self._out
        if not view.shown:
            return [], out.render_lines(view.empty())
        table = _table(view.shown[first:end], out.width, first)
        for column in table.columns:
            order = str(column.header).lower()
            if order in ORDERS:
                marked = Style(underline=order == view.order, meta={"order": order})
                column.header_style = out.get_style(FAINT) + marked
        # The window shows the left part of a table that is too wide.
        wide = out.render_lines(table, out.options.update_width(max(out.width, out.needs(table))))
        lines = [Segment.adjust_line_length(line, out.width) for line in wide]
        selected, reverse = view.index(), Style(reverse=True)
        for index, line in enumerate(lines):
            if _row(line) == selected:
                lines[index] = list(Segment.apply_style(line, post_style=reverse))
        heads = 1 if table.show_header else 0
        return lines[:heads], lines[heads:]

    def _scroll(self, row: int, body: list[Line], above: int, room: int, total: int) -> None:
        """Keep the selected row in the window; `above` lines come before the body."""
        at = [number for number, line in enumerate(body, above) if _row(line) == row] or [above]
        self._first = min(self._first, at[0])
        self._first = max(self._first, min(at[0], at[-1] - room + 1))
        self._first = max(min(self._first, total - room), 0)


def _near(view: View, room: int) -> tuple[int, int]:
    """The first of the rows near the selected one, and the end of them.

    They change with each NEAR_ROWS rows, not with each one: the widths of columns follow from them.
    """
    near = max(NEAR_ROWS, room)
    first = min((view.index() // near - 1) * near, len(view.shown) - 3 * near)
    return max(first, 0), max(first, 0) + 3 * near


def _row(line: Line) -> int | None:
    """The row that a line belongs to, None for other lines."""
    metas = (part.style.meta for part in line if part.style)
    return next((meta["row"] for meta in metas if "row" in meta), None)


def _foot(view: View, record: Record, more: int) -> str:
    """The status line; `more` lines do not fit into the window."""
    if view.typing:
        return f"show only: {view.filter}_"
    settings = [
        record.note,
        f"{more} lines more" if more > 0 else "",
        "paused" if view.paused else "",
        f"only '{view.filter}'" if view.filter else "",
        "only active" if view.active else "",
        f"by {view.order}" + (", reversed" if view.reverse else ""),
        f"every {view.period_s:g} s",
        "q: quit  ?: keys",
    ]
    return "  ".join(filter(None, settings))


def _help() -> Table:
    """The keys and their meanings."""
    table = columns("KEY", "MEANING")
    for keys, meaning in HELP:
        table.add_row(Text(keys, style=NAME), meaning)
    return table


def _details(view: View, processes: list[Dict] | str | None) -> RenderableType:
    """The promises and leaves of the selected unit, or its processes."""
    row = view.current()
    if not row:
        return "The unit has gone."
    title = Text.assemble((name(row), NAME), f"  {row['cgroup']} on {row['name']}")
    page = {UNIT: lambda: _leaves(row), PROCESSES: lambda: _processes(processes)}[view.page]()
    grid = Table.grid()
    for part in (title, Text(), page):
        grid.add_row(part)
    return grid


def _leaves(row: Dict) -> RenderableType:
    """The promises and leaves of a row."""
    grid = Table.grid()
    for index, line in enumerate(row["lines"]):
        about, value, room, got, verdict = _line_cells(row["lines"], index)
        text = Text.assemble((str(about), NAME), f"  got {got}")
        if line["key"]:
            text = text.append(f" of {value}, granted {room}  ").append(verdict)
        grid.add_row(text)
        if line["cause"]:
            grid.add_row(Text("  " + line["cause"], style=BAD if fails(line) else ""))
    table = columns(*LEAF_HEADERS)
    for index in range(len(row["leaves"])):
        table.add_row(*_leaf_cells(row["leaves"], index))
    grid.add_row(Text())
    grid.add_row(table)
    return grid


def _processes(processes: list[Dict] | str | None) -> RenderableType:
    """The processes, or the text that stands for them."""
    if not isinstance(processes, list):
        return Text(processes or "")
    table = columns(">PID", "COMMAND")
    for process in processes:
        table.add_row(str(process["pid"]), process["command"])
    return table if processes else "It has no process."


@contextlib.contextmanager
def screen(out: Output) -> Iterator[Screen]:
    """A screen on the terminal, whose former content is restored at the end."""
    with Live(console=out, screen=True, auto_refresh=False) as live:
        yield Screen(out, live)
